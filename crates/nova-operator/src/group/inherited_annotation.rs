//! Annotations that a node inherits from its role or node set.

use api::conditions::one_line;
use api::dataplane::Node;
use kube::ResourceExt;

use crate::group::Group;

/// Maximum length of a repeated value in a message, in bytes.
const VALUE_LIMIT: usize = 80;

/// Returns the effective value of an annotation, and the object that has it; the node's own takes
/// precedence over its group's. `None` without both.
pub(crate) fn annotation<'a>(
    group: Option<&'a Group>,
    node: &'a Node,
    name: &str,
) -> Option<(&'a str, String)> {
    if let Some(own) = node.annotations().get(name) {
        return Some((own, format!("OpenStackDataPlaneNode {}", node.name_any())));
    }
    let group = group?;
    let inherited = group.annotations().get(name)?;
    Some((inherited, group.title()))
}

/// Returns a value as messages repeat it: in one line, cut to a bounded length.
pub(crate) fn repeated(value: &str) -> String {
    one_line(value, VALUE_LIMIT)
}

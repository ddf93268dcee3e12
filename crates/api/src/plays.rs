//! Validation of playbooks and roles, shared by services and runs.

use serde_json::{Map, Value};

use crate::yaml;

/// Returns why a text is not a valid name or path of a playbook, with a valid alternative.
pub fn playbook_fault(playbook: &str) -> Option<String> {
    (is_odd(playbook) || playbook.contains(char::is_control)).then(|| {
        format!(
            "{playbook:?} is neither the name of a collection's playbook, as osp.edpm.nova, nor a \
             path below /runner/project"
        )
    })
}

/// Returns why a text is not a valid name of a role, with a valid alternative.
///
/// Ansible accepts white space inside a name; around a name it finds no such role.
pub fn role_fault(role: &str) -> Option<String> {
    (is_odd(role) || role.contains(char::is_control) || role.trim() != role).then(|| {
        format!(
            "{role:?} is neither the name of a collection's role, as osp.edpm.edpm_nova, nor a \
             folder in /usr/share/ansible/roles"
        )
    })
}

/// Returns why a text is not a playbook; `None` when it is.
pub fn contents_fault(text: &str) -> Option<String> {
    let plays = yaml::from_str::<Vec<Map<String, Value>>>(text);
    plays.err().map(|error| format!("not a list of plays: {error}"))
}

/// Returns whether a text is empty, an option, or a path outside of where Ansible looks.
fn is_odd(text: &str) -> bool {
    text.is_empty() || text.starts_with(['/', '-']) || text.split('/').any(|it| it == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_may_have_white_space_in_its_name_and_not_around_it() {
        for good in ["test role", "osp.edpm.edpm_nova", "roles/own"] {
            assert_eq!(role_fault(good), None, "{good}");
        }
        for bad in ["", " a", "a ", "a\tb", "a\nb", "--hosts=x", "/a", "a/../b"] {
            assert!(role_fault(bad).is_some(), "{bad:?}");
        }
    }
}

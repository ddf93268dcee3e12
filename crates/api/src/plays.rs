//! What Ansible can be told to run, in one rule for services and for runs.

use serde_json::{Map, Value};

use crate::yaml;

/// Why a text cannot be the name or the path of a playbook, with the legal way.
pub fn playbook_fault(playbook: &str) -> Option<String> {
    (is_odd(playbook) || playbook.contains(char::is_control)).then(|| {
        format!(
            "{playbook:?} is neither the name of a collection's playbook, as osp.edpm.nova, nor a \
             path below /runner/project"
        )
    })
}

/// Why a text cannot be the name of a role, with the legal way.
///
/// White space inside is a name like any other to Ansible; around the name it finds no such role.
pub fn role_fault(role: &str) -> Option<String> {
    (is_odd(role) || role.contains(char::is_control) || role.trim() != role).then(|| {
        format!(
            "{role:?} is neither the name of a collection's role, as osp.edpm.edpm_nova, nor a \
             folder in /usr/share/ansible/roles"
        )
    })
}

/// Why a text is no playbook.
pub fn contents_fault(text: &str) -> Option<String> {
    let plays = yaml::from_str::<Vec<Map<String, Value>>>(text);
    plays.err().map(|error| format!("not a list of plays: {error}"))
}

/// Whether a text names nothing, an option, or a place outside of where Ansible looks.
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

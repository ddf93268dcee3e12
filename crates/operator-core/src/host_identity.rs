//! The failures of plays that concern the identity of a host in nova.

use api::ansibleee::HostFailure;
use api::conditions::Reason;

use crate::reasons;

/// Name of the task that refuses a host which has lost its recorded identity.
pub const MISSING: &str = "The host must have its identity";
/// Name of the task that refuses a host with another identity than the recorded one.
pub const MISMATCH: &str = "The host must have no other identity";
/// Name of the task that reports a nova-compute which refuses to start without an identity.
pub const NOT_FOUND: &str = "nova-compute must find its identity";
/// Name of the task that reports a nova-compute which refuses to start, because the host has a
/// compute node under another identity.
pub const DUPLICATE: &str = "The host must have one compute node";
/// Name of the task that reports a provider which has the name of the host's own.
pub const NAME_TAKEN: &str = "The name of the resource provider must be free";

/// The role that gives a host its identity: what the names of its tasks begin with, and its file.
const ROLE: (&str, &str) =
    ("osp.edpm.edpm_nova : ", "/ansible_collections/osp/edpm/roles/edpm_nova/tasks/identity.yml");

/// Returns the reason of a failure that concerns the host's identity; `None` for any other one.
///
/// It is recognized by the file and the name of the task, which a host cannot change.
pub fn reason(failure: &HostFailure) -> Option<&'static Reason> {
    let file = failure.file()?;
    let (prefix, role) = ROLE;
    match failure.task.strip_prefix(prefix) {
        Some(MISSING) if file.ends_with(role) => Some(&reasons::IDENTITY_MISSING),
        Some(MISMATCH) if file.ends_with(role) => Some(&reasons::IDENTITY_MISMATCH),
        None if file == HostFailure::PLAYBOOK => of_playbook(&failure.task),
        Some(_) | None => None,
    }
}

fn of_playbook(task: &str) -> Option<&'static Reason> {
    match task {
        NOT_FOUND => Some(&reasons::IDENTITY_NOT_FOUND),
        DUPLICATE => Some(&reasons::DUPLICATE_COMPUTE_NODE),
        NAME_TAKEN => Some(&reasons::PROVIDER_NAME_TAKEN),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "/usr/share/ansible/collections/ansible_collections/osp/edpm/roles/\
                        edpm_nova/tasks/identity.yml:10";

    fn of(path: &str, task: &str) -> Option<&'static str> {
        let failure =
            HostFailure { path: path.into(), task: task.into(), ..HostFailure::default() };
        reason(&failure).map(|it| it.word)
    }

    #[test]
    fn a_failure_is_known_by_the_file_and_the_name_of_its_task() {
        let play = "/runner/project/playbook.yaml:120";
        for (path, task, word) in [
            (FILE, "osp.edpm.edpm_nova : The host must have its identity", "IdentityMissing"),
            (FILE, "osp.edpm.edpm_nova : The host must have no other identity", "IdentityMismatch"),
            (play, NOT_FOUND, "IdentityNotFound"),
            (play, DUPLICATE, "DuplicateComputeNode"),
            (play, NAME_TAKEN, "ProviderNameTaken"),
        ] {
            assert_eq!(of(path, task), Some(word));
            assert_eq!(of(&format!("{path}x"), task), None);
            assert_eq!(of("/runner/project/main.yml:3", task), None);
            assert_eq!(of(path, &format!("x{task}")), None);
        }
        assert_eq!(of(FILE, MISSING), None, "a task of a play, not of the role");
        assert_eq!(of(play, MISSING), None);
        assert_eq!(of(FILE, NOT_FOUND), None);
    }
}

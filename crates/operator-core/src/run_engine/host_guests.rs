//! The look for guests on a host before something there is stopped for good, restarted or wiped.

use api::ansibleee::HostFailure;

/// The tasks of the collection's role `edpm_guests`: the one text of the look.
const TASKS: &str = include_str!("../../../../ansible/osp/edpm/roles/edpm_guests/tasks/main.yml");
/// Where the tasks of a play begin.
const PLAY_TASKS: &str = "  tasks:\n";
/// Name of the task that looks for guests.
const LOOK: &str = "Look for guests";
/// Name of the task that refuses a host on which guests are.
const REFUSAL: &str = "The host must have no guests";
/// The role: what the names of its tasks begin with, and its file.
const ROLE: (&str, &str) =
    ("osp.edpm.edpm_guests : ", "/ansible_collections/osp/edpm/roles/edpm_guests/tasks/main.yml");

/// Returns the text of a playbook with one play, which looks for guests before its own tasks.
///
/// It is text, so that it works with a runner image that has another collection than ours.
pub fn with_look(playbook: &str) -> String {
    let indented = |line: &str| if line.is_empty() { "\n".into() } else { format!("    {line}\n") };
    let look: String = TASKS.lines().map(indented).collect();
    playbook.replacen(PLAY_TASKS, &format!("{PLAY_TASKS}{look}\n"), 1)
}

/// Returns whether the look refused a host because of guests.
///
/// It is recognized by the file and the name of the task, which a host cannot change.
pub fn is_refusal(failure: &HostFailure) -> bool {
    let (prefix, role) = ROLE;
    let Some(file) = failure.file() else { return false };
    match failure.task.strip_prefix(prefix) {
        Some(task) => task == REFUSAL && file.ends_with(role),
        None => failure.task == REFUSAL && file == HostFailure::PLAYBOOK,
    }
}

/// Returns whether a failed task of a playbook with the look comes after it, so that the look has
/// passed: it is one of the playbook's own tasks.
pub fn is_after(failure: &HostFailure) -> bool {
    let before = ["", "Gathering Facts", LOOK, REFUSAL];
    failure.file() == Some(HostFailure::PLAYBOOK) && !before.contains(&failure.task.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_playbook_looks_for_guests_before_its_own_tasks() {
        let text = with_look("- hosts: all\n  tasks:\n    - name: Wipe it\n");
        let play: serde_json::Value = api::yaml::from_str(&text).unwrap();
        let tasks = play[0]["tasks"].as_array().unwrap();
        let names: Vec<_> = tasks.iter().filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names, [LOOK, REFUSAL, "Wipe it"]);
        // A condition on the whole look, or an error that is ignored, would let a host pass.
        for task in &tasks[..2] {
            assert!(task["when"].is_null() && task["ignore_errors"].is_null(), "{task}");
        }
    }

    #[test]
    fn only_a_task_of_the_playbook_itself_is_known_to_come_after_the_look() {
        let of = |path: &str, task: &str| {
            let (path, task) = (path.to_owned(), task.to_owned());
            is_after(&HostFailure { path, task, ..HostFailure::default() })
        };
        let play = format!("{}:90", HostFailure::PLAYBOOK);
        assert!(of(&play, "Wipe it"));
        for (path, task) in [
            (&*play, ""),
            (&*play, "Gathering Facts"),
            (&*play, LOOK),
            (&*play, REFUSAL),
            ("", "Wipe it"),
            ("/opt/edpm/plays/owner-check.yaml:9", "Wipe it"),
        ] {
            assert!(!of(path, task), "{path} {task}");
        }
    }

    #[test]
    fn a_refusal_is_known_by_the_file_and_the_name_of_its_task() {
        let of = |path: &str, task: &str| {
            let (path, task) = (path.to_owned(), task.to_owned());
            is_refusal(&HostFailure { path, task, ..HostFailure::default() })
        };
        let (prefix, role) = ROLE;
        let (role, task) =
            (format!("/usr/share/ansible/collections{role}:70"), format!("{prefix}{REFUSAL}"));
        let play = format!("{}:80", HostFailure::PLAYBOOK);
        assert!(of(&role, &task) && of(&play, REFUSAL));
        for (path, task) in [
            (&*role, REFUSAL),
            (&*play, &*task),
            (&*role, &*format!("{prefix}Look for guests")),
            ("/runner/project/playbook.yaml", REFUSAL),
            ("/runner/project/playbook.yaml:8x", REFUSAL),
            ("/x/main.yml:1", REFUSAL),
        ] {
            assert!(!of(path, task), "{path} {task}");
        }
    }
}

//! The condition of a run that does not check hosts' own ssh keys, from its spec and its report.

use api::ansibleee::AnsibleEeSpec;
use api::conditions::{ConditionDraft, append_more, shortened};
use operator_core::host_key_checking::{self, HOST_KEYS_CHECKED};
use operator_core::reasons::HOST_KEY_CHECKING_OFF;

use super::summary::Unchecked;

/// The report of a run whose ssh did not answer whether it checks keys.
const NO_ANSWER: &str = "no_answer";
/// Maximum length of the condition's message, in bytes.
const LIMIT: usize = 1000;

/// Returns the condition if keys are not checked.
///
/// The run's report takes precedence, unless it only repeats the spec.
pub fn condition(spec: &AnsibleEeSpec, reported: Option<&Unchecked>) -> Option<ConditionDraft> {
    let by_spec = host_key_checking::condition([&spec.extra_vars], "extraVars");
    let is_said = |it: &String| {
        by_spec.is_some()
            && it.strip_prefix("-e ").is_some_and(|it| spec.extra_vars.contains_key(it))
    };
    match reported {
        Some(reported) if !reported.by.iter().all(is_said) => Some(by_run(reported)),
        _ => by_spec,
    }
}

fn by_run(reported: &Unchecked) -> ConditionDraft {
    let hosts = append_more(reported.hosts.join(", "), reported.more);
    let by = reported.by.iter().map(|it| place(it)).collect::<Vec<_>>().join("; ");
    if reported.by.iter().all(|it| it == NO_ANSWER) {
        let text = format!(
            "It is unknown whether host keys were checked in tasks of {hosts}: there was \
             {by}. Find out what delays ssh -G in the runner (Match exec in a configuration file \
             of ssh, a busy worker), and run again."
        );
        return HOST_KEY_CHECKING_OFF
            .condition(HOST_KEYS_CHECKED, shortened(&text.replace('\n', " "), LIMIT));
    }
    let text = format!(
        "Host keys were not checked in tasks of {hosts}, because of {by}: any machine \
         answering at the address of a host is accepted as it. Remove it and run again, or keep it \
         deliberately."
    );
    HOST_KEY_CHECKING_OFF.condition(HOST_KEYS_CHECKED, shortened(&text.replace('\n', " "), LIMIT))
}

/// Returns where the user finds what the plugin names.
fn place(by: &str) -> String {
    match by.strip_prefix("-e ") {
        Some(name) => format!("extra variable {name} (extraVars, or --extra-vars in cmdLine)"),
        None if by.starts_with("--") => format!("option {by} in cmdLine"),
        None if by == "ssh_config" => "a configuration file of ssh in the runner".into(),
        None if by == NO_ANSWER => "no answer from ssh on whether it checks them".into(),
        None if by == "settings" => "settings of the runner's connection plugin".into(),
        None => format!("variable {by} (of the inventory, ansibleVars, ansibleVarsFrom or a play)"),
    }
}

#[cfg(test)]
mod tests {
    use api::yaml;

    use super::*;

    const TAIL: &str = ": any machine answering at the address of a host is accepted as it. Remove \
                        it and run again, or keep it deliberately.";

    fn unchecked(hosts: &[&str], more: usize, by: &[&str]) -> Unchecked {
        let own = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
        Unchecked { hosts: own(hosts), more, by: own(by) }
    }

    fn message(spec: &str, reported: Option<&Unchecked>) -> Option<String> {
        let spec: AnsibleEeSpec = yaml::from_str(spec).unwrap();
        let condition = condition(&spec, reported)?;
        assert_eq!(
            (condition.type_.as_str(), condition.reason.as_str()),
            (HOST_KEYS_CHECKED, HOST_KEY_CHECKING_OFF.word)
        );
        assert!(!condition.holds());
        Some(condition.message)
    }

    #[test]
    fn a_run_that_checks_and_says_nothing_else_has_no_such_condition() {
        assert_eq!(message("{}", None), None);
        assert_eq!(message("{cmdLine: --ssh-common-args=-C}", None), None);
    }

    #[test]
    fn what_a_run_told_names_hosts_and_where_a_human_finds_the_cause() {
        for (by, place) in [
            ("--ssh-common-args", "option --ssh-common-args in cmdLine"),
            (
                "-e ansible_host_key_checking",
                "extra variable ansible_host_key_checking (extraVars, or --extra-vars in cmdLine)",
            ),
            (
                "ansible_ssh_common_args",
                "variable ansible_ssh_common_args (of the inventory, ansibleVars, ansibleVarsFrom or a \
                 play)",
            ),
            ("ssh_config", "a configuration file of ssh in the runner"),
            ("settings", "settings of the runner's connection plugin"),
        ] {
            let expected =
                format!("Host keys were not checked in tasks of a, b, because of {place}{TAIL}");
            assert_eq!(message("{}", Some(&unchecked(&["a", "b"], 0, &[by]))), Some(expected));
        }
        let unknown = message("{}", Some(&unchecked(&["a"], 2, &["no_answer"]))).unwrap();
        let cause = "It is unknown whether host keys were checked in tasks of a and 2 more: there \
                     was no answer from ssh on whether it checks them. Find out what delays ssh -G";
        assert!(unknown.starts_with(cause), "{unknown}");
        let both =
            message("{}", Some(&unchecked(&["a"], 0, &["ssh_config", "no_answer"]))).unwrap();
        assert!(
            both.starts_with("Host keys were not checked in tasks of a, because of a"),
            "{both}"
        );
        assert!(both.contains("in the runner; no answer from ssh on whether"), "{both}");
        let many =
            message("{}", Some(&unchecked(&["a"], 41, &["ssh_config", "settings"]))).unwrap();
        assert!(
            many.contains("in tasks of a and 41 more, because of a configuration file"),
            "{many}"
        );
        assert!(many.contains("in the runner; settings of the runner"), "{many}");
    }

    #[test]
    fn what_the_spec_says_itself_is_told_from_there_before_and_after_the_run() {
        let spec = "{extraVars: {ansible_host_key_checking: false}}";
        let before = message(spec, None).unwrap();
        assert!(before.contains("for extraVars have ansible_host_key_checking: "), "{before}");
        let same = unchecked(&["a"], 0, &["-e ansible_host_key_checking"]);
        assert_eq!(message(spec, Some(&same)).unwrap(), before);
        // The spec does not cover `--extra-vars`.
        assert!(message("{}", Some(&same)).unwrap().contains("--extra-vars in cmdLine"));
        let more = unchecked(&["a"], 0, &["-e ansible_host_key_checking", "--ssh-extra-args"]);
        let both = message(spec, Some(&more)).unwrap();
        assert!(both.contains("ansible_host_key_checking") && both.contains("--ssh-extra-args"));
    }

    #[test]
    fn however_much_is_told_the_message_is_one_bounded_line() {
        let long = "x".repeat(3000);
        let message =
            message("{}", Some(&unchecked(&["a\nb", &long], usize::MAX, &[&long]))).unwrap();
        assert!(message.len() <= LIMIT && !message.contains('\n'), "{message}");
    }
}

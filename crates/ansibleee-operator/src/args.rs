//! The command-line options of ansibleee-operator.

use clap::Parser;
use k8s_openapi::api::core::v1::ResourceRequirements;
use operator_runtime::args::CommonArgs;

use crate::run::deadline;
use crate::run::scheduling_policy::Limits;
use crate::run::settings::Settings;

/// Maximum of the default deadline, in seconds: a year.
const LONGEST: i64 = 31_536_000;

/// Runs every `OpenStackAnsibleEE` once as a Job, never two on one host at the same time, and writes
/// into its status what happened on each host.
#[derive(Clone, Debug, Parser)]
#[command(name = "ansibleee-operator", version)]
pub struct Args {
    /// The options of all operators.
    #[command(flatten)]
    pub common: CommonArgs,

    /// Runner image of an `OpenStackAnsibleEE` that does not set one; without it, each must set
    /// one.
    #[arg(
        long,
        env = "RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT",
        default_value = "",
        value_name = "IMAGE"
    )]
    pub runner_image: String,

    /// User of the runner pods, in group 0; empty leaves it to the platform, as on `OpenShift`.
    #[arg(long, env = "RUNNER_UID", default_value = "1001", value_name = "UID")]
    pub runner_uid: Uid,

    /// Seconds that a task of Ansible may take on a host; a run's `env` may say otherwise, up to the
    /// run's deadline. A host that takes longer counts as unreachable.
    #[arg(
        long,
        env = "TASK_TIMEOUT",
        default_value_t = 900,
        value_parser = clap::value_parser!(i64).range(1..=2_147_483_647),
        value_name = "SECONDS"
    )]
    pub task_timeout: i64,

    /// Requests and limits of runner containers whose run names none, as JSON.
    #[arg(long, env = "RUNNER_RESOURCES", default_value = "", value_name = "JSON")]
    pub runner_resources: Resources,

    /// How many runs may be active at the same time; the others wait. Among waiting namespaces, the
    /// one with the fewest active runs goes first; while one holds all slots, a quarter more may be
    /// active in the others.
    #[arg(
        long,
        env = "MAX_ACTIVE_RUNS",
        default_value_t = 20,
        value_parser = clap::value_parser!(u16).range(1..),
        value_name = "N"
    )]
    pub max_active_runs: u16,

    /// How many of them may be active in one namespace; 0 means no separate limit.
    #[arg(long, env = "MAX_ACTIVE_RUNS_PER_NAMESPACE", default_value_t = 0, value_name = "N")]
    pub max_active_runs_per_namespace: u16,

    /// Seconds after which a hand-made run that names no deadline is stopped; runs of the other
    /// operators have deadlines of their own.
    #[arg(
        long,
        env = "RUN_DEADLINE_SECONDS",
        default_value_t = deadline::DEFAULT,
        value_parser = clap::value_parser!(i64).range(1..=LONGEST),
        value_name = "SECONDS"
    )]
    pub run_deadline_seconds: i64,

    /// Service accounts that an `OpenStackAnsibleEE` may name, separated by commas; `*` allows all,
    /// empty allows none.
    #[arg(long, env = "ALLOWED_SERVICE_ACCOUNTS", value_delimiter = ',', value_name = "NAMES")]
    pub allowed_service_accounts: Vec<String>,
}

/// A user id; `None` for an empty option.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Uid(pub Option<i64>);

impl std::str::FromStr for Uid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        match text.parse() {
            Ok(uid @ 1..=2_147_483_647) => Ok(Self(Some(uid))),
            _ => Err("give a user ID above 0, or leave it empty".into()),
        }
    }
}

/// Requests and limits of a container; `None` for an empty option.
#[derive(Clone, Debug, PartialEq)]
pub struct Resources(pub Option<ResourceRequirements>);

impl std::str::FromStr for Resources {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if ["", "{}", "null"].contains(&text) {
            return Ok(Self(None));
        }
        let parsed = serde_json::from_str(text).map_err(|it| format!("no resources: {it}"))?;
        Ok(Self(Some(parsed)))
    }
}

impl Args {
    /// Returns what the options say about runner pods.
    pub fn settings(&self) -> Settings {
        Settings {
            image: self.runner_image.clone(),
            uid: self.runner_uid.0,
            service_accounts: self.accounts(),
            task_timeout: self.task_timeout,
            resources: self.runner_resources.0.clone(),
            deadline: self.run_deadline_seconds,
        }
    }

    /// Returns how many runs may be active at the same time.
    pub fn limits(&self) -> Limits {
        let per_namespace = usize::from(self.max_active_runs_per_namespace);
        Limits {
            total: usize::from(self.max_active_runs),
            per_namespace: (per_namespace > 0).then_some(per_namespace),
        }
    }

    /// Returns the allowed accounts; an empty variable parses as one blank name, which is dropped.
    fn accounts(&self) -> Vec<String> {
        let names = self.allowed_service_accounts.iter().map(|it| it.trim().to_owned());
        names.filter(|it| !it.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_user_leaves_it_to_the_platform() {
        let uid =
            |text| Args::try_parse_from(["x", "--runner-uid", text]).map(|it| it.runner_uid.0);
        assert_eq!(uid("").unwrap(), None);
        assert_eq!(uid("1001").unwrap(), Some(1001));
        assert!(uid("0").is_err() && uid("root").is_err());
    }

    fn parsed(words: &[&str]) -> Args {
        Args::try_parse_from(["x"].iter().chain(words)).unwrap()
    }

    #[test]
    fn the_limits_are_options() {
        let limits = |words: &[&str]| {
            let Limits { total, per_namespace } = parsed(words).limits();
            (total, per_namespace)
        };
        assert_eq!(limits(&[]), (20, None));
        assert_eq!(limits(&["--max-active-runs=3"]), (3, None));
        assert_eq!(limits(&["--max-active-runs-per-namespace=2"]), (20, Some(2)));
        assert_eq!(limits(&["--max-active-runs-per-namespace=0"]), (20, None));
        assert!(Args::try_parse_from(["x", "--max-active-runs=0"]).is_err());
    }

    #[test]
    fn what_a_run_names_no_limits_for_has_those_of_the_options() {
        let settings = parsed(&[]).settings();
        assert_eq!((settings.task_timeout, settings.resources), (900, None));
        let text = r#"{"limits":{"memory":"4Gi"}}"#;
        let given = parsed(&["--task-timeout=60", "--runner-resources", text]).settings();
        assert_eq!(given.task_timeout, 60);
        assert_eq!(serde_json::to_string(&given.resources).unwrap(), text);
        assert!(Args::try_parse_from(["x", "--task-timeout=0"]).is_err());
        assert!(Args::try_parse_from(["x", "--runner-resources", "[]"]).is_err());
    }

    #[test]
    fn a_hand_made_run_has_four_hours_unless_the_option_says_otherwise() {
        let deadline = |words: &[&str]| parsed(words).settings().deadline;
        assert_eq!(deadline(&[]), 14_400);
        assert_eq!(deadline(&["--run-deadline-seconds=60"]), 60);
        for odd in ["0", "-1", "31536001"] {
            let word = format!("--run-deadline-seconds={odd}");
            assert!(Args::try_parse_from(["x", &word]).is_err(), "{odd}");
        }
    }

    #[test]
    fn no_service_account_is_allowed_unless_it_is_named() {
        let accounts =
            |text: &str| parsed(&["--allowed-service-accounts", text]).settings().service_accounts;
        assert_eq!(parsed(&[]).settings().service_accounts, [""; 0]);
        assert_eq!(accounts(""), [""; 0]);
        assert_eq!(accounts("a, b,"), ["a", "b"]);
        assert_eq!(accounts("*"), ["*"]);
    }
}

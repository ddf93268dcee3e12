//! Changes and conditions of a measurement, by kubectl.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::manifests::{self, NODES};
use crate::{lab, sh};

/// How long a deployment that is over may still be held.
const RELEASE: Duration = Duration::from_mins(5);
/// What is read of each host: its name, the attempts and states of its services, and two conditions.
const HOSTS: &str = r#"jsonpath={range .items[*]}{.metadata.name}{"|"}{.status.services[*].attempt}{"|"}{.status.services[*].state}{"|"}{.status.conditions[?(@.type=="Ready")].status}{"|"}{.status.conditions[?(@.type=="UpToDate")].status}{"\n"}{end}"#;
/// What is read of each host that is drained.
const DRAINED: &str = r#"jsonpath={range .items[*]}{.status.conditions[?(@.type=="nova.openstack.org/Drained")].status}{"\n"}{end}"#;

/// Host → the newest attempt of a service.
pub(super) type Attempts = BTreeMap<String, u64>;

/// kubectl, and its patience.
pub(super) struct Wait<'a> {
    env: &'a lab::Env,
    within: Duration,
    /// The pause between two lists of all hosts, which cost the API server more the more there are.
    pause: Duration,
}

impl<'a> Wait<'a> {
    /// Returns the patience with so many hosts.
    pub(super) fn new(env: &'a lab::Env, n_hosts: usize) -> Self {
        let n_hosts = n_hosts as u64;
        // Several times of what hosts of a role need on two busy cores.
        let within = Duration::from_secs(600 + n_hosts);
        Self { env, within, pause: Duration::from_millis(100 + 2 * n_hosts) }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut kubectl = self.env.kubectl();
        kubectl.args(["--namespace", manifests::NAMESPACE]).args(words);
        kubectl
    }

    /// Runs kubectl with these arguments.
    pub(super) fn kubectl(&self, words: &[&str]) -> Result<String> {
        sh::run(&mut self.command(words))
    }

    /// Creates objects, one after the other.
    pub(super) fn create(&self, objects: &[Value]) -> Result<()> {
        let text = manifests::text(objects);
        let mut create = self.command(&["create", "--filename=-"]);
        sh::run_with_input(&mut create, text.as_bytes()).map(drop)
    }

    /// Merges a change into an object.
    pub(super) fn patch(&self, resource: &str, name: &str, change: &Value) -> Result<()> {
        let change = change.to_string();
        self.kubectl(&["patch", resource, name, "--type=merge", "--patch", &change]).map(drop)
    }

    /// Waits for what `kubectl wait --for` takes.
    pub(super) fn until(&self, object: &str, what: &str) -> Result<()> {
        let (what, within) =
            (format!("--for={what}"), format!("--timeout={}s", self.within.as_secs()));
        let waited = self.kubectl(&["wait", object, &what, &within]);
        waited.map(drop).map_err(|error| {
            let conditions = ["get", object, "-o", "jsonpath={.status.conditions}"];
            error.context(self.kubectl(&conditions).unwrap_or_default())
        })
    }

    /// Waits until these fields of a status have a number.
    pub(super) fn until_counted(&self, object: &str, fields: &[&str], n: usize) -> Result<()> {
        fields
            .iter()
            .try_for_each(|it| self.until(object, &format!("jsonpath={{.status.{it}}}={n}")))
    }

    /// Waits until an object has lost its finalizers.
    pub(super) fn until_released(&self, object: &str) -> Result<()> {
        sh::wait_for(&format!("{object} is held"), RELEASE, || {
            let finalizers =
                self.kubectl(&["get", object, "-o", "jsonpath={.metadata.finalizers}"])?;
            ensure!(finalizers.trim().is_empty(), "finalizers {finalizers}");
            Ok(())
        })
    }

    /// Waits until a host is ready and up to date with its present spec.
    pub(super) fn until_up_to_date(&self, resource: &str, name: &str) -> Result<()> {
        sh::wait_for(&format!("{resource}/{name} is up to date"), self.within, || {
            let text = self.kubectl(&["get", resource, name, "-o", "json"])?;
            lags(&serde_json::from_str(&text)?).map_or(Ok(()), |it| bail!(it))
        })
    }

    /// Returns how often each host was deployed.
    pub(super) fn attempts(&self, resource: &str) -> Result<Attempts> {
        let hosts = self.hosts(resource)?;
        Ok(hosts.into_iter().map(|it| (it.name, it.attempt)).collect())
    }

    /// Waits until what sums up the hosts is complete, and then each of these resources has every host
    /// as ready and deployed once more than before: before the first change the sums are complete as
    /// well.
    pub(super) fn until_again(
        &self,
        before: &[(&str, &Attempts)],
        sums: impl Fn() -> Result<()>,
    ) -> Result<()> {
        sh::wait_for("the hosts are deployed again", self.within, || {
            sums()?;
            before.iter().try_for_each(|(resource, before)| {
                let hosts = self.hosts(resource)?;
                let n_done = hosts.iter().filter(|it| it.is_done(before)).count();
                self.judge(n_done, before.len()).with_context(|| (*resource).to_owned())
            })
        })
    }

    /// Waits until so many hosts are drained; none, until no drain is reported.
    pub(super) fn until_drained(&self, n: usize) -> Result<()> {
        sh::wait_for("drained hosts", self.within, || {
            let text = self.kubectl(&["get", NODES, "-o", DRAINED])?;
            let reported = text.lines().filter(|it| !it.is_empty());
            self.judge(reported.filter(|it| n == 0 || *it == "True").count(), n)
        })
    }

    /// Compares what was found in a list of all hosts, and pauses where it is not what it should be.
    fn judge(&self, found: usize, wanted: usize) -> Result<()> {
        if found != wanted {
            std::thread::sleep(self.pause);
            bail!("{found} where {wanted} are to be");
        }
        Ok(())
    }

    fn hosts(&self, resource: &str) -> Result<Vec<Deployed>> {
        let text = self.kubectl(&["get", resource, "-o", HOSTS])?;
        text.lines()
            .map(|it| Deployed::of(it).with_context(|| format!("{resource}: {it}")))
            .collect()
    }
}

/// Returns why an object is not ready with its present spec; `None` when it is.
fn lags(object: &Value) -> Option<String> {
    let (status, generation) = (&object["status"], &object["metadata"]["generation"]);
    if status["observedGeneration"] != *generation {
        return Some(format!("generation {generation} is not observed"));
    }
    let conditions = status["conditions"].as_array();
    let holds = |type_: &&str| {
        let found = conditions.into_iter().flatten().find(|it| it["type"] == *type_);
        found.is_some_and(|it| it["status"] == "True")
    };
    let missing = ["Ready", "UpToDate"].into_iter().find(|it| !holds(it))?;
    Some(format!("{missing} is not True: {}", status["conditions"]))
}

/// How far the services of a host are.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Deployed {
    name: String,
    attempt: u64,
    /// Whether every service has succeeded, and its conditions say so.
    is_ready: bool,
}

impl Deployed {
    /// Parses a line of [`HOSTS`].
    fn of(line: &str) -> Option<Self> {
        let [name, attempts, states, ready, up_to_date] =
            *line.split('|').collect::<Vec<_>>().as_slice()
        else {
            return None;
        };
        let attempts: Vec<u64> = attempts.split(' ').filter_map(|it| it.parse().ok()).collect();
        let has_succeeded = states.split(' ').all(|it| it == "Succeeded");
        Some(Self {
            name: name.to_owned(),
            attempt: attempts.into_iter().max().unwrap_or_default(),
            is_ready: has_succeeded && ready == "True" && up_to_date == "True",
        })
    }

    fn is_done(&self, before: &Attempts) -> bool {
        self.is_ready && before.get(&self.name).is_some_and(|it| *it < self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_is_deployed_again_when_all_services_have_succeeded_in_a_new_attempt() {
        let before = Attempts::from([("a".to_owned(), 1)]);
        let is_done = |line: &str| Deployed::of(line).unwrap().is_done(&before);
        assert!(is_done("a|2 2|Succeeded Succeeded|True|True"));
        assert!(is_done("a|1 2|Succeeded Succeeded|True|True"), "an edit may change one service");
        assert!(!is_done("a|1 1|Succeeded Succeeded|True|True"), "as before");
        assert!(!is_done("a|2 2|Succeeded Pending|True|True"), "begun");
        assert!(!is_done("a|2 2|Succeeded Succeeded|True|False"));
        assert!(!is_done("a||||"), "no status");
        assert!(!is_done("b|2|Succeeded|True|True"), "another host");
        assert_eq!(Deployed::of("garbage"), None);
    }

    #[test]
    fn a_host_is_up_to_date_when_its_present_spec_is_observed_and_both_conditions_hold() {
        let object = |observed, up_to_date| {
            let condition = |type_, status| json!({ "type": type_, "status": status });
            json!({ "metadata": { "generation": 2 }, "status": {
                "observedGeneration": observed,
                "conditions": [condition("Ready", "True"), condition("UpToDate", up_to_date)],
            } })
        };
        assert_eq!(lags(&object(2, "True")), None);
        assert!(lags(&object(1, "True")).unwrap().contains("generation 2"));
        assert!(lags(&object(2, "False")).unwrap().starts_with("UpToDate"));
        assert!(lags(&json!({ "metadata": { "generation": 1 } })).is_some());
    }
}

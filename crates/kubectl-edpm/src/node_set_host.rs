//! A host of a node set: the deployments that target it and its progress in each of them.

use std::borrow::Cow;

use api::ansibleee::AnsibleEe;
use api::conditions::{
    Condition, ConditionDraft, ConditionStatus, READY, Severity, find, merge_conditions,
};
use api::dataplane::condition_types::{INPUT_READY, SETUP_READY};
use api::dataplane::{
    Deployment, DeploymentFailure, HostProgress, HostState, NodeSet, NodeSetHost, NodeSetProgress,
    RunState, ServiceRun,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::node_set_host;
use operator_core::reasons;
use operator_core::run_engine::host_progress::{
    awaits_disruption, is_failing, position, to_service_runs,
};
use operator_core::run_engine::limit::leaves_out;
use operator_core::run_engine::{DesiredService, Run};

use crate::conditions::UP_TO_DATE;
use crate::kinds::{DEPLOYMENT, NODE_SET};
use crate::object_meta::place;
use crate::run::owner_of;
use crate::stage::{Phase, Stage};

/// A host of a node set.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The node set.
    pub node_set: &'a NodeSet,
    /// Its key in `spec.nodes`; its name in the inventory when it was taken out.
    pub key: &'a str,
    /// Its host name, with its domain if it has one.
    pub host_name: String,
    /// Its name in the inventory.
    pub name: String,
    /// The address for Ansible, as `host:port`.
    pub address: String,
    /// The deployments that target it, oldest first.
    pub deployments: Vec<&'a Deployment>,
}

impl<'a> Member<'a> {
    /// Returns the hosts of a node set, also those that were taken out and are still terminating.
    /// `deployments` are those that name the node set, oldest first.
    pub fn all(node_set: &'a NodeSet, deployments: &[&'a Deployment]) -> Vec<Self> {
        let member = |it: node_set_host::Host<'a>| Self {
            node_set,
            key: it.key,
            address: it.address(),
            deployments: concerning(node_set, &it.name, deployments),
            host_name: it.host_name,
            name: it.name,
        };
        let terminating = |host: &'a str| Self {
            node_set,
            key: host,
            address: node_set_host::address_of(node_set, host).unwrap_or_default(),
            deployments: concerning(node_set, host, deployments),
            host_name: host.to_owned(),
            name: host.to_owned(),
        };
        let own = node_set_host::hosts(node_set).into_iter().map(member);
        own.chain(node_set_host::taken_out(node_set).into_keys().map(terminating)).collect()
    }

    /// Whether the user may refer to the host by this name: its key, host name or inventory name.
    pub fn is_called(&self, name: &str) -> bool {
        [self.key, &self.host_name, &self.name].contains(&name)
    }

    /// Whether an older object already manages the host.
    pub fn is_taken(&self) -> bool {
        let input = find(self.of_set(), INPUT_READY);
        input.is_some_and(|it| it.status == ConditionStatus::False && it.reason == "HostTaken")
    }

    /// Whether it was taken out, or its node set is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.state() == HostState::Terminating
    }

    /// Returns the stage of the newest deployment that has begun on the host.
    pub fn stage(&self, runs: &[&'a AnsibleEe]) -> Stage<'a> {
        let begun = self.deployments.iter().rev().find(|it| self.progress(it).is_some());
        self.stage_of(begun.copied(), runs)
    }

    /// Returns the stage of the newest deployment that has reached the service on the host. A
    /// deployment that ended before it is skipped.
    pub fn stage_with(&self, service: &str, runs: &[&'a AnsibleEe]) -> Stage<'a> {
        let has_come = |it: &&&'a Deployment| {
            let Some((progress, at)) = self.progress(it) else { return false };
            let idx = progress.services.iter().position(|it| it == service);
            let is_past = |idx: usize| idx < position(at) || at.state == RunState::Succeeded;
            let is_at = |idx: usize| idx == position(at) && at.state != RunState::Pending;
            idx.is_some_and(|idx| !it.has_ended() || is_past(idx) || is_at(idx))
        };
        let found = self.deployments.iter().rev().find(has_come);
        self.stage_of(found.copied(), runs)
    }

    /// Returns the newest deployment that targets the host, if it has neither begun there nor
    /// ended.
    pub fn waiting(&self) -> Option<&'a Deployment> {
        let newest = self.deployments.last().copied()?;
        let is_waiting = self.progress(newest).is_none() && !newest.has_ended();
        is_waiting.then_some(newest)
    }

    /// Returns the progress of a deployment in the node set and on the host, or `None` before it
    /// begins.
    pub fn progress(
        &self,
        deployment: &'a Deployment,
    ) -> Option<(&'a NodeSetProgress, &'a HostProgress)> {
        let progress = deployment.progress_of(self.node_set)?;
        Some((progress, progress.hosts.get(&self.name)?))
    }

    /// Returns the condition of the node set that keeps its deployments from beginning.
    pub fn blocked(&self) -> Option<&'a Condition> {
        let types = [INPUT_READY, SETUP_READY];
        types.into_iter().find_map(|it| find(self.of_set(), it).filter(|it| is_open(it)))
    }

    /// Returns the name of the node set.
    pub fn set_name(&self) -> &'a str {
        place(self.node_set).1
    }

    fn of_set(&self) -> &'a [Condition] {
        self.node_set.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
    }

    fn stage_of(&self, deployment: Option<&'a Deployment>, runs: &[&'a AnsibleEe]) -> Stage<'a> {
        let progress = deployment.and_then(|it| self.progress(it));
        let listed = &self.node_set.spec.services;
        let wanted = progress.map_or(listed, |it| &it.0.services);
        let services = deployment.map(|it| self.records(it, runs)).unwrap_or_default();
        Stage {
            phase: Phase::Deploy,
            kind: NODE_SET,
            name: self.set_name(),
            conditions: self.conditions(deployment),
            services: Cow::Owned(services),
            desired: wanted.iter().map(String::as_str).collect(),
            deployed_inputs: self.node_set.status.as_ref().map(|it| &it.deployed_inputs),
            deploys: None,
            below: None,
            deployment,
        }
    }

    /// Returns the record of each service in a deployment. The deployment does not store all
    /// attempt numbers, so they come from the runs.
    fn records(&self, deployment: &'a Deployment, runs: &[&'a AnsibleEe]) -> Vec<ServiceRun> {
        let Some((progress, at)) = self.progress(deployment) else { return vec![] };
        let owner = Some((DEPLOYMENT, place(deployment).1));
        let runs = runs.iter().filter(|it| owner_of(it) == owner).filter_map(|it| Run::of(it));
        let runs: Vec<Run<'_>> = runs.collect();
        let of_service = |service: &str| {
            let own = runs.iter().filter(|it| it.service == service);
            let attempts = own.filter_map(|it| Some((it.attempts.get(&self.name)?, it.name())));
            attempts.max_by_key(|(it, _)| it.attempt)
        };
        let wanted = |service: &String| {
            let hash = of_service(service).map(|it| it.0.hash.clone()).unwrap_or_default();
            let group = self.set_name().to_owned();
            DesiredService {
                service: service.clone(),
                run_hash: hash.clone().into(),
                hash: hash.into(),
                group,
            }
        };
        let wanted: Vec<DesiredService> = progress.services.iter().map(wanted).collect();
        let text = self.failure(deployment).map(|it| it.1);
        let mut records = to_service_runs(&self.name, &wanted, Some(at), &runs, text);
        for record in records.iter_mut().filter(|it| it.state == RunState::Succeeded) {
            let run = of_service(&record.name);
            record.attempt = run.as_ref().map(|it| it.0.attempt).unwrap_or_default();
            record.run = run.map(|it| it.1);
        }
        records
    }

    /// Returns the reason and message of a deployment's failure on the host.
    fn failure(&self, deployment: &'a Deployment) -> Option<(&'a str, &'a str)> {
        let failures = &deployment.status.as_ref()?.failures;
        let is_own =
            |it: &&DeploymentFailure| it.node_set == self.set_name() && it.host == self.name;
        failures.iter().find(is_own).map(|it| (it.reason.as_str(), it.message.as_str()))
    }

    /// Returns the conditions of this host; those of the node set are about all of its hosts.
    fn conditions(&self, deployment: Option<&'a Deployment>) -> Vec<Condition> {
        if self.of_set().is_empty() {
            return vec![];
        }
        let ready = vec![self.ready(deployment)];
        let mut conditions = merge_conditions(&[], ready, None, Timestamp::UNIX_EPOCH);
        conditions.extend(find(self.of_set(), UP_TO_DATE).cloned());
        conditions
    }

    fn ready(&self, deployment: Option<&'a Deployment>) -> ConditionDraft {
        let name = deployment.map_or_else(
            || "A deployment".to_owned(),
            |it| format!("{DEPLOYMENT} {}", place(it).1),
        );
        if deployment.is_some_and(|it| self.awaits_disruption(it)) {
            let text = format!("{name} waits until {} may be disturbed.", self.name);
            return reasons::AWAITING_DISRUPTION.condition(READY, text);
        }
        match self.state() {
            HostState::Deployed => {
                let text = format!("The last deployment succeeded on {}.", self.name);
                reasons::NODE_SET_DEPLOYED.condition(READY, text)
            }
            HostState::Deploying => {
                let failed = deployment.and_then(|it| self.failing(it));
                failed.unwrap_or_else(|| {
                    let text = format!("{name} is under way.");
                    reasons::NODE_SET_DEPLOYING.condition(READY, text)
                })
            }
            HostState::Failed => {
                let gone = || {
                    let text = format!("The deployment that was at {} has gone.", self.name);
                    reasons::NODE_SET_DEPLOYMENT_GONE.condition(READY, text)
                };
                self.settled()
                    .or_else(|| deployment.and_then(|it| self.failing(it)))
                    .unwrap_or_else(gone)
            }
            HostState::Terminating => {
                let text = format!(
                    "{} was taken out of {}, or that is being deleted; it stays until what it leaves \
                     behind is cleaned up.",
                    self.name,
                    self.set_name()
                );
                reasons::NODE_SET_HOST_TERMINATING.condition(READY, text)
            }
            HostState::Undeployed => self.undeployed(),
        }
    }

    /// Returns whether a deployment that has not ended goes on with the host once other operators
    /// allow it.
    fn awaits_disruption(&self, deployment: &Deployment) -> bool {
        let at = self.progress(deployment).map(|it| it.1);
        !deployment.has_ended() && at.is_some_and(awaits_disruption)
    }

    fn state(&self) -> HostState {
        self.own().map_or(HostState::Undeployed, |it| it.state)
    }

    /// Returns its entry in the status of the node set.
    fn own(&self) -> Option<&NodeSetHost> {
        let hosts = self.node_set.status.as_ref().map(|it| it.hosts.as_slice());
        hosts.unwrap_or_default().iter().find(|it| it.name == self.name)
    }

    /// Returns the failure of a deployment on the host, whether it is in progress or has ended.
    fn failing(&self, deployment: &'a Deployment) -> Option<ConditionDraft> {
        let (progress, at) = self.progress(deployment)?;
        if let Some((reason, text)) = self.failure(deployment) {
            return Some(failed(reason, text));
        }
        let service = progress.services.get(position(at)).map(String::as_str).unwrap_or_default();
        let text = format!("Service {service} of {DEPLOYMENT} {}.", place(deployment).1);
        let reason = at.reason.as_deref().filter(|_| is_failing(at))?;
        Some(failed(reason, &text))
    }

    /// Returns the failure that the node set records, which outlives the deployment.
    fn settled(&self) -> Option<ConditionDraft> {
        let failures = &self.node_set.status.as_ref()?.failures;
        let own = failures.iter().find(|it| it.host == self.name)?;
        Some(failed(&own.reason, &own.message))
    }

    /// Returns what a host waits for that has no deployment.
    fn undeployed(&self) -> ConditionDraft {
        let of_waiting = || {
            let conditions = &self.waiting()?.status.as_ref()?.conditions;
            find(conditions, READY).filter(|it| is_open(it))
        };
        if let Some(ready) = self.blocked().or_else(of_waiting) {
            let mut draft = ConditionDraft::repeated(ready).with_type(READY);
            draft.status = ConditionStatus::False;
            return draft.with_message(&*ready.message);
        }
        let set = self.set_name();
        let what = if self.own().is_some_and(|it| it.hash.is_some()) {
            "The last deployment was over before all of its services had run on it"
        } else {
            "Nothing is deployed to it"
        };
        let text = format!("{what}: create an {DEPLOYMENT} that lists {set} in spec.nodeSets.");
        reasons::NODE_SET_NOT_DEPLOYED.condition(READY, text)
    }
}

fn is_open(condition: &Condition) -> bool {
    condition.status != ConditionStatus::True
}

/// Returns the condition for a failure that a status records, in the operator's word.
fn failed(reason: &str, message: &str) -> ConditionDraft {
    let recorded = Condition {
        type_: READY.to_owned(),
        status: ConditionStatus::False,
        severity: Some(Severity::Error),
        observed_generation: None,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        reason: reason.to_owned(),
        message: String::new(),
    };
    ConditionDraft::repeated(&recorded).with_message(message)
}

/// Returns the deployments that may target a host: those with progress for it, and those that have
/// not begun and whose limit does not certainly exclude it.
fn concerning<'a>(
    node_set: &NodeSet,
    host: &str,
    deployments: &[&'a Deployment],
) -> Vec<&'a Deployment> {
    let set = place(node_set).1;
    let is_about = |it: &&&Deployment| {
        if let Some(progress) = it.progress_of(node_set) {
            return progress.hosts.contains_key(host);
        }
        let limit = it.spec.ansible_limit.as_deref().unwrap_or_default();
        !leaves_out(limit, host, &[set])
    };
    deployments.iter().filter(is_about).copied().collect()
}

/// Returns the deployments that name a node set, oldest first.
pub fn deployments_of<'a>(node_set: &NodeSet, all: &'a [Deployment]) -> Vec<&'a Deployment> {
    let (namespace, name) = place(node_set);
    let is_of = |it: &&Deployment| {
        place(*it).0 == namespace && it.spec.node_sets.iter().any(|it| it == name)
    };
    let mut found: Vec<&Deployment> = all.iter().filter(is_of).collect();
    found.sort_by_key(|it| (it.creation_timestamp(), it.name_any()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;
    use crate::testdata;

    fn kind(snapshot: &Snapshot, name: &str) -> Option<&'static str> {
        Some(snapshot.host("openstack", name)?.stages[0].kind)
    }

    #[test]
    fn a_host_is_found_by_its_key_its_own_name_and_that_of_the_inventory() {
        let snapshot = testdata::node_set();
        for name in ["compute-6", "edpm-compute-6", "edpm-compute-5.example.org", "edpm-compute-5"]
        {
            assert_eq!(kind(&snapshot, name), Some(NODE_SET), "{name}");
        }
        assert_eq!(kind(&snapshot, "edpm-compute-7"), None);
        assert!(snapshot.host("other", "edpm-compute-5").is_none());
    }

    #[test]
    fn a_host_is_shown_once_by_its_entry_also_where_another_object_has_it() {
        let mut snapshot = testdata::node_set();
        assert!(snapshot.nodes.iter().any(|it| it.node_set().is_some()));
        let names: Vec<String> = snapshot.hosts().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["edpm-compute-5", "edpm-compute-6"]);
        let conditions = &mut snapshot.node_sets[0].status.as_mut().unwrap().conditions;
        let input = conditions.iter_mut().find(|it| it.type_ == INPUT_READY).unwrap();
        (input.status, input.reason) = (ConditionStatus::False, "HostTaken".to_owned());
        assert_eq!(kind(&snapshot, "edpm-compute-6"), Some(NODE_SET));
    }

    #[test]
    fn of_two_objects_with_a_host_it_is_the_olders() {
        let mut snapshot = testdata::node_set();
        let mut node = testdata::snapshot().nodes.remove(0);
        node.metadata.name = Some("edpm-compute-5".to_owned());
        snapshot.nodes.push(node);
        assert_eq!(kind(&snapshot, "edpm-compute-5"), Some(NODE_SET));
        let conditions = &mut snapshot.node_sets[0].status.as_mut().unwrap().conditions;
        let input = conditions.iter_mut().find(|it| it.type_ == INPUT_READY).unwrap();
        (input.status, input.reason) = (ConditionStatus::False, "HostTaken".to_owned());
        assert_eq!(kind(&snapshot, "edpm-compute-5"), Some("OpenStackDataPlaneNode"));
    }

    #[test]
    fn a_host_that_was_taken_out_is_shown_as_long_as_it_is_terminating() {
        let mut snapshot = testdata::node_set();
        let status = snapshot.node_sets[0].status.as_mut().unwrap();
        status.hosts.push(NodeSetHost {
            name: "edpm-compute-9".to_owned(),
            state: HostState::Terminating,
            hash: Some("01234567".to_owned()),
            address: None,
            disruption_target: None,
        });
        status.terminating_addresses.insert("edpm-compute-9".into(), "192.0.2.9:22".into());
        let host = snapshot.host("openstack", "edpm-compute-9").unwrap();
        let ready = host.stages[0].condition(READY).unwrap();
        assert_eq!(ready.reason, reasons::NODE_SET_HOST_TERMINATING.word);
        assert!(ready.message.contains("was taken out"), "{}", ready.message);
        let shown = crate::node_set_host::Member::all(&snapshot.node_sets[0], &[]);
        assert_eq!(shown.last().unwrap().address, "192.0.2.9:22");
    }

    #[test]
    fn a_host_waits_for_what_its_node_set_or_the_next_deployment_waits_for() {
        let mut snapshot = testdata::node_set();
        snapshot.node_sets[0].status.as_mut().unwrap().hosts.clear();
        snapshot.deployments[0].status.as_mut().unwrap().progress.clear();
        let conditions = &mut snapshot.deployments[0].status.as_mut().unwrap().conditions;
        conditions.retain(|it| it.type_ == READY);
        conditions[0].reason = "SourceNotFound".to_owned();
        let reason = |snapshot: &Snapshot| {
            let host = snapshot.host("openstack", "edpm-compute-5").unwrap();
            host.stages[0].condition(READY).unwrap().reason.clone()
        };
        assert_eq!(reason(&snapshot), "SourceNotFound");
        snapshot.deployments[0].spec.ansible_limit = Some("edpm-compute-6".to_owned());
        assert_eq!(reason(&snapshot), "NotDeployed");
        let half_changed = NodeSetHost {
            name: "edpm-compute-5".to_owned(),
            state: HostState::Undeployed,
            hash: Some("01234567".to_owned()),
            address: None,
            disruption_target: None,
        };
        snapshot.node_sets[0].status.as_mut().unwrap().hosts.push(half_changed);
        let host = snapshot.host("openstack", "edpm-compute-5").unwrap();
        let message = &host.stages[0].condition(READY).unwrap().message;
        assert!(message.starts_with("The last deployment was over before"), "{message}");
    }

    #[test]
    fn a_host_that_is_not_disturbed_yet_waits_and_has_not_failed() {
        let mut snapshot = testdata::node_set();
        let deployment = snapshot.deployments[0].status.as_mut().unwrap();
        (deployment.conditions, deployment.failures) = (vec![], vec![]);
        let progress = deployment.progress.values_mut().next().unwrap();
        let at = progress.hosts.get_mut("edpm-compute-5").unwrap();
        (at.done, at.state, at.attempt, at.run) = (0, RunState::Pending, 0, None);
        at.reason = Some("AwaitingDisruption".to_owned());
        let host = snapshot.host("openstack", "edpm-compute-5").unwrap();
        let ready = host.stages[0].condition(READY).unwrap();
        assert_eq!(ready.reason, "AwaitingDisruption", "{}", ready.message);
        assert!(ready.message.contains("waits until edpm-compute-5 may be disturbed"));
    }
}

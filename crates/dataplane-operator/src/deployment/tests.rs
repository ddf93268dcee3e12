//! Tests of whole deployments of node sets, evaluated step by step against an in-memory cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::conditions::find;
use api::dataplane::{
    Deployment, DeploymentStatus, HostState, Node, NodeSet, NodeStatus, RunState, Service,
    ServiceRun,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::condition_catalog::undeclared;
use operator_core::data_sources::SourceRef;
use operator_core::node_set_host::hosts;
use operator_core::plan::{Plan, REST_OF_WRITES, Step, WRITES_PER_PASS, Write};
use operator_core::rejected_write::RejectedWrite;
use operator_core::run_engine::Run;
use operator_runtime::source_cache::Digests;
use serde_json::{Value, json};
use testkit::conditions::{self, is, runs, stated};
use testkit::golden::recorded;
use testkit::objects;
use testkit::passes::{refused, to_rest};
use testkit::played_runs::{created, end_all, is_open};
use testkit::set_nodes;

use super::finalizer::RUNNING;
use super::{Observed, decide};
use crate::condition_catalog::KINDS;
use crate::default_services::DefaultServices;
use crate::host::networks::Networks;
use crate::host::node_state::hash_of;
use crate::host::status::own;
use crate::reasons;

mod certificates;
mod deaths;
mod digests;
mod disruption;
mod ends;
mod gates;
mod inputs;
mod machines;
mod node_sets;
mod nodes;
mod records;
mod turns;
mod waiting;

const NAMESPACE: &str = "openstack";
const KNOWN: &str =
    "* ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+";
/// The kind whose statuses are written beside that of the nodes.
const DEPLOYMENT: &str = "OpenStackDataPlaneDeployment";

/// The cluster as the API server holds it, and what was written to it.
///
/// It checks of each write what no other object shows: a node's status is written with the version
/// that it was made from, has nothing of other operators, and its attempts never fall; and a run is
/// created only when the node of each of its hosts records the attempt.
#[derive(Clone)]
struct World {
    seen: Observed,
    now: Timestamp,
    /// What was written, in order; statuses of nodes that follow each other are one entry.
    writes: Vec<String>,
    /// How many statuses of nodes were written.
    node_writes: usize,
    /// Whether new runs wait for others.
    is_queueing: bool,
    /// Each attempt that a run ever carried: service, host and number.
    carried: Vec<(String, String, i64)>,
    /// Whether the deployment is gone.
    is_gone: bool,
    /// Whether node sets have not been reconciled since the deployment ended.
    is_unheard: bool,
    /// Hosts that have no node.
    without_nodes: Vec<&'static str>,
}

/// A node set that is set up, whose hosts have addresses of their own.
fn node_set(name: &str, hosts: &[&str], services: &[&str]) -> Arc<NodeSet> {
    let address = |host: &str| {
        let sum: usize = host.bytes().map(usize::from).sum();
        format!("192.0.2.{}", sum % 250)
    };
    let node =
        |host: &&str| ((*host).to_owned(), json!({ "ansible": { "ansibleHost": address(host) } }));
    let nodes: BTreeMap<String, Value> = hosts.iter().map(node).collect();
    let spec = json!({
        "preProvisioned": true,
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
        "nodes": nodes,
        "services": services,
    });
    let good = |type_: &str| stated(type_, "True", "Ready", "");
    let status = json!({
        "observedGeneration": 1,
        "configHash": format!("hash-of-{name}"),
        "conditions": [good("InputReady"), good("SetupReady")],
    });
    let mut set: NodeSet = objects::new(NAMESPACE, name, &spec);
    set.status = Some(serde_json::from_value(status).unwrap());
    Arc::new(set)
}

fn service(name: &str, spec: &Value) -> (String, Arc<Service>) {
    (name.to_owned(), Arc::new(objects::new(NAMESPACE, name, spec)))
}

fn digests(version: &str, keys: &[&str]) -> Digests {
    let keys = keys.iter().map(|it| ((*it).to_owned(), version.into())).collect();
    let texts = BTreeMap::from([("known_hosts".to_owned(), Arc::from(KNOWN))]);
    let published = format!("n{version}q").into();
    Digests { version: version.into(), published, keys, texts, ..Digests::default() }
}

impl World {
    /// One node set of two hosts with two services, and a deployment of it.
    fn new() -> Self {
        Self::with(vec![node_set("compute", &["n0", "n1"], &["first", "second"])], json!({}))
    }

    /// A deployment of a node set of this many hosts, all in service.
    fn deployed(count: usize, services: &[&str], spec: Value) -> Self {
        let names = names(count);
        let mut world = Self::with(vec![node_set("compute", &strs(&names), services)], spec);
        world.was(HostState::Deployed, &strs(&names));
        world
    }

    /// These node sets, and a deployment of all of them.
    fn with(node_sets: Vec<Arc<NodeSet>>, mut spec: Value) -> Self {
        let names: Vec<String> = node_sets.iter().map(|it| it.name_any()).collect();
        spec["nodeSets"] = json!(names);
        let playbook = |it: &str| service(it, &json!({ "playbook": format!("a.b.{it}") }));
        let mut services: BTreeMap<String, Arc<Service>> =
            ["first", "second", "third"].map(playbook).into();
        let for_all = json!({ "playbook": "a.b.everywhere", "deployOnAllNodeSets": true });
        services.extend([service("everywhere", &for_all)]);
        let seen = Observed {
            deployment: Arc::new(objects::new(NAMESPACE, "edpm", &spec)),
            namespace: NAMESPACE.into(),
            inventories: names.iter().cloned().collect(),
            node_sets: names.into_iter().zip(node_sets).collect(),
            services,
            unreadable_sets: BTreeMap::new(),
            defaults: DefaultServices::default(),
            unreadable: BTreeMap::new(),
            sources: BTreeMap::from([(
                SourceRef::secret(NAMESPACE, "key"),
                digests("1", &["ssh-privatekey", "known_hosts"]),
            )]),
            networks: Networks::NotNamed,
            runs: Vec::new(),
            nodes: BTreeMap::new(),
            others: Vec::new(),
        };
        let mut world = Self {
            seen,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            writes: Vec::new(),
            node_writes: 0,
            is_queueing: false,
            carried: Vec::new(),
            is_gone: false,
            is_unheard: false,
            without_nodes: Vec::new(),
        };
        world.make_nodes(world.now - SignedDuration::from_hours(24));
        world
    }

    /// Makes the nodes that hosts of the node sets lack, as the controller of node sets does.
    fn make_nodes(&mut self, now: Timestamp) {
        for (name, set) in &self.seen.node_sets {
            let nodes = self.seen.nodes.entry(name.clone()).or_default();
            let hosts = hosts(set).into_iter();
            for host in hosts.filter(|it| !self.without_nodes.contains(&&*it.name)) {
                nodes.entry(host.name.clone()).or_insert_with(|| {
                    let mut node = set_nodes::node(NAMESPACE, name, &host.name, "");
                    node.status.as_mut().unwrap().address = Some(host.address());
                    node.metadata.creation_timestamp = Some(Time(now));
                    node.metadata.resource_version = Some("1".into());
                    Arc::new(node)
                });
            }
        }
    }

    fn stored(&self, host: &str) -> &Node {
        self.seen.nodes.values().find_map(|it| it.get(host)).unwrap()
    }

    /// Returns what the node of a host says.
    fn node(&self, host: &str) -> &NodeStatus {
        self.stored(host).status.as_ref().unwrap()
    }

    /// Returns how far the last deployment is on a host.
    fn host_state(&self, host: &str) -> HostState {
        self.node(host).deployment.as_ref().map_or(HostState::Undeployed, |it| it.state)
    }

    /// Returns what the node of a host records of a service.
    fn record(&self, host: &str, service: &str) -> Option<&ServiceRun> {
        self.node(host).services.iter().find(|it| it.name == service)
    }

    /// Changes the node of a host.
    fn with_node(&mut self, node_set: &str, host: &str, change: impl FnOnce(&mut Node)) {
        let node = self.seen.nodes.get_mut(node_set).unwrap().get_mut(host).unwrap();
        let node = Arc::make_mut(node);
        change(node);
        let version: i64 = node.resource_version().unwrap().parse().unwrap();
        node.metadata.resource_version = Some((version + 1).to_string());
    }

    /// Puts these hosts into the state in which the deployment before has left them; they were in
    /// service.
    fn was(&mut self, state: HostState, hosts: &[&str]) -> &mut Self {
        for host in hosts {
            let node_set = self.stored(host).node_set().unwrap().to_owned();
            self.with_node(&node_set, host, |it| {
                set_nodes::begin(it, "before");
                set_nodes::succeed(it, &["first"]);
                let status = it.status.as_mut().unwrap();
                status.deployed = (state == HostState::Deployed).then_some(true);
                status.deployment.as_mut().unwrap().state = state;
            });
        }
        self
    }

    /// Another deployment of the same node sets, after the end of this one.
    fn next(&self, name: &str) -> Self {
        let mut world = self.clone();
        world.carried.clear();
        world.seen.runs.clear();
        let deployment = world.deployment();
        (deployment.metadata.finalizers, deployment.status) = (None, None);
        (deployment.metadata.name, deployment.metadata.uid) =
            (Some(name.into()), Some(name.into()));
        world
    }

    fn pass(&mut self) -> Plan {
        if self.is_gone {
            return Plan::default();
        }
        self.make_nodes(self.now);
        let plan = self.plan();
        for step in &plan.independent {
            self.take(std::slice::from_ref(step));
        }
        self.take(&plan.steps);
        plan
    }

    fn plan(&self) -> Plan {
        self.plan_after(None)
    }

    fn plan_after(&self, rejected: Option<&RejectedWrite>) -> Plan {
        // The nodes of a node set that is gone are not looked for.
        let mut seen = self.seen.clone();
        seen.nodes.retain(|it, _| seen.node_sets.contains_key(it));
        recorded(decide::decide(&seen, rejected, self.now))
    }

    /// Runs one pass in which the API server rejects the writes that `refuses` picks.
    fn refused_pass(&mut self, refuses: impl Fn(&Step) -> bool) {
        let plan = self.plan();
        let tell = |it: &RejectedWrite| self.plan_after(Some(it)).only_statuses();
        let steps = refused(&plan, refuses, &reasons::FORBIDDEN, tell);
        self.take(&steps);
    }

    /// Carries out steps up to the first one that meets another version of its object; returns
    /// whether that was none.
    fn take(&mut self, steps: &[Step]) -> bool {
        for step in steps {
            let name = step.target.name.as_str();
            match &step.write {
                Write::Create { object, .. } => self.create(object),
                Write::Status { status, resource_version, .. } => {
                    let kind = step.target.kind.kind.as_str();
                    assert_eq!(undeclared(KINDS, kind, status), [""; 0]);
                    if kind == DEPLOYMENT {
                        let status = serde_json::from_value(status.clone()).unwrap();
                        self.deployment().status = Some(status);
                        self.writes.push("status".into());
                        self.hear();
                    } else if *resource_version == self.stored(name).resource_version() {
                        self.describe(name, status);
                    } else {
                        assert!(resource_version.is_some(), "the status of {name} has no version");
                        self.writes.push("conflict".into());
                        return false;
                    }
                }
                Write::Delete { .. } => {
                    self.seen.runs.retain(|it| it.name_any() != name);
                    self.writes.push("delete".into());
                }
                Write::AddFinalizer { finalizer } => {
                    self.deployment().metadata.finalizers = Some(vec![finalizer.clone()]);
                    self.writes.push("hold".into());
                }
                Write::RemoveFinalizer { rest, .. } => {
                    let deployment = self.deployment();
                    deployment.metadata.finalizers = Some(rest.clone());
                    self.is_gone = deployment.metadata.deletion_timestamp.is_some();
                    self.writes.push("release".into());
                }
                Write::Apply { .. } => panic!("a deployment applies nothing"),
            }
        }
        true
    }

    /// Writes the status of a node; what other operators say there stays.
    fn describe(&mut self, host: &str, status: &Value) {
        let next: NodeStatus = serde_json::from_value(status.clone()).unwrap();
        assert_eq!(own(&next), next, "{host}");
        assert!(!next.conditions.iter().any(|it| it.type_.contains('/')), "{host}");
        let before = self.node(host).clone();
        let attempt = |it: &NodeStatus| it.deployment.as_ref().map_or(0, |it| it.attempt);
        assert!(attempt(&next) >= attempt(&before), "{host}: {next:?}");
        let next = set_nodes::merged(next, Some(before));
        let node_set = self.stored(host).node_set().unwrap().to_owned();
        self.with_node(&node_set, host, |it| it.status = Some(next));
        self.node_writes += 1;
        match self.writes.last_mut().filter(|it| it.starts_with("nodes ")) {
            Some(last) => last.extend([",", host]),
            None => self.writes.push(format!("nodes {host}")),
        }
    }

    /// Lets node sets record the end of a deployment, unless they are not reconciled yet.
    fn hear(&mut self) {
        if self.is_unheard || !self.seen.deployment.has_ended() {
            return;
        }
        let uid = self.seen.deployment.uid().unwrap();
        for set in self.seen.node_sets.values_mut() {
            let status = Arc::make_mut(set).status.get_or_insert_default();
            status.settled_deployments.push(uid.clone());
        }
    }

    fn create(&mut self, object: &Value) {
        let mut run = created(object, self.is_queueing);
        let known = Run::of(&run).unwrap();
        // A creation that finds its own object counts as done.
        if self.seen.runs.iter().any(|it| it.name_any() == known.name()) {
            return;
        }
        let service = known.service.clone();
        for (host, it) in &known.attempts {
            self.carried.push((service.clone(), host.clone(), it.attempt));
            let of_node = self.node(host).deployment.as_ref().map(|it| (it.uid.clone(), it.state));
            let ours = Some((self.seen.deployment.uid().unwrap(), HostState::Deploying));
            let led_by = &run.labels()["openstackdataplanenodeset"];
            if of_node != ours && self.stored(host).node_set() != Some(led_by) {
                // It joins another node set's run before it has begun itself.
                assert_eq!(it.attempt, 1, "{service} on {host}");
                continue;
            }
            assert_eq!(of_node, ours, "{service} on {host}");
            let record = self.record(host, &service).map(|it| (it.hash.as_str(), it.attempt));
            assert_eq!(record, Some((it.hash.as_str(), it.attempt)), "{service} on {host}");
        }
        let hosts: Vec<&str> = known.attempts.keys().map(String::as_str).collect();
        self.writes.push(format!("run {service} on {}", hosts.join(",")));
        run.metadata.uid = Some(run.name_any());
        run.metadata.creation_timestamp = Some(Time(self.now));
        self.seen.runs.push(Arc::new(run));
    }

    fn deployment(&mut self) -> &mut Deployment {
        Arc::make_mut(&mut self.seen.deployment)
    }

    /// A user deletes the deployment.
    fn terminate(&mut self) -> &mut Self {
        self.deployment().metadata.deletion_timestamp = Some(Time(self.now));
        self
    }

    /// The same, after the passes.
    fn at_rest(mut self) -> Self {
        self.settle();
        self
    }

    /// Runs passes until nothing is written any more.
    fn settle(&mut self) -> Vec<String> {
        to_rest(self, |it| it.writes.clone(), |it| drop(it.pass()));
        mem::take(&mut self.writes)
    }

    /// Ends every open run; `outcome` returns the outcome of a service on a host.
    fn finish_with(&mut self, outcome: impl Fn(&str, &str) -> &'static str) -> &mut Self {
        end_all(&mut self.seen.runs, self.now, |run, host| {
            outcome(&run.labels()["openstackdataplaneservice"], host)
        });
        self
    }

    fn finish(&mut self) -> &mut Self {
        self.finish_with(|_, _| "Ok")
    }

    fn sleep(&mut self, seconds: i64) -> &mut Self {
        self.now += SignedDuration::from_secs(seconds);
        self
    }

    /// Continues until nothing is open, however many attempts that takes.
    fn run_out(&mut self, outcome: impl Fn(&str, &str) -> &'static str + Copy) -> Vec<String> {
        let mut writes = Vec::new();
        for _ in 0..60 {
            writes.extend(self.settle());
            if self.is_over() {
                return writes;
            }
            writes.extend(self.finish_with(outcome).settle());
            self.sleep(900);
        }
        panic!("no end: {writes:?}");
    }

    /// Continues until everything has succeeded, without an attempt that was made twice.
    fn succeeds(&mut self) {
        self.run_out(|_, _| "Ok");
        assert_eq!(self.condition("Ready"), is("True", "Ready"));
        once(self);
    }

    fn is_over(&self) -> bool {
        self.seen.deployment.has_ended()
    }

    /// Returns how many services the node of a host records as succeeded in this deployment.
    fn done(&self, host: &str) -> usize {
        let hash = |it: &str| hash_of(&self.seen.deployment.uid().unwrap(), it);
        let all = self.node(host).services.iter();
        all.filter(|it| it.state == RunState::Succeeded && it.hash == hash(&it.name)).count()
    }

    fn status(&self) -> &DeploymentStatus {
        self.seen.deployment.status.as_ref().unwrap()
    }

    fn condition(&self, type_: &str) -> (String, String) {
        conditions::condition(&self.status().conditions, type_)
    }

    fn message(&self, type_: &str) -> String {
        conditions::message(&self.status().conditions, type_)
    }

    fn set_message(&self, node_set: &str, type_: &str) -> String {
        conditions::message(&self.status().node_set_conditions[node_set], type_)
    }

    /// Checks that the message of a condition has all of these words.
    #[track_caller]
    fn says(&self, type_: &str, words: &[&str]) {
        conditions::says(&self.status().conditions, type_, words);
    }

    /// Returns status and reason of a condition of a node set; nothing where it has none.
    fn of_set(&self, node_set: &str, type_: &str) -> String {
        let found = find(&self.status().node_set_conditions[node_set], type_);
        found.map_or_else(String::new, |it| format!("{:?} {}", it.status, it.reason))
    }

    fn run(&self, service: &str) -> &AnsibleEe {
        let is_its = |it: &&Arc<AnsibleEe>| it.labels()["openstackdataplaneservice"] == service;
        self.seen.runs.iter().find(is_its).unwrap()
    }

    fn edit(&mut self, node_set: &str, edit: impl FnOnce(&mut NodeSet)) -> &mut Self {
        edit(Arc::make_mut(self.seen.node_sets.get_mut(node_set).unwrap()));
        self
    }
}

/// The names of the hosts of [`World::deployed`].
fn names(count: usize) -> Vec<String> {
    (0..count).map(|it| format!("n{it:03}")).collect()
}

fn strs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Two deployments of one node set of fifty hosts in service; the first is the older one.
fn two_of_one(services: &[&str], specs: [Value; 2]) -> [World; 2] {
    let mut worlds = specs.map(|it| World::deployed(50, services, it));
    for (name, world) in ["one", "other"].into_iter().zip(&mut worlds) {
        let created = world.now - SignedDuration::from_secs(if name == "one" { 2 } else { 1 });
        let meta = &mut world.deployment().metadata;
        (meta.uid, meta.name) = (Some(name.into()), Some(name.into()));
        meta.creation_timestamp = Some(Time(created));
    }
    worlds
}

/// Runs passes of one of two deployments: it sees the other one, and both see its writes to nodes.
fn settle_beside(worlds: &mut [World; 2], idx: usize) -> Vec<String> {
    let other = &worlds[1 - idx];
    let is_open = !other.is_gone && !other.seen.deployment.has_ended();
    let others = is_open.then(|| Arc::clone(&other.seen.deployment));
    worlds[idx].seen.others = others.into_iter().collect();
    let writes = worlds[idx].settle();
    worlds[1 - idx].seen.nodes = worlds[idx].seen.nodes.clone();
    writes
}

#[test]
fn each_service_runs_once_on_each_host_and_then_it_is_over() {
    let mut world = World::new();
    // The attempt is written before the run; then the run is observed at work.
    assert_eq!(world.settle(), ["hold", "status", "nodes n0,n1", "run first on n0,n1", "status"]);
    let record = world.record("n0", "second").unwrap();
    assert_eq!((record.state, record.attempt), (RunState::Pending, 1));
    assert_eq!(world.host_state("n0"), HostState::Deploying);
    assert_eq!(world.condition("Ready"), is("False", "Requested"));
    assert_eq!(world.of_set("compute", "ServiceFirstDeploymentReady"), "False Requested");
    assert_eq!(world.of_set("compute", "ServiceSecondDeploymentReady"), "");
    assert_eq!(world.finish().settle(), ["status", "run second on n0,n1", "status"]);
    assert_eq!(world.of_set("compute", "ServiceFirstDeploymentReady"), "True Ready");
    world.finish();
    // The nodes have the end before the deployment has.
    assert_eq!(world.settle(), ["nodes n0,n1", "status", "release"]);
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    assert_eq!(world.of_set("compute", "NodeSetDeploymentReady"), "True Ready");
    let node = world.node("n0");
    assert_eq!((world.done("n0"), world.host_state("n0")), (2, HostState::Deployed));
    assert_eq!(
        (node.deployed, node.deployed_config_hash.as_deref()),
        (Some(true), Some("hash-of-"))
    );
    assert_eq!(node.deployed_address, node.address);
    let status = world.status();
    assert_eq!(status.deployed, Some(true));
    assert_eq!(status.node_set_hashes["compute"], "hash-of-compute");
    let summaries: Vec<Option<i64>> =
        status.ansible_execution_summaries.values().map(|it| it.total_hosts).collect();
    assert_eq!(summaries, [Some(2), Some(2)]);
    assert_eq!(status.ansible_ee_hashes.len(), 2);
    for type_ in ["Reconciling", "Stalled"] {
        assert!(find(&status.conditions, type_).is_none());
    }
}

#[test]
fn the_status_says_of_which_generation_it_speaks() {
    let mut world = World::new();
    world.deployment().metadata.generation = Some(3);
    world.run_out(|_, _| "Ok");
    assert_eq!(world.status().observed_generation, Some(3));
    let conditions = &world.status().conditions;
    assert!(conditions.iter().all(|it| it.observed_generation == Some(3)), "{conditions:?}");
}

#[test]
fn nothing_happens_once_it_is_over() {
    let mut world = World::new();
    world.run_out(|_, _| "Ok");
    world.seen.runs.clear();
    world.edit("compute", |it| it.metadata.generation = Some(2));
    world.seen.services.clear();
    world.seen.inventories.clear();
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn runs_are_known_by_the_labels_and_the_names_of_their_service_deployment_and_node_set() {
    let world = World::new().at_rest();
    let run = world.run("first");
    assert!(run.name_any().starts_with("first-edpm-compute-"), "{}", run.name_any());
    for (label, value) in [
        ("app", "openstackansibleee"),
        ("openstackdataplaneservice", "first"),
        ("openstackdataplanedeployment", "edpm"),
        ("openstackdataplanenodeset", "compute"),
    ] {
        assert_eq!(run.labels()[label], value);
    }
    assert_eq!(run.owner_references()[0].name, "edpm");
    assert_eq!(run.spec.env_config_map_name, "openstack-aee-default-env");
    assert!(run.spec.preserve_jobs);
}

#[test]
fn a_hundred_hosts_and_six_services_cost_few_writes() {
    let services = ["s0", "s1", "s2", "s3", "s4", "s5"];
    let names = names(100);
    let mut world = World::with(vec![node_set("compute", &strs(&names), &services)], json!({}));
    let playbook = |it: &str| service(it, &json!({ "playbook": format!("a.b.{it}") }));
    world.seen.services.extend(services.map(playbook));
    let writes = world.run_out(|_, _| "Ok");
    assert_eq!(runs(&writes).len(), 12, "two runs of fifty for each service");
    assert_eq!(world.node_writes, 200, "each host begins and ends");
    let n_nodes = writes.iter().filter(|it| it.starts_with("nodes ")).count();
    // The finalizer twice, the beginning, the end, and as the runs of a service begin and end.
    let n_others = writes.len() - 12 - n_nodes;
    assert!(n_others <= 2 + 1 + 2 * services.len() + 1, "{n_others}: {writes:?}");
}

#[test]
fn of_many_hosts_some_are_written_in_a_pass_and_runs_and_the_end_follow_when_all_are() {
    let names = names(2 * WRITES_PER_PASS + 50);
    let mut world = World::with(vec![node_set("compute", &strs(&names), &["first"])], json!({}));
    world.pass();
    for n_written in [WRITES_PER_PASS, 2 * WRITES_PER_PASS] {
        let plan = world.pass();
        let written = (world.node_writes, plan.requeue_after);
        assert_eq!(written, (n_written, Some(REST_OF_WRITES)));
        assert_eq!(world.seen.runs.len(), 0);
    }
    world.pass();
    let n_hosts = world.node_writes;
    assert_eq!((n_hosts, world.seen.runs.len()), (2 * WRITES_PER_PASS + 50, 11));
    world.settle();
    world.finish();
    world.pass();
    assert_eq!((world.node_writes, world.is_over()), (n_hosts + WRITES_PER_PASS, false));
    world.succeeds();
    assert_eq!(world.node_writes, 2 * n_hosts);
}

/// Runs that are created together do not end at the same moment.
#[test]
fn hosts_whose_run_has_ended_are_done_while_another_run_is_at_work() {
    let names = names(100);
    let mut world = World::with(vec![node_set("compute", &strs(&names), &["first"])], json!({}));
    world.settle();
    assert_eq!(world.seen.runs.len(), 2);
    let slow = Arc::clone(&world.seen.runs[1]);
    world.finish();
    let fast = mem::replace(&mut world.seen.runs[1], slow);
    assert_eq!(world.settle(), [format!("nodes {}", names[..50].join(",")), "status".into()]);
    assert_eq!(world.host_state("n000"), HostState::Deployed);
    assert_eq!(world.status().ansible_execution_summaries.len(), 1);
    world.seen.runs[1] = fast;
    world.settle();
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn a_run_that_waits_is_told_and_the_service_before_it_is_done() {
    let mut world = World::new().at_rest();
    world.finish();
    world.is_queueing = true;
    world.settle();
    let waits = json!({ "JobStatus": "Pending", "waitingFor": "run other works on host n0" });
    let run = world.seen.runs.last_mut().unwrap();
    Arc::make_mut(run).status = Some(serde_json::from_value(waits).unwrap());
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("Ready"), is("False", "Queued"));
    world.says("Ready", &["run other works on host n0"]);
    assert_eq!(world.of_set("compute", "ServiceFirstDeploymentReady"), "True Ready");
}

#[test]
fn a_refused_write_is_told_once_and_heals() {
    let mut world = World::new();
    world.pass();
    world.refused_pass(|it| matches!(it.write, Write::Create { .. }));
    assert_eq!(world.condition("WritesAccepted"), is("False", "Forbidden"));
    assert_eq!(world.condition("Ready"), is("False", "Forbidden"));
    let before = std::mem::take(&mut world.writes);
    assert_eq!(before, ["hold", "status", "nodes n0,n1", "status"]);
    world.refused_pass(|it| matches!(it.write, Write::Create { .. }));
    assert_eq!(std::mem::take(&mut world.writes), [""; 0]);
    world.succeeds();
    assert!(find(&world.status().conditions, "WritesAccepted").is_none());
}

#[test]
fn a_refused_status_of_a_node_is_told_and_nothing_runs() {
    let mut world = World::new();
    world.pass();
    world.refused_pass(|it| it.target.name == "n1");
    assert_eq!(mem::take(&mut world.writes), ["hold", "status", "nodes n0", "status"]);
    world.says("Ready", &["The status of OpenStackDataPlaneNode n1 cannot be written"]);
    world.succeeds();
    assert!(find(&world.status().conditions, "WritesAccepted").is_none());
}

#[test]
fn a_refused_status_of_a_node_at_the_end_or_in_a_deletion_is_told() {
    for is_going in [false, true] {
        let mut world = World::new().at_rest();
        world.finish();
        if is_going {
            world.terminate();
        } else {
            world.settle();
            world.finish();
        }
        world.refused_pass(|it| it.target.name == "n0");
        world.says("Ready", &["The status of OpenStackDataPlaneNode n0 cannot be written"]);
        assert!(!world.is_over() && !world.is_gone);
        world.settle();
        assert_eq!((world.is_over(), world.is_gone), (!is_going, is_going));
    }
}

#[test]
fn deletion_is_held_while_runs_are_at_work_and_nothing_new_begins() {
    let mut world = World::new().at_rest();
    assert_eq!(world.terminate().settle(), ["status"]);
    assert_eq!(world.condition("DeploymentReady"), is("False", "DeletionNotConfirmed"));
    world.says("Ready", &["dataplane.openstack.org/confirm-delete=true"]);
    assert_eq!(world.finish().settle(), ["nodes n0,n1", "release"]);
    assert!(world.is_gone);
    assert_eq!(world.seen.runs.len(), 1, "the second service did not begin");
    assert_eq!(world.host_state("n0"), HostState::Undeployed, "between two services");
}

#[test]
fn one_that_is_deleted_as_it_ends_goes_when_its_node_sets_know_the_end() {
    let mut world = World::with(vec![node_set("compute", &["n0"], &["first"])], json!({}));
    world.is_unheard = true;
    world.settle();
    world.terminate().settle();
    assert_eq!(world.finish().settle(), ["nodes n0", "status"]);
    assert_eq!(world.status().deployed, Some(true), "nothing of the last run is lost");
    assert!(!world.is_gone);
    // A node set that is being deleted, or was replaced under its name, does not have to know.
    let mut other = world.clone();
    other.edit("compute", |it| it.metadata.uid = Some("another".into()));
    assert_eq!(other.settle(), ["release"]);
    world.is_unheard = false;
    world.hear();
    assert_eq!(world.settle(), ["release"]);
    assert!(world.is_gone);
}

#[test]
fn a_confirmed_deletion_waits_for_nothing() {
    let mut world = World::new().at_rest();
    world.finish().settle();
    world.terminate().settle();
    let annotation = ("dataplane.openstack.org/confirm-delete".to_owned(), "true".to_owned());
    world.deployment().metadata.annotations = Some(BTreeMap::from([annotation]));
    let mut refused = world.clone();
    let plan = refused.plan();
    refused.take(&plan.steps);
    assert!(refused.is_gone && refused.node_writes == world.node_writes, "nor for nodes");
    assert_eq!(world.settle(), ["nodes n0,n1", "release"]);
    assert!(world.is_gone);
    assert_eq!((world.done("n0"), world.host_state("n0")), (1, HostState::Failed));
}

#[test]
fn runs_that_wait_are_withdrawn_when_the_deployment_goes() {
    let mut world = World::new();
    world.is_queueing = true;
    world.settle();
    assert_eq!(runs(&world.terminate().settle()), [""; 0]);
    assert!(world.is_gone && world.seen.runs.is_empty());
    assert_eq!(world.host_state("n0"), HostState::Undeployed);
}

#[test]
fn the_finalizer_is_there_while_it_runs_and_only_then() {
    let mut world = World::new();
    world.seen.node_sets.clear();
    world.settle();
    assert_eq!(world.seen.deployment.finalizers(), [""; 0], "it has not begun");
    let mut world = World::new().at_rest();
    assert_eq!(world.seen.deployment.finalizers(), [RUNNING]);
    world.run_out(|_, _| "Ok");
    assert_eq!(world.seen.deployment.finalizers(), [""; 0]);
}

/// The attempts that runs carried, each once.
fn once(world: &World) -> BTreeSet<(String, String, i64)> {
    let all: BTreeSet<(String, String, i64)> = world.carried.iter().cloned().collect();
    assert_eq!(all.len(), world.carried.len(), "an attempt ran twice: {:?}", world.carried);
    all
}

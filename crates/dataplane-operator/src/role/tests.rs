//! Tests of whole deployments, evaluated step by step against an in-memory cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::conditions::{Condition, Severity, find};
use api::dataplane::{DeployStrategy, Node, NodeSection, Role};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use operator_core::certificates::Issued;
use operator_core::condition_catalog::undeclared;
use operator_core::data_sources::SourceRef;
use operator_core::plan::{Plan, Step, Write};
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::Digests;
use serde_json::{Value, json};
use testkit::conditions::{self, fault, is, runs, stated};
use testkit::golden::recorded;
use testkit::objects;
use testkit::passes::{refused, to_rest};
use testkit::played_runs::{created, end_all, is_open};
use testkit::set_nodes;

use super::memory::Recalled;
use super::{NodeGroup, Observed, decide};
use crate::collection::RunnerImage;
use crate::condition_catalog::KINDS;
use crate::default_services::DefaultServices;
use crate::finalizers::INVENTORY_FINALIZER;
use crate::host::inventory_metadata::{INVENTORY_HASH, Inventory};
use crate::host::machines::Seen;
use crate::host::networks::Networks;
use crate::host::vars::Objects;
use crate::labels::LAST_LOOK;
use crate::reasons;

mod neighbours;
#[path = "rollout_tests.rs"]
mod rollout;

use memory::Remembering;

const NAMESPACE: &str = "openstack";

/// The finalizer of another operator on a node.
const OTHER: &str = "example.org/other";

/// The cluster as the API server would hold it, and what was written to it.
#[derive(Clone)]
struct World {
    seen: Observed,
    now: Timestamp,
    writes: Vec<String>,
    /// Whether new runs wait for others.
    is_queueing: bool,
    /// Content of what was applied, by name.
    config_maps: BTreeMap<String, Value>,
    secrets: BTreeMap<String, Value>,
    memory: Remembering,
}

fn node(name: &str, address: &str) -> Arc<Node> {
    let spec = json!({ "ansibleHost": address, "hostName": name, "role": "compute" });
    let mut node: Node = objects::new(NAMESPACE, name, &spec);
    node.metadata.finalizers = Some(vec![INVENTORY_FINALIZER.to_owned()]);
    Arc::new(node)
}

impl World {
    /// Two hosts, two services, everything that a deployment needs, and no bound on rollouts.
    fn new() -> Self {
        let spec = json!({
            "preProvisioned": true,
            "services": ["install-os", "run-os"],
            "deployStrategy": { "deploy": true, "maxUnavailable": "100%" },
            "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
        });
        let mut role: Role = objects::new(NAMESPACE, "compute", &spec);
        role.metadata.finalizers = Some(vec![INVENTORY_FINALIZER.to_owned()]);
        let services = ["install-os", "run-os"].map(|it| {
            (it.to_owned(), Arc::new(DefaultServices::default().find(it).unwrap().clone()))
        });
        let keys = ["ssh-privatekey", "known_hosts"].map(|it| (it.to_owned(), "d".into()));
        let (keys, texts) = (keys.into_iter().collect(), host_keys::all_known());
        let digests = Digests { version: "1".into(), keys, texts, ..Digests::default() };
        let seen = Observed {
            group: NodeGroup::Role("compute".into()),
            namespace: NAMESPACE.into(),
            role: Some(Arc::new(role)),
            data_plane: None,
            nodes: vec![node("n0", "192.0.2.10"), node("n1", "192.0.2.11")],
            services: services.into_iter().collect(),
            defaults: DefaultServices::default(),
            certificate_sources: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            runner: RunnerImage::Other,
            sources: BTreeMap::from([(SourceRef::secret(NAMESPACE, "key"), digests)]),
            objects: Objects::new(),
            networks: Networks::NotNamed,
            runs: Vec::new(),
            looks: Vec::new(),
            is_namespace_terminating: false,
            others: Vec::new(),
            claims: Vec::new(),
            machines: Seen::default(),
            issued: Issued::default(),
            migrating_nodes: Vec::new(),
            inventories: BTreeMap::new(),
            inventory_secrets: BTreeMap::new(),
            recalled: Recalled::default(),
        };
        Self {
            seen,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            writes: Vec::new(),
            is_queueing: false,
            config_maps: BTreeMap::new(),
            secrets: BTreeMap::new(),
            memory: Remembering::default(),
        }
    }

    /// The same, deployed.
    fn deployed() -> Self {
        let mut world = Self::new();
        world.deploy();
        world
    }

    /// The same, with nodes that another operator holds.
    fn held(mut self) -> Self {
        for node in &mut self.seen.nodes {
            Arc::make_mut(node).finalizers_mut().push(OTHER.to_owned());
        }
        self
    }

    /// Two hosts that are deployed, and each of which has an inventory of its own: another operator has
    /// held their nodes.
    fn with_own_inventories() -> Self {
        let mut world = Self::new().held();
        world.deploy();
        for node in &mut world.seen.nodes {
            Arc::make_mut(node).finalizers_mut().retain(|it| it != OTHER);
        }
        world
    }

    /// The same, after the passes.
    fn at_rest(mut self) -> Self {
        self.settle();
        self
    }

    fn message(&self, node: usize, type_: &str) -> String {
        conditions::message(self.seen.nodes[node].conditions(), type_)
    }

    /// The message of a node's condition has these words.
    #[track_caller]
    fn says(&self, node: usize, type_: &str, words: &[&str]) {
        conditions::says(self.seen.nodes[node].conditions(), type_, words);
    }

    /// The role's `Ready` has these words.
    #[track_caller]
    fn role_says(&self, words: &[&str]) {
        conditions::says(self.role_conditions(), "Ready", words);
    }

    fn role_conditions(&self) -> &[Condition] {
        self.seen.role.as_ref().unwrap().conditions()
    }

    /// Runs one pass.
    fn pass(&mut self) -> Plan {
        let plan = recorded(decide::decide(&self.seen, None, self.now));
        let remembering = self.memory.plan(&self.seen, self.now);
        assert_eq!(remembering, plan, "what is remembered makes another plan");
        self.take(&plan.steps);
        plan
    }

    /// Runs one pass in which the API server rejects the writes that `refuses` picks.
    fn refused_pass(&mut self, refuses: impl Fn(&Step) -> bool) {
        let plan = recorded(decide::decide(&self.seen, None, self.now));
        let steps = refused(&plan, refuses, &reasons::FORBIDDEN, |it| {
            recorded(decide::decide(&self.seen, Some(it), self.now).only_statuses())
        });
        self.take(&steps);
    }

    fn take(&mut self, steps: &[Step]) {
        for step in steps {
            let name = step.target.name.clone();
            let kind = step.target.kind.kind.trim_start_matches("OpenStack").to_owned();
            let of = |verb: &str| format!("{verb} {kind} {name}");
            if let Some(verb) = self.seen.machines.take(step, self.now) {
                self.writes.push(of(verb));
                continue;
            }
            let done = match &step.write {
                Write::Apply { object, .. } => {
                    let inventory = Inventory::written(object);
                    let (objects, seen) = if kind == "Secret" {
                        (&mut self.secrets, &mut self.seen.inventory_secrets)
                    } else {
                        (&mut self.config_maps, &mut self.seen.inventories)
                    };
                    objects.insert(name.clone(), object.clone());
                    seen.insert(name.clone(), inventory);
                    of("apply")
                }
                Write::Create { object, .. } => {
                    let mut run = created(object, self.is_queueing);
                    run.metadata.uid = Some(name.clone());
                    let hosts: Vec<&str> = run.spec.hosts.iter().map(|it| &*it.name).collect();
                    let service = &run.labels()["edpm.openstack.org/service"];
                    let done = format!("run {service} on {}", hosts.join(","));
                    let is_look = run.labels().contains_key(LAST_LOOK);
                    let place = if is_look { &mut self.seen.looks } else { &mut self.seen.runs };
                    place.push(Arc::new(run));
                    done
                }
                Write::Status { status, .. } => {
                    self.write_status(&kind, &name, status);
                    of("status")
                }
                Write::Delete { .. } if kind == "ConfigMap" => {
                    self.seen.inventories.remove(&name);
                    of("delete")
                }
                Write::Delete { .. } => {
                    self.seen.runs.retain(|it| it.name_any() != name);
                    self.seen.looks.retain(|it| it.name_any() != name);
                    format!("delete {kind}")
                }
                Write::AddFinalizer { finalizer } => {
                    self.change(&kind, &name, |it| {
                        it.finalizers.get_or_insert_default().push(finalizer.clone());
                    });
                    of("hold")
                }
                Write::RemoveFinalizer { rest, .. } => {
                    self.change(&kind, &name, |it| it.finalizers = Some(rest.clone()));
                    self.collect();
                    of("release")
                }
            };
            self.writes.push(done);
        }
    }

    fn write_status(&mut self, kind: &str, name: &str, status: &Value) {
        assert_eq!(undeclared(KINDS, &format!("OpenStack{kind}"), status), [""; 0]);
        if kind == "DataPlaneRole" {
            self.role().status = Some(serde_json::from_value(status.clone()).unwrap());
        }
        for node in self.seen.nodes.iter_mut().filter(|it| it.name_any() == name) {
            let node = Arc::make_mut(node);
            let status = serde_json::from_value(status.clone()).unwrap();
            node.status = Some(set_nodes::merged(status, node.status.take()));
        }
    }

    /// Runs passes until nothing is written any more.
    fn settle(&mut self) -> Vec<String> {
        to_rest(self, |it| it.writes.clone(), |it| drop(it.pass()));
        std::mem::take(&mut self.writes)
    }

    /// Ends every open run; `fails` lists hosts with their outcomes.
    fn finish(&mut self, fails: &[(&str, &str)]) -> &mut Self {
        end_all(&mut self.seen.runs, self.now, |_, host| {
            fails.iter().find(|it| it.0 == host).map_or("Ok", |it| it.1)
        });
        self
    }

    /// Ends runs successfully until none is open.
    fn deploy(&mut self) {
        for _ in 0..10 {
            self.settle();
            if !self.seen.runs.iter().any(|it| is_open(it)) {
                return;
            }
            self.finish(&[]);
        }
        panic!("no end");
    }

    #[track_caller]
    fn condition(&self, node: usize, type_: &str) -> (String, String) {
        conditions::condition(self.seen.nodes[node].conditions(), type_)
    }

    /// The same, after the passes.
    fn settled(&mut self, node: usize, type_: &str) -> (String, String) {
        self.settle();
        self.condition(node, type_)
    }

    fn role_condition(&self, type_: &str) -> (String, String) {
        conditions::condition(self.role_conditions(), type_)
    }

    fn role_reason(&self, type_: &str) -> Option<String> {
        find(self.role_conditions(), type_).map(|it| it.reason.clone())
    }

    fn role(&mut self) -> &mut Role {
        Arc::make_mut(self.seen.role.as_mut().unwrap())
    }

    fn node(&mut self, idx: usize) -> &mut Node {
        Arc::make_mut(&mut self.seen.nodes[idx])
    }

    fn role_message(&self) -> String {
        conditions::message(self.role_conditions(), "Ready")
    }

    fn template(&mut self) -> &mut NodeSection {
        self.role().spec.node_template.as_mut().unwrap()
    }

    fn strategy(&mut self) -> &mut DeployStrategy {
        self.role().spec.deploy_strategy.as_mut().unwrap()
    }

    fn set_var(&mut self, value: &str) -> &mut Self {
        self.template().ansible_vars.insert("greeting".into(), json!(value));
        self
    }

    fn set_deploy(&mut self, deploy: bool) -> &mut Self {
        self.strategy().deploy = Some(deploy);
        self
    }
}

#[test]
fn setup_and_deployment_are_told_as_upstream_tells_them() {
    let mut world = World::new();
    let key = SourceRef::secret(NAMESPACE, "key");
    let digests = world.seen.sources.remove(&key).unwrap();
    world.settle();
    // The inventory needs no content of the key.
    assert_eq!(world.condition(0, "SetupReady"), is("True", "Ready"));
    let address = |world: &mut World, to: Option<&str>| {
        let spec = &mut world.node(0).spec;
        (spec.ansible_host, spec.host_name) = (to.map(str::to_owned), to.map(str::to_owned));
    };
    address(&mut world, None);
    assert_eq!(world.settled(0, "SetupReady"), is("False", "InputMissing"));
    assert_eq!(world.role_condition("SetupReady"), is("False", "InputMissing"));
    address(&mut world, Some("192.0.2.10"));
    world.seen.sources.insert(key, digests);
    world.settle();
    assert_eq!(world.role_condition("SetupReady"), is("True", "Ready"));
    let deployed = |world: &World| {
        let role = world.seen.role.as_ref().unwrap().status.as_ref().unwrap().deployed;
        (role, world.seen.nodes[0].status.as_ref().unwrap().deployed)
    };
    assert_eq!(deployed(&world), (None, None));
    world.deploy();
    assert_eq!(deployed(&world), (Some(true), Some(true)));
}

#[test]
fn a_role_without_nodes_says_that_nothing_is_run_and_is_not_deployed() {
    let mut world = World::new();
    world.seen.nodes.clear();
    world.settle();
    world.role_says(&["nothing is run"]);
    assert_eq!(world.seen.role.as_ref().unwrap().status.as_ref().unwrap().deployed, None);
}

#[test]
fn two_hosts_share_each_run_and_become_ready() {
    let mut world = World::new();
    assert_eq!(
        world.settle(),
        [
            "apply ConfigMap dataplanerole-compute",
            "status DataPlaneNode n0",
            "status DataPlaneNode n1",
            "run install-os on n0,n1",
            // The run is observed now; that it has begun on new hosts is no write of theirs.
            "status DataPlaneRole compute",
        ]
    );
    world.finish(&[]);
    // Nothing is written to the nodes in the middle of their service sequence.
    assert_eq!(world.settle(), ["run run-os on n0,n1", "status DataPlaneRole compute"]);
    world.finish(&[]);
    assert_eq!(
        world.settle(),
        ["status DataPlaneNode n0", "status DataPlaneNode n1", "status DataPlaneRole compute"]
    );
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(1, "UpToDate"), is("True", "UpToDate"));
    assert_eq!(world.role_message(), "2/2 nodes are ready.");
}

#[test]
fn a_host_that_is_being_deployed_says_who_tells_more() {
    let mut world = World::new().at_rest();
    let words = "Services are being deployed to this host; kubectl edpm status n0 shows which one \
                 runs now.";
    assert_eq!(world.message(0, "Ready"), words);
    world.finish(&[]).settle();
    assert_eq!(world.message(0, "Ready"), words, "a further service costs no write");
}

#[test]
fn a_host_that_fails_stops_for_itself() {
    let mut world = World::new().at_rest();
    assert!(world.finish(&[("n1", "Failed")]).settle().contains(&"run run-os on n0".to_owned()));
    world.finish(&[]).settle();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(1, "Ready"), is("False", "TaskFailed"));
    assert!(world.role_message().starts_with("1/2 nodes are ready. n1: TaskFailed"));
    // Without a change by the user there is no further attempt.
    world.now = world.now.saturating_add(SignedDuration::from_hours(24)).unwrap();
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn an_unreachable_host_is_tried_again_alone_and_without_a_flapping_condition() {
    let mut world = World::new().at_rest();
    world.finish(&[("n1", "Unreachable")]).settle();
    world.finish(&[]).settle();
    assert_eq!(world.condition(1, "Ready"), is("False", "HostUnreachable"));
    world.now = world.now.saturating_add(SignedDuration::from_secs(16)).unwrap();
    assert!(world.settle().contains(&"run install-os on n1".to_owned()));
    assert_eq!(world.condition(1, "Ready"), is("False", "HostUnreachable"));
    world.deploy();
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
}

#[test]
fn a_changed_variable_is_named_and_deployed_again() {
    let mut world = World::deployed();
    world.set_deploy(false).set_var("hello").settle();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(0, "UpToDate"), is("False", "InputsChanged"));
    assert!(world.set_deploy(true).settle().contains(&"run install-os on n0,n1".to_owned()));
    assert_eq!(world.condition(0, "Ready"), is("False", "Deploying"));
    world.deploy();
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
}

#[test]
fn an_input_that_is_changed_back_before_a_run_leaves_the_host_up_to_date() {
    let mut world = World::new();
    world.set_var("a");
    world.deploy();
    world.set_deploy(false).set_var("b").settle();
    world.set_var("a").settle();
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
    assert_eq!(runs(&world.set_deploy(true).settle()), [""; 0]);
}

#[test]
fn a_missing_data_plane_is_an_alarm_only_for_a_role_that_leaves_the_deployment_to_it() {
    for (deploy, severity) in [(None, Severity::Warning), (Some(true), Severity::Info)] {
        let mut world = World::new();
        let role = world.role();
        role.spec.data_plane = Some("plane".into());
        role.spec.deploy_strategy.as_mut().unwrap().deploy = deploy;
        world.settle();
        let found = find(world.role_conditions(), "DataPlaneFound").unwrap();
        assert_eq!(found.severity, Some(severity));
    }
}

#[test]
fn a_role_follows_its_data_plane_where_it_says_nothing_itself() {
    let mut world = World::new();
    let role = world.role();
    role.spec.data_plane = Some("plane".into());
    role.spec.deploy_strategy = None;
    assert_eq!(world.settled(0, "Ready"), is("False", "NotRequested"));
    assert_eq!(world.role_condition("DataPlaneFound"), is("False", "DataPlaneNotFound"));
    let spec = json!({ "deployStrategy": { "deploy": true } });
    world.seen.data_plane = Some(Arc::new(objects::new(NAMESPACE, "plane", &spec)));
    assert!(world.settle().contains(&"run install-os on n0,n1".to_owned()));
    assert_eq!(world.role_condition("DataPlaneFound"), is("True", "Found"));
    world.deploy();
    // Deleting the data plane reverts nothing, and the role stays ready.
    world.seen.data_plane = None;
    assert_eq!(world.settled(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.role_condition("Ready"), is("True", "NodesReady"));
    assert_eq!(world.role_condition("DataPlaneFound"), is("False", "DataPlaneNotFound"));
}

#[test]
fn a_redeploy_value_runs_everything_once_more() {
    let mut world = World::deployed();
    world.node(0).annotations_mut().insert("dataplane.openstack.org/redeploy".into(), "1".into());
    assert!(world.settle().contains(&"run install-os on n0".to_owned()));
    world.deploy();
    world.node(0).annotations_mut().clear();
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn a_missing_secret_is_named_and_heals_when_it_appears() {
    let mut world = World::new();
    let sources = std::mem::take(&mut world.seen.sources);
    assert_eq!(world.settled(0, "Ready"), is("False", "SshSecretNotFound"));
    assert!(world.seen.runs.is_empty());
    world.seen.sources = sources;
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn a_crash_between_attempt_and_run_makes_the_same_run() {
    let mut world = World::new();
    world.pass();
    let name = world.seen.runs[0].name_any();
    // The process died before the create reached the API server.
    world.seen.runs.clear();
    world.pass();
    assert_eq!(world.seen.runs.len(), 1);
    assert_eq!(world.seen.runs[0].name_any(), name);
}

#[test]
fn a_pass_over_a_world_at_rest_writes_nothing() {
    let mut world = World::deployed();
    assert_eq!(world.pass().steps, []);
}

#[test]
fn a_host_whose_role_is_missing_is_neither_deployed_nor_up_to_date() {
    let mut world = World::new();
    world.seen.role = None;
    assert_eq!(world.settled(0, "Ready"), is("False", "RoleNotFound"));
    assert_eq!(world.condition(0, "DeploymentReady"), is("False", "InputMissing"));
    assert_eq!(world.condition(0, "UpToDate"), is("False", "NeverDeployed"));
}

#[test]
fn a_failed_deployment_is_not_ready_because_deploy_was_switched_off() {
    let mut world = World::deployed();
    world.set_var("b").settle();
    world.finish(&[("n0", "Failed"), ("n1", "Failed")]).settle();
    world.set_deploy(false).set_var("c").settle();
    assert_eq!(world.condition(0, "Ready"), is("False", "NotRequested"));
}

#[test]
fn an_edit_that_cannot_be_deployed_is_never_ready_and_runs_nothing_when_it_can() {
    type Change = fn(&mut World);
    let edits: [Change; 2] = [
        |it| Arc::make_mut(&mut it.seen.nodes[0]).metadata.generation = Some(2),
        |it| it.role().metadata.generation = Some(2),
    ];
    for edit in edits {
        let mut world = World::deployed();
        let sources = std::mem::take(&mut world.seen.sources);
        assert_eq!(world.settled(0, "Ready"), is("True", "Ready"), "it stays what it was");
        assert_eq!(world.condition(0, "InputReady"), is("False", "SshSecretNotFound"));
        assert_eq!(world.role_condition("InputReady"), is("False", "SshSecretNotFound"));
        assert_eq!(world.role_condition("Ready"), is("True", "NodesReady"));
        edit(&mut world);
        for _ in 0..2 {
            assert_eq!(world.settled(0, "Ready"), is("False", "SshSecretNotFound"));
            assert_eq!(world.role_condition("Ready"), is("False", "SshSecretNotFound"));
        }
        // Others follow these values, and must not deploy again.
        let status = |it: &World| {
            let status = it.seen.nodes[0].status.clone().unwrap();
            (status.services, status.deployed_inputs, status.host_instance)
        };
        let before = status(&world);
        world.seen.sources = sources;
        assert_eq!(runs(&world.settle()), [""; 0]);
        assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
        assert_eq!(status(&world), before);
    }
}

#[test]
fn an_edit_that_nobody_wants_deployed_leaves_a_deployed_host_ready() {
    let mut world = World::deployed();
    world.set_deploy(false);
    world.seen.sources.clear();
    world.node(0).metadata.generation = Some(2);
    assert_eq!(world.settled(0, "Ready"), is("True", "Ready"));
}

#[test]
fn an_edit_whose_variables_are_missing_is_neither_ready_nor_up_to_date() {
    let mut world = World::deployed();
    let from = json!({ "ansibleVarsFrom": [{ "configMapRef": { "name": "gone" } }] });
    let node = world.node(0);
    node.spec.node = Some(serde_json::from_value(from).unwrap());
    node.metadata.generation = Some(2);
    assert_eq!(world.settled(0, "Ready"), is("False", "VariablesNotFound"));
    assert_eq!(world.condition(0, "UpToDate"), is("Unknown", "InputMissing"));
}

#[test]
fn a_service_or_a_role_that_is_gone_leaves_the_record_of_what_was_deployed() {
    let mut world = World::new();
    world.role().spec.services = vec!["install-os".into(), "own".into()];
    let own = world.seen.services["run-os"].clone();
    world.seen.services.insert("own".into(), own.clone());
    world.deploy();
    world.seen.services.remove("own");
    assert_eq!(world.settled(0, "InputReady"), is("False", "ServiceNotFound"));
    assert_eq!(world.condition(0, "UpToDate"), is("Unknown", "InputMissing"));
    // Nothing was ever deployed to the host at this address.
    let mut moved = world.clone();
    let node = Arc::make_mut(&mut moved.seen.nodes[0]);
    node.spec.ansible_host = Some("192.0.2.99".into());
    node.metadata.generation = Some(2);
    moved.settle();
    let node = &moved.seen.nodes[0];
    assert_eq!(node.status.as_ref().unwrap().address.as_deref(), Some("192.0.2.99:22"));
    assert!(!crate::host::conflicts::has_reached(node, "192.0.2.99:22"));
    let role = world.seen.role.take();
    world.settle();
    world.seen.role = role;
    world.seen.services.insert("own".into(), own);
    assert_eq!(runs(&world.settle()), [""; 0]);
}

mod arrivals;
mod certificates;
mod crashes;
mod digests;
mod holding;
mod host_keys;
mod last_looks;
mod limits;
mod machine_owners;
mod machines;
mod membership;
mod memory;
mod networks;
mod parts;
mod redeploy_requests;
mod services;
mod vars;
mod writes;

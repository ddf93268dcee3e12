//! Node sets and their deployments, decided step by step against an in-memory API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{Severity, find};
use api::dataplane::{
    Deployment, DisruptionHolder, HostState, NODE_SET_UID, Node, NodeSet, NodeStatus, Service,
};
use api::yaml;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::{Resource, ResourceExt};
use operator_core::condition_catalog::undeclared;
use operator_core::data_sources::SourceRef;
use operator_core::node_set_host::hosts;
use operator_core::plan::{Kind, Plan, REST_OF_WRITES, Step, WRITES_PER_PASS, Write};
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::Content;
use operator_runtime::source_cache::{Digests, Values};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::conditions::{self, fault, is, stated};
use testkit::golden::recorded;
use testkit::objects;
use testkit::passes::to_rest;
use testkit::played_runs::created;

use super::{decide, last_looks as looks};
use crate::condition_catalog::KINDS;
use crate::finalizers::{INVENTORY_FINALIZER, is_used};
use crate::host::conflicts::{Claim, ClaimIndex};
use crate::host::inventory_metadata::Inventory;
use crate::host::networks::Networks;
use crate::host::vars::Objects;
use crate::labels::LAST_LOOK;
use crate::node_set::observed::{Observed, UnreadableDeployment};
use crate::node_set::observed_nodes::{SetNodes, describes};

mod crashes;
mod deployments;
mod digests;
mod disruption;
mod faults;
mod gates;
mod inventories;
mod last_looks;
mod machines;
mod nodes;
mod played;
mod remembered;
mod served;
mod terminating_hosts;

const NAMESPACE: &str = "openstack";
const SET: &str = "compute";
const SECRET: &str = "dataplanenodeset-compute";
/// The finalizer of another operator.
const OTHER: &str = "example.org/x";
/// The key that a host shows.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+";

/// The objects as the API server would hold them, and the writes to them.
#[derive(Clone)]
struct World {
    seen: Observed,
    now: Timestamp,
    writes: Vec<String>,
    /// The writes to nodes of the last plan, which are made apart from the others.
    node_steps: Vec<Step>,
    node_writes: Vec<String>,
    /// The content of the inventory Secret.
    content: BTreeMap<String, String>,
    /// The other node sets of the namespace.
    others: Vec<Arc<NodeSet>>,
}

fn object<K: Resource<DynamicType = ()> + DeserializeOwned>(name: &str, spec: &Value) -> K {
    let metadata = json!({
        "name": name, "namespace": NAMESPACE, "uid": name, "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    objects::object(json!({ "metadata": metadata, "spec": spec }))
}

fn two_hosts() -> Value {
    json!({
        "preProvisioned": true,
        "services": ["install", "web"],
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
        "nodes": {
            "n0": { "ansible": { "ansibleHost": "192.0.2.10" } },
            "n1": { "ansible": { "ansibleHost": "192.0.2.11" } },
        },
    })
}

fn service(name: &str, spec: &Value) -> Arc<Service> {
    Arc::new(object(name, spec))
}

/// Digests whose published hash is `published`.
fn digests(published: &str, keys: &[&str]) -> Digests {
    let keys = keys.iter().map(|it| ((*it).to_owned(), published.into())).collect();
    Digests { version: published.into(), published: published.into(), keys, ..Digests::default() }
}

fn content(pairs: &[(&str, &str)]) -> Content {
    let values = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec()));
    Content::from(Values::new("1", values.collect()))
}

impl World {
    /// Two hosts, two services of which one has a ConfigMap and a Secret, and everything else that
    /// a deployment needs.
    fn new() -> Self {
        Self::of(&two_hosts())
    }

    /// The same, with an inventory.
    fn set_up() -> Self {
        Self::new().at_rest()
    }

    /// A node set whose hosts have nodes already.
    fn of(spec: &Value) -> Self {
        let mut world = Self::bare(spec);
        let names: Vec<String> = hosts(&world.seen.set).into_iter().map(|it| it.name).collect();
        for name in names {
            let mut node: Node = object(&name, &json!({ "nodeSet": SET }));
            node.metadata.uid = Some(format!("uid-{name}"));
            node.metadata.resource_version = Some("1".into());
            node.metadata.finalizers = Some(vec![INVENTORY_FINALIZER.into()]);
            node.labels_mut().insert(NODE_SET_UID.into(), SET.into());
            world.seen.nodes.own.insert(name, Arc::new(node));
        }
        world
    }

    /// A node set whose hosts have no nodes.
    fn bare(spec: &Value) -> Self {
        let set: NodeSet = object(SET, spec);
        let sources = json!([
            { "configMapRef": { "name": "web-config" } },
            { "secretRef": { "name": "web-secret", "optional": true } },
        ]);
        let services = [
            ("install", json!({ "playbook": "a.b.install" })),
            ("web", json!({ "playbook": "a.b.web", "dataSources": sources })),
        ];
        let services = services.map(|(name, spec)| (name.to_owned(), service(name, &spec)));
        let seen = Observed {
            set: Arc::new(set),
            namespace: NAMESPACE.into(),
            services: services.into(),
            sources: BTreeMap::from([
                (SourceRef::secret(NAMESPACE, "key"), digests("k1", &["ssh-privatekey"])),
                (SourceRef::config_map(NAMESPACE, "web-config"), digests("c1", &["a.conf"])),
                (SourceRef::secret(NAMESPACE, "web-secret"), digests("s1", &["password"])),
            ]),
            nodes: SetNodes { are_made: true, ..SetNodes::default() },
            ..Observed::default()
        };
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        Self {
            seen,
            now,
            writes: Vec::new(),
            node_steps: Vec::new(),
            node_writes: Vec::new(),
            content: BTreeMap::new(),
            others: Vec::new(),
        }
    }

    /// The same, after the passes.
    fn at_rest(mut self) -> Self {
        self.settle();
        self
    }

    /// Changes the spec, as a user does.
    fn edit(&mut self, pointer: &str, value: Value) -> &mut Self {
        let mut object = serde_json::to_value(&*self.seen.set).unwrap();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        object["spec"].pointer_mut(parent).unwrap()[key] = value;
        object["metadata"]["generation"] = json!(self.seen.set.metadata.generation.unwrap() + 1);
        self.seen.set = Arc::new(serde_json::from_value(object).unwrap());
        self
    }

    /// Returns the decision on the present objects, without the writes to nodes.
    fn plan(&mut self) -> Plan {
        let mut plan = self.whole_plan();
        let is_node = |it: &mut Step| it.target.kind == Kind::of::<Node>();
        self.node_steps = plan.independent.extract_if(.., is_node).collect();
        self.node_steps.extend(plan.steps.extract_if(.., is_node));
        plan
    }

    /// Divides the nodes as they are observed.
    fn see_nodes(&mut self) {
        let SetNodes { are_made, own, leaving, foreign, .. } = std::mem::take(&mut self.seen.nodes);
        let all: Vec<Arc<Node>> =
            own.into_values().chain(leaving.into_values()).chain(foreign.into_values()).collect();
        let named = all.iter().filter(|it| it.node_set() == Some(SET)).cloned();
        let by_name = |name: &str| all.iter().find(|it| it.name_any() == name).cloned();
        let elsewhere = |node: &Node| self.others.iter().find(|it| describes(it, node)).cloned();
        let nodes = SetNodes::of(&self.seen.set, named, by_name, elsewhere);
        self.seen.nodes = SetNodes { are_made, ..nodes };
    }

    /// Returns the whole decision on the present objects.
    fn whole_plan(&mut self) -> Plan {
        self.see_nodes();
        let machines = self.seen.machines.set.as_deref();
        let is_busy = self.seen.is_in_use()
            || self.seen.nodes.leaving.values().any(|it| is_used(&**it))
            || !looks::leaving(&self.seen.set, machines).is_empty();
        let pairs: Vec<(&str, &str)> =
            self.content.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        self.seen.written = (is_busy && self.seen.inventory.is_some()).then(|| content(&pairs));
        recorded(decide::decide(&self.seen, None, self.now))
    }

    /// Runs one pass.
    fn pass(&mut self) -> Plan {
        let plan = self.plan();
        for step in plan.all() {
            self.take(step);
        }
        for step in std::mem::take(&mut self.node_steps) {
            self.take_node(&step);
        }
        plan
    }

    fn take(&mut self, step: &Step) {
        let (kind, name) = (&step.target.kind.kind, &step.target.name);
        let kind = kind.trim_start_matches("OpenStackDataPlane");
        if let Some(verb) = self.seen.machines.take(step, self.now) {
            return self.writes.push(format!("{verb} {kind} {name}"));
        }
        let verb = match &step.write {
            Write::Apply { object, .. } if name == SECRET => {
                self.store(object);
                "apply"
            }
            Write::Apply { object, .. } => {
                self.serve(object);
                "apply"
            }
            Write::Delete { .. } if name != SECRET => {
                self.take_back(kind, name);
                "delete"
            }
            Write::Status { status, .. } => {
                self.take_status(status);
                "status"
            }
            Write::AddFinalizer { finalizer } => {
                let set = Arc::make_mut(&mut self.seen.set);
                set.finalizers_mut().push(finalizer.clone());
                "hold"
            }
            Write::Delete { .. } => {
                self.seen.inventory = None;
                "delete"
            }
            Write::RemoveFinalizer { rest, .. } => {
                Arc::make_mut(&mut self.seen.set).finalizers_mut().clone_from(rest);
                "release"
            }
            Write::Create { object, .. } => {
                let run = created(object, false);
                assert!(run.labels().contains_key(LAST_LOOK), "deployments make the others");
                self.seen.looks.push(Arc::new(run));
                "create"
            }
        };
        self.writes.push(format!("{verb} {kind} {name}"));
    }

    fn store(&mut self, object: &Value) {
        self.seen.inventory = Some(Inventory::written(object));
        let data: BTreeMap<String, ByteString> =
            serde_json::from_value(object["data"].clone()).unwrap();
        let text = |it: ByteString| String::from_utf8(it.0).unwrap();
        self.content = data.into_iter().map(|(key, it)| (key, text(it))).collect();
    }

    fn take_status(&mut self, status: &Value) {
        let set = Arc::make_mut(&mut self.seen.set);
        set.status = Some(serde_json::from_value(status.clone()).unwrap());
        let undeclared = undeclared(KINDS, "OpenStackDataPlaneNodeSet", status);
        assert_eq!(undeclared, [""; 0]);
    }

    /// Runs passes until nothing is written, and returns the writes.
    fn settle(&mut self) -> Vec<String> {
        self.writes.clear();
        self.node_writes.clear();
        let writes = |it: &Self| (it.writes.clone(), it.node_writes.clone());
        to_rest(self, writes, |it| drop(it.pass()));
        self.writes.clone()
    }

    /// Changes a node, which has another resource version then.
    fn with_node(&mut self, name: &str, change: impl FnOnce(&mut Node)) -> &mut Self {
        let SetNodes { own, leaving, .. } = &mut self.seen.nodes;
        let node = own.get_mut(name).or_else(|| leaving.get_mut(name)).unwrap();
        let node = Arc::make_mut(node);
        change(node);
        let version: u32 = node.resource_version().unwrap().parse().unwrap();
        node.metadata.resource_version = Some((version + 1).to_string());
        self
    }

    /// Returns the node set's claim to its hosts.
    fn claim(&self) -> Claim {
        Claim::of_node_set(&self.seen.set).with_nodes(self.seen.nodes.all().map(|it| it.1))
    }

    /// Returns what is known of a host.
    fn node(&self, name: &str) -> &NodeStatus {
        self.seen.nodes.get(name).unwrap().status.as_ref().unwrap()
    }

    /// Another operator holds the nodes of these hosts, and of no others.
    fn finalize(&mut self, hosts: &[&str]) -> &mut Self {
        let SetNodes { own, leaving, .. } = &mut self.seen.nodes;
        for (name, node) in own.iter_mut().chain(leaving) {
            let finalizers = Arc::make_mut(node).finalizers_mut();
            finalizers.retain(|it| it != OTHER);
            finalizers.extend(hosts.contains(&name.as_str()).then(|| OTHER.to_owned()));
        }
        self
    }

    /// Another operator says on the node of a host what it lets happen.
    fn holder(&mut self, host: &str, holder: Value) {
        let holder: DisruptionHolder = serde_json::from_value(holder).unwrap();
        self.with_node(host, |node| {
            let status = node.status.get_or_insert_default();
            let holders = &mut status.disruption.get_or_insert_default().holders;
            holders.retain(|it| it.name != holder.name);
            holders.push(holder);
        });
    }

    /// Returns status and reason of a condition.
    fn condition(&self, type_: &str) -> (String, String) {
        conditions::condition(self.seen.set.conditions(), type_)
    }

    /// These conditions have these statuses and reasons.
    #[track_caller]
    fn holds(&self, conditions: [(&str, &str, &str); 2]) {
        for (type_, status, reason) in conditions {
            assert_eq!(self.condition(type_), is(status, reason), "{type_}");
        }
    }

    /// Returns status and reason of a condition after the passes.
    fn settled(&mut self, type_: &str) -> (String, String) {
        self.settle();
        self.condition(type_)
    }

    fn message(&self, type_: &str) -> String {
        conditions::message(self.seen.set.conditions(), type_)
    }

    /// The message of a condition has these words.
    #[track_caller]
    fn says(&self, type_: &str, words: &[&str]) {
        conditions::says(self.seen.set.conditions(), type_, words);
    }

    fn states(&self) -> Vec<HostState> {
        self.seen.set.status.as_ref().unwrap().hosts.iter().map(|it| it.state).collect()
    }

    fn hash(&self) -> String {
        self.seen.set.status.as_ref().unwrap().config_hash.clone().unwrap()
    }

    /// Returns the inventory as Ansible reads it, without the tag for plain data.
    fn inventory(&self) -> Value {
        yaml::from_str(&self.content["inventory"].replace("!unsafe ", "")).unwrap()
    }
}

/// Two hosts that are deployed.
fn deployed() -> World {
    let mut world = World::set_up();
    world.deployed("d").settle();
    world
}

//! The deletion of a node, its compute and its cell, decided by all controllers step by step
//! against a cluster state in memory that deletes as Kubernetes does.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::conditions::{Condition, find};
use api::dataplane::Node;
use api::nova::{Cell, ExternalCompute};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::{Resource, ResourceExt};
use nova_config::annotations::{CELL, SKIP_CLEANUP};
use nova_config::conditions::COMPUTE_CONDITION;
use operator_core::certificates::Issued;
use operator_core::condition_catalog::undeclared;
use operator_core::finalizers::is_terminating;
use operator_core::keyed::Keys;
use operator_core::plan::{Plan, Step, Write};
use operator_runtime::source_cache::Digests;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::conditions;
use testkit::golden::recorded;
use testkit::objects::named;

use super::orphans;
use crate::cell;
use crate::cell::observed::discovery::Seen;
use crate::compute::deploy::nova_matches::held;
use crate::compute::{lifecycle, removal};
use crate::condition_catalog::KINDS;
use crate::group::Group;
use crate::images::Images;
use crate::nova::drain::order::OrderOfHost;
use crate::nova::drain::progress::HostProgress;
use crate::nova::health::HostHealth;
use crate::requested::mounted_cell::NovaServices;
use crate::shared_caches::cleanup_runs::cleans_up_after;

mod cases;
mod hosts;
mod leaving;
mod mappings;
mod nova;
mod nova_matches;
mod observed;

/// The finalizer of dataplane-operator, which it removes when no other one is left.
const INVENTORY: &str = "dataplane.openstack.org/inventory";
/// The finalizer of the API server for foreground deletion.
const FOREGROUND: &str = "foregroundDeletion";

/// A plan of a controller that gives no orders.
fn without_orders(plan: Plan) -> Plan<OrderOfHost> {
    let Plan { independent, steps, one_by_one, events, requeue_after, .. } = plan;
    Plan { independent, steps, one_by_one, orders: vec![], events, requeue_after }
}

/// The cluster state as the API server would hold it, and the writes to it.
struct World {
    node: Option<Node>,
    group: Option<Group>,
    /// The services of type nova of the node.
    services: NovaServices,
    compute: Option<ExternalCompute>,
    cell: Option<Cell>,
    runs: Vec<AnsibleEe>,
    ssh: Option<Digests>,
    namespace_goes: bool,
    /// Whether the node's own inventory is not written yet.
    lacks_inventory: bool,
    cells_are_ours: bool,
    /// What a pass over nova's API found of the host, or `None` where it is not used.
    nova: Option<HostProgress>,
    /// What the last reading of nova has of the host.
    health: Option<HostHealth>,
    /// The Jobs of the cell and its Secret for them, or `None` where no hosts are discovered.
    discovery: Option<Seen>,
    now: Timestamp,
    writes: Vec<String>,
    events: Vec<String>,
}

fn object<K: Resource<DynamicType = ()> + DeserializeOwned>(name: &str, spec: &Value) -> K {
    let uid = format!("uid-{}-{name}", K::kind(&()));
    named("ns", name, json!({ "metadata": { "uid": uid, "generation": 1 }, "spec": spec }))
}

fn node(uid: &str, address: &str) -> Node {
    let spec = json!({ "ansibleHost": address, "hostName": "n0.example.org" });
    let mut node: Node = object("n0", &spec);
    node.metadata.uid = Some(uid.to_owned());
    node.metadata.finalizers = Some(vec![INVENTORY.to_owned()]);
    node.annotations_mut().insert(CELL.to_owned(), "nova-cell1".to_owned());
    let status = json!({
        "hostName": "n0.example.org", "address": format!("{address}:22"),
        "inventoryConfigMapName": "dataplanenode-n0", "sshKeySecretName": "key",
    });
    node.status = Some(serde_json::from_value(status).unwrap());
    node
}

/// A compute as the operator creates it for a node, deployed.
fn deployed(mut compute: ExternalCompute) -> ExternalCompute {
    let status = json!({
        "hostName": "n0.example.org",
        "address": "192.0.2.7:22",
        "services": [{
            "name": "nova", "state": "Succeeded", "hash": "h", "deployedHash": "h", "attempt": 1,
            "since": "2026-01-01T00:00:00Z",
        }],
    });
    compute.status = Some(serde_json::from_value(status).unwrap());
    compute
}

impl World {
    /// A settled node with a deployed compute in a cell of this operator.
    fn new() -> Self {
        let spec = json!({
            "cellName": "cell1", "secret": "nova-cell1", "cellMessageBusSecretName": "bus",
            "keystoneAuthURL": "http://192.0.2.1:5000", "cellDatabaseHostname": "db",
            "conductorServiceTemplate": {}, "noVNCProxyServiceTemplate": {}, "serviceAccount": "nova",
        });
        let keys = ["ssh-privatekey", "known_hosts"].map(|it| (it.to_owned(), "d".into()));
        let mut world = Self {
            node: Some(node("uid-n0", "192.0.2.7")),
            group: None,
            services: NovaServices::default(),
            compute: None,
            cell: Some(object("nova-cell1", &spec)),
            runs: Vec::new(),
            ssh: Some(Digests {
                version: "1".into(),
                keys: keys.into_iter().collect(),
                ..Digests::default()
            }),
            namespace_goes: false,
            lacks_inventory: false,
            cells_are_ours: true,
            nova: None,
            health: None,
            discovery: None,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            writes: Vec::new(),
            events: Vec::new(),
        };
        world.settle();
        world.compute = world.compute.map(deployed);
        world.settle();
        world.events.clear();
        world
    }

    fn creation(&self) -> Option<lifecycle::Observed> {
        Some(lifecycle::Observed {
            nova: self.services.clone(),
            reads_nova: self.nova.is_some(),
            health: None,
            read_twice_since: None,
            order: None,
            node: Arc::new(self.node.clone()?),
            group: self.group.clone(),
            compute: self.compute.clone().map(Arc::new),
            has_runs: false,
            images: Images::default(),
            namespace_goes: self.namespace_goes,
            cells_are_ours: self.cells_are_ours,
        })
    }

    /// Only for a compute that is being deleted or whose host leaves; other tests cover the rest.
    fn ending(&self) -> Option<removal::Observed> {
        let is_leaving = self.node.as_ref().is_some_and(|it| it.spec.leaving == Some(true));
        let compute = self.compute.clone().filter(|it| is_leaving || is_terminating(it))?;
        let uid = compute.uid();
        let is_its = |it: &&AnsibleEe| {
            cleans_up_after(it) == uid.as_ref()
                || it.owner_references().iter().any(|it| Some(&it.uid) == uid.as_ref())
        };
        let seen = removal::Observed {
            node: self.node.clone().map(Arc::new),
            group: self.group.clone(),
            cell: self.cell.clone().map(Arc::new),
            cells_are_ours: self.cells_are_ours,
            namespace_goes: self.namespace_goes,
            has_inventory: self.node.is_some() && !self.lacks_inventory,
            ssh: self.ssh.clone(),
            issued: Issued::default(),
            runs: self.runs.iter().filter(is_its).cloned().map(Arc::new).collect(),
            health: self.health.clone(),
            read_since_deployment: None,
            drain: self.nova.clone(),
            compute: Arc::new(compute),
        };
        let other = held(seen.identity_sources());
        Some(removal::Observed { drain: other.or_else(|| self.nova.clone()), ..seen })
    }

    fn of_cell(&self) -> Option<cell::Observed> {
        let cell = self.cell.clone().filter(|_| self.cells_are_ours)?;
        Some(cell::Observed {
            cell: Arc::new(cell),
            secret: None,
            message_bus: None,
            on_same_bus: Vec::new(),
            is_probed: false,
            answers: None,
            nova_api: None,
            discovery: self.discovery.clone(),
            hosts: None,
            rendered: None,
            computes: self.compute.clone().map(Arc::new).into_iter().collect(),
            namespace_goes: self.namespace_goes,
            keys: Keys::default(),
            credentials: Vec::new(),
        })
    }

    /// The current plans of all controllers.
    fn plans(&self) -> Vec<Plan<OrderOfHost>> {
        let creation = self.creation().map(|it| recorded(lifecycle::decide(&it, None, self.now)));
        let creation = creation.map(without_orders);
        let ending = self.ending().map(|it| recorded(removal::decide(&it, None, self.now)));
        let cell = self.of_cell().map(|it| recorded(cell::decide(&it, None, self.now)));
        let uid = self.compute.as_ref().and_then(ResourceExt::uid);
        let is_orphan =
            |it: &&AnsibleEe| cleans_up_after(it).is_some_and(|it| Some(it) != uid.as_ref());
        let orphans = self.runs.iter().filter(is_orphan).map(orphans::decide).map(without_orders);
        creation.into_iter().chain(ending).chain(cell).chain(orphans).collect()
    }

    /// Executes the plans of all controllers until they are empty; returns the writes.
    fn settle(&mut self) -> Vec<String> {
        self.settle_by(usize::MAX)
    }

    /// The same, with each plan cut off after so many writes.
    fn settle_by(&mut self, at_most: usize) -> Vec<String> {
        for _ in 0..40 {
            let plans = self.plans();
            if plans.iter().all(|it| it.steps.is_empty()) {
                return std::mem::take(&mut self.writes);
            }
            for plan in plans {
                for step in plan.steps.iter().take(at_most) {
                    self.take(step);
                }
                self.collect();
            }
        }
        panic!("no rest: {:?}", self.writes);
    }

    fn take_all(&mut self, steps: &[Step]) {
        for step in steps {
            self.take(step);
        }
    }

    fn take(&mut self, step: &Step) {
        let kind = step.target.kind.kind.as_str();
        let word = match kind {
            "OpenStackDataPlaneNode" => "node",
            "NovaExternalCompute" => "compute",
            "NovaCell" => "cell",
            "Job" => "job",
            "Secret" => "secret",
            _ => "run",
        };
        let verb = match &step.write {
            Write::Apply { object, .. } => {
                self.apply(object);
                "apply"
            }
            Write::Create { object, .. } => {
                self.create(object);
                "create"
            }
            Write::Status { status, notices, .. } => {
                assert_eq!(undeclared(KINDS, kind, status), [""; 0]);
                self.events.extend(notices.iter().map(|it| format!("{word} {}", it.reason)));
                self.write_status(word, status);
                "status"
            }
            Write::Delete { .. } => {
                self.delete(word, &step.target.name);
                "delete"
            }
            Write::AddFinalizer { finalizer } => {
                self.change(word, |it| {
                    assert!(it.deletion_timestamp.is_none(), "the API server takes none now");
                    it.finalizers.get_or_insert_default().push(finalizer.clone());
                });
                "hold"
            }
            Write::RemoveFinalizer { rest, .. } => {
                self.change(word, |it| it.finalizers = Some(rest.clone()));
                "release"
            }
        };
        self.writes.push(format!("{verb} {word}"));
    }

    /// Changes an object, unless another controller's plan has deleted it meanwhile.
    fn change(&mut self, word: &str, change: impl FnOnce(&mut ObjectMeta)) {
        let metadata = match word {
            "node" => self.node.as_mut().map(Resource::meta_mut),
            "compute" => self.compute.as_mut().map(Resource::meta_mut),
            _ => self.cell.as_mut().map(Resource::meta_mut),
        };
        metadata.map(change);
    }

    /// Applies only create here: other tests cover the fields of an existing compute.
    fn apply(&mut self, object: &Value) {
        if self.compute.is_none() {
            let mut object = object.clone();
            object["metadata"]["uid"] = json!(format!("uid-compute-{}", self.now));
            object["metadata"]["generation"] = json!(1);
            self.compute = Some(serde_json::from_value(object).unwrap());
        }
    }

    fn create(&mut self, object: &Value) {
        if object["kind"] == "Job" {
            let job = serde_json::from_value(object.clone()).unwrap();
            return self.discovery.as_mut().unwrap().mapping_jobs.push(Arc::new(job));
        }
        let mut run: AnsibleEe = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(run.owner_references(), []);
        run.metadata.uid = run.metadata.name.clone();
        self.runs.push(run);
    }

    /// Writes like server-side apply: of the node's conditions only this operator's own.
    fn write_status(&mut self, word: &str, status: &Value) {
        match word {
            "node" => {
                let conditions: Vec<Condition> =
                    serde_json::from_value(status["conditions"].clone()).unwrap();
                let node = self.node.as_mut().unwrap().status.get_or_insert_default();
                node.conditions = conditions;
                let list = |it: &Value| if it.is_null() { json!([]) } else { it.clone() };
                let holders =
                    serde_json::from_value(list(&status["disruption"]["holders"])).unwrap();
                node.disruption.get_or_insert_default().holders = holders;
                node.host_vars = serde_json::from_value(list(&status["hostVars"])).unwrap();
            }
            "compute" => {
                let status = serde_json::from_value(status.clone()).unwrap();
                self.compute.as_mut().unwrap().status = Some(status);
            }
            _ => {
                let status = serde_json::from_value(status.clone()).unwrap();
                self.cell.as_mut().unwrap().status = Some(status);
            }
        }
    }

    fn delete(&mut self, word: &str, name: &str) {
        if word == "run" {
            return self.runs.retain(|it| it.name_any() != name);
        }
        if word == "job" {
            let found = self.discovery.as_mut().unwrap();
            return found.mapping_jobs.retain(|it| it.name_any() != name);
        }
        let at = Time(self.now);
        self.change(word, |it| {
            it.deletion_timestamp.get_or_insert(at);
        });
    }

    /// The user deletes the node.
    fn delete_node(&mut self, in_foreground: bool) -> &mut Self {
        self.delete("node", "n0");
        if in_foreground {
            self.change("node", |it| it.finalizers.get_or_insert_default().push(FOREGROUND.into()));
        }
        self.collect();
        self
    }

    /// Garbage collection by Kubernetes, and the finalizer of dataplane-operator.
    fn collect(&mut self) {
        let is_foreground = |it: &Node| it.finalizers().iter().any(|it| it == FOREGROUND);
        if self.node.as_ref().is_some_and(is_foreground) {
            if self.compute.is_some() {
                self.delete("compute", "n0");
                let compute = self.compute.as_ref().and_then(ResourceExt::uid).unwrap();
                self.runs.retain(|it| !is_owned(it.meta(), &compute));
            } else {
                self.change("node", |it| {
                    it.finalizers.get_or_insert_default().retain(|it| it != FOREGROUND);
                });
            }
        }
        let is_last = |it: &Node| is_terminating(it) && it.finalizers() == [INVENTORY];
        if self.node.as_ref().is_some_and(is_last) {
            self.node = None;
        }
        self.node = self.node.take().filter(is_there);
        self.compute = self.compute.take().filter(is_there);
        self.cell = self.cell.take().filter(is_there);
        let node = self.node.as_ref().and_then(ResourceExt::uid).unwrap_or_default();
        if self.compute.as_ref().is_some_and(|it| !is_owned(it.meta(), &node)) {
            self.delete("compute", "n0");
            self.compute = self.compute.take().filter(is_there);
        }
        let compute = self.compute.as_ref().and_then(ResourceExt::uid).unwrap_or_default();
        let stays =
            |it: &AnsibleEe| it.owner_references().is_empty() || is_owned(it.meta(), &compute);
        self.runs.retain(stays);
    }

    /// Ends the running run.
    fn end(&mut self, result: &str) -> &mut Self {
        let is_open = |it: &&mut AnsibleEe| it.status.is_none();
        let run = self.runs.iter_mut().find(is_open).expect("a run goes on");
        let status = json!({
            "JobStatus": if result == "Ok" { "Succeeded" } else { "Failed" },
            "completionTime": self.now.to_string(),
            "hosts": [{ "name": "n0", "result": result }],
            "failures": [{ "host": "n0", "task": "t", "path": "p:1", "message": "boom" }],
        });
        run.status = Some(serde_json::from_value(status).unwrap());
        self
    }

    /// The same with a failure of that task.
    fn fail(&mut self, path: &str, task: &str, message: &str) -> &mut Self {
        let run = self.runs.iter().position(|it| it.status.is_none()).expect("a run goes on");
        self.end("Failed");
        let failures = json!([{ "host": "n0", "path": path, "task": task, "message": message }]);
        self.runs[run].status.as_mut().unwrap().failures =
            serde_json::from_value(failures).unwrap();
        self
    }

    /// The same where the host records another owner.
    fn fail_as_not_owned(&mut self, message: &str) -> &mut Self {
        self.fail("/opt/edpm/plays/owner-check.yaml:80", "The host must be the owner's", message)
    }

    /// Carries out the present plans once.
    fn pass(&mut self) {
        for plan in self.plans() {
            self.take_all(&plan.steps);
        }
    }

    /// Three attempts in a row do not reach the host.
    fn end_unreached(&mut self, then: impl Fn(&Self)) {
        for attempt in 0..3 {
            assert_eq!(n_cleanups(&self.settle()), 1, "{attempt}");
            then(self);
            self.end("Unreachable").pass();
            self.wait(11);
        }
    }

    /// The user lets the host go as it is.
    fn skip(&mut self) -> &mut Self {
        let annotations = self.node.as_mut().unwrap().annotations_mut();
        annotations.insert(SKIP_CLEANUP.to_owned(), "true".to_owned());
        self
    }

    /// Asserts reason and words of a condition of the compute.
    #[track_caller]
    fn says(&self, type_: &str, reason: &str, words: &[&str]) {
        assert_eq!(nova::said(self, type_).0, reason);
        self.mentions(type_, words);
    }

    /// Asserts words of a condition of the compute.
    #[track_caller]
    fn mentions(&self, type_: &str, words: &[&str]) {
        conditions::says(self.compute.as_ref().unwrap().conditions(), type_, words);
    }

    /// Asserts reason and words of the node's condition.
    #[track_caller]
    fn node_says(&self, reason: &str, words: &[&str]) {
        let status = self.node.as_ref().and_then(|it| it.status.as_ref()).unwrap();
        assert_eq!(conditions::condition(&status.conditions, COMPUTE_CONDITION).1, reason);
        conditions::says(&status.conditions, COMPUTE_CONDITION, words);
    }

    /// Minutes pass.
    fn wait(&mut self, minutes: i64) -> &mut Self {
        self.now += SignedDuration::from_mins(minutes);
        self
    }

    fn told_by_node(&self) -> (String, String) {
        let status = self.node.as_ref().and_then(|it| it.status.as_ref());
        let found = status.and_then(|it| find(&it.conditions, COMPUTE_CONDITION));
        found.map(|it| (it.reason.clone(), it.message.clone())).unwrap_or_default()
    }

    /// The hosts that the cell records, and whether nova-compute was stopped there.
    fn leftovers(&self) -> Vec<(String, bool)> {
        let status = self.cell.as_ref().and_then(|it| it.status.as_ref());
        let leftovers = status.map(|it| it.leftovers.as_slice()).unwrap_or_default();
        leftovers.iter().map(|it| (it.host_name.clone(), it.stopped)).collect()
    }
}

fn n_cleanups(writes: &[String]) -> usize {
    writes.iter().filter(|it| *it == "create run").count()
}

fn is_there<K: Resource>(it: &K) -> bool {
    !is_terminating(it) || !it.finalizers().is_empty()
}

fn is_owned(metadata: &ObjectMeta, owner: &str) -> bool {
    metadata.owner_references.iter().flatten().any(|it| it.uid == owner)
}

//! Whole deployments of a compute, decided step by step against a cluster state in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::conditions::{Condition, ConditionStatus, find};
use api::dataplane::{Node, Role};
use api::nova::{Cell, ExternalCompute, ExternalComputeStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, ResourceExt};
use nova_config::annotations::{CELL, REDEPLOY};
use nova_config::oslo::Release;
use nova_config::release::Chosen;
use nova_config::rendered_secret::{CONFIG_FILES, CONFIG_HASH, CONFIG_INPUTS};
use operator_core::condition_catalog::undeclared;
use operator_core::keyed::Keys;
use operator_core::plan::{Plan, Step, Write};
use operator_core::run_engine::ssh_secret::KeyFault;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::Content;
use operator_runtime::source_cache::{Digests, Values};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::conditions::{self, stated};
use testkit::golden::recorded;
use testkit::objects::named;

use super::decide::decide;
use super::drain::HostDrain;
use super::observed::Observed;
use super::observed::{DefaultConfig, Inventory, Rendered, SeenCertificate};
use super::resolve::host_of;
use super::{inputs, observed_host};
use crate::cell_inputs::CREDENTIALS;
use crate::compute::audit::condition::Audited;
use crate::compute::credentials::observed::{Held, HeldObject};
use crate::compute::removal;
use crate::condition_catalog::KINDS;
use crate::finalizers;
use crate::group::Group;
use crate::images::Images;
use crate::nova::drain::order::{HostOrder, OrderOfHost};
use crate::requested::mounted_cell::NovaServices;
use crate::rollout::slot::RolloutSlot;

mod again;
mod audit;
mod cell_matches;
mod credentials;
mod digests;
mod drain;
mod drain_before;
mod drained_rollout;
mod drained_sets;
mod golden;
mod health;
mod identity;
mod libvirt_tls;
mod migration_key;
mod nova_matches;
mod observed;
mod other_release;
mod phase_zero;
mod restarts;
mod rollout;
mod tries;
mod undeployable;

/// The cluster state as the API server would hold it, and the writes to it.
struct World {
    seen: Observed,
    files: BTreeMap<String, String>,
    now: Timestamp,
    writes: Vec<String>,
    /// Whether created runs wait for others.
    is_queueing: bool,
}

fn object<K: Resource<DynamicType = ()> + DeserializeOwned>(name: &str, spec: &Value) -> K {
    let metadata = json!({ "uid": format!("uid-{name}"), "generation": 1 });
    named("ns", name, json!({ "metadata": metadata, "spec": spec }))
}

fn content(entries: &[(&str, &str)]) -> Content {
    let entry = |(key, value): &(&str, &str)| ((*key).to_owned(), value.as_bytes().to_vec());
    Content::from(Values::new("1", entries.iter().map(entry).collect()))
}

fn ready(status: &str) -> Vec<Condition> {
    vec![stated("Ready", status, "Why", "so it is.")]
}

fn node(name: &str) -> Node {
    let host_name = format!("{name}.example.org");
    let spec = json!({ "ansibleHost": "192.0.2.7", "hostName": host_name, "role": "compute" });
    let mut node: Node = object(name, &spec);
    let status = json!({
        "observedGeneration": 1,
        "observedRole": { "name": "compute", "uid": "uid-compute", "generation": 1 },
        "conditions": ready("True"),
        "hostName": host_name,
        "address": "192.0.2.7:22",
    });
    node.status = Some(serde_json::from_value(status).unwrap());
    node
}

fn cell() -> Cell {
    let spec = json!({
        "cellName": "cell1", "secret": "nova-cell1", "cellMessageBusSecretName": "bus",
        "keystoneAuthURL": "http://192.0.2.1:5000", "cellDatabaseHostname": "db",
        "conductorServiceTemplate": {}, "noVNCProxyServiceTemplate": {}, "serviceAccount": "nova",
    });
    let mut cell: Cell = object("nova-cell1", &spec);
    let status = json!({ "observedGeneration": 1, "conditions": ready("True") });
    cell.status = Some(serde_json::from_value(status).unwrap());
    cell
}

/// The same compute, as it is observed while it is being deleted.
fn leaving(seen: &Observed) -> removal::Observed {
    let mut compute = Arc::clone(&seen.compute);
    let now = Timestamp::UNIX_EPOCH;
    Arc::make_mut(&mut compute).metadata.deletion_timestamp = Some(Time(now));
    removal::Observed {
        compute,
        node: seen.node.clone(),
        group: seen.group.clone(),
        cell: seen.cell.clone(),
        cells_are_ours: false,
        namespace_goes: false,
        has_inventory: true,
        ssh: seen.ssh.clone(),
        issued: seen.certificate.issued.clone(),
        runs: seen.runs.clone(),
        health: seen.health.clone(),
        read_since_deployment: seen.read_since_deployment,
        drain: seen.drain.clone(),
    }
}

/// Returns what is requested for the servers of the host.
fn drain_of(seen: &Observed) -> HostDrain<'_> {
    HostDrain::resolve(&host_of(seen), seen.drain.as_ref())
}

/// Returns what is to be done about the host.
fn host_order(seen: &Observed) -> Option<HostOrder> {
    super::drain::host_order(&host_of(seen), seen.drain.as_ref())
}

fn is_open(run: &Arc<AnsibleEe>) -> bool {
    run.status.as_ref().is_none_or(|it| it.completion_time.is_none())
}

impl World {
    /// Everything that a deployment needs.
    fn new() -> Self {
        Self::named("n0")
    }

    /// The same, for a compute of that name.
    fn named(name: &str) -> Self {
        let spec = json!({
            "dataplaneNodeName": name,
            "cellName": "nova-cell1",
            "customServiceConfig": "[libvirt]\ncpu_mode = custom\n",
            "inventoryConfigMapName": "inventory",
            "sshKeySecretName": "key",
            "deploy": true,
            "novaComputeContainerImage": "compute:1",
            "novaLibvirtContainerImage": "libvirt:1",
        });
        let mut compute: ExternalCompute = object(name, &spec);
        // As the operator creates it.
        compute.metadata.finalizers = Some(vec![finalizers::COMPUTE.to_owned()]);
        let role = json!({ "services": [] });
        let role: Role = object("compute", &role);
        let keys = ["ssh-privatekey", "known_hosts"].map(|it| (it.to_owned(), "d".into()));
        let seen = Observed {
            compute: Arc::new(compute),
            node: Some(Arc::new(node(name))),
            group: Some(Group::Role(Arc::new(role))),
            cell: Some(Arc::new(cell())),
            other_cells: Vec::new(),
            cell_secret: Some(content(&[("ServicePassword", "keystone-password")])),
            message_bus: Some(content(&[(
                "transport_url",
                "rabbit://nova:bus-password@192.0.2.2/v",
            )])),
            nova: NovaServices::default(),
            read_since_deployment: None,
            default_config: None,
            release: Chosen::Release(Release::newest()),
            ssh: Some(Digests {
                version: "1".into(),
                keys: keys.into_iter().collect(),
                ..Digests::default()
            }),
            migration_key: None,
            has_known_hosts: true,
            certificate: SeenCertificate::default(),
            inventory: Inventory::Found,
            rendered: None,
            default_images: Images::default(),
            runs: Vec::new(),
            cells_are_ours: true,
            health: None,
            drain: None,
            audited: Audited::default(),
            slot: RolloutSlot::Free,
            keys: Keys::default(),
            held: Held::default(),
        };
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        Self { seen, files: BTreeMap::new(), now, writes: Vec::new(), is_queueing: false }
    }

    /// The same, deployed.
    fn deployed() -> Self {
        Self::new().deploy()
    }

    /// Deploys the compute successfully.
    fn deploy(mut self) -> Self {
        self.run_all().settle();
        assert_eq!(self.condition("Ready").status, ConditionStatus::True);
        self.writes.clear();
        self
    }

    /// Runs all services, one after the other.
    fn run_all(&mut self) -> &mut Self {
        for _ in 0..3 {
            self.settle();
            self.end("Ok");
        }
        self
    }

    fn compute(&mut self) -> &mut ExternalCompute {
        Arc::make_mut(&mut self.seen.compute)
    }

    fn node(&mut self) -> &mut Node {
        Arc::make_mut(self.seen.node.as_mut().unwrap())
    }

    fn cell(&mut self) -> &mut Cell {
        Arc::make_mut(self.seen.cell.as_mut().unwrap())
    }

    /// The user changes the configuration, which increments the generation.
    fn configure(&mut self, config: Option<&str>) -> &mut Self {
        let compute = self.compute();
        compute.spec.custom_service_config = config.map(str::to_owned);
        *compute.metadata.generation.as_mut().unwrap() += 1;
        self
    }

    /// Returns the plan for the compute.
    fn decided(&self) -> Plan<OrderOfHost> {
        if self.seen.compute.is_observed() {
            return observed_host::decide(&self.seen, None, self.now);
        }
        decide(&self.seen, None, self.now)
    }

    /// Runs one reconciliation.
    fn pass(&mut self) -> Plan<OrderOfHost> {
        let plan = recorded(self.decided());
        self.take(&plan.steps);
        plan
    }

    fn take(&mut self, steps: &[Step]) {
        for step in steps {
            let name = step.target.name.clone();
            match &step.write {
                Write::Apply { object, .. } => self.take_secret(object),
                Write::Create { object, .. } => {
                    let mut run: AnsibleEe = serde_json::from_value(object.clone()).unwrap();
                    run.metadata.uid = Some(name.clone());
                    let service = run.labels()["edpm.openstack.org/service"].clone();
                    self.writes.push(format!("run {service}"));
                    if !self.is_queueing {
                        let running = json!({ "JobStatus": "Running" });
                        run.status = Some(serde_json::from_value(running).unwrap());
                    }
                    self.seen.runs.push(Arc::new(run));
                }
                Write::Status { status, .. } => {
                    assert_eq!(undeclared(KINDS, "NovaExternalCompute", status), [""; 0]);
                    let status: ExternalComputeStatus =
                        serde_json::from_value(status.clone()).unwrap();
                    self.compute().status = Some(status);
                    self.writes.push("status".into());
                }
                Write::Delete { .. } => {
                    self.seen.runs.retain(|it| it.name_any() != name);
                    self.writes.push("delete run".into());
                }
                Write::AddFinalizer { finalizer } if step.target.kind.kind == "RabbitMQUser" => {
                    let is_it = |it: &&mut HeldObject| it.credential.name == name;
                    let user = self.seen.held.objects.iter_mut().find(is_it).unwrap();
                    user.metadata.finalizers.get_or_insert_default().push(finalizer.clone());
                    self.writes.push(format!("hold RabbitMQUser {name}"));
                }
                Write::AddFinalizer { finalizer } => {
                    let held = self.compute().metadata.finalizers.get_or_insert_default();
                    held.push(finalizer.clone());
                    self.writes.push("hold".into());
                }
                Write::RemoveFinalizer { .. } => panic!("nothing goes here: {step:?}"),
            }
        }
    }

    fn take_secret(&mut self, object: &Value) {
        let annotation =
            |name: &str| object["metadata"]["annotations"][name].as_str().unwrap().to_owned();
        let (hash, files) = (annotation(CONFIG_HASH), annotation(CONFIG_FILES));
        let inputs = annotation(CONFIG_INPUTS);
        let controller = &object["metadata"]["ownerReferences"][0]["uid"];
        let controller = controller.as_str().map(str::to_owned);
        let owned = ManagedFields::applied(object);
        let managed_fields = owned;
        self.seen.rendered = Some(Rendered { hash, inputs, files, controller, managed_fields });
        let data: BTreeMap<String, ByteString> =
            serde_json::from_value(object["data"].clone()).unwrap();
        self.files = data.into_iter().map(|(k, v)| (k, String::from_utf8(v.0).unwrap())).collect();
        self.writes.push("files".into());
    }

    /// Reconciles until nothing is written; returns the writes.
    fn settle(&mut self) -> Vec<String> {
        let start = self.writes.len();
        for _ in 0..10 {
            let before = self.writes.len();
            self.pass();
            if self.writes.len() == before {
                return self.writes[start..].to_vec();
            }
        }
        panic!("it never settles: {:?}", self.writes);
    }

    /// Ends the running run.
    fn end(&mut self, result: &str) -> &mut Self {
        let run = self.seen.runs.iter().position(is_open).unwrap();
        let host = self.seen.compute.name_any();
        let status = json!({
            "JobStatus": if result == "Ok" { "Succeeded" } else { "Failed" },
            "completionTime": self.now.to_string(),
            "hosts": [{ "name": host, "result": result }],
            "failures": [{ "host": host, "task": "t", "path": "p:1", "message": "boom" }],
        });
        Arc::make_mut(&mut self.seen.runs[run]).status =
            Some(serde_json::from_value(status).unwrap());
        self
    }

    fn condition(&self, type_: &str) -> Condition {
        let status = self.seen.compute.status.as_ref().unwrap();
        find(&status.conditions, type_).cloned().unwrap()
    }

    fn reason(&self, type_: &str) -> String {
        self.condition(type_).reason
    }

    fn has_condition(&self, type_: &str) -> bool {
        find(self.seen.compute.conditions(), type_).is_some()
    }

    /// Asserts that the message of a condition has these words.
    #[track_caller]
    fn mentions(&self, type_: &str, words: &[&str]) {
        conditions::says(self.seen.compute.conditions(), type_, words);
    }

    /// Asserts the same, and the reason; its status is declared with it.
    #[track_caller]
    fn says(&self, type_: &str, reason: &str, words: &[&str]) {
        assert_eq!(self.reason(type_), reason);
        self.mentions(type_, words);
    }

    /// Ends so many runs of a deployment well, one after the other.
    fn end_well(&mut self, n_runs: usize) -> &mut Self {
        for _ in 0..n_runs {
            self.end("Ok").settle();
        }
        self
    }

    /// The newest run of nova-compute.
    fn run_of_nova(&self) -> &AnsibleEe {
        let is_nova = |it: &&Arc<AnsibleEe>| it.labels()["edpm.openstack.org/service"] == "nova";
        self.seen.runs.iter().rfind(is_nova).unwrap()
    }

    fn set_node_ready(&mut self, status: &str) {
        self.node().status.as_mut().unwrap().conditions = ready(status);
    }

    fn set_cell_ready(&mut self, status: &str) {
        self.cell().status.as_mut().unwrap().conditions = ready(status);
    }

    /// The node owns the compute.
    fn own(&mut self) {
        let owner = self.seen.node.as_deref().and_then(|it| it.controller_owner_ref(&()));
        self.compute().metadata.owner_references = owner.map(|it| vec![it]);
    }

    fn n_runs(&self) -> usize {
        self.writes.iter().filter(|it| it.starts_with("run")).count()
    }
}

#[test]
fn a_run_that_waits_is_withdrawn_when_deployment_is_switched_off_and_the_compute_stays_ready() {
    let mut world = World::deployed();
    world.is_queueing = true;
    world.configure(Some("[libvirt]\ncpu_mode = host-model\n"));
    assert!(world.settle().contains(&"run nova".to_owned()));
    world.compute().spec.deploy = Some(false);
    world.settle();
    assert!(!world.seen.runs.iter().any(is_open));
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    assert_eq!(world.reason("UpToDate"), "InputsChanged");
    world.is_queueing = false;
    world.compute().spec.deploy = Some(true);
    world.settle();
    world.end_well(2);
    assert_eq!(
        (world.reason("Ready"), world.reason("UpToDate")),
        ("Ready".into(), "UpToDate".into())
    );
}

#[test]
fn files_and_attempts_are_written_before_the_first_run_and_the_services_follow_in_order() {
    let mut world = World::new();
    assert_eq!(world.settle()[..3], ["files", "status", "run libvirt"]);
    assert_eq!(world.end("Ok").settle(), ["run nova"]);
    assert_eq!(world.end("Ok").settle(), ["run nova-registered"]);
    assert_eq!(world.condition("Ready").status, ConditionStatus::False);
    assert_eq!(world.end("Ok").settle(), ["status"]);
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    assert_eq!(world.condition("UpToDate").status, ConditionStatus::True);
}

#[test]
fn a_compute_that_a_human_made_is_held_before_its_host_is_touched() {
    let mut world = World::new();
    world.compute().metadata.finalizers = None;
    world.compute().spec.deploy = Some(false);
    assert_eq!(world.settle(), ["files", "status"], "no host, no hold");
    world.compute().spec.deploy = Some(true);
    world.writes.clear();
    assert_eq!(world.settle()[..3], ["hold", "status", "run libvirt"]);
    // A removed finalizer is added again: the host must still be cleaned up.
    world.compute().metadata.finalizers = None;
    assert_eq!(world.settle(), ["hold"]);
}

#[test]
fn only_the_run_that_brings_the_files_mounts_them() {
    let mut world = World::new();
    world.run_all();
    for run in &world.seen.runs {
        let text = serde_json::to_string(&run.spec).unwrap();
        let is_nova = run.labels()["edpm.openstack.org/service"] == "nova";
        assert_eq!(text.contains("n0-config-data"), is_nova, "{}", run.name_any());
        assert_eq!(text.contains("/var/lib/openstack/configs/nova/01-nova.conf"), is_nova);
        assert!(!text.contains("bus-password"));
    }
}

#[test]
fn a_deployed_compute_rests_and_no_secret_stands_in_its_status() {
    let mut world = World::deployed();
    assert_eq!(world.settle(), Vec::<String>::new());
    let status = serde_json::to_string(&world.seen.compute.status).unwrap();
    assert!(!status.contains("password"), "{status}");
    assert!(world.files["01-nova.conf"].contains("bus-password"));
}

#[test]
fn a_cell_with_a_slip_in_its_name_is_told_with_the_near_ones() {
    let mut world = World::new();
    world.seen.cell = None;
    world.compute().spec.cell_name = "nova-cel1".into();
    world.seen.other_cells = ["nova-cell1", "nova-cell2", "edge"].map(str::to_owned).into();
    world.settle();
    let message = world.condition("NovaCellReady").message;
    let meant = "NovaCell nova-cel1 does not exist (did you mean nova-cell1?): create it";
    assert!(message.starts_with(meant), "{message}");
}

#[test]
fn each_wait_is_named_and_no_run_starts() {
    type Change = fn(&mut World);
    let cases: [(&str, &str, &str, Change); 17] = [
        ("NodeReady", "NodeNotFound", "OpenStackDataPlaneNode n0", |it| it.seen.node = None),
        ("NodeReady", "NodeNotReady", "n0", |it| it.set_node_ready("False")),
        ("NodeReady", "NodeNotReady", "n0", |it| it.node().metadata.generation = Some(2)),
        ("NodeReady", "NodeNotReady", "n0", |it| {
            it.seen.group.as_mut().unwrap().role_mut().metadata.generation = Some(2);
        }),
        ("NovaCellReady", "NovaCellNotFound", "NovaCell nova-cell1", |it| it.seen.cell = None),
        ("NovaCellReady", "NovaCellNotReady", "so it is.", |it| it.set_cell_ready("False")),
        ("InputReady", "SecretNotFound", "Secret nova-cell1", |it| it.seen.cell_secret = None),
        ("InputReady", "SecretIncomplete", "ServicePassword", |it| {
            it.seen.cell_secret = Some(content(&[]));
        }),
        ("InputReady", "SecretNotFound", "Secret bus", |it| it.seen.message_bus = None),
        ("InputReady", "SshSecretNotFound", "Secret key", |it| it.seen.ssh = None),
        ("InputReady", "SshSecretIncomplete", "ssh-privatekey", |it| {
            it.seen.ssh.as_mut().unwrap().keys.remove("ssh-privatekey");
        }),
        ("InputReady", "SshSecretInvalid", "ssh-privatekey of Secret key", |it| {
            it.seen.ssh.as_mut().unwrap().ssh_key_fault = Some(KeyFault::PublicKey);
        }),
        ("InputReady", "ImageNotSet", "spec.novaComputeContainerImage", |it| {
            it.compute().spec.nova_compute_container_image = None;
        }),
        ("InputReady", "ImagesNotFilled", "set spec.novaComputeContainerImage: image", |it| {
            it.compute().spec.nova_compute_container_image = None;
            it.seen.default_images.nova_compute = "image".into();
        }),
        ("InputReady", "InventoryNotFound", "ConfigMap inventory,", |it| {
            it.seen.inventory = Inventory::Absent;
        }),
        ("InputReady", "InventoryNotPublished", "is not written yet; see the node's", |it| {
            it.seen.inventory = Inventory::NotWritten;
        }),
        ("InputReady", "InventoryIncomplete", "lacks that key", |it| {
            it.seen.inventory = Inventory::WithoutKey;
        }),
    ];
    for (type_, reason, part, change) in cases {
        let mut world = World::new();
        change(&mut world);
        world.settle();
        world.says(type_, reason, &[part]);
        assert_eq!(
            (world.condition("Ready").status, world.n_runs()),
            (ConditionStatus::False, 0),
            "{reason}"
        );
    }
}

#[test]
fn a_compute_of_a_human_says_which_fields_its_node_has_values_for() {
    let mut world = World::new();
    world.compute().spec.inventory_config_map_name = None;
    world.settle();
    assert_eq!(world.reason("InputReady"), "InventoryNotPublished");
    let status = world.node().status.as_mut().unwrap();
    status.inventory_config_map_name = Some("dataplanenode-n0".into());
    status.shared_inventory_config_map_name = Some("dataplanerole-compute".into());
    status.ssh_key_secret_name = Some("key".into());
    world.settle();
    world.mentions("InputReady", &["spec.inventoryConfigMapName to dataplanerole-compute"]);
    // A node of no role has an inventory of its own alone.
    world.node().status.as_mut().unwrap().shared_inventory_config_map_name = None;
    world.settle();
    world.says(
        "InputReady",
        "InventoryNotNamed",
        &[
            "spec.inventoryConfigMapName to dataplanenode-n0",
            "spec.sshKeySecretName to key",
            "nova.openstack.org/cell=nova-cell1",
        ],
    );
    // A node with a cell adopts it at once.
    let cell = (CELL.to_owned(), "nova-cell1".to_owned());
    world.node().metadata.annotations = Some([cell].into());
    world.settle();
    assert_eq!(world.reason("InputReady"), "InventoryNotPublished");
}

#[test]
fn further_files_are_brought_as_they_were_written_and_change_nothing_where_there_are_none() {
    let mut world = World::deployed();
    let files = world.files.clone();
    let further = BTreeMap::from([("provider_x.yaml".to_owned(), "a: b\n".to_owned())]);
    world.compute().spec.default_config_overwrite = further;
    assert_eq!(world.settle(), ["files", "status", "run nova", "status"]);
    assert_eq!(world.files["provider_x.yaml"], "a: b\n");
    assert_eq!(world.files.len(), files.len() + 1);
    world.mentions("UpToDate", &["defaultConfigOverwrite provider_x.yaml"]);
    let warned = world.condition("ConfigWarnings").message;
    assert!(!warned.contains("provider_x.yaml"), "{warned}");
    // Reverted before the run has ended, so the deployed files are current.
    world.compute().spec.default_config_overwrite.clear();
    world.settle();
    assert_eq!(world.files, files);
}

#[test]
fn a_further_file_that_no_nova_compute_reads_is_told_and_one_with_options_is_refused() {
    let mut world = World::deployed();
    let further = |name: &str| BTreeMap::from([(name.to_owned(), "x".to_owned())]);
    world.compute().spec.default_config_overwrite = further("policy.yaml");
    world.settle();
    world.says("ConfigWarnings", "Surprising", &["policy.yaml"]);
    for name in ["03-nova.conf", "ssh-privatekey", "tls-ca-bundle.pem", "a/b", ".hidden"] {
        world.compute().spec.default_config_overwrite = further(name);
        world.settle();
        assert_eq!(world.reason("ServiceConfigReady"), "InvalidConfig");
        world.mentions("ServiceConfigReady", &[name]);
    }
}

#[test]
fn a_record_of_a_deployment_that_never_ended_makes_nobody_ready() {
    let mut world = World::deployed();
    let status = Arc::make_mut(&mut world.seen.compute).status.as_mut().unwrap();
    status.services.retain(|it| it.name == "libvirt");
    world.seen.cell = None;
    world.settle();
    assert_eq!(world.reason("Ready"), "NovaCellNotFound");
}

#[test]
fn what_is_lost_later_undoes_nothing() {
    let changes: [fn(&mut World); 4] = [
        |it| it.seen.node = None,
        |it| it.seen.cell = None,
        |it| it.seen.cell_secret = None,
        |it| it.set_node_ready("False"),
    ];
    for change in changes {
        let mut world = World::deployed();
        change(&mut world);
        assert_eq!(world.settle(), ["status"]);
        assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    }
}

#[test]
fn old_news_of_the_node_is_no_news() {
    let mut world = World::deployed();
    world.node().metadata.generation = Some(2);
    assert_eq!(world.settle(), Vec::<String>::new());
    // But no run may rely on it either.
    world.configure(None).settle();
    assert_eq!((world.n_runs(), world.condition("NodeReady").status), (0, ConditionStatus::True));
}

#[test]
fn options_that_cannot_be_read_are_told_with_line_and_column_and_nothing_is_deployed() {
    for mut world in [World::new(), World::deployed()] {
        world.configure(Some("[libvirt]\ncpu_mode custom")).settle();
        world.says("ServiceConfigReady", "InvalidConfig", &["line 2, column 1"]);
        assert_eq!((world.reason("Ready").as_str(), world.n_runs()), ("InvalidConfig", 0));
        world.configure(Some("[libvirt]\ncpu_mode = custom\n# mended")).settle();
        assert_eq!(world.n_runs(), 1);
    }
}

#[test]
fn emptied_options_are_deployed_as_a_file_without_options() {
    let mut world = World::deployed();
    assert_eq!(world.configure(None).settle()[..3], ["files", "status", "run nova"]);
    assert!(world.files["02-nova-override.conf"].lines().all(|it| it.starts_with('#')));
    assert!(world.condition("UpToDate").message.contains("customServiceConfig"));
}

#[test]
fn a_changed_input_runs_what_depends_on_it_and_is_named() {
    type Change = fn(&mut World);
    let cases: [(&str, &str, Change); 6] = [
        ("Secret bus transport_url", "run nova", |it| {
            it.seen.message_bus =
                Some(content(&[("transport_url", "rabbit://nova:x@192.0.2.2/v")]));
        }),
        ("NovaCell nova-cell1 keystoneAuthURL", "run nova", |it| {
            it.cell().spec.keystone_auth_url = "http://192.0.2.9:5000".into();
        }),
        ("novaLibvirtContainerImage", "run libvirt", |it| {
            it.compute().spec.nova_libvirt_container_image = Some("libvirt:2".into());
        }),
        ("ConfigMap defaults", "run nova", |it| {
            let content = Some(content(&[("any", "[libvirt]\nvirt_type = qemu")]));
            it.seen.default_config = Some(DefaultConfig { name: "defaults".into(), content });
        }),
        ("redeploy", "run libvirt", |it| {
            it.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
        }),
        ("hostInstance", "run libvirt", |it| {
            it.node().status.as_mut().unwrap().host_instance = Some("another".into());
        }),
    ];
    for (input, first_run, change) in cases {
        let mut world = World::deployed();
        change(&mut world);
        let writes = world.settle();
        let first = writes.iter().find(|it| it.starts_with("run"));
        assert_eq!(first.map(String::as_str), Some(first_run), "{input}");
        let message = world.condition("UpToDate").message;
        assert_eq!(message, format!("Changed since the last deployment: {input}."));
        assert_eq!(world.condition("Ready").status, ConditionStatus::False);
    }
}

#[test]
fn with_deploy_off_files_are_rendered_nothing_runs_and_a_deployed_compute_stays_ready() {
    let mut world = World::new();
    world.compute().spec.deploy = Some(false);
    world.settle();
    assert_eq!((world.writes.contains(&"files".to_owned()), world.n_runs()), (true, 0));
    assert_eq!(world.reason("Ready"), "NotRequested");

    let mut world = World::deployed();
    world.compute().spec.deploy = Some(false);
    world.configure(Some("[libvirt]")).settle();
    assert_eq!((world.n_runs(), world.condition("Ready").status), (0, ConditionStatus::True));
    assert_eq!(world.reason("UpToDate"), "InputsChanged");
}

#[test]
fn the_runner_image_and_the_ssh_secret_deploy_nothing_again() {
    let mut world = World::deployed();
    world.compute().spec.ansible_ee_container_image = Some("runner:2".into());
    world.seen.ssh.as_mut().unwrap().version = "2".into();
    assert_eq!(world.settle(), Vec::<String>::new());
}

#[test]
fn a_redeploy_value_stays_in_force_when_its_annotation_goes() {
    let mut world = World::deployed();
    world.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
    world.run_all().settle();
    assert_eq!(world.n_runs(), 3);
    world.compute().annotations_mut().remove(REDEPLOY);
    world.settle();
    assert_eq!((world.n_runs(), world.condition("Ready").status), (3, ConditionStatus::True));
}

#[test]
fn a_host_that_could_not_be_reached_is_tried_again_by_itself() {
    let mut world = World::new();
    world.settle();
    world.end("Unreachable").settle();
    assert_eq!((world.reason("Ready").as_str(), world.n_runs()), ("HostUnreachable", 1));
    let pause = world.pass().requeue_after.unwrap();
    assert!(pause.as_secs() <= 16, "{pause:?}");
    world.now += SignedDuration::from_secs(16);
    world.settle();
    assert_eq!(world.n_runs(), 2);
}

#[test]
fn a_compute_that_does_not_register_says_why_and_how_to_go_on() {
    let mut world = World::new();
    for result in ["Ok", "Ok", "Failed"] {
        world.settle();
        world.end(result);
    }
    world.settle();
    world.says(
        "Ready",
        "TaskFailed",
        &["nova-registered", "boom", "kubectl annotate", "novaexternalcompute/n0"],
    );
    world.now += SignedDuration::from_hours(24);
    world.settle();
    assert_eq!(world.n_runs(), 3);
}

#[test]
fn the_host_name_is_set_once() {
    let mut world = World::deployed();
    world.node().status.as_mut().unwrap().host_name = Some("other.example.org".into());
    world.settle();
    assert_eq!((world.reason("InputReady").as_str(), world.n_runs()), ("HostNameChanged", 0));
    let status = world.seen.compute.status.as_ref().unwrap();
    assert_eq!(status.host_name.as_deref(), Some("n0.example.org"));
}

#[test]
fn the_default_configuration_lies_between_the_generated_and_the_humans() {
    let mut world = World::new();
    let text = Some(content(&[("any", "[libvirt]\nvirt_type = qemu")]));
    world.seen.default_config = Some(DefaultConfig { name: "defaults".into(), content: text });
    world.settle();
    let files = &world.seen.compute.status.as_ref().unwrap().config_files;
    let names: Vec<(&str, &str)> =
        files.iter().map(|it| (it.name.as_str(), it.source.as_str())).collect();
    assert_eq!(
        names,
        [
            ("01-nova.conf", "NovaCell ns/nova-cell1"),
            ("02-nova-default.conf", "ConfigMap ns/defaults"),
            ("02-nova-override.conf", "NovaExternalCompute ns/n0"),
            ("nova-blank.conf", "NovaExternalCompute ns/n0"),
        ]
    );
    for (config, reason) in [
        (None, "DefaultConfigNotFound"),
        (Some(content(&[("a", ""), ("b", "")])), "DefaultConfigInvalid"),
    ] {
        let mut world = World::new();
        world.seen.default_config =
            Some(DefaultConfig { name: "defaults".into(), content: config });
        world.settle();
        assert_eq!((world.reason("InputReady").as_str(), world.n_runs()), (reason, 0));
    }
}

#[test]
fn surprising_options_are_told_and_do_not_affect_ready() {
    let mut world = World::deployed();
    world.configure(Some("[DEFAULT]\ntransport_url = rabbit://x")).settle();
    assert_eq!(world.condition("ConfigWarnings").status, ConditionStatus::True);
    world.end_well(2);
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
}

#[test]
fn the_roles_default_options_are_told_of_by_the_same_rules_and_so_is_an_unknown_release() {
    let mut world = World::new();
    let options = content(&[("02-nova-default.conf", "[libvirt]\ncpu_model = Nehalem\n")]);
    world.seen.default_config =
        Some(DefaultConfig { name: "defaults".into(), content: Some(options) });
    world.configure(Some("[libvirt]\nvirt_type = qemv\n"));
    world.seen.group.as_mut().unwrap().role_mut().spec.tls_enabled = Some(true);
    world.settle();
    let told = world.condition("ConfigWarnings").message;
    let expected = "spec.customServiceConfig, line 2, column 1: [libvirt] virt_type has a value that \
        nova 34.0.0 refuses, and nova-compute fails when it reads it: it must be one of kvm, lxc, \
        qemu, parallels. ConfigMap defaults, line 2, column 1: [libvirt] cpu_model is an old name of \
        cpu_models in nova 34.0.0: write that. ConfigMap defaults, line 2, column 1: [libvirt] \
        cpu_model ends nova-compute 34.0.0 at its start: [libvirt] cpu_models counts only with \
        cpu_mode = custom: set both, or neither.";
    assert_eq!(told, expected);
    world.seen.release = Chosen::Unknown("zed".into());
    world.settle();
    let condition = world.condition("ConfigWarnings");
    assert_eq!(
        (condition.status, condition.reason.as_str()),
        (ConditionStatus::True, "ReleaseUnknown")
    );
}

mod host_keys;
mod writes;

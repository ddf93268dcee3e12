//! Tests of sets with Metal3: a model of Metal3, and the API server's part in memory.

use api::metal3::{BareMetalHost, ProvisionServer};
use jiff::Timestamp;
use operator_core::plan::Target;

use super::*;
use crate::metal3::bare_metal_host::{UID, host_secret, is_of};
use crate::metal3::writes::of_hosts;
use crate::observe::Metal3Seen;

mod cases;
mod choice;
mod crashes;
mod digests;
mod given_back;
mod inputs;
mod lost;
mod stays;

const IMAGE: &str = "https://images.example.org/edpm.qcow2";
const CHECKSUM: &str = "https://images.example.org/edpm.qcow2.sha256";

/// The API server, Metal3, and an operator that keeps nothing between passes.
struct Metal {
    world: World,
    machines: Option<Vec<Value>>,
    /// The last apply to each machine, whose fields the operator owns.
    owned: BTreeMap<String, Value>,
    /// Secrets that the operator created, by name.
    made: BTreeMap<String, Value>,
    server: Option<ProvisionServer>,
    /// The watched namespaces; empty means all.
    watched: Vec<String>,
    /// How often the provisioning of a machine still fails.
    failing: BTreeMap<String, u32>,
    /// How often each machine was provisioned.
    deployed: BTreeMap<String, u32>,
    version: u64,
}

fn machine(name: &str, changes: &Value) -> Value {
    let mut machine = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": {"name": name, "namespace": "metal", "uid": format!("uid-{name}"),
            "resourceVersion": "1", "labels": {"rack": "one"}},
        "spec": {"online": false},
        "status": {"provisioning": {"state": "available"}, "operationalStatus": "OK",
            "errorType": "", "errorMessage": "", "poweredOn": false,
            "hardware": {"cpu": {"arch": "x86_64", "count": 8, "clockMegahertz": 2400.5},
                "ramMebibytes": 32768, "storage": [{"sizeBytes": 480_000_000_000_i64}]}},
    });
    merge(&mut machine, changes);
    machine
}

impl Metal {
    /// A set of two hosts, and machines of these names.
    fn new(changes: &Value, names: &[&str]) -> Self {
        let mut spec = json!({
            "provisioner": "metal3", "ironic": null, "bmhNamespace": "metal",
            "osImageDeploymentType": "PassThrough", "osContainerImageUrl": IMAGE,
            "osImageChecksum": CHECKSUM,
        });
        merge(&mut spec, changes);
        Self {
            world: World::of(&spec),
            machines: Some(names.iter().map(|it| machine(it, &json!({}))).collect()),
            owned: BTreeMap::new(),
            made: BTreeMap::new(),
            server: None,
            watched: Vec::new(),
            failing: BTreeMap::new(),
            deployed: BTreeMap::new(),
            version: 1,
        }
    }

    /// Two hosts in service.
    fn provisioned() -> Self {
        let mut world = Self::new(&json!({}), &["x", "y"]);
        world.gets_ready();
        world
    }

    /// Changes a machine as another field manager.
    fn change(&mut self, name: &str, changes: &Value) {
        self.version += 1;
        let version = self.version.to_string();
        let machine = self.machine_mut(name);
        merge(machine, changes);
        machine["metadata"]["resourceVersion"] = json!(version);
    }

    fn machine_mut(&mut self, name: &str) -> &mut Value {
        let all = self.machines.as_mut().unwrap().iter_mut();
        all.into_iter().find(|it| it["metadata"]["name"] == name).unwrap()
    }

    fn machine(&self, name: &str) -> &Value {
        let all = self.machines.as_ref().unwrap();
        all.iter().find(|it| it["metadata"]["name"] == name).unwrap()
    }

    fn state(&self, name: &str) -> &str {
        self.machine(name)["status"]["provisioning"]["state"].as_str().unwrap()
    }

    fn seen(&self) -> Option<Observed> {
        let mut seen = Observed::new(Arc::new(self.set.clone()?), &self.secrets, Vec::new());
        let read =
            |it: &Value| Arc::new(serde_json::from_value::<BareMetalHost>(it.clone()).unwrap());
        let secret = |it: &Value| -> k8s_openapi::api::core::v1::Secret {
            serde_json::from_value(it.clone()).unwrap()
        };
        seen.keys = self.keys.clone();
        seen.metal3.namespaces.clone_from(&self.watched);
        let is_seen = |it: &&Value| {
            seen.metal3.is_watched(it["metadata"]["namespace"].as_str().unwrap_or_default())
        };
        let secrets = self.made.values().filter(is_seen).map(secret);
        let (own, others): (Vec<_>, Vec<_>) = secrets.partition(|it| is_of(it, &seen.set));
        let own_names = of_hosts(&seen.set);
        let is_taken = |name: &String| own_names.iter().any(|it| it.name == *name);
        seen.metal3 = Metal3Seen {
            machines: self
                .machines
                .as_ref()
                .map(|it| it.iter().filter(is_seen).map(read).collect()),
            secrets: own.iter().map(host_secret).collect(),
            server: self.server.clone().map(Arc::new),
            taken: others.iter().map(kube::ResourceExt::name_any).filter(is_taken).collect(),
            namespaces: self.watched.clone(),
        };
        Some(seen)
    }

    /// Runs one pass, as the controller's loop does.
    fn pass(&mut self) -> Result<Plan, Died> {
        let Some(seen) = self.seen() else { return Ok(Plan::default()) };
        assert!(orders(&seen, Timestamp::UNIX_EPOCH).is_empty());
        let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
        assert!(plan.steps.iter().all(|it| it.target.kind.kind == "OpenStackBaremetalSet"));
        for step in plan.all() {
            self.life.begin()?;
            self.write(step);
            self.life.end()?;
        }
        Ok(plan)
    }

    fn write(&mut self, step: &Step) {
        let Step { target, write, .. } = step;
        match (target.kind.kind.as_str(), write) {
            ("BareMetalHost", Write::Apply { object, force: true, manager: None }) => {
                self.apply(target, object);
            }
            ("Secret", Write::Apply { object, .. }) => {
                self.log.push(format!("secret {}", target.name));
                if let Some(found) = self.made.get(&target.name) {
                    let uid = |it: &Value| it["metadata"]["labels"][UID].clone();
                    assert_eq!(uid(found), uid(object), "{}", target.name);
                }
                let mut object = object.clone();
                object["metadata"]["uid"] = json!(format!("uid-{}", target.name));
                self.made.insert(target.name.clone(), object);
            }
            ("Secret", Write::Delete { .. }) => {
                self.log.push(format!("delete {}", target.name));
                self.made.remove(&target.name);
            }
            ("OpenStackBaremetalSet", _) => self.world.write(step),
            _ => panic!("{step:?}"),
        }
    }

    /// Server-side apply: fields that the operator no longer applies are removed.
    fn apply(&mut self, target: &Target, object: &Value) {
        let found = self.machine(&target.name);
        for key in ["uid", "resourceVersion"] {
            if found["metadata"][key] != object["metadata"][key] {
                self.log.push(format!("conflict {}", target.name));
                return;
            }
        }
        // Secrets must exist before a machine refers to them.
        for key in ["userData", "networkData", "metaData"] {
            let secret = &object["spec"][key]["name"];
            assert!(
                secret.is_null() || self.made.contains_key(secret.as_str().unwrap()),
                "{secret}"
            );
        }
        let mut wanted = object.clone();
        wanted["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        let before = self.owned.insert(target.name.clone(), wanted.clone());
        let mut patch = before.map_or_else(|| json!({}), |it| removed(&it, &wanted));
        merge(&mut patch, &wanted);
        self.log.push(format!("apply {}", target.name));
        self.change(&target.name, &patch);
        admit(&self.machine(&target.name)["spec"]);
    }

    /// Lets Metal3 act for a while.
    fn work(&mut self) {
        let all = self.machines.as_ref().unwrap().iter();
        let names: Vec<String> =
            all.map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        for name in names {
            if let Some(change) = self.progress(&name) {
                self.change(&name, &json!({ "status": change }));
            }
        }
    }

    fn progress(&mut self, name: &str) -> Option<Value> {
        let machine = self.machine(name).clone();
        let has_image = machine["spec"]["image"]["url"].is_string();
        let to = |state: &str| {
            Some(json!({"provisioning": {"state": state}, "errorType": "", "errorMessage": ""}))
        };
        match (self.state(name), has_image) {
            ("available", true) => to("provisioning").map(|mut it| {
                let n = self.deployed.get(name).copied().unwrap_or_default();
                it["operationHistory"]["provision"]["start"] = json!(format!("provisioning {n}"));
                it
            }),
            ("provisioning" | "provisioned", false) => to("deprovisioning"),
            ("provisioning", true) => {
                if let Some(n) = self.failing.get_mut(name).filter(|it| **it > 0) {
                    *n -= 1;
                    return Some(json!({"errorType": "provisioning error",
                        "errorMessage": "Image provisioning failed: no such image."}));
                }
                self.boot(&machine);
                *self.deployed.entry(name.to_owned()).or_default() += 1;
                let online = machine["spec"]["online"].clone();
                to("provisioned").map(|mut it| {
                    it["poweredOn"] = online;
                    it
                })
            }
            ("deprovisioning", _) => to("available").map(|mut it| {
                it["poweredOn"] = json!(false);
                it
            }),
            _ => None,
        }
    }

    /// Asserts that the Secrets are where Metal3 reads them, in the machine's namespace.
    fn boot(&self, machine: &Value) {
        let set = self.set.as_ref().and_then(|it| it.metadata.uid.as_deref());
        if machine["metadata"]["labels"][UID].as_str() != set {
            // Machines of others have inputs of others.
            return;
        }
        for key in ["userData", "networkData", "metaData"] {
            let secret = &self.made[machine["spec"][key]["name"].as_str().unwrap()];
            assert_eq!(secret["metadata"]["namespace"], machine["metadata"]["namespace"]);
            assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], machine["metadata"]["uid"]);
            assert!(secret["data"][key].is_string(), "{key}");
        }
    }
}

impl Deref for Metal {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Metal {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

impl Provisioned for Metal {
    fn rest(&mut self) -> Result<(), Died> {
        for _ in 0..100 {
            let before = (self.machines.clone(), self.made.clone(), self.set.clone());
            self.pass()?;
            self.pass()?;
            self.work();
            if before == (self.machines.clone(), self.made.clone(), self.set.clone()) {
                return Ok(());
            }
        }
        panic!("no end: {:?}", self.log);
    }
}

/// Asserts what Metal3's webhook requires (baremetal-operator, `Image.GetChecksum` and
/// `validatePowerStatus`).
#[track_caller]
fn admit(spec: &Value) {
    let image = &spec["image"];
    let is_oci = image["url"].as_str().is_some_and(|it| it.starts_with("oci://"));
    assert!(image.is_null() || is_oci || image["checksum"].is_string(), "{spec}");
    assert!(spec["online"] == true || spec["disablePowerOff"] != true, "{spec}");
}

/// Returns null for each field of `before` that is not in `after`.
fn removed(before: &Value, after: &Value) -> Value {
    let mut patch = json!({});
    for (key, old) in before.as_object().into_iter().flatten() {
        match after.get(key) {
            None => patch[key] = Value::Null,
            Some(new) if old.is_object() => patch[key] = removed(old, new),
            Some(_) => {}
        }
    }
    patch
}

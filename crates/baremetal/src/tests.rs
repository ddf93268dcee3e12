//! Tests of sets with Ironic: a model of Ironic, and the API server's part in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use api::baremetal::{BaremetalSet, HostStatus};
use api::conditions::{Condition, ConditionStatus, find};
use ironic::test_model::Model;
use ironic::{Error, State};
use kube::ResourceExt as _;
use operator_core::condition_catalog::{KindConditions, undeclared};
use operator_core::keyed::{KEY_LOST, Keys};
use operator_core::plan::{EventDraft, Plan, Step, Write};
use operator_runtime::source_cache::Values;
use serde_json::{Value, json};
use testkit::crash::{Death, Died, Life, ends_alike};
use testkit::golden::recorded;

use super::backoff::{IronicScope, LastRequest, Refused, RequestBackoff};
use super::decide::decide;
use super::observe::{Machines, Observed, Secrets, Unseen};
use crate::condition_catalog::BAREMETAL_SET;
use crate::ironic::hosts::{Order, orders};

const KINDS: [KindConditions; 1] =
    [KindConditions { name: "OpenStackBaremetalSet", conditions: BAREMETAL_SET }];

mod cases;
mod crashes;
mod digests;
mod inputs;
mod leaving;
mod metal3;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv";

/// What both provisioners' worlds have: the API server's part, and what the operator did.
#[derive(Default)]
struct World {
    set: Option<BaremetalSet>,
    /// Secrets of the set's namespace.
    secrets: Secrets,
    /// The keys for digests of Secret content; empty as in releases without keyed digests.
    keys: Keys,
    life: Life,
    /// Requests to the provisioner and writes to the API server, in order.
    log: Vec<String>,
    notices: Vec<EventDraft>,
}

/// The API server, Ironic, and an operator that keeps only the request backoff between passes.
struct Lab {
    world: World,
    neighbours: Vec<Arc<BaremetalSet>>,
    model: Model,
    /// Why Ironic does not answer.
    unseen: Option<Unseen>,
    version: &'static str,
    /// What the histories of machines have, by UUID.
    causes: BTreeMap<String, String>,
    is_abandoned: bool,
    /// Lost when the operator crashes.
    pauses: RequestBackoff,
    /// Machines for which Ironic has no worker, by UUID.
    busy: BTreeSet<String>,
}

fn place() -> IronicScope {
    IronicScope { namespace: "ns".into(), endpoint: "http://ironic:6385".into() }
}

fn set_of(name: &str, changes: &Value) -> BaremetalSet {
    let mut spec = json!({
        "ctlplaneInterface": "eno1", "deploymentSSHSecret": "keys", "ctlplaneGateway": "192.0.2.1",
        "provisioner": "ironic",
        "ironic": {"endpoint": "http://ironic:6385", "authentication": "none"},
        "baremetalHosts": {
            "a": {"ctlPlaneIP": "192.0.2.10/24"}, "b": {"ctlPlaneIP": "192.0.2.11/24"},
        },
    });
    merge(&mut spec, changes);
    serde_json::from_value(json!({
        "apiVersion": "baremetal.openstack.org/v1beta1",
        "kind": "OpenStackBaremetalSet",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec,
    }))
    .unwrap()
}

/// Applies a merge patch (RFC 7386).
fn merge(into: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else if value.is_object() && into[key].is_object() {
            merge(&mut into[key], value);
        } else {
            into[key] = value.clone();
        }
    }
}

impl Lab {
    /// A set of two hosts, and machines in these states.
    fn new(changes: &Value, states: &[&str]) -> Self {
        let states: Vec<State> = states.iter().map(|it| State::of(it)).collect();
        Self {
            world: World::of(changes),
            neighbours: Vec::new(),
            model: Model::of(&states),
            unseen: None,
            version: "1.66",
            causes: BTreeMap::new(),
            is_abandoned: false,
            pauses: RequestBackoff::default(),
            busy: BTreeSet::new(),
        }
    }

    /// Two hosts in service.
    fn deployed() -> Self {
        let mut lab = Self::new(&json!({}), &["available", "available"]);
        lab.gets_ready();
        lab
    }

    /// Runs the command `openstack baremetal node undeploy`.
    fn undeploy(&mut self, idx: usize) {
        self.model.nodes[idx].provision_state = State::Deleting;
        self.model.nodes[idx].target_provision_state = Some("available".into());
    }

    fn seen(&self) -> Option<Observed> {
        let set = Arc::new(self.set.clone()?);
        let mut seen = Observed::new(set, &self.secrets, self.neighbours.clone());
        if seen.is_of_ironic() {
            let (version, nodes) = (self.version.parse().unwrap(), self.model.nodes.clone());
            let nodes = Arc::new(nodes.into());
            let machines = Machines { version, nodes, causes: self.causes.clone() };
            seen.machines = self.unseen.clone().map_or(Ok(machines), Err);
        }
        seen.is_abandoned = self.is_abandoned;
        seen.keys = self.keys.clone();
        seen.refused = self.pauses.of(&place(), &self.model.nodes);
        Some(seen)
    }

    /// Runs one pass, as the controller's loop does.
    fn pass(&mut self) -> Result<Plan, Died> {
        let Some(mut seen) = self.seen() else { return Ok(Plan::default()) };
        for order in orders(&seen, self.model.now()) {
            let path = order.request.path.rsplit('/').next().unwrap_or_default();
            let path = if path == order.node { "node" } else { path };
            let body = order.request.body.as_ref().map(|it| it.expose()["target"].clone());
            let target = body.iter().find_map(Value::as_str).unwrap_or_default();
            let name = self.title(&order.node);
            self.log.push(format!("{} {name} {path} {target}", order.request.method));
            let outcome = self.call(|lab| lab.answer(&order))?;
            let Order { node, state, .. } = order;
            self.pauses.note(
                &place(),
                vec![LastRequest { node, state, outcome }],
                self.model.now(),
            );
        }
        if let Ok(machines) = &seen.machines {
            seen.refused = self.pauses.of(&place(), &machines.nodes);
        }
        let plan = recorded(decide(&seen, None, self.model.now()));
        for step in plan.all() {
            self.call(|lab| lab.write(step))?;
        }
        Ok(plan)
    }

    fn answer(&mut self, order: &Order) -> Result<(), Error> {
        if self.busy.contains(&order.node) {
            return Err(Error::Busy("no free conductor workers".into()));
        }
        self.model.ask(&order.request)
    }

    fn title(&self, uuid: &str) -> String {
        self.model.nodes.iter().find(|it| it.uuid == uuid).unwrap().title().to_owned()
    }

    /// Makes one external call, at which the operator may crash.
    fn call<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> Result<T, Died> {
        let answer =
            self.life.begin().map(|()| act(self)).and_then(|it| self.life.end().map(|()| it));
        if answer.is_err() {
            self.pauses = RequestBackoff::default();
        }
        answer
    }

    /// Returns the states of the machines, and the host for which each is reserved.
    fn machines(&self) -> Vec<(&str, Option<String>)> {
        let host = |it: &ironic::Node| ironic::host_of(it, "set").map(str::to_owned);
        self.model.nodes.iter().map(|it| (it.provision_state.word(), host(it))).collect()
    }
}

impl World {
    /// A set of two hosts, and the Secret with their keys.
    fn of(changes: &Value) -> Self {
        let mut world = Self { set: Some(set_of("set", changes)), ..Self::default() };
        world.secret("keys", &[("authorized_keys", KEY)]);
        world
    }

    fn secret(&mut self, name: &str, entries: &[(&str, &str)]) {
        let values =
            entries.iter().map(|(key, text)| ((*key).to_owned(), (*text).into())).collect();
        self.secrets.insert(name.to_owned(), Values::new("1", values).into());
    }

    fn edit(&mut self, changes: &Value) {
        let set = self.set.as_mut().unwrap();
        let mut spec = serde_json::to_value(&set.spec).unwrap();
        merge(&mut spec, changes);
        set.spec = serde_json::from_value(spec).unwrap();
        *set.metadata.generation.as_mut().unwrap() += 1;
    }

    fn delete(&mut self) {
        let mut set = serde_json::to_value(self.set.as_ref().unwrap()).unwrap();
        set["metadata"]["deletionTimestamp"] = json!("2026-02-01T00:00:00Z");
        self.set = Some(serde_json::from_value(set).unwrap());
    }

    /// Runs the command that removes the record of a host's machine.
    fn forget(&mut self, host: &str) {
        let status = self.set.as_mut().unwrap().status.as_mut().unwrap();
        status.baremetal_hosts.remove(host).unwrap();
    }

    /// Returns the writes to others than the set, and the requests, since that position of the log.
    fn asked(&self, since: usize) -> Vec<&str> {
        let own = ["hold", "status", "release"];
        self.log[since..].iter().map(String::as_str).filter(|it| !own.contains(it)).collect()
    }

    /// Makes a write to the set.
    fn write(&mut self, step: &Step) {
        let set = self.set.as_mut().unwrap();
        assert_eq!(step.target.name, set.name_any());
        let what = match &step.write {
            Write::AddFinalizer { finalizer } => {
                set.finalizers_mut().push(finalizer.clone());
                "hold"
            }
            Write::RemoveFinalizer { rest, .. } => {
                set.finalizers_mut().clone_from(rest);
                if rest.is_empty() && set.metadata.deletion_timestamp.is_some() {
                    self.set = None;
                }
                "release"
            }
            Write::Status { status, notices, .. } => {
                assert_eq!(undeclared(&KINDS, "OpenStackBaremetalSet", status), [""; 0]);
                set.status = Some(serde_json::from_value(status.clone()).unwrap());
                self.notices.extend(notices.clone());
                "status"
            }
            Write::Apply { .. } | Write::Create { .. } | Write::Delete { .. } => panic!("{step:?}"),
        };
        self.log.push(what.into());
    }

    fn condition(&self, type_: &str) -> Condition {
        let status = self.set.as_ref().unwrap().status.as_ref().unwrap();
        find(&status.conditions, type_).unwrap_or_else(|| panic!("no {type_}")).clone()
    }

    #[track_caller]
    fn says(&self, type_: &str, status: ConditionStatus, reason: &str, parts: &[&str]) {
        let found = self.condition(type_);
        assert_eq!((found.status, found.reason.as_str()), (status, reason), "{}", found.message);
        for part in parts {
            assert!(found.message.contains(part), "{part:?} is not in {:?}", found.message);
        }
    }

    fn host(&self, name: &str) -> Option<HostStatus> {
        self.set.as_ref()?.host_status(name).cloned()
    }
}

impl Deref for Lab {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Lab {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

/// A world with a provisioner.
trait Provisioned: DerefMut<Target = World> {
    /// Runs passes and advances time, until nothing changes any more.
    fn rest(&mut self) -> Result<(), Died>;

    /// Comes to rest with that reason for not being ready.
    #[track_caller]
    fn rests_for(&mut self, reason: &str, parts: &[&str]) {
        self.rest().unwrap();
        self.says("Ready", ConditionStatus::False, reason, parts);
    }

    /// Comes to rest with all hosts in service.
    #[track_caller]
    fn gets_ready(&mut self) {
        self.rest().unwrap();
        self.says("Ready", ConditionStatus::True, "Ready", &[]);
    }
}

impl Provisioned for Lab {
    fn rest(&mut self) -> Result<(), Died> {
        let mut n_quiet = 0;
        for _ in 0..100 {
            let (n_before, nodes) = (self.log.len(), self.model.nodes.clone());
            self.pass()?;
            let is_quiet = self.log.len() == n_before;
            if is_quiet {
                self.model.pass();
            }
            n_quiet = if is_quiet && self.model.nodes == nodes { n_quiet + 1 } else { 0 };
            if n_quiet == 3 {
                return Ok(());
            }
        }
        panic!("no end: {:?}", &self.log[self.log.len() - 20..]);
    }
}

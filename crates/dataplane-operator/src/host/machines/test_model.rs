//! An in-memory model of a baremetal set for tests: the API server, the set's operator, and an
//! owner that crashes.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::baremetal::BaremetalSet;
use api::conditions::Severity;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::plan::{Kind, Step, Write};
use serde_json::{Value, json};
use testkit::conditions::{fault, stated};

use crate::host::machines::Seen;
use crate::host::machines::set::IN_USE;

/// Each host with its address.
pub(crate) const HOSTS: [(&str, &str); 2] = [("n0", "192.0.2.10"), ("n1", "192.0.2.11")];

impl Seen {
    /// Makes a write, if it is one to the set, and returns its verb.
    pub fn take(&mut self, step: &Step, now: Timestamp) -> Option<&'static str> {
        if step.target.kind != Kind::of::<BaremetalSet>() {
            return None;
        }
        Some(match &step.write {
            Write::Apply { object, .. } => {
                self.applied(object);
                "apply"
            }
            Write::Delete { .. } => {
                self.deleted(now);
                "delete"
            }
            Write::RemoveFinalizer { rest, .. } => {
                self.released(rest);
                "release"
            }
            other @ (Write::Create { .. } | Write::Status { .. } | Write::AddFinalizer { .. }) => {
                panic!("{other:?}")
            }
        })
    }

    /// Applies the set, as its only writer.
    fn applied(&mut self, object: &Value) {
        assert!(object["metadata"]["ownerReferences"].is_null());
        let before = self.set.take();
        let generation = before.as_ref().and_then(|it| it.metadata.generation).unwrap_or(0);
        let mut set: BaremetalSet = serde_json::from_value(object.clone()).unwrap();
        set.metadata.uid = Some("set".into());
        set.metadata.generation = Some(generation + 1);
        let others = before.iter().flat_map(|it| it.finalizers()).filter(|it| *it != IN_USE);
        let others: Vec<String> = others.cloned().collect();
        set.finalizers_mut().extend(others);
        set.status = before.and_then(|it| it.status.clone());
        self.set = Some(Arc::new(set));
    }

    /// Deletes the set, which stays until its machines are given back.
    pub fn deleted(&mut self, at: Timestamp) {
        self.set_mut().metadata.deletion_timestamp = Some(Time(at));
    }

    /// Leaves only these finalizers on the set.
    pub fn released(&mut self, rest: &[String]) {
        self.set_mut().metadata.finalizers = Some(rest.to_vec());
    }

    /// Returns the set, which must exist.
    pub fn set_mut(&mut self) -> &mut BaremetalSet {
        Arc::make_mut(self.set.as_mut().unwrap())
    }

    /// Returns the hosts for which the set requests machines.
    pub fn hosts(&self) -> Vec<&str> {
        self.set.iter().flat_map(|it| it.spec.baremetal_hosts.keys()).map(String::as_str).collect()
    }

    /// Reconciles the set, with these status fields for a host's machine.
    pub fn say(&mut self, host: &str, fields: &Value) {
        let set = self.set_mut();
        let mut entry = json!({ "hostname": host, "bmhRef": format!("m-{host}"),
            "instance": format!("i-{host}") });
        entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let observed = set.metadata.generation;
        let status = set.status.get_or_insert_default();
        status.observed_generation = observed;
        status.baremetal_hosts.insert(host.into(), serde_json::from_value(entry).unwrap());
    }

    /// Reconciles the set, with this state of a host's machine.
    pub fn say_state(&mut self, host: &str, state: &str) {
        self.say(host, &json!({ "provisioningState": state }));
    }

    /// Sets a condition that does not hold, and removes all others.
    pub fn complain(&mut self, type_: &str, severity: Severity, message: &str) {
        let status = self.set_mut().status.get_or_insert_default();
        status.conditions = vec![fault(type_, severity, "R", message)];
    }

    /// Adds a condition that holds.
    pub fn hold(&mut self, type_: &str) {
        let status = self.set_mut().status.get_or_insert_default();
        status.conditions.push(stated(type_, "True", "R", ""));
    }

    /// Gives back the machines that are no longer requested. A set that is being deleted gives back
    /// all, once no other finalizer holds it.
    pub fn give_back(&mut self) {
        let set = self.set_mut();
        let observed = set.metadata.generation;
        let asked = set.spec.baremetal_hosts.clone();
        let is_gone = set.metadata.deletion_timestamp.is_some() && set.finalizers().is_empty();
        let status = set.status.get_or_insert_default();
        status.observed_generation = observed;
        status.baremetal_hosts.retain(|it, _| asked.contains_key(it));
        if is_gone {
            self.set = None;
        }
    }

    /// Both machines run, and their ssh servers answer.
    pub fn run(&mut self) {
        for (host, address) in HOSTS {
            self.say_state(host, "active");
            self.answer(address);
        }
    }

    /// Makes the ssh server of an address answer.
    pub fn answer(&mut self, address: &str) {
        self.answering.insert(format!("{address}:22"));
    }
}

/// Ends the first open look at a host with this result, and returns whether there was one; `guests` is
/// what the play says of them.
pub(crate) fn end_look(
    looks: &mut [Arc<AnsibleEe>],
    (result, guests): (&str, &str),
    now: Timestamp,
) -> bool {
    let is_open =
        |it: &&mut Arc<AnsibleEe>| it.status.as_ref().is_none_or(|it| it.completion_time.is_none());
    let Some(open) = looks.iter_mut().find(is_open) else { return false };
    let host = open.spec.hosts[0].name.clone();
    let failures = json!([{
        "host": host, "path": "/runner/project/playbook.yaml:20",
        "task": "The host must have no guests", "message": guests,
    }]);
    let status = json!({
        "JobStatus": if result == "Ok" { "Succeeded" } else { "Failed" },
        "hosts": [{ "name": host, "result": result }],
        "failures": if guests.is_empty() { json!([]) } else { failures },
        "completionTime": now.to_string(),
    });
    Arc::make_mut(open).status = Some(serde_json::from_value(status).unwrap());
    true
}

/// Ends all open looks, which find no guests, and returns whether there were any.
pub(crate) fn end_looks(looks: &mut [Arc<AnsibleEe>], now: Timestamp) -> bool {
    let mut end = || end_look(looks, ("Ok", ""), now);
    let were_any = end();
    while end() {}
    were_any
}

/// The operator of a set. It deploys requested machines and takes back others, one state per step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provisioner {
    /// How often each host was `deployed` or `given back`, as `word host`.
    pub did: BTreeMap<String, u32>,
}

impl Provisioner {
    /// Advances each machine by one state, and returns whether anything changed.
    ///
    /// Nothing happens to a set that is being deleted while another finalizer holds it.
    pub(crate) fn act(&mut self, seen: &mut Seen) -> bool {
        let Some(set) = seen.set.clone() else { return false };
        let is_deleted = set.metadata.deletion_timestamp.is_some();
        if is_deleted && !set.finalizers().is_empty() {
            return false;
        }
        let asked = &set.spec.baremetal_hosts;
        let status = set.status.clone().unwrap_or_default();
        let is_left = |it: &String| is_deleted || !asked.contains_key(it);
        let mut has_acted = status.observed_generation != set.metadata.generation;
        for (host, host_status) in status.baremetal_hosts.iter().filter(|(it, _)| is_left(it)) {
            has_acted = true;
            if host_status.annotated_for_deletion {
                self.note("given back", host);
            } else {
                let fields = json!({ "provisioningState": "active", "annotatedForDeletion": true });
                seen.say(host, &fields);
            }
        }
        for host in asked.keys().filter(|_| !is_deleted) {
            let before = status.baremetal_hosts.get(host).map(|it| it.provisioning_state.as_str());
            match before {
                Some("active") => continue,
                Some(_) => seen.say_state(host, "active"),
                None => {
                    self.note("deployed", host);
                    seen.say_state(host, "deploying");
                }
            }
            has_acted = true;
        }
        let is_back = |host: &String| {
            is_left(host)
                && status.baremetal_hosts.get(host).is_none_or(|it| it.annotated_for_deletion)
        };
        let all: Vec<String> = status.baremetal_hosts.keys().cloned().collect();
        let now = seen.set_mut();
        now.status.get_or_insert_default().observed_generation = now.metadata.generation;
        now.status.get_or_insert_default().baremetal_hosts.retain(|it, _| !is_back(it));
        if is_deleted && all.iter().all(is_back) {
            seen.set = None;
            has_acted = true;
        }
        has_acted
    }

    fn note(&mut self, word: &str, host: &str) {
        *self.did.entry(format!("{word} {host}")).or_default() += 1;
    }
}

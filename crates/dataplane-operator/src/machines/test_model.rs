//! A set of machines in memory, for tests: the API server's part of it, and its operator's.

use std::sync::Arc;

use common::api::baremetal::BaremetalSet;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::machines::Seen;
use crate::machines::set::IN_USE;

impl Seen {
    /// The set after an apply by its only writer.
    pub fn applied(&mut self, object: &Value) {
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

    /// The set is deleted, and stays until its machines were given back.
    pub fn deleted(&mut self, at: Timestamp) {
        self.set_mut().metadata.deletion_timestamp = Some(Time(at));
    }

    /// Only these finalizers are left on the set.
    pub fn released(&mut self, rest: &[String]) {
        self.set_mut().metadata.finalizers = Some(rest.to_vec());
    }

    /// The set, which is there.
    pub fn set_mut(&mut self) -> &mut BaremetalSet {
        Arc::make_mut(self.set.as_mut().unwrap())
    }

    /// The hosts for which the set is to have machines.
    pub fn hosts(&self) -> Vec<&str> {
        self.set.iter().flat_map(|it| it.spec.baremetal_hosts.keys()).map(String::as_str).collect()
    }

    /// The operator of the set has looked at it, and says this of a host's machine.
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

    /// The same of its state alone.
    pub fn say_state(&mut self, host: &str, state: &str) {
        self.say(host, &json!({ "provisioningState": state }));
    }

    /// A condition of the set that does not hold, and no other.
    pub fn complain(&mut self, type_: &str, severity: &str, message: &str) {
        let condition = json!({ "type": type_, "status": "False", "severity": severity,
            "reason": "R", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let status = self.set_mut().status.get_or_insert_default();
        status.conditions = vec![serde_json::from_value(condition).unwrap()];
    }

    /// A condition of the set holds beside those that do not.
    pub fn hold(&mut self, type_: &str) {
        let condition = json!({ "type": type_, "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let status = self.set_mut().status.get_or_insert_default();
        status.conditions.push(serde_json::from_value(condition).unwrap());
    }

    /// The operator of the set has given back what is asked for no more: of one that is deleted,
    /// everything, once nobody else holds it.
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

    /// The ssh server of an address answers.
    pub fn answer(&mut self, address: &str) {
        self.answering.insert(format!("{address}:22"));
    }
}

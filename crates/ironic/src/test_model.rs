//! A model of Ironic for property tests, with the rules of release 39 that the steps rely on.
//!
//! `instance_uuid` is set only if there is none, and on only one machine; machines in transition
//! reject changes; each verb is accepted in the states of Ironic's state machine.
#![allow(
    clippy::panic,
    clippy::unwrap_in_result,
    clippy::unwrap_used,
    reason = "a request that it does not know is a failed test"
)]

use std::collections::BTreeMap;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::Error;
use crate::node::Node;
use crate::request::Request;
use crate::state::State;

/// Machines, and what was done to them.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The machines.
    pub nodes: Vec<Node>,
    /// How many of the next deployments of each machine fail, by UUID.
    pub failing: BTreeMap<String, u32>,
    /// The number of accepted deployments, by instance.
    pub deployed: BTreeMap<String, u32>,
    /// The network data of the machines' ramdisks, by UUID.
    pub networks: BTreeMap<String, Value>,
    /// The network data that a machine had when its last deployment was accepted, by instance.
    pub deployed_over: BTreeMap<String, Option<Value>>,
    seconds: i64,
}

impl Model {
    /// Creates machines in these states, named `m0`, `m1`, …, with all else in order.
    pub fn of(states: &[State]) -> Self {
        let nodes = states.iter().enumerate().map(|(idx, state)| Node {
            uuid: format!("00000000-0000-4000-8000-{idx:012}"),
            name: Some(format!("m{idx}")),
            resource_class: Some("baremetal".into()),
            provision_state: state.clone(),
            power_state: Some("power off".into()),
            provision_updated_at: Some("2026-11-22T10:00:00+00:00".into()),
            ..Node::default()
        });
        Self { nodes: nodes.collect(), seconds: 1_800_000_000, ..Self::default() }
    }

    /// Returns the time, which only [`Self::pass`] changes.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_second(self.seconds).unwrap()
    }

    /// Lets fourteen minutes pass: all transitions end.
    pub fn pass(&mut self) {
        self.seconds += 840;
        let now = self.now().to_string();
        for node in &mut self.nodes {
            let fails = self.failing.entry(node.uuid.clone()).or_default();
            let Some(ended) = ended(node, fails) else { continue };
            if ended == State::Active {
                node.power_state = Some("power on".into());
            }
            if node.provision_state == State::Deleting {
                node.instance_uuid = None;
                node.instance_info.clear();
            }
            let goes_on = ended == State::Cleaning;
            node.provision_state = ended;
            node.target_provision_state = goes_on.then(|| "available".into());
            node.provision_updated_at = Some(now.clone());
        }
    }

    /// Executes a request, or rejects it as Ironic does.
    pub fn ask(&mut self, request: &Request) -> Result<(), Error> {
        let path: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        let idx = self.nodes.iter().position(|it| it.uuid == path[2]).ok_or(Error::NotFound)?;
        let body = request.body.as_ref().unwrap().expose().clone();
        match (&request.method, &path[3..]) {
            (&Method::PATCH, []) => self.patch(idx, &body),
            (&Method::PUT, ["states", "provision"]) => {
                self.provision(idx, body["target"].as_str().unwrap())
            }
            (&Method::PUT, ["states", "power"]) => {
                assert_eq!(body, json!({"target": "power on"}));
                self.nodes[idx].power_state = Some("power on".into());
                Ok(())
            }
            other => panic!("{other:?}"),
        }
    }

    fn patch(&mut self, idx: usize, patch: &Value) -> Result<(), Error> {
        let node = &self.nodes[idx];
        if node.target_provision_state.is_some() && node.provision_state != State::DeployFailed {
            return Err(Error::Conflict("a state transition is in progress".into()));
        }
        let mut changed = node.clone();
        let mut network = self.networks.get(&node.uuid).cloned();
        for op in patch.as_array().unwrap() {
            match (op["op"].as_str().unwrap(), op["path"].as_str().unwrap()) {
                ("add", "/instance_info") => {
                    changed.instance_info.clone_from(op["value"].as_object().unwrap());
                }
                ("add", "/instance_uuid") => {
                    let instance = op["value"].as_str().unwrap();
                    let is_others = node.instance_uuid.as_ref().is_some_and(|it| it != instance);
                    let is_elsewhere =
                        self.nodes.iter().any(|it| it.uuid != node.uuid && it.is_of(instance));
                    if is_others || is_elsewhere {
                        return Err(Error::Conflict("is associated".into()));
                    }
                    changed.instance_uuid = Some(instance.into());
                }
                ("remove", "/instance_uuid") => changed.instance_uuid = None,
                ("add", "/network_data") => network = Some(op["value"].clone()),
                ("remove", "/network_data") => network = None,
                ("add", "/extra/edpm_ramdisk") => {
                    changed.extra.insert("edpm_ramdisk".into(), op["value"].clone());
                }
                ("remove", "/extra/edpm_ramdisk") => {
                    changed.extra.remove("edpm_ramdisk").unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
        self.networks.remove(&changed.uuid);
        self.networks.extend(network.map(|it| (changed.uuid.clone(), it)));
        self.nodes[idx] = changed;
        Ok(())
    }

    fn provision(&mut self, idx: usize, target: &str) -> Result<(), Error> {
        let now = self.now().to_string();
        let node = &mut self.nodes[idx];
        let (state, end) = match (target, &node.provision_state) {
            ("manage", State::Enroll) => (State::Verifying, "manageable"),
            ("provide", State::Manageable) => (State::Cleaning, "available"),
            ("adopt", State::Manageable | State::AdoptFailed) => (State::Adopting, "active"),
            ("active", State::Available | State::DeployFailed) => (State::Deploying, "active"),
            (
                "deleted",
                State::Active | State::DeployFailed | State::WaitCallBack | State::Error,
            ) => (State::Deleting, "available"),
            _ => return Err(Error::Refused(format!("not in state {}", node.provision_state))),
        };
        if target == "active" {
            if node.maintenance {
                return Err(Error::Refused("maintenance".into()));
            }
            // As Ironic does when it converts to a raw image.
            if node.instance_info.contains_key("image_source") {
                let checksum =
                    [("image_checksum", Value::Null), ("image_os_hash_value", json!("raw"))];
                node.instance_info.extend(checksum.map(|(key, value)| (key.to_owned(), value)));
            }
            let instance = node.instance_uuid.clone().unwrap();
            *self.deployed.entry(instance.clone()).or_default() += 1;
            self.deployed_over.insert(instance, self.networks.get(&node.uuid).cloned());
        }
        node.provision_state = state;
        node.target_provision_state = Some(end.into());
        node.provision_updated_at = Some(now);
        Ok(())
    }
}

/// Returns the state in which a machine's transition ends; `fails` counts the remaining failures.
fn ended(node: &Node, fails: &mut u32) -> Option<State> {
    match node.provision_state.word() {
        "verifying" => Some(State::Manageable),
        "cleaning" => Some(State::Available),
        "deploying" if *fails > 0 => {
            *fails -= 1;
            Some(State::DeployFailed)
        }
        "deploying" | "adopting" => Some(State::Active),
        "deleting" => Some(State::Cleaning),
        _ => None,
    }
}

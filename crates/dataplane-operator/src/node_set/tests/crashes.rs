//! The operator crashes before and after each of its writes for a node set's machines: no host is
//! requested twice, none loses its machine while it is needed, nothing stays deployed on one that was
//! installed anew, and the result is the same.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::host::machines::Seen;
use crate::host::machines::set::IN_USE;
use crate::host::machines::test_model::HOSTS;
use crate::host::machines::test_story::{Stage, hosts as requested_at, play};

impl World {
    fn is_gone(&self) -> bool {
        let set = &self.seen.set;
        set.metadata.deletion_timestamp.is_some() && set.finalizers().is_empty()
    }
}

impl Stage for World {
    const CHAPTERS: usize = 6;

    fn begin() -> Self {
        Self::bare_metal()
    }

    fn story(&mut self, chapter: usize) {
        match chapter {
            0 => {}
            1 => {
                self.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]);
            }
            2 => {
                self.edit("/nodes", json!({ "n0": { "ansible": { "ansibleHost": HOSTS[0].1 } } }));
            }
            3 => {
                self.end("d", true, ["c1", "s1"]);
            }
            4 => {
                self.now += SignedDuration::from_hours(1);
                let again = json!({ "provisioningState": "active", "instance": "i-2" });
                self.seen.machines.say("n0", &again);
            }
            _ => {
                let at = Some(Time(self.now));
                Arc::make_mut(&mut self.seen.set).metadata.deletion_timestamp = at;
            }
        }
    }

    fn steps(&mut self) -> Vec<Step> {
        if self.is_gone() {
            return Vec::new();
        }
        let plan = self.plan();
        let of_nodes = std::mem::take(&mut self.node_steps).into_iter();
        of_nodes.chain(plan.all().cloned()).collect()
    }

    fn make(&mut self, step: &Step) {
        if step.target.kind == Kind::of::<Node>() {
            self.take_node(step);
        } else {
            self.take(step);
        }
    }

    fn check(&self, requested: &BTreeMap<String, u32>, step: &Step) {
        let (seen, hosts) = (&self.seen, self.seen.machines.hosts());
        let title = || format!("{:?} of {}", step.write, step.target.name);
        let is_busy = seen.is_in_use();
        let is_deleted = seen.set.metadata.deletion_timestamp.is_some();
        for name in requested.keys() {
            let is_needed = is_busy || !is_deleted && seen.set.spec.nodes.contains_key(name);
            let has = hosts.contains(&name.as_str());
            assert!(has || !is_needed, "{name} was left out by {}", title());
        }
        let is_last = seen.machines.set.is_none();
        assert!(is_last || !self.is_gone(), "the node set went before its machines by {}", title());
    }

    fn end_runs(&mut self) -> bool {
        self.end_looks()
    }

    fn machines(&mut self) -> &mut Seen {
        &mut self.seen.machines
    }

    fn state(&self) -> Value {
        let seen = &self.seen;
        json!({
            "status": (!self.is_gone()).then_some(&seen.set.status),
            "nodes": seen.nodes.all().map(|(_, it)| json!(it.status)).collect::<Vec<_>>(),
            "held": seen.set.finalizers(),
            "inventory": seen.inventory.as_ref().map(|it| &it.hash),
        })
    }
}

#[test]
fn wherever_the_operator_dies_each_host_gets_one_machine_and_keeps_it_as_long_as_it_is_needed() {
    let ends = play::<World>(10);
    for end in &ends[..3] {
        assert_eq!(requested_at(end), ["n0", "n1"]);
        assert_eq!(end["set"][1], json!([IN_USE]));
    }
    let ready = |host: &str| ends[0]["status"]["machines"][host]["ready"].clone();
    assert_eq!((ready("n0"), ready("n1")), (json!(true), json!(true)));
    assert_eq!(requested_at(&ends[3]), ["n0"]);
    let left = |chapter: usize| {
        let node = &ends[chapter]["nodes"][0];
        ["deployed", "deployedConfigHash", "deployment", "services"].map(|it| !node[it].is_null())
    };
    assert_eq!((left(3), left(4)), ([true; 4], [false; 4]), "it was installed anew");
    assert_eq!((&ends[5]["held"], &ends[5]["inventory"]), (&json!([]), &Value::Null));
}

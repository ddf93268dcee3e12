//! The operator dies before and after each of its writes about machines: no host is requested
//! twice, none loses a machine that its node needs, and the final state is the same.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::machines::OTHER;
use super::*;
use crate::host::machines::set::IN_USE;
use crate::host::machines::test_story::{Stage, hosts, play};

impl Stage for World {
    const CHAPTERS: usize = 5;

    fn begin() -> Self {
        let mut world = Self::bare();
        for node in ["n0", "n1"] {
            world.finalize(node, &[]);
        }
        world.change("DataPlaneRole", "compute", |it| it.finalizers = None);
        world
    }

    fn story(&mut self, chapter: usize) {
        let at = Time(self.now);
        match chapter {
            0 => {}
            1 => {
                self.finalize("n1", &[INVENTORY_FINALIZER, OTHER]);
                self.remove("n1");
            }
            2 => {
                self.finalize("n1", &[INVENTORY_FINALIZER]);
            }
            3 => self.change("DataPlaneRole", "compute", |it| it.deletion_timestamp = Some(at)),
            _ => {
                self.remove("n0");
            }
        }
    }

    fn steps(&mut self) -> Vec<Step> {
        if self.seen.role.is_none() && self.seen.nodes.is_empty() {
            return Vec::new();
        }
        let plan = recorded(decide::decide(&self.seen, None, self.now));
        plan.all().cloned().collect()
    }

    fn make(&mut self, step: &Step) {
        self.take(std::slice::from_ref(step));
    }

    fn check(&self, requested: &BTreeMap<String, u32>, step: &Step) {
        let (seen, hosts) = (&self.seen, self.seen.machines.hosts());
        let title = || format!("{:?} of {}", step.write, step.target.name);
        for name in requested.keys() {
            let node = seen.nodes.iter().find(|it| it.name_any() == *name);
            let is_needed = node.is_some_and(|it| {
                let is_others = it.finalizers().iter().any(|it| it == OTHER);
                it.metadata.deletion_timestamp.is_none() || is_others
            });
            let has = hosts.contains(&name.as_str());
            let is_of = |it: &AnsibleEe| it.spec.hosts[0].name == *name && !is_open(it);
            let was_looked_at = seen.looks.iter().any(|it| is_of(it));
            assert!(has || was_looked_at, "{name} may have had guests at {}", title());
            assert!(has || !is_needed, "{name} was left out by {}", title());
            let set = seen.machines.set.as_ref().and_then(|it| it.status.as_ref());
            let is_known = has || set.is_some_and(|it| it.baremetal_hosts.contains_key(name));
            assert!(!is_known || node.is_some(), "{name} went before its machine by {}", title());
        }
        let is_last = seen.machines.set.is_none();
        assert!(is_last || seen.role.is_some(), "the role went first by {}", title());
    }

    fn end_runs(&mut self) -> bool {
        let were_any = self.seen.runs.iter().any(|it| is_open(it));
        self.finish(&[]);
        self.end_looks() || were_any
    }

    fn machines(&mut self) -> &mut Seen {
        &mut self.seen.machines
    }

    fn state(&self) -> Value {
        let seen = &self.seen;
        let nodes = seen.nodes.iter();
        let mut runs = runs(&self.writes);
        runs.retain(|it| !it.starts_with("run last-look"));
        json!({
            "nodes": nodes.map(|it| json!([it.name_any(), it.status, it.finalizers()]))
                .collect::<Vec<_>>(),
            "role": seen.role.as_ref().map(|it| json!([it.status, it.finalizers()])),
            "inventories": seen.inventories.keys().collect::<Vec<_>>(),
            "runs": runs,
        })
    }
}

#[test]
fn wherever_the_operator_dies_each_node_gets_one_machine_and_keeps_it_as_long_as_it_needs_it() {
    let ends = play::<World>(20);
    assert_eq!(hosts(&ends[0]), ["n0", "n1"]);
    assert_eq!(ends[0]["runs"], json!(["run install-os on n0,n1", "run run-os on n0,n1"]));
    assert_eq!(ends[0]["set"][1], json!([IN_USE]));
    assert_eq!(hosts(&ends[1]), ["n0", "n1"]);
    assert_eq!((hosts(&ends[2]), hosts(&ends[3])), (vec!["n0"], vec!["n0"]));
    let last = &ends[4];
    assert_eq!((&last["nodes"], &last["role"]), (&json!([]), &Value::Null));
    assert_eq!((&last["inventories"], &last["runs"]), (&json!([]), &ends[0]["runs"]));
}

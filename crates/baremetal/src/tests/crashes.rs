//! The operator crashes before and after each of its calls to Ironic and to the API server: one
//! machine for each host, one deployment of each, the same result.

use super::*;

/// Number of chapters of a story.
const CHAPTERS: usize = 3;

/// A world whose end can be compared.
pub(super) trait Compared: Provisioned {
    /// Returns what must be the same at the end of each chapter, wherever the operator crashed.
    fn end(&self) -> Value;
}

/// Two hosts are added, one is removed, the set is deleted, with one crash, after which another
/// operator continues. Returns the results of these chapters, and the number of calls.
pub(super) fn ends<W: Compared>(mut world: W, death: Option<Death>) -> (Vec<Value>, usize) {
    world.life.death = death;
    let mut ends = Vec::new();
    for chapter in 0..CHAPTERS {
        // Each begins when the one before has settled.
        match chapter {
            0 => {}
            1 => world.edit(&json!({"baremetalHosts": {"a": null}})),
            _ => world.delete(),
        }
        while world.rest().is_err() {
            world.life.death = None;
        }
        ends.push(world.end());
    }
    (ends, world.life.n_calls)
}

/// One machine must be provided first, and the other one's deployment fails once; that one's
/// ramdisk has a network of its own.
fn lab() -> Lab {
    let changes = json!({"ironic": {"provide": true}, "baremetalHosts": {
        "a": {"preprovisioningNetworkDataName": "ramdisk"}}});
    let mut lab = Lab::new(&changes, &["available", "enroll", "available"]);
    lab.secret("ramdisk", &[("networkData", "{links: [{id: n}], networks: [{link: n}]}")]);
    let uuid = lab.model.nodes[0].uuid.clone();
    lab.model.failing.insert(uuid, 1);
    lab
}

impl Compared for Lab {
    fn end(&self) -> Value {
        let mut status =
            serde_json::to_value(self.set.as_ref().and_then(|it| it.status.clone())).unwrap();
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"].take();
        }
        let machine = |it: &ironic::Node| {
            let network = self.model.networks.get(&it.uuid);
            let state = it.provision_state.word();
            json!([it.title(), state, it.instance_uuid, it.power_state, network])
        };
        let machines: Vec<Value> = self.model.nodes.iter().map(machine).collect();
        let finalizers = self.set.as_ref().map(|it| it.finalizers().to_vec());
        let deployed = &self.model.deployed;
        json!({"status": status, "machines": machines, "deployed": deployed, "held": finalizers})
    }
}

#[test]
fn wherever_the_operator_dies_each_host_gets_one_machine_and_the_end_is_the_same() {
    let (expected, n_calls) = ends(lab(), None);
    // The one intended failure was counted.
    let deployed = expected[0]["deployed"].as_object().unwrap();
    let mut counts: Vec<u64> = deployed.values().map(|it| it.as_u64().unwrap()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 2]);
    assert_eq!(expected[2]["held"], Value::Null);
    assert!(n_calls > 20, "{n_calls}");
    ends_alike(&expected, n_calls, |it| ends(lab(), Some(it)).0);
}

/// A host that Ironic must take over, one that it knows to be running, and one that is deployed;
/// all of them are to keep running.
fn retaining() -> Lab {
    let adopted = |node: &str| json!({"adopt": true, "machine": {"node": node}});
    let hosts = json!({"a": adopted("m0"), "c": adopted("m2")});
    let changes = json!({"deprovisionPolicy": "Retain", "baremetalHosts": hosts});
    let mut lab = Lab::new(&changes, &["manageable", "available", "active"]);
    lab.model.nodes[2].power_state = Some("power on".into());
    lab
}

#[test]
fn wherever_the_operator_dies_what_is_adopted_and_retained_is_never_deployed_and_runs_on() {
    let (expected, n_calls) = ends(retaining(), None);
    let runs_on = |chapter: usize, idx: usize, is_reserved: bool| {
        let machine = &expected[chapter]["machines"][idx];
        assert_eq!((&machine[1], &machine[3]), (&json!("active"), &json!("power on")));
        assert_eq!(machine[2] != Value::Null, is_reserved, "{chapter}: {machine}");
    };
    for (chapter, reserved) in
        [[true, true, true], [false, true, true], [false; 3]].into_iter().enumerate()
    {
        (0..3).for_each(|idx| runs_on(chapter, idx, reserved[idx]));
        // Only the free one: the others were already running.
        assert_eq!(expected[chapter]["deployed"].as_object().unwrap().len(), 1);
    }
    let state =
        |host: &str| expected[0]["status"]["baremetalHosts"][host]["provisioningState"].clone();
    assert_eq!([state("a"), state("b"), state("c")], ["active", "active", "active"]);
    let last = &expected[2];
    assert_eq!((&last["status"]["baremetalHosts"], &last["held"]), (&Value::Null, &Value::Null));
    assert!(n_calls > 15, "{n_calls}");
    ends_alike(&expected, n_calls, |it| ends(retaining(), Some(it)).0);
}

/// A user undeploys a running machine, and the operator crashes at one of its later calls. Returns
/// the number of calls.
fn deployed_again(death: Option<Death>) -> usize {
    let mut lab = Lab::new(&json!({"baremetalHosts": {"b": null}}), &["available"]);
    lab.rest().unwrap();
    let before = lab.host("a").unwrap().instance;
    lab.undeploy(0);
    (lab.life.n_calls, lab.life.death) = (0, death);
    while lab.rest().is_err() {
        lab.life.death = None;
    }
    let after = lab.host("a").unwrap();
    assert_eq!(after.provisioning_state, "active", "{death:?}");
    assert_ne!(after.instance, before, "{death:?}");
    assert_eq!(after.instance, ironic::deployment(&lab.model.nodes[0]), "{death:?}");
    assert_eq!(lab.model.deployed.values().sum::<u32>(), 2, "{death:?}");
    lab.life.n_calls
}

#[test]
fn wherever_the_operator_dies_a_machine_that_was_undeployed_is_one_new_instance() {
    let n_calls = deployed_again(None);
    assert!(n_calls > 4, "{n_calls}");
    for call in 0..n_calls {
        deployed_again(Some(Death { call, is_after: false }));
        deployed_again(Some(Death { call, is_after: true }));
    }
}

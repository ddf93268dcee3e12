//! Which machines are taken, and the reported reasons if none can be.

use super::*;

fn none(changes: &Value, machines: &[(&str, Value)], part: &str) {
    let mut world = Metal::new(changes, &[]);
    world.machines = Some(machines.iter().map(|(name, it)| machine(name, it)).collect());
    world.edit(&json!({"baremetalHosts": {"b": null}}));
    world.rests_for("NoMachine", &["Host a: ", part]);
    assert!(world.host("a").unwrap().error.unwrap().contains(part));
    assert!(world.made.is_empty() && world.asked(0).is_empty(), "{:?}", world.log);
}

#[test]
fn what_excluded_how_many_is_told() {
    none(&json!({}), &[], "there is no BareMetalHost in namespace metal");
    let far = json!({"metadata": {"namespace": "far"}});
    none(&json!({}), &[("x", far)], "there is no BareMetalHost in namespace metal");
    let machines = [
        ("u", json!({"status": {"provisioning": {"state": "inspecting"}}})),
        ("v", json!({"metadata": {"labels": {"rack": "two"}}})),
        ("w", json!({"spec": {"consumerRef": {"kind": "Machine", "name": "m", "namespace": "n"}}})),
        ("x", json!({"spec": {"image": {"url": "x"}}})),
        ("y", json!({"spec": {"externallyProvisioned": true}})),
        ("z", json!({"status": {"errorType": "registration error", "errorMessage": "x"}})),
    ];
    none(
        &json!({"bmhLabelSelector": {"rack": "one"}}),
        &machines,
        "none of 6 BareMetalHosts in namespace metal is suitable: 1 without label rack=one, \
         1 provisioned by others, 2 used by others, 1 with an error, 1 in state inspecting",
    );
    let detached = json!({"status": {"operationalStatus": "detached"}});
    none(&json!({}), &[("x", detached)], "1 detached");
    for how in ["detached", "paused"] {
        let key = format!("baremetalhost.metal3.io/{how}");
        let alone = json!({"metadata": {"annotations": {key: ""}}});
        none(&json!({}), &[("x", alone)], &format!("1 {how}"));
    }
}

#[test]
fn hardware_that_is_asked_for_must_be_there() {
    let asked = |reqs: &Value, part: &str| {
        none(&json!({"hardwareReqs": reqs}), &[("x", json!({}))], part);
    };
    asked(&json!({"cpuReqs": {"arch": "ppc64le"}}), "1 with an architecture other than ppc64le");
    asked(&json!({"cpuReqs": {"countReq": {"count": 9}}}), "1 with fewer than 9 CPUs");
    let exact = json!({"cpuReqs": {"countReq": {"count": 7, "exactMatch": true}}});
    asked(&exact, "1 with other than 7 CPUs");
    asked(&json!({"cpuReqs": {"mhzReq": {"mhz": 3000}}}), "1 with fewer than 3000 MHz");
    asked(&json!({"memReqs": {"gbReq": {"gb": 33}}}), "1 with fewer than 33 GB of memory");
    asked(&json!({"diskReqs": {"gbReq": {"gb": 481}}}), "1 without such a disk");
    let turning = json!({"diskReqs": {"ssdReq": {"ssd": false, "exactMatch": true}}});
    asked(&turning, "1 without such a disk");
    let blank = json!({"status": {"hardware": null}});
    let reqs = json!({"hardwareReqs": {"memReqs": {"gbReq": {"gb": 1}}}});
    none(&reqs, &[("x", blank)], "1 without details of its hardware");
    let good = json!({"hardwareReqs": {
        "cpuReqs": {"arch": "x86_64", "countReq": {"count": 8, "exactMatch": true}},
        "memReqs": {"gbReq": {"gb": 32}}, "diskReqs": {"gbReq": {"gb": 480}, "ssdReq": {"ssd": true}},
    }});
    let mut world = Metal::new(&good, &["x", "y"]);
    world.gets_ready();
}

#[test]
fn a_host_that_could_take_any_machine_leaves_the_only_one_that_fits_to_another() {
    let own = json!({"baremetalHosts": {"b": {"bmhLabelSelector": {"rack": "two"}}}});
    let mut world = Metal::new(&own, &["x", "y"]);
    world.change("x", &json!({"metadata": {"labels": {"rack": "two"}}}));
    world.rest().unwrap();
    assert_eq!(world.host("a").unwrap().bmh_ref, "metal/y");
    assert_eq!(world.host("b").unwrap().bmh_ref, "metal/x");
}

#[test]
fn of_two_sets_that_want_one_machine_one_gets_it() {
    let mut world = Metal::new(&json!({"baremetalHosts": {"b": null}}), &["x", "y"]);
    for _ in 0..3 {
        world.pass().unwrap();
    }
    let mut late = Metal::new(&json!({"baremetalHosts": {"b": null}}), &["x", "y"]);
    for _ in 0..2 {
        late.pass().unwrap();
    }
    // It decides by its observation from before the first one's write.
    let plan = recorded(decide(&late.seen().unwrap(), None, Timestamp::UNIX_EPOCH));
    late.machines.clone_from(&world.machines);
    late.version = world.version;
    for step in plan.all().filter(|it| it.target.kind.kind == "BareMetalHost") {
        late.write(step);
    }
    assert_eq!(late.log.last().unwrap(), "conflict x");
    late.set.as_mut().unwrap().metadata.uid = Some("late".into());
    late.set.as_mut().unwrap().metadata.name = Some("late".into());
    late.rest().unwrap();
    assert_eq!(late.host("a").unwrap().bmh_ref, "metal/y");
}

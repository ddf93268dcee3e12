//! Machines that stay as they are, and those that are deployed again.

use super::*;

#[test]
fn a_machine_that_is_provisioned_anew_is_another_installation() {
    let mut world = Metal::provisioned();
    let before = world.host("a").unwrap();
    assert!(before.installed && before.instance.is_some(), "{before:?}");
    world.change("x", &json!({"spec": {"image": null}}));
    world.work();
    world.pass().unwrap();
    let meanwhile = world.host("a").unwrap();
    assert_eq!(meanwhile.provisioning_state, "deprovisioning");
    assert!(meanwhile.installed, "it may run on if that fails");
    world.rest().unwrap();
    assert_eq!(world.deployed["x"], 2);
    let after = world.host("a").unwrap();
    assert_eq!(after.bmh_ref, before.bmh_ref);
    assert_ne!(after.instance, before.instance);
    assert_eq!(world.host("b").unwrap().instance, Some("provisioning 0".into()));
}

#[test]
fn a_machine_that_runs_stays_the_same_installation_when_its_history_is_lost() {
    let mut world = Metal::provisioned();
    let before = world.host("a").unwrap();
    assert!(before.instance.is_some());
    world.change("x", &json!({"status": {"operationHistory": null}}));
    world.rest().unwrap();
    assert_eq!(world.host("a").unwrap(), before);
}

#[test]
fn a_set_that_is_held_while_it_goes_keeps_its_machines_and_takes_no_new_one() {
    let user = "dataplane.openstack.org/machines-in-use";
    let hosts = json!({"baremetalHosts": {"c": {"ctlPlaneIP": "192.0.2.12/24"}}});
    let mut world = Metal::new(&hosts, &["x", "y"]);
    world.set.as_mut().unwrap().finalizers_mut().push(user.into());
    world.rest().unwrap();
    world.delete();
    let third = machine("z", &json!({}));
    world.machines.as_mut().unwrap().push(third);
    world.rests_for("DeletionWaits", &[user]);
    assert_eq!((world.state("x"), world.state("z")), ("provisioned", "available"));
    // A user undeploys one: it is not deployed again for a set that is being deleted.
    world.change("x", &json!({"spec": {"image": null}}));
    world.rest().unwrap();
    assert_eq!((world.state("x"), world.deployed["x"]), ("available", 1));
    world.set.as_mut().unwrap().finalizers_mut().retain(|it| it != user);
    world.rest().unwrap();
    assert!(world.set.is_none() && world.made.is_empty());
    assert_eq!(world.state("y"), "available");
}

#[test]
fn a_host_that_somebody_else_asks_for_is_not_given_back_because_a_human_takes_it_out() {
    let mut world = Metal::new(&json!({}), &["x", "y"]);
    let apply = |world: &mut Metal, hash: &str| {
        let annotations = world.set.as_mut().unwrap().annotations_mut();
        annotations.insert("dataplane.openstack.org/applied".into(), hash.into());
    };
    apply(&mut world, "1");
    world.rest().unwrap();
    let (before, n_before) = (world.host("a"), world.log.len());
    world.edit(&json!({"baremetalHosts": {"a": null}}));
    world.rests_for("HostInUse", &["Host a: machine metal/x is kept", "remove a there"]);
    world.edit(&json!({"baremetalHosts": {"a": {"ctlPlaneIP": "192.0.2.10/24"}}}));
    world.gets_ready();
    assert_eq!((world.host("a"), world.asked(n_before)), (before, vec![]));
    // When the owner no longer needs it, it is given back.
    world.edit(&json!({"baremetalHosts": {"a": null}}));
    apply(&mut world, "2");
    world.rest().unwrap();
    assert_eq!((world.host("a"), world.state("x")), (None, "available"));
}

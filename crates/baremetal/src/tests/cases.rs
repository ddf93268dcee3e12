//! Machines on their way into service, and the reported status.

use ConditionStatus::{False, True, Unknown};

use super::*;
use crate::status::{PROVISIONED, SERVER_READY, UP_TO_DATE};

#[test]
fn each_host_gets_a_machine_and_nothing_is_written_at_rest() {
    let mut lab = Lab::new(&json!({"domainName": "example.org"}), &["available", "available"]);
    lab.gets_ready();
    lab.says(PROVISIONED, True, "Provisioned", &["2 of 2 hosts"]);
    lab.says(UP_TO_DATE, True, "UpToDate", &[]);
    let a = lab.host("a").unwrap();
    assert_eq!(
        (a.bmh_ref, a.provisioning_state.as_str()),
        (lab.model.nodes[0].uuid.clone(), "active")
    );
    assert_eq!(a.ip_addresses, BTreeMap::from([("ctlplane".into(), "192.0.2.10/24".into())]));
    assert_eq!(a.config_drive_hash.map(|it| it.len()), Some(64));
    assert_eq!((a.error, a.annotated_for_deletion), (None, false));
    assert_eq!(lab.model.deployed.values().sum::<u32>(), 2);
    let n_before = lab.log.len();
    let plan = lab.pass().unwrap();
    assert_eq!((lab.log.len(), plan.requeue_after.unwrap().as_secs()), (n_before, 60));
    let ready: Vec<&str> =
        lab.notices.iter().filter(|it| !it.warning).map(|it| it.reason.as_str()).collect();
    assert_eq!(ready, ["Ready"]);
}

#[test]
fn no_machine_is_taken_before_the_set_is_held() {
    let mut lab = Lab::new(&json!({}), &["available", "available"]);
    lab.pass().unwrap();
    assert_eq!(lab.log, ["hold", "status"]);
    lab.says(
        "Ready",
        False,
        "MachineInProgress",
        &["0 of 2 hosts", "Host a: machine m0 is reserved."],
    );
    assert_eq!(lab.host("a").unwrap().bmh_ref, "unassigned");
    lab.pass().unwrap();
    assert_eq!(lab.log[2..4], ["PATCH m0 node ", "PATCH m1 node "]);
}

#[test]
fn a_machine_that_is_only_enrolled_is_provided_if_the_human_allows_it() {
    let mut lab = Lab::new(&json!({}), &["enroll", "manageable"]);
    lab.rest().unwrap();
    let parts = ["1 in state enroll", "1 in state manageable", "set spec.ironic.provide to true"];
    lab.says("Ready", False, "NoMachine", &parts);
    assert_eq!(lab.asked(0), [""; 0]);
    lab.edit(&json!({"ironic": {"provide": true}}));
    lab.gets_ready();
    assert_eq!(lab.machines().iter().map(|it| it.0).collect::<Vec<_>>(), ["active", "active"]);
}

#[test]
fn what_excluded_how_many_is_told_and_the_other_hosts_go_on() {
    let hosts = json!({"baremetalHosts": {"b": {"machine": {"traits": ["CUSTOM_GPU"]}}}});
    let mut lab = Lab::new(&hosts, &["available", "available", "available"]);
    lab.model.nodes[2].maintenance = true;
    lab.rest().unwrap();
    let parts =
        ["1 of 2 hosts", "Host b: none of 3 machines is suitable: 3 without trait CUSTOM_GPU"];
    lab.says("Ready", False, "NoMachine", &parts);
    assert_eq!(lab.host("a").unwrap().provisioning_state, "active");
    let b = lab.host("b").unwrap();
    assert_eq!((b.bmh_ref.as_str(), b.provisioning_state.as_str()), ("unassigned", ""));
    let error = b.error.unwrap();
    assert!(error.contains("CUSTOM_GPU") && !error.contains("provide"), "{error}");
    assert!(error.contains("enroll another machine") && error.contains("[b].machine"), "{error}");
    lab.model.nodes[1].traits.push("CUSTOM_GPU".into());
    lab.gets_ready();
}

#[test]
fn too_few_machines_serve_as_many_hosts_as_there_are() {
    let mut lab = Lab::new(&json!({}), &["available"]);
    lab.rests_for("NoMachine", &["Host b: none of 1 machines", "1 reserved by others"]);
    assert_eq!(lab.machines(), [("active", Some("a".into()))]);
    assert_eq!(lab.notices.iter().filter(|it| it.reason == "NoMachine").count(), 1);
}

#[test]
fn an_ironic_that_is_away_is_told_and_what_was_known_stays() {
    let mut lab = Lab::deployed();
    let hosts = [lab.host("a"), lab.host("b")];
    lab.unseen = Some(Unseen::Error(Error::Unreachable("connection refused".into())));
    let plan = lab.pass().unwrap();
    assert_eq!(plan.requeue_after.unwrap().as_secs(), 15);
    let parts = ["http://ironic:6385", "connection refused", "it is retried automatically"];
    lab.says(SERVER_READY, False, "Unreachable", &parts);
    lab.says("Ready", False, "Unreachable", &[]);
    lab.says(PROVISIONED, Unknown, "MachinesUnknown", &[SERVER_READY]);
    assert_eq!([lab.host("a"), lab.host("b")], hosts);
    let n_before = lab.log.len();
    lab.pass().unwrap();
    assert_eq!(lab.log.len(), n_before);
    lab.unseen = None;
    lab.gets_ready();
    assert_eq!(lab.model.deployed.values().sum::<u32>(), 2);
}

#[test]
fn each_answer_that_is_no_list_says_what_to_do() {
    let version = Error::Version { min: "1.1".into(), max: "1.31".into() };
    for (error, reason, part) in [
        (
            Error::Unauthorized,
            "CredentialsRefused",
            "correct the Secret that spec.ironic.secret names",
        ),
        (version, "VersionNotSupported", "supports versions 1.1 to 1.31"),
        (Error::Untrusted("expired".into()), "CertificateNotTrusted", "spec.ironic.caSecret"),
        (Error::NotIronic, "NotIronic", "spec.ironic.endpoint"),
        (Error::Forbidden("no".into()), "AccessDenied", "administrator"),
    ] {
        let mut lab = Lab::new(&json!({}), &[]);
        lab.unseen = Some(Unseen::Error(error));
        lab.pass().unwrap();
        lab.says("Ready", False, reason, &[part]);
        lab.says("Stalled", True, reason, &[]);
        assert!(lab.notices.iter().any(|it| it.warning && it.reason == reason));
    }
}

#[test]
fn a_machine_in_maintenance_waits_for_a_human_with_the_reason_verbatim() {
    let mut lab = Lab::new(&json!({}), &["available", "available"]);
    for _ in 0..2 {
        lab.pass().unwrap();
    }
    lab.model.nodes[0].maintenance = true;
    lab.model.nodes[0].maintenance_reason = Some("disk 3 is broken".into());
    lab.rest().unwrap();
    let parts = ["1 of 2", "m0 is in maintenance", "disk 3 is broken", "maintenance unset m0"];
    lab.says("Ready", False, "MachineInMaintenance", &parts);
    assert!(lab.host("a").unwrap().error.unwrap().contains("disk 3 is broken"));
    lab.model.nodes[0].maintenance = false;
    lab.gets_ready();
}

#[test]
fn a_deployment_that_fails_is_tried_as_often_as_allowed_then_a_human_is_asked() {
    let image = json!({"source": "https://a/b.qcow2", "checksum": "ab".repeat(32)});
    let mut lab = Lab::new(&json!({"ironic": {"image": image}}), &["available", "available"]);
    let uuid = lab.model.nodes[0].uuid.clone();
    lab.model.failing.insert(uuid, 99);
    lab.model.nodes[0].last_error = Some("no tool to make an image".into());
    lab.rest().unwrap();
    let parts = ["1 of 2", "machine m0 failed", "no tool to make an image", "deployAttempts"];
    lab.says("Ready", False, "DeployFailed", &parts);
    let a = lab.host("a").unwrap();
    assert_eq!(a.provisioning_state, "deploy failed");
    assert_eq!(lab.model.deployed.values().sum::<u32>(), 3 + 1);
    // Ironic's next power sync clears the error.
    lab.model.nodes[0].last_error = None;
    lab.rests_for("DeployFailed", &parts);
    assert_eq!(lab.host("a").unwrap(), a);
    // The error is kept, whatever else is reported meanwhile, but not for another failure.
    lab.model.nodes[0].maintenance = true;
    lab.rests_for("MachineInMaintenance", &["m0"]);
    lab.model.nodes[0].maintenance = false;
    lab.rest().unwrap();
    assert_eq!(lab.host("a").unwrap(), a);
    lab.model.nodes[0].provision_updated_at = Some(lab.model.now().to_string());
    lab.rest().unwrap();
    let told = lab.host("a").unwrap();
    assert_eq!(told.failure, None);
    assert!(!told.error.unwrap().contains("no tool"));
    lab.edit(&json!({"ironic": {"deployAttempts": 4}}));
    lab.model.failing.clear();
    lab.gets_ready();
}

#[test]
fn a_cause_that_only_the_history_has_is_reported_and_kept() {
    let image = json!({"source": "https://a/b.qcow2", "checksum": "ab".repeat(32)});
    let changes = json!({"ironic": {"image": image, "deployAttempts": 1}});
    let mut lab = Lab::new(&changes, &["available", "available"]);
    let uuid = lab.model.nodes[0].uuid.clone();
    lab.model.failing.insert(uuid.clone(), 99);
    lab.causes.insert(uuid, "Image failed to verify against checksum".into());
    lab.rest().unwrap();
    let parts = ["1 of 2", "machine m0 failed", "Ironic says: Image failed to verify"];
    lab.says("Ready", False, "DeployFailed", &parts);
    lab.causes.clear();
    // What Ironic did after a timeout is no cause.
    lab.model.nodes[0].last_error = Some(
        "Async execution of cleanup_after_timeout failed with error: Can not transition from state \
         'deploy failed' on event 'fail' (no defined transition)"
            .into(),
    );
    lab.rests_for("DeployFailed", &parts);
}

#[test]
fn a_cleaning_that_fails_stops_that_host_alone() {
    let mut lab = Lab::new(&json!({"ironic": {"provide": true}}), &["enroll", "available"]);
    for _ in 0..3 {
        lab.pass().unwrap();
    }
    let idx = lab.model.nodes.iter().position(|it| it.provision_state == State::Verifying).unwrap();
    lab.model.nodes[idx].provision_state = State::CleanFailed;
    lab.model.nodes[idx].target_provision_state = None;
    lab.rests_for("CleanFailed", &["1 of 2 hosts", "openstack baremetal node manage m0"]);
    lab.model.nodes[idx].provision_state = State::Manageable;
    lab.gets_ready();
}

#[test]
fn a_machine_that_ironic_does_not_give_keeps_no_host_from_another_one() {
    let mut lab = Lab::new(&json!({"baremetalHosts": {"b": null}}), &["available", "available"]);
    lab.pass().unwrap();
    let order = orders(&lab.seen().unwrap(), lab.model.now()).remove(0);
    assert_eq!(lab.title(&order.node), "m0");
    let error = Error::Refused("no conductor of its driver".into());
    let asked = LastRequest { node: order.node, state: order.state, outcome: Err(error) };
    lab.pauses.note(&super::place(), vec![asked], lab.model.now());
    lab.gets_ready();
    assert_eq!(lab.machines(), [("available", None), ("active", Some("a".into()))]);
}

#[test]
fn a_machine_that_somebody_takes_meanwhile_is_left_and_another_one_is_taken() {
    let mut lab = Lab::new(&json!({"baremetalHosts": {"b": null}}), &["available", "available"]);
    lab.pass().unwrap();
    let mut late = lab.seen().unwrap();
    lab.model.nodes[0].instance_uuid = Some("somebody's".into());
    let [order] = &orders(&late, lab.model.now())[..] else { panic!() };
    let error = lab.model.ask(&order.request).unwrap_err();
    let refused = Refused { error, at: lab.model.now(), state: order.state.clone() };
    late.refused.insert(order.node.clone(), refused);
    let plan = recorded(decide(&late, None, lab.model.now()));
    assert_eq!(plan.requeue_after.unwrap().as_secs(), 15);
    for step in plan.all() {
        lab.write(step);
    }
    lab.says(PROVISIONED, False, "MachineBusy", &["it is retried automatically"]);
    assert_eq!(lab.host("a").unwrap().error, None);
    lab.gets_ready();
    assert_eq!(lab.machines(), [("available", None), ("active", Some("a".into()))]);
}

#[test]
fn a_machine_without_a_worker_is_asked_for_again_after_its_own_pause_and_after_the_others() {
    let mut lab = Lab::new(&json!({}), &["available", "available"]);
    lab.pass().unwrap();
    let busy = lab.model.nodes[0].uuid.clone();
    lab.busy.insert(busy.clone());
    lab.pass().unwrap();
    lab.says("Ready", False, "IronicBusy", &["Host a: machine m0", "no free conductor workers"]);
    // Whatever enqueues the set, and however fast the other host proceeds.
    let n_before = lab.log.len();
    for _ in 0..3 {
        lab.pass().unwrap();
        lab.says("Ready", False, "IronicBusy", &["Host a: machine m0"]);
    }
    assert_eq!(lab.asked(n_before), ["PUT m1 provision active"]);
    // When its backoff is over, it comes last.
    lab.model.pass();
    lab.model.nodes[1].power_state = Some("power off".into());
    let n_before = lab.log.len();
    lab.pass().unwrap();
    assert_eq!(lab.asked(n_before), ["PUT m1 power power on", "PATCH m0 node "]);
    lab.busy.clear();
    lab.gets_ready();
}

#[test]
fn what_ironic_refuses_is_told_in_its_own_words_with_the_machine() {
    let mut lab = Lab::deployed();
    lab.model.nodes[1].power_state = Some("power off".into());
    let mut seen = lab.seen().unwrap();
    let error = Error::Refused("no such boot device".into());
    let refused = Refused { error, at: lab.model.now(), state: State::Active };
    seen.refused.insert(lab.model.nodes[1].uuid.clone(), refused);
    for step in recorded(decide(&seen, None, lab.model.now())).all() {
        lab.write(step);
    }
    lab.says(
        "Ready",
        False,
        "RequestRefused",
        &["Host b: machine m1: Ironic says: no such boot device"],
    );
    assert_eq!(lab.host("b").unwrap().provisioning_state, "powering on");
}

#[test]
fn a_machine_that_is_deleted_while_it_runs_is_not_replaced_before_a_human_says_so() {
    let mut lab = Lab::new(&json!({}), &["available", "available", "available"]);
    lab.rest().unwrap();
    let lost = lab.model.nodes.remove(0);
    lab.rest().unwrap();
    let command = "kubectl -n ns patch openstackbaremetalset set --subresource=status --type=json -p \
                   '[{\"op\": \"remove\", \"path\": \"/status/baremetalHosts/a\"}]'";
    lab.says("Ready", False, "MachineGone", &[&lost.uuid, "make sure that it is off", command]);
    let a = lab.host("a").unwrap();
    assert_eq!((a.bmh_ref, a.provisioning_state.as_str()), (lost.uuid, "gone"));
    assert_eq!(lab.model.deployed.values().sum::<u32>(), 2);
    lab.forget("a");
    lab.rest().unwrap();
    lab.says("Ready", True, "Ready", &["Each host has a machine"]);
    assert_eq!(lab.host("a").unwrap().bmh_ref, lab.model.nodes[1].uuid);
}

#[test]
fn a_reservation_that_is_taken_away_from_a_running_machine_is_told() {
    let mut lab = Lab::new(&json!({}), &["available", "available", "available"]);
    lab.rest().unwrap();
    lab.model.nodes[0].instance_uuid = None;
    lab.rest().unwrap();
    let what = "machine m0 is active and no longer reserved for it";
    lab.says("Ready", False, "MachineGone", &[what, "make sure that it is off"]);
    assert_eq!(lab.machines()[2], ("available", None));
    // The user must not switch off a machine of another owner.
    lab.model.nodes[0].instance_uuid = Some("somebody's".into());
    lab.rest().unwrap();
    let what = "machine m0 is active and now reserved by instance somebody's";
    lab.says("Ready", False, "MachineGone", &[what, "answers at the address of a"]);
    assert!(!lab.condition("Ready").message.contains("off"));
    // The set has no machine to give back: the machine belongs to another owner.
    lab.edit(&json!({"baremetalHosts": {"a": null}}));
    lab.rest().unwrap();
    assert_eq!(lab.host("a"), None);
    assert_eq!(lab.model.nodes[0].instance_uuid.as_deref(), Some("somebody's"));
}

#[test]
fn whatever_somebody_did_to_a_machine_with_a_system_it_is_not_replaced_by_itself() {
    // The last observed state, and the state in which it was then without its reservation.
    let unknown: &[Option<&str>] = &[None, Some("active"), Some("enroll"), Some("rescue")];
    for state in ["rescue", "servicing", "service failed", "rescue failed", "error", "of later"] {
        for after in unknown {
            let mut lab = Lab::new(&json!({"baremetalHosts": {"b": null}}), &["available"; 2]);
            lab.rest().unwrap();
            lab.model.nodes[0].provision_state = State::of(state);
            lab.rest().unwrap();
            assert!(lab.host("a").unwrap().installed, "{state}");
            match after {
                None => drop(lab.model.nodes.remove(0)),
                Some(after) => {
                    lab.model.nodes[0].provision_state = State::of(after);
                    lab.model.nodes[0].instance_uuid = None;
                }
            }
            lab.rests_for("MachineGone", &[]);
            assert_eq!(lab.model.deployed.values().sum::<u32>(), 1, "{state} {after:?}");
        }
    }
}

#[test]
fn each_host_says_of_itself_what_only_a_human_can_do_and_whether_it_has_drifted() {
    let hosts: BTreeMap<String, Value> = (0..6)
        .map(|idx| (format!("h{idx}"), json!({"ctlPlaneIP": format!("192.0.2.{}/24", idx + 20)})))
        .collect();
    let changes = json!({"baremetalHosts": hosts, "ctlplaneGateway": "192.0.2.1"});
    let mut lab = Lab::new(&changes, &["available"; 6]);
    lab.edit(&json!({"baremetalHosts": {"a": null, "b": null}}));
    lab.pass().unwrap();
    let told = |lab: &Lab| -> Vec<(Option<bool>, bool)> {
        hosts
            .keys()
            .map(|it| lab.host(it).unwrap())
            .map(|it| (it.is_current, it.needs_human))
            .collect()
    };
    assert_eq!(told(&lab), [(None, false); 6]);
    lab.rest().unwrap();
    assert_eq!(told(&lab), [(Some(true), false); 6]);
    lab.secret("own", &[("userData", "#cloud-config\npackages: [vim]")]);
    lab.edit(&json!({"userData": {"name": "own"}}));
    lab.rest().unwrap();
    assert_eq!(told(&lab), [(Some(false), false); 6]);
    // A drive that cannot be built is not compared.
    lab.edit(&json!({"userData": {"name": "none"}}));
    lab.rest().unwrap();
    assert_eq!(told(&lab), [(None, false); 6]);
    for node in &mut lab.model.nodes {
        node.power_state = Some("error".into());
    }
    lab.rest().unwrap();
    assert_eq!(told(&lab), [(None, true); 6]);
}

#[test]
fn who_undeploys_a_machine_has_it_deployed_again() {
    let mut lab = Lab::deployed();
    lab.undeploy(0);
    lab.gets_ready();
    assert_eq!(lab.model.deployed.values().sum::<u32>(), 3);
}

#[test]
fn the_same_machine_deployed_again_is_another_instance_and_nothing_else_makes_one() {
    let mut lab = Lab::new(&json!({"baremetalHosts": {"b": null}}), &["available"]);
    lab.rest().unwrap();
    let before = lab.host("a").unwrap();
    let node = &mut lab.model.nodes[0];
    node.provision_state = State::of("rescue");
    lab.rest().unwrap();
    let node = &mut lab.model.nodes[0];
    node.provision_state = State::Active;
    node.provision_updated_at = Some("2026-11-23T00:00:00+00:00".into());
    // A user removes the deploy record.
    node.instance_info.clear();
    lab.rest().unwrap();
    assert_eq!(lab.host("a").unwrap().instance, before.instance);
    lab.undeploy(0);
    lab.gets_ready();
    let after = lab.host("a").unwrap();
    assert_eq!(
        (&after.bmh_ref, &after.provisioning_state),
        (&before.bmh_ref, &before.provisioning_state)
    );
    assert_ne!(after.instance, before.instance);
    // The reservation is the same, so that no second machine can ever be reserved for the host.
    let reservation =
        |it: &HostStatus| it.instance.clone().unwrap().split('@').next().unwrap().to_owned();
    assert_eq!(reservation(&after), reservation(&before));
}

#[test]
fn another_user_data_is_told_and_nothing_is_done_by_itself() {
    let mut lab = Lab::deployed();
    let before = lab.host("a").unwrap();
    lab.secret("own", &[("userData", "#cloud-config\npackages: [vim]")]);
    lab.edit(&json!({"userData": {"name": "own"}}));
    let n_before = lab.log.len();
    lab.rest().unwrap();
    assert_eq!(lab.asked(n_before), [""; 0]);
    let parts = ["a, b", "Nothing is done automatically", "add it again"];
    lab.says(UP_TO_DATE, False, "ConfigDriveChanged", &parts);
    lab.says("Ready", True, "Ready", &[]);
    assert_eq!(lab.host("a").unwrap(), HostStatus { is_current: Some(false), ..before.clone() });
    lab.edit(&json!({"baremetalHosts": {"a": null}}));
    lab.rest().unwrap();
    lab.edit(&json!({"baremetalHosts": {"a": {"ctlPlaneIP": "192.0.2.10/24"}}}));
    lab.rest().unwrap();
    assert_ne!(lab.host("a").unwrap().config_drive_hash, before.config_drive_hash);
    lab.says(UP_TO_DATE, False, "ConfigDriveChanged", &["deployed: b."]);
}

#[test]
fn a_machine_that_runs_is_adopted_without_any_secret() {
    let hosts = json!({"baremetalHosts": {
        "a": {"adopt": true, "machine": {"node": "m0"}}, "b": {"adopt": true, "machine": {"node": "m1"}},
    }});
    let mut lab = Lab::new(&hosts, &["active", "manageable"]);
    lab.secrets.clear();
    lab.gets_ready();
    lab.says(UP_TO_DATE, True, "UpToDate", &[]);
    assert!(lab.model.deployed.is_empty());
    let a = lab.host("a").unwrap();
    assert_eq!((a.provisioning_state.as_str(), a.config_drive_hash), ("active", None));
}

#[test]
fn a_set_without_hosts_is_ready() {
    let mut lab = Lab::new(&json!({"baremetalHosts": {"a": null, "b": null}}), &[]);
    lab.gets_ready();
}

#[test]
fn where_nobody_says_who_provisions_and_metal3_is_not_there_the_choice_is_told() {
    let mut lab = Lab::new(&json!({"provisioner": null, "ironic": null}), &[]);
    lab.pass().unwrap();
    let parts = ["spec.provisioner", "set spec.provisioner to ironic"];
    lab.says("Ready", False, "ProvisionerNotFound", &parts);
    assert_eq!(lab.log, ["status"]);
    lab.edit(&json!({"ironic": {"endpoint": "http://ironic:6385", "authentication": "none"}}));
    assert!(lab.seen().unwrap().is_of_ironic());
}

#[test]
fn a_status_of_five_hundred_hosts_with_errors_fits_into_an_object() {
    let hosts: BTreeMap<String, Value> = (0..500)
        .map(|idx| {
            let host = json!({"ctlPlaneIP": format!("192.0.{}.{}/16", idx / 250, idx % 250 + 1)});
            (format!("{idx:03}-{}", "h".repeat(59)), host)
        })
        .collect();
    let changes = json!({"baremetalHosts": &hosts, "ctlplaneGateway": "192.0.200.1"});
    let mut lab = Lab::new(&changes, &["available"; 500]);
    lab.edit(&json!({"baremetalHosts": {"a": null, "b": null}}));
    let names: Vec<String> = hosts.keys().cloned().collect();
    for (node, name) in lab.model.nodes.iter_mut().zip(names) {
        node.instance_uuid = Some(ironic::instance_uuid("set", &name));
        node.provision_state = State::Error;
        node.last_error = Some("ä".repeat(5000));
    }
    lab.pass().unwrap();
    lab.says("Ready", False, "UndeployFailed", &["0 of 500", "and 497 more"]);
    let status = lab.set.as_ref().unwrap().status.as_ref().unwrap();
    assert_eq!(status.baremetal_hosts.len(), 500);
    let size = serde_json::to_string(status).unwrap().len();
    assert!(size < 400_000, "{size}");
}

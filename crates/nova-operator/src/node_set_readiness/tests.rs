//! The report about a node set: which hosts have entries, and when it is written.

use operator_core::plan::Write;

use super::*;
use crate::nova_health::HostHealth;

const UP: HostHealth = HostHealth {
    service: ServiceHealth::Up { disabled: None },
    mapping: MappingHealth::Mapped,
    disabled: None,
    service_id: None,
    compute_id: None,
    nova: None,
    missing_since: None,
    read_at: None,
    cause: None,
};

fn with(service: ServiceHealth, mapping: MappingHealth) -> HostHealth {
    HostHealth { service, mapping, ..HostHealth::default() }
}

fn down() -> HostHealth {
    with(ServiceHealth::Down { since: None, is_forced: false }, MappingHealth::Mapped)
}

/// A node set on which these deployments have run.
fn node_set(deployments: &[&str]) -> NodeSet {
    serde_json::from_value(json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNodeSet",
        "metadata": { "name": "compute", "namespace": "openstack", "uid": "u" },
        "spec": { "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" }, "nodes": {} },
        "status": { "settledDeployments": deployments },
    }))
    .unwrap()
}

/// Returns the report as it is written, if it is.
fn written(
    set: &NodeSet,
    hosts: &[(&str, HostHealth)],
    found: Option<&HostReadiness>,
) -> Option<HostReadiness> {
    let reading = |(name, health): &(&str, HostHealth)| HostReading {
        name: (*name).to_owned(),
        health: health.clone(),
        discovered_by: None,
    };
    let hosts = hosts.iter().map(reading).collect();
    let contents = Contents { gated: Some(hosts), ..Contents::default() };
    step(set, &contents, found).map(applied)
}

/// Returns the report as a step writes it.
fn applied(step: Step) -> HostReadiness {
    let Write::Apply { object, .. } = step.write else { panic!("no apply") };
    serde_json::from_value(object).unwrap()
}

fn entries(report: &HostReadiness) -> Vec<(&str, &str)> {
    report.spec.not_ready.iter().map(|(host, it)| (host.as_str(), it.reason.as_str())).collect()
}

#[test]
fn only_hosts_that_are_up_and_mapped_have_no_entry() {
    let forced = ServiceHealth::Down { since: None, is_forced: true };
    let disabled = ServiceHealth::Up { disabled: Some("for repair".into()) };
    let enabled = ServiceHealth::Up { disabled: None };
    let hosts = [
        ("a-up", UP),
        ("b-disabled", with(disabled, MappingHealth::Mapped)),
        ("c-unmapped", with(enabled.clone(), MappingHealth::NotMapped)),
        ("d-unread", with(enabled, MappingHealth::Pending)),
        ("e-down", down()),
        ("f-forced", with(forced, MappingHealth::Mapped)),
        ("g-missing", with(ServiceHealth::NotFound, MappingHealth::Pending)),
        ("h-pending", HostHealth::default()),
        ("i-api", with(ServiceHealth::ApiFails, MappingHealth::Mapped)),
        ("j-cell", with(ServiceHealth::CellNotAnswering, MappingHealth::Mapped)),
    ];
    let report = written(&node_set(&["d"]), &hosts, None).unwrap();
    let expected = [
        ("c-unmapped", "NotMapped"),
        ("d-unread", "NotRead"),
        ("e-down", "ServiceDown"),
        ("f-forced", "ForcedDown"),
        ("g-missing", "ServiceNotFound"),
        ("h-pending", "NotRead"),
        ("i-api", "NovaNotAnswering"),
        ("j-cell", "CellNotAnswering"),
    ];
    assert_eq!(entries(&report), expected);
    assert_eq!(report.name_any(), "compute-nova");
    assert_eq!(report.spec.node_set, "compute");
    assert_eq!(report.spec.condition_type, "nova.openstack.org/ServiceUp");
    assert_eq!(report.spec.observed_deployments, ["d"]);
    assert_eq!(report.owner_references()[0].block_owner_deletion, None);
}

#[test]
fn a_host_that_is_not_mapped_has_a_command_or_the_cell_whose_hosts_are_discovered() {
    let message = |discovered_by: Option<&str>| {
        let reading = HostReading {
            name: "n0".into(),
            health: with(ServiceHealth::Up { disabled: None }, MappingHealth::NotMapped),
            discovered_by: discovered_by.map(str::to_owned),
        };
        match judged(&reading) {
            Readiness::NotReady(entry) => entry.message,
            Readiness::Ready | Readiness::Unknown(_) => panic!("it is not mapped"),
        }
    };
    let others = message(None);
    assert!(others.contains("wait for nova's scheduler"), "{others}");
    assert!(others.ends_with(": nova-manage cell_v2 discover_hosts"), "{others}");
    let by_operator = message(Some("cell1"));
    assert!(by_operator.contains("HostDiscovery of NovaCell cell1"), "{by_operator}");
    assert!(!by_operator.contains("nova-manage"), "{by_operator}");
}

#[test]
fn nothing_is_written_while_nothing_changes() {
    let set = node_set(&["d"]);
    let hosts = [("n0", UP), ("n1", down())];
    let report = written(&set, &hosts, None).unwrap();
    assert_eq!(written(&set, &hosts, Some(&report)), None);
    let report = written(&set, &[("n0", UP), ("n1", UP)], Some(&report)).unwrap();
    assert_eq!(entries(&report), []);
    // A host that was removed, and a deployment, change the report too.
    let report = written(&set, &[("n0", down()), ("n1", UP)], Some(&report)).unwrap();
    let report = written(&set, &[("n1", UP)], Some(&report)).unwrap();
    assert_eq!(entries(&report), []);
    let report = written(&node_set(&["d", "e"]), &[("n1", UP)], Some(&report)).unwrap();
    assert_eq!(report.spec.observed_deployments, ["d", "e"]);
    let mut another = node_set(&["d", "e"]);
    another.metadata.uid = Some("another".into());
    assert!(written(&another, &[("n1", UP)], Some(&report)).is_some());
}

#[test]
fn what_is_not_known_leaves_what_was_reported_since_the_last_deployment() {
    let set = node_set(&["d"]);
    let report = written(&set, &[("n0", UP), ("n1", down())], None).unwrap();
    for unknown in [ServiceHealth::Pending, ServiceHealth::ApiFails] {
        let unknown = with(unknown, MappingHealth::Pending);
        let hosts = [("n0", unknown.clone()), ("n1", unknown)];
        assert_eq!(written(&set, &hosts, Some(&report)), None);
        let later = written(&node_set(&["d", "e"]), &hosts, Some(&report)).unwrap();
        assert_eq!(entries(&later).len(), 2);
    }
}

#[test]
fn an_unknown_host_gets_the_cause_when_that_is_known() {
    let set = node_set(&["d"]);
    let unread = written(&set, &[("n0", HostHealth::default())], None).unwrap();
    assert_eq!(entries(&unread), [("n0", "NotRead")]);
    let fails =
        HostHealth { cause: Some("Secret bus does not exist.".into()), ..HostHealth::unread() };
    let report = written(&set, &[("n0", fails)], Some(&unread)).unwrap();
    assert_eq!(entries(&report), [("n0", "NovaNotAnswering")]);
    let text = "Nova's API cannot be read: Secret bus does not exist.";
    assert_eq!(report.spec.not_ready["n0"].message, text);
    assert_eq!(written(&set, &[("n0", HostHealth::default())], Some(&report)), None, "it stays");
}

#[test]
fn without_the_gate_no_host_is_judged_and_no_deployment_observed() {
    let set = node_set(&["d"]);
    let allowed: BTreeMap<String, String> = [("n0".to_owned(), "u0".to_owned())].into();
    let contents = Contents { disruption_allowed: Some(allowed.clone()), ..Contents::default() };
    let report = applied(step(&set, &contents, None).unwrap());
    assert_eq!(report.spec.disruption_allowed, Some(allowed));
    assert_eq!((entries(&report), &report.spec.observed_deployments[..]), (vec![], &[][..]));
    assert_eq!(step(&set, &contents, Some(&report)), None, "nothing has changed");
    // With the gate, what is unknown is not taken from a report without it.
    let gated = written(&set, &[("n0", HostHealth::default())], Some(&report)).unwrap();
    assert_eq!(entries(&gated), [("n0", "NotRead")]);
    assert_eq!(gated.spec.disruption_allowed, None);
    assert!(Contents::default().is_empty() && !contents.is_empty());
}

#[test]
fn a_service_lists_the_gate_by_its_type_of_condition() {
    let listing = |type_: &str| -> Service {
        let spec = json!({ "playbook": "a.b.c", "readinessGates": [{ "conditionType": type_ }] });
        Service::new("nova", serde_json::from_value(spec).unwrap())
    };
    assert!(lists_gate(&listing("nova.openstack.org/ServiceUp")));
    assert!(!lists_gate(&listing("example.org/ServiceUp")));
    let set = node_set(&[]);
    let report = written(&set, &[("n0", UP)], None).unwrap();
    let removal = removal(&report);
    assert_eq!(
        (removal.target.name.as_str(), report_key(&Key::of(&set)).name.as_str()),
        ("compute-nova", "compute-nova")
    );
    assert!(matches!(removal.write, Write::Delete { .. }));
}

/// A report about the node set with a host finalizer, as `change` leaves it.
fn holding(change: fn(&mut HostReadiness)) -> HostReadiness {
    let mut report = applied(step(&node_set(&[]), &held(), None).unwrap());
    change(&mut report);
    report
}

fn held() -> Contents {
    let hosts = [("n0".to_owned(), "n0.example.org".to_owned())].into();
    Contents {
        finalizers: HostFinalizers { hosts, ..HostFinalizers::default() },
        ..Contents::default()
    }
}

#[test]
fn a_report_has_an_owner_only_while_it_holds_no_host() {
    let mut set = node_set(&[]);
    let report = holding(|_| {});
    assert_eq!((report.owner_references(), &*report.labels()[NODE_SET_UID]), (&[][..], "u"));
    assert_eq!(step(&set, &held(), Some(&report)), None, "nothing has changed");
    // Of a release before.
    for before in [
        holding(|it| it.metadata.owner_references = serde_json::from_value(owners()).unwrap()),
        holding(|it| it.labels_mut().clear()),
    ] {
        assert_eq!(applied(step(&set, &held(), Some(&before)).unwrap()), report);
    }
    set.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    assert_eq!(step(&set, &held(), Some(&report)), None, "it stays as it is");
    let released = applied(step(&set, &Contents::default(), Some(&report)).unwrap());
    assert_eq!(released.owner_references()[0].uid, "u");
    assert_eq!(step(&set, &Contents::default(), Some(&released)), None);
}

fn owners() -> serde_json::Value {
    json!([owner(&node_set(&[]))])
}

#[test]
fn of_a_node_set_that_is_gone_the_report_without_an_owner_is_deleted() {
    let set = Key::of(&node_set(&[]));
    let report = holding(|_| {});
    assert!(is_left(&report, &set));
    let plan = removal_after(&report);
    assert!(matches!(plan.steps[..], [Step { write: Write::Delete { .. }, .. }]), "{plan:?}");
    let going = holding(|it| {
        it.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    });
    assert_eq!(removal_after(&going).steps, []);
    for other in [
        holding(|it| it.metadata.owner_references = serde_json::from_value(owners()).unwrap()),
        holding(|it| it.labels_mut().clear()),
        holding(|it| it.spec.condition_type = "example.org/Other".into()),
        holding(|it| it.spec.node_set = "other".into()),
    ] {
        assert!(!is_left(&other, &set), "{other:?}");
    }
}

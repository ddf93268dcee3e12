//! Tests: which DNS names are written, and what is awaited.

use std::sync::Arc;

use api::conditions::ConditionStatus;
use operator_core::node_set_host::hosts;
use operator_core::plan::Write;
use serde_json::{Value, json};

use super::*;
use crate::node_set::ipam::tests::{NONE_KEPT, answer, infra, two};

/// Returns the written object, if any.
fn written(set: &NodeSet, infra: &Infra) -> Option<Value> {
    let steps = desired(set, &hosts(set), infra, NONE_KEPT).unwrap();
    let object = |step: Step| {
        let Write::Apply { object, .. } = step.write else { panic!("{:?}", step.write) };
        object
    };
    steps.into_iter().map(object).next()
}

fn reason(infra: &Infra) -> String {
    condition(infra, &Ok(vec![])).reason
}

#[test]
fn every_reservation_is_an_entry_with_the_hosts_names() {
    let (set, mut infra) = (two(), infra());
    assert_eq!(written(&set, &infra), None, "no host has an address yet");
    answer(&set, &mut infra);
    let object = written(&set, &infra).unwrap();
    assert_eq!(object["metadata"]["name"], "edpm");
    assert_eq!(object["spec"]["dnsDataLabelSelectorValue"], "dnsdata");
    let hosts = json!([
        { "ip": "192.0.2.10", "hostnames": ["n0.ctl.example.com"] },
        { "ip": "198.51.100.0", "hostnames": ["n0.int.example.com"] },
        { "ip": "192.0.2.11", "hostnames": ["n1.ctl.example.com", "n1.example.org"] },
        { "ip": "198.51.100.1", "hostnames": ["n1.int.example.com"] },
    ]);
    assert_eq!(object["spec"]["hosts"], hosts);
}

#[test]
fn a_host_whose_own_name_is_that_on_the_network_is_named_once() {
    let (mut set, mut infra) = (two(), infra());
    set.spec.nodes.get_mut("n1").unwrap().host_name = Some("n1.ctl.example.com".into());
    answer(&set, &mut infra);
    let hosts = written(&set, &infra).unwrap()["spec"]["hosts"].clone();
    assert_eq!(hosts[2]["hostnames"], json!(["n1.ctl.example.com"]));
}

#[test]
fn the_names_are_written_once_and_waited_for() {
    let (set, mut infra) = (two(), infra());
    answer(&set, &mut infra);
    let mut object = written(&set, &infra).unwrap();
    object["status"] = json!({ "conditions": [] });
    infra.dns_data = Some(Arc::new(serde_json::from_value(object.clone()).unwrap()));
    assert_eq!(written(&set, &infra), None);
    assert_eq!(reason(&infra), "Naming");
    object["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
    infra.dns_data = Some(Arc::new(serde_json::from_value(object).unwrap()));
    assert_eq!(reason(&infra), "Named");
    assert_eq!(cluster_addresses(&infra), ["198.51.100.80"]);
    let mut set = set;
    set.spec.nodes.remove("n0");
    assert!(written(&set, &infra).is_some(), "a host went");
}

#[test]
fn a_dns_server_that_is_not_ready_or_absent_is_waited_for_and_several_are_a_fault() {
    let (set, mut infra) = (two(), infra());
    answer(&set, &mut infra);
    let server = infra.dns_masqs[0].clone();
    let changes: [fn(&mut DnsMasq); 3] = [
        |it| it.status = None,
        |it| it.status.as_mut().unwrap().conditions[0].status = "False".into(),
        |it| it.status.as_mut().unwrap().dns_cluster_addresses = None,
    ];
    for change in changes {
        let mut other = (*server).clone();
        change(&mut other);
        infra.dns_masqs = vec![Arc::new(other)];
        assert_eq!((written(&set, &infra), reason(&infra).as_str()), (None, "DnsServerNotReady"));
    }
    infra.dns_masqs = vec![];
    assert_eq!((written(&set, &infra), reason(&infra).as_str()), (None, "DnsServerNotReady"));
    infra.dns_masqs = vec![server.clone(), server];
    let asked = desired(&set, &hosts(&set), &infra, NONE_KEPT);
    let found = condition(&infra, &asked);
    assert_eq!(
        (found.status, found.reason.as_str()),
        (ConditionStatus::False, "SeveralDnsServers")
    );
}

#[test]
fn without_a_dns_server_of_the_control_plane_nobody_is_told() {
    let set = two();
    assert_eq!(written(&set, &Infra::default()), None);
    assert_eq!(reason(&Infra::default()), "NotRequired");
}

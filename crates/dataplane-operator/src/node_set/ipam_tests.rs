//! Tests: what is requested for each host, what is awaited, and the variables of plays.

use api::conditions::ConditionStatus;
use kube::Resource;
use operator_core::node_set_host::hosts;
use operator_core::plan::Write;
use serde::de::DeserializeOwned;
use testkit::objects::named;

use super::*;
use crate::node_set::kept_hosts::TerminatingHosts;

static NO_HOSTS: TerminatingHosts = TerminatingHosts::new();
/// No host beside those of the spec.
pub(in crate::node_set) const NONE_KEPT: KeptHosts<'static> =
    KeptHosts { is_frozen: false, terminating: &NO_HOSTS };

pub(in crate::node_set) fn object<K>(name: &str, body: &Value) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    named("openstack", name, body.clone())
}

/// A node set of two hosts on the template's networks; `nodes` has further fields of them.
pub(in crate::node_set) fn node_set(nodes: &Value) -> NodeSet {
    let body = json!({
        "metadata": { "uid": "u1" },
        "spec": {
            "preProvisioned": true,
            "nodeTemplate": {
                "ansibleSSHPrivateKeySecret": "key",
                "networks": [
                    { "name": "CtlPlane", "subnetName": "subnet1", "defaultRoute": true },
                    { "name": "internalapi", "subnetName": "subnet1" },
                ],
            },
            "nodes": nodes,
        },
    });
    object("edpm", &body)
}

pub(in crate::node_set) fn two() -> NodeSet {
    node_set(&json!({
        "n0": { "ansible": { "ansibleHost": "192.0.2.10" } },
        "n1": { "hostName": "n1.example.org", "ansible": { "ansibleHost": "192.0.2.11" } },
    }))
}

fn net_config() -> Arc<NetConfig> {
    let networks = json!([{ "name": "ctlplane" }, { "name": "InternalApi" }, { "name": "mgmt",
        "serviceNetwork": "ctlplane" }]);
    Arc::new(object("netconfig", &json!({ "spec": { "networks": networks } })))
}

pub(in crate::node_set) fn infra() -> Infra {
    let status = json!({
        "dnsAddresses": ["192.0.2.80"],
        "dnsClusterAddresses": ["198.51.100.80"],
        "conditions": [{ "type": "Ready", "status": "True" }],
    });
    let spec = json!({ "dnsDataLabelSelectorValue": "dnsdata" });
    let server = object("dnsmasq", &json!({ "spec": spec, "status": status }));
    Infra {
        is_used: true,
        net_configs: vec![net_config()],
        dns_masqs: vec![Arc::new(server)],
        ..Infra::default()
    }
}

fn object_of(step: &Step) -> Value {
    let Write::Apply { object, .. } = &step.write else { panic!("{step:?}") };
    object.clone()
}

/// Applies the requests, and reports reservations as the address operator does.
pub(in crate::node_set) fn answer(set: &NodeSet, infra: &mut Infra) {
    let steps = desired(set, &hosts(set), infra, NONE_KEPT).unwrap();
    for step in &steps {
        let (name, n) = (step.target.name.clone(), infra.ip_sets.len());
        infra.ip_sets.retain(|it| it.name_any() != name);
        if matches!(step.write, Write::Delete { .. }) {
            continue;
        }
        let mut it = object_of(step);
        let ctlplane = it["spec"]["networks"][0].clone();
        let address =
            ctlplane["fixedIP"].as_str().map_or_else(|| format!("192.0.2.{}", 100 + n), Into::into);
        it["status"] = json!({
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "x" }],
            "reservations": [
                { "network": "ctlplane", "subnet": "subnet1", "address": address, "mtu": 1500,
                  "cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "dnsDomain": "ctl.example.com",
                  "routes": [{ "destination": "0.0.0.0/0", "nexthop": "192.0.2.1" }] },
                { "network": "internalapi", "subnet": "subnet1", "dnsDomain": "int.example.com",
                  "address": format!("198.51.100.{n}"), "mtu": 9000, "cidr": "198.51.100.0/25",
                  "vlan": 20 },
            ],
        });
        infra.ip_sets.push(Arc::new(serde_json::from_value(it).unwrap()));
    }
}

#[test]
fn each_host_asks_for_its_own_address_although_the_networks_are_the_templates() {
    let set = two();
    let steps = desired(&set, &hosts(&set), &infra(), NONE_KEPT).unwrap();
    let asked: Vec<(String, Value)> = steps
        .iter()
        .map(|it| (it.target.name.clone(), object_of(it)["spec"]["networks"].clone()))
        .collect();
    let networks = |address: &str| {
        json!([
            { "name": "CtlPlane", "subnetName": "subnet1", "fixedIP": address, "defaultRoute": true },
            { "name": "internalapi", "subnetName": "subnet1" },
        ])
    };
    let expected = [("n0", "192.0.2.10"), ("n1.example.org", "192.0.2.11")];
    assert_eq!(asked, expected.map(|(name, it)| (name.to_owned(), networks(it))));
    let object = object_of(&steps[0]);
    assert_eq!(object["kind"], "IPSet");
    assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "u1");
    assert_eq!(object["metadata"]["labels"]["osdpns.openstack.org/name"], "edpm");
}

#[test]
fn an_address_that_the_human_fixed_on_the_network_stays_and_one_that_is_no_address_is_not_asked_for()
 {
    let networks = json!([{ "name": "mgmt", "subnetName": "s", "fixedIP": "192.0.2.99" }]);
    let set = node_set(&json!({
        "n0": { "ansible": { "ansibleHost": "192.0.2.10" }, "networks": networks },
        "n1": { "ansible": { "ansibleHost": "n1.example.org" } },
    }));
    let steps = desired(&set, &hosts(&set), &infra(), NONE_KEPT).unwrap();
    let of = |at: usize| object_of(&steps[at])["spec"]["networks"][0].clone();
    assert_eq!(of(0)["fixedIP"], "192.0.2.99");
    assert_eq!(of(1).get("fixedIP"), None);
    let mut provisioned = two();
    provisioned.spec.pre_provisioned = false;
    let steps = desired(&provisioned, &hosts(&provisioned), &infra(), NONE_KEPT).unwrap();
    assert_eq!(object_of(&steps[0])["spec"]["networks"][0].get("fixedIP"), None);
}

#[test]
fn nothing_is_asked_twice_and_what_a_host_had_is_given_back_when_it_goes() {
    let (mut set, mut infra) = (two(), infra());
    answer(&set, &mut infra);
    assert_eq!(desired(&set, &hosts(&set), &infra, NONE_KEPT), Ok(vec![]));
    let mut foreign = (*infra.ip_sets[0]).clone();
    foreign.metadata.name = Some("others".into());
    foreign.metadata.owner_references = None;
    infra.ip_sets.push(Arc::new(foreign));
    set.spec.nodes.remove("n0");
    let steps = desired(&set, &hosts(&set), &infra, NONE_KEPT).unwrap();
    assert!(matches!(&steps[..], [it] if it.target.name == "n0"), "{steps:?}");
    assert!(matches!(steps[0].write, Write::Delete { .. }));
}

#[test]
fn addresses_are_waited_for_until_every_network_of_every_host_has_one() {
    let (set, mut infra) = (two(), infra());
    let state = |infra: &Infra| {
        let found = condition(&hosts(&set), infra, &Ok(vec![]));
        (found.status, found.reason, found.message)
    };
    answer(&set, &mut infra);
    assert_eq!(state(&infra).1, "Reserved");
    let spoil = |change: fn(&mut IpSet)| {
        let mut infra = infra.clone();
        change(Arc::make_mut(&mut infra.ip_sets[1]));
        let found = state(&infra);
        assert_eq!((found.0, found.1.as_str()), (ConditionStatus::False, "Reserving"));
        assert_eq!(all_ips(&hosts(&set), &infra).len(), 1);
        found.2
    };
    // Just created: upstream would treat it as ready without any address.
    spoil(|it| it.status = None);
    spoil(|it| it.status.as_mut().unwrap().conditions.clear());
    spoil(|it| drop(it.status.as_mut().unwrap().reservations.pop()));
    let text = spoil(|it| {
        let ready = &mut it.status.as_mut().unwrap().conditions[0];
        (ready.status, ready.message) = ("False".into(), "no free address".into());
    });
    assert!(text.starts_with("1 of 2 hosts wait"), "{text}");
    assert!(text.contains("IPSet n1.example.org: no free address"), "{text}");
}

#[test]
fn what_cannot_be_asked_for_is_told_with_the_next_step() {
    let check = |nodes: &Value, change: fn(&mut NodeSet, &mut Infra), expected: &[&str]| {
        let (mut set, mut infra) = (node_set(nodes), infra());
        change(&mut set, &mut infra);
        let asked = desired(&set, &hosts(&set), &infra, NONE_KEPT);
        let problems = asked.clone().unwrap_err();
        assert_eq!(
            problems.iter().map(|it| it.reason.word).collect::<Vec<_>>(),
            expected,
            "{problems:?}"
        );
        let found = condition(&hosts(&set), &infra, &asked);
        assert_eq!((found.status, found.reason.as_str()), (ConditionStatus::False, expected[0]));
        assert!(problems.iter().all(|it| it.message.contains(": ")), "{problems:?}");
    };
    let one = json!({ "n0": {} });
    check(&one, |_, it| it.net_configs.clear(), &["NetConfigNotFound"]);
    check(&one, |it, _| it.spec.node_template.networks.clear(), &["NetworkMissing"]);
    let lone = json!([{ "name": "internalapi", "subnetName": "s" }]);
    check(&json!({ "n0": { "networks": lone } }), |_, _| {}, &["NetworkMissing"]);
    let odd =
        json!([{ "name": "ctlplane", "subnetName": "s" }, { "name": "x", "subnetName": "s" }]);
    check(&json!({ "n0": { "networks": odd } }), |_, _| {}, &["NetworkUnknown"]);
    let taken = |set: &mut NodeSet, infra: &mut Infra| {
        answer(set, infra);
        set.metadata.uid = Some("another".into());
    };
    check(&one, taken, &["NameTaken"]);
}

#[test]
fn without_the_operator_of_addresses_nothing_is_asked_and_nothing_is_missing() {
    let (set, infra) = (two(), Infra::default());
    assert_eq!(desired(&set, &hosts(&set), &infra, NONE_KEPT), Ok(vec![]));
    let found = condition(&hosts(&set), &infra, &Ok(vec![]));
    assert_eq!((found.status, found.reason.as_str()), (ConditionStatus::True, "NotRequired"));
    assert_eq!(host_vars(&hosts(&set)[0], &infra), BTreeMap::new());
    assert!(names_networks(&set));
    let mut plain = set;
    plain.spec.node_template.networks.clear();
    assert!(!names_networks(&plain));
}

#[test]
fn plays_get_upstreams_variables_of_each_reservation() {
    let (set, mut infra) = (two(), infra());
    answer(&set, &mut infra);
    let vars = |at: usize| json!(host_vars(&hosts(&set)[at], &infra));
    assert_eq!(
        vars(0),
        json!({
            "canonical_hostname": "n0.ctl.example.com",
            "ctlplane_cidr": 24,
            "ctlplane_dns_nameservers": ["192.0.2.80"],
            "ctlplane_gateway_ip": "192.0.2.1",
            "ctlplane_host_routes": [{ "destination": "0.0.0.0/0", "nexthop": "192.0.2.1" }],
            "ctlplane_ip": "192.0.2.10",
            "ctlplane_mtu": 1500,
            "dns_search_domains": ["ctl.example.com", "int.example.com"],
            "internalapi_cidr": 25,
            "internalapi_gateway_ip": null,
            "internalapi_host_routes": [],
            "internalapi_ip": "198.51.100.0",
            "internalapi_mtu": 9000,
            "internalapi_vlan_id": 20,
        })
    );
    // A host name with a domain keeps it, and that domain is searched first.
    assert_eq!(vars(1)["canonical_hostname"], "n1.example.org");
    let domains = json!(["example.org", "ctl.example.com", "int.example.com"]);
    assert_eq!(vars(1)["dns_search_domains"], domains);
    assert_eq!(search_domain(&hosts(&set), &infra).as_deref(), Some("ctl.example.com"));
    let names = json!({
        "n0": { "ctlplane": "n0.ctl.example.com", "internalapi": "n0.int.example.com" },
        "n1.example.org": { "ctlplane": "n1.example.org", "internalapi": "n1.int.example.com" },
    });
    assert_eq!(json!(all_hostnames(&hosts(&set), &infra)), names);
    assert_eq!(all_ips(&hosts(&set), &infra)["n0"]["ctlplane"], "192.0.2.10");
}

#[test]
fn a_network_that_serves_as_another_gives_its_variables() {
    let (set, mut infra) = (two(), infra());
    answer(&set, &mut infra);
    let status = Arc::make_mut(&mut infra.ip_sets[0]).status.as_mut().unwrap();
    status.reservations[1].service_network = "storage".into();
    let vars = host_vars(&hosts(&set)[0], &infra);
    assert_eq!(vars["storage_ip"], "198.51.100.0");
    assert!(!vars.contains_key("internalapi_ip"));
    assert_eq!(infra.service_networks()["mgmt"], "ctlplane");
    assert_eq!(infra.service_networks()["internalapi"], "internalapi");
}

#[test]
fn a_name_is_whole_when_its_domain_ends_in_letters() {
    for name in ["a.b.org", "a.org", "A-1.Example.COM", "1.2.ab"] {
        assert!(is_fqdn(name), "{name}");
    }
    for name in ["a", "a.b", "a.b1", "192.0.2.1", "a..org", ".org", "a_b.org", "a.org."] {
        assert!(!is_fqdn(name), "{name}");
    }
}

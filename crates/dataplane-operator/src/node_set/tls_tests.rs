//! Tests: which certificates are requested, and how runs get them.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::cert_manager::{Certificate, Issuer};
use api::conditions::ConditionStatus;
use api::dataplane::Service;
use operator_core::certificate_networks::unknown_networks;
use operator_core::certificates::{
    DEFAULT_ISSUER, ISSUES_FOR_HOSTS, certificate_source, label_value, requested, secret_of,
};
use operator_core::node_set_host::HostNetworkValues;
use operator_core::plan::{Step, Write};
use serde_json::{Value, json};

use super::*;
use crate::node_set::ipam::tests::{object, two};

fn service(spec: &Value) -> Service {
    let mut spec = spec.clone();
    spec["playbook"] = json!("a.b.c");
    object("agent", &json!({ "spec": spec }))
}

/// A service with one certificate.
fn agent(cert: &Value) -> Service {
    service(&json!({ "tlsCerts": { "default": cert } }))
}

fn both() -> Value {
    json!({ "contents": ["dnsnames", "ips"], "networks": ["CtlPlane"] })
}

fn issuer(name: &str, label: &str) -> Arc<Issuer> {
    let annotations = json!({ "osp-rootca-issuer-duration": "43800h" });
    let metadata = json!({ "labels": { label: "" }, "annotations": annotations });
    Arc::new(object(name, &json!({ "metadata": metadata, "spec": {} })))
}

fn issued() -> Issued {
    let issuers =
        vec![issuer("internal", DEFAULT_ISSUER), issuer("other", "osp-rootca-issuer-other")];
    Issued { is_served: true, issuers, ..Issued::default() }
}

fn on_networks(pairs: &[(&str, &[(&str, &str)])]) -> HostNetworkValues {
    let inner = |it: &[(&str, &str)]| {
        it.iter().map(|(network, it)| ((*network).to_owned(), (*it).to_owned())).collect()
    };
    pairs.iter().map(|(host, it)| ((*host).to_owned(), inner(it))).collect()
}

fn names() -> HostNetworkValues {
    on_networks(&[
        ("n0", &[("ctlplane", "n0.ctl.example.com"), ("internalapi", "n0.int.example.com")]),
        ("n1.example.org", &[("ctlplane", "n1.example.org")]),
    ])
}

fn addresses() -> HostNetworkValues {
    on_networks(&[
        ("n0", &[("ctlplane", "192.0.2.10"), ("internalapi", "198.51.100.10")]),
        ("n1.example.org", &[("ctlplane", "192.0.2.11")]),
    ])
}

/// The two hosts, with their reservations.
pub(in crate::node_set) fn hosts<'a>(
    names: &'a HostNetworkValues,
    addresses: &'a HostNetworkValues,
) -> Hosts<'a> {
    let (all, terminating) = (["n0", "n1.example.org"].into(), BTreeSet::new());
    Hosts { all, terminating, are_reserved: true, names, addresses }
}

/// Returns the objects that are written for one service.
fn written(service: &Service, issued: &Issued) -> Result<Vec<Value>, Vec<Problem>> {
    let (names, addresses) = (names(), addresses());
    let hosts = hosts(&names, &addresses);
    let DesiredCertificates { steps, problems } =
        desired(&two(), &requested([("agent", service)]), &hosts, issued, true);
    if !problems.is_empty() {
        return Err(problems);
    }
    let object = |step: Step| {
        if let Write::Apply { object, .. } = step.write {
            return object;
        }
        json!({ "deleted": step.target.name, "write": format!("{:?}", step.write) })
    };
    Ok(steps.into_iter().map(object).collect())
}

fn said(set: &NodeSet, service: &Service, issued: &Issued) -> (ConditionStatus, String) {
    let (names, addresses) = (names(), addresses());
    let (hosts, requests) = (hosts(&names, &addresses), requested([("agent", service)]));
    let asked = desired(set, &requests, &hosts, issued, true);
    let found = condition(set, &requests, &hosts, issued, &asked, true);
    (found.status, found.reason)
}

fn add(issued: &mut Issued, certificate: &Value) {
    let certificate: Certificate = serde_json::from_value(certificate.clone()).unwrap();
    issued.certificates.insert(certificate.name_any(), Arc::new(certificate));
}

#[test]
fn each_host_gets_a_certificate_with_its_names_and_addresses() {
    let found = written(&agent(&both()), &issued()).unwrap();
    assert_eq!(found.len(), 2, "all at once");
    assert_eq!(found[0]["metadata"]["name"], "agent-default-n0");
    assert_eq!(
        found[0]["metadata"]["labels"],
        json!({ "osdpns": "edpm", "osdp-service": "agent", "osdp-service-cert-key": "default",
                "hostname": "n0" })
    );
    assert_eq!(
        found[0]["spec"],
        json!({
            "secretName": "cert-agent-default-n0",
            "secretTemplate": { "labels": found[0]["metadata"]["labels"] },
            "commonName": "n0",
            "dnsNames": ["n0.ctl.example.com"],
            "ipAddresses": ["192.0.2.10"],
            "subject": { "organizations": ["internal"] },
            "duration": "43800h",
            "usages": ["key encipherment", "digital signature", "server auth"],
            "issuerRef": { "name": "internal", "group": "cert-manager.io", "kind": "Issuer" },
        })
    );
    assert_eq!(found[1]["spec"]["dnsNames"], json!(["n1.example.org"]));
}

#[test]
fn contents_networks_issuer_and_usages_are_the_services() {
    let spec = |cert: Value| written(&agent(&cert), &issued()).unwrap()[0]["spec"].clone();
    let all = spec(json!({ "contents": ["dnsnames"] }));
    assert_eq!(all["dnsNames"], json!(["n0.ctl.example.com", "n0.int.example.com"]));
    assert_eq!(all.get("ipAddresses"), None);
    let own = spec(json!({
        "contents": ["ips"], "issuer": "osp-rootca-issuer-other", "keyUsages": ["client auth"],
        "networks": ["internalapi"],
    }));
    assert_eq!(own["ipAddresses"], json!(["198.51.100.10"]));
    assert_eq!(
        (&own["issuerRef"]["name"], &own["usages"]),
        (&json!("other"), &json!(["client auth"]))
    );
}

#[test]
fn nothing_is_asked_twice_and_those_of_a_host_that_went_are_taken_back() {
    let (service, mut issued) = (agent(&both()), issued());
    let mut found = written(&service, &issued).unwrap();
    assert_eq!(said(&two(), &service, &issued), (ConditionStatus::False, "Issuing".into()));
    for it in &mut found {
        it["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        add(&mut issued, it);
    }
    assert_eq!(written(&service, &issued), Ok(vec![]));
    // The Secrets are not there yet, or a user has deleted them to have them issued again.
    assert_eq!(said(&two(), &service, &issued), (ConditionStatus::False, "Issuing".into()));
    for name in issued.certificates.keys() {
        issued.secrets.insert(format!("cert-{name}"), "1".into());
    }
    assert_eq!(said(&two(), &service, &issued), (ConditionStatus::True, "Issued".into()));
    issued.secrets.pop_first();
    assert_eq!(said(&two(), &service, &issued), (ConditionStatus::False, "Issuing".into()));
    let mut gone = found[0].clone();
    gone["metadata"]["name"] = json!("agent-default-n9");
    gone["metadata"]["labels"]["hostname"] = json!("n9");
    add(&mut issued, &gone);
    let taken_back = written(&service, &issued).unwrap();
    assert_eq!(taken_back[0]["deleted"], "agent-default-n9");
    // The Secret is deleted after its certificate, for which it would be recreated.
    issued.secrets.insert("cert-agent-default-n9".into(), "1".into());
    assert_eq!(written(&service, &issued).unwrap().len(), 1);
    issued.certificates.remove("agent-default-n9");
    assert_eq!(written(&service, &issued).unwrap()[0]["deleted"], "cert-agent-default-n9");
    // Objects of other owners stay.
    let mut foreign = found[0].clone();
    foreign["metadata"]["name"] = json!("theirs");
    foreign["metadata"]["ownerReferences"] = json!([]);
    add(&mut issued, &foreign);
    issued.secrets.clear();
    assert_eq!(written(&service, &issued), Ok(vec![]));
}

#[test]
fn without_cert_manager_hosts_get_no_certificates_unless_that_is_asked_for() {
    let (service, mut set) = (agent(&both()), two());
    let absent = Issued::default();
    assert_eq!(written(&service, &absent), Ok(vec![]));
    assert_eq!(said(&set, &service, &absent), (ConditionStatus::True, "NotEnabled".into()));
    let (names, addresses) = (names(), addresses());
    let hosts = hosts(&names, &addresses);
    assert!(is_enabled(&set, &hosts, &issued()));
    let unnamed = Hosts { are_reserved: false, ..hosts.clone() };
    assert!(!is_enabled(&set, &unnamed, &issued()), "certificates need names");
    set.spec.tls_enabled = Some(false);
    assert!(!is_enabled(&set, &hosts, &issued()));
    set.spec.tls_enabled = Some(true);
    assert_eq!(
        said(&set, &service, &absent),
        (ConditionStatus::False, "CertManagerNotFound".into())
    );
    let requests = requested([("agent", &service)]);
    let problems = desired(&set, &requests, &unnamed, &issued(), true).problems;
    assert_eq!(problems[0].reason.word, "NetworkMissing");
}

#[test]
fn an_issuer_that_is_absent_or_not_the_only_one_is_named_by_its_label() {
    let of = |issuers: Vec<Arc<Issuer>>| {
        let issued = Issued { issuers, ..issued() };
        written(&agent(&both()), &issued).unwrap_err().remove(0)
    };
    let absent = of(vec![]);
    assert_eq!(absent.reason.word, "IssuerNotFound");
    assert!(absent.message.contains("no Issuer carries it"), "{}", absent.message);
    let twice = of(vec![issuer("a", DEFAULT_ISSUER), issuer("b", DEFAULT_ISSUER)]);
    assert!(twice.message.contains("several Issuers"), "{}", twice.message);
}

#[test]
fn an_issuer_signs_for_hosts_only_where_its_label_or_annotation_says_that_it_is_meant_for_them() {
    const ANY: &str = "app.kubernetes.io/name";
    let mut cert = both();
    cert["issuer"] = json!(ANY);
    let of = |issuer: &Arc<Issuer>| {
        written(&agent(&cert), &Issued { issuers: vec![Arc::clone(issuer)], ..issued() })
    };
    let mut found = issuer("company", ANY);
    let fault = of(&found).unwrap_err().remove(0);
    assert_eq!(fault.reason.word, "IssuerNotPermitted");
    assert!(fault.message.contains("Issuer company is not meant for hosts"), "{}", fault.message);
    for (value, is_permitted) in [("false", false), ("true", true)] {
        Arc::make_mut(&mut found).annotations_mut().insert(ISSUES_FOR_HOSTS.into(), value.into());
        assert_eq!(of(&found).is_ok(), is_permitted, "{value}");
    }
}

#[test]
fn a_network_that_no_host_has_is_named_with_those_that_hosts_have() {
    let (names, addresses) = (names(), addresses());
    let said = |hosts: &Hosts<'_>, cert: &Value| {
        let service = agent(cert);
        let found = unknown_networks(&requested([("agent", &service)]), hosts);
        found.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let known = hosts(&names, &addresses);
    assert_eq!(said(&known, &both()), [""; 0]);
    let of =
        |contents: Value, networks: Value| json!({ "contents": contents, "networks": networks });
    let wrong = of(json!(["dnsnames", "ips"]), json!(["CtlPlane", "internlapi"]));
    let path = "spec.tlsCerts.default.networks of OpenStackDataPlaneService agent";
    let only = "no host here has dnsnames or ips on internlapi, only on ctlplane, internalapi: correct the";
    let found = said(&known, &wrong).remove(0);
    assert!(found.starts_with(&format!("{path}: {only}")), "{found}");
    // What the certificate does not carry does not count.
    let none = HostNetworkValues::new();
    let unreached = Hosts { addresses: &none, ..known.clone() };
    let found = said(&unreached, &of(json!(["ips"]), json!(["ctlplane"]))).remove(0);
    assert!(found.contains("no host here has ips on ctlplane: correct"), "{found}");
    // While names are not known, nothing is said of them.
    let unnamed = Hosts { names: &none, ..known.clone() };
    assert_eq!(said(&unnamed, &wrong), [""; 0]);
}

#[test]
fn a_host_without_a_name_on_the_managing_network_is_a_fault() {
    let names = on_networks(&[("n0", &[("internalapi", "n0.int.example.com")])]);
    let (hosts, service) = (hosts(&names, &names), agent(&both()));
    let requests = requested([("agent", &service)]);
    let problems = desired(&two(), &requests, &hosts, &issued(), true).problems;
    assert_eq!(problems[0].reason.word, "NetworkMissing");
}

#[test]
fn names_and_labels_of_any_length_are_ones_that_kubernetes_takes() {
    let (service, long) = (agent(&both()), "s".repeat(260));
    let request =
        CertificateRequest { service: &long, ..requested([("agent", &service)]).remove(0) };
    assert!(secret_of(&request, "n0").len() <= 253);
    assert!(request.labels(&owner_of(&two())).values().all(|it| it.len() <= 63));
    assert!(label_value(&long).len() <= 63);
}

#[test]
fn certificates_lie_in_the_folder_of_the_services_type_or_its_older_name() {
    let of = |service: &Service| requested([("listed", service)]).remove(0).directory();
    let typed = service(&json!({ "edpmServiceType": "kind", "tlsCerts": { "k": both() } }));
    assert_eq!(of(&typed), "kind");
    let mut cert = both();
    cert["edpmRoleServiceName"] = json!("old");
    assert_eq!(of(&agent(&cert)), "old");
    assert_eq!(of(&agent(&both())), "agent");
}

#[test]
fn a_service_without_certificates_uses_those_of_the_one_that_its_type_names() {
    assert_eq!(certificate_source(&service(&json!({ "edpmServiceType": "kind" }))), Some("kind"));
    assert_eq!(certificate_source(&service(&json!({ "edpmServiceType": "agent" }))), None);
    let own = json!({ "edpmServiceType": "kind", "tlsCerts": { "k": both() } });
    assert_eq!(certificate_source(&service(&own)), None);
}

#[test]
fn a_certificate_that_is_being_renewed_is_there_and_not_settled() {
    let (service, mut issued) = (agent(&both()), issued());
    let mut found = written(&service, &issued).unwrap().remove(0);
    let name = found["metadata"]["name"].as_str().unwrap().to_owned();
    issued.secrets.insert(format!("cert-{name}"), "7".into());
    let ready = json!({ "type": "Ready", "status": "True" });
    let mut state = |conditions: Value| {
        found["status"] = json!({ "conditions": conditions });
        add(&mut issued, &found);
        (issued.is_ready(&name), issued.settled(&name).cloned())
    };
    assert_eq!(state(json!([])), (false, None));
    assert_eq!(state(json!([ready])), (true, Some("7".into())));
    let issuing = json!({ "type": "Issuing", "status": "True" });
    assert_eq!(state(json!([ready, issuing])), (true, None));
}

#[test]
fn a_certificate_of_an_earlier_spec_is_not_the_one_that_was_asked_for() {
    let (service, mut issued) = (agent(&both()), issued());
    let mut found = written(&service, &issued).unwrap().remove(0);
    let name = found["metadata"]["name"].as_str().unwrap().to_owned();
    issued.secrets.insert(format!("cert-{name}"), "7".into());
    found["metadata"]["generation"] = json!(2);
    let mut settled = |generation: i64| {
        let ready = json!({ "type": "Ready", "status": "True", "observedGeneration": generation });
        found["status"] = json!({ "conditions": [ready] });
        add(&mut issued, &found);
        (issued.is_ready(&name), issued.settled(&name).cloned())
    };
    assert_eq!(settled(1), (false, None));
    assert_eq!(settled(2), (true, Some("7".into())));
}

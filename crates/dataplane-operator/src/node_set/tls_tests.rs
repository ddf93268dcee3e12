//! Which certificates are asked for, and how runs get them.

use common::conditions::Truth;
use common::plan::Write;
use serde_json::Value;

use super::*;
use crate::node_set::ipam::tests::{object, two};

fn service(spec: &Value) -> Service {
    let mut spec = spec.clone();
    spec["playbook"] = json!("a.b.c");
    object("OpenStackDataPlaneService", "agent", &json!({ "spec": spec }))
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
    Arc::new(object("Issuer", name, &json!({ "metadata": metadata, "spec": {} })))
}

fn issued() -> Issued {
    let issuers = vec![issuer("internal", DEFAULT_ISSUER), issuer("other", "other-label")];
    Issued { is_served: true, issuers, certificates: vec![] }
}

fn on_networks(pairs: &[(&str, &[(&str, &str)])]) -> OnNetworks {
    let inner = |it: &[(&str, &str)]| {
        it.iter().map(|(network, it)| ((*network).to_owned(), (*it).to_owned())).collect()
    };
    pairs.iter().map(|(host, it)| ((*host).to_owned(), inner(it))).collect()
}

fn names() -> OnNetworks {
    on_networks(&[
        ("n0", &[("ctlplane", "n0.ctl.example.com"), ("internalapi", "n0.int.example.com")]),
        ("n1.example.org", &[("ctlplane", "n1.example.org")]),
    ])
}

fn addresses() -> OnNetworks {
    on_networks(&[
        ("n0", &[("ctlplane", "192.0.2.10"), ("internalapi", "198.51.100.10")]),
        ("n1.example.org", &[("ctlplane", "192.0.2.11")]),
    ])
}

/// What is written for one service.
fn written(service: &Service, issued: &Issued) -> Result<Vec<Value>, Vec<Fault>> {
    let (names, addresses) = (names(), addresses());
    let hosts = Hosts { names: &names, addresses: &addresses };
    let steps = wanted(&two(), &wishes([("agent", service)]), &hosts, issued)?;
    let object = |step: Step| {
        if let Write::Apply { object, .. } = step.write {
            return object;
        }
        json!({ "deleted": step.target.name, "write": format!("{:?}", step.write) })
    };
    Ok(steps.into_iter().map(object).collect())
}

fn told(set: &NodeSet, service: &Service, issued: &Issued, faults: &[Fault]) -> (Truth, String) {
    let (names, addresses) = (names(), addresses());
    let hosts = Hosts { names: &names, addresses: &addresses };
    let found = finding(set, &wishes([("agent", service)]), &hosts, issued, faults);
    (found.status, found.reason)
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
        "contents": ["ips"], "issuer": "other-label", "keyUsages": ["client auth"],
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
    assert_eq!(told(&two(), &service, &issued, &[]), (Truth::False, "Issuing".into()));
    for it in &mut found {
        it["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        issued.certificates.push(Arc::new(serde_json::from_value(it.clone()).unwrap()));
    }
    assert_eq!(written(&service, &issued), Ok(vec![]));
    assert_eq!(told(&two(), &service, &issued, &[]), (Truth::True, "Issued".into()));
    let mut gone = found[0].clone();
    gone["metadata"]["name"] = json!("agent-default-n9");
    gone["metadata"]["labels"]["hostname"] = json!("n9");
    issued.certificates.push(Arc::new(serde_json::from_value(gone).unwrap()));
    let taken_back = written(&service, &issued).unwrap();
    assert_eq!(taken_back[0]["deleted"], "agent-default-n9");
}

#[test]
fn without_cert_manager_hosts_get_no_certificates_unless_that_is_asked_for() {
    let (service, mut set) = (agent(&both()), two());
    let absent = Issued::default();
    assert_eq!(written(&service, &absent), Ok(vec![]));
    assert_eq!(told(&set, &service, &absent, &[]), (Truth::True, "NotRequired".into()));
    assert!(is_enabled(&set, &issued()));
    set.spec.tls_enabled = Some(false);
    assert!(!is_enabled(&set, &issued()));
    set.spec.tls_enabled = Some(true);
    let (names, addresses) = (names(), addresses());
    let hosts = Hosts { names: &names, addresses: &addresses };
    let faults = wanted(&set, &wishes([("agent", &service)]), &hosts, &absent).unwrap_err();
    assert_eq!(
        told(&set, &service, &absent, &faults),
        (Truth::False, "CertManagerNotFound".into())
    );
}

#[test]
fn an_issuer_that_is_absent_or_not_the_only_one_is_named_by_its_label() {
    let of = |issuers: Vec<Arc<Issuer>>| {
        let issued = Issued { issuers, ..issued() };
        written(&agent(&both()), &issued).unwrap_err().remove(0)
    };
    let absent = of(vec![]);
    assert_eq!(absent.reason, "IssuerNotFound");
    assert!(absent.message.contains("no Issuer carries it"), "{}", absent.message);
    let twice = of(vec![issuer("a", DEFAULT_ISSUER), issuer("b", DEFAULT_ISSUER)]);
    assert!(twice.message.contains("several Issuers"), "{}", twice.message);
}

#[test]
fn a_host_without_a_name_on_the_managing_network_is_a_fault() {
    let names = on_networks(&[("n0", &[("internalapi", "n0.int.example.com")])]);
    let hosts = Hosts { names: &names, addresses: &names };
    let service = agent(&both());
    let faults = wanted(&two(), &wishes([("agent", &service)]), &hosts, &issued()).unwrap_err();
    assert_eq!(faults[0].reason, "NetworkMissing");
}

#[test]
fn certificates_are_bundled_by_host_up_to_the_size_that_a_secret_may_have() {
    let (names, addresses) = (names(), addresses());
    let hosts = Hosts { names: &names, addresses: &addresses };
    let bundle = |max_size| {
        let found = bundles(&hosts, max_size, |_, _| Some(&b"x"[..]));
        found.iter().map(|it| it.keys().cloned().collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let files = |name: &str| FILES.map(|it| format!("{name}-{it}")).to_vec();
    let (first, second) = (files("n0.ctl.example.com"), files("n1.example.org"));
    assert_eq!(bundle(1_000_000), [[first.clone(), second.clone()].concat()]);
    assert_eq!(bundle(100), [first, second]);
    let service = agent(&both());
    let wish = wishes([("agent", &service)]).remove(0);
    let expected = ["edpm-agent-default-certs-0", "edpm-agent-default-certs-1"];
    assert_eq!(bundle_names("edpm", &wish, 2), expected);
    let long = "s".repeat(260);
    let wish = Wish { service: &long, ..wish };
    assert_eq!(bundle_names("edpm", &wish, 1)[0].len(), 253);
    assert!(secret_of(&wish, "n0").len() <= 253);
}

#[test]
fn runs_mount_certificates_by_the_services_type_or_its_older_name() {
    let of = |service: &Service| {
        let wish = wishes([("agent", service)]).remove(0);
        match mount("edpm", &wish, 1) {
            Tls::Certificates { service_type, key, secrets } => (service_type, key, secrets.len()),
            Tls::Bundle { .. } => panic!("not a bundle"),
        }
    };
    let typed = service(&json!({ "edpmServiceType": "kind", "tlsCerts": { "k": both() } }));
    assert_eq!(of(&typed), ("kind".into(), "k".into(), 1));
    let mut cert = both();
    cert["edpmRoleServiceName"] = json!("old");
    assert_eq!(of(&agent(&cert)), ("old".into(), "default".into(), 1));
    assert_eq!(of(&agent(&both())).0, "agent");
}

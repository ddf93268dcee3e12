//! Tests: when the Secrets with all hosts' certificates are written, from what, and when they stay.

use std::sync::Arc;

use api::cert_manager::Certificate;
use api::dataplane::Service;
use operator_core::certificates::requested;
use operator_core::node_set_host::HostNetworkValues;
use operator_core::plan::Write;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::Content;
use operator_runtime::source_cache::Values;
use serde_json::Value;

use super::*;
use crate::node_set::ipam::tests::{object, two};
use crate::node_set::tls::tests;

fn service() -> Service {
    let cert = json!({ "contents": ["dnsnames"] });
    let spec = json!({ "playbook": "a.b.c", "tlsCerts": { "default": cert } });
    object("agent", &json!({ "spec": spec }))
}

fn names() -> HostNetworkValues {
    let of = |(host, name): (&str, &str)| {
        (host.to_owned(), [("ctlplane".to_owned(), name.to_owned())].into())
    };
    [("n0", "n0.ctl.example.com"), ("n1.example.org", "n1.example.org")].map(of).into()
}

/// What was observed of certificates, and of the Secrets with those of all hosts.
type Read = (Issued, Bundles);

/// All certificates are issued, as of these versions of their Secrets.
fn issued(versions: [&str; 2]) -> Read {
    let mut issued = Issued { is_served: true, ..Issued::default() };
    for (host, version) in ["n0", "n1.example.org"].into_iter().zip(versions) {
        let name = format!("agent-default-{host}");
        let status = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        let spec = json!({ "secretName": "", "issuerRef": { "name": "" } });
        let body = json!({ "spec": spec, "status": status });
        let certificate: Certificate = object(&name, &body);
        issued.certificates.insert(name.clone(), Arc::new(certificate));
        issued.secrets.insert(format!("cert-{name}"), version.to_owned());
    }
    (issued, Bundles::default())
}

/// The content of all Secrets of single hosts is read.
fn read((issued, bundles): &mut Read) {
    for (name, version) in &issued.secrets {
        let files = CERTIFICATE_FILES
            .map(|it| (it.to_owned(), format!("{name} {it} {version}").into_bytes()));
        let content = Content::from(Values::new(version.clone(), files.into()));
        bundles.files.insert(name.clone(), content);
    }
}

/// Returns the names and the written objects, with their content by key.
fn written(set: &NodeSet, (issued, bundles): &Read) -> Option<(Vec<String>, Vec<Value>)> {
    let (names, service) = (names(), service());
    let (hosts, requests) = (tests::hosts(&names, &names), requested([("agent", &service)]));
    let (names, steps) = bundle_secrets(set, &requests[0], &hosts, issued, bundles)?;
    let object = |it: Step| {
        let Write::Apply { object, .. } = it.write else { panic!("{:?}", it.write) };
        object
    };
    Some((names, steps.into_iter().map(object).collect()))
}

fn is_needed((issued, bundles): &Read) -> bool {
    let (names, service) = (names(), service());
    let (hosts, requests) = (tests::hosts(&names, &names), requested([("agent", &service)]));
    let found = needed(&two(), &requests, &hosts, issued, bundles);
    let selector = "osdp-service=agent,osdp-service-cert-key=default,osdpns=edpm,hostname";
    assert!(found.iter().all(|it| it == selector), "{found:?}");
    !found.is_empty()
}

/// Stores the requested objects, as the API server would, and returns their number.
fn write(issued: &mut Read) -> usize {
    read(issued);
    let (_, objects) = written(&two(), issued).unwrap();
    for it in &objects {
        let made_from = it["metadata"]["annotations"][MADE_FROM].as_str().unwrap().to_owned();
        let name = it["metadata"]["name"].as_str().unwrap().to_owned();
        issued.1.existing.insert(
            name,
            CertificateBundle { made_from, managed_fields: ManagedFields::applied(it) },
        );
    }
    issued.1.files.clear();
    objects.len()
}

#[test]
fn the_certificates_of_all_hosts_are_in_one_secret_named_after_node_set_and_service() {
    let mut issued = issued(["1", "2"]);
    assert!(is_needed(&issued));
    assert_eq!(written(&two(), &issued), None, "nothing was read");
    read(&mut issued);
    let (names, objects) = written(&two(), &issued).unwrap();
    assert_eq!(names, ["edpm-agent-default-certs-0"]);
    let data: BTreeMap<String, ByteString> =
        serde_json::from_value(objects[0]["data"].clone()).unwrap();
    let keys: Vec<&str> = data.keys().map(String::as_str).collect();
    let files = |name: &str| CERTIFICATE_FILES.map(|it| format!("{name}-{it}"));
    assert_eq!(keys, [files("n0.ctl.example.com"), files("n1.example.org")].concat());
    let key = &data["n1.example.org-tls.key"].0;
    assert_eq!(key, b"cert-agent-default-n1.example.org tls.key 2");
    let labels = json!({ "osdpns": "edpm", "osdp-service": "agent",
        "osdp-service-cert-key": "default", "numberOfSecrets": "1", "secretNumber": "0" });
    assert_eq!(objects[0]["metadata"]["labels"], labels);
    assert_eq!(objects[0]["metadata"]["ownerReferences"][0]["uid"], "u1");
}

#[test]
fn they_are_divided_by_host_where_they_are_larger_than_a_secret_may_be() {
    let mut set = two();
    set.spec.secret_max_size = 100;
    let mut issued = issued(["1", "1"]);
    read(&mut issued);
    let (names, objects) = written(&set, &issued).unwrap();
    assert_eq!(names, ["edpm-agent-default-certs-0", "edpm-agent-default-certs-1"]);
    assert_eq!(objects[1]["data"].as_object().unwrap().len(), CERTIFICATE_FILES.len());
}

#[test]
fn nobody_reads_a_key_while_they_are_made_from_what_there_is() {
    let mut issued = issued(["1", "1"]);
    assert_eq!(write(&mut issued), 1);
    assert!(!is_needed(&issued));
    let (names, objects) = written(&two(), &issued).unwrap();
    assert_eq!((names.len(), objects.len()), (1, 0));
    // A certificate is renewed.
    issued.0.secrets.insert("cert-agent-default-n0".into(), "2".into());
    assert!(is_needed(&issued));
    assert_eq!(write(&mut issued), 1);
    assert!(!is_needed(&issued));
    // A user removes a key.
    issued.1.existing.values_mut().next().unwrap().managed_fields = ManagedFields::default();
    assert!(is_needed(&issued));
    assert_eq!(write(&mut issued), 1);
}

#[test]
fn they_stay_as_they_are_while_one_of_a_host_is_missing_or_being_renewed() {
    let mut issued = issued(["1", "1"]);
    write(&mut issued);
    let issuing = json!({ "conditions": [{ "type": "Ready", "status": "True" },
        { "type": "Issuing", "status": "True" }] });
    let spoil = |change: &dyn Fn(&mut Issued)| {
        let mut issued = issued.clone();
        issued.0.secrets.insert("cert-agent-default-n1.example.org".into(), "2".into());
        change(&mut issued.0);
        assert!(!is_needed(&issued));
        let (names, objects) = written(&two(), &issued).unwrap();
        assert_eq!((names.len(), objects.len()), (1, 0));
    };
    spoil(&|it| drop(it.secrets.remove("cert-agent-default-n0")));
    spoil(&|it| drop(it.certificates.remove("agent-default-n0")));
    spoil(&|it| {
        let certificate = it.certificates.get_mut("agent-default-n0").unwrap();
        Arc::make_mut(certificate).status = serde_json::from_value(issuing.clone()).unwrap();
    });
}

#[test]
fn one_that_was_made_with_others_that_went_is_made_again_and_one_too_many_goes() {
    let mut issued = issued(["1", "1"]);
    write(&mut issued);
    let first = issued.1.existing.values().next().unwrap().clone();
    // One of two: the other one is gone.
    let made_from = first.made_from.replacen('1', "2", 1);
    let name = "edpm-agent-default-certs-0".to_owned();
    issued.1.existing.insert(name.clone(), CertificateBundle { made_from, ..first.clone() });
    assert!(is_needed(&issued));
    issued.1.existing.insert(name.clone(), first.clone());
    issued.1.existing.insert("edpm-agent-default-certs-1".into(), first);
    assert!(!is_needed(&issued));
    let steps = left(&two(), &[&name], &issued.1);
    assert!(matches!(&steps[..], [it] if it.target.name == "edpm-agent-default-certs-1"));
}

#[test]
fn a_name_too_long_for_an_object_is_cut() {
    let (service, long) = (service(), "s".repeat(260));
    let request =
        CertificateRequest { service: &long, ..requested([("agent", &service)]).remove(0) };
    assert_eq!(name("edpm", &request, 0).len(), 253);
}

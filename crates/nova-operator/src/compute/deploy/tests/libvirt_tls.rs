//! libvirt's certificate on hosts whose role has `tlsEnabled`: asked for, waited for, mounted, renewed
//! and taken back.

use api::cert_manager::{Certificate, Issuer};

use super::*;

const CERTIFICATE: &str = "compute-libvirt-default-n0";
const SECRET: &str = "cert-compute-libvirt-default-n0";

fn foreign<K: DeserializeOwned>(kind: &str, name: &str, body: Value) -> K {
    let mut object = body;
    object["apiVersion"] = json!("cert-manager.io/v1");
    object["kind"] = json!(kind);
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!("ns");
    serde_json::from_value(object).unwrap()
}

fn secret(version: &str) -> Digests {
    let keys = ["ca.crt", "tls.crt", "tls.key"].map(|it| (it.to_owned(), version.into()));
    Digests { version: version.into(), keys: keys.into(), ..Digests::default() }
}

impl World {
    /// A node whose hosts get certificates, in a cluster with cert-manager.
    pub(super) fn with_tls() -> Self {
        let mut world = Self::new();
        world.switch_tls_on();
        world
    }

    /// The same, deployed with its certificate.
    pub(super) fn deployed_with_tls() -> Self {
        let mut world = Self::with_tls();
        world.ask();
        world.issue("1");
        world.deploy()
    }

    fn switch_tls_on(&mut self) {
        let tls = json!({ "names": { "ctlplane": "n0.example.org" },
            "addresses": { "ctlplane": "192.0.2.7", "tenant": "172.19.0.7" } });
        self.node().status.as_mut().unwrap().tls = Some(serde_json::from_value(tls).unwrap());
        let metadata = json!({ "labels": { "osp-rootca-issuer-libvirt": "" } });
        let issuer: Issuer =
            foreign("Issuer", "libvirt", json!({ "metadata": metadata, "spec": {} }));
        self.seen.certificate.issued.is_served = true;
        self.seen.certificate.issued.issuers = vec![Arc::new(issuer)];
    }

    /// Stores what is asked of cert-manager; returns the writes.
    pub(super) fn ask(&mut self) -> Vec<String> {
        let plan = self.pass();
        let issued = &mut self.seen.certificate.issued;
        let mut writes = Vec::new();
        for Step { target, write, .. } in plan.independent {
            if let Write::Apply { object, .. } = write {
                let mut object = object;
                if target.kind.kind == "Secret" {
                    let metadata = &mut object["metadata"];
                    self.seen.certificate.metadata =
                        serde_json::from_value(metadata.take()).unwrap();
                    writes.push(format!("own {}", target.name));
                    continue;
                }
                object["metadata"]["uid"] = json!(target.name);
                let found: Certificate = serde_json::from_value(object).unwrap();
                issued.certificates.insert(target.name.clone(), Arc::new(found));
                writes.push(format!("apply {}", target.name));
            } else {
                issued.certificates.remove(&target.name);
                writes.push(format!("delete {}", target.name));
            }
        }
        writes
    }

    /// cert-manager says this of the certificate.
    fn say(&mut self, status: &str, message: &str) {
        let found = self.seen.certificate.issued.certificates.get_mut(CERTIFICATE).unwrap();
        let ready = json!({ "type": "Ready", "status": status, "message": message });
        let status = serde_json::from_value(json!({ "conditions": [ready] })).unwrap();
        Arc::make_mut(found).status = Some(status);
    }

    pub(super) fn issue(&mut self, version: &str) -> &mut Self {
        self.say("True", "Certificate is up to date and has not expired");
        self.seen.certificate.secret = Some(secret(version));
        self.seen.certificate.metadata.uid = Some("s".into());
        self
    }

    fn runs(&self) -> Vec<&str> {
        self.writes.iter().filter_map(|it| it.strip_prefix("run ")).collect()
    }
}

#[test]
fn the_certificate_of_libvirt_is_asked_for_with_names_and_addresses_and_waited_for_by_name() {
    let mut world = World::with_tls();
    assert_eq!(world.ask(), [format!("apply {CERTIFICATE}")]);
    let found = &world.seen.certificate.issued.certificates[CERTIFICATE];
    let spec = json!(found.spec);
    assert_eq!(spec["dnsNames"], json!(["n0.example.org"]));
    assert_eq!(spec["ipAddresses"], json!(["192.0.2.7"]));
    assert_eq!(spec["issuerRef"]["name"], "libvirt");
    assert!(spec["usages"].as_array().unwrap().contains(&json!("client auth")), "{spec}");
    assert_eq!(spec.get("privateKey"), None, "cert-manager makes RSA keys then");
    assert_eq!(found.owner_references()[0].kind, "NovaExternalCompute");
    assert_eq!(world.reason("InputReady"), "Issuing");
    world.say("False", "Issuing certificate as Secret does not exist");
    world.settle();
    let told = world.condition("InputReady").message;
    let words = "is not ready: Issuing certificate as Secret does not exist.";
    assert_eq!(told, format!("Certificate {CERTIFICATE} {words}"));
    assert_eq!(world.runs(), [""; 0]);
    world.issue("1").settle();
    assert_eq!(world.runs(), ["libvirt"]);
    let run = serde_json::to_string(&world.seen.runs[0].spec).unwrap();
    for words in ["/var/lib/openstack/certs/libvirt/default", SECRET, "n0.example.org-tls.key"] {
        assert!(run.contains(words), "{words}: {run}");
    }
    let world = world.deploy();
    let nova = world.seen.runs.iter().find(|it| it.name_any().starts_with("nova-n0")).unwrap();
    assert!(!serde_json::to_string(&nova.spec).unwrap().contains(SECRET), "libvirt's alone");
}

#[test]
fn a_renewed_certificate_is_an_input_of_libvirt_alone() {
    let mut world = World::deployed_with_tls();
    assert_eq!(world.ask(), [format!("own {SECRET}")], "it goes with its certificate");
    let owner = world.seen.certificate.metadata.owner_references.as_ref().unwrap()[0].clone();
    assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("Certificate", CERTIFICATE));
    assert_eq!(world.ask(), [""; 0]);
    world.issue("2").settle();
    world.mentions("UpToDate", &[&format!("Secret {SECRET}")]);
    world.end_well(2);
    assert_eq!(world.runs(), ["libvirt", "nova-registered"]);
    assert_eq!(world.reason("UpToDate"), "UpToDate");
}

#[test]
fn what_keeps_the_certificate_from_being_issued_is_told_with_the_way_on() {
    let mut world = World::with_tls();
    world.seen.certificate.issued.issuers.clear();
    assert_eq!(world.ask(), [""; 0]);
    assert_eq!(world.reason("InputReady"), "IssuerNotFound");
    world.mentions(
        "InputReady",
        &["osp-rootca-issuer-libvirt", "or set tlsEnabled: false in the role of the node."],
    );
    world.seen.certificate = SeenCertificate::default();
    let plan = world.pass();
    assert_eq!(world.reason("InputReady"), "CertManagerNotFound");
    assert!(plan.requeue_after.unwrap() <= std::time::Duration::from_mins(1));
    assert_eq!(world.runs(), [""; 0]);
}

#[test]
fn switching_tls_on_deploys_libvirt_and_nova_and_off_takes_the_certificate_back() {
    let mut world = World::deployed();
    assert_eq!(world.ask(), [""; 0], "no certificate without tlsEnabled");
    world.switch_tls_on();
    world.ask();
    world.issue("1");
    let mut world = world.deploy();
    world.ask();
    world.node().status.as_mut().unwrap().tls = None;
    assert_eq!(world.ask(), [format!("delete {CERTIFICATE}")]);
    let world = world.deploy();
    assert_eq!(world.reason("UpToDate"), "UpToDate");
}

#[test]
fn a_certificate_stays_while_the_node_does_not_say_what_holds() {
    let mut world = World::deployed_with_tls();
    world.ask();
    world.node().status.as_mut().unwrap().tls = None;
    world.node().metadata.generation = Some(2);
    assert_eq!(world.ask(), [""; 0]);
}

#[test]
fn a_certificate_stays_while_a_run_may_mount_it() {
    let mut world = World::with_tls();
    world.ask();
    world.issue("1").settle();
    assert_eq!(world.runs(), ["libvirt"]);
    world.ask();
    world.node().status.as_mut().unwrap().tls = None;
    assert_eq!(world.ask(), [""; 0]);
    world.end("Ok");
    assert_eq!(world.ask(), [format!("delete {CERTIFICATE}")]);
}

#[test]
fn the_certificate_goes_before_its_compute() {
    let world = World::deployed_with_tls();
    let leaving = removal::Observed { namespace_goes: true, ..leaving(&world.seen) };
    let plan = recorded(removal::decide(&leaving, None, world.now));
    let (last, before) = plan.steps.split_last().unwrap();
    assert!(matches!(last.write, Write::RemoveFinalizer { .. }), "{plan:?}");
    let deleted: Vec<&str> = before.iter().map(|it| it.target.name.as_str()).collect();
    assert_eq!(deleted, [CERTIFICATE]);
}

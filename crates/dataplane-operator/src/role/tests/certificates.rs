//! Certificates of a role's hosts: requested, waited for by name, mounted, renewed and taken back.

use api::cert_manager::Certificate;
use api::dataplane::Service;

use super::*;

const CERTIFICATE: &str = "agent-default-n0";

/// The cluster with cert-manager, and a role whose service `agent` has a certificate that
/// `install-certs` brings.
fn certified() -> World {
    let mut world = World::new();
    let cert = json!({ "contents": ["dnsnames", "ips"], "networks": ["ctlplane"] });
    let spec = json!({
        "playbook": "a.b.c", "edpmServiceType": "kind", "caCerts": "trusted",
        "tlsCerts": { "default": cert },
    });
    let agent: Service = objects::new(NAMESPACE, "agent", &spec);
    let bringing = DefaultServices::default().find("install-certs").unwrap().clone();
    world.seen.services.insert("agent".into(), Arc::new(agent));
    world.seen.services.insert("install-certs".into(), Arc::new(bringing));
    world.put("trusted", &[("tls-ca-bundle.pem", "1")]);
    let metadata = json!({ "labels": { "osp-rootca-issuer-internal": "" } });
    let issuer = json!({ "metadata": metadata, "spec": {} });
    world.seen.issued.is_served = true;
    world.seen.issued.issuers = vec![Arc::new(objects::named(NAMESPACE, "internal", issuer))];
    let spec = &mut world.role().spec;
    spec.tls_enabled = Some(true);
    spec.services = ["install-os", "install-certs", "agent"].map(str::to_owned).into();
    world
}

impl World {
    /// Puts a Secret with these keys, and the digests of their content.
    fn put(&mut self, secret: &str, files: &[(&str, &str)]) {
        let keys = files.iter().map(|(key, it)| ((*key).to_owned(), (*it).into())).collect();
        let digests = Digests { version: "1".into(), keys, ..Digests::default() };
        self.seen.sources.insert(SourceRef::secret(NAMESPACE, secret), digests);
    }

    /// Stores what is requested of cert-manager, as the API server would; returns the writes.
    fn ask(&mut self) -> Vec<String> {
        let plan = self.pass();
        let mut writes = Vec::new();
        for Step { target, write, .. } in plan.independent {
            let issued = &mut self.seen.issued;
            match write {
                Write::Apply { object, .. } => {
                    let mut object = object.clone();
                    object["metadata"]["uid"] = json!(target.name);
                    let found: Certificate = serde_json::from_value(object).unwrap();
                    issued.certificates.insert(target.name.clone(), Arc::new(found));
                    writes.push(format!("apply {}", target.name));
                }
                Write::Delete { .. } => {
                    issued.certificates.remove(&target.name);
                    issued.secrets.remove(&target.name);
                    writes.push(format!("delete {}", target.name));
                }
                other @ (Write::Create { .. }
                | Write::Status { .. }
                | Write::AddFinalizer { .. }
                | Write::RemoveFinalizer { .. }) => panic!("{other:?}"),
            }
        }
        self.writes.clear();
        writes
    }

    /// cert-manager says this of every certificate.
    fn say(&mut self, status: &str, message: &str) -> &mut Self {
        for it in self.seen.issued.certificates.values_mut() {
            let ready = json!({ "type": "Ready", "status": status, "message": message });
            let status = serde_json::from_value(json!({ "conditions": [ready] })).unwrap();
            Arc::make_mut(it).status = Some(status);
        }
        self
    }

    /// cert-manager issues every certificate.
    fn issue(&mut self) {
        self.say("True", "Certificate is up to date and has not expired");
        let names: Vec<String> = self.seen.issued.certificates.keys().cloned().collect();
        for name in names {
            let secret = format!("cert-{name}");
            self.put(&secret, &[("ca.crt", "1"), ("tls.crt", "1"), ("tls.key", "1")]);
            self.seen.issued.secrets.insert(secret, "1".into());
        }
    }

    /// The same, with the services deployed.
    fn with_certificates() -> Self {
        let mut world = certified();
        world.ask();
        world.issue();
        world.deploy();
        assert_eq!(world.condition(1, "UpToDate"), is("True", "UpToDate"));
        world
    }
}

#[test]
fn each_host_gets_its_certificate_and_what_brings_it_waits_in_cert_managers_words() {
    let mut world = certified();
    assert_eq!(world.ask(), [format!("apply {CERTIFICATE}"), "apply agent-default-n1".into()]);
    let found = json!(world.seen.issued.certificates[CERTIFICATE].spec);
    assert_eq!(
        (&found["dnsNames"], &found["ipAddresses"], &found["secretName"]),
        (&json!(["n0"]), &json!(["192.0.2.10"]), &json!("cert-agent-default-n0"))
    );
    assert_eq!(found.get("privateKey"), None, "cert-manager makes RSA keys then");
    let owner = &world.seen.issued.certificates[CERTIFICATE].owner_references()[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("OpenStackDataPlaneRole", "compute"));
    assert_eq!(world.condition(0, "InputReady"), is("False", "Issuing"));
    let told = world.message(0, "InputReady");
    assert_eq!(told, "Certificate agent-default-n0 is asked for now.");
    assert_eq!(runs(&world.settle()), [""; 0], "what comes before runs already");
    assert_eq!(runs(&world.finish(&[]).settle()), [""; 0]);
    let told = world.message(0, "InputReady");
    let words = "Certificate agent-default-n0 is not ready: its issuer has not signed it yet.";
    assert_eq!(told, words);
    world.say("False", "Issuing certificate as Secret does not exist.").settle();
    let told = world.message(0, "InputReady");
    assert!(
        told.ends_with("is not ready: Issuing certificate as Secret does not exist."),
        "{told}"
    );
    world.say("True", "Certificate is up to date and has not expired").settle();
    world.says(0, "InputReady", &["Secret cert-agent-default-n0 has no tls.crt yet."]);
    world.issue();
    assert_eq!(runs(&world.settle()), ["run install-certs on n0,n1"]);
    assert_eq!(world.condition(0, "InputReady"), is("True", "InputComplete"));
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.ask(), [""; 0], "nothing is asked twice");
}

#[test]
fn a_run_mounts_the_certificates_of_its_own_hosts_and_ca_bundles_and_plays_know_of_them() {
    let mut world = certified();
    world.ask();
    world.issue();
    world.settle();
    world.finish(&[("n1", "Failed")]).settle();
    let run = world.seen.runs.iter().find(|it| it.name_any().starts_with("install-certs")).unwrap();
    let mounts = run.spec.extra_mounts.iter();
    let (mounts, volumes): (Vec<_>, Vec<_>) =
        mounts.map(|it| (it.mounts.clone(), it.volumes.clone())).unzip();
    let (mounts, volumes) = (mounts.concat(), volumes.concat());
    let at = |path: &str| {
        let mount = mounts.iter().find(|it| it.mount_path == path).unwrap();
        json!(volumes.iter().find(|it| it.name == mount.name).unwrap())
    };
    let certificates = at("/var/lib/openstack/certs/kind/default");
    let file = |it: &str| json!({ "key": it, "path": format!("n0-{it}") });
    let secret = "cert-agent-default-n0";
    assert_eq!(
        certificates["projected"],
        json!({ "defaultMode": 0o440, "sources": [
            { "secret": { "name": secret, "items": [file("tls.crt"), file("tls.key")] } },
            { "secret": { "name": secret, "items": [file("ca.crt")], "optional": true } },
        ] })
    );
    let bundle = at("/var/lib/openstack/cacerts/kind");
    assert_eq!(bundle["secret"]["secretName"], "trusted");
    let inventory = &world.config_maps["dataplanerole-compute"]["data"]["inventory"];
    let inventory = inventory.as_str().unwrap();
    assert_eq!(inventory.matches("edpm_tls_certs_enabled: true").count(), 2, "{inventory}");
    let tls = world.seen.nodes[0].status.as_ref().unwrap().tls.clone().unwrap();
    assert_eq!(
        json!(tls),
        json!({ "names": { "ctlplane": "n0" },
        "addresses": { "ctlplane": "192.0.2.10" } })
    );
}

#[test]
fn a_renewed_certificate_is_brought_to_its_host_alone_by_what_brings_certificates_alone() {
    let mut world = World::with_certificates();
    world.put("cert-agent-default-n0", &[("ca.crt", "1"), ("tls.crt", "2"), ("tls.key", "2")]);
    world.set_deploy(false).settle();
    assert_eq!(world.condition(0, "UpToDate"), is("False", "InputsChanged"));
    world.says(0, "UpToDate", &["Secret cert-agent-default-n0"]);
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(1, "UpToDate"), is("True", "UpToDate"));
    assert_eq!(runs(&world.set_deploy(true).settle()), ["run install-certs on n0"]);
    assert_eq!(runs(&world.finish(&[]).settle()), [""; 0]);
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
}

#[test]
fn a_certificate_that_expired_is_told_and_takes_nobodys_readiness() {
    let mut world = World::with_certificates();
    world.say("False", "Certificate expired on Sun, 29 Nov 2026 05:00:00 UTC");
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.condition(0, "InputReady"), is("False", "Issuing"));
    let words = ["Certificate agent-default-n0 is not ready: Certificate expired"];
    world.says(0, "InputReady", &words);
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn what_keeps_all_hosts_from_having_certificates_is_told_on_the_role_with_the_way_on() {
    let told = |world: &mut World, reason: &str, words: &str| {
        world.ask();
        assert_eq!(runs(&world.settle()), [""; 0]);
        assert_eq!(runs(&world.finish(&[]).settle()), [""; 0], "{reason}");
        assert_eq!(world.role_condition("InputReady"), is("False", reason));
        assert_eq!(world.condition(0, "InputReady"), is("False", reason));
        world.says(0, "InputReady", &[words]);
    };
    let mut world = certified();
    world.seen.issued.issuers.clear();
    let words = "no Issuer carries it: label one, name another in tlsCerts, or set tlsEnabled: false \
                 in the role.";
    told(&mut world, "IssuerNotFound", words);
    let mut world = certified();
    world.seen.issued = Issued::default();
    let words = "OpenStackDataPlaneRole compute has tlsEnabled: true, and the cluster has no \
                 cert-manager";
    told(&mut world, "CertManagerNotFound", words);
    assert_eq!(world.pass().requeue_after, Some(std::time::Duration::from_mins(1)));
    let mut world = certified();
    world.role().spec.services = ["install-os", "agent"].map(str::to_owned).into();
    let words = "list a service with addCertMounts, such as install-certs, before it in spec.services \
                 of OpenStackDataPlaneRole compute";
    told(&mut world, "CertificatesNotBrought", words);
    let mut world = certified();
    world.seen.sources.remove(&SourceRef::secret(NAMESPACE, "trusted"));
    told(&mut world, "DataSourceNotFound", "Secret trusted, named by OpenStackDataPlaneService");
}

#[test]
fn a_host_whose_services_register_under_another_name_is_refused_before_its_first_run() {
    let mut world = certified();
    let node = world.node(0);
    let section = json!({ "ansibleVars": { "canonical_hostname": "n0.example.org" } });
    node.spec.node = Some(serde_json::from_value(section).unwrap());
    world.ask();
    assert_eq!(world.settled(0, "InputReady"), is("False", "HostNameDiffers"));
    world.says(0, "InputReady", &["set spec.hostName to the name under which"]);
    assert_eq!(world.condition(1, "InputReady").1, "Issuing");
}

#[test]
fn an_address_that_plays_take_for_the_hosts_own_is_the_certificates_and_so_are_fixed_ones() {
    let mut world = certified();
    let node = world.node(0);
    let section = json!({
        "ansibleVars": { "ctlplane_ip": "198.51.100.7" },
        "networks": [{ "name": "Tenant", "subnetName": "subnet1", "fixedIP": "172.19.0.100" }],
    });
    node.spec.node = Some(serde_json::from_value(section).unwrap());
    world.settle();
    let tls = world.seen.nodes[0].status.as_ref().unwrap().tls.clone().unwrap();
    let expected = json!({ "ctlplane": "198.51.100.7", "tenant": "172.19.0.100" });
    assert_eq!(json!(tls.addresses), expected);
}

#[test]
fn a_network_of_a_certificate_that_no_host_has_is_a_warning_of_the_role_and_stops_nothing() {
    let mut world = certified();
    let agent = Arc::make_mut(world.seen.services.get_mut("agent").unwrap());
    agent.spec.tls_certs.get_mut("default").unwrap().networks.push("internlapi".into());
    world.ask();
    world.issue();
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.role_condition("SpecWarnings"), is("True", "WithoutEffect"));
    let words =
        "Service agent: no host here has dnsnames or ips on internlapi, only on ctlplane: correct";
    conditions::says(world.role_conditions(), "SpecWarnings", &[words]);
    let agent = Arc::make_mut(world.seen.services.get_mut("agent").unwrap());
    agent.spec.tls_certs.get_mut("default").unwrap().networks.pop();
    world.settle();
    assert_eq!(world.role_reason("SpecWarnings"), None);
}

#[test]
fn without_tls_a_role_asks_for_nothing_mounts_nothing_and_waits_for_nothing() {
    for tls_enabled in [None, Some(false)] {
        let mut world = certified();
        world.role().spec.tls_enabled = tls_enabled;
        world.seen.sources.remove(&SourceRef::secret(NAMESPACE, "trusted"));
        assert_eq!(world.ask(), [""; 0]);
        world.deploy();
        assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
        let runs: Vec<&AnsibleEe> = world.seen.runs.iter().map(|it| &**it).collect();
        let runs = json!(runs);
        assert!(!runs.to_string().contains("/var/lib/openstack/certs"), "{runs}");
        assert_eq!(world.seen.nodes[0].status.as_ref().unwrap().tls, None);
        let inventory = world.config_maps["dataplanerole-compute"].to_string();
        assert!(!inventory.contains("edpm_tls_certs_enabled"), "{inventory}");
    }
}

#[test]
fn switching_tls_on_deploys_each_service_once_more_and_off_takes_the_certificates_back() {
    let mut world = certified();
    world.role().spec.tls_enabled = None;
    world.deploy();
    world.role().spec.tls_enabled = Some(true);
    world.ask();
    assert_eq!(runs(&world.settle()), [""; 0], "a host in service waits for all that it needs");
    assert_eq!(world.condition(0, "UpToDate"), is("False", "InputsChanged"));
    world.issue();
    assert_eq!(runs(&world.settle()), ["run install-os on n0,n1"]);
    world.deploy();
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
    world.role().spec.tls_enabled = Some(false);
    let deleted = ["agent-default-n0", "agent-default-n1"];
    assert_eq!(world.ask(), deleted.map(|it| format!("delete {it}")));
    let deleted = ["cert-agent-default-n0", "cert-agent-default-n1"];
    assert_eq!(world.seen.issued.secrets.len(), 2, "after their certificates");
    world.deploy();
    assert_eq!(world.ask(), deleted.map(|it| format!("delete {it}")));
}

#[test]
fn certificates_of_a_node_that_went_go_and_those_of_a_role_go_with_it() {
    let mut world = World::with_certificates();
    world.seen.nodes.remove(1);
    assert_eq!(world.ask(), ["delete agent-default-n1"]);
    assert_eq!(world.ask(), ["delete cert-agent-default-n1"]);
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now);
    world.role().metadata.deletion_timestamp = Some(now);
    let plan = recorded(decide::decide(&world.seen, None, world.now));
    let deleted = plan.steps.iter().filter(|it| matches!(it.write, Write::Delete { .. }));
    let deleted: Vec<&str> = deleted.map(|it| it.target.name.as_str()).collect();
    assert!(deleted.contains(&CERTIFICATE), "{deleted:?}");
    assert!(deleted.contains(&"cert-agent-default-n0"), "{deleted:?}");
}

//! Addresses, names and certificates, from the first request to the inventory and the runs.

use api::cert_manager::Certificate;
use api::infra::{DnsData, IpSet};
use operator_core::node_set_host::{Host, canonical_host_name, hosts};
use testkit::objects::named;
use testkit::passes::refused;

use super::*;
use crate::node_set::certificate_bundles::CertificateBundle;
use crate::node_set::certificate_bundles::MADE_FROM;
use crate::reasons;

fn ready() -> Value {
    json!([{ "type": "Ready", "status": "True" }])
}

impl World {
    /// Two hosts on two networks, in a cluster that manages addresses and names.
    fn on_networks() -> Self {
        let networks = json!([
            { "name": "ctlplane", "subnetName": "subnet1" },
            { "name": "InternalApi", "subnetName": "subnet1" },
        ]);
        let mut world = Self::of(&json!({
            "services": ["install", "web"],
            "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key", "networks": networks },
            "nodes": {
                "n0": { "ansible": { "ansibleHost": "192.0.2.10" } },
                "n1": { "hostName": "n1.example.org" },
            },
        }));
        let networks = json!([{ "name": "ctlplane" }, { "name": "InternalApi",
            "serviceNetwork": "internal" }]);
        let config = json!({ "spec": { "networks": networks } });
        world.seen.infra.net_configs = vec![Arc::new(named(NAMESPACE, "netconfig", config))];
        world.seen.infra.is_used = true;
        world.dns_server(true);
        world
    }

    fn dns_server(&mut self, is_ready: bool) -> &mut Self {
        let status = json!({
            "dnsAddresses": ["192.0.2.80"], "dnsClusterAddresses": ["198.51.100.80"],
            "conditions": if is_ready { ready() } else { json!([]) },
        });
        let spec = json!({ "dnsDataLabelSelectorValue": "dnsdata" });
        let body = json!({ "spec": spec, "status": status });
        self.seen.infra.dns_masqs = vec![Arc::new(named(NAMESPACE, "dnsmasq", body))];
        self
    }

    /// Stores a requested object, without a status.
    pub(super) fn serve(&mut self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        match object["kind"].as_str().unwrap() {
            "IPSet" => {
                let it: IpSet = serde_json::from_value(object.clone()).unwrap();
                let status = self.seen.infra.ip_set(&name).and_then(|it| it.status.clone());
                self.seen.infra.ip_sets.retain(|it| it.name_any() != name);
                self.seen.infra.ip_sets.push(Arc::new(IpSet { status, ..it }));
            }
            "DNSData" => {
                let it: DnsData = serde_json::from_value(object.clone()).unwrap();
                self.seen.infra.dns_data = Some(Arc::new(it));
            }
            "Certificate" => {
                let it: Certificate = serde_json::from_value(object.clone()).unwrap();
                self.seen.issued.certificates.insert(name, Arc::new(it));
            }
            "Secret" => {
                let made_from = object["metadata"]["annotations"][MADE_FROM].as_str().unwrap();
                let (made_from, owned) = (made_from.to_owned(), ManagedFields::applied(object));
                self.seen
                    .sources
                    .insert(SourceRef::secret(NAMESPACE, &name), digests(&made_from, &[]));
                self.seen
                    .bundles
                    .existing
                    .insert(name, CertificateBundle { made_from, managed_fields: owned });
                self.seen.bundles.files.clear();
            }
            kind => panic!("{kind} {name}"),
        }
    }

    pub(super) fn take_back(&mut self, kind: &str, name: &str) {
        match kind {
            "IPSet" => self.seen.infra.ip_sets.retain(|it| it.name_any() != name),
            "DNSData" => self.seen.infra.dns_data = None,
            "Certificate" => drop(self.seen.issued.certificates.remove(name)),
            _ => {
                self.seen.issued.secrets.remove(name);
                self.seen.bundles.existing.remove(name);
            }
        }
    }

    /// The address operator reports a reservation for each host on each requested network.
    fn reserve(&mut self) -> &mut Self {
        for (n, it) in self.seen.infra.ip_sets.iter_mut().enumerate() {
            let fixed = it.spec.networks[0].fixed_ip.clone();
            let known = it.status.as_ref().map(|it| it.reservations[0].address.clone());
            let address = fixed.or(known).unwrap_or_else(|| format!("192.0.2.{}", 100 + n));
            let status = json!({
                "conditions": ready(),
                "reservations": [
                    { "network": "ctlplane", "subnet": "subnet1", "address": address,
                      "cidr": "192.0.2.0/24", "dnsDomain": "ctl.example.com" },
                    { "network": "internalapi", "subnet": "subnet1", "mtu": 9000,
                      "address": format!("198.51.100.{n}"), "cidr": "198.51.100.0/25",
                      "serviceNetwork": "internal", "dnsDomain": "int.example.com" },
                ],
            });
            Arc::make_mut(it).status = Some(serde_json::from_value(status).unwrap());
        }
        self
    }

    /// The DNS operator reports readiness.
    fn name(&mut self) -> &mut Self {
        let it = Arc::make_mut(self.seen.infra.dns_data.as_mut().unwrap());
        it.status = Some(serde_json::from_value(json!({ "conditions": ready() })).unwrap());
        self
    }

    /// A node set whose addresses and names are ready.
    pub(super) fn served() -> Self {
        let mut world = Self::on_networks();
        world.settle();
        world.reserve().settle();
        world.name().settle();
        world
    }

    /// The same with cert-manager in the cluster; the service web requests a certificate, and
    /// install mounts the certificates.
    fn certified() -> Self {
        let mut world = Self::served();
        let cert = json!({ "default": { "contents": ["dnsnames", "ips"] } });
        let services = [
            ("web", json!({ "playbook": "a.b.web", "tlsCerts": cert })),
            ("install", json!({ "playbook": "a.b.install", "addCertMounts": true })),
        ];
        let services = services.map(|(name, spec)| (name.to_owned(), service(name, &spec)));
        world.seen.services = services.into();
        let metadata = json!({ "labels": { "osp-rootca-issuer-internal": "" } });
        let body = json!({ "metadata": metadata, "spec": {} });
        let issuer = named(NAMESPACE, "internal", body);
        world.seen.issued.is_served = true;
        world.seen.issued.issuers = vec![Arc::new(issuer)];
        world
    }

    /// The same, with a certificate for every host.
    pub(super) fn issued() -> Self {
        let mut world = Self::certified();
        world.settle();
        world.issue("1").settle();
        world
    }

    /// cert-manager issues what was requested, and the operator reads what it needs.
    pub(super) fn issue(&mut self, version: &str) -> &mut Self {
        let names: Vec<String> = self.seen.issued.certificates.keys().cloned().collect();
        for name in names {
            let it = self.seen.issued.certificates.get_mut(&name).unwrap();
            let status = serde_json::from_value(json!({ "conditions": ready() })).unwrap();
            Arc::make_mut(it).status = Some(status);
            self.seen.issued.secrets.insert(format!("cert-{name}"), version.to_owned());
        }
        if !crate::node_set::external_resources::needed_secrets(&self.seen).is_empty() {
            for name in self.seen.issued.secrets.keys() {
                let files = [("tls.crt", version), ("tls.key", version), ("ca.crt", "ca")];
                self.seen.bundles.files.insert(name.clone(), content(&files));
            }
        }
        self
    }

    pub(super) fn status(&self) -> Value {
        serde_json::to_value(self.seen.set.status.as_ref().unwrap()).unwrap()
    }

    /// The API server rejects the first write of a plan, of which the node set's status tells.
    fn refuse(&mut self, plan: &Plan) {
        let steps = refused(
            plan,
            |_| true,
            &reasons::FORBIDDEN,
            |it| recorded(decide::decide(&self.seen, Some(it), self.now).only_statuses()),
        );
        let [step] = &steps[..] else { panic!("{steps:?}") };
        self.take(step);
    }

    fn host(&self, name: &str) -> Value {
        self.inventory()[SET]["hosts"][name].clone()
    }
}

#[test]
fn a_host_is_deployed_at_the_addresses_that_were_reserved_for_it() {
    let mut world = World::on_networks();
    assert_eq!(world.settle()[..2], ["apply IPSet n0", "apply IPSet n1.example.org"]);
    assert_eq!(world.condition("NodeSetIPReservationReady"), is("False", "Reserving"));
    assert_eq!(world.condition("SetupReady"), is("False", "NotServedYet"));
    world.says("SetupReady", &["2 of 2 hosts"]);
    assert!(world.seen.inventory.is_none(), "no play may run at half an address");

    assert_eq!(world.reserve().settle()[0], "apply DNSData compute");
    assert_eq!(world.condition("NodeSetIPReservationReady"), is("True", "Reserved"));
    assert_eq!(world.condition("NodeSetDNSDataReady"), is("False", "Naming"));
    assert!(world.seen.inventory.is_none());

    world.name();
    assert_eq!(world.settle(), ["apply Secret dataplanenodeset-compute", "status NodeSet compute"]);
    world.holds([("NodeSetDNSDataReady", "True", "Named"), ("SetupReady", "True", "Ready")]);
    let (n0, n1) = (world.host("n0"), world.host("n1"));
    assert_eq!(
        (&n0["ansible_host"], &n0["ctlplane_ip"]),
        (&json!("192.0.2.10"), &json!("192.0.2.100"))
    );
    assert_eq!(n1["ansible_host"], "192.0.2.101");
    assert_eq!(n1["canonical_hostname"], "n1.example.org");
    assert_eq!(n1["internal_ip"], "198.51.100.1");
    assert_eq!(n1["ctlplane_dns_nameservers"], json!(["192.0.2.80"]));
    assert_eq!(
        world.inventory()[SET]["vars"]["networks_lower"],
        json!({ "InternalApi": "internal" })
    );
    let status = world.status();
    assert_eq!(
        status["allIPs"]["n0"],
        json!({ "ctlplane": "192.0.2.100", "internalapi": "198.51.100.0" })
    );
    assert_eq!(status["allHostnames"]["n1.example.org"]["ctlplane"], "n1.example.org");
    assert_eq!(status["ctlplaneSearchDomain"], "ctl.example.com");
    assert_eq!(status["dnsClusterAddresses"], json!(["198.51.100.80"]));
}

/// Other operators find a host's services by this name.
#[test]
fn the_canonical_name_of_a_host_is_that_of_its_inventory() {
    let names = |world: &World| -> Vec<String> {
        let set = &world.seen.set;
        let check = |host: &Host<'_>| {
            let name = canonical_host_name(set, host);
            assert_eq!(world.host(&host.name)["canonical_hostname"], json!(name));
            name
        };
        hosts(set).iter().map(check).collect()
    };
    let mut world = World::served();
    assert_eq!(names(&world), ["n0.ctl.example.com", "n1.example.org"]);
    let own = json!({ "canonical_hostname": "own.example.org" });
    world.edit("/nodes/n0/ansible/ansibleVars", own.clone()).settle();
    assert_eq!(names(&world)[0], "n0.ctl.example.com", "a reservation wins");
    let mut world = World::set_up();
    let before = names(&world);
    world.edit("/nodes/n0/ansible/ansibleVars", own).settle();
    assert_eq!(names(&world)[0], "own.example.org");
    assert_eq!(names(&world)[1..], before[1..]);
}

#[test]
fn a_reservation_wins_over_a_humans_variable() {
    let mut world = World::served();
    world.edit("/nodes/n0/ansible/ansibleVars", json!({ "ctlplane_mtu": 1, "own": 2 })).settle();
    let host = world.host("n0");
    assert_eq!((&host["ctlplane_mtu"], &host["own"]), (&json!(0), &json!(2)));
}

#[test]
fn a_reservation_that_goes_and_comes_again_moves_no_host() {
    let mut world = World::served();
    let (before, inventory) = (world.status(), world.content.clone());
    world.seen.infra.ip_sets.remove(1);
    assert_eq!(world.settle()[0], "apply IPSet n1.example.org");
    assert_eq!(world.condition("SetupReady").0, "False");
    assert_eq!(world.status()["allIPs"], before["allIPs"]);
    assert_eq!(world.condition("UpToDate"), is("False", "NeverDeployed"));
    assert_eq!(world.content, inventory);
    world.reserve().settle();
    assert_eq!(world.status()["configHash"], before["configHash"]);
    assert_eq!(world.content, inventory);
}

#[test]
fn what_a_host_had_is_given_back_when_it_goes_and_all_of_it_when_there_are_no_networks() {
    let mut world = World::served();
    let writes = world.take_out().settle();
    assert_eq!(writes[..2], ["delete IPSet n1.example.org", "apply DNSData compute"]);
    assert!(world.status()["allIPs"].get("n1.example.org").is_none());
    world.edit("/nodeTemplate/networks", json!([]));
    world.seen.infra.is_used = false;
    assert_eq!(world.settle()[..2], ["delete IPSet n0", "delete DNSData compute"]);
    assert_eq!(world.condition("NodeSetIPReservationReady"), is("True", "NotRequired"));
    assert!(world.status().get("allIPs").is_none());
}

#[test]
fn nothing_is_given_back_while_a_deployment_runs() {
    let mut world = World::served();
    world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]).settle();
    let writes = world.take_out().settle();
    assert!(!writes.iter().any(|it| it.starts_with("delete")), "{writes:?}");
    let mut without = world.clone();
    without.edit("/nodeTemplate/networks", json!([]));
    without.seen.infra.is_used = false;
    let writes = without.settle();
    assert!(!writes.iter().any(|it| it.starts_with("delete")), "{writes:?}");
    assert_eq!(world.end("d", true, ["c1", "s1"]).settle()[0], "delete IPSet n1.example.org");
}

#[test]
fn nothing_is_given_back_while_a_deployment_runs_that_cannot_be_read() {
    let mut world = World::served();
    world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]).settle();
    let readable = world.seen.deployments.clone();
    world.garble("d", false);
    let writes = world.take_out().settle();
    assert!(!writes.iter().any(|it| it.starts_with("delete")), "{writes:?}");
    world.seen.unreadable_deployments.clear();
    world.seen.deployments = readable;
    assert_eq!(world.end("d", true, ["c1", "s1"]).settle()[0], "delete IPSet n1.example.org");
}

#[test]
fn a_dns_server_that_is_away_changes_no_certificate() {
    let mut world = World::issued();
    world.deployed("d").settle();
    let before = world.status()["inputs"].clone();
    assert!(before.get("certificates").is_some(), "{before}");
    world.dns_server(false).settle();
    assert_eq!(world.condition("NodeSetDNSDataReady").0, "False");
    assert_eq!(world.status()["inputs"], before);
}

#[test]
fn what_is_on_its_way_out_is_deleted_once() {
    let mut world = World::served();
    world.take_out();
    let going = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
    Arc::make_mut(&mut world.seen.infra.ip_sets[1]).metadata.deletion_timestamp = going;
    let writes = world.settle();
    assert!(!writes.iter().any(|it| it.starts_with("delete")), "{writes:?}");
}

#[test]
fn an_address_that_changes_makes_the_node_set_out_of_date_by_the_name_of_its_reservation() {
    let mut world = World::served();
    world.deployed("d").settle();
    assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"));
    let it = Arc::make_mut(&mut world.seen.infra.ip_sets[1]);
    it.status.as_mut().unwrap().reservations[1].mtu = 1400;
    assert_eq!(world.settled("UpToDate"), is("False", "InputsChanged"));
    world.says("UpToDate", &["IPSet n1.example.org."]);
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    // Pending requests do not affect hosts that need none.
    world.dns_server(false).settle();
    assert_eq!(world.condition("NodeSetDNSDataReady"), is("False", "DnsServerNotReady"));
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn nothing_is_asked_for_hosts_that_are_not_as_they_should_be() {
    let mut world = World::on_networks();
    world.edit("/nodes/n2", json!({ "ansible": { "ansibleHost": "192.0.2.10" } }));
    let writes = world.settle();
    assert!(writes.iter().all(|it| !it.contains("IPSet")), "{writes:?}");
    for type_ in ["NodeSetIPReservationReady", "NodeSetDNSDataReady"] {
        assert_eq!(world.condition(type_), is("False", "InputMissing"));
    }
    assert_eq!(world.condition("NodeSetCertificatesReady"), is("True", "NotRequired"));
    assert_eq!(world.condition("Ready"), is("False", "HostTwice"));
}

#[test]
fn kinds_that_are_missing_are_looked_for_again() {
    let mut world = World::set_up();
    assert_eq!(world.condition("NodeSetIPReservationReady"), is("True", "NotRequired"));
    let pause = world.pass().requeue_after;
    world.seen.infra.is_missed = true;
    world.settle();
    world.says("NodeSetIPReservationReady", &["ansibleHost"]);
    assert!(world.pass().requeue_after < pause);
}

#[test]
fn certificates_are_asked_for_at_once_and_told_to_plays_when_all_are_there() {
    let mut world = World::certified();
    let writes = world.settle();
    let expected =
        ["apply Certificate web-default-n0", "apply Certificate web-default-n1.example.org"];
    assert_eq!(writes[..2], expected);
    world.holds([("NodeSetCertificatesReady", "False", "Issuing"), ("Ready", "False", "Issuing")]);
    // Deployments of services without certificates may begin.
    assert_eq!(world.condition("SetupReady"), is("True", "Ready"));
    let before = world.inventory()[SET]["vars"]["edpm_tls_certs_enabled"].clone();
    assert_eq!(before, false, "no play is told of certificates that are not there");

    assert_eq!(world.issue("1").settle()[0], "apply Secret compute-web-default-certs-0");
    world.holds([("NodeSetCertificatesReady", "True", "Issued"), ("SetupReady", "True", "Ready")]);
    assert_eq!(world.inventory()[SET]["vars"]["edpm_tls_certs_enabled"], true);
    let expected = json!([{ "service": "web", "key": "default", "directory": "web",
        "secrets": ["compute-web-default-certs-0"] }]);
    assert_eq!(world.status()["certificates"], expected);
}

#[test]
fn a_service_that_only_a_deployment_brings_gets_certificates_as_long_as_the_deployment_is_there() {
    let mut world = World::issued();
    world.deployed("d").settle();
    let inputs = world.status()["inputs"].clone();
    world.bring("extra");
    let writes = world.settle();
    assert_eq!(writes[0], "apply Certificate extra-own-n0", "{writes:?}");
    assert_eq!(world.condition("NodeSetCertificatesReady"), is("False", "Issuing"));
    world.issue("1").settle();
    let services = |world: &World| -> Vec<String> {
        let all = world.status()["certificates"].clone();
        all.as_array().unwrap().iter().map(|it| it["service"].as_str().unwrap().into()).collect()
    };
    assert_eq!(services(&world), ["web", "extra"]);
    assert_eq!(world.status()["inputs"], inputs, "hosts are not out of date for it");
    assert!(!world.message("UpToDate").contains("extra"), "{}", world.message("UpToDate"));
    world.seen.brought.clear();
    world.settle();
    assert_eq!(services(&world), ["web"]);
    assert!(!world.seen.issued.certificates.contains_key("extra-own-n0"));
}

#[test]
fn what_a_deployment_brings_waits_for_the_end_of_one_that_is_under_way() {
    let mut world = World::issued();
    world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]).settle();
    world.bring("extra");
    let writes = world.settle();
    assert!(!writes.iter().any(|it| it.contains("Certificate")), "{writes:?}");
    assert_eq!(world.end("d", true, ["c1", "s1"]).settle()[0], "apply Certificate extra-own-n0");
}

#[test]
fn what_is_wrong_with_one_certificate_keeps_no_other_from_being_asked_for() {
    let mut world = World::certified();
    world.bring("extra");
    let service = Arc::make_mut(world.seen.brought.get_mut("extra").unwrap());
    service.spec.tls_certs.get_mut("own").unwrap().issuer = Some("nobody".into());
    let writes = world.settle();
    assert_eq!(writes[0], "apply Certificate web-default-n0", "{writes:?}");
    assert_eq!(world.condition("NodeSetCertificatesReady"), is("False", "IssuerNotFound"));
    world.issue("1").settle();
    let told = &world.status()["certificates"];
    assert_eq!((&told[0]["service"], &told[0]["waitingHosts"]), (&json!("web"), &Value::Null));
}

#[test]
fn a_network_of_a_certificate_that_no_host_has_is_named_and_nothing_waits_for_it() {
    let mut world = World::issued();
    let web = Arc::make_mut(world.seen.services.get_mut("web").unwrap());
    let networks = ["CtlPlane", "internlapi"].map(str::to_owned);
    web.spec.tls_certs.get_mut("default").unwrap().networks = networks.into();
    world.settle();
    world.issue("2").settle();
    assert_eq!(world.condition("NodeSetCertificatesReady"), is("True", "Issued"));
    assert_eq!(world.condition("SpecWarnings"), is("True", "WithoutEffect"));
    let words = "Service web: no host here has dnsnames or ips on internlapi, only on ctlplane, internalapi";
    world.says("SpecWarnings", &[words]);
}

#[test]
fn a_refused_write_does_not_tell_of_an_inventory_that_may_not_be_written() {
    let mut world = World::certified().at_rest();
    let before = world.status()["configHash"].clone();
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVars": { "x": 1 } }));
    world.bring("extra");
    let plan = recorded(decide::decide(&world.seen, None, world.now));
    world.refuse(&plan);
    assert_eq!(world.status()["configHash"], before);
    assert_eq!(world.condition("SetupReady").0, "False");
    assert_eq!(world.condition("WritesAccepted"), is("False", "Forbidden"));
}

#[test]
fn one_more_host_does_not_take_the_certificates_of_the_others() {
    let mut world = World::issued();
    world.edit("/nodes/n2", json!({ "ansible": { "ansibleHost": "192.0.2.12" } })).settle();
    world.reserve();
    world.name_again();
    assert_eq!(world.condition("NodeSetCertificatesReady"), is("False", "Issuing"));
    assert_eq!(world.inventory()[SET]["vars"]["edpm_tls_certs_enabled"], true);
    assert!(world.status()["inputs"].get("certificates").is_some());
}

impl World {
    /// Adds a deployment of a service that has a certificate and that the node set does not list.
    fn bring(&mut self, name: &str) {
        let spec = json!({ "playbook": "a.b.c", "tlsCerts": { "own": {
            "contents": ["dnsnames"], "issuer": "osp-rootca-issuer-internal" } } });
        let service = object(name, &spec);
        self.seen.brought.insert(name.into(), Arc::new(service));
    }
}

#[test]
fn a_renewed_certificate_is_named_and_nothing_is_asked_anew() {
    let mut world = World::issued();
    world.deploy("d", &json!({}), &[("n0", 2, "Succeeded"), ("n1", 2, "Succeeded")]);
    world.end("d", true, ["c1", "s1"]);
    let bundle = "compute-web-default-certs-0";
    let used = world.seen.sources[&SourceRef::secret(NAMESPACE, bundle)].published.clone();
    let mut deployment = serde_json::to_value(&*world.seen.deployments[0]).unwrap();
    deployment["status"]["secretHashes"][bundle] = json!(used.text());
    world.seen.deployments[0] = Arc::new(serde_json::from_value(deployment).unwrap());
    world.settle();
    let told = world.message("UpToDate");
    assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"), "{told}");
    assert_eq!(world.issue("2").settle()[0], "apply Secret compute-web-default-certs-0");
    assert_eq!(world.condition("UpToDate"), is("False", "InputsChanged"));
    world.says("UpToDate", &["Secret compute-web-default-certs-0 of service install"]);
    world.holds([("Ready", "True", "Ready"), ("SetupReady", "True", "Ready")]);
}

#[test]
fn certificates_of_a_host_that_went_are_taken_back_after_the_deployment_that_runs() {
    let mut world = World::issued();
    world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]).settle();
    world.take_out();
    world.name_again();
    assert!(world.seen.issued.certificates.contains_key("web-default-n1.example.org"));
    world.end("d", true, ["c1", "s1"]).settle();
    assert!(!world.seen.issued.certificates.contains_key("web-default-n1.example.org"));
    assert!(!world.seen.issued.secrets.contains_key("cert-web-default-n1.example.org"));
    world.issue("1").settle();
    assert_eq!(world.condition("NodeSetCertificatesReady"), is("True", "Issued"));
}

impl World {
    /// Runs passes after a change of the hosts, with the DNS operator's report.
    fn name_again(&mut self) {
        self.settle();
        self.name().settle();
    }
}

#[test]
fn tls_without_cert_manager_is_told_and_waited_for_where_it_is_asked_for() {
    let mut world = World::certified();
    (world.seen.issued, world.seen.bundles) = Default::default();
    assert_eq!(world.settled("NodeSetCertificatesReady"), is("True", "NotEnabled"));
    world.says("NodeSetCertificatesReady", &["no cert-manager"]);
    assert_eq!(world.condition("SetupReady").0, "True");
    world.edit("/tlsEnabled", json!(true)).settle();
    assert_eq!(world.condition("NodeSetCertificatesReady"), is("False", "CertManagerNotFound"));
    assert_eq!(world.condition("Ready"), is("False", "CertManagerNotFound"));
    assert_eq!(world.inventory()[SET]["vars"]["edpm_tls_certs_enabled"], false);
    assert_eq!(world.pass().requeue_after, Some(crate::host::machines::request::CRD_POLL_INTERVAL));
    world.edit("/tlsEnabled", json!(false)).settle();
    assert_eq!(world.condition("SetupReady").0, "True");
}

#[test]
fn the_node_set_takes_its_certificates_with_it() {
    let mut world = World::issued();
    let set = Arc::make_mut(&mut world.seen.set);
    set.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-02T00:00:00Z")).unwrap());
    set.metadata.finalizers = Some(vec![INVENTORY_FINALIZER.to_owned()]);
    let expected = [
        "status NodeSet compute",
        "delete Certificate web-default-n0",
        "delete Certificate web-default-n1.example.org",
        "delete Secret cert-web-default-n0",
        "delete Secret cert-web-default-n1.example.org",
        "delete Secret dataplanenodeset-compute",
        "release NodeSet compute",
    ];
    assert_eq!(world.settle(), expected);
}

#[test]
fn five_hundred_hosts_are_served_in_portions_and_then_nothing_is_written() {
    let mut world = World::certified();
    let nodes: serde_json::Map<String, Value> =
        (0..500).map(|it| (format!("n{it}"), json!({}))).collect();
    world.edit("/nodes", Value::Object(nodes));
    let n_asked = |world: &mut World| world.pass().independent.len();
    // One host was removed, and the DNS names are written once all hosts have an address.
    assert_eq!(n_asked(&mut world), 500);
    world.settle();
    world.reserve();
    assert_eq!(n_asked(&mut world), 500, "the names, and certificates of all but one");
    world.name().settle();
    world.issue("1").settle();
    assert_eq!(world.condition("SetupReady"), is("True", "Ready"));
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn what_is_refused_for_one_host_is_told_and_keeps_no_other_from_being_asked_for() {
    let mut world = World::on_networks();
    let plan = recorded(decide::decide(&world.seen, None, world.now));
    assert_eq!(plan.independent.len(), 2, "they do not depend on each other");
    world.refuse(&plan);
    assert_eq!(world.condition("WritesAccepted"), is("False", "Forbidden"));
    world.says("WritesAccepted", &["IPSet n0"]);
    assert_eq!(world.settled("Ready"), is("False", "Reserving"), "it was taken after all");
}

#[test]
fn a_service_that_cannot_be_read_is_told_with_its_field_and_its_certificates_stay() {
    let mut world = World::issued();
    let before = world.status();
    let service = world.seen.services.remove("web").unwrap();
    let why = "spec.playbook: cannot be read; expected a string";
    world.seen.unreadable.insert("web".into(), why.into());
    assert_eq!(world.settled("ServiceInputsReady"), is("False", "ServiceUnreadable"));
    let text = world.message("ServiceInputsReady");
    let listed =
        "OpenStackDataPlaneService web, listed in spec.services of OpenStackDataPlaneNodeSet";
    assert!(text.contains(listed) && text.contains(why) && !text.contains("create"), "{text}");
    let issued = &world.seen.issued;
    let bundles = world.seen.bundles.existing.len();
    let left = (issued.certificates.len(), issued.secrets.len(), bundles);
    assert_eq!(left, (2, 2, 1));
    assert_eq!(world.status()["certificates"], before["certificates"]);
    assert_eq!(world.inventory()[SET]["vars"]["edpm_tls_certs_enabled"], true);
    world.seen.unreadable.clear();
    world.seen.services.insert("web".into(), service);
    world.settle();
    assert_eq!(world.status()["inputs"], before["inputs"]);
}

#[test]
fn certificates_that_are_not_wanted_any_more_are_taken_back_after_the_deployment_that_runs() {
    let mut world = World::issued();
    world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]).settle();
    let before = world.status()["certificates"].clone();
    world.edit("/tlsEnabled", json!(false)).settle();
    assert_eq!(world.status()["certificates"], before, "its runs mount them");
    assert_eq!(world.seen.bundles.existing.len(), 1);
    world.end("d", true, ["c1", "s1"]).settle();
    let issued = &world.seen.issued;
    let bundles = world.seen.bundles.existing.len();
    let left = (issued.certificates.len(), issued.secrets.len(), bundles);
    assert_eq!(left, (0, 0, 0));
    assert_eq!(world.condition("NodeSetCertificatesReady"), is("True", "NotEnabled"));
    assert!(world.status().get("certificates").is_none());
    assert_eq!(world.inventory()[SET]["vars"]["edpm_tls_certs_enabled"], false);
}

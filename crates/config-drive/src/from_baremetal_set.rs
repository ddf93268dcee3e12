//! The drives of an `OpenStackBaremetalSet`'s hosts, with faults at the set's own fields.

use std::collections::{BTreeMap, BTreeSet};

use api::baremetal::{BaremetalHost, BaremetalSetSpec, Provisioner};
use api::shared::SecretReference;
use serde_json::Value;

use crate::drive::Drive;
use crate::fault::Fault;
use crate::format::ApiVersion;
use crate::input::{Host, Network, Uplink, User, UserTexts};
use crate::user_data;
use api::secret::Secret;

/// Texts of Secrets in the set's namespace: Secret name → key → text.
pub type Texts = BTreeMap<String, BTreeMap<String, Secret<String>>>;

/// The cause of a fault that creating the Secret corrects.
pub const NO_SECRET: &str = "is not an existing Secret";

/// The first version of Ironic's API with network data of ramdisks.
const RAMDISKS: ApiVersion = ApiVersion { major: 1, minor: 66 };
/// The field of a host that names the Secret with its ramdisk's network data, and the Secret's
/// keys.
const OF_RAMDISK: (&str, [&str; 2]) = ("preprovisioningNetworkDataName", ["networkData", "value"]);

/// Returns the Secrets in the set's namespace from which drives and ramdisk networks are made.
///
/// Secrets of adopted hosts are not included, because these hosts get neither.
pub fn secrets<'a>(set: &'a BaremetalSetSpec, namespace: &str) -> BTreeSet<&'a str> {
    let shared = [
        &set.template.password_secret,
        &set.user_data,
        &set.network_data,
        &set.meta_data,
        &set.vendor_data,
    ];
    let deployed = || set.baremetal_hosts.values().filter(|it| !it.adopt);
    let own =
        deployed().flat_map(|it| [&it.user_data, &it.network_data, &it.meta_data, &it.vendor_data]);
    let is_here = |it: &&SecretReference| it.namespace.as_deref().is_none_or(|it| it == namespace);
    let referred = shared.into_iter().chain(own).flatten().filter(is_here);
    let named = referred.filter_map(|it| it.name.as_deref());
    // With Metal3 the Secret is in the machine's namespace, and Metal3 reads it.
    let is_of_ironic = set.effective_provisioner() == Provisioner::Ironic;
    let ramdisks = deployed().filter(|_| is_of_ironic).filter_map(of_ramdisk);
    named.chain(ramdisks).chain(set.template.deployment_ssh_secret.as_deref()).collect()
}

/// Returns the name of the Secret with the network data of a host's ramdisk.
fn of_ramdisk(host: &BaremetalHost) -> Option<&str> {
    host.preprovisioning_network_data_name.as_deref().filter(|it| !it.is_empty())
}

/// A reference to a Secret, if the user set it.
type Reference<'a> = Option<&'a SecretReference>;

/// A host of a set, with everything from which its drive is made.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The set.
    pub set: &'a BaremetalSetSpec,
    /// Its namespace.
    pub namespace: &'a str,
    /// The host's name: a key of `baremetalHosts`.
    pub name: &'a str,
    /// Its entry in `baremetalHosts`.
    pub host: &'a BaremetalHost,
    /// The contents of the Secrets that set and host name.
    pub texts: &'a Texts,
}

impl Member<'_> {
    /// Returns the drive for a deployment.
    ///
    /// # Errors
    /// Returns all faults, with their paths in the set.
    pub fn drive(&self, instance_uuid: &str) -> Result<Drive, Vec<Fault>> {
        let host = self.input(instance_uuid)?;
        Drive::of(&host).map_err(|faults| faults.into_iter().map(|it| self.placed(it)).collect())
    }

    /// Returns the network data of the ramdisk; `None` when the host names none.
    ///
    /// `version` is Ironic's API version, if known. Each link has an `mtu`, as in the drive.
    ///
    /// # Errors
    /// Returns the faults of the Secret, or that the API version is too old.
    pub fn ramdisk(
        &self,
        version: Option<ApiVersion>,
    ) -> Result<Option<Secret<Value>>, Vec<Fault>> {
        let Some(name) = of_ramdisk(self.host) else { return Ok(None) };
        let (field, keys) = OF_RAMDISK;
        let path = self.own_path(field);
        if let Some(version) = version.filter(|it| *it < RAMDISKS) {
            let cause = format!("needs version {RAMDISKS} of Ironic's API, and this is {version}");
            let way = "leave it out, and let ramdisks get their addresses by DHCP";
            return Err(vec![Fault::new(path, name, cause, way)]);
        }
        let mut faults = Vec::new();
        let Some(text) = self.text(name, &keys, &path, &mut faults) else { return Err(faults) };
        let data = user_data::object(keys[0], Some(&text), &mut faults);
        let data = data.map(|it| user_data::network_data(it, &mut faults));
        if faults.is_empty() {
            return Ok(data.map(Secret::new));
        }
        let placed = |it: Fault| {
            let part = it.path.trim_start_matches("given.");
            Fault::new(&path, name, format!("is a Secret whose {part} {}", it.cause), it.way)
        };
        Err(faults.into_iter().map(placed).collect())
    }

    /// Returns the input of the drive.
    ///
    /// # Errors
    /// Returns what the Secrets lack.
    pub fn input(&self, instance_uuid: &str) -> Result<Host, Vec<Fault>> {
        let Self { set, name, .. } = *self;
        let mut faults = Vec::new();
        let given = self.given(&mut faults);
        let keys = set.template.deployment_ssh_secret.as_deref().unwrap_or_default();
        let keys = match &given.user_data {
            // A cloud-config of the user does not contain these keys.
            Some(_) => None,
            None => self.text(keys, &["authorized_keys"], "spec.deploymentSSHSecret", &mut faults),
        };
        let lines = keys.iter().flat_map(|it| it.expose().lines()).map(str::trim);
        let lines = lines.filter(|it| !it.is_empty() && !it.starts_with('#'));
        let login = set.template.cloud_user_name.clone();
        let authorized_keys = lines.map(str::to_owned).collect();
        let root_password = self.root_password(&mut faults);
        let domain = set.template.domain_name.as_ref().filter(|it| !it.is_empty());
        let network = self.network();
        let is_given = self.host.network_data.is_some() || set.network_data.is_some();
        if network.is_none() && !is_given {
            faults.extend(self.without_address());
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Host {
            host_name: name.to_owned(),
            fqdn: domain.map(|it| format!("{name}.{it}")),
            instance_uuid: instance_uuid.to_owned(),
            user: User { name: login, authorized_keys },
            root_password,
            network,
            given,
        })
    }

    fn root_password(&self, faults: &mut Vec<Fault>) -> Option<Secret<String>> {
        let reference = self.set.template.password_secret.as_ref()?;
        let text =
            self.referred(reference, &["NodeRootPassword"], "spec.passwordSecret", faults)?;
        Some(Secret::new(text.expose().trim_end_matches(['\r', '\n']).to_owned()))
    }

    fn given(&self, faults: &mut Vec<Fault>) -> UserTexts {
        let Self { set, host, .. } = *self;
        let mut text = |key: &'static str, own: Reference<'_>, shared: Reference<'_>| {
            let path = if own.is_some() { self.own_path(key) } else { format!("spec.{key}") };
            // Metal3 also looks for the key `value`.
            self.referred(own.or(shared)?, &[key, "value"], &path, faults)
        };
        UserTexts {
            user_data: text("userData", host.user_data.as_ref(), set.user_data.as_ref()),
            network_data: text(
                "networkData",
                host.network_data.as_ref(),
                set.network_data.as_ref(),
            ),
            meta_data: text("metaData", host.meta_data.as_ref(), set.meta_data.as_ref()),
            vendor_data: text("vendorData", host.vendor_data.as_ref(), set.vendor_data.as_ref()),
        }
    }

    fn referred(
        &self,
        reference: &SecretReference,
        keys: &[&str],
        path: &str,
        faults: &mut Vec<Fault>,
    ) -> Option<Secret<String>> {
        if let Some(other) = reference.namespace.as_deref().filter(|it| *it != self.namespace) {
            let way = format!("move the Secret to {}, or leave namespace out", self.namespace);
            let cause = "is not the namespace of the set";
            faults.push(Fault::new(format!("{path}.namespace"), other, cause, way));
            return None;
        }
        self.text(reference.name.as_deref().unwrap_or_default(), keys, path, faults)
    }

    /// Returns the text of the first of these keys that a Secret has.
    fn text(
        &self,
        name: &str,
        keys: &[&str],
        path: &str,
        faults: &mut Vec<Fault>,
    ) -> Option<Secret<String>> {
        let key = keys[0];
        let found = self.texts.get(name).map(|data| keys.iter().find_map(|it| data.get(*it)));
        if let Some(Some(text)) = found {
            return Some(text.clone());
        }
        let (cause, way) = match found {
            None => (NO_SECRET, format!("create it, with key {key}")),
            Some(_) => ("is a Secret that lacks a key", format!("give it key {key} with a text")),
        };
        faults.push(Fault::new(path, name, cause, way));
        None
    }

    /// Returns the fault of a host with address settings but no address: it would get no network
    /// data at all.
    fn without_address(&self) -> Option<Fault> {
        let Self { set, host, .. } = *self;
        let is_some = |it: &&String| !it.is_empty();
        let own = || host.ctlplane_gateway.as_ref().filter(is_some);
        let shared = || set.ctlplane_gateway.as_ref().filter(is_some);
        let (path, value) = if let Some(vlan_id) = host.ctlplane_vlan {
            (self.own_path("ctlplaneVlan"), vlan_id.to_string())
        } else if let Some(gateway) = own() {
            (self.own_path("ctlplaneGateway"), gateway.clone())
        } else {
            ("spec.ctlplaneGateway".to_owned(), shared()?.clone())
        };
        let cause = format!("is missing, and {path} {value} has an effect only with an address");
        let way = "give the host its address with the length of the prefix, as in 192.168.122.100/24, or \
                   networkData; without these, and without VLAN and gateway, the image uses DHCP";
        Some(Fault::hidden(self.own_path("ctlPlaneIP"), cause, way))
    }

    /// Returns the control plane network; `None` without an address.
    fn network(&self) -> Option<Network> {
        let Self { set, host, .. } = *self;
        let address = host.ctl_plane_ip.clone().filter(|it| !it.is_empty())?;
        let own = host.ctlplane_interface.as_ref().filter(|it| !it.is_empty());
        let uplink = match (&set.template.ctlplane_bond, own) {
            (Some(bond), None) => Uplink::Bond(bond.clone()),
            (_, own) => Uplink::Card(own.unwrap_or(&set.template.ctlplane_interface).clone()),
        };
        let gateway = host.ctlplane_gateway.as_ref().or(set.ctlplane_gateway.as_ref());
        Some(Network {
            uplink,
            vlan_id: host.ctlplane_vlan,
            mtu: set.ctlplane_mtu,
            address,
            gateway: gateway.filter(|it| !it.is_empty()).cloned(),
            dns_servers: set.bootstrap_dns.clone(),
            dns_search: set.dns_search_domains.clone(),
        })
    }

    /// Moves a fault to the set's field that caused it.
    fn placed(&self, fault: Fault) -> Fault {
        let path = self.path(&fault.path);
        Fault { path, ..fault }
    }

    fn path(&self, path: &str) -> String {
        let Self { set, host, .. } = *self;
        if let Some(given) = path.strip_prefix("given.") {
            return self.given_path(given);
        }
        let either = |key: &str, is_own: bool| {
            if is_own { self.own_path(key) } else { format!("spec.{key}") }
        };
        let is_below = |above: &str| path.starts_with(above);
        match path {
            "fqdn" => "spec.domainName".into(),
            "hostName" => format!("spec.baremetalHosts[{}]", self.name),
            "rootPassword" => "spec.passwordSecret".into(),
            "user.name" => "spec.cloudUserName".into(),
            "network.address" => self.own_path("ctlPlaneIP"),
            "network.mtu" => "spec.ctlplaneMtu".into(),
            "network.vlanId" => self.own_path("ctlplaneVlan"),
            "network.gateway" => either("ctlplaneGateway", host.ctlplane_gateway.is_some()),
            "network.bond.mode" => "spec.ctlplaneBond.bondMode".into(),
            "network.cards" if set.template.ctlplane_bond.is_some() => {
                "spec.ctlplaneBond.bondInterfaces".into()
            }
            "network.cards" => either("ctlplaneInterface", host.ctlplane_interface.is_some()),
            _ if is_below("network.bond.options") => "spec.ctlplaneBond.bondOptions".into(),
            _ if is_below("network.dnsServers") => "spec.bootstrapDns".into(),
            _ if is_below("network.dnsSearch") => "spec.dnsSearchDomains".into(),
            _ if is_below("user.authorizedKeys") => "spec.deploymentSSHSecret".into(),
            other => other.to_owned(),
        }
    }

    /// Returns the path of a value from a user's Secret: its first word is the key.
    fn given_path(&self, path: &str) -> String {
        let BaremetalHost { user_data, network_data, meta_data, vendor_data, .. } = self.host;
        let own = [
            ("userData", user_data),
            ("networkData", network_data),
            ("metaData", meta_data),
            ("vendorData", vendor_data),
        ];
        let is_own = own.iter().any(|(key, given)| path.starts_with(key) && given.is_some());
        if is_own { self.own_path(path) } else { format!("spec.{path}") }
    }

    fn own_path(&self, key: &str) -> String {
        format!("spec.baremetalHosts[{}].{key}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use api::baremetal::BaremetalSetSpec;
    use serde_json::{Value, json};

    use super::*;
    use crate::drive::LIMIT;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv";
    const UUID: &str = "4dc4d6a3-7bf5-4d6e-8f0c-0b9c2d3a4e5f";

    fn set(changes: &Value) -> BaremetalSetSpec {
        let mut spec = json!({
            "ctlplaneInterface": "eno1", "deploymentSSHSecret": "keys", "domainName": "example.org",
            "ctlplaneGateway": "192.0.2.1", "bootstrapDns": ["192.0.2.53"],
            "baremetalHosts": {"compute-0": {"ctlPlaneIP": "192.0.2.10/24"}},
        });
        for (key, value) in changes.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        serde_json::from_value(spec).unwrap()
    }

    fn texts() -> Texts {
        let secret = |entries: &[(&str, &str)]| -> BTreeMap<String, Secret<String>> {
            let own = |text: &str| Secret::new(text.to_owned());
            entries.iter().map(|(key, text)| ((*key).to_owned(), own(text))).collect()
        };
        BTreeMap::from([
            (
                "keys".to_owned(),
                secret(&[("authorized_keys", &format!("# mine\n{KEY} a\n\n{KEY} b\n"))]),
            ),
            ("root".to_owned(), secret(&[("NodeRootPassword", "hunter2\n")])),
            ("list".to_owned(), secret(&[("networkData", "[]")])),
            ("empty".to_owned(), secret(&[("networkData", "{}")])),
            (
                "own".to_owned(),
                secret(&[
                    ("userData", "#cloud-config\n{}"),
                    (
                        "value",
                        "links: [{id: a, type: phy}]\nnetworks: [{id: b, link: a, type: ipv4_dhcp}]",
                    ),
                ]),
            ),
            (
                "large".to_owned(),
                secret(&[("userData", &format!("#!/bin/sh\n#{}", "a".repeat(LIMIT)))]),
            ),
        ])
    }

    #[test]
    fn the_secrets_that_drives_need_are_those_of_the_namespace_and_of_hosts_that_get_a_drive() {
        let set = set(&json!({
            "passwordSecret": {"name": "root", "namespace": "openstack"},
            "vendorData": {"name": "far", "namespace": "elsewhere"},
            "baremetalHosts": {
                "a": {"userData": {"name": "own"}},
                "b": {"userData": {"name": "adopted"}, "adopt": true},
            },
        }));
        let needed: Vec<&str> = secrets(&set, "openstack").into_iter().collect();
        assert_eq!(needed, ["keys", "own", "root"]);
    }

    #[test]
    fn the_network_data_of_a_ramdisk_is_read_where_ironic_provisions_and_knows_it() {
        let (field, _) = OF_RAMDISK;
        let names = |host: Value| json!({"baremetalHosts": {"a": host}, "provisioner": "ironic"});
        let told = |name: &str, version: &str| {
            let (set, texts) = (set(&names(json!({field: name}))), texts());
            let host = &set.baremetal_hosts["a"];
            let member =
                Member { set: &set, namespace: "openstack", name: "a", host, texts: &texts };
            let told = |faults: Vec<Fault>| faults[0].to_string();
            member.ramdisk(Some(version.parse().unwrap())).map_err(told)
        };
        let needed =
            |of: &Value| secrets(&set(of), "openstack").into_iter().map(str::to_owned).collect();
        let of_ironic: Vec<String> = needed(&names(json!({field: "own"})));
        assert_eq!(of_ironic, ["keys", "own"]);
        assert_eq!(needed(&names(json!({field: "own", "adopt": true}))), ["keys"]);
        assert_eq!(needed(&json!({"baremetalHosts": {"a": {field: "own"}}})), ["keys"]);

        let data = told("own", "1.66").unwrap().unwrap();
        let link = json!({"id": "a", "type": "phy", "mtu": 1500});
        assert_eq!(data.expose()["links"], json!([link]));
        assert_eq!(data.expose()["services"], json!([]));
        assert_eq!(told("", "1.46"), Ok(None));
        let path = format!("spec.baremetalHosts[a].{field}");
        for (name, version, fault) in [
            (
                "own",
                "1.65",
                "needs version 1.66 of Ironic's API, and this is 1.65; leave it out, and let ramdisks \
                 get their addresses by DHCP",
            ),
            ("absent", "1.66", "is not an existing Secret; create it, with key networkData"),
            ("root", "1.66", "is a Secret that lacks a key; give it key networkData with a text"),
            (
                "list",
                "1.66",
                "is a Secret whose networkData is not an object; give keys and values, as YAML or \
                 JSON",
            ),
            (
                "empty",
                "1.66",
                "is a Secret whose networkData.links is not a list of objects; write them as in \
                 OpenStack's network_data.json",
            ),
        ] {
            assert_eq!(told(name, version), Err(format!("{path}: {name:?} {fault}")));
        }
    }

    fn made(changes: &Value) -> Result<Drive, Vec<String>> {
        let (set, texts) = (set(changes), texts());
        let (name, host) = set.baremetal_hosts.first_key_value().unwrap();
        let member = Member { set: &set, namespace: "openstack", name, host, texts: &texts };
        let told = |faults: Vec<Fault>| faults.iter().map(ToString::to_string).collect();
        member.drive(UUID).map_err(told)
    }

    #[track_caller]
    fn rejected(changes: &Value, expected: &str) {
        let faults = made(changes).unwrap_err();
        assert!(faults.iter().any(|it| it == expected), "{faults:#?}");
    }

    fn file(drive: &Drive, name: &str) -> String {
        drive.files()[name].expose().clone()
    }

    #[test]
    fn a_host_gets_its_names_keys_and_address() {
        let drive = made(&json!({"passwordSecret": {"name": "root"}})).unwrap();
        let user = file(&drive, "user_data");
        for part in ["compute-0.example.org", "cloud-admin", &format!("{KEY} b"), "hunter2"] {
            assert!(user.contains(part), "{part}: {user}");
        }
        let network: Value = serde_json::from_str(&file(&drive, "network_data.json")).unwrap();
        assert_eq!(network["links"][0]["mtu"], 1500);
        assert_eq!(network["networks"][0]["ip_address"], "192.0.2.10");
    }

    #[test]
    fn a_bond_with_a_vlan_carries_the_address() {
        let drive = made(&json!({
            "ctlplaneBond": {"bondInterfaces": ["eno1", "eno2"], "bondMode": "802.3ad"},
            "baremetalHosts": {"compute-0": {"ctlPlaneIP": "192.0.2.10/24", "ctlplaneVlan": 44}},
        }))
        .unwrap();
        let network: Value = serde_json::from_str(&file(&drive, "network_data.json")).unwrap();
        let types: Vec<_> =
            network["links"].as_array().unwrap().iter().map(|it| it["type"].clone()).collect();
        assert_eq!(types, ["phy", "phy", "bond", "vlan"]);
        assert_eq!(network["networks"][0]["link"], "vlan44");
    }

    #[test]
    fn without_an_address_and_a_word_on_its_network_the_image_goes_its_own_way() {
        for gateway in [Value::Null, json!("")] {
            let host = json!({"compute-0": {"ctlplaneInterface": "eno2"}});
            let drive = json!({"ctlplaneGateway": gateway, "baremetalHosts": host});
            assert!(!made(&drive).unwrap().files().contains_key("network_data.json"));
        }
    }

    #[test]
    fn a_gateway_or_a_vlan_without_an_address_is_a_fault() {
        let told = |path: &str| {
            format!(
                "spec.baremetalHosts[compute-0].ctlPlaneIP: the value is missing, and {path} has \
                 an effect only with an address; give the host its address with the length of the \
                 prefix, as in 192.168.122.100/24, or networkData; without these, and without VLAN \
                 and gateway, the image uses DHCP"
            )
        };
        let host = |host: Value| json!({"compute-0": host});
        rejected(
            &json!({"baremetalHosts": host(json!({}))}),
            &told("spec.ctlplaneGateway 192.0.2.1"),
        );
        for (field, value) in [("ctlplaneVlan", json!(44)), ("ctlplaneGateway", json!("192.0.2.9"))]
        {
            let fields = json!({ field: value, "ctlPlaneIP": "" });
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let path = format!("spec.baremetalHosts[compute-0].{field} {shown}");
            let changes = json!({"ctlplaneGateway": null, "baremetalHosts": host(fields)});
            rejected(&changes, &told(&path));
        }
        // A user's own network needs none of them.
        let own = json!({"networkData": {"name": "own"}});
        let drive = made(&json!({"baremetalHosts": host(own)})).unwrap();
        assert!(drive.files().contains_key("network_data.json"));
    }

    #[test]
    fn what_a_human_gives_takes_its_place_and_the_hosts_own_comes_first() {
        let own = json!({"baremetalHosts": {"compute-0": {
            "userData": {"name": "own", "namespace": "openstack"}, "networkData": {"name": "own"},
        }}, "userData": {"name": "absent"}, "deploymentSSHSecret": "absent"});
        let drive = made(&own).unwrap();
        assert_eq!(file(&drive, "user_data"), "#cloud-config\n{}");
    }

    #[test]
    fn each_fault_is_told_where_the_human_wrote_it() {
        let host = |host: Value| json!({"baremetalHosts": {"compute-0": host}});
        rejected(
            &json!({"ctlplaneGateway": "192.0.3.1"}),
            "spec.ctlplaneGateway: \"192.0.3.1\" is outside the subnet 192.0.2.0/24; give a router of \
             that subnet, or none",
        );
        rejected(
            &json!({"deploymentSSHSecret": "absent"}),
            "spec.deploymentSSHSecret: \"absent\" is not an existing Secret; create it, with key \
             authorized_keys",
        );
        rejected(
            &json!({"passwordSecret": {"name": "keys"}}),
            "spec.passwordSecret: \"keys\" is a Secret that lacks a key; give it key NodeRootPassword with a text",
        );
        rejected(
            &host(json!({"userData": {"name": "own", "namespace": "elsewhere"}})),
            "spec.baremetalHosts[compute-0].userData.namespace: \"elsewhere\" is not the namespace of the \
             set; move the Secret to openstack, or leave namespace out",
        );
        let large = made(&json!({"userData": {"name": "large"}})).unwrap_err();
        assert!(
            large[0].starts_with("spec.userData: the value has ") && large[0].contains("above")
        );
        let paths = |changes: &Value| -> Vec<String> {
            let cut = |it: String| it.split(": ").next().unwrap().to_owned();
            made(changes).unwrap_err().into_iter().map(cut).collect()
        };
        let address = host(json!({"ctlPlaneIP": "192.0.2.0/24"}));
        assert_eq!(paths(&address), ["spec.baremetalHosts[compute-0].ctlPlaneIP"]);
        assert_eq!(paths(&json!({"ctlplaneInterface": "no name"})), ["spec.ctlplaneInterface"]);
        assert_eq!(paths(&json!({"cloudUserName": "Admin"})), ["spec.cloudUserName"]);
        assert_eq!(paths(&json!({"bootstrapDns": ["dns"]})), ["spec.bootstrapDns"]);
        assert_eq!(paths(&json!({"dnsSearchDomains": ["-"]})), ["spec.dnsSearchDomains"]);
        assert_eq!(paths(&json!({"domainName": "x_y"})), ["spec.domainName"]);
        let text = json!({"metaData": {"name": "keys"}, "networkData": {"name": "keys"}});
        assert_eq!(paths(&text), ["spec.networkData", "spec.metaData"]);
        let named = json!({"baremetalHosts": {"Compute": {"ctlPlaneIP": "192.0.2.10/24"}}});
        assert_eq!(paths(&named), ["spec.baremetalHosts[Compute]"]);
        let bond = json!({"ctlplaneBond": {"bondInterfaces": ["a", "b"], "bondMode": "odd"}});
        assert_eq!(paths(&bond), ["spec.ctlplaneBond.bondMode"]);
    }
}

//! Sets of machines: what upstream's manifests say is kept, ours too, and what can never work is
//! refused with the legal way.

use super::*;
use crate::baremetal::{Authentication, BaremetalSetSpec, ConfigDriveFormat, Provisioner};

fn spec(changes: &Value) -> Value {
    let mut spec = json!({
        "ctlplaneInterface": "eno1",
        "deploymentSSHSecret": "keys",
        "baremetalHosts": {"compute-0": {"ctlPlaneIP": "192.168.122.100/24"}},
    });
    for (key, value) in changes.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

fn ironic(changes: &Value) -> Value {
    let mut ironic = json!({"endpoint": "https://ironic:6385", "authentication": "none"});
    for (key, value) in changes.as_object().into_iter().flatten() {
        ironic[key] = value.clone();
    }
    json!({"provisioner": "ironic", "ironic": ironic})
}

#[test]
fn a_set_as_upstream_writes_it_keeps_every_field() {
    let set: BaremetalSet = round_trip(
        r"
apiVersion: baremetal.openstack.org/v1beta1
kind: OpenStackBaremetalSet
metadata: {name: compute-set, namespace: openstack}
spec:
  baremetalHosts:
    compute-0:
      ctlPlaneIP: 192.168.122.100/24
      ctlplaneGateway: 192.168.122.1
      ctlplaneVlan: 44
      bmhLabelSelector: {nodeName: compute-0}
      userData: {name: user-data-0, namespace: openstack}
      networkData: {name: network-data-0, namespace: openstack}
      preprovisioningNetworkDataName: ramdisk-0
    compute-1: {ctlPlaneIP: fd00::101/64, ctlplaneInterface: eno2}
  bmhNamespace: openstack
  bmhLabelSelector: {app: openstack}
  bootstrapDns: [192.168.122.80]
  dnsSearchDomains: [ctlplane.example.com]
  ctlplaneInterface: eno1
  ctlplaneGateway: 192.168.122.1
  cloudUserName: cloud-admin
  deploymentSSHSecret: keys
  domainName: example.com
  osImage: edpm-hardened-uefi.qcow2
  automatedCleaningMode: metadata
  passwordSecret: {name: root, namespace: openstack}
  hardwareReqs: {cpuReqs: {arch: x86_64}}
",
    );
    assert_eq!(set.spec.template.ctlplane_interface, "eno1");
    assert_eq!(set.spec.provisioner, None);
    assert_eq!(set.spec.config_drive_format, ConfigDriveFormat::Auto);
}

#[test]
fn a_set_for_ironic_keeps_every_field() {
    let set: BaremetalSet = round_trip(
        r#"
apiVersion: baremetal.openstack.org/v1beta1
kind: OpenStackBaremetalSet
metadata: {name: compute-set, namespace: openstack}
spec:
  ctlplaneInterface: eno1
  deploymentSSHSecret: keys
  provisioner: ironic
  configDriveFormat: Iso
  deprovisionPolicy: Retain
  ctlplaneMtu: 9000
  vendorData: {name: vendor}
  metaData: {name: meta}
  ironic:
    endpoint: https://ironic.example.org:6385
    authentication: http_basic
    secret: ironic
    caSecret: ironic-ca
    image: {source: "https://images/edpm.qcow2", checksum: "https://images/edpm.sha256"}
    rootDevice: {size: ">= 100"}
    machine: {resourceClass: baremetal, traits: [CUSTOM_EDPM], capabilities: {boot_mode: uefi}}
    provide: true
    deployAttempts: 5
  baremetalHosts:
    compute-0: {ctlPlaneIP: 192.168.122.100/24, machine: {extra: {rack: r1}}}
    compute-1: {ctlPlaneIP: 192.168.122.101/24, machine: {node: rack1-u7}, adopt: true}
"#,
    );
    let ironic = set.spec.ironic.unwrap();
    assert_eq!(set.spec.provisioner, Some(Provisioner::Ironic));
    assert_eq!((ironic.authentication, ironic.deploy_attempts), (Authentication::HttpBasic, 5));
}

#[test]
fn what_can_never_work_is_refused_with_the_legal_way() {
    let check = |new: &Value, expected: &str| check::<BaremetalSetSpec>(new, None, expected);
    check(&spec(&json!({})), "");
    check(&spec(&ironic(&json!({}))), "");
    check(&spec(&json!({"provisioner": "ironic"})), "needs spec.ironic");
    let mut no_key = spec(&json!({}));
    no_key.as_object_mut().unwrap().remove("deploymentSSHSecret");
    check(&no_key, "name a Secret with public keys");
    let basic = ironic(&json!({"authentication": "http_basic"}));
    check(&spec(&basic), "secret is required");
    check(&spec(&ironic(&json!({"secret": "a"}))), "must be left out with none");
    let image = |image: Value| spec(&ironic(&json!({"image": image})));
    check(&image(json!({"source": "https://a/b.qcow2"})), "needs a checksum");
    check(&image(json!({"source": "4dc4d6a3-7bf5-4d6e-8f0c-0b9c2d3a4e5f"})), "");
    let host = |host: Value| spec(&json!({"baremetalHosts": {"a": host}}));
    check(&host(json!({"ctlPlaneIP": "192.168.122.100"})), "with its prefix length");
    check(&host(json!({"ctlplaneGateway": "router"})), "must be an IP address");
    check(&host(json!({"adopt": true})), "set machine.node");
    check(&host(json!({"adopt": true, "machine": {"node": "a"}})), "");
    let long = spec(&json!({"baremetalHosts": {"a".repeat(64): {}}}));
    check(&long, "at most 63 characters");
}

/// An object with that spec, one of whose hosts has that machine.
fn set_with(spec: &Value, machine: &str) -> Value {
    let host = json!({"hostname": "compute-9", "bmhRef": machine});
    json!({
        "apiVersion": "baremetal.openstack.org/v1beta1",
        "kind": "OpenStackBaremetalSet",
        "metadata": {"name": "compute-set"},
        "spec": spec,
        "status": {"baremetalHosts": {"compute-9": host}},
    })
}

#[test]
fn the_provisioner_and_its_endpoint_stay_while_hosts_have_machines() {
    let ours = spec(&ironic(&json!({})));
    let away = spec(&ironic(&json!({"endpoint": "https://other:6385"})));
    let metal3 = spec(&json!({"provisioner": "metal3"}));
    let (mut silent, mut named) = (ours.clone(), ours.clone());
    silent.as_object_mut().unwrap().remove("provisioner");
    named["provisioner"] = json!("metal3");
    let check = |old: &Value, new: &Value, expected: &str| {
        let with = |machine: &str, expected: &str| {
            let old = set_with(old, machine);
            check::<BaremetalSet>(&set_with(new, machine), Some(&old), expected);
        };
        // Nothing can be forgotten of machines that nobody has.
        with("unassigned", "");
        let bare = |it: &Value| json!({"metadata": {"name": "compute-set"}, "spec": it});
        check::<BaremetalSet>(&bare(new), Some(&bare(old)), "");
        with("4dc4d6a3-7bf5-4d6e-8f0c-0b9c2d3a4e5f", expected);
    };
    let (provisioner, endpoint) = ("provisioner cannot be changed", "endpoint cannot be changed");
    check(&ours, &away, endpoint);
    check(&ours, &metal3, provisioner);
    // What nobody says is what it comes to.
    check(&silent, &ours, "");
    check(&ours, &silent, "");
    check(&silent, &named, provisioner);
    check(&spec(&json!({})), &metal3, "");
    check(&spec(&json!({})), &ours, provisioner);
    // A host that was taken out has its machine until that is given back.
    let mut empty = ours.clone();
    empty["baremetalHosts"] = json!({});
    let mut empty_away = away.clone();
    empty_away["baremetalHosts"] = json!({});
    check(&empty, &empty_away, endpoint);
    check(&empty, &ours, "");
}

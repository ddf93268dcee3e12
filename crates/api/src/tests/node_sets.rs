//! Node sets and deployments: what upstream's manifests say is kept, and what can never work is
//! refused.

use std::fmt::Write as _;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::dataplane::deployment::DeploymentNodeSet;
use crate::dataplane::node_set::{HostState, MAX_HOSTS, NodeSetHost};
use crate::dataplane::{Disruption, DisruptionHolder, NodeSetMachines};

/// A node set's spec with these nodes, as the API server completes it.
fn spec(nodes: &Value) -> Value {
    json!({
        "preProvisioned": true,
        "nodeTemplate": {"ansibleSSHPrivateKeySecret": "key"},
        "nodes": nodes,
    })
}

fn named(names: impl IntoIterator<Item = String>) -> Value {
    let host = json!({"ansible": {"ansibleHost": "192.168.122.100"}});
    Value::Object(names.into_iter().map(|it| (it, host.clone())).collect())
}

#[test]
fn a_node_set_as_upstream_writes_it_keeps_every_field() {
    let set: NodeSet = round_trip(
        r#"
apiVersion: dataplane.openstack.org/v1beta1
kind: OpenStackDataPlaneNodeSet
metadata: {name: openstack-edpm-ipam, namespace: openstack}
spec:
  baremetalSetTemplate:
    ctlplaneInterface: enp1s0
    bmhNamespace: openstack
    bmhLabelSelector: {app: openstack}
    cloudUserName: cloud-admin
    domainName: example.com
    deploymentSSHSecret: key
    osImage: edpm-hardened-uefi.qcow2
    osImageDeploymentType: PassThrough
    automatedCleaningMode: disabled
    hardwareReqs:
      cpuReqs: {arch: x86_64, countReq: {count: 4, exactMatch: true}, mhzReq: {mhz: 2000}}
      memReqs: {gbReq: {gb: 8}}
      diskReqs: {gbReq: {gb: 100}, ssdReq: {ssd: true}}
    ctlplaneBond: {bondInterfaces: [a, b], bondOptions: {miimon: "100"}}
    passwordSecret: {name: root, namespace: openstack}
  env: [{name: ANSIBLE_FORCE_COLOR, value: "True"}]
  networkAttachments: [ctlplane]
  nodeTemplate:
    ansible:
      ansiblePort: 22
      ansibleUser: cloud-admin
      ansibleVars: {edpm_sshd_allowed_ranges: [192.168.122.0/24], edpm_debug: false}
      ansibleVarsFrom:
        - prefix: edpm_
          configMapRef: {name: network-config-template, optional: true}
        - secretRef: {name: subscription-manager}
    ansibleSSHPrivateKeySecret: dataplane-ansible-ssh-private-key-secret
    managementNetwork: ctlplane
    extraMounts:
      - extraVolType: Logs
        volumes: [{name: logs, persistentVolumeClaim: {claimName: logs}}]
        mounts: [{name: logs, mountPath: /runner/artifacts}]
    userData: {name: user}
    networkData: {name: network}
    networks: [{name: ctlplane, subnetName: subnet1}]
  nodes:
    edpm-compute-0:
      hostName: edpm-compute-0.example.com
      managementNetwork: internalapi
      bmhLabelSelector: {nodeName: edpm-compute-0}
      ctlplaneInterface: enp2s0
      userData: {name: user-0}
      networkData: {name: network-0}
      ansible: {ansibleHost: 192.168.122.100, ansiblePort: 2222, ansibleUser: root}
      networks:
        - {name: ctlplane, subnetName: subnet1, defaultRoute: true, fixedIP: 192.168.122.100}
        - {name: internalapi, subnetName: subnet1}
  preProvisioned: true
  secretMaxSize: 2880
  services: [configure-network, nova-custom]
  tags: [one]
  tlsEnabled: false
"#,
    );
    assert_eq!(set.spec.nodes["edpm-compute-0"].networks.len(), 2);
    assert_eq!(set.spec.tls_enabled, Some(false));
}

/// What a client in Go writes of a template in which nearly nothing was given.
#[test]
fn what_is_empty_in_a_template_of_machines_counts_as_absent() {
    let template = json!({
        "bmhNamespace": "", "cloudUserName": "", "ctlplaneInterface": "", "deploymentSSHSecret": "",
        "hardwareReqs": {
            "cpuReqs": {"countReq": {}, "mhzReq": {}}, "memReqs": {"gbReq": {}},
            "diskReqs": {"gbReq": {}, "ssdReq": {}},
        },
    });
    each_schema(|path, schema| {
        let Some(name) = path.strip_prefix("OpenStackDataPlaneNodeSet.spec.baremetalSetTemplate")
        else {
            return;
        };
        if name.ends_with("Req") {
            assert!(schema.get("required").is_none(), "{path}");
        }
        if [".cloudUserName", ".ctlplaneInterface", ".deploymentSSHSecret"].contains(&name) {
            assert!(schema.get("minLength").is_none(), "{path}");
            let pattern = schema["pattern"].as_str().unwrap_or_default();
            assert!(pattern.is_empty() || pattern.contains(")?$"), "{path}");
        }
    });
    let read: NodeSetMachines = serde_json::from_value(template.clone()).unwrap();
    assert_eq!(read.template.cloud_user_name, "cloud-admin");
    assert_eq!(read.template.deployment_ssh_secret, None);
    let with = |is_pre_provisioned: bool| {
        let mut spec = spec(&named(["a".to_owned()]));
        spec["preProvisioned"] = json!(is_pre_provisioned);
        spec["baremetalSetTemplate"] = template.clone();
        broken::<NodeSetSpec>(&spec, None)
    };
    assert_eq!(with(true), "");
    assert!(with(false).contains("ctlplaneInterface is missing"), "{}", with(false));
}

#[test]
fn a_deployment_as_upstream_writes_it_keeps_every_field() {
    let once: Deployment = round_trip(
        r#"
apiVersion: dataplane.openstack.org/v1beta1
kind: OpenStackDataPlaneDeployment
metadata: {name: edpm-deployment, namespace: openstack}
spec:
  nodeSets: [openstack-edpm-ipam]
  servicesOverride: [nova-custom]
  backoffLimit: 3
  preserveJobs: false
  ansibleTags: "a,b"
  ansibleLimit: "edpm-compute-0"
  ansibleSkipTags: "c"
  ansibleExtraVars: {edpm_debug: true, list: [1, {a: b}]}
  deploymentRequeueTime: 30
  ansibleJobNodeSelector: {disk: ssd}
  ansibleEEEnvConfigMapName: env
"#,
    );
    assert_eq!(once.spec.ansible_extra_vars["list"][1]["a"], "b");
    assert!(!once.spec.preserve_jobs);
}

#[test]
fn more_hosts_than_a_node_sets_status_can_tell_of_are_refused_with_the_way_out() {
    let refusal = |count: usize| {
        let names = (0..count).map(|it| format!("host-{it}"));
        broken::<NodeSetSpec>(&spec(&named(names)), None)
    };
    assert_eq!(refusal(MAX_HOSTS), "");
    assert!(refusal(MAX_HOSTS + 1).contains("divide them among several node sets"));
}

#[test]
fn a_pre_provisioned_host_needs_an_address() {
    let with = |host: Value| {
        let nodes = json!({"a": {"ansible": host}});
        (
            broken::<NodeSetSpec>(&spec(&nodes), None),
            broken::<NodeSetSpec>(
                &json!({"preProvisioned": false, "nodeTemplate": {}, "nodes": nodes}),
                None,
            ),
        )
    };
    for fine in ["192.168.122.100", "fd00::1"] {
        assert_eq!(with(json!({"ansibleHost": fine})), Default::default(), "{fine}");
    }
    for bad in [json!({}), json!({"ansibleHost": "edpm-compute-0.example.com"})] {
        let (pre, other) = with(bad.clone());
        assert!(pre.contains("must be a valid IP address"), "{bad}: {pre}");
        assert_eq!(other, "", "{bad}");
    }
    assert_eq!(broken::<NodeSetSpec>(&spec(&json!({})), None), "");
}

#[test]
fn the_choice_of_bare_metal_stays_while_there_are_nodes() {
    let with = |template: Value, nodes: Value| {
        let mut spec = spec(&nodes);
        spec["baremetalSetTemplate"] = template;
        spec
    };
    let node = || named(["a".to_owned()]);
    let old = json!({"bmhLabelSelector": {"app": "a"}, "cloudUserName": "x"});
    let change = |new: Value, nodes: Value| {
        broken::<NodeSetSpec>(&with(new, node()), Some(&with(old.clone(), nodes)))
    };
    assert_eq!(change(old.clone(), node()), "");
    let user = json!({"bmhLabelSelector": {"app": "a"}, "cloudUserName": "y"});
    assert_eq!(change(user, node()), "");
    for other in [
        json!({"bmhLabelSelector": {"app": "b"}}),
        json!({}),
        json!({"bmhLabelSelector": {"app": "a"}, "hardwareReqs": {"memReqs": {"gbReq": {"gb": 1}}}}),
    ] {
        assert!(change(other.clone(), node()).contains("cannot be changed"), "{other}");
        assert_eq!(change(other.clone(), json!({})), "", "{other}");
    }
    assert_eq!(broken::<NodeSetSpec>(&spec(&node()), Some(&with(old.clone(), node()))), "");
}

#[test]
fn the_hosts_of_a_node_set_keep_their_names_while_they_have_machines() {
    let machines = |all: &[(&str, &str)]| -> Value {
        let record = |host: &str, node: &str| {
            json!({ "host": host, "node": node, "machine": "m", "state": "active",
                "since": "2026-01-01T00:00:00Z" })
        };
        all.iter().map(|(name, node)| ((*name).to_owned(), record(name, node))).collect()
    };
    let set = |nodes: Value, machines: &Value, domain: &str| {
        json!({
            "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNodeSet",
            "metadata": { "name": "compute" }, "status": { "machines": machines },
            "spec": {
                "nodes": nodes, "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
                "preProvisioned": false,
                "baremetalSetTemplate": { "ctlplaneInterface": "eth0", "domainName": domain },
            },
        })
    };
    let told = |old: &Value, new: &Value, machines: &Value, domain: &str| {
        let (new, old) = (set(new.clone(), machines, domain), set(old.clone(), machines, domain));
        broken::<NodeSet>(&new, Some(&old))
    };
    let called = |name: &str| json!({ "n0": { "hostName": name } });
    let (n0, plain) = (machines(&[("n0", "n0")]), json!({ "n0": {} }));
    for (old, new, is_told, domain) in [
        (&plain, called("n00"), true, ""),
        (&plain, called("n0.example.org"), false, ""),
        (&called("n0.example.org"), plain.clone(), false, ""),
        // Where there is a domain, the key is what the host is called.
        (&plain, called("n00"), false, "example.org"),
        (&plain, called("n00.example.org"), true, "example.org"),
        // What was accepted once stays, and so does the way back.
        (&called("n00"), json!({ "n0": { "hostName": "n00" }, "n1": {} }), false, ""),
        (&called("n00"), plain.clone(), false, ""),
        (&called("n00"), called("n01"), true, ""),
        (&plain, json!({}), false, ""),
        (&plain, json!({ "k": { "hostName": "n0" } }), false, ""),
    ] {
        let told = told(old, &new, &n0, domain);
        assert_eq!(told.contains("a host has a machine"), is_told, "{old} -> {new}: {told}");
    }
    let (a, b) = (json!({ "hostName": "a" }), json!({ "hostName": "b" }));
    let both = machines(&[("a", "x"), ("b", "y")]);
    let (old, new) = (json!({ "x": a, "y": b }), json!({ "x": b, "y": a }));
    assert!(told(&old, &new, &both, "").contains("a host has a machine"));
    // None is chosen yet, or none of this version told of it.
    for field in ["machine", "node", "host"] {
        let mut open = n0.clone();
        open["n0"].as_object_mut().unwrap().remove(field);
        assert_eq!(told(&plain, &called("n00"), &open, ""), "");
    }
    let unheard = json!({ "metadata": { "name": "compute" }, "spec": set(plain, &n0, "")["spec"] });
    assert_eq!(broken::<NodeSet>(&unheard, Some(&unheard)), "");
}

#[test]
fn a_deployment_stays_as_it_was_made() {
    let old = json!({"nodeSets": ["a"], "servicesOverride": [], "ansibleExtraVars": {"a": 1}});
    assert_eq!(broken::<DeploymentSpec>(&old, Some(&old)), "");
    for (field, value) in [
        ("nodeSets", json!(["a", "b"])),
        ("servicesOverride", json!(["nova"])),
        ("ansibleLimit", json!("x")),
        ("ansibleExtraVars", json!({"a": 2})),
    ] {
        let mut new = old.clone();
        new[field] = value;
        assert!(broken::<DeploymentSpec>(&new, Some(&old)).contains("immutable"), "{field}");
    }
}

/// An absent list becomes an empty one as it is stored: an update that writes one for the other is
/// none.
#[test]
fn an_absent_override_is_stored_as_an_empty_one() {
    each_schema(|path, schema| {
        if path == "OpenStackDataPlaneDeployment.spec.servicesOverride" {
            assert_eq!(schema["default"], json!([]));
            assert!(schema.get("nullable").is_none(), "null is taken for absent");
        }
    });
    let absent: DeploymentSpec = serde_json::from_value(json!({"nodeSets": ["a"]})).unwrap();
    assert_eq!(serde_json::to_value(absent).unwrap()["servicesOverride"], json!([]));
}

#[test]
fn a_host_takes_at_most_a_hundred_bytes_in_either_status() {
    let host = NodeSetHost { name: "edpm-compute-000".into(), state: HostState::Undeployed };
    assert!(serde_json::to_string(&host).unwrap().len() <= 100);
    let hosts = (0..MAX_HOSTS).map(|it| format!("edpm-compute-{it:03}")).collect();
    let part = DeploymentNodeSet {
        uid: "01234567-89ab-cdef-0123-456789abcdef".into(),
        since: Time(jiff::Timestamp::UNIX_EPOCH),
        services: vec!["nova".into(); 20],
        joined: Vec::new(),
        config_hash: "0123456789abcdef".into(),
        hosts,
    };
    let size = serde_json::to_string(&part).unwrap().len();
    assert!(size <= 21 * MAX_HOSTS, "{size}");
}

/// Each entry of another map would stand in `managedFields` once more.
#[test]
fn maps_that_grow_with_hosts_and_runs_are_written_as_one() {
    let maps = [
        "nodeSets",
        "ansibleEEHashes",
        "ansibleExecutionSummaries",
        "configMapHashes",
        "secretHashes",
        "nodeSetHashes",
    ];
    let mut n_found = 0;
    each_schema(|path, schema| {
        if maps.iter().any(|it| path == format!("OpenStackDataPlaneDeployment.status.{it}")) {
            assert_eq!(schema["x-kubernetes-map-type"], "atomic", "{path}");
            n_found += 1;
        }
    });
    assert_eq!(n_found, maps.len());
}

#[test]
fn what_a_backup_restores_is_labelled_as_upstream_labels_it() {
    let mut found = String::new();
    for crd in definitions::all() {
        let labels = crd.metadata.labels.unwrap_or_default();
        if let Some(order) = labels.get("backup.openstack.org/restore-order") {
            assert_eq!(labels["backup.openstack.org/restore"], "true");
            assert_eq!(labels["backup.openstack.org/category"], "dataplane");
            let _ = writeln!(found, "{} {order}", crd.spec.names.kind);
        }
    }
    // A restored deployment would run again.
    assert_eq!(found, "OpenStackDataPlaneNodeSet 60\nOpenStackDataPlaneService 40\n");
}

#[test]
fn a_node_of_a_node_set_is_described_by_its_entry_alone_and_stays_one() {
    let own = json!({"nodeSet": "edpm"});
    let empty = json!({"nodeSet": "edpm", "services": [], "env": [], "networkAttachments": []});
    for fine in [&own, &empty] {
        check::<NodeSpec>(fine, None, "");
    }
    for (field, value) in [
        ("hostName", json!("n0")),
        ("node", json!({})),
        ("role", json!("compute")),
        ("baremetalSetTemplate", json!({})),
        ("baremetalHost", json!({})),
        ("ansibleHost", json!("192.0.2.1")),
        ("deployStrategy", json!({"deploy": true})),
        ("services", json!(["web"])),
        ("env", json!([{"name": "A", "value": "b"}])),
        ("networkAttachments", json!(["ctlplane"])),
    ] {
        let both = json!({"nodeSet": "edpm", field: value});
        check::<NodeSpec>(&both, None, "is described by its entry");
    }
    let other = json!({"role": "compute"});
    for (old, new) in [(&own, &other), (&other, &own), (&json!({}), &own)] {
        check::<NodeSpec>(new, Some(old), "delete it, and create another");
    }
    check::<NodeSpec>(&json!({"nodeSet": "other"}), Some(&own), "");
}

#[test]
fn only_a_node_of_a_node_set_leaves() {
    let of_set = |leaving: Value| json!({"nodeSet": "edpm", "leaving": leaving});
    let (stays, leaves) = (json!({"nodeSet": "edpm"}), of_set(json!(true)));
    for (old, new) in [(&stays, &leaves), (&leaves, &stays), (&leaves, &of_set(json!(false)))] {
        check::<NodeSpec>(new, Some(old), "");
    }
    for alone in [json!({"leaving": true}), json!({"role": "compute", "leaving": false})] {
        check::<NodeSpec>(&alone, None, "leaving is set by the operator");
    }
}

#[test]
fn a_node_that_leaves_or_is_deleted_is_leaving() {
    let node = |leaving: Option<bool>, deleted: Option<&str>| -> Node {
        serde_json::from_value(json!({
            "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNode",
            "metadata": {"name": "a", "deletionTimestamp": deleted},
            "spec": {"nodeSet": "edpm", "leaving": leaving},
        }))
        .unwrap()
    };
    let since = Some("2026-01-01T00:00:00Z");
    let cases = [(None, None), (Some(false), None), (Some(true), None), (None, since)];
    let found = cases.map(|(leaving, deleted)| node(leaving, deleted).is_leaving());
    assert_eq!(found, [false, false, true, true]);
}

/// Several operators write them: each applies its own entries under its own field manager, and nothing
/// of the others'.
#[test]
fn what_operators_say_about_a_host_is_merged_by_their_names() {
    let mut keys = Vec::new();
    each_schema(|path, schema| {
        if ["disruption.holders", "hostVars"]
            .iter()
            .any(|it| path == format!("OpenStackDataPlaneNode.status.{it}"))
        {
            assert_eq!(schema["x-kubernetes-list-type"], "map", "{path}");
            keys.push(schema["x-kubernetes-list-map-keys"].clone());
        }
        if path == "OpenStackDataPlaneNode.status.disruption" {
            assert!(schema.get("required").is_none(), "{schema}");
        }
    });
    assert_eq!(keys, [json!(["name"]), json!(["name"])]);
    let holder = DisruptionHolder { name: "example.org".into(), ..DisruptionHolder::default() };
    let own = Disruption { holders: vec![holder], ..Disruption::default() };
    let status = NodeStatus { disruption: Some(own), ..NodeStatus::default() };
    assert_eq!(
        serde_json::to_value(status).unwrap(),
        json!({"disruption": {"holders": [{"name": "example.org", "holds": false}]}})
    );
}

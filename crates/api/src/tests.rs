//! The schemas keep the API server's rules, and accept what upstream's manifests and ours say.

use std::path::Path;

use kube::CustomResourceExt as _;
use kube::core::cel::validate_cel_schema;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ansibleee::{AnsibleEe, AnsibleEeSpec, AnsibleEeStatus, RestartPolicy};
use super::baremetal::BaremetalSet;
use super::dataplane::service::faults::{faults, warnings};
use super::dataplane::{
    DataPlane, DataPlaneSpec, Deployment, DeploymentSpec, DeploymentStatus, Node, NodeSection,
    NodeSet, NodeSetSpec, NodeSpec, NodeStatus, Role, RoleSpec, RoleStatus, Service, ServiceSpec,
};
use super::nova::{
    Cell, CellSpec, ExternalCompute, ExternalComputeSpec, ExternalComputeStatus, Management,
};
use super::{MANAGED_BY, MANAGED_BY_LABEL, definitions};
use crate::yaml;

mod baremetal_sets;
mod fields;
mod node_sets;

/// Calls `look` with each schema below `schema` and the path to it.
fn walk(path: &str, schema: &Value, look: &mut impl FnMut(&str, &Value)) {
    look(path, schema);
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            walk(&format!("{path}.{name}"), property, look);
        }
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            walk(&format!("{path}{mark}"), &schema[key], look);
        }
    }
}

fn each_schema(mut look: impl FnMut(&str, &Value)) {
    for crd in definitions::all() {
        let value = serde_json::to_value(&crd).unwrap();
        let kind = crd.spec.names.kind.as_str();
        walk(kind, &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &mut look);
    }
}

#[test]
fn schemas_are_structural() {
    each_schema(|path, schema| {
        for key in ["$ref", "$defs", "definitions", "anyOf", "oneOf", "allOf", "not"] {
            assert!(schema.get(key).is_none(), "{path} has {key}");
        }
        let free = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"];
        let typed = schema["type"].is_string() || free.iter().any(|it| schema[*it] == true);
        assert!(typed, "{path} has no type: {schema}");
        let format = schema["format"].as_str().unwrap_or("int64");
        assert!(["int32", "int64", "date-time"].contains(&format), "{path} has format {format}");
    });
}

/// Whether a value of the schema has a bound, depth excepted.
fn has_limit(schema: &Value) -> bool {
    // What is kept as it was written is bounded by the size of an object alone, a mapping without a
    // schema and the text of a quantity too.
    match schema["type"].as_str() {
        Some("string") => schema["enum"].is_array() || schema["maxLength"].is_u64(),
        Some("array") => schema["maxItems"].is_u64(),
        Some("integer" | "number") => schema["minimum"].is_f64() && schema["maximum"].is_f64(),
        Some("object") if schema["additionalProperties"].is_object() => {
            schema["maxProperties"].is_u64()
        }
        _ => true,
    }
}

#[test]
fn every_text_list_mapping_and_number_of_a_spec_has_a_limit() {
    let mut open = Vec::new();
    each_schema(|path, schema| {
        if path.contains(".spec") && !has_limit(schema) {
            open.push(path.to_owned());
        }
    });
    assert!(open.is_empty(), "{open:#?}");
}

/// What the operators bound themselves before they write it.
const KNOWN_IN_STATUS: [&str; 19] = [
    "OpenStackAnsibleEE.status.report",
    "OpenStackDataPlaneNode.status.disruption.holders",
    "OpenStackDataPlaneNode.status.disruption.holders[].name",
    "OpenStackDataPlaneNode.status.hostVars",
    "OpenStackDataPlaneNode.status.hostVars[].name",
    "OpenStackDataPlaneNode.status.hostVars[].vars",
    "OpenStackDataPlaneNode.status.hostVars[].vars{}",
    "OpenStackDataPlaneNode.status.machine.host",
    "OpenStackDataPlaneNode.status.machine.node",
    "OpenStackDataPlaneNodeSet.status.machines",
    "OpenStackDataPlaneNodeSet.status.machines{}.host",
    "OpenStackDataPlaneNodeSet.status.machines{}.node",
    "NovaCell.status.leftovers",
    "NovaExternalCompute.status.configFiles[].name",
    "NovaExternalCompute.status.credentials",
    "NovaExternalCompute.status.credentials[].name",
    "NovaExternalCompute.status.nova.keystoneAuthURL",
    "NovaExternalCompute.status.nova.region",
    "OpenStackBaremetalSet.status.baremetalHosts",
];

#[test]
fn a_status_has_no_limit_of_size_that_its_operator_does_not_know() {
    let mut bounded = Vec::new();
    each_schema(|path, schema| {
        let sizes = ["maxLength", "maxItems", "maxProperties"];
        if path.contains(".status") && sizes.iter().any(|it| schema.get(*it).is_some()) {
            bounded.push(path.to_owned());
        }
    });
    let known: Vec<String> = KNOWN_IN_STATUS.map(str::to_owned).into();
    assert_eq!(bounded, known);
}

/// Fields of Kubernetes' own types.
const OF_KUBERNETES: [&str; 8] = [
    ".dnsConfig.",
    ".env[].",
    ".imagePullSecrets[].",
    ".initContainers[].",
    ".mounts[].",
    ".resources.",
    ".tolerations[].",
    ".volumes[].",
];

#[test]
fn every_field_of_ours_explains_itself_and_kubernetes_reference_is_not_repeated() {
    let mut fields = 0;
    each_schema(|path, schema| {
        let item = path.ends_with("[]") || path.ends_with("{}");
        if item || path.ends_with(".status") {
            return;
        }
        let text = schema["description"].as_str().unwrap_or_default();
        if OF_KUBERNETES.iter().any(|it| path.contains(it)) {
            assert_eq!(text, "", "{path}");
            return;
        }
        fields += 1;
        assert!(text.len() > 8, "{path} has no description");
        assert!(!text.contains("Auto-generated"), "{path}: {text}");
    });
    assert!(fields > 300, "{fields}");
}

#[test]
fn conditions_are_merged_by_type() {
    let mut lists = 0;
    each_schema(|path, schema| {
        if path.ends_with(".status.conditions") {
            assert_eq!(schema["x-kubernetes-list-type"], "map", "{path}");
            assert_eq!(schema["x-kubernetes-list-map-keys"], json!(["type"]), "{path}");
            lists += 1;
        }
    });
    assert_eq!(lists, definitions::all().len());
}

#[test]
fn definitions_are_labelled_ours_and_have_a_status() {
    for crd in definitions::all() {
        let name = crd.metadata.name.clone().unwrap();
        assert_eq!(crd.metadata.labels.unwrap()[MANAGED_BY_LABEL], MANAGED_BY, "{name}");
        let version = &crd.spec.versions[0];
        let status = version.subresources.as_ref().and_then(|it| it.status.as_ref());
        assert!(status.is_some(), "{name}");
        for column in version.additional_printer_columns.iter().flatten() {
            assert!(!column.json_path.contains("conditions[0]"), "{name}: {}", column.name);
        }
    }
}

#[test]
fn definitions_fit_into_the_annotation_of_a_plain_kubectl_apply() {
    for crd in definitions::all() {
        let size = serde_json::to_vec(&crd).unwrap().len();
        assert!(size < 262_144, "{} has {size} bytes", crd.spec.names.kind);
    }
}

#[test]
fn only_what_upstream_requires_is_required() {
    let mut required = Vec::new();
    each_schema(|path, schema| {
        let (kind, rest) = path.split_once('.').unwrap_or((path, ""));
        if rest == "spec" || rest.is_empty() {
            let names = schema["required"].as_array().into_iter().flatten();
            required.extend(names.map(|it| format!("{kind} {}", it.as_str().unwrap())));
        }
    });
    let expected = [
        "OpenStackDataPlaneDeployment nodeSets",
        "OpenStackDataPlaneNodeSet nodeTemplate",
        "OpenStackDataPlaneNodeSet nodes",
        "NovaCell spec",
        "NovaCell cellDatabaseHostname",
        "NovaCell cellMessageBusSecretName",
        "NovaCell cellName",
        "NovaCell conductorServiceTemplate",
        "NovaCell keystoneAuthURL",
        "NovaCell noVNCProxyServiceTemplate",
        "NovaCell secret",
        "NovaCell serviceAccount",
        "NovaExternalCompute spec",
        "NovaExternalCompute dataplaneNodeName",
        "OpenStackBaremetalSet spec",
    ];
    required.retain(|it| {
        !["OpenStackAnsibleEE", "OpenStackDataPlane"]
            .iter()
            .any(|other| it.starts_with(other) && it.ends_with(" spec"))
    });
    assert_eq!(required, expected);
}

#[test]
fn deploy_has_no_default_anywhere() {
    each_schema(|path, schema| {
        if path.ends_with(".deploy") {
            assert!(schema.get("default").is_none(), "{path}");
        }
    });
}

/// A default in an entry would be applied as if its author had stated it.
#[test]
fn an_entry_of_a_data_planes_map_has_no_default_and_all_fields_of_its_kind() {
    let mut fields: [Vec<String>; 2] = Default::default();
    each_schema(|path, schema| {
        for (idx, (map, kind)) in
            [("roles", "OpenStackDataPlaneRole"), ("nodes", "OpenStackDataPlaneNode")]
                .into_iter()
                .enumerate()
        {
            if let Some(field) = path.strip_prefix(&format!("OpenStackDataPlane.spec.{map}{{}}")) {
                assert!(schema.get("default").is_none(), "{path}");
                fields[idx].push(field.to_owned());
            }
            if let Some(field) = path.strip_prefix(&format!("{kind}.spec")) {
                fields[idx].retain(|it| it != field);
            }
        }
    });
    assert_eq!(fields, [vec![""; 0], vec![""; 0]]);
}

#[test]
fn the_defaults_are_upstreams() {
    let run = AnsibleEeSpec::default();
    assert_eq!((run.name.as_str(), run.backoff_limit, run.uid), ("openstackansibleee", 6, 1001));
    assert_eq!(run.env_config_map_name, "openstack-aee-default-env");
    assert!(run.preserve_jobs && run.restart_policy == RestartPolicy::Never);
    let services =
        ["configure-network", "validate-network", "install-os", "configure-os", "run-os"];
    assert_eq!(RoleSpec::default().services, services);
    assert!(!RoleSpec::default().pre_provisioned);
    let set = NodeSetSpec::default();
    assert_eq!((set.services.len(), set.secret_max_size), (16, 1_048_576));
    assert_eq!((set.services[0].as_str(), set.services[15].as_str()), ("redhat", "telemetry"));
    assert_eq!(set.node_template.management_network, "ctlplane");
    let once = DeploymentSpec::default();
    assert_eq!((once.backoff_limit, once.deployment_requeue_time), (6, 15));
    assert_eq!(once.ansible_ee_env_config_map_name, "openstack-aee-default-env");
    assert!(once.preserve_jobs);
    let cell = Cell::crd();
    let cell = serde_json::to_value(cell).unwrap();
    let spec = &cell["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["properties"]["serviceUser"]["default"], "nova");
}

#[test]
fn an_empty_status_is_written_as_nothing() {
    let nothing = json!({});
    assert_eq!(serde_json::to_value(NodeStatus::default()).unwrap(), nothing);
    assert_eq!(serde_json::to_value(AnsibleEeStatus::default()).unwrap(), nothing);
    assert_eq!(serde_json::to_value(DeploymentStatus::default()).unwrap(), nothing);
    assert_eq!(serde_json::to_value(ExternalComputeStatus::default()).unwrap(), nothing);
    let counts = json!({"nodes": 0, "readyNodes": 0, "upToDateNodes": 0});
    assert_eq!(serde_json::to_value(RoleStatus::default()).unwrap(), counts);
}

/// The messages of the rules that a value breaks.
fn broken<T: JsonSchema>(new: &Value, old: Option<&Value>) -> String {
    validate_cel_schema::<T>(new, old).err().map(|it| it.to_string()).unwrap_or_default()
}

/// Asserts that a value is refused in these words, or accepted where there are none.
#[track_caller]
fn check<T: JsonSchema>(new: &Value, old: Option<&Value>, expected: &str) {
    let told = broken::<T>(new, old);
    let is_told = if expected.is_empty() { told.is_empty() } else { told.contains(expected) };
    assert!(is_told, "{new}: {told:?} instead of {expected:?}");
}

/// How a rule is checked: the object, the one before it, and the words of the refusal.
type Check = fn(&Value, Option<&Value>, &str);

#[test]
fn each_rule_refuses_what_can_never_work_and_nothing_else() {
    let plane =
        |role: Value| json!({ "metadata": { "name": "a" }, "spec": { "roles": { "r": role } } });
    let compute = |management: Value| json!({"dataplaneNodeName": "a", "management": management});
    let gate = |it: &str| json!({"playbook": "a.b.c", "readinessGates": [{"conditionType": it}]});
    let port = |name: &str| json!({"name": name, "port": 1});
    let ports = |names: [&str; 2]| json!({"playbook": "x", "services": names.map(port)});
    let source = |entry: Value| json!({"ansibleVarsFrom": [entry]});
    let (map, secret) = (json!({"name": "m"}), json!({"name": "s", "optional": true}));
    let named = |length: usize| json!({"metadata": {"name": "a".repeat(length)}, "spec": {}});
    let (plane_of, cell) = ("remove its dataPlane field", "cellName is missing");
    let (one_of, no_source) = ("are mutually exclusive", "each entry names");
    let cases: [(Check, Value, &str); 37] = [
        (check::<DataPlane>, plane(json!({})), ""),
        (check::<DataPlane>, plane(json!({"dataPlane": "a"})), ""),
        (check::<DataPlane>, plane(json!({"dataPlane": "b"})), plane_of),
        (check::<ExternalComputeSpec>, json!({"dataplaneNodeName": "a"}), cell),
        (check::<ExternalComputeSpec>, compute(json!("Managed")), cell),
        (check::<ExternalComputeSpec>, compute(json!("Observed")), ""),
        (check::<ServiceSpec>, gate("nova.openstack.org/ServiceUp"), ""),
        (check::<ServiceSpec>, gate("ServiceUp"), "take the whole type"),
        (check::<ServiceSpec>, ports(["a", "a"]), "a name of its own"),
        (check::<ServiceSpec>, ports(["a", "b"]), ""),
        (check::<RoleSpec>, json!({"services": ["a", "b", "a"]}), "once"),
        (check::<RoleSpec>, json!({"services": ["a", "b"]}), ""),
        (check::<NodeSpec>, json!({"services": ["a", "a"]}), "once"),
        (check::<NodeSpec>, json!({"role": "r", "services": ["a"]}), "leave out role or services"),
        (check::<NodeSpec>, json!({"role": "r", "services": []}), ""),
        (check::<NodeSpec>, json!({"services": ["a"]}), ""),
        (check::<NodeSection>, source(json!({})), no_source),
        (check::<NodeSection>, source(json!({"prefix": "a_"})), no_source),
        (check::<NodeSection>, source(json!({"secretRef": {"optional": true}})), no_source),
        (check::<NodeSection>, source(json!({"configMapRef": map})), ""),
        (check::<NodeSection>, source(json!({"secretRef": secret, "prefix": "a_"})), ""),
        // Upstream takes the ConfigMap.
        (check::<NodeSection>, source(json!({"configMapRef": map, "secretRef": secret})), ""),
        (check::<AnsibleEeSpec>, json!({"playbook": "x", "role": "y"}), one_of),
        (check::<AnsibleEeSpec>, json!({"playbookContents": "x", "role": "y"}), one_of),
        (check::<AnsibleEeSpec>, json!({"play": "x", "role": "y"}), one_of),
        (check::<AnsibleEeSpec>, json!({"playbook": "x"}), ""),
        (check::<AnsibleEeSpec>, json!({"playbookContents": "x"}), ""),
        (check::<AnsibleEeSpec>, json!({"play": "x"}), ""),
        (check::<AnsibleEeSpec>, json!({"role": "y"}), ""),
        (check::<AnsibleEeSpec>, json!({"args": ["x"], "role": "y"}), ""),
        (check::<AnsibleEeSpec>, json!({}), ""),
        (check::<CellSpec>, json!({"keystoneAuthURL": "keystone:5000"}), "URL"),
        (check::<CellSpec>, json!({"keystoneAuthURL": "https://keystone.openstack.svc:5000"}), ""),
        (check::<NodeSet>, named(64), "at most 63"),
        (check::<Deployment>, named(64), "at most 63"),
        (check::<NodeSet>, named(63), ""),
        (check::<Deployment>, named(63), ""),
    ];
    for (check, value, expected) in cases {
        check(&value, None, expected);
    }
}

#[test]
fn mounts_over_the_operators_files_are_refused() {
    let mount = |path: &str| json!({"name": "v", "mountPath": path});
    let mounts = |path| json!({"extraMounts": [{"volumes": [], "mounts": [mount(path)]}]});
    for path in ["/runner", "/runner/", "/runner/env", "//runner//env/x", "/runner/inventory/hosts"]
    {
        check::<NodeSection>(&mounts(path), None, "mount elsewhere");
    }
    for path in ["/runner/network", "/runner/environment", "/runners", "/etc/ceph"] {
        check::<NodeSection>(&mounts(path), None, "");
    }
}

#[test]
fn a_compute_stays_in_its_cell_and_on_its_node() {
    let compute = |node: &str, cell: &str| json!({"dataplaneNodeName": node, "cellName": cell});
    let old = compute("a", "nova-cell1");
    for (new, expected) in [
        (&old, ""),
        (&compute("a", "nova-cell2"), "between cells"),
        (&compute("b", "nova-cell1"), "node of a compute is immutable"),
    ] {
        check::<ExternalComputeSpec>(new, Some(&old), expected);
    }
}

#[test]
fn who_deploys_a_compute_is_set_once_and_no_cell_is_taken_from_it() {
    let managed = json!({"dataplaneNodeName": "a", "cellName": "nova-cell1"});
    let said = json!({"dataplaneNodeName": "a", "cellName": "nova-cell1", "management": "Managed"});
    let observed = json!({"dataplaneNodeName": "a", "management": "Observed"});
    let found =
        json!({"dataplaneNodeName": "a", "management": "Observed", "cellName": "nova-cell1"});
    let other =
        json!({"dataplaneNodeName": "a", "management": "Observed", "cellName": "nova-cell2"});
    let (once, between) = ("who deploys a compute is set once", "between cells");
    for (old, new, expected) in [
        (&managed, &said, ""),
        (&said, &managed, ""),
        (&observed, &found, ""),
        (&managed, &found, once),
        (&said, &found, once),
        (&found, &managed, once),
        (&found, &said, once),
        (&found, &observed, between),
        (&found, &other, between),
    ] {
        check::<ExternalComputeSpec>(new, Some(old), expected);
    }
}

#[test]
fn options_of_a_compute_that_a_service_deploys_are_refused() {
    let with = |management: &str, field: &str, value: &Value| {
        let spec = json!({
            "dataplaneNodeName": "a", "cellName": "c", "management": management, field: value,
        });
        broken::<ExternalComputeSpec>(&spec, None)
    };
    for (field, value) in [
        ("customServiceConfig", json!("")),
        ("defaultConfigOverwrite", json!({"provider.yaml": ""})),
        ("novaComputeContainerImage", json!("image")),
        ("novaLibvirtContainerImage", json!("image")),
    ] {
        let refused = with("Observed", field, &value);
        assert!(refused.contains("a service of type nova deploys this compute"), "{field}");
        assert_eq!(with("Managed", field, &value), "", "{field}");
    }
    for (field, value) in
        [("defaultConfigOverwrite", json!({})), ("ansibleEEContainerImage", json!("image"))]
    {
        assert_eq!(with("Observed", field, &value), "", "{field}");
    }
}

/// The operator's own default is not written, so that objects of before and their golden plans stay.
#[test]
fn a_managed_compute_says_nothing_of_its_management() {
    let managed: ExternalComputeSpec =
        serde_json::from_value(json!({"dataplaneNodeName": "a", "cellName": "c"})).unwrap();
    assert_eq!(managed.management, Management::Managed);
    let spec = serde_json::to_value(&managed).unwrap();
    assert_eq!(spec, json!({"dataplaneNodeName": "a", "cellName": "c"}));
    let observed = ExternalComputeSpec {
        dataplane_node_name: "a".into(),
        management: Management::Observed,
        ..ExternalComputeSpec::default()
    };
    let spec = serde_json::to_value(&observed).unwrap();
    assert_eq!(spec, json!({"dataplaneNodeName": "a", "management": "Observed"}));
}

#[test]
fn a_host_keeps_its_name_while_it_has_a_machine() {
    let made = |name: Option<&str>, status: &Value| {
        let mut node = json!({
            "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNode",
            "metadata": { "name": "n0" }, "spec": {}, "status": status,
        });
        if let Some(name) = name {
            node["spec"]["hostName"] = json!(name);
        }
        node
    };
    let since = "2026-01-01T00:00:00Z";
    let has =
        json!({ "machine": { "host": "n0", "machine": "m", "state": "active", "since": since } });
    let none = json!({ "machine": { "host": "n0", "state": "requested", "since": since } });
    let check = |status: &Value, before: Option<&str>, after: Option<&str>| {
        broken::<Node>(&made(after, status), Some(&made(before, status)))
    };
    assert!(check(&has, None, Some("n00")).contains("delete the node and create one"));
    assert!(check(&has, Some("n0"), Some("x.example.org")).contains("delete the node"));
    assert!(check(&has, Some("n0"), Some("n00")).contains("delete the node"));
    for (before, after) in [
        (None, Some("n0")),
        (Some("n0"), Some("n0.example.org")),
        (Some("n0.example.org"), None),
        // However it came to be so: it can be corrected, and everything else changed.
        (Some("x"), Some("x")),
        (Some("x"), Some("n0")),
    ] {
        assert_eq!(check(&has, before, after), "", "{before:?} {after:?}");
    }
    assert_eq!(check(&none, Some("n0"), Some("n1")), "");
    assert_eq!(check(&json!({}), Some("n0"), Some("n1")), "");
    assert_eq!(
        check(&json!({ "machine": { "state": "x", "since": since } }), None, Some("n1")),
        ""
    );
}

#[test]
fn cell0_is_refused() {
    for (cell, expected) in [("cell0", "cell0"), ("nova-cell0", "cell0"), ("nova-cell10", "")] {
        let compute = json!({"dataplaneNodeName": "a", "cellName": cell});
        check::<ExternalComputeSpec>(&compute, None, expected);
    }
}

#[test]
fn an_object_without_spec_is_taken_where_its_conditions_tell_what_is_missing() {
    let empty = json!({});
    let kinds = [
        ("OpenStackAnsibleEE", broken::<AnsibleEeSpec>(&empty, None)),
        ("OpenStackDataPlane", broken::<DataPlaneSpec>(&empty, None)),
        ("OpenStackDataPlaneNode", broken::<NodeSpec>(&empty, None)),
        ("OpenStackDataPlaneRole", broken::<RoleSpec>(&empty, None)),
    ];
    let mut n_found = 0;
    each_schema(|path, schema| {
        let is_spec = path.strip_suffix(".spec").is_some_and(|it| !it.contains('.'));
        if is_spec && schema.get("default").is_some() {
            let kind = path.trim_end_matches(".spec");
            let (_, broken) = kinds.iter().find(|it| it.0 == kind).unwrap();
            // The API server takes a default only if it is one that it would accept.
            assert_eq!((broken.as_str(), schema.get("required")), ("", None), "{path}");
            assert_eq!(schema["default"], empty);
            n_found += 1;
        }
        if kinds.iter().any(|it| it.0 == path) {
            assert!(schema.get("required").is_none_or(|it| it == &json!([])), "{path}");
        }
    });
    assert_eq!(n_found, kinds.len());
}

#[test]
fn a_short_name_is_one_kinds_and_means_what_it_means_upstream() {
    let of = |short: &str| -> Vec<String> {
        let kinds = definitions::all().into_iter().map(|it| it.spec.names);
        let has = |it: &Vec<String>| it.iter().any(|it| it == short);
        kinds.filter(|it| it.short_names.as_ref().is_some_and(has)).map(|it| it.kind).collect()
    };
    assert_eq!(of("osdps"), ["OpenStackDataPlaneService"]);
    assert_eq!(of("osdp"), ["OpenStackDataPlane"]);
}

#[test]
fn a_service_needs_something_to_run() {
    check::<ServiceSpec>(&json!({"label": "x"}), None, "playbook");
    for it in ["playbook", "playbookContents", "role", "play"] {
        check::<ServiceSpec>(&json!({it: "x"}), None, "");
    }
}

/// What the definition's rules refuse of a service, and the controller's own list of faults.
fn refused(name: &str, spec: &Value) -> (String, String) {
    let object = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneService",
        "metadata": {"name": name}, "spec": spec,
    });
    let faults = faults(&serde_json::from_value(object.clone()).unwrap());
    let told = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    (broken::<Service>(&object, None), told)
}

#[test]
fn the_definition_and_the_controller_refuse_the_same_services_with_the_legal_way() {
    let source = |it: Value| json!({"playbook": "x", "dataSources": [it]});
    let cert = |it: Value| json!({"playbook": "x", "tlsCerts": {"default": it}});
    let long = "a".repeat(64);
    let cases = [
        ("s", json!({"label": "x"}), "needs playbook", "set playbook, playbookContents or role"),
        ("s", json!({"playbook": ""}), "needs playbook", "set playbook"),
        (&long, json!({"playbook": "x"}), "at most 63", "at most 63 characters"),
        ("s", source(json!({})), "each entry names", "spec.dataSources[0]: no object: name"),
        ("s", source(json!({"prefix": "a_"})), "each entry names", "no object"),
        ("s", source(json!({"secretRef": {"optional": true}})), "each entry names", "no object"),
        (
            "s",
            source(json!({"configMapRef": {"name": "a/b"}})),
            "lower-case letters",
            "spec.dataSources[0].configMapRef.name: \"a/b\" cannot be the name of an object: lower-case",
        ),
        (
            "s",
            source(json!({"secretRef": {"name": "A_b"}})),
            "lower-case letters",
            "secretRef.name",
        ),
        ("s", json!({"role": "x", "caCerts": "A"}), "caCerts is the name", "spec.caCerts: \"A\""),
        (
            "s",
            json!({"play": "x", "secrets": ["a", "_"]}),
            "configMaps and secrets",
            "spec.secrets[1]",
        ),
        (
            "s",
            json!({"play": "x", "configMaps": [""]}),
            "configMaps and secrets",
            "spec.configMaps[0]",
        ),
        (
            "s",
            cert(json!({"contents": ["dns"]})),
            "names dnsnames, ips or both",
            "spec.tlsCerts.default.contents[0]: \"dns\" is neither dnsnames nor ips",
        ),
        (
            "s",
            cert(json!({"contents": ["ips"], "keyUsages": ["server"]})),
            "no such key usage",
            "keyUsages[0]: \"server\" is not a key usage of cert-manager",
        ),
    ];
    for (name, spec, by_rule, by_controller) in cases {
        let (rule, controller) = refused(name, &spec);
        assert!(rule.contains(by_rule), "{spec}: {rule}");
        assert!(controller.contains(by_controller), "{spec}: {controller}");
    }
}

#[test]
fn a_service_is_held_to_the_rule_that_its_runs_are_held_to() {
    let told = |spec: Value| refused("s", &spec).1;
    assert_eq!(told(json!({"role": "test role"})), "");
    let cases = [
        (json!({"role": " x"}), "spec.role: \" x\" is neither the name of a collection's role"),
        (json!({"playbook": "../x.yml"}), "spec.playbook: \"../x.yml\" is neither"),
        (json!({"playbookContents": "hosts: all"}), "spec.playbookContents: not a list of plays"),
    ];
    for (spec, expected) in cases {
        let told = told(spec.clone());
        assert!(told.contains(expected), "{spec}: {told}");
    }
    // What has no effect is no fault.
    assert_eq!(told(json!({"playbookContents": "[]", "role": "/x"})), "");
}

#[test]
fn what_upstream_accepts_is_accepted_and_what_of_it_has_no_effect_is_told() {
    let both = json!({"configMapRef": {"name": "m"}, "secretRef": {"name": "s"}, "prefix": "a_"});
    let cases = [
        (
            json!({"playbook": "x", "dataSources": [both]}),
            vec![
                "spec.dataSources[0].prefix: files are named after their keys only",
                "spec.dataSources[0].secretRef: Secret s is not mounted",
            ],
        ),
        (
            json!({"playbook": "x", "role": "y", "playbookContents": "[]"}),
            vec![
                "spec.playbook: not run, because playbookContents is also set",
                "spec.role: not run, because playbookContents is also set",
            ],
        ),
        (
            json!({"play": "[]", "label": "l", "certsFrom": "c", "configMaps": ["m"], "secrets": ["s"]}),
            vec![
                "spec.play: deprecated: use playbookContents",
                "spec.label: deprecated",
                "spec.certsFrom: deprecated",
                "spec.configMaps: deprecated: use dataSources",
                "spec.secrets: deprecated: use dataSources",
            ],
        ),
        (
            json!({"playbook": "osp.edpm.x", "edpmServiceType": "y", "caCerts": "", "tlsCerts": {
            "default": {"contents": ["dnsnames", "ips"], "keyUsages": ["server auth"]}}}),
            vec![],
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(refused("s", &spec), (String::new(), String::new()), "{spec}");
        let found = warnings(&Service::new("s", serde_json::from_value(spec).unwrap()));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}");
        }
    }
}

#[test]
fn who_applies_the_spec_of_a_service_states_all_of_it() {
    let spec = schema_of("OpenStackDataPlaneService", "spec");
    assert_eq!(spec["x-kubernetes-map-type"], "atomic");
}

#[test]
fn what_enters_runs_and_paths_from_a_status_has_a_pattern() {
    let mut found = Vec::new();
    each_schema(|path, schema| {
        let name = path.rsplit('.').next().unwrap_or_default();
        let is_named = name.starts_with("inventory") || name.starts_with("sharedInventory");
        if path.contains(".status.") && (is_named || ["computeID", "serviceID"].contains(&name)) {
            assert!(schema.get("pattern").is_some(), "{path}");
            found.push(path.to_owned());
        }
    });
    assert_eq!(found.len(), 9, "{found:?}");
}

/// The schema of a field at the top of a kind.
fn schema_of(kind: &str, field: &str) -> Value {
    let mut found = Value::Null;
    each_schema(|path, schema| {
        if path == format!("{kind}.{field}") {
            found = schema.clone();
        }
    });
    found
}

#[test]
fn no_kind_takes_a_path_of_the_kubernetes_node() {
    let mounts = |source: &str, value: Value| json!([{"volumes": [{"name": "v", source: value}], "mounts": []}]);
    let path = || json!({"path": "/"});
    let section = |mounts: &Value| json!({"extraMounts": mounts});
    let role = |mounts: &Value| json!({"nodeTemplate": section(mounts)});
    let node = |mounts: &Value| json!({"node": section(mounts)});
    let node_set = |mounts: &Value| {
        let mut template = section(mounts);
        template["ansibleSSHPrivateKeySecret"] = json!("s");
        json!({"nodeTemplate": template, "nodes": {}})
    };
    let compute =
        |mounts: &Value| json!({"dataplaneNodeName": "n", "cellName": "c", "extraMounts": mounts});
    let found = |mounts: &Value| {
        [
            broken::<AnsibleEeSpec>(&section(mounts), None),
            broken::<RoleSpec>(&role(mounts), None),
            broken::<NodeSpec>(&node(mounts), None),
            broken::<NodeSetSpec>(&node_set(mounts), None),
            broken::<ExternalComputeSpec>(&compute(mounts), None),
            broken::<DataPlaneSpec>(&json!({"roles": {"r": role(mounts)}}), None),
            broken::<DataPlaneSpec>(&json!({"nodes": {"n": node(mounts)}}), None),
        ]
    };
    for refused in found(&mounts("hostPath", path())) {
        assert!(refused.contains("take a persistentVolumeClaim"), "{refused:?}");
    }
    assert_eq!(found(&mounts("secret", json!({"secretName": "s"}))), [const { String::new() }; 7]);
}

#[test]
fn a_node_has_no_part_of_the_strategy_that_steers_all_hosts_of_its_role() {
    let of = |field: &str, value: &Value| json!({"deployStrategy": {field: value}});
    let found = |strategy: &Value| {
        [
            broken::<NodeSpec>(strategy, None),
            broken::<DataPlaneSpec>(&json!({"nodes": {"n": strategy}}), None),
        ]
    };
    for (field, value) in [
        ("batchSize", json!(7)),
        ("maxUnavailable", json!("10%")),
        ("maxUnavailable", json!(1)),
        ("pauseOnFailure", json!(true)),
    ] {
        for refused in found(&of(field, &value)) {
            let words = "set it in deployStrategy of the OpenStackDataPlaneRole";
            assert!(refused.contains(words), "{field}: {refused:?}");
        }
    }
    for (field, value) in [("deploy", json!(false)), ("ansibleLimit", json!("n"))] {
        assert_eq!(found(&of(field, &value)), [const { String::new() }; 2], "{field}");
    }
    let of_role = of("batchSize", &json!(7));
    check::<RoleSpec>(&of_role, None, "");
    check::<DataPlaneSpec>(&of_role, None, "");
    check::<DataPlaneSpec>(&json!({"roles": {"r": of_role}}), None, "");
}

#[test]
fn the_task_debugger_is_refused() {
    let env = |name: &str| json!({"env": [{"name": name, "value": "1"}]});
    check::<AnsibleEeSpec>(&env("ANSIBLE_ENABLE_TASK_DEBUGGER"), None, "no terminal");
    check::<AnsibleEeSpec>(&env("ANSIBLE_FORKS"), None, "");
}

/// Reads a manifest and asserts that nothing of it is lost when it is written again.
fn round_trip<T: DeserializeOwned + Serialize>(text: &str) -> T {
    let value: Value = yaml::from_str(text).unwrap();
    let typed: T = serde_json::from_value(value.clone()).unwrap();
    let again = serde_json::to_value(&typed).unwrap();
    kept("", &value, &again);
    typed
}

fn kept(path: &str, before: &Value, after: &Value) {
    match before {
        Value::Object(map) => {
            for (key, value) in map {
                kept(&format!("{path}.{key}"), value, &after[key]);
            }
        }
        Value::Array(items) => {
            for (idx, item) in items.iter().enumerate() {
                kept(&format!("{path}[{idx}]"), item, &after[idx]);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            assert_eq!(before, after, "{path}");
        }
    }
}

#[test]
fn a_role_as_upstream_writes_it_keeps_every_field() {
    let role: Role = round_trip(
        r#"
apiVersion: dataplane.openstack.org/v1beta1
kind: OpenStackDataPlaneRole
metadata: {name: edpm-compute, namespace: openstack}
spec:
  dataPlane: openstack-edpm
  preProvisioned: true
  baremetalSetTemplate: {ctlplaneInterface: enp1s0, bmhLabelSelector: {app: openstack}}
  deployStrategy: {deploy: true, ansibleTags: "a,b", ansibleLimit: x, ansibleSkipTags: z}
  env: [{name: ANSIBLE_FORCE_COLOR, value: "True"}]
  networkAttachments: [ctlplane]
  services: [configure-network, run-os]
  nodeTemplate:
    ansiblePort: 22
    ansibleUser: cloud-admin
    ansibleSSHPrivateKeySecret: dataplane-ansible-ssh-private-key-secret
    managementNetwork: ctlplane
    networks: [{name: CtlPlane, subnetName: subnet1, fixedIP: 192.168.122.100, defaultRoute: true}]
    networkConfig: {template: "{{ x }}"}
    userData: {name: user, namespace: openstack}
    networkData: {name: d}
    ansibleVars:
      gather_facts: false
      dns_search_domains: []
      timesync_ntp_servers: [{hostname: pool.ntp.org}]
      ctlplane_mtu: 1500
    extraMounts:
      - extraVolType: Ceph
        propagation: [Compute]
        volumes: [{name: ceph, secret: {secretName: ceph-conf}}]
        mounts: [{name: ceph, mountPath: /etc/ceph, readOnly: true}]
"#,
    );
    let template = role.spec.node_template.unwrap();
    assert!(template.extra_mounts[0].reaches_runs());
    assert_eq!(template.ansible_vars["ctlplane_mtu"], 1500);
    assert_eq!(role.spec.deploy_strategy.unwrap().batch_size(), 50);
}

#[test]
fn a_data_plane_as_upstream_writes_it_keeps_every_field() {
    let plane: DataPlane = round_trip(
        r#"
apiVersion: dataplane.openstack.org/v1beta1
kind: OpenStackDataPlane
metadata: {name: openstack-edpm}
spec:
  deployStrategy: {deploy: true}
  nodes:
    edpm-compute-0:
      role: edpm-compute
      hostName: edpm-compute-0
      ansibleHost: 192.168.122.100
      deployStrategy: {deploy: false}
      node:
        ansibleVars: {fqdn_internalapi: "{{ ansible_fqdn }}"}
        networks: [{name: CtlPlane, subnetName: subnet1, fixedIP: 192.168.122.100}]
  roles:
    edpm-compute:
      services: [configure-network, run-os]
      preProvisioned: true
      env: [{name: ANSIBLE_FORCE_COLOR, value: "True"}]
      nodeTemplate: {ansibleUser: root, managementNetwork: ctlplane}
"#,
    );
    assert_eq!(plane.spec.roles["edpm-compute"].len(), 4);
    assert!(!plane.spec.prune);
}

#[test]
fn the_example_of_a_data_plane_states_only_what_its_kinds_know() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data-plane");
    let text = std::fs::read_to_string(file.join("data-plane.yaml")).unwrap();
    let plane: DataPlane = round_trip(&text);
    for role in plane.spec.roles.values() {
        let typed: RoleSpec = serde_json::from_value(json!(role)).unwrap();
        kept("role", &json!(role), &json!(typed));
    }
    for node in plane.spec.nodes.values() {
        let typed: NodeSpec = serde_json::from_value(json!(node)).unwrap();
        kept("node", &json!(node), &json!(typed));
    }
    assert_eq!((plane.spec.roles.len(), plane.spec.nodes.len()), (1, 2));
}

#[test]
fn the_example_with_guests_states_only_what_its_kinds_know() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/guests");
    let text = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let role: Role = round_trip(&text("patch/role.yaml"));
    assert_eq!(role.spec.tls_enabled, Some(true));
    let third: Node = round_trip(&text("node-3.yaml"));
    let mut addresses = vec![third.spec.node.unwrap().ansible_vars];
    for file in ["patch/node-0.yaml", "patch/node-1.yaml"] {
        addresses.push(round_trip::<Node>(&text(file)).spec.node.unwrap().ansible_vars);
    }
    assert!(addresses.iter().all(|it| it.contains_key("tenant_ip")), "{addresses:?}");
    // Guests move between hosts with one CPU model; that of the other cell is another.
    let third: ExternalCompute = round_trip(&text("compute-3.yaml"));
    let first = example("patch/compute-0.yaml");
    let config = first["spec"]["customServiceConfig"].as_str();
    assert_eq!(third.spec.custom_service_config.as_deref(), config);
    assert!(text("patch/compute-1.yaml").contains("cpu_models = Westmere\n"));
}

#[test]
fn services_of_both_eras_keep_every_field() {
    let new: Service = round_trip(
        "
apiVersion: dataplane.openstack.org/v1beta1
kind: OpenStackDataPlaneService
metadata: {name: nova-custom}
spec:
  playbook: osp.edpm.nova
  edpmServiceType: nova
  caCerts: combined-ca-bundle
  addCertMounts: false
  deployOnAllNodeSets: false
  openStackAnsibleEERunnerImage: example.com/runner:latest
  containerImageFields: [NovaComputeImage]
  tlsCerts:
    default: {contents: [dnsnames, ips], networks: [ctlplane], issuer: i, edpmRoleServiceName: nova}
  dataSources:
    - configMapRef: {name: nova-extra-config, optional: true}
    - secretRef: {name: nova-cell1-compute-config}
      prefix: p_
",
    );
    assert_eq!(new.spec.data_sources.len(), 2);
    let old: Service = round_trip(
        "
apiVersion: dataplane.openstack.org/v1beta1
kind: OpenStackDataPlaneService
metadata: {name: ovn}
spec:
  label: dataplane-deployment-ovn
  play: '- hosts: all'
  configMaps: [ovncontroller-config]
  secrets: [ovn-secret]
  services: [{name: libvirt-exporter, port: 9000, protocol: https}]
",
    );
    assert_eq!(old.spec.services[0].port, 9000);
}

#[test]
fn a_run_as_upstream_writes_it_keeps_every_field() {
    let run: AnsibleEe = round_trip(
        r#"
apiVersion: ansibleee.openstack.org/v1beta1
kind: OpenStackAnsibleEE
metadata: {name: ansibleee-play}
spec:
  playbookContents: |
    - hosts: localhost
  image: quay.io/openstack-k8s-operators/openstack-ansibleee-runner:latest
  args: [ansible-runner, run]
  name: openstackansibleee
  envConfigMapName: openstack-aee-default-env
  env: [{name: ANSIBLE_FORCE_COLOR, value: "1"}]
  restartPolicy: OnFailure
  preserveJobs: false
  uid: 1001
  inventory: "all: {}"
  backoffLimit: 3
  networkAttachments: [ctlplane]
  cmdLine: "--tags a"
  initContainers: [{name: i, image: x, command: ["true"]}]
  serviceAccountName: runner
  dnsConfig: {nameservers: [192.168.122.80], searches: [ctlplane.example.com]}
  extraVars: {a: {b: [1, true, null]}, c: text}
status:
  JobStatus: Running
  hash: {input: n5c}
  networkAttachments: {}
"#,
    );
    assert_eq!(run.spec.extra_vars["a"]["b"][1], true);
    let old: AnsibleEe = round_trip(
        r#"
apiVersion: ansibleee.openstack.org/v1beta1
kind: OpenStackAnsibleEE
metadata: {name: ansibleee-play}
spec: {play: "- hosts: localhost", debug: true}
"#,
    );
    assert_eq!(old.spec.contents(), Some("- hosts: localhost"));
    let role: AnsibleEe = round_trip(
        "
apiVersion: ansibleee.openstack.org/v1beta1
kind: OpenStackAnsibleEE
metadata: {name: ansibleee-role}
spec: {role: osp.edpm.edpm_nova}
",
    );
    assert_eq!(role.spec.role.as_deref(), Some("osp.edpm.edpm_nova"));
}

/// The manifests in a file of the example.
fn example(file: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/seed-002");
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let mut documents: Vec<Value> = yaml::documents(&text).unwrap();
    assert_eq!(documents.len(), 1, "{file}");
    documents.remove(0)
}

#[test]
fn the_example_is_read_as_it_was_written() {
    let node: Node = serde_json::from_value(example("node-1.yaml")).unwrap();
    assert_eq!(node.metadata.annotations.unwrap()["nova.openstack.org/cell"], "nova-cell2");
    assert_eq!(
        node.spec,
        NodeSpec {
            host_name: Some("edpm-compute-1".into()),
            ansible_host: Some("192.168.122.101".into()),
            role: Some("edpm-compute".into()),
            node: Some(NodeSection {
                ansible_ssh_private_key_secret: Some(
                    "dataplane-ansible-ssh-private-key-secret".into()
                ),
                ..NodeSection::default()
            }),
            ..NodeSpec::default()
        }
    );
    let role: Role = serde_json::from_value(example("role.yaml")).unwrap();
    assert_eq!(role.spec.node_template.unwrap().ansible_port, Some(22));
    let compute: ExternalCompute = serde_json::from_value(example("compute-0.yaml")).unwrap();
    assert_eq!(compute.spec.custom_service_config.as_deref(), Some(""));
    assert_eq!(compute.spec.cell_name, "nova-cell1");
    assert_eq!(example("novacell.yaml")["metadata"]["name"], "nova-cell1");
}

#[test]
fn the_patch_fills_what_the_example_leaves_out() {
    let cells = ["patch/novacell.yaml", "patch/added-novacell-2.yaml"]
        .map(|it| serde_json::from_value::<Cell>(example(it)).unwrap().spec.cell_name);
    assert_eq!(cells, ["cell1", "cell2"]);
    let role: Role = serde_json::from_value(example("patch/role.yaml")).unwrap();
    assert_eq!(role.spec.deploy_strategy.unwrap().deploy, Some(true));
    assert!(role.spec.pre_provisioned);
    let second: ExternalCompute =
        serde_json::from_value(example("patch/added-compute-1.yaml")).unwrap();
    let first = example("patch/compute-0.yaml");
    let config = first["spec"]["customServiceConfig"].as_str();
    assert_eq!(second.spec.custom_service_config.as_deref(), config);
    assert!(config.unwrap().contains("cpu_models = Nehalem\n"));
}

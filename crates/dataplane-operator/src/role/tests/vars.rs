//! Variables from ConfigMaps and Secrets: what reaches a run, what does not, and what waits.

use api::shared::SourceKind;
use k8s_openapi::ByteString;
use operator_runtime::source_cache::Content;
use operator_runtime::source_cache::Values;

use super::*;

const VALUE: &str = "{{ hidden }} hunter2";

impl World {
    fn object(&mut self, source: SourceRef, pairs: &[(&str, &[u8])]) {
        let values = pairs.iter().map(|(key, value)| ((*key).to_owned(), value.to_vec()));
        let content = Content::from(Values::new("1", values.collect()));
        self.seen.objects.insert(source, content);
    }

    fn give(&mut self, kind: SourceKind, name: &str, pairs: &[(&str, &str)]) -> &mut Self {
        let source = SourceRef { kind, ..SourceRef::config_map(NAMESPACE, name) };
        let pairs: Vec<(&str, &[u8])> = pairs.iter().map(|(k, v)| (*k, v.as_bytes())).collect();
        self.object(source, &pairs);
        self
    }

    fn role_takes(&mut self, from: &Value) {
        let template = self.template();
        template.ansible_vars_from = serde_json::from_value(from.clone()).unwrap();
    }

    fn node_takes(&mut self, node: usize, section: &Value) {
        self.node(node).spec.node = Some(serde_json::from_value(section.clone()).unwrap());
    }

    /// The files of a Secret beside an inventory.
    fn files(&self, name: &str) -> BTreeMap<String, String> {
        let data: BTreeMap<String, ByteString> =
            serde_json::from_value(self.secrets[name]["data"].clone()).unwrap();
        data.into_iter().map(|(file, text)| (file, String::from_utf8(text.0).unwrap())).collect()
    }

    fn inventory(&self, name: &str) -> &str {
        self.config_maps[name]["data"]["inventory"].as_str().unwrap()
    }
}

/// A role that takes a Secret and a ConfigMap, and a node that takes another Secret.
fn world() -> World {
    let mut world = World::new().held();
    world.give(SourceKind::Secret, "role", &[("password", VALUE), ("shared", "of the role")]);
    world.give(SourceKind::Secret, "node", &[("shared", "of the node")]);
    world.give(SourceKind::ConfigMap, "plain", &[("greeting", "{{ name }}"), ("count", "3")]);
    world.role_takes(&json!([
        { "secretRef": { "name": "role" } },
        { "configMapRef": { "name": "plain" }, "prefix": "edpm_" },
    ]));
    let own = json!({ "ansibleVarsFrom": [{ "secretRef": { "name": "node" } }] });
    world.node_takes(1, &own);
    world
}

#[test]
fn secrets_reach_the_run_in_files_of_a_secret_and_nothing_else_holds_them() {
    let world = world().at_rest();
    let files = world.files("dataplanerole-compute");
    assert_eq!(files.keys().collect::<Vec<_>>(), ["group_vars", "n0", "n1"]);
    let group = "password: !unsafe \"{{ hidden }} hunter2\"\nshared: !unsafe \"of the role\"\n";
    assert_eq!(files["group_vars"], group);
    assert_eq!(
        (files["n0"].as_str(), files["n1"].as_str()),
        ("{}\n", "shared: !unsafe \"of the node\"\n")
    );
    assert_eq!(world.files("dataplanenode-n0")["group_vars"], group);
    for name in ["dataplanerole-compute", "dataplanenode-n0", "dataplanenode-n1"] {
        let inventory = world.inventory(name);
        assert!(inventory.contains(r#"edpm_greeting: "{{ name }}""#), "{inventory}");
        assert!(inventory.contains("edpm_count: 3\n"), "{inventory}");
        assert!(!inventory.contains("shared") && !inventory.contains("password"), "{inventory}");
    }
    let run = serde_json::to_string(&*world.seen.runs[0]).unwrap();
    assert!(run.contains(r#""secretName":"dataplanerole-compute""#), "{run}");
    assert!(run.contains("/runner/inventory/host_vars"), "{run}");
    let published: Vec<String> =
        world.seen.nodes.iter().map(|it| serde_json::to_string(&it.status).unwrap()).collect();
    assert!(published[0].contains(r#""inventorySecretName":"dataplanenode-n0""#), "{published:?}");
    let objects: Vec<String> = world.config_maps.values().map(Value::to_string).collect();
    for text in published.iter().chain([&run]).chain(&objects) {
        assert!(!text.contains("hunter2") && !text.contains("of the node"), "{text}");
    }
}

#[test]
fn a_stronger_source_wins_and_the_weaker_file_lacks_the_key() {
    let mut world = world();
    // On the same level, variables and fields take precedence over the list.
    world.set_var("plain");
    world.give(SourceKind::Secret, "role", &[("greeting", "secret"), ("ansible_user", "secret")]);
    let own = json!({ "ansibleVars": { "password": "plain" }, "ansibleUser": "cloud-admin" });
    world.node_takes(0, &own);
    // The node's list takes precedence over the role's variables.
    world.give(SourceKind::Secret, "node", &[("greeting", "of the node")]).settle();
    let files = world.files("dataplanerole-compute");
    assert_eq!(files["group_vars"], "ansible_user: !unsafe \"secret\"\n");
    assert_eq!(files["n1"], "greeting: !unsafe \"of the node\"\n");
    let (n0, n1) = (world.inventory("dataplanenode-n0"), world.inventory("dataplanenode-n1"));
    assert!(n0.contains(r#"greeting: "plain""#) && n0.contains(r#"ansible_user: !unsafe "cl"#));
    assert!(!n1.contains(" greeting:") && !n1.contains("ansible_user"), "{n1}");
}

#[test]
fn the_content_is_an_input_that_is_named_and_a_key_without_effect_is_none() {
    let mut world = world();
    world.set_var("hello");
    world.deploy();
    world.set_deploy(false);
    let cases = [
        (SourceKind::Secret, "role", "password", "ansibleVarsFrom Secret role"),
        (SourceKind::ConfigMap, "plain", "count", "ansibleVarsFrom ConfigMap plain"),
    ];
    for (kind, name, key, input) in cases {
        let source = SourceRef { kind, ..SourceRef::config_map(NAMESPACE, name) };
        let before = world.seen.objects[&source].clone();
        world.give(kind, name, &[(key, "changed")]).settle();
        assert_eq!(world.condition(0, "UpToDate"), is("False", "InputsChanged"));
        let message = world.message(0, "UpToDate");
        assert!(message.ends_with(&format!(": {input}.")), "{message}");
        world.seen.objects.insert(source, before);
        assert_eq!(world.settled(0, "UpToDate"), is("True", "UpToDate"));
    }
    // Overridden by a variable of the same level.
    let pairs = [("password", VALUE), ("shared", "of the role"), ("greeting", "x")];
    world.give(SourceKind::Secret, "role", &pairs).settle();
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
    world.set_deploy(true);
    let writes = world.give(SourceKind::Secret, "node", &[("shared", "new")]).settle();
    assert!(writes.contains(&"run install-os on n1".to_owned()), "{writes:?}");
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn a_missing_object_is_named_and_heals_when_it_appears() {
    let mut world = World::new();
    world.role_takes(&json!([{ "secretRef": { "name": "role" } }]));
    let own = json!({ "ansibleVarsFrom": [{ "configMapRef": { "name": "plain" } }] });
    world.node_takes(1, &own);
    world.settle();
    assert_eq!(world.role_reason("InputReady").as_deref(), Some("VariablesNotFound"));
    assert_eq!(world.condition(0, "Ready"), is("False", "VariablesNotFound"));
    let words =
        ["Secret role", "spec.nodeTemplate.ansibleVarsFrom", "OpenStackDataPlaneRole compute"];
    world.says(0, "InputReady", &words);
    world.give(SourceKind::Secret, "role", &[("password", VALUE)]);
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(1, "Ready"), is("False", "VariablesNotFound"));
    world.says(1, "InputReady", &["ConfigMap plain"]);
    world.give(SourceKind::ConfigMap, "plain", &[]);
    world.deploy();
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
}

#[test]
fn an_optional_object_may_be_missing() {
    let mut world = World::new();
    world.role_takes(&json!([{ "secretRef": { "name": "role", "optional": true } }]));
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert!(world.secrets.is_empty());
    let writes = world.give(SourceKind::Secret, "role", &[("password", VALUE)]).settle();
    assert!(writes.contains(&"run install-os on n0,n1".to_owned()), "{writes:?}");
}

#[test]
fn an_object_that_is_lost_undoes_nothing_and_its_return_runs_nothing() {
    let mut world = world();
    world.deploy();
    let objects = std::mem::take(&mut world.seen.objects);
    let writes = world.settle();
    assert!(writes.iter().all(|it| it.starts_with("status")), "{writes:?}");
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(0, "InputReady"), is("False", "VariablesNotFound"));
    let status = world.seen.nodes[0].status.as_ref().unwrap();
    assert_eq!(status.inventory_secret_name.as_deref(), Some("dataplanenode-n0"));
    world.seen.objects = objects;
    let writes = world.settle();
    assert!(writes.iter().all(|it| it.starts_with("status")), "{writes:?}");
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
}

#[test]
fn a_node_names_the_inventory_that_it_shares_and_the_secret_beside_it_where_there_is_one() {
    let named = |world: &World| {
        let status = world.seen.nodes[0].status.clone().unwrap();
        (status.shared_inventory_config_map_name, status.shared_inventory_secret_name)
    };
    let shared = Some("dataplanerole-compute".to_owned());
    let plain = World::deployed();
    assert_eq!(named(&plain), (shared.clone(), None));
    let mut world = world();
    world.deploy();
    assert_eq!(named(&world), (shared.clone(), shared));
}

#[test]
fn a_key_that_is_no_text_is_named() {
    let mut world = World::new();
    world.role_takes(&json!([{ "secretRef": { "name": "role" } }]));
    world.object(SourceRef::secret(NAMESPACE, "role"), &[("keystore", &[0xff, 0xfe])]);
    assert_eq!(world.settled(0, "Ready"), is("False", "VariablesInvalid"));
    world.says(0, "InputReady", &["key keystore"]);
}

#[test]
fn an_address_from_a_secret_is_refused() {
    let mut world = World::new();
    world.role_takes(&json!([{ "secretRef": { "name": "role" } }]));
    world.give(SourceKind::Secret, "role", &[("ansible_port", "2022")]).settle();
    assert_eq!(world.condition(0, "Ready"), is("False", "HostAddressInvalid"));
    // The node's own value takes precedence, so there is no fault.
    for node in [0, 1] {
        world.node_takes(node, &json!({ "ansiblePort": 22 }));
    }
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
}

#[test]
fn what_nobody_needs_any_more_is_emptied_and_a_deleted_or_edited_secret_comes_back() {
    let mut world = world();
    world.deploy();
    world.seen.inventory_secrets.remove("dataplanenode-n0");
    assert_eq!(world.settle(), ["apply Secret dataplanenode-n0"]);
    let left = json!({ "metadata": { "annotations": { INVENTORY_HASH: "" } } });
    world.seen.inventory_secrets.get_mut("dataplanerole-compute").unwrap().managed_fields =
        ManagedFields::applied(&left);
    assert_eq!(world.settle(), ["apply Secret dataplanerole-compute"]);
    world.role_takes(&json!([]));
    world.node_takes(1, &json!({}));
    world.deploy();
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
    for name in ["dataplanerole-compute", "dataplanenode-n0", "dataplanenode-n1"] {
        assert!(world.files(name).is_empty(), "{name}");
    }
    let last = serde_json::to_string(&**world.seen.runs.last().unwrap()).unwrap();
    assert!(!last.contains("_vars"), "{last}");
    assert_eq!(world.pass().steps, []);
}

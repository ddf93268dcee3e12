//! Tests what upstream's real plays need of a run of `osp.edpm.nova`, item by item, and where this
//! project provides it.
//!
//! The run is made by the run engine and ansibleee-operator as for a deployment of a node set.

use std::collections::BTreeMap;
use std::sync::Arc;

use ansibleee_operator::run::build::creation;
use ansibleee_operator::run::settings::Settings;
use ansibleee_operator::run::{playbook, validate};
use api::ansibleee::AnsibleEe;
use api::shared::SourceKind;
use dataplane_operator::node_set::observed::Observed;
use dataplane_operator::node_set::observed_nodes::SetNodes;
use dataplane_operator::node_set::resolve::resolve;
use jiff::Timestamp;
use operator_core::data_sources::SourceRef;
use operator_core::plan::{Kind, Step, Target, Write};
use operator_core::run_engine::batches::Batch;
use operator_core::run_engine::build;
use operator_core::run_engine::layout::{Layout, NodeSets, Tls};
use operator_core::run_engine::run::Attempt;
use operator_core::run_engine::run_template::{
    AnsibleOptions, DeploymentOptions, HostConnection, MountedSource, Play, RunTemplate,
};
use operator_runtime::source_cache::Digests;
use serde_json::{Value, json};

/// Where an item that plays need is provided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// A mounted file or directory; its content is written as `Secret x key`.
    Mount,
    /// An environment variable.
    Env,
    /// An extra variable, which overrides all others.
    ExtraVar,
    /// An argument of the container's command.
    Args,
}

/// Whether an item is provided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Held {
    /// It has this value.
    As(&'static str),
    /// It is absent for this reason; its absence is checked too, so that the table stays current.
    Absent(&'static str),
}

use Held::{Absent, As};
use Place::{Args, Env, ExtraVar, Mount};

const CONFIGS: &str = "/var/lib/openstack/configs/nova";

/// Who needs an item, where, its name, and whether it is provided.
const NEEDS: &[(&str, Place, &str, Held)] = &[
    // The role copies every file of the directory to the host.
    (
        "edpm_nova",
        Mount,
        "configs/01-nova.conf",
        As("Secret nova-cell1-compute-config 01-nova.conf"),
    ),
    (
        "edpm_nova",
        Mount,
        "configs/nova-blank.conf",
        As("Secret nova-cell1-compute-config nova-blank.conf"),
    ),
    (
        "edpm_nova",
        Mount,
        "configs/25-nova-extra.conf",
        As("ConfigMap nova-extra-config 25-nova-extra.conf"),
    ),
    (
        "edpm_nova",
        Mount,
        "configs/ssh-privatekey",
        As("Secret nova-migration-ssh-key ssh-privatekey"),
    ),
    (
        "edpm_nova: authorized_keys",
        Mount,
        "configs/ssh-publickey",
        As("Secret nova-migration-ssh-key ssh-publickey"),
    ),
    (
        "edpm_nova",
        Mount,
        "configs/provider1.yaml",
        Absent("a human's own file: any key of a data source"),
    ),
    ("edpm_nova: tls", Mount, "/var/lib/openstack/cacerts/nova", As("Secret combined-ca-bundle")),
    (
        "edpm_install_certs",
        Mount,
        "/var/lib/openstack/certs/nova/default",
        Absent("TLS only, and the service nova names no certificate"),
    ),
    // ssh and Ansible.
    ("ssh", Mount, "/runner/env/ssh_key/ssh_key_edpm", As("Secret key ssh-privatekey")),
    ("ssh", Mount, "/runner/env/known_hosts/edpm", As("Secret key known_hosts")),
    ("ansible", Mount, "/runner/inventory/hosts", As("Secret dataplanenodeset-edpm inventory")),
    ("ansible", Mount, "/runner/inventory/inventory.yaml", As("text inventory")),
    ("ansible", Mount, "/runner/env/extravars", As("text extravars")),
    ("ansible", Mount, "/runner/env/cmdline", As("text cmdline")),
    // The entry point would write these from the environment; here they are files already.
    (
        "entry point",
        Env,
        "RUNNER_INVENTORY",
        Absent("the inventory is mounted, as upstream has it"),
    ),
    (
        "entry point",
        Env,
        "RUNNER_EXTRA_VARS",
        Absent("a file: nothing of a run stands in its environment"),
    ),
    (
        "entry point",
        Env,
        "RUNNER_CMDLINE",
        Absent("a file: nothing of a run stands in its environment"),
    ),
    ("entry point", Env, "RUNNER_PLAYBOOK", Absent("a collection's playbook has no text")),
    ("entry point", Env, "RUNNER_JOB_TIMEOUT", As("7080")),
    ("entry point", Env, "RUNNER_IDLE_TIMEOUT", As("7080")),
    ("summary", Env, "EDPM_AEE_TERMINATION_LOG", As("/tmp/edpm-summary")),
    ("ansible", Env, "ANSIBLE_HOST_KEY_CHECKING", As("True")),
    ("ansible", Env, "ANSIBLE_INJECT_FACT_VARS", As("False")),
    ("ansible", Env, "ANSIBLE_TASK_TIMEOUT", As("900")),
    ("ansible", Env, "ANSIBLE_FORKS", As("20")),
    ("human", Env, "openstack-aee-default-env", As("optional")),
    // Variables in the headers of every play.
    ("play", ExtraVar, "edpm_override_hosts", As("\"edpm_run\"")),
    ("play", ExtraVar, "edpm_any_errors_fatal", As("false")),
    ("play", ExtraVar, "edpm_max_fail_percentage", As("100")),
    ("play", ExtraVar, "edpm_service_type", As("\"nova\"")),
    (
        "play",
        ExtraVar,
        "edpm_playbook_environment",
        Absent("a human's variable; its default is empty"),
    ),
    (
        "edpm_nova",
        ExtraVar,
        "edpm_nova_config_src",
        Absent("the default is the folder that is mounted"),
    ),
    ("update", ExtraVar, "edpm_services_override", Absent("only with servicesOverride")),
    ("ansible-runner", Args, "-p", As("/opt/edpm/plays/main.yaml")),
    ("ansible-runner", Args, "-i", As("nova-edpm-deployment-edpm-0")),
];

/// Who needs a variable of the inventory, its name, and whether it is provided.
const VARIABLES: &[(&str, &str, Held)] = &[
    ("edpm_nova: my_ip", "ctlplane_ip", As("192.168.122.100")),
    ("edpm_nova: host", "canonical_hostname", As("edpm-compute-0.example.com")),
    ("edpm_nova 18.0.0: owner of the files", "ansible_user", As("cloud-admin")),
    ("edpm_ssh_known_hosts", "ansible_port", As("22")),
    ("ansible", "ansible_host", As("192.168.122.100")),
    ("ansible", "ansible_ssh_private_key_file", As("/runner/env/ssh_key/ssh_key_edpm")),
    ("edpm_network_config", "management_network", As("ctlplane")),
    ("edpm_nova: an image of one's own", "edpm_nova_compute_image", As("compute:1")),
    ("edpm_nova: tls", "edpm_tls_certs_enabled", As("false")),
    ("edpm_ovn", "tenant_ip", Absent("IPAM only: the address on another network")),
    ("edpm_network_config", "ctlplane_cidr", Absent("IPAM only, or a human's variable")),
    ("edpm_network_config", "ctlplane_mtu", Absent("IPAM only, or a human's variable")),
    ("edpm_network_config", "ctlplane_gateway_ip", Absent("IPAM only, or a human's variable")),
    ("edpm_network_config", "ctlplane_host_routes", Absent("IPAM only, or a human's variable")),
    ("edpm_network_config", "ctlplane_dns_nameservers", Absent("IPAM only, or a human's variable")),
    ("edpm_network_config", "dns_search_domains", Absent("IPAM only, or a human's variable")),
];

/// Returns the inventory of a node set without an operator for addresses.
fn inventory() -> String {
    let set = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNodeSet",
        "metadata": { "name": "edpm", "namespace": "openstack" },
        "spec": {
            "preProvisioned": true,
            "services": ["nova"],
            "nodeTemplate": {
                "ansibleSSHPrivateKeySecret": "key",
                "ansible": {
                    "ansiblePort": 22,
                    "ansibleVars": { "edpm_nova_compute_image": "compute:1" },
                },
            },
            "nodes": { "edpm-compute-0": {
                "hostName": "edpm-compute-0.example.com",
                "ansible": { "ansibleHost": "192.168.122.100" },
            } },
        },
    });
    let node = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNode",
        "metadata": { "name": "edpm-compute-0", "namespace": "openstack" },
        "spec": { "nodeSet": "edpm" },
    });
    let node = Arc::new(serde_json::from_value(node).unwrap());
    let key = SourceRef::secret("openstack", "key");
    let keys = BTreeMap::from([("ssh-privatekey".to_owned(), "1".into())]);
    let seen = Observed {
        set: Arc::new(serde_json::from_value(set).unwrap()),
        namespace: "openstack".into(),
        nodes: SetNodes {
            own: BTreeMap::from([("edpm-compute-0".to_owned(), node)]),
            ..SetNodes::default()
        },
        sources: BTreeMap::from([(key, Digests { keys, ..Digests::default() })]),
        ..Observed::default()
    };
    resolve(&seen, Timestamp::UNIX_EPOCH)
        .content
        .expect("an inventory")
        .remove("inventory")
        .unwrap()
}

/// Returns the value of a variable in an inventory, without quotation marks and Ansible's `!unsafe`
/// tag.
fn variable(inventory: &str, name: &str) -> Option<String> {
    let mut lines = inventory.lines().map(str::trim_start);
    let value = lines.find_map(|it| it.strip_prefix(name)?.strip_prefix(": "))?;
    Some(value.trim_start_matches("!unsafe ").trim_matches('"').to_owned())
}

/// Returns the run template of the default service nova: data sources, certificates and keys.
fn recipe() -> RunTemplate {
    let source = |kind, name: &str, keys: &[&str]| {
        let keys = keys.iter().map(|it| (*it).to_owned()).collect();
        MountedSource { kind, name: name.into(), keys }
    };
    let ca = Tls::Bundle {
        service: "nova".into(),
        service_type: "nova".into(),
        secret: "combined-ca-bundle".into(),
    };
    let ssh_secrets = BTreeMap::from([("edpm".to_owned(), "key".to_owned())]);
    RunTemplate {
        parent: Target {
            kind: Kind::of::<api::dataplane::Deployment>(),
            namespace: "openstack".into(),
            name: "edpm-deployment".into(),
            uid: Some("u1".into()),
        },
        play: Play::Playbook("osp.edpm.nova".into()),
        service_type: "nova".into(),
        image: None,
        env: vec![
            serde_json::from_value(json!({ "name": "ANSIBLE_FORKS", "value": "20" })).unwrap(),
        ],
        extra_mounts: vec![],
        network_attachments: vec![],
        dns_config: None,
        layout: Layout::NodeSets(NodeSets { ssh_secrets, is_global: false, tls: vec![ca] }),
        sources: vec![
            source(
                SourceKind::Secret,
                "nova-cell1-compute-config",
                &["01-nova.conf", "nova-blank.conf"],
            ),
            source(
                SourceKind::Secret,
                "nova-migration-ssh-key",
                &["ssh-privatekey", "ssh-publickey"],
            ),
            source(SourceKind::ConfigMap, "nova-extra-config", &["25-nova-extra.conf"]),
        ],
        options: AnsibleOptions::default(),
        fact_variables: Vec::new(),
        extra_vars: BTreeMap::new(),
        template_vars: BTreeMap::new(),
        deployed: DeploymentOptions::default(),
    }
}

fn created(step: Step) -> Value {
    let Write::Create { object, .. } = step.write else { panic!("no creation") };
    object
}

/// Returns the AnsibleEE of a run of the service nova on one host, and the pod of its Job.
fn run() -> (AnsibleEe, Value) {
    let attempt = Attempt { hash: "h".into(), attempt: 1 };
    let attempts = BTreeMap::from([("edpm-compute-0".to_owned(), attempt)]);
    let shard = Batch { service: "nova".into(), group: "g".into(), attempts };
    let reach = HostConnection {
        address: "192.168.122.100:22".into(),
        ssh_secret: "key".into(),
        ssh_version: "1".into(),
        has_known_hosts: true,
        scan: None,
        trusted: String::new(),
    };
    let reach = BTreeMap::from([("edpm-compute-0".to_owned(), reach)]);
    let mut object = created(build::run(&recipe(), &shard, &reach));
    object["metadata"]["uid"] = json!("u2");
    object["metadata"]["name"] = json!("nova-edpm-deployment-edpm-0");
    let run: AnsibleEe = serde_json::from_value(object).unwrap();
    let settings = Settings {
        image: "runner:1".into(),
        uid: Some(1001),
        service_accounts: vec![],
        task_timeout: 900,
        resources: None,
        deadline: 14_400,
    };
    let job = created(creation(&run, "0123456789abcdef", &settings));
    (run, job["spec"]["template"]["spec"].clone())
}

/// Returns everything that is mounted: path → content.
fn mounted(pod: &Value) -> BTreeMap<String, String> {
    let list = |it: &Value| it.as_array().cloned().unwrap_or_default();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let volumes: BTreeMap<String, Value> =
        list(&pod["volumes"]).into_iter().map(|it| (text(&it["name"]), it)).collect();
    let key = |items: &Value| list(items).first().map(|it| format!(" {}", text(&it["key"])));
    let held = |mount: &Value| {
        let volume = &volumes[&text(&mount["name"])];
        let (config_map, secret) = (&volume["configMap"], &volume["secret"]);
        if config_map.is_object() {
            let key = key(&config_map["items"]).unwrap_or_default();
            return format!("ConfigMap {}{key}", text(&config_map["name"]));
        }
        if secret.is_object() {
            let key = key(&secret["items"]).unwrap_or_default();
            return format!("Secret {}{key}", text(&secret["secretName"]));
        }
        if let Some(first) = list(&volume["projected"]["sources"]).first() {
            let key = key(&first["secret"]["items"]).unwrap_or_default();
            return format!("Secret {}{key}", text(&first["secret"]["name"]));
        }
        format!("text {}", text(&mount["subPath"]))
    };
    let path = |it: &Value| text(&it["mountPath"]).replace(CONFIGS, "configs");
    let mounts = list(&pod["containers"][0]["volumeMounts"]);
    mounts.iter().map(|it| (path(it), held(it))).collect()
}

/// Returns the items of a list that may be absent.
fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns the value of an item in the run, if any.
fn found(run: &AnsibleEe, pod: &Value, place: Place, name: &str) -> Option<String> {
    let container = &pod["containers"][0];
    match place {
        Mount => mounted(pod).remove(name),
        Env => {
            let env = each(&container["env"]);
            let mut own = env.filter(|it| it["name"] == name);
            let from = each(&container["env"]).map(|it| &it["valueFrom"]["configMapKeyRef"]);
            let mut from = from.filter(|it| it["name"] == name && it["optional"] == true);
            let own = own.next().map(|it| it["value"].as_str().unwrap_or_default().to_owned());
            own.or_else(|| from.next().map(|_| "optional".to_owned()))
        }
        ExtraVar => run.spec.extra_vars.get(name).map(Value::to_string),
        Args => {
            let args: Vec<&str> = each(&container["args"]).filter_map(Value::as_str).collect();
            let at = args.iter().position(|it| *it == name)?;
            args.get(at + 1).map(|it| (*it).to_owned())
        }
    }
}

/// Returns the error of an item, if any.
fn fault(item: &str, found: Option<&str>, held: Held) -> Option<String> {
    match held {
        As(expected) if found != Some(expected) => {
            Some(format!("{item} is {found:?}, not {expected:?}"))
        }
        Absent(reason) if found.is_some() => Some(format!("{item} is {found:?}, but: {reason}")),
        As(_) | Absent(_) => None,
    }
}

#[test]
fn a_run_of_nova_has_what_the_real_plays_need() {
    let (run, pod) = run();
    let check = |(whose, place, name, held): &(&str, Place, &str, Held)| {
        let item = format!("{whose}: {place:?} {name}");
        fault(&item, found(&run, &pod, *place, name).as_deref(), *held)
    };
    let faults: Vec<String> = NEEDS.iter().filter_map(check).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let whole = playbook::main(&run.spec);
    assert!(whole.ends_with(r#"{"import_playbook":"osp.edpm.nova"}]"#), "{whole}");
}

#[test]
fn an_inventory_has_the_variables_that_the_real_plays_need() {
    let inventory = inventory();
    let check = |(whose, name, held): &(&str, &str, Held)| {
        fault(&format!("{whose}: {name}"), variable(&inventory, name).as_deref(), *held)
    };
    let faults: Vec<String> = VARIABLES.iter().filter_map(check).collect();
    assert!(faults.is_empty(), "{}\n{inventory}", faults.join("\n"));
}

#[test]
fn nothing_is_mounted_that_no_play_and_no_operator_needs() {
    let (_, pod) = run();
    let ours = [
        "/opt/edpm/callback/edpm_result.py",
        "/opt/edpm/bounds/edpm_bounds.py",
        "/opt/edpm/key_checks/edpm_key_checks.py",
        "/runner/env/envvars",
        "/opt/edpm/plays/owner-check.yaml",
        "/opt/edpm/plays/main.yaml",
    ];
    let needed: Vec<&str> =
        NEEDS.iter().filter(|it| it.1 == Mount).map(|it| it.2).chain(ours).collect();
    for path in mounted(&pod).keys() {
        assert!(needed.contains(&path.as_str()), "{path}");
    }
}

#[test]
fn the_run_is_one_that_ansibleee_operator_accepts() {
    assert_eq!(validate::faults(&run().0.spec), []);
}

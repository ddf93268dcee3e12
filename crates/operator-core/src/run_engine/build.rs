//! Builds the AnsibleEE of a batch.

use std::collections::BTreeMap;

use api::ansibleee::{AnsibleEe, RunHost};
use api::names;
use serde_json::{Value, json};

use crate::plan::{Step, Target};
use crate::run_engine::batches::Batch;
use crate::run_engine::host_key::SCAN_LIMIT;
use crate::run_engine::inventory::{RUN_GROUP, run_inventory};
use crate::run_engine::mounts;
use crate::run_engine::run::{ATTEMPTS, HOST_KEYS, PARTIAL_LABEL, SERVICE_LABEL, SSH_KEYS};
use crate::run_engine::run_template::{Connections, HostConnection, Play, RunTemplate};

/// Maximum length of an AnsibleEE's name, which leaves room for the suffixes of its Job and pods.
const NAME_LIMIT: usize = 52;

/// Returns the name of a batch's run, derived from its identity.
pub fn run_name(template: &RunTemplate, batch: &Batch) -> String {
    let identity = batch.identity();
    let middle = match template.deployed.names.as_slice() {
        [] => std::slice::from_ref(&template.parent.name),
        names => names,
    };
    let mut parts = vec![batch.service.as_str()];
    parts.extend(middle.iter().map(String::as_str));
    parts.push(&identity[..10]);
    names::derived(&parts, NAME_LIMIT)
}

/// Returns the step that creates a batch's run.
///
/// `connection` has the hosts that can be reached, by name.
pub fn run(template: &RunTemplate, batch: &Batch, connection: &Connections) -> Step {
    let target = Target::named::<AnsibleEe>(&template.parent.namespace, run_name(template, batch));
    let reached = reached(template, batch, connection);
    let keys = reached.iter().map(|(_, it)| (it.ssh_secret.as_str(), it.ssh_version.as_str()));
    let keys: BTreeMap<&str, &str> = keys.collect();
    let mut object = json!({
        "metadata": {
            "labels": {
                SERVICE_LABEL: batch.service,
                PARTIAL_LABEL: template.options.is_partial().to_string(),
            },
            "annotations": {
                ATTEMPTS: serde_json::to_string(&batch.attempts).unwrap_or_default(),
                SSH_KEYS: serde_json::to_string(&keys).unwrap_or_default(),
            },
            "ownerReferences": [owner(&template.parent)],
        },
        "spec": run_spec(template, batch, connection),
    });
    for (name, value) in &template.deployed.labels {
        object["metadata"]["labels"][name] = json!(value);
    }
    let trusted: BTreeMap<&str, &str> = batch
        .attempts
        .keys()
        .filter_map(|it| Some((it.as_str(), connection.get(it)?.trusted.as_str())))
        .filter(|(_, word)| !word.is_empty())
        .collect();
    if !trusted.is_empty() {
        let words = serde_json::to_string(&trusted).unwrap_or_default();
        object["metadata"]["annotations"][HOST_KEYS] = json!(words);
    }
    let because = format!("service {} is to be deployed on {}", batch.service, hosts_text(batch));
    Step::create(target, object, "/spec/inputHash", because)
}

/// Returns the controller owner reference to an object that was read.
pub fn owner(parent: &Target) -> Value {
    json!({
        "apiVersion": parent.kind.api_version(),
        "kind": parent.kind.kind,
        "name": parent.name,
        "uid": parent.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

fn hosts_text(batch: &Batch) -> String {
    match batch.attempts.len() {
        1 => batch.attempts.keys().next().cloned().unwrap_or_default(),
        n_hosts => format!("{n_hosts} hosts"),
    }
}

/// Returns the hosts that a run may change, by name.
fn reached<'a>(
    template: &RunTemplate,
    batch: &Batch,
    connection: &'a Connections,
) -> Vec<(&'a String, &'a HostConnection)> {
    if template.deployed.is_everywhere {
        return connection.iter().collect();
    }
    batch.attempts.keys().filter_map(|it| connection.get_key_value(it)).collect()
}

fn run_hosts(batch: &Batch, reached: &[(&String, &HostConnection)]) -> Vec<RunHost> {
    let is_own = |name: &String| batch.attempts.contains_key(name);
    let asks = |(name, it): &&(&String, &HostConnection)| is_own(name) && it.scan.is_some();
    let mut n_asked = reached.iter().filter(asks).count();
    // Of the hosts outside the batch only so many are scanned that [`SCAN_LIMIT`] holds.
    let mut scan = |name: &String, it: &HostConnection| {
        let is_beside = it.scan.is_some() && !is_own(name);
        n_asked += usize::from(is_beside);
        it.scan.clone().filter(|_| !is_beside || n_asked <= SCAN_LIMIT)
    };
    let mut host = |&(name, it): &(&String, &HostConnection)| {
        let scan_host_key = scan(name, it);
        RunHost { name: name.clone(), address: it.address.clone(), scan_host_key }
    };
    reached.iter().map(&mut host).collect()
}

/// Returns the spec of a batch's run.
///
/// `connection` has the hosts that can be reached, by name.
pub fn run_spec(template: &RunTemplate, batch: &Batch, connection: &Connections) -> Value {
    let (deployed, reached) = (&template.deployed, reached(template, batch, connection));
    let connections: Vec<&HostConnection> = reached.iter().map(|(_, it)| *it).collect();
    let mut spec = json!({
        "inputHash": batch.identity(),
        "hosts": run_hosts(batch, &reached),
        "inventory": run_inventory(batch.attempts.keys()),
        "extraVars": extra_vars(template),
        "extraMounts": mounts::run_mounts(template, &connections),
        "env": template.env,
        "networkAttachments": template.network_attachments,
        // Every further attempt is a new run with only the hosts that need it (D4).
        "backoffLimit": 0,
        "restartPolicy": "Never",
    });
    let cmd_line = template.options.cmd_line(deployed.is_everywhere);
    if !cmd_line.is_empty() {
        spec["cmdLine"] = json!(cmd_line);
    }
    if !template.fact_variables.is_empty() {
        spec["factVariables"] = json!(template.fact_variables);
    }
    if !deployed.node_selector.is_empty() {
        spec["nodeSelector"] = json!(deployed.node_selector);
    }
    if let Some(name) = &deployed.env_config_map {
        spec["envConfigMapName"] = json!(name);
    }
    if deployed.lets_jobs_go {
        spec["preserveJobs"] = json!(false);
    }
    match &template.play {
        Play::Playbook(name) => spec["playbook"] = json!(name),
        Play::Contents(text) => spec["playbookContents"] = json!(text),
        Play::Role(name) => spec["role"] = json!(name),
    }
    if let Some(image) = &template.image {
        spec["image"] = json!(image);
    }
    if let Some(dns) = &template.dns_config {
        spec["dnsConfig"] = json!(dns);
    }
    spec
}

/// Returns the extra variables. A failed host must not stop the others (D4).
///
/// Play keywords can read only extra variables.
fn extra_vars(template: &RunTemplate) -> Value {
    let mut vars: BTreeMap<String, Value> = BTreeMap::from([
        ("edpm_any_errors_fatal".into(), json!(false)),
        ("edpm_max_fail_percentage".into(), json!(100)),
    ]);
    vars.extend(template.template_vars.clone());
    let hosts = if template.deployed.is_everywhere {
        // Ansible's pattern for all hosts except for these.
        let left_out = template.deployed.left_out.iter().map(|it| format!(":!{it}"));
        std::iter::once("all".to_owned()).chain(left_out).collect()
    } else {
        RUN_GROUP.to_owned()
    };
    let mut literals = template.extra_vars.clone();
    literals.insert("edpm_override_hosts".into(), json!(hosts));
    literals.insert("edpm_service_type".into(), json!(template.service_type));
    vars.extend(literals.iter().map(|(name, value)| (name.clone(), literal(value))));
    json!(vars)
}

/// Returns a value whose texts Ansible does not evaluate: each that could hold an expression is an
/// object that Ansible reads as an unsafe text.
fn literal(value: &Value) -> Value {
    match value {
        Value::String(text) if text.contains('{') || text.starts_with('#') => {
            json!({ "__ansible_unsafe": text })
        }
        Value::Array(items) => items.iter().map(literal).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), literal(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use api::ansibleee::HostKeyScan;

    use super::*;
    use crate::plan::Kind;
    use crate::run_engine::layout::Layout;
    use crate::run_engine::run_template::{AnsibleOptions, DeploymentOptions};
    use crate::run_engine::ssh_secret::KNOWN_HOSTS;

    #[test]
    fn options_are_quoted_for_a_shell() {
        let options = AnsibleOptions {
            tags: Some("a b".into()),
            limit: Some("it's".into()),
            ..AnsibleOptions::default()
        };
        assert_eq!(options.cmd_line(false), r"--limit 'it'\''s,&edpm_run' --tags 'a b'");
        assert_eq!(AnsibleOptions::default().cmd_line(false), "--limit 'edpm_run,localhost'");
        let limit =
            |it: &str| AnsibleOptions { limit: Some(it.into()), ..AnsibleOptions::default() };
        assert_eq!(limit("compute:!n2").cmd_line(false), "--limit 'compute,!n2,&edpm_run'");
        assert_eq!(limit("compute:!n2").cmd_line(true), "--limit 'compute:!n2'");
        assert_eq!(AnsibleOptions::default().cmd_line(true), "");
    }

    fn recipe() -> RunTemplate {
        let parent = Target {
            kind: Kind::of::<AnsibleEe>(),
            namespace: "ns".into(),
            name: "compute".into(),
            uid: Some("u".into()),
        };
        let layout = Layout::Parent { inventory: "inventory".into(), beside: None, tls: vec![] };
        RunTemplate::of(parent, Play::Playbook("a.b.c".into()), "a", layout)
    }

    #[test]
    fn what_operators_derive_is_no_template_and_what_a_human_wrote_stays_one() {
        let text = "{{ lookup('pipe', 'id') }}";
        let vars = || BTreeMap::from([("id".to_owned(), json!(text))]);
        let by_user = RunTemplate { template_vars: vars(), ..recipe() };
        assert_eq!(extra_vars(&by_user)["id"], text);
        let marked = json!({ "__ansible_unsafe": text });
        assert_eq!(extra_vars(&RunTemplate { extra_vars: vars(), ..by_user })["id"], marked);
        let service_type = "#jinja2:variable_start_string:'['".to_owned();
        let derived = extra_vars(&RunTemplate { service_type, ..recipe() });
        assert!(derived["edpm_service_type"].is_object(), "{derived}");
        assert_eq!(derived["edpm_override_hosts"], RUN_GROUP);
        let inner = json!([{ "a": [text, "a", 1] }]);
        assert_eq!(literal(&inner), json!([{ "a": [marked, "a", 1] }]));
    }

    fn reach(has_known_hosts: bool, scan: Option<HostKeyScan>, trusted: &str) -> HostConnection {
        HostConnection {
            address: "192.0.2.7:22".into(),
            ssh_secret: "key".into(),
            ssh_version: "1".into(),
            has_known_hosts,
            scan,
            trusted: trusted.into(),
        }
    }

    fn created(connection: HostConnection) -> Value {
        let attempt = crate::run_engine::run::Attempt { hash: "h".into(), attempt: 1 };
        let attempts = BTreeMap::from([("n0".to_owned(), attempt)]);
        let batch = Batch { service: "a".into(), group: "g".into(), attempts };
        let step = run(&recipe(), &batch, &BTreeMap::from([("n0".to_owned(), connection)]));
        let crate::plan::Write::Create { object, .. } = step.write else { panic!("no creation") };
        object
    }

    #[test]
    fn a_run_asks_for_host_keys_only_where_its_host_says_so() {
        let of_host = |it: &Value| it["spec"]["hosts"][0].clone();
        let known = created(reach(true, None, ""));
        assert_eq!(of_host(&known), json!({ "name": "n0", "address": "192.0.2.7:22" }));
        assert_eq!(known["metadata"]["annotations"].get(HOST_KEYS), None);
        let fingerprint = Some("SHA256:x".to_owned());
        let asked = created(reach(true, Some(HostKeyScan { fingerprint }), "word"));
        assert_eq!(of_host(&asked)["scanHostKey"], json!({ "fingerprint": "SHA256:x" }));
        assert_eq!(asked["metadata"]["annotations"][HOST_KEYS], json!(r#"{"n0":"word"}"#));
        let any = created(reach(true, Some(HostKeyScan::default()), ""));
        assert_eq!(of_host(&any)["scanHostKey"], json!({}));
        // It is the same run: learned keys are not inputs.
        for pointer in ["/metadata/name", "/spec/inputHash"] {
            assert_eq!(known.pointer(pointer), asked.pointer(pointer));
            assert!(known.pointer(pointer).is_some());
        }
    }

    #[test]
    fn known_hosts_are_mounted_only_where_the_secret_has_them() {
        let paths = |has_known_hosts| {
            let run = created(reach(has_known_hosts, None, ""));
            let mounts = run["spec"]["extraMounts"][0]["mounts"].as_array().unwrap().clone();
            mounts.iter().filter(|it| it["subPath"] == KNOWN_HOSTS).count()
        };
        assert_eq!((paths(true), paths(false)), (1, 0));
    }

    #[test]
    fn a_run_everywhere_touches_all_hosts_and_carries_only_its_own_attempts() {
        let attempt = crate::run_engine::run::Attempt { hash: "h".into(), attempt: 1 };
        let attempts = BTreeMap::from([("n0".to_owned(), attempt)]);
        let batch = Batch { service: "a".into(), group: "g".into(), attempts };
        let scan = || Some(HostKeyScan::default());
        let mut all: BTreeMap<String, HostConnection> =
            (1..90).map(|it| (format!("b{it:02}"), reach(true, scan(), ""))).collect();
        all.insert("n0".into(), reach(true, scan(), ""));
        let deployed = DeploymentOptions {
            names: vec!["deployment".into(), "set".into()],
            labels: BTreeMap::from([("x".to_owned(), "y".to_owned())]),
            is_everywhere: true,
            lets_jobs_go: true,
            ..DeploymentOptions::default()
        };
        let extra_vars = BTreeMap::from([
            ("edpm_override_hosts".to_owned(), json!("n0")),
            ("edpm_max_fail_percentage".to_owned(), json!(0)),
        ]);
        let template = RunTemplate { template_vars: extra_vars, deployed, ..recipe() };
        let step = run(&template, &batch, &all);
        let crate::plan::Write::Create { object, .. } = step.write else { panic!("no creation") };
        let run: AnsibleEe = serde_json::from_value(object).unwrap();
        assert_eq!(run.spec.hosts.len(), 90);
        let asked = run.spec.hosts.iter().filter(|it| it.scan_host_key.is_some());
        let asked: Vec<&str> = asked.map(|it| it.name.as_str()).collect();
        assert_eq!((asked.len(), asked.contains(&"n0")), (SCAN_LIMIT, true));
        assert_eq!(run.spec.extra_vars["edpm_override_hosts"], "all");
        // How a user's plays behave is up to the user.
        assert_eq!(run.spec.extra_vars["edpm_max_fail_percentage"], 0);
        assert!(!run.spec.preserve_jobs);
        let labels = run.metadata.labels.unwrap();
        assert_eq!((labels["x"].as_str(), labels[SERVICE_LABEL].as_str()), ("y", "a"));
        let carried: BTreeMap<String, Value> =
            serde_json::from_str(&run.metadata.annotations.unwrap()[ATTEMPTS]).unwrap();
        assert_eq!(carried.keys().collect::<Vec<_>>(), ["n0"]);
        assert!(run.metadata.name.unwrap().starts_with("a-deployment-set-"));
    }
}

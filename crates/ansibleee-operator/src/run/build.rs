//! Builds the Job of a run: upstream's runner contract, with our files and annotations.

use std::borrow::Cow;

use api::ansibleee::{AnsibleEe, AnsibleEeSpec, RestartPolicy};
use api::{facts, names};
use kube::ResourceExt;
use operator_core::plan::{Kind, Step, Target};
use operator_core::run_engine::host_owner::{CHECK, PLAYS_DIR};
use serde_json::{Map, Value, json};

use super::{content_digest, environment, host_keys, playbook};
use crate::callback;
use crate::objects::{self, HOSTS, IDENTITY, RUN};
use crate::run::deadline::{by_default, deadline};
use crate::run::settings::{Settings, is_engines};

/// The volumes that the operator adds.
pub const OWN_VOLUMES: [&str; 2] = [FILES_VOLUME, host_keys::VOLUME];
/// The label of all our Jobs and pods, the same as upstream's.
pub const APP: (&str, &str) = ("app", "openstackansibleee");

const FILES_VOLUME: &str = "edpm-run-files";
/// Labels and annotations by which a pod asks service meshes for no container beside its own, which
/// would neither end with it nor let ssh through.
const NO_MESH_LABELS: [(&str, &str); 2] =
    [("sidecar.istio.io/inject", "false"), ("kuma.io/sidecar-injection", "disabled")];
const NO_MESH_ANNOTATIONS: [(&str, &str); 3] = [
    ("sidecar.istio.io/inject", "false"),
    ("linkerd.io/inject", "disabled"),
    ("consul.hashicorp.com/connect-inject", "false"),
];
/// Maximum length of an interface's name on Linux.
const INTERFACE_LIMIT: usize = 15;
/// Group of the pod, which owns its volumes: ssh reads another owner's key only through the group.
const RUNNER_GROUP: i64 = 0;

/// A text that becomes a file in the pod.
pub struct RunFile {
    /// Its path in the pod.
    pub path: Cow<'static, str>,
    /// The content.
    pub text: String,
    name: &'static str,
}

/// Returns the texts of the spec that become files in the pod.
pub fn files(spec: &AnsibleEeSpec) -> Vec<RunFile> {
    let file = |name, path: &'static str, text| RunFile { path: path.into(), text, name };
    let mut files = Vec::new();
    if let Some(text) = spec.cmd_line.as_ref().filter(|it| !it.trim().is_empty()) {
        files.push(file("cmdline", "/runner/env/cmdline", text.clone()));
    }
    if !spec.extra_vars.is_empty() {
        let text = serde_json::to_string(&spec.extra_vars).unwrap_or_default();
        files.push(file("extravars", "/runner/env/extravars", text));
    }
    if let Some(text) = spec.contents() {
        files.push(file("playbook", "/runner/project/playbook.yaml", text.to_owned()));
    }
    if let Some(text) = &spec.inventory {
        files.push(file("inventory", "/runner/inventory/inventory.yaml", text.clone()));
    }
    files
}

/// Returns all files that come from no object: Ansible's plugins, plays and the texts of the spec.
fn all_files(spec: &AnsibleEeSpec, settings: &Settings) -> Vec<RunFile> {
    let plugin = |it: callback::Plugin| {
        let path = format!("{}/{}", it.folder, it.file).into();
        RunFile { path, text: it.text.into(), name: it.name }
    };
    let plays = if is_engines(spec) { plays(spec) } else { Vec::new() };
    let text = environment::envvars(spec, settings);
    let envvars = RunFile { path: "/runner/env/envvars".into(), text, name: "envvars" };
    // For a role ansible-runner writes that file itself, with the role directories.
    let has_own = spec.role.is_some() && !is_engines(spec);
    let envvars = Some(envvars).filter(|_| !has_own);
    let ours = callback::PLUGINS.into_iter().map(plugin).chain(envvars);
    ours.chain(plays).chain(files(spec)).collect()
}

/// Returns the plays of a run of the engine.
fn plays(spec: &AnsibleEeSpec) -> Vec<RunFile> {
    let file =
        |name, file: &str, text| RunFile { path: format!("{PLAYS_DIR}/{file}").into(), text, name };
    let mut plays = vec![
        file("owner-check", CHECK, playbook::OWNER_CHECK.to_owned()),
        file("plays", playbook::MAIN, playbook::main(spec)),
    ];
    if !spec.fact_variables.is_empty() {
        plays.push(file("facts", facts::PLAY, playbook::FACTS.to_owned()));
    }
    plays
}

/// Returns the step that creates the Job of an AnsibleEE.
pub fn creation(run: &AnsibleEe, identity: &str, settings: &Settings) -> Step {
    let name = content_digest::job_name(&run.name_any(), identity);
    let target = Target::named::<objects::Job>(run.namespace().unwrap_or_default(), name);
    let pointer = format!("/metadata/annotations/{}", IDENTITY.replace('/', "~1"));
    Step::create(target, object(run, identity, settings), &pointer, "the run was let in")
}

/// Returns the image of a run; empty if neither the run nor the operator names one.
pub fn image<'a>(spec: &'a AnsibleEeSpec, settings: &'a Settings) -> &'a str {
    spec.image.as_deref().filter(|it| !it.is_empty()).unwrap_or(&settings.image)
}

fn object(run: &AnsibleEe, identity: &str, settings: &Settings) -> Value {
    let spec = &run.spec;
    let labels = labels(run);
    let addresses: Vec<&str> = spec.hosts.iter().map(|it| it.address.as_str()).collect();
    let mut annotations = Map::from_iter([
        (RUN.to_owned(), json!(run.name_any())),
        (HOSTS.to_owned(), json!(json!(addresses).to_string())),
    ]);
    let mut on_job = annotations.clone();
    on_job.insert(IDENTITY.into(), json!(identity));
    let files = all_files(spec, settings);
    annotations.extend(files.iter().map(|it| (annotation(it.name), json!(it.text))));
    if !spec.network_attachments.is_empty() {
        annotations.insert("k8s.v1.cni.cncf.io/networks".into(), json!(networks(run)));
    }
    let asks = |it: (&str, &str)| (it.0.to_owned(), json!(it.1));
    annotations.extend(NO_MESH_ANNOTATIONS.map(asks));
    let mut on_pod = labels.clone();
    on_pod.extend(NO_MESH_LABELS.map(asks));
    let mut job = json!({
        "activeDeadlineSeconds": deadline(spec).unwrap_or_else(|| by_default(spec, settings)),
        "backoffLimit": if is_engines(spec) { 0 } else { spec.backoff_limit },
        "podReplacementPolicy": "Failed",
        "template": {
            "metadata": { "labels": on_pod, "annotations": annotations },
            "spec": pod(run, &files, settings),
        },
    });
    if is_engines(spec) {
        job["podFailurePolicy"] = failure_policy(&spec.name);
    }
    json!({
        "metadata": {
            "labels": labels,
            "annotations": on_job,
            "ownerReferences": [owner(run)],
        },
        "spec": job,
    })
}

/// Ends the Job at once for an evicted pod and for a failed playbook; its condition tells them
/// apart.
fn failure_policy(container: &str) -> Value {
    let evicted = json!([{ "type": "DisruptionTarget", "status": "True" }]);
    let failed = json!({ "containerName": container, "operator": "NotIn", "values": [0] });
    json!({ "rules": [
        { "action": "FailJob", "onPodConditions": evicted },
        { "action": "FailJob", "onExitCodes": failed },
    ] })
}

fn owner(run: &AnsibleEe) -> Value {
    let kind = Kind::of::<AnsibleEe>();
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "name": run.name_any(),
        "uid": run.uid().unwrap_or_default(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Returns the run's own labels, by which its creator finds Job and pods, and ours.
fn labels(run: &AnsibleEe) -> Map<String, Value> {
    // The Job controller sets these.
    let is_reserved = |name: &str| {
        ["job-name", "controller-uid"].contains(&name) || name.starts_with("batch.kubernetes.io/")
    };
    let own = run.labels().iter().filter(|(name, _)| !is_reserved(name));
    let mut labels: Map<String, Value> = own.map(|(k, v)| (k.clone(), json!(v))).collect();
    labels.insert(APP.0.into(), json!(APP.1));
    labels.insert("osaee".into(), json!("true"));
    let name = names::derived(&[&run.name_any()], names::LABEL_LIMIT);
    labels.insert("openstackansibleee_cr".into(), json!(name));
    labels
}

fn annotation(file: &str) -> String {
    format!("edpm.openstack.org/file-{file}")
}

/// Returns Multus' list of networks.
fn networks(run: &AnsibleEe) -> String {
    let networks = &run.spec.network_attachments;
    let one = |(name, interface): (&String, String)| {
        let namespace = run.namespace();
        json!({ "name": name, "namespace": namespace, "interface": interface })
    };
    let all = networks.iter().zip(interfaces(networks)).map(one);
    Value::from(all.collect::<Vec<_>>()).to_string()
}

/// Returns the names of the interfaces of networks: a network's own name, cut as upstream cuts it,
/// and numbered where it is another one's already.
fn interfaces(networks: &[String]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in networks {
        let cut = |suffix: &str| {
            let start: String = name.chars().take(INTERFACE_LIMIT - suffix.len()).collect();
            start + suffix
        };
        let numbered = (1..).map(|it| cut(&format!("-{it}")));
        let free = std::iter::once(cut("")).chain(numbered).find(|it| !taken.contains(it));
        taken.extend(free);
    }
    taken
}

fn pod(run: &AnsibleEe, files: &[RunFile], settings: &Settings) -> Value {
    let spec = &run.spec;
    let (volumes, mounts) = volumes(spec, files);
    let restart = match spec.restart_policy {
        RestartPolicy::OnFailure if !is_engines(spec) => "OnFailure",
        RestartPolicy::OnFailure | RestartPolicy::Never => "Never",
    };
    let mut container = json!({
        "name": spec.name,
        "image": image(spec, settings),
        "imagePullPolicy": "IfNotPresent",
        "args": args(run),
        "env": super::variables::env(spec, settings),
        "volumeMounts": mounts,
        "terminationMessagePolicy": "File",
        "securityContext": rights(),
    });
    if let Some(config_map) = environment::named_config_map(spec) {
        container["envFrom"] = json!([config_map]);
    }
    let resources = spec.resources.as_ref().or(settings.resources.as_ref());
    if let Some(resources) = resources {
        container["resources"] = json!(resources);
    }
    let mut security = json!({
        "runAsNonRoot": true,
        "seccompProfile": { "type": "RuntimeDefault" },
    });
    if let Some(uid) = settings.uid {
        security["runAsUser"] = json!(uid);
        security["runAsGroup"] = json!(RUNNER_GROUP);
        security["fsGroup"] = json!(RUNNER_GROUP);
        security["fsGroupChangePolicy"] = json!("OnRootMismatch");
    }
    let mut pod = json!({
        "restartPolicy": restart,
        "securityContext": security,
        "enableServiceLinks": false,
        "containers": [container],
        "volumes": volumes,
    });
    let mut first: Vec<Value> = spec.init_containers.iter().map(|it| json!(it)).collect();
    if host_keys::is_asking(spec) {
        // It comes last, because the user's containers may make the hosts reachable.
        let mut asking = host_keys::container(spec, image(spec, settings), &rights());
        if let Some(resources) = resources {
            asking["resources"] = json!(resources);
        }
        first.push(asking);
    }
    if !first.is_empty() {
        pod["initContainers"] = json!(first);
    }
    place(spec, &mut pod);
    pod
}

/// Returns the security context of our containers: no privileges beyond their user's.
fn rights() -> Value {
    json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
}

/// Sets what decides where the pod runs, and with which service account.
fn place(spec: &AnsibleEeSpec, pod: &mut Value) {
    if let Some(dns) = &spec.dns_config {
        pod["dnsPolicy"] = json!("None");
        pod["dnsConfig"] = json!(dns);
    }
    match &spec.service_account_name {
        Some(name) => {
            pod["serviceAccountName"] = json!(name);
            // A user who names an account for a hand-made run may want its token.
            if is_engines(spec) {
                pod["automountServiceAccountToken"] = json!(false);
            }
        }
        None => pod["automountServiceAccountToken"] = json!(false),
    }
    if !spec.node_selector.is_empty() {
        pod["nodeSelector"] = json!(spec.node_selector);
    }
    if !spec.tolerations.is_empty() {
        pod["tolerations"] = json!(spec.tolerations);
    }
    if !spec.image_pull_secrets.is_empty() {
        pod["imagePullSecrets"] = json!(spec.image_pull_secrets);
    }
}

fn args(run: &AnsibleEe) -> Vec<String> {
    let spec = &run.spec;
    if spec.debug {
        return ["sleep", "1d"].map(Into::into).into();
    }
    let mut args = spec.args.clone();
    if args.is_empty() && is_engines(spec) {
        let main = format!("{PLAYS_DIR}/{}", playbook::MAIN);
        args = ["ansible-runner", "run", "/runner", "-p", &main].map(Into::into).into();
    } else if args.is_empty() {
        let playbook = spec.playbook.as_deref().filter(|_| spec.contents().is_none());
        let [option, what] = match (&spec.role, spec.contents(), playbook) {
            (Some(role), None, None) => ["-r", role],
            (_, _, playbook) => ["-p", playbook.unwrap_or("playbook.yaml")],
        };
        args = ["ansible-runner", "run", "/runner", option, what].map(Into::into).into();
    }
    let has_ident = args.iter().any(|it| it == "-i" || it.starts_with("--ident"));
    let is_runner = args.first().is_some_and(|it| it == "ansible-runner");
    if is_runner && !has_ident {
        args.extend(["-i".into(), run.name_any()]);
    }
    args
}

/// Returns the volumes, and the runner container's mounts.
fn volumes(spec: &AnsibleEeSpec, files: &[RunFile]) -> (Vec<Value>, Vec<Value>) {
    let mut volumes = Vec::new();
    let mut mounts = Vec::new();
    for extra in spec.extra_mounts.iter().filter(|it| it.reaches_runs()) {
        volumes.extend(extra.volumes.iter().map(|it| json!(it)));
        mounts.extend(extra.mounts.iter().map(|it| json!(it)));
    }
    if host_keys::is_asking(spec) {
        volumes.push(host_keys::volume());
        mounts.push(host_keys::mount());
    }
    let item = |it: &RunFile| {
        let field = format!("metadata.annotations['{}']", annotation(it.name));
        json!({ "path": it.name, "fieldRef": { "fieldPath": field } })
    };
    let items: Vec<Value> = files.iter().map(item).collect();
    volumes.push(json!({ "name": FILES_VOLUME, "downwardAPI": { "items": items } }));
    mounts.extend(files.iter().map(|it| {
        json!({
            "name": FILES_VOLUME,
            "mountPath": it.path,
            "subPath": it.name,
            "readOnly": true,
        })
    }));
    (volumes, mounts)
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;

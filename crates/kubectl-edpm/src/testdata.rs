//! Objects as the API server returns them, for the tests of all commands.

use std::collections::BTreeMap;

use api::ansibleee::AnsibleEe;
use api::dataplane::Service;
use api::yaml;
use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use nova_config::rendered_secret::CONFIG_FILES;
use operator_core::data_sources::sources_of;
use operator_core::hash;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cluster::Read;
use crate::config_files::{Content, File};
use crate::option_sources::ServiceSources;
use crate::snapshot::Snapshot;
use crate::trace::answer::Answer;

/// The current time in the tests.
pub(crate) const NOW: &str = "2026-11-21T12:00:00Z";

const OBJECTS: &str = include_str!("../testdata/world.yaml");
const NODE_SET: &str = include_str!("../testdata/node-set.yaml");

/// Four hosts: deployed, nova in progress, failed in phase 0, and waiting for another run.
pub(crate) fn snapshot() -> Snapshot {
    snapshot_of(&objects())
}

/// Two hosts of a node set: deployed, and failed in the first service.
pub(crate) fn node_set() -> Snapshot {
    let mut snapshot = snapshot_of(&node_set_objects());
    let content = Content::of_config_map(&only("ConfigMap"), "openstack");
    let files = Content::of_secret(&only("Secret"), "openstack");
    let status = snapshot.deployments[0].status.as_mut().unwrap();
    status.config_map_hashes.insert("nova-extra-config".to_owned(), content.hash);
    status.secret_hashes.insert("nova-cell1-compute-config".to_owned(), files.hash);
    let files: Vec<File> = content.files.into_iter().chain(files.files).collect();
    set_report(&mut snapshot.runs[1], &files);
    snapshot
}

fn snapshot_of(objects: &[Value]) -> Snapshot {
    Snapshot {
        roles: of(objects, "OpenStackDataPlaneRole"),
        nodes: of(objects, "OpenStackDataPlaneNode"),
        node_sets: of(objects, "OpenStackDataPlaneNodeSet"),
        deployments: of(objects, "OpenStackDataPlaneDeployment"),
        computes: of(objects, "NovaExternalCompute"),
        cells: of(objects, "NovaCell"),
        runs: of(objects, "OpenStackAnsibleEE"),
    }
}

/// The objects as written in the file.
pub(crate) fn objects() -> Vec<Value> {
    yaml::documents(OBJECTS).unwrap()
}

/// The objects of the node set test data.
pub(crate) fn node_set_objects() -> Vec<Value> {
    yaml::documents(NODE_SET).unwrap()
}

/// The only object of a kind in the node set test data.
pub(crate) fn only<K: DeserializeOwned>(kind: &str) -> K {
    of(&node_set_objects(), kind).remove(0)
}

fn of<K: DeserializeOwned>(objects: &[Value], kind: &str) -> Vec<K> {
    let chosen = objects.iter().filter(|it| it["kind"] == kind).cloned();
    chosen.map(|it| serde_json::from_value(it).unwrap()).collect()
}

/// A service that the host lists, with the contents of its sources.
pub(crate) fn given(
    service: Service,
    contents: impl IntoIterator<Item = Read<Content>>,
) -> ServiceSources {
    ServiceSources {
        sources: sources_of(&service.spec).into_iter().zip(contents).collect(),
        service,
        beside: vec![],
        is_listed: true,
        conflicting_service: None,
        absent: vec![],
    }
}

/// The role's default configuration.
pub(crate) const DEFAULTS: &str =
    "[libvirt]\ncpu_models = Westmere\n[DEFAULT]\nmax_concurrent_builds = 5\n";

/// The Secret with the rendered files of the first compute, with the user's options as given.
pub(crate) fn rendered(custom: &str) -> Secret {
    let generated = "# From NovaCell openstack/nova-cell1\n\n[DEFAULT]\ntransport_url = \
                     rabbit://nova:bus-pw@10.96.10.21:5672/cell1\nhost = edpm-compute-0\n\n\
                     [libvirt]\ncpu_mode = host-model\n\n[placement]\npassword = keystone-pw\n";
    let files = [
        ("01-nova.conf", "NovaCell openstack/nova-cell1", generated.to_owned()),
        (
            "02-nova-default.conf",
            "ConfigMap openstack/compute-defaults",
            format!("# From ConfigMap openstack/compute-defaults\n{DEFAULTS}"),
        ),
        (
            "02-nova-override.conf",
            "NovaExternalCompute openstack/edpm-compute-0",
            format!("# From NovaExternalCompute openstack/edpm-compute-0\n{custom}"),
        ),
        ("nova-blank.conf", "NovaExternalCompute openstack/edpm-compute-0", "# blank\n".to_owned()),
    ];
    let listed: Vec<Value> = files
        .iter()
        .map(|(name, source, _)| json!({ "name": name, "source": source, "hash": "h" }))
        .collect();
    let data = files
        .iter()
        .map(|(name, _, text)| ((*name).to_owned(), ByteString(text.clone().into_bytes())));
    let mut secret = Secret { data: Some(data.collect()), ..Secret::default() };
    secret.metadata.name = Some("edpm-compute-0-config-data".to_owned());
    secret.metadata.namespace = Some("openstack".to_owned());
    secret.annotations_mut().insert(CONFIG_FILES.to_owned(), json!(listed).to_string());
    secret
}

/// Records the first compute's current options as those of its last deployment.
pub(crate) fn deployed_with_present_inputs(snapshot: &mut Snapshot) {
    let compute = &mut snapshot.computes[0];
    let spec = compute.spec.clone();
    let inputs = &mut compute.status.as_mut().unwrap().deployed_inputs;
    let fields = [
        ("customServiceConfig", spec.custom_service_config),
        ("novaComputeContainerImage", spec.nova_compute_container_image),
        ("ConfigMap compute-defaults", Some(DEFAULTS.to_owned())),
    ];
    for (name, value) in fields {
        inputs.insert(name.to_owned(), hash::short(&json!(value)));
    }
}

/// Sets the report of a run's play to the digests of these files.
pub(crate) fn set_report(run: &mut AnsibleEe, files: &[File]) {
    let digests: BTreeMap<&str, &str> =
        files.iter().map(|it| (it.name.as_str(), it.open_digest.as_str())).collect();
    run.status.as_mut().unwrap().report = Some(json!({ "files": digests }).to_string());
}

/// The Job of a run, with the volumes of its spec.
pub(crate) fn job(run: &AnsibleEe) -> Job {
    let all = &run.spec.extra_mounts;
    let volumes: Vec<_> = all.iter().flat_map(|it| &it.volumes).collect();
    let mounts: Vec<_> = all.iter().flat_map(|it| &it.mounts).collect();
    let container = json!({ "name": run.spec.name, "volumeMounts": mounts });
    let pod = json!({ "containers": [container], "volumes": volumes });
    let name = &run.status.as_ref().unwrap().job.as_ref().unwrap().name;
    let job = json!({ "metadata": { "name": name }, "spec": { "template": { "spec": pod } } });
    serde_json::from_value(job).unwrap()
}

/// The answer of a host whose container has these files, one of which takes effect.
pub(crate) fn answer(files: &[File], decides: &str, value: &str) -> Answer {
    Answer::of(&report(files, decides, value)).unwrap()
}

/// The same as JSON, as the run reports it.
pub(crate) fn report(files: &[File], decides: &str, value: &str) -> String {
    let host: Vec<String> = files.iter().map(|it| format!("{} {}", it.digest, it.name)).collect();
    let folder = "/etc/nova/nova.conf.d";
    let inside: Vec<String> =
        files.iter().map(|it| format!("{} {folder}/{}", it.digest, it.name)).collect();
    let asked = json!({
        "process": "7 1763550000.0",
        "started": 1_763_550_000,
        "files": inside,
        "newer": [],
        "origin": { "kind": "user", "detail": format!("{folder}/{decides}") },
        "by_files": { "value": value },
        "problem": null,
    });
    json!({
        "folder": "/var/lib/openstack/config/nova",
        "host": host,
        "asked": asked,
        "said": { "value": value },
        "problem": "",
    })
    .to_string()
}

/// The docs show what the commands print.
#[test]
fn the_docs_show_what_the_tests_see() {
    let docs = include_str!("../../../docs/kubectl-edpm.md");
    let explained = include_str!("../testdata/explain-failed.txt");
    let chain = explained.split("\n\n").next().unwrap();
    let shown = [
        include_str!("../testdata/status.txt"),
        chain,
        include_str!("../testdata/diff-changed.txt"),
        include_str!("../testdata/trace.txt"),
        include_str!("../testdata/trace-asked.txt"),
        include_str!("../testdata/trace-node-set.txt"),
    ];
    for text in shown {
        assert!(docs.contains(text), "docs/kubectl-edpm.md lacks:\n{text}");
    }
}

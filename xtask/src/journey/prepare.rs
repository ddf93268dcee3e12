//! Prerequisites of the journey: operators, a cell, a host of its own, and an overlay of the
//! example with the lab's images.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::snippet::Snippet;
use super::{NAMESPACE, NODE_SET, SERVICE};
use crate::cluster::Choice;
use crate::hosts::{self, Host};
use crate::{controlplane, demo, images, lab, paths, sh, yaml};

/// The journey's host.
pub(crate) const HOST: Host = Host { name: "edpm-compute-2", address: "192.168.122.102" };
/// The cell that it registers in.
const CELL: &str = "nova-cell1";
/// The timeout for the cell's files.
const RENDERED: Duration = Duration::from_mins(10);
/// Options for a host without KVM, and the log level that shows the options of nova-compute.
const LAB_CONFIG: &str = "[DEFAULT]\ndebug = True\n[libvirt]\nvirt_type = qemu\n";

/// Starts all prerequisites.
pub(crate) fn up(cluster: &Choice) -> Result<lab::Env> {
    let env = cluster.up()?;
    let images = images::for_cluster(&env)?;
    controlplane::up(&env, images.reference("openstack")?)?;
    demo::install(&env, &paths::repo(), &demo::values(&images)?)?;
    around(&env, &images)?;
    Ok(env)
}

/// Creates the namespace with the host, the cell and the Secrets.
pub(super) fn around(env: &lab::Env, images: &images::Set) -> Result<()> {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE },
    });
    controlplane::apply(env, &namespace.to_string())?;
    hosts::start(env, images.reference("edpm-host")?, &[HOST], NAMESPACE)?;
    sh::step("describe the cell in the journey's namespace", || {
        for (kind, name) in [
            ("secret", CELL.to_owned()),
            ("secret", format!("{CELL}-transport")),
            ("novacell", CELL.to_owned()),
        ] {
            copy(env, kind, &name)?;
        }
        hosts::migration_key(env, NAMESPACE)?;
        controlplane::apply(env, &ca_bundle(env)?)?;
        controlplane::apply(env, &libvirt_password()?)
    })?;
    let files = format!("{CELL}-compute-config");
    sh::step("wait for the cell's files", || {
        sh::wait_for(&files, RENDERED, || demo::get(env, NAMESPACE, "secret", &files).map(drop))
    })?;
    write_lab_parts(images)
}

/// Copies an object from the control plane's namespace.
fn copy(env: &lab::Env, kind: &str, name: &str) -> Result<()> {
    let mut object = match demo::get(env, controlplane::NAMESPACE, kind, name) {
        Ok(object) => object,
        Err(_) if kind == "novacell" => cell_of_example()?,
        Err(error) => return Err(error),
    };
    object["metadata"] = json!({ "name": name, "namespace": NAMESPACE });
    object.as_object_mut().context("not an object")?.remove("status");
    controlplane::apply(env, &object.to_string())
}

/// Returns the cell of the other example, for the case that it was never applied.
fn cell_of_example() -> Result<Value> {
    let file = paths::repo().join("examples/seed-002/patch/novacell.yaml");
    let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    yaml::value(&text)
}

/// Returns the Secret with the CAs that hosts trust; here the cluster's own.
fn ca_bundle(env: &lab::Env) -> Result<String> {
    let cluster = sh::wait_for("the cluster's authority", RENDERED, || {
        demo::get(env, NAMESPACE, "configmap", "kube-root-ca.crt")
    })?;
    let authority = &cluster["data"]["ca.crt"];
    Ok(secret("combined-ca-bundle", &json!({ "tls-ca-bundle.pem": authority })))
}

/// Returns the Secret with libvirt's password: the hash of a local key, so that it stays the same.
fn libvirt_password() -> Result<String> {
    let password = sh::sha256(&fs::read(hosts::key("migration")?)?);
    Ok(secret("libvirt-secret", &json!({ "LibvirtPassword": password })))
}

fn secret(name: &str, data: &Value) -> String {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "stringData": data,
    });
    secret.to_string()
}

fn folder() -> PathBuf {
    paths::target().join("journey")
}

/// Writes what the lab adds to the example: its images, and options for hosts without KVM.
fn write_lab_parts(images: &images::Set) -> Result<()> {
    let patch = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNodeSet",
        "metadata": { "name": NODE_SET },
        "spec": { "nodeTemplate": { "ansible": { "ansibleVars": {
            "edpm_nova_compute_image": images.reference("nova-compute")?,
            "edpm_nova_libvirt_image": images.reference("nova-libvirt")?,
        } } } },
    });
    sh::write_if_changed(&folder().join("node-set.yaml"), &patch.to_string())?;
    sh::write_if_changed(&folder().join("24-nova-lab.conf"), LAB_CONFIG)?;
    let patch = json!([{
        "op": "add", "path": "/spec/dataSources/-",
        "value": { "configMapRef": { "name": "nova-lab-config" } },
    }]);
    sh::write_if_changed(&folder().join("service.yaml"), &patch.to_string()).map(drop)
}

/// Writes the example with this snippet and the lab's additions; returns its directory.
pub(super) fn overlay(env: &lab::Env, snippet: &Snippet) -> Result<PathBuf> {
    let folder = folder();
    let example = paths::repo().join("examples/journey");
    for file in ["kustomization.yaml", "node-set.yaml", "patch-node-set.yaml", "service.yaml"] {
        let text = fs::read_to_string(example.join(file)).with_context(|| file.to_owned())?;
        sh::write_if_changed(&folder.join("example").join(file), &text)?;
    }
    sh::write_if_changed(&folder.join("example/my.conf"), &snippet.text)?;
    let of_service = json!({ "kind": "OpenStackDataPlaneService", "name": SERVICE });
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": ["example"],
        "configMapGenerator": [{ "name": "nova-lab-config", "files": ["24-nova-lab.conf"] }],
        "generatorOptions": { "disableNameSuffixHash": true },
        "patches": [
            { "path": "node-set.yaml" },
            { "path": "service.yaml", "target": of_service },
        ],
    });
    sh::write_if_changed(&folder.join("kustomization.yaml"), &kustomization.to_string())?;
    let mut look = env.kubectl();
    let rendered = sh::run(look.arg("kustomize").arg(&folder))?;
    sh::write_if_changed(&folder.join("rendered"), &rendered)?;
    Ok(folder)
}

/// Returns the generated manifests.
pub(super) fn rendered() -> Result<Vec<Value>> {
    yaml::documents(&fs::read_to_string(folder().join("rendered"))?)
}

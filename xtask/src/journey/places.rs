//! The twelve places of the journey, each checked by itself; the error says what is there instead.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::prepare::{self, HOST};
use super::{CONFIG_MAP, KEY, NAMESPACE, NODE_SET, SERVICE, Walk};
use crate::demo::facts;
use crate::hosts::ssh;
use crate::{demo, sh};

/// The directories of nova's files in the pod, on the host, and in the container.
const IN_POD: &str = "/var/lib/openstack/configs/nova";
const ON_HOST: &str = "/var/lib/openstack/config/nova";
const IN_CONTAINER: &str = "/etc/nova/nova.conf.d";

/// Prints the file that sets each given option, according to oslo.config in the container.
const ORIGINS: &str = r#"
import os, sys
os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "1"
from nova import config
import nova.conf
config.parse_args(["nova-compute"], configure_db=False)
for option in sys.argv[1:]:
    section, name = option.split(".", 1)
    found = nova.conf.CONF.get_location(name, None if section == "DEFAULT" else section)
    print(option, found.detail if found else "unknown")
"#;

/// One place of the journey.
pub(crate) struct Place {
    /// Its number, from one.
    pub(crate) number: usize,
    /// Its name for the user.
    pub(crate) name: &'static str,
    /// Checks the place, and describes what it found.
    pub(crate) look: fn(&Walk<'_>) -> Result<String>,
}

const fn place(number: usize, name: &'static str, look: fn(&Walk<'_>) -> Result<String>) -> Place {
    Place { number, name, look }
}

/// All places, in the order in which the snippet reaches them.
pub(crate) const ALL: &[Place] = &[
    place(1, "the snippet's file", file),
    place(2, "the generated ConfigMap", generated),
    place(3, "the ConfigMap in the cluster", config_map),
    place(4, "the service", service),
    place(5, "the node set", node_set),
    place(6, "the Deployment", deployment),
    place(7, "the AnsibleEE's mounts", ansible_ee),
    place(8, "the Job's volumes", job),
    place(9, "the file in the pod", in_pod),
    place(10, "the file on the host", on_host),
    place(11, "the file in the container", in_container),
    place(12, "the values in the running nova-compute", in_process),
];

fn file(walk: &Walk<'_>) -> Result<String> {
    let snippet = &walk.snippet;
    let (file, n_options) = (snippet.file.display(), snippet.options.len());
    let sha256 = sh::sha256(&fs::read(&snippet.file)?);
    ensure!(sha256 == snippet.sha256, "{file} has been changed since: sha256 {sha256}");
    Ok(format!("{file}: {n_options} options, sha256 {sha256}"))
}

fn generated(walk: &Walk<'_>) -> Result<String> {
    let objects = prepare::rendered()?;
    let is_it = |it: &&Value| it["kind"] == "ConfigMap" && it["metadata"]["name"] == CONFIG_MAP;
    let object = objects.iter().find(is_it).context("kustomize generates no such ConfigMap")?;
    content(walk, object)
}

fn config_map(walk: &Walk<'_>) -> Result<String> {
    content(walk, &demo::get(walk.env, NAMESPACE, "configmap", CONFIG_MAP)?)
}

/// Checks the snippet in a ConfigMap.
fn content(walk: &Walk<'_>, object: &Value) -> Result<String> {
    let text = object["data"][KEY].as_str().with_context(|| format!("it has no key {KEY}"))?;
    let sha256 = sh::sha256(text.as_bytes());
    ensure!(sha256 == walk.snippet.sha256, "key {KEY} has another content: sha256 {sha256}");
    Ok(format!("ConfigMap {CONFIG_MAP}, key {KEY}, sha256 {sha256}"))
}

fn service(walk: &Walk<'_>) -> Result<String> {
    let object = demo::get(walk.env, NAMESPACE, "openstackdataplaneservice", SERVICE)?;
    let spec = &object["spec"];
    let sources = spec["dataSources"].as_array();
    let is_named = |it: &Value| it["configMapRef"]["name"] == CONFIG_MAP;
    let names_it = sources.into_iter().flatten().any(is_named);
    ensure!(names_it, "its dataSources do not name ConfigMap {CONFIG_MAP}");
    let (playbook, type_) = (&spec["playbook"], &spec["edpmServiceType"]);
    Ok(format!("{SERVICE}: playbook {playbook}, type {type_}, dataSources with {CONFIG_MAP}"))
}

fn node_set(walk: &Walk<'_>) -> Result<String> {
    let object = demo::get(walk.env, NAMESPACE, "openstackdataplanenodeset", NODE_SET)?;
    let services: Vec<&str> = object["spec"]["services"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    ensure!(services.contains(&SERVICE), "it does not list {SERVICE}");
    ensure!(!services.contains(&"nova"), "it still lists the default service nova");
    let ready = facts::condition(&object, "SetupReady");
    ensure!(ready["status"] == "True", "SetupReady: {}: {}", ready["reason"], ready["message"]);
    Ok(format!("{NODE_SET} lists {}", services.join(", ")))
}

fn deployment(walk: &Walk<'_>) -> Result<String> {
    let object = walk.object()?;
    let input = facts::condition(&object, "InputReady");
    ensure!(input["status"] == "True", "InputReady: {}: {}", input["reason"], input["message"]);
    Ok(format!("{} deploys {}", walk.deployment, object["spec"]["nodeSets"]))
}

/// Returns the AnsibleEE in which the Deployment runs the service on the host.
fn run(walk: &Walk<'_>) -> Result<Value> {
    let labels = format!(
        "openstackdataplanedeployment={},openstackdataplaneservice={SERVICE}",
        walk.deployment
    );
    let mut list = walk.env.kubectl();
    list.args(["-n", NAMESPACE, "get", "openstackansibleees", "-o", "json", "-l", &labels]);
    let list: Value = serde_json::from_str(&sh::run(&mut list)?)?;
    list["items"].get(0).cloned().context("there is no AnsibleEE of the service yet")
}

fn ansible_ee(walk: &Walk<'_>) -> Result<String> {
    let run = run(walk)?;
    let mounts = run["spec"]["extraMounts"].as_array();
    let has_it = |it: &&Value| {
        let volumes = it["volumes"].as_array();
        volumes.into_iter().flatten().any(|it| it["configMap"]["name"] == CONFIG_MAP)
    };
    let found = mounts.into_iter().flatten().find(has_it);
    let found = found.with_context(|| format!("its extraMounts lack ConfigMap {CONFIG_MAP}"))?;
    Ok(format!("{}: {}", run["metadata"]["name"], paths_of(&found["mounts"])))
}

fn job(walk: &Walk<'_>) -> Result<String> {
    let run = run(walk)?;
    let name = run["status"]["job"]["name"].as_str().context("it has no Job yet")?;
    let pod = demo::get(walk.env, NAMESPACE, "job", name)?["spec"]["template"]["spec"].take();
    let volumes = pod["volumes"].as_array();
    let volume = volumes.into_iter().flatten().find(|it| it["configMap"]["name"] == CONFIG_MAP);
    let volume = volume.with_context(|| format!("no volume of {name} is {CONFIG_MAP}"))?;
    let mounts = pod["containers"][0]["volumeMounts"].as_array();
    let of_it: Vec<&Value> =
        mounts.into_iter().flatten().filter(|it| it["name"] == volume["name"]).collect();
    let is_there = |it: &&Value| it["mountPath"].as_str().unwrap_or_default().starts_with(IN_POD);
    ensure!(of_it.iter().any(is_there), "{name} does not mount it below {IN_POD}");
    Ok(format!("{name}: volume {}, mounted at {IN_POD}", volume["name"]))
}

fn paths_of(mounts: &Value) -> String {
    let paths = mounts.as_array().into_iter().flatten().filter_map(|it| it["mountPath"].as_str());
    paths.collect::<Vec<_>>().join(", ")
}

/// Checks the play's report of the mounted files: each with a prefix of its hash.
fn in_pod(walk: &Walk<'_>) -> Result<String> {
    let run = run(walk)?;
    let report = run["status"]["report"].as_str().context("its play has reported nothing yet")?;
    let report: Value = serde_json::from_str(report)?;
    let digest = report["files"][KEY].as_str();
    let digest = digest.with_context(|| format!("the play did not find {KEY}: {report}"))?;
    let is_it = !digest.is_empty() && walk.snippet.sha256.starts_with(digest);
    ensure!(is_it, "the play found another content: sha256 {digest}…");
    Ok(format!("the play in {} found {KEY}, sha256 {digest}…", run["metadata"]["name"]))
}

fn on_host(walk: &Walk<'_>) -> Result<String> {
    let line = ssh(&HOST, &format!("sudo sha256sum {ON_HOST}/{KEY}"))?;
    same(walk, &line).map(|it| format!("{}: {it}", HOST.name))
}

fn in_container(walk: &Walk<'_>) -> Result<String> {
    let command = format!("sudo podman exec nova_compute sha256sum {IN_CONTAINER}/{KEY}");
    same(walk, &ssh(&HOST, &command)?).map(|it| format!("container nova_compute: {it}"))
}

/// Returns the output of `sha256sum` if the hash is the snippet's.
fn same(walk: &Walk<'_>, line: &str) -> Result<String> {
    let line = line.trim();
    ensure!(line.starts_with(&walk.snippet.sha256), "there is another content: {line}");
    Ok(line.to_owned())
}

fn in_process(walk: &Walk<'_>) -> Result<String> {
    let names: Vec<String> =
        walk.snippet.options.iter().map(|(section, name)| format!("{section}.{name}")).collect();
    let origins = origins(&names)?;
    let mut lines = Vec::new();
    for name in &names {
        let origin = origins.get(name).map(String::as_str).unwrap_or_default();
        ensure!(origin.ends_with(KEY), "{name} comes from {origin}");
        lines.push(format!("{name} = {}, from {origin}", value(name)?));
    }
    Ok(lines.join("\n    "))
}

/// Returns the value of an option that the running nova-compute logged at its start.
pub(crate) fn value(name: &str) -> Result<String> {
    let option = name.strip_prefix("DEFAULT.").unwrap_or(name);
    let line = facts::log_line(&HOST, &facts::container(&HOST)?, option)?;
    let value = line.split_once(" = ").and_then(|(_, it)| it.split_once(" log_opt_values"));
    let Some((value, _)) = value else {
        bail!("nova-compute has not logged {name} since its start")
    };
    Ok(value.trim().to_owned())
}

/// Returns the file that sets each option, according to oslo.config in the same container.
fn origins(names: &[String]) -> Result<BTreeMap<String, String>> {
    let python = "exec $(head -n 1 \"$(command -v nova-compute)\" | cut -c 3-) -";
    let command = format!(
        "sudo podman exec --interactive nova_compute sh -c '{python} {}' <<'END'\n{ORIGINS}\nEND",
        names.join(" ")
    );
    let text = ssh(&HOST, &command)?;
    let pairs = text.lines().filter_map(|it| it.split_once(' '));
    Ok(pairs.map(|(name, origin)| (name.to_owned(), origin.trim().to_owned())).collect())
}

/// Returns the IDs of the containers on the host, by name.
pub(crate) fn containers() -> Result<BTreeMap<String, String>> {
    let text = ssh(&HOST, "sudo podman ps --no-trunc --format '{{.Names}} {{.ID}}'")?;
    let pairs = text.lines().filter_map(|it| it.split_once(' '));
    Ok(pairs.map(|(name, id)| (name.to_owned(), id.trim().to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_are_numbered_in_order() {
        let numbers: Vec<usize> = ALL.iter().map(|it| it.number).collect();
        assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
    }
}

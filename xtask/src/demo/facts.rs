//! The facts that the demo checks, collected from their sources: API server, hosts, databases.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::demo::get;
use crate::demo::scene::{Placed, Scene};
use crate::hosts::{Host, ssh};
use crate::{controlplane, lab, sh};

/// The timeout for a deployment of everything.
const DEPLOYMENT: Duration = Duration::from_mins(14);
/// The option in nova-compute's log that shows the user's configuration.
const CONFIGURED: &str = "libvirt.cpu_models";
/// The name of the fact with Ironic's state of a host's machine, if it has one.
const MACHINE: &str = "machine";
/// The name of the fact with the error of a host whose facts could not be collected.
pub(super) const ERROR: &str = "error";

/// Waits for the computes, and thereby for everything that they depend on.
pub(crate) fn wait_until_ready(env: &lab::Env, scene: &Scene) -> Result<()> {
    for Placed { host, .. } in scene.hosts {
        sh::wait_for(&format!("compute {} Ready", host.name), DEPLOYMENT, || {
            // The node's condition about its compute is written last.
            for (kind, types) in [
                ("novaexternalcompute", &["Ready", "UpToDate"][..]),
                ("openstackdataplanenode", &["Ready", "UpToDate", "nova.openstack.org/Compute"]),
            ] {
                let object = get(env, controlplane::NAMESPACE, kind, host.name)?;
                settled(&object, types).with_context(|| format!("{kind} {}", host.name))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Checks that an object is ready and up to date; the error is its own reason.
fn settled(object: &Value, types: &[&str]) -> Result<()> {
    if object["status"]["observedGeneration"] != object["metadata"]["generation"] {
        bail!("its last change has not been seen yet");
    }
    for type_ in types {
        let condition = condition(object, type_);
        if condition["status"] != "True" {
            bail!("{type_}: {}: {}", condition["reason"], condition["message"]);
        }
    }
    Ok(())
}

/// Returns a condition of an object; `Null` when it has none of that type.
pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|it| it["type"] == type_).unwrap_or(&Value::Null)
}

/// Returns host → fact → value; an error of one host does not affect the others.
pub(crate) fn collect(env: &lab::Env, scene: &Scene) -> Result<Value> {
    let mut hosts = Map::new();
    for Placed { host, .. } in scene.hosts {
        let facts = of_host(env, host);
        let facts = facts.unwrap_or_else(|error| json!({ ERROR: format!("{error:#}") }));
        hosts.insert(host.name.to_owned(), facts);
    }
    let mut hosts = Value::Object(hosts);
    for (host, machine) in scene.machines(env)? {
        let words = ["name", "provision_state", "power_state", "instance_uuid"]
            .map(|it| machine[it].as_str().unwrap_or_default());
        hosts[host.name][MACHINE] = json!(words.join(", "));
    }
    Ok(hosts)
}

fn of_host(env: &lab::Env, host: &Host) -> Result<Value> {
    let namespace = controlplane::NAMESPACE;
    let node = get(env, namespace, "openstackdataplanenode", host.name)?;
    let compute = get(env, namespace, "novaexternalcompute", host.name)?;
    let cell = compute["spec"]["cellName"].as_str().unwrap_or_default().to_owned();
    let container = container(host)?;
    Ok(json!({
        "node Ready": condition(&node, "Ready")["status"],
        "compute Ready": condition(&compute, "Ready")["status"],
        "cell": cell,
        "container id": container["id"],
        "container started": container["started"],
        "container image": container["image"],
        "nova-compute's log": log_line(host, &container, CONFIGURED)?,
        "services row": services_row(env, host, &cell)?,
        "compute_nodes row": compute_node_row(env, host, &cell)?,
        "runs": runs(env, host)?,
    }))
}

/// Returns ID, start time and image of the container, from podman on the host.
pub(crate) fn container(host: &Host) -> Result<Value> {
    let format = "{{.Id}} {{.State.StartedAt.Unix}} {{.ImageDigest}} {{.State.Running}}";
    let line = ssh(host, &format!("sudo podman inspect --format '{format}' nova_compute"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [id, started, image, "true"] = words[..] else {
        bail!("container nova_compute on {} does not run: {line}", host.name)
    };
    Ok(json!({ "id": id, "started": started, "image": image }))
}

/// Returns the last line of nova-compute's log that shows an option, written since the container's
/// start.
pub(crate) fn log_line(host: &Host, container: &Value, option: &str) -> Result<String> {
    let started = container["started"].as_str().unwrap_or_default();
    let command = format!(
        "sudo podman logs --since {started} nova_compute 2>&1 | grep -F ' {option} ' | \
         grep -F log_opt_values | tail -n 1"
    );
    Ok(ssh(host, &command)?.trim().to_owned())
}

/// Returns the compute's service record in its cell, and whether nova considers it up.
fn services_row(env: &lab::Env, host: &Host, cell: &str) -> Result<String> {
    // As nova does: up if seen within the last minute (`service_down_time`).
    let query = format!(
        "SELECT `binary`, host, IF(TIMESTAMPDIFF(SECOND, last_seen_up, UTC_TIMESTAMP()) < 60, \
         'up', 'down') FROM services WHERE host='{}' AND deleted=0",
        host.name
    );
    sql(env, cell, &query)
}

fn compute_node_row(env: &lab::Env, host: &Host, cell: &str) -> Result<String> {
    let query = format!(
        "SELECT hypervisor_hostname, hypervisor_type, hypervisor_version FROM compute_nodes \
         WHERE host='{}' AND deleted=0",
        host.name
    );
    sql(env, cell, &query)
}

/// Returns one row of a cell's database, its columns separated by a space; empty when there is
/// none.
fn sql(env: &lab::Env, cell: &str, query: &str) -> Result<String> {
    let database = cell.replace('-', "_");
    let mut exec = env.kubectl();
    exec.args(["-n", controlplane::NAMESPACE, "exec", "deployment/mariadb", "--"]);
    exec.args(["mariadb", "--batch", "--skip-column-names", &database, "-e", query]);
    Ok(sh::run(&mut exec)?.trim().replace('\t', " "))
}

/// Returns AnsibleEE → its UID and its Job's, for all runs that targeted this host.
fn runs(env: &lab::Env, host: &Host) -> Result<Value> {
    let mut list = env.kubectl();
    list.args(["-n", controlplane::NAMESPACE, "get", "openstackansibleees", "-o", "json"]);
    let list: Value = serde_json::from_str(&sh::run(&mut list)?)?;
    let mut runs = BTreeMap::new();
    for run in list["items"].as_array().into_iter().flatten() {
        let hosts = run["spec"]["hosts"].as_array();
        if hosts.into_iter().flatten().any(|it| it["name"] == host.name) {
            let name = run["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let (uid, job) = (&run["metadata"]["uid"], &run["status"]["job"]["uid"]);
            runs.insert(
                name,
                json!({ "uid": uid, "job": job, "status": run["status"]["JobStatus"] }),
            );
        }
    }
    Ok(json!(runs))
}

/// Returns the facts that are not as expected.
pub(crate) fn wrong(facts: &Value, scene: &Scene) -> Vec<String> {
    let mut wrong = Vec::new();
    for Placed { host: Host { name: host, .. }, cell, cpu_model } in scene.hosts {
        let facts = &facts[*host];
        if let Some(error) = facts[ERROR].as_str() {
            wrong.push(format!("facts of {host}: {error}"));
            continue;
        }
        let text = |name: &str| facts[name].as_str().unwrap_or_default().to_owned();
        let up = format!("nova-compute {host} up");
        let log = text("nova-compute's log");
        let models = format!("['{cpu_model}']");
        let claims = [
            ("node Ready", text("node Ready") == "True"),
            ("compute Ready", text("compute Ready") == "True"),
            ("cell", text("cell") == *cell),
            ("nova-compute's log", log.contains(CONFIGURED) && log.contains(&models)),
            ("services row", text("services row") == up),
            ("compute_nodes row", text("compute_nodes row").contains(" QEMU ")),
            (MACHINE, !scene.is_bare_metal() || text(MACHINE).contains(", active, power on, ")),
        ];
        let is_wrong = claims.into_iter().filter(|(_, holds)| !holds);
        wrong.extend(is_wrong.map(|(name, _)| format!("{host}: {name} is {}", facts[name])));
    }
    wrong
}

/// Returns the differences from an earlier report: another container, another run.
pub(crate) fn differences(before: &Value, now: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    let has_facts = |host: &str| now[host][ERROR].is_null();
    for (host, facts) in before.as_object().into_iter().flatten().filter(|it| has_facts(it.0)) {
        for (name, value) in facts.as_object().into_iter().flatten() {
            let found = &now[host][name];
            if found != value {
                differences.push(format!("{host}: {name} was {value} and is {found}"));
            }
        }
    }
    differences
}

/// Returns what is no longer as the demo left it; `None` if everything is.
pub(crate) fn verdict(wrong: &[String], differences: &[String]) -> Option<String> {
    let listed: Vec<&str> = wrong.iter().chain(differences).map(String::as_str).collect();
    let what = match (wrong.is_empty(), differences.is_empty()) {
        (true, true) => return None,
        (true, false) => {
            "each host has what the main job asks for, but not as the demo left it, which is right \
             after a change of yours"
        }
        (false, _) => "the demo no longer holds",
    };
    Some(format!("{what}:\n  {}", listed.join("\n  ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::scene::{BARE_METAL, GUESTS, MAIN};

    #[test]
    fn nothing_holds_where_nothing_was_found() {
        assert_eq!(wrong(&json!({}), &MAIN).len(), 12);
        assert_eq!(wrong(&json!({}), &BARE_METAL).len(), 14);
        assert_eq!(wrong(&json!({}), &GUESTS).len(), 18);
    }

    #[test]
    fn a_host_that_cannot_be_asked_is_told_once_and_beside_the_others() {
        let now = json!({ "edpm-compute-0": { ERROR: "no answer" } });
        let wrong = wrong(&now, &MAIN);
        assert_eq!(wrong[0], "facts of edpm-compute-0: no answer");
        assert_eq!(wrong.len(), 7, "{wrong:?}");
        let before =
            json!({ "edpm-compute-0": { "cell": "a" }, "edpm-compute-1": { "cell": "b" } });
        assert_eq!(differences(&before, &now).len(), 1);
    }

    #[test]
    fn a_change_is_no_failure_of_the_demo() {
        let (wrong, changed) = (["a: b".to_owned()], ["c: d".to_owned()]);
        assert_eq!(verdict(&[], &[]), None);
        let text = verdict(&[], &changed).unwrap();
        assert!(text.contains("after a change of yours:\n  c: d"), "{text}");
        let text = verdict(&wrong, &changed).unwrap();
        assert_eq!(text, "the demo no longer holds:\n  a: b\n  c: d");
    }

    #[test]
    fn another_container_is_a_difference() {
        let facts = |id: &str| json!({ "edpm-compute-0": { "container id": id } });
        assert_eq!(differences(&facts("a"), &facts("a")), [""; 0]);
        assert_eq!(differences(&facts("a"), &facts("b")).len(), 1);
    }
}

//! Bare metal in the lab: a real Ironic with fake hardware, and pods that boot as its machines.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::controlplane::{self, NAMESPACE};
use crate::{images, lab, machines, sh};

/// The resource class of the machines that [`enroll`] adds.
pub(crate) const RESOURCE_CLASS: &str = "edpm-lab";

/// Starts Ironic and the process that runs its machines, and waits until both are ready.
///
/// # Guarantees
///
/// A second call with the same images restarts nothing, and no machine is disturbed.
pub(crate) fn up(env: &lab::Env) -> Result<()> {
    ensure!(env.is_lab(), "machines are made of what the lab has: leave --kubeconfig out");
    machines::tools()?;
    let images = images::for_bare_metal()?;
    start_ironic(env, images.reference("ironic")?)?;
    lab::start_machines(env, images.reference("edpm-machine")?)
}

fn start_ironic(env: &lab::Env, image: &str) -> Result<()> {
    let mut values = controlplane::generated(env)?;
    sh::step("apply Ironic", || {
        controlplane::make_database(env, "ironic", &values["ironic-database"])?;
        values.insert("image".to_owned(), image.to_owned());
        controlplane::apply(env, &controlplane::joining("baremetal", &["ironic"], &values)?)
    })?;
    sh::step("wait for Ironic", || controlplane::ready(env, "ironic"))
}

/// Enrolls machines that Ironic does not have yet, as an administrator does, without further steps.
pub(crate) fn enroll(env: &lab::Env, names: &[&str]) -> Result<()> {
    let known = ask(env, "GET", "/v1/nodes?fields=name", None)?;
    let known = known["nodes"].as_array().context("Ironic lists no nodes")?;
    for name in names.iter().filter(|name| known.iter().all(|it| it["name"] != **name)) {
        let node = json!({
            "name": name, "driver": "fake-hardware", "resource_class": RESOURCE_CLASS,
        });
        ask(env, "POST", "/v1/nodes", Some(&node))?;
    }
    Ok(())
}

/// Returns a node object of Ironic.
pub(crate) fn node(env: &lab::Env, name: &str) -> Result<Value> {
    ask(env, "GET", &format!("/v1/nodes/{name}"), None)
}

/// Calls Ironic's API from its pod, which has the password.
fn ask(env: &lab::Env, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
    let mut exec = env.kubectl();
    exec.args(["-n", NAMESPACE, "exec", "-i", "deployment/ironic", "-c", "ironic", "--", "curl"]);
    exec.args(["--config", "/etc/ironic/curl", "--request", method]);
    if body.is_some() {
        exec.args(["--data-binary", "@-"]);
    }
    exec.arg(format!("http://127.0.0.1:6385{path}"));
    let body = body.map(Value::to_string).unwrap_or_default();
    Ok(serde_json::from_str(&sh::run_with_input(&mut exec, body.as_bytes())?)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_template_of_ironic_finds_its_values() {
        let names = ["ironic", "ironic-database", "image"];
        let values: BTreeMap<_, _> =
            names.iter().map(|it| ((*it).to_owned(), format!("<{it}>"))).collect();
        let filled = controlplane::joining("baremetal", &["ironic"], &values).unwrap();
        assert!(filled.contains("ironic:<ironic-database>@10.96.10.30/ironic"));
        // The password is in Secrets only.
        assert_eq!(filled.matches("<ironic>").count(), 2);
    }
}

//! Guests in the lab: what the control plane needs so that servers run and reach each other.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::controlplane::{self, NAMESPACE, Values};
use crate::{hosts, images, lab, paths, sh};

/// The parts that join the control plane, each after those that it needs.
const PARTS: [&str; 4] = ["glance", "ovn", "neutron", "metadata"];
/// Their Deployments.
const DEPLOYMENTS: [&str; 4] = ["glance", "ovn-central", "neutron", "nova-metadata"];
/// Their endpoints, as variables of the program that names them in the catalog. What read the catalog
/// before may keep it for an hour.
const ENDPOINTS: [&str; 2] =
    ["GLANCE_URL=http://10.96.10.14:9292", "NEUTRON_URL=http://10.96.10.15:9696"];
/// The Secret with the authority that signs certificates.
const AUTHORITY: &str = "rootca";

/// Starts cert-manager, glance, OVN, neutron and nova's metadata API, waits until each is ready, and
/// creates what hosts read of them.
///
/// # Guarantees
///
/// The control plane that every lab has is not changed, and a second call with the same images
/// restarts nothing.
pub(crate) fn up(env: &lab::Env) -> Result<()> {
    ensure!(env.is_lab(), "guests run on what the lab has: leave --kubeconfig out");
    let images = images::for_guests(env)?;
    let mut values = controlplane::generated(env)?;
    values.insert("image".to_owned(), images.reference("openstack-guests")?.to_owned());
    values.insert("state".to_owned(), paths::state().display().to_string());
    lab::start_cert_manager(env)?;
    issue(env)?;
    sh::step("apply what guests need", || {
        for name in ["glance", "neutron"] {
            let password = values.get(&format!("{name}-database")).context("no password")?;
            controlplane::make_database(env, name, password)?;
        }
        controlplane::apply(env, &parts(&values)?)?;
        hosts::migration_key(env, NAMESPACE)
    })?;
    for name in DEPLOYMENTS {
        sh::step(&format!("wait for {name}"), || controlplane::ready(env, name))?;
    }
    sh::step("name them in Keystone's catalog", || {
        let mut exec = env.kubectl();
        exec.args(["-n", NAMESPACE, "exec", "deployment/keystone", "--", "env"]);
        sh::run(exec.args(ENDPOINTS).arg("keystone-catalog")).map(drop)
    })
}

fn parts(values: &Values) -> Result<String> {
    let names: Vec<&str> = ["secrets", "inputs"].into_iter().chain(PARTS).collect();
    controlplane::joining("guests", &names, values)
}

/// Creates the issuers of certificates, and the Secret with the authority that hosts trust.
fn issue(env: &lab::Env) -> Result<()> {
    controlplane::apply(env, &controlplane::template("issuers", &Values::new())?)?;
    let mut wait = env.kubectl();
    wait.args(["-n", NAMESPACE, "wait", "--for=condition=Ready", "--timeout=600s"]);
    sh::step("wait for the authority", || {
        sh::run(wait.arg(format!("certificate/{AUTHORITY}"))).map(drop)
    })?;
    let mut get = env.kubectl();
    get.args(["-n", NAMESPACE, "get", "secret", AUTHORITY, "-o", "jsonpath={.data.tls\\.crt}"]);
    let authority = sh::run(&mut get)?;
    let bundle = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "combined-ca-bundle", "namespace": NAMESPACE },
        "data": { "tls-ca-bundle.pem": authority },
    });
    controlplane::apply(env, &bundle.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_of_guests_find_their_values() {
        let names = [
            "cell0-message-bus",
            "glance",
            "glance-database",
            "image",
            "metadata-secret",
            "neutron",
            "neutron-database",
            "nova",
            "placement",
            "state",
        ];
        let values = names.iter().map(|it| ((*it).to_owned(), format!("<{it}>"))).collect();
        let text = parts(&values).unwrap();
        assert!(text.contains("neutron:<neutron-database>@10.96.10.30/neutron"));
        assert!(!text.contains("{{"));
        // The metadata secret is in one Secret; nova has it from its own.
        assert_eq!(text.matches("<metadata-secret>").count(), 1);
    }
}

//! Runs the main job with the previous release, so that a test can upgrade the result.

use anyhow::{Context as _, Result};

use crate::demo::scene::MAIN;
use crate::demo::{self, OPERATORS, RELEASE, facts};
use crate::{controlplane, hosts, images, lab, release, sh};

/// All kinds of the operators' objects, in the order of deletion.
const KINDS: [&str; 10] = [
    "openstackdataplanes.dataplane.openstack.org",
    "openstackdataplanedeployments.dataplane.openstack.org",
    "openstackdataplanenodesets.dataplane.openstack.org",
    "openstackdataplanenodes.dataplane.openstack.org",
    "novaexternalcomputes.nova.openstack.org",
    "novacells.nova.openstack.org",
    "openstackdataplaneroles.dataplane.openstack.org",
    // After the objects that request machines: these wait until their machines are returned.
    "openstackbaremetalsets.baremetal.openstack.org",
    "openstackdataplaneservices.dataplane.openstack.org",
    "openstackansibleees.ansibleee.openstack.org",
];

/// Starts everything with the previous release, and runs the main job with it. Nothing of this
/// release is compiled for it.
pub(crate) fn prepare(env: &lab::Env) -> Result<()> {
    let images = images::some(env, &["openstack", "edpm-host"])?;
    let before = release::before()?;
    let its_images = images::of_tree(env, &before)?;
    clear(env)?;
    controlplane::up(env, images.reference("openstack")?)?;
    hosts::up(env, images.reference("edpm-host")?)?;
    println!("the release before: {}", before.root.display());
    demo::install(env, &before.root, &demo::values_of_images(&its_images, "values-before")?)?;
    demo::apply_example(env, &before.root, &MAIN, &its_images)?;
    sh::step("wait until both computes are ready", || facts::wait_until_ready(env, &MAIN))?;
    sh::step("discover the hosts, as that release asks its user to", || discover_hosts(env))
}

/// Maps the hosts in nova: the lab's scheduler does not, nor does the previous release.
fn discover_hosts(env: &lab::Env) -> Result<()> {
    let mut exec = env.kubectl();
    exec.args(["-n", controlplane::NAMESPACE, "exec", "deployment/nova-manage", "--"]);
    sh::run(exec.args(["nova-manage", "cell_v2", "discover_hosts"])).map(drop)
}

/// Removes what an earlier run left: the previous release must find no objects of this one.
fn clear(env: &lab::Env) -> Result<()> {
    let mut status = env.tool("helm");
    if !sh::succeeds(status.args(["status", RELEASE, "--namespace", OPERATORS])) {
        return Ok(());
    }
    sh::step("take away what is installed, and its objects", || {
        for kind in KINDS {
            // The previous release may not know the kind.
            if !sh::succeeds(env.kubectl().args(["get", "customresourcedefinition", kind])) {
                continue;
            }
            let mut delete = env.kubectl();
            delete.args(["-n", controlplane::NAMESPACE, "delete", kind, "--all"]);
            // A host that does not respond may delay the deletion of its compute that long.
            sh::run(delete.args(["--wait=true", "--timeout=20m"]))?;
        }
        let mut inventories = env.kubectl();
        inventories.args(["-n", controlplane::NAMESPACE, "delete", "configmap,secret"]);
        sh::run(inventories.args(["-l", "edpm.openstack.org/inventory=true"]))?;
        let mut uninstall = env.tool("helm");
        uninstall.args(["uninstall", RELEASE, "--namespace", OPERATORS, "--wait"]);
        sh::run(&mut uninstall).map(drop)
    })
    .context("the lab is not as it should be, take it down first: cargo xtask lab down")
}

#[cfg(test)]
mod tests {

    use std::collections::BTreeSet;
    use std::fs;

    use baremetal::finalizers::MACHINES;
    use dataplane_operator::deployment::finalizer;
    use dataplane_operator::finalizers;
    use dataplane_operator::host::machines;
    use nova_operator::finalizers as nova_finalizers;

    use super::*;
    use crate::paths;

    #[test]
    fn every_kind_goes_before_its_operators_do() {
        let known = api::definitions::all();
        let known: BTreeSet<String> = known.into_iter().filter_map(|it| it.metadata.name).collect();
        let gone: BTreeSet<String> = KINDS.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(gone, known);
    }

    #[test]
    fn the_way_out_without_operators_takes_off_every_finalizer_of_ours() {
        let text = fs::read_to_string(paths::repo().join("docs/install.md")).unwrap();
        let command = text.lines().find(|it| it.starts_with("kubectl get novaexternalcompute,"));
        let command = command.unwrap();
        let ours = [
            finalizers::INVENTORY_FINALIZER,
            finalizer::RUNNING,
            MACHINES,
            machines::set::IN_USE,
            nova_finalizers::NODE,
            nova_finalizers::COMPUTE,
            nova_finalizers::CELL,
        ];
        for finalizer in ours {
            assert!(command.contains(&format!("(eq . \"{finalizer}\")")), "{finalizer}");
            assert!(
                text.contains(&format!("| `{finalizer}` |")),
                "{finalizer} is not in the table"
            );
        }
        let logins = text.lines().find(|it| it.starts_with("kubectl get secret,rabbitmqusers."));
        let ours = [
            nova_finalizers::RABBITMQ_USER,
            nova_finalizers::TRANSPORT_SECRET,
            nova_finalizers::APPLICATION_CREDENTIAL,
        ];
        for finalizer in ours {
            assert!(logins.unwrap().contains(&format!("(eq . \"{finalizer}\")")), "{finalizer}");
            assert!(text.contains(&format!("| `{finalizer}` |")), "{finalizer}");
        }
        for kind in ["osdpns", "osdpd", "osbms"] {
            assert!(command.contains(&format!(",{kind},")), "{kind}");
        }
    }
}

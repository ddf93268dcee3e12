//! A slip in the name of an annotation: kubectl is warned, and nothing is refused.

use anyhow::{Result, ensure};
use api::dataplane::Node;
use e2e::journey::SSH_SECRET;
use e2e::{SOON, eventually};
use serde_json::json;

use crate::deployment::node_set;
use crate::world::World;

const DRY_RUN: &[&str] = &["create", "--dry-run=server", "-f", "-"];
/// What each warning of the policy has.
const IGNORED: &str = "is ignored: no operator reads it on";

/// Returns a manifest of the kind with one annotation.
fn annotated(ns: &World, kind: &str, key: &str) -> String {
    let (group, spec) = match kind {
        "NovaCell" => {
            let spec = json!({
                "cellName": "cell1", "secret": "x", "cellMessageBusSecretName": "x",
                "keystoneAuthURL": "http://192.0.2.1:5000", "cellDatabaseHostname": "192.0.2.1",
                "conductorServiceTemplate": {}, "noVNCProxyServiceTemplate": {},
                "serviceAccount": "nova",
            });
            ("nova", spec)
        }
        "OpenStackDataPlaneNode" => ("dataplane", json!({ "ansibleHost": "192.168.122.70" })),
        "OpenStackDataPlaneDeployment" => ("dataplane", json!({ "nodeSets": ["none"] })),
        "OpenStackDataPlaneNodeSet" => {
            let template = json!({ "ansibleSSHPrivateKeySecret": "none" });
            ("dataplane", json!({ "nodes": {}, "nodeTemplate": template }))
        }
        "OpenStackDataPlaneService" => ("dataplane", json!({ "playbook": "a.b.c" })),
        "OpenStackBaremetalSet" => {
            ("baremetal", json!({ "deploymentSSHSecret": "none", "ctlplaneInterface": "eth0" }))
        }
        "OpenStackAnsibleEE" => ("ansibleee", json!({ "playbook": "a.b.c" })),
        _ => ("dataplane", json!({})),
    };
    let object = json!({
        "apiVersion": format!("{group}.openstack.org/v1beta1"), "kind": kind,
        "metadata": { "name": "slip", "namespace": ns.name, "annotations": { key: "nova-cell1" } },
        "spec": spec,
    });
    object.to_string()
}

/// Returns what kubectl prints for such a manifest, which must be accepted.
async fn warnings(ns: &World, arguments: &[&str], manifest: &str) -> Result<String> {
    let (is_accepted, said) = ns.kubectl(arguments, manifest).await?;
    ensure!(is_accepted, "{said}");
    Ok(said)
}

/// Waits until the API server evaluates the policy, which it reads some time after it was applied.
async fn evaluated(ns: &World) -> Result<()> {
    let slip = annotated(ns, "OpenStackDataPlaneNode", "nova.openstack.org/cel");
    eventually("there is a warning", async || {
        Ok(warnings(ns, DRY_RUN, &slip).await?.contains(IGNORED))
    })
    .await
}

#[tokio::test]
async fn kubectl_is_warned_of_an_annotation_that_no_operator_reads_and_of_no_other() -> Result<()> {
    let ns = World::new("annotations").await?;
    evaluated(&ns).await?;
    for (kind, wrong, right) in [
        ("OpenStackDataPlane", "dataplane.openstack.org/redeploy", ""),
        ("OpenStackDataPlaneRole", "nova.openstack.org/default_config", "nova.openstack.org/cell"),
        ("OpenStackDataPlaneNode", "dataplane.openstack.org/cell", "nova.openstack.org/cell"),
        (
            "OpenStackDataPlaneNodeSet",
            "nova.openstack.org/drian",
            "nova.openstack.org/drain-before",
        ),
        (
            "OpenStackDataPlaneDeployment",
            "dataplane.openstack.org/confirm-deletion",
            "dataplane.openstack.org/confirm-delete",
        ),
        ("OpenStackDataPlaneService", "edpm.openstack.org/x", "edpm.openstack.org/content-hash"),
        ("NovaCell", "nova.openstack.org/Release", "nova.openstack.org/release"),
        ("OpenStackBaremetalSet", "dataplane.openstack.org/skip-cleanup", ""),
        ("OpenStackAnsibleEE", "nova.openstack.org/redeploy", ""),
    ] {
        let said = warnings(&ns, DRY_RUN, &annotated(&ns, kind, wrong)).await?;
        let words = ["Warning: ", &format!("Annotation {wrong} {IGNORED} {kind}")];
        assert!(words.iter().all(|it| said.contains(it)), "{kind}: {said}");
        let is_listed = said.contains(right) || right == "edpm.openstack.org/content-hash";
        assert!(is_listed, "{kind} takes {right}: {said}");
        if !right.is_empty() {
            let said = warnings(&ns, DRY_RUN, &annotated(&ns, kind, right)).await?;
            assert!(!said.contains(IGNORED), "{kind}: {said}");
        }
    }
    ns.done().await
}

#[tokio::test]
async fn kubectl_is_warned_of_a_slip_in_the_prefix_and_of_no_annotation_of_others() -> Result<()> {
    let ns = World::new("annotations-prefix").await?;
    evaluated(&ns).await?;
    let said =
        async |kind: &str, key: &str| warnings(&ns, DRY_RUN, &annotated(&ns, kind, key)).await;
    for key in
        ["nova.openstack.com/drain-before", "novaopenstack.org/cell", "openstack.org/cell", "cell"]
    {
        let said = said("OpenStackDataPlaneNode", key).await?;
        let words = [format!("Annotation {key} {IGNORED}"), "nova.openstack.org/cell, ".into()];
        ensure!(words.iter().all(|it| said.contains(it)), "{key}: {said}");
    }
    for (kind, key) in [
        ("OpenStackDataPlaneNode", "example.com/audit"),
        ("OpenStackDataPlaneNode", "core.openstack.org/name"),
        ("OpenStackDataPlaneNode", "release"),
        ("OpenStackDataPlane", "cell"),
        ("OpenStackAnsibleEE", "edpm.openstack.org/attempts"),
    ] {
        let said = said(kind, key).await?;
        ensure!(!said.contains(IGNORED), "{kind} {key}: {said}");
    }
    ns.done().await
}

#[tokio::test]
async fn kubectl_is_warned_of_an_annotation_that_is_written_as_a_label() -> Result<()> {
    let ns = World::new("annotations-labels").await?;
    evaluated(&ns).await?;
    let said = async |kind: &str, key: &str| {
        let labelled = annotated(&ns, kind, key).replace("\"annotations\"", "\"labels\"");
        warnings(&ns, DRY_RUN, &labelled).await
    };
    let key = "nova.openstack.org/cell";
    let told = said("OpenStackDataPlaneNode", key).await?;
    let command = format!("-n {} openstackdataplanenodes/slip {key}=nova-cell1", ns.name);
    let words = [format!("Label {key} is ignored"), format!("kubectl annotate {command}")];
    ensure!(words.iter().all(|it| told.contains(it)), "{told}");
    for (kind, key) in [
        ("OpenStackDataPlaneNode", "cell"),
        ("OpenStackDataPlaneNode", "example.com/cell"),
        ("OpenStackAnsibleEE", "nova.openstack.org/audit"),
    ] {
        let told = said(kind, key).await?;
        ensure!(!told.contains("is ignored"), "{kind} {key}: {told}");
    }
    ns.done().await
}

#[tokio::test]
async fn kubectl_is_told_where_an_annotation_counts_that_does_not_count_on_a_node_set() -> Result<()>
{
    let ns = World::new("annotations-nodes").await?;
    evaluated(&ns).await?;
    let kind = "OpenStackDataPlaneNodeSet";
    for (key, command) in [
        ("nova.openstack.org/drain", "nova.openstack.org/drain=..."),
        ("nova.openstack.org/drain-hosts", "nova.openstack.org/drain=wait, or =migrate"),
        ("dataplane.openstack.org/accept-host-key", "dataplane.openstack.org/accept-host-key=..."),
    ] {
        let said = warnings(&ns, DRY_RUN, &annotated(&ns, kind, key)).await?;
        let words = [format!("Annotation {key} {IGNORED}"), format!("osdpnode NODE {command}")];
        ensure!(words.iter().all(|it| said.contains(it)), "{key}: {said}");
    }
    ns.done().await
}

#[tokio::test]
async fn kubectl_is_warned_that_the_node_of_an_entry_is_made_anew() -> Result<()> {
    let ns = World::new("annotations-deleted").await?;
    let host = ns.host("e2e-comes-back", "203.0.113.201");
    let own = ns.host_like(&host, "e2e-stays-gone", "203.0.113.202");
    ns.secret(SSH_SECRET, &[("ssh-privatekey", &host.ssh_secret()[0].1)]).await?;
    node_set(&ns, &[&host], &["one"]).await?;
    ns.wait::<Node>(&host.name, "made", SOON, |_| true).await?;
    ns.create::<Node>(&own.name, json!({ "ansibleHost": own.address })).await?;
    let words = [&*host.name, "is then made anew", "OpenStackDataPlaneNodeSet compute"];
    let delete = async |name: &str| {
        let arguments = ["delete", "-n", &ns.name, "--dry-run=server", "osdpnode", name];
        warnings(&ns, &arguments, "").await
    };
    eventually("there is a warning", async || {
        let said = delete(&host.name).await?;
        Ok(words.iter().all(|it| said.contains(it)))
    })
    .await?;
    let said = delete(&own.name).await?;
    assert!(!said.contains("Warning"), "{said}");
    ns.done().await
}

#[tokio::test]
async fn only_what_a_request_adds_is_warned_of_and_no_operator_is() -> Result<()> {
    let ns = World::new("annotations-new").await?;
    evaluated(&ns).await?;
    let slip = annotated(&ns, "OpenStackDataPlaneNode", "nova.openstack.org/cel");
    let said = warnings(&ns, &["create", "-f", "-"], &slip).await?;
    assert!(said.contains(IGNORED), "{said}");

    let annotate = async |further: &[&str]| {
        let arguments = ["annotate", "-n", &ns.name, "openstackdataplanenode/slip"];
        warnings(&ns, &[&arguments, further].concat(), "").await
    };
    let said = annotate(&["nova.openstack.org/drain=wait"]).await?;
    assert!(!said.contains(IGNORED), "the slip stood there before: {said}");
    let another = "nova.openstack.org/drian=wait";
    for operator in ["dataplane-operator", "nova-operator"] {
        let account = format!("--as=system:serviceaccount:edpm-system:{operator}");
        let said = annotate(&[another, "--dry-run=server", &account]).await?;
        assert!(!said.contains(IGNORED), "{operator}: {said}");
    }
    let said = annotate(&[another]).await?;
    let words = ["Annotation nova.openstack.org/drian is", "OpenStackDataPlaneNode, which takes"];
    assert!(words.iter().all(|it| said.contains(it)), "{said}");
    ns.done().await
}

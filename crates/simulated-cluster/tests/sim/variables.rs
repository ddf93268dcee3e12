//! Variables from Secrets and ConfigMaps: they reach the host, and only Secrets contain them.

use std::collections::BTreeSet;

use anyhow::Result;
use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role};
use e2e::journey::{self, ROLE, ready};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::events::v1::Event;
use operator_core::keyed::is_keyed;
use serde_json::json;
use simulated_cluster::Host;

use crate::journey::trace;
use crate::world::World;

/// As a template Ansible would evaluate it to `hunter2-2`.
const VALUE: &str = "hunter2-{{ 1 + 1 }}";
const OTHER: &str = "hunter3";

/// Both values as objects would contain them: plain and in base64.
const NOWHERE: [&str; 4] = ["hunter2", "hunter3", "aHVudGVyMi17eyAxICsgMSB9fQ==", "aHVudGVyMw=="];

/// Returns the distinct lines that set the variable in the files of the last run on the host.
///
/// A value with the tag `!unsafe` is text for Ansible; any other value is a template.
fn greeting_lines(host: &Host) -> BTreeSet<String> {
    let files = host.visits().pop().map(|it| it.files).unwrap_or_default();
    let lines = files.values().flat_map(|it| it.lines()).map(str::trim);
    lines.filter(|it| it.starts_with("greeting:")).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_secret_variable_reaches_the_host_and_no_other_object_holds_it() -> Result<()> {
    let (ns, host) = World::with_host("variables", "e2e-variables", "192.168.122.190").await?;
    crate::journey::deploy_to(&ns, &host).await?;
    ready(&ns, &host.name).await?;

    ns.secret("vars", &[("greeting", VALUE)]).await?;
    let from = json!([{ "secretRef": { "name": "vars" } }]);
    let change = json!({ "spec": { "nodeTemplate": { "ansibleVarsFrom": from } } });
    let role = ns.merge::<Role>(ROLE, change).await?;
    let has_seen = |it: &Node| {
        let observed = it.status.as_ref().and_then(|it| it.observed_role.as_ref());
        observed.map(|it| it.generation) == role.metadata.generation
    };
    ns.wait::<Node>(&host.name, "its role's change", journey::RUN, has_seen).await?;
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host), ["hello", VALUE]);
    assert_eq!(greeting_lines(&host), BTreeSet::from([format!("greeting: !unsafe \"{VALUE}\"")]));

    // The node's own list takes precedence, and a change of the content is named.
    ns.secret("own", &[("greeting", OTHER)]).await?;
    let from = json!([{ "secretRef": { "name": "own" } }]);
    let own = json!({ "spec": { "node": { "ansibleVarsFrom": from },
        "deployStrategy": { "deploy": false } } });
    ns.merge::<Node>(&host.name, own).await?;
    let words = ["ansibleVarsFrom Secret own", "ansibleVarsFrom Secret vars"];
    ns.reports::<Node>(&host.name, "UpToDate", "InputsChanged", &words, journey::RUN).await?;
    ns.merge::<Node>(&host.name, json!({ "spec": { "deployStrategy": { "deploy": true } } }))
        .await?;
    let node = ready(&ns, &host.name).await?;
    assert_eq!(trace(&host), ["hello", VALUE, OTHER]);
    // Keyed with the key that the operators created in their namespace.
    let inputs = node.status.map(|it| it.deployed_inputs).unwrap_or_default();
    assert!(is_keyed(&inputs["ansibleVarsFrom Secret own"]), "{inputs:?}");
    let both = [VALUE, OTHER].map(|it| format!("greeting: !unsafe \"{it}\""));
    assert_eq!(greeting_lines(&host), BTreeSet::from(both), "the role's and the node's own");

    ns.holds_nowhere::<ConfigMap>(&NOWHERE).await?;
    ns.holds_nowhere::<AnsibleEe>(&NOWHERE).await?;
    ns.holds_nowhere::<Job>(&NOWHERE).await?;
    ns.holds_nowhere::<Pod>(&NOWHERE).await?;
    ns.holds_nowhere::<Node>(&NOWHERE).await?;
    ns.holds_nowhere::<Role>(&NOWHERE).await?;
    ns.holds_nowhere::<Event>(&NOWHERE).await?;
    ns.done().await
}

#[tokio::test]
async fn a_configmap_variable_reaches_the_host_as_a_template() -> Result<()> {
    let ns = World::new("variables-plain").await?;
    let host = ns.host("e2e-variables-plain", "192.168.122.191");
    crate::journey::ssh_secret(&ns, &host).await?;
    let pairs = [("eting", "{{ inventory_hostname }}")];
    ns.config_map("plain", &pairs).await?;
    crate::journey::deploy(&ns, &[]).await?;
    let from = json!([{ "configMapRef": { "name": "plain" }, "prefix": "gre" }]);
    ns.merge::<Role>(ROLE, json!({ "spec": { "nodeTemplate": { "ansibleVarsFrom": from } } }))
        .await?;
    journey::node(&ns, &host.name, &host.address).await?;
    ready(&ns, &host.name).await?;
    // Ansible resolves it to the host's name, which its own suite verifies.
    assert_eq!(trace(&host), ["{{ inventory_hostname }}"]);
    let template = "greeting: \"{{ inventory_hostname }}\"".to_owned();
    assert_eq!(greeting_lines(&host), BTreeSet::from([template]));

    // Without variables from Secrets there is no Secret besides the inventory.
    let beside = format!("dataplanerole-{ROLE}");
    assert!(ns.api::<Secret>().get_opt(&beside).await?.is_none());
    ns.done().await
}

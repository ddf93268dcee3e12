//! Nodes deleted while nova-operator is down: cleaned up when it is back, or released by hand.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::dataplane::{Node, Role};
use api::nova::ExternalCompute;
use e2e::journey::ROLE;
use e2e::{Namespace, SOON, run};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::PropagationPolicy;
use serde_json::json;
use simulated_cluster::{Host, Operator};

use crate::computes;
use crate::ends::{GOES, cleaned, delete, gone, held, leftovers};
use crate::own::Own;

/// Deploys a host with a compute.
async fn own(test: &str) -> Result<(Own, Host)> {
    let own = Own::start(test).await?;
    let host = own.sim.player.host(test, "192.0.2.10");
    let _broker = computes::cell(&own, &own.sim).await?;
    computes::deploy(&own, &[&host]).await?;
    held(&own, &host.name).await?;
    Ok((own, host))
}

#[tokio::test]
async fn an_operator_that_was_down_meanwhile_cleans_up_when_it_is_back() -> Result<()> {
    let (own, host) = own("removal-down").await?;
    own.sim.operators.stop(Operator::Nova)?;
    delete(&own, &host.name, PropagationPolicy::Background).await?;
    // dataplane-operator no longer counts the node, and waits for the other operator's finalizer.
    let has_looked = |it: &Role| it.status.as_ref().is_some_and(|it| it.nodes == 0);
    own.wait::<Role>(ROLE, "without nodes", SOON, has_looked).await?;
    assert_eq!(own.api::<Node>().get(&host.name).await?.finalizers().len(), 2);
    let inventory = format!("dataplanenode-{}", host.name);
    assert!(own.api::<ConfigMap>().get_opt(&inventory).await?.is_some());
    assert_eq!(cleaned(&host), 0);
    own.replace(&[Operator::Nova]).await?;
    gone(&own, &host.name, GOES).await?;
    assert_eq!(cleaned(&host), 1);
    own.done()
}

/// Returns the documented command that removes the project's finalizers, for one namespace.
fn release_command(ns: &Namespace) -> Result<String> {
    let docs = include_str!("../../../../docs/install.md");
    let blocks = docs.split("```sh\n").skip(1).filter_map(|it| it.split("```").next());
    let block = blocks.into_iter().find(|it| it.contains("range $it.finalizers"));
    let block = block.context("docs/install.md has no command that releases finalizers")?;
    assert!(block.contains(" -A "), "{block}");
    Ok(block.replace(" -A ", &format!(" -n {} ", ns.name)))
}

/// Repeats the command until node and compute are gone: it skips an object that changes meanwhile.
async fn released(own: &Own, node: &str) -> Result<()> {
    let command = release_command(own)?;
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = format!("PATH={}:{}", own.sim.bin.display(), others.display());
    let kubeconfig = format!("KUBECONFIG={}", own.sim.kubeconfig.display());
    let mut said = String::new();
    for _ in 0..3 {
        said = match run("env", &[&path, &kubeconfig, "sh", "-c", &command]).await {
            Ok(text) => text,
            Err(error) => format!("{error:#}"),
        };
        let a_moment = Duration::from_mins(1);
        if own.gone::<Node>(node, a_moment).await.is_ok()
            && own.gone::<ExternalCompute>(node, a_moment).await.is_ok()
        {
            return Ok(());
        }
    }
    bail!("{node} is still there: {said}")
}

#[tokio::test]
async fn what_an_uninstalled_operator_holds_is_released_by_the_documented_command() -> Result<()> {
    let (own, host) = own("removal-docs").await?;
    let held = json!({ "metadata": { "finalizers": ["example.org/held"] } });
    own.merge::<Role>(ROLE, held).await?;
    let is_held_by_both = |it: &Role| it.finalizers().len() == 2;
    own.wait::<Role>(ROLE, "held once more", SOON, is_held_by_both).await?;
    own.sim.operators.stop(Operator::Nova)?;
    delete(&own, &host.name, PropagationPolicy::Background).await?;
    released(&own, &host.name).await?;
    own.replace(&[Operator::Nova]).await?;
    let role = own.api::<Role>().get(ROLE).await?;
    let theirs = "example.org/held".to_owned();
    assert!(role.finalizers().contains(&theirs), "others' finalizers are theirs");
    assert_eq!(cleaned(&host), 0, "nobody touched the host");
    assert_eq!(leftovers(&own).await?.len(), 0);
    own.done()
}

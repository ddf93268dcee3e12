//! The kubectl plugin with two deployed hosts, with a pending change, and with a failed host.

use anyhow::{Context as _, Result};
use api::dataplane::Node;
use api::nova::ExternalCompute;
use e2e::journey::{SERVICE, node_reports, ready};
use e2e::plugin::{Answer, assert_says, edpm_in, output_in, started_in};
use e2e::{Namespace, SOON, holds};
use serde_json::{Value, json};
use simulated_cluster::{Behaviour, Host};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::sync::OnceCell;

use crate::computes::{self, BUS, CELL, DEPLOYED, configure, settled};
use crate::journey::{deploy_to, trace};
use crate::world::World;

/// The hosts that tests only read; the second one is in another cell.
const HOSTS: [&str; 2] = ["edpm-compute-0", "edpm-compute-1"];
const OTHER_CELL: &str = "nova-cell2";
/// Their namespace.
const NAMESPACE: &str = "e2e-edpm-plugin";
/// A user's option of the first one.
const OPTIONS: &str = "[libvirt]\ncpu_models = Nehalem\n";

static LOOKED_AT: OnceCell<()> = OnceCell::const_new();

/// Both hosts, deployed by the first test that needs them and kept for the following ones.
async fn looked_at() -> Result<()> {
    let make = async || {
        let ns = World::new("edpm-plugin").await?;
        assert_eq!(ns.name, NAMESPACE);
        let first = ns.host(HOSTS[0], "192.0.2.120");
        let second = ns.host_like(&first, HOSTS[1], "192.0.2.121");
        // Brokers that must outlive the first test.
        let [broker, other] = &ns.sim.brokers;
        computes::cell_at(&ns, ns.sim, (CELL, BUS), broker, &[]).await?;
        computes::cell_at(&ns, ns.sim, (OTHER_CELL, "nova-cell2-transport"), other, &[]).await?;
        computes::deploy_in(&ns, &[(&first, CELL), (&second, OTHER_CELL)]).await?;
        configure(&ns, &first, OPTIONS).await?;
        settled(&ns, &first).await.map(drop)
    };
    LOOKED_AT.get_or_try_init(make).await.copied()
}

async fn edpm(arguments: &[&str]) -> Result<Answer> {
    edpm_in(NAMESPACE, arguments).await
}

async fn told(arguments: &[&str]) -> Result<String> {
    output_in(NAMESPACE, arguments).await
}

#[tokio::test]
async fn status_shows_both_hosts_as_done() -> Result<()> {
    looked_at().await?;
    let table = told(&["status"]).await?;
    assert!(table.starts_with("GROUP "), "{table}");
    assert_eq!(table.lines().count(), 1 + HOSTS.len(), "{table}");
    assert!(!table.contains('\u{1b}'), "a pipe gets no colours: {table}");
    let wide = told(&["status", "-o", "wide", "-A"]).await?;
    assert_says(&wide, &["NAMESPACE", "MESSAGE", "192.0.2.120:22", OTHER_CELL]);
    let document: Value = serde_json::from_str(&told(&["status", "-o", "json"]).await?)?;
    let nodes = document["nodes"].as_array().context("a list of nodes")?;
    assert_eq!(nodes.len(), HOSTS.len());
    for (host, node) in HOSTS.iter().zip(nodes) {
        assert_eq!(node["node"], *host);
        assert_eq!([&node["phase"], &node["ready"], &node["upToDate"]], ["Done", "True", "True"]);
    }
    let one = told(&["status", HOSTS[1], "-o", "yaml"]).await?;
    assert!(one.contains(HOSTS[1]) && !one.contains(HOSTS[0]), "{one}");
    Ok(())
}

#[tokio::test]
async fn explain_names_every_object_of_a_ready_host() -> Result<()> {
    looked_at().await?;
    let text = told(&["explain", HOSTS[0]]).await?;
    assert!(text.starts_with("edpm-compute-0 is ready.\n"), "{text}");
    assert_says(
        &text,
        &[
            "OpenStackDataPlaneNode edpm-compute-0",
            "OpenStackDataPlaneRole compute",
            SERVICE,
            "NovaExternalCompute edpm-compute-0",
            "nova-registered",
            "NovaCell nova-cell1",
            "KeystoneReady",
        ],
    );
    Ok(())
}

#[tokio::test]
async fn trace_follows_the_humans_option_to_the_host_and_masks_what_logs_in() -> Result<()> {
    looked_at().await?;
    let text = told(&["trace", "nova.conf", "[libvirt]", "cpu_models", "--node", HOSTS[0]]).await?;
    assert_says(
        &text,
        &[
            "NovaExternalCompute e2e-edpm-plugin/edpm-compute-0, spec.customServiceConfig, line ",
            "Secret e2e-edpm-plugin/edpm-compute-0-config-data",
            "its extraMounts put 02-nova-override.conf",
            "/etc/nova/nova.conf.d/02-nova-override.conf",
            "nova-compute itself was not asked",
            "in force: cpu_models = Nehalem, from 02-nova-override.conf",
        ],
    );
    let bus = told(&["trace", "nova.conf", "transport_url", "--node", HOSTS[0]]).await?;
    assert_says(&bus, &["transport_url = ********, from 01-nova.conf of NovaCell"]);
    assert!(!bus.contains("rabbit://"), "{bus}");
    Ok(())
}

#[tokio::test]
async fn errors_and_exit_codes_are_kubectls() -> Result<()> {
    looked_at().await?;
    let refused = |answer: &Answer, code: i32, text: &str| {
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert_says(&answer.err, &[text]);
    };
    let no_node = "Error from server (NotFound): openstackdataplanenodes.dataplane.openstack.org \
                   \"nobody\" not found";
    for command in ["status", "explain", "logs", "retry"] {
        refused(&edpm(&[command, "nobody"]).await?, 1, no_node);
    }
    refused(&edpm(&["diff", "nobody"]).await?, 2, no_node);
    let context = edpm(&["status", "--context", "nobody"]).await?;
    refused(&context, 1, "error: context \"nobody\" does not exist");
    refused(&edpm(&["retry", HOSTS[0]]).await?, 1, "nothing has failed on edpm-compute-0");
    refused(&edpm(&["stauts"]).await?, 1, "status");
    let answer = edpm(&["logs", HOSTS[0], "--service", "nobody"]).await?;
    refused(&answer, 1, "error: no run of service nobody is kept");
    Ok(())
}

/// Returns the next line of `status -w` about a host that contains the words.
async fn changed(lines: &mut Lines<BufReader<ChildStdout>>, words: &[&str]) -> Result<()> {
    let find = async {
        while let Some(line) = lines.next_line().await? {
            if words.iter().all(|it| line.contains(it)) {
                return Ok(());
            }
        }
        anyhow::bail!("the watch ended")
    };
    tokio::time::timeout(SOON, find).await.with_context(|| format!("no line with {words:?}"))?
}

/// Changes an option of the compute while nothing may be deployed, as seen by a watching user.
async fn change(ns: &Namespace, host: &Host) -> Result<()> {
    ns.merge::<Node>(&host.name, json!({ "spec": { "deployStrategy": { "deploy": false } } }))
        .await?;
    let is_off = |it: &ExternalCompute| it.spec.deploy == Some(false);
    ns.wait::<ExternalCompute>(&host.name, "not deployed", DEPLOYED, is_off).await?;
    let mut watch = started_in(&ns.name, &["status", "-w"])?;
    let mut lines = BufReader::new(watch.stdout.take().context("a pipe")?).lines();
    changed(&mut lines, &[&host.name, "Done"]).await?;
    configure(ns, host, &format!("{OPTIONS}[DEFAULT]\nmax_concurrent_builds = 7\n")).await?;
    let words = ["customServiceConfig"];
    ns.reports::<ExternalCompute>(&host.name, "UpToDate", "InputsChanged", &words, SOON).await?;
    changed(&mut lines, &[&host.name, "False"]).await
}

#[tokio::test]
async fn a_change_that_waits_is_shown_by_diff_trace_and_watch_and_nothing_runs() -> Result<()> {
    let (ns, host) = World::with_host("edpm-diff", "edpm-diff", "192.0.2.122").await?;
    computes::cell(&ns, ns.sim).await?;
    computes::deploy(&ns, &[&host]).await?;
    configure(&ns, &host, OPTIONS).await?;
    settled(&ns, &host).await?;
    let same = edpm_in(&ns.name, &["diff", &host.name]).await?;
    assert_eq!((same.code, same.out.as_str()), (Some(0), ""), "{same:?}");
    let before = host.visits().len();

    change(&ns, &host).await?;
    let diff = edpm_in(&ns.name, &["diff", &host.name]).await?;
    assert_eq!(diff.code, Some(1), "{diff:?}");
    assert_says(
        &diff.out,
        &[
            "~ customServiceConfig",
            "it is not deployed until deployStrategy.deploy is true",
            "> [DEFAULT] max_concurrent_builds = 7",
            "services that would run: nova, nova-registered",
        ],
    );
    let option = ["trace", "nova.conf", "max_concurrent_builds", "--node", &host.name];
    let trace = edpm_in(&ns.name, &option).await?;
    assert_eq!(trace.code, Some(1), "{trace:?}");
    let next = "Next: set deployStrategy.deploy: true";
    assert_says(&trace.out, &["3. run", "NOT YET", "It stops at step 3, run", next]);

    configure(&ns, &host, OPTIONS).await?;
    let is_back = |it: &ExternalCompute| {
        let observed = it.status.as_ref().and_then(|it| it.observed_generation);
        observed == it.metadata.generation && holds(it.conditions(), "UpToDate")
    };
    ns.wait::<ExternalCompute>(&host.name, "up to date again", SOON, is_back).await?;
    ns.merge::<Node>(&host.name, json!({ "spec": { "deployStrategy": null } })).await?;
    settled(&ns, &host).await?;
    assert_eq!(host.visits().len(), before, "nothing ran");
    ns.done().await
}

#[tokio::test]
async fn retry_runs_what_has_failed_once_more() -> Result<()> {
    let (ns, host) = World::with_host("edpm-retry", "edpm-retry", "192.0.2.123").await?;
    host.behave(SERVICE, Behaviour::failed("Nothing forbids it", "non-zero return code"));
    deploy_to(&ns, &host).await?;
    node_reports(&ns, &host.name, "TaskFailed", &["task 'Nothing forbids it'"]).await?;
    let table = output_in(&ns.name, &["status"]).await?;
    assert_says(&table, &[&host.name, "TaskFailed"]);
    let why = output_in(&ns.name, &["explain", &host.name]).await?;
    assert_says(&why, &["TaskFailed", "Nothing forbids it"]);

    host.behave(SERVICE, Behaviour::Done);
    let said = output_in(&ns.name, &["retry", &host.name]).await?;
    let node = format!("openstackdataplanenode.dataplane.openstack.org/{}", host.name);
    assert_says(&said, &[&node]);
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host), ["hello"]);
    ns.done().await
}

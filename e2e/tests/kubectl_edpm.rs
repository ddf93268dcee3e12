//! The plugin on the demo: what it tells of two deployed hosts, and of a change that waits.

use std::time::Duration;

use anyhow::{Context as _, Result};
use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::Node;
use common::api::nova::ExternalCompute;
use e2e::demo::{Demo, HOSTS, conditions};
use e2e::plugin::{Answer, edpm, started};
use e2e::{holds, says};
use kube::api::ListParams;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::sync::Mutex;

/// One of the tests changes what the others look at.
static TURN: Mutex<()> = Mutex::const_new(());

const SOON: Duration = Duration::from_secs(30);

/// What a command said that succeeded.
async fn told(arguments: &[&str]) -> Result<String> {
    let answer = edpm(arguments).await?;
    assert_eq!(answer.code, Some(0), "{arguments:?}: {answer:?}");
    Ok(answer.out)
}

fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word} is not in: {text}");
    }
}

#[tokio::test]
async fn status_shows_both_hosts_as_done() -> Result<()> {
    let _turn = TURN.lock().await;
    Demo::ready().await?;
    let table = told(&["status"]).await?;
    assert!(table.starts_with("GROUP "), "{table}");
    assert_eq!(table.lines().count(), 1 + HOSTS.len(), "{table}");
    assert!(!table.contains('\u{1b}'), "a pipe gets no colours: {table}");
    let wide = told(&["status", "-o", "wide", "-A"]).await?;
    assert_says(&wide, &["NAMESPACE", "MESSAGE", "192.168.122.100:22", "nova-cell2"]);
    let document: Value = serde_json::from_str(&told(&["status", "-o", "json"]).await?)?;
    let nodes = document["nodes"].as_array().context("a list of nodes")?;
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
    let _turn = TURN.lock().await;
    Demo::ready().await?;
    let text = told(&["explain", HOSTS[0]]).await?;
    assert!(text.starts_with("edpm-compute-0 is ready.\n"), "{text}");
    assert_says(
        &text,
        &[
            "OpenStackDataPlaneNode edpm-compute-0",
            "OpenStackDataPlaneRole edpm-compute",
            "configure-network",
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
    let _turn = TURN.lock().await;
    Demo::ready().await?;
    let text = told(&["trace", "nova.conf", "[libvirt]", "cpu_models", "--node", HOSTS[0]]).await?;
    assert_says(
        &text,
        &[
            "NovaExternalCompute openstack/edpm-compute-0, spec.customServiceConfig, line ",
            "Secret openstack/edpm-compute-0-config-data",
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
async fn trace_asks_the_running_nova_compute_changes_nothing_and_leaves_no_run() -> Result<()> {
    let _turn = TURN.lock().await;
    let demo = Demo::ready().await?;
    let before = demo.containers(HOSTS[0]).await?;
    let ask = |option: &'static str| {
        ["trace", "nova.conf", "[libvirt]", option, "--node", HOSTS[0], "--ask"]
    };
    let text = told(&ask("cpu_models")).await?;
    assert_says(
        &text,
        &[
            "/var/lib/openstack/config/nova/02-nova-override.conf, SHA-256 ",
            "nova_compute: /etc/nova/nova.conf.d/02-nova-override.conf, SHA-256 ",
            "cpu_models = Nehalem, says nova-compute, running since ",
            "from /etc/nova/nova.conf.d/02-nova-override.conf, says oslo.config",
            "In force: Nehalem, from /etc/nova/nova.conf.d/02-nova-override.conf of ",
        ],
    );
    assert!(!text.contains("NOT YET") && !text.contains("STALE"), "{text}");
    let own = told(&ask("virt_type")).await?;
    assert_says(&own, &["virt_type = ", "says nova-compute, running since "]);
    let bus = ["trace", "nova.conf", "transport_url", "--node", HOSTS[0], "--ask"];
    let bus = told(&bus).await?;
    assert_says(&bus, &["transport_url = ********, says nova-compute", "In force: ********"]);
    assert!(!bus.contains("rabbit://"), "{bus}");
    let runs = demo.ns.api::<AnsibleEe>();
    let left = runs.list(&ListParams::default().labels("edpm.openstack.org/question")).await?;
    // A run that is being deleted may still wait for its Job.
    let is_left = |it: &&AnsibleEe| it.metadata.deletion_timestamp.is_none();
    assert_eq!(left.iter().filter(is_left).count(), 0);
    assert_eq!(demo.containers(HOSTS[0]).await?, before);
    Ok(())
}

#[tokio::test]
async fn logs_show_what_ansible_said_of_the_host() -> Result<()> {
    let _turn = TURN.lock().await;
    Demo::ready().await?;
    let answer = edpm(&["logs", HOSTS[0], "--service", "nova"]).await?;
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_says(&answer.out, &["PLAY RECAP", HOSTS[0]]);
    assert_says(&answer.err, &["# run nova-edpm-compute-0-", "service nova, pod "]);
    let answer = edpm(&["logs", HOSTS[0], "--service", "nobody"]).await?;
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_says(&answer.err, &["error: no run of service nobody is kept"]);
    Ok(())
}

#[tokio::test]
async fn errors_and_exit_codes_are_kubectls() -> Result<()> {
    let _turn = TURN.lock().await;
    Demo::ready().await?;
    let refused = |answer: &Answer, code: i32, text: &str| {
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert_says(&answer.err, &[text]);
    };
    let no_node = "Error from server (NotFound): openstackdataplanenodes.dataplane.openstack.org \
                   \"nobody\" not found, nor has any node set such a host";
    for command in ["status", "explain", "logs", "retry"] {
        refused(&edpm(&[command, "nobody"]).await?, 1, no_node);
    }
    refused(&edpm(&["diff", "nobody"]).await?, 2, no_node);
    let context = edpm(&["status", "--context", "nobody"]).await?;
    refused(&context, 1, "error: context \"nobody\" does not exist");
    refused(&edpm(&["retry", HOSTS[0]]).await?, 1, "nothing has failed on edpm-compute-0");
    refused(&edpm(&["stauts"]).await?, 1, "status");
    Ok(())
}

/// The next line of `status -w` about a host that has the words.
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

/// What the plugin says of a change that is not deployed.
struct Seen {
    diff: Answer,
    trace: String,
}

/// Gives the compute another option while nothing may be deployed, and looks.
async fn look(demo: &Demo, host: &str, options: &str) -> Result<Seen> {
    let is_off = |it: &ExternalCompute| it.spec.deploy == Some(false);
    demo.compute(host, "not deployed", is_off).await?;
    let mut watch = started(&["status", "-w"])?;
    let mut lines = BufReader::new(watch.stdout.take().context("a pipe")?).lines();
    changed(&mut lines, &[host, "Done"]).await?;
    demo.configure(host, &format!("{options}[DEFAULT]\nmax_concurrent_builds = 7\n")).await?;
    let is_behind = |it: &ExternalCompute| {
        says(conditions(it), "UpToDate", "InputsChanged", &["customServiceConfig"])
    };
    demo.compute(host, "behind", is_behind).await?;
    changed(&mut lines, &[host, "False"]).await?;
    let diff = edpm(&["diff", host]).await?;
    let trace = told(&["trace", "nova.conf", "max_concurrent_builds", "--node", host]).await?;
    Ok(Seen { diff, trace })
}

#[tokio::test]
async fn a_change_that_waits_is_shown_by_diff_trace_and_watch_and_nothing_runs() -> Result<()> {
    let _turn = TURN.lock().await;
    let demo = Demo::ready().await?;
    let [host, _] = HOSTS;
    let same = edpm(&["diff", host]).await?;
    assert_eq!((same.code, same.out.as_str()), (Some(0), ""), "{same:?}");
    let options = demo.options(host).await?;
    let strategy = json!(demo.ns.api::<Node>().get(host).await?.spec.deploy_strategy);
    let switched = |value: Value| json!({ "spec": { "deployStrategy": value } });
    let (begin, before) = (demo.now(host).await?, demo.containers(host).await?);
    demo.ns.merge::<Node>(host, switched(json!({ "deploy": false }))).await?;
    let seen = look(&demo, host, &options).await;
    // Before anything is judged, the demo is again what it was.
    demo.configure(host, &options).await?;
    let is_back = |it: &ExternalCompute| {
        let observed = it.status.as_ref().and_then(|it| it.observed_generation);
        observed == it.metadata.generation && holds(conditions(it), "UpToDate")
    };
    demo.compute(host, "up to date again", is_back).await?;
    let back = if strategy.is_null() { json!(null) } else { strategy };
    demo.ns.merge::<Node>(host, switched(back)).await?;
    demo.settled().await?;
    let Seen { diff, trace } = seen?;
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
    assert_says(&trace, &["3. run", "NOT YET", "It stops at step 3, run"]);
    assert_eq!(demo.runs(host, &begin).await?, [0, 0, 0], "nothing ran");
    assert_eq!(demo.containers(host).await?, before);
    Ok(())
}

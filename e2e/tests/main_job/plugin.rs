//! The plugin on the demo, where it needs a kubelet or a running nova: logs of runs, and queries of
//! nova-compute.

use anyhow::Result;
use api::ansibleee::AnsibleEe;
use e2e::demo::Demo;
use e2e::plugin::{DEMO, assert_says, edpm, output_in};
use kube::api::ListParams;

use crate::{Alone, any_host};

/// Returns the output of a command that must succeed.
async fn told(arguments: &[&str]) -> Result<String> {
    output_in(DEMO, arguments).await
}

#[tokio::test]
async fn trace_asks_the_running_nova_compute_changes_nothing_and_leaves_no_run() -> Result<()> {
    let Alone { host, _lock, .. } = any_host().await;
    let demo = Demo::ready_on(host).await?;
    let before = demo.containers(host).await?;
    let ask = |option| ["trace", "nova.conf", "[libvirt]", option, "--node", host, "--ask"];
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
    let bus = ["trace", "nova.conf", "transport_url", "--node", host, "--ask"];
    let bus = told(&bus).await?;
    assert_says(&bus, &["transport_url = ********, says nova-compute", "In force: ********"]);
    assert!(!bus.contains("rabbit://"), "{bus}");
    let runs = demo.ns.api::<AnsibleEe>();
    let left = runs.list(&ListParams::default().labels("edpm.openstack.org/question")).await?;
    // A run that is being deleted may still wait for its Job.
    let is_left = |it: &&AnsibleEe| it.metadata.deletion_timestamp.is_none();
    assert_eq!(left.iter().filter(is_left).count(), 0);
    assert_eq!(demo.containers(host).await?, before);
    Ok(())
}

#[tokio::test]
async fn logs_show_what_ansible_said_of_the_host() -> Result<()> {
    let Alone { host, _lock, .. } = any_host().await;
    Demo::ready_on(host).await?;
    let answer = edpm(&["logs", host, "--service", "nova"]).await?;
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_says(&answer.out, &["PLAY RECAP", host]);
    let run = format!("# run nova-{host}-");
    assert_says(&answer.err, &[&run, "service nova, pod "]);
    Ok(())
}

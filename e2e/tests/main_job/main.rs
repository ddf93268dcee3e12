//! Tests of the main job on the demo's hosts: configuration, verification, queries and
//! interruptions.

mod audit;
mod deployed_again;
mod maintenance;
mod plugin;
mod reinstall;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, RunState};
use api::nova::{Cell, ExternalCompute};
use e2e::demo::{Demo, HOSTS};
use e2e::journey::RUN;
use e2e::{holds, run, says};
use tokio::sync::{Mutex, MutexGuard};

/// One lock per host of the demo: a test holds the lock of its host, so the tests of the two hosts
/// run in parallel.
static LOCKS: [Mutex<()>; 2] = [const { Mutex::const_new(()) }; 2];

/// A host of the demo for one test alone.
struct Alone {
    host: &'static str,
    /// Name of its `NovaCell`.
    cell: &'static str,
    _lock: MutexGuard<'static, ()>,
}

/// Returns the host with this index once no other test has it.
async fn host(idx: usize) -> Alone {
    let cell = ["nova-cell1", "nova-cell2"][idx];
    Alone { host: HOSTS[idx], cell, _lock: LOCKS[idx].lock().await }
}

/// Returns the first host that no other test has.
async fn any_host() -> Alone {
    tokio::select! { it = host(0) => it, it = host(1) => it }
}

/// Returns the name by which nova has a cell.
fn in_nova(cell: &str) -> &str {
    cell.strip_prefix("nova-").unwrap_or(cell)
}

const STRAY: &str = "99-nova-stray.conf";

#[tokio::test]
async fn an_option_that_is_removed_is_gone_in_the_process_and_stray_files_go_with_it() -> Result<()>
{
    let Alone { host, _lock, .. } = any_host().await;
    let demo = Demo::ready_on(host).await?;
    let status = demo.ns.api::<ExternalCompute>().get(host).await?.status.unwrap_or_default();
    let given: BTreeSet<String> = status.config_files.into_iter().map(|it| it.name).collect();
    assert_eq!(demo.loaded(host).await?, given);
    let identity = demo.on(host, "cat /var/lib/nova/compute_id").await?;
    let options = demo.options(host).await?;
    let default = demo.logged(host, "max_concurrent_builds").await?;
    assert_ne!(default, "7");
    demo.configure(host, &format!("{options}[DEFAULT]\nmax_concurrent_builds = 7\n")).await?;
    demo.settled_on(host).await?;
    assert_eq!(demo.logged(host, "max_concurrent_builds").await?, "7");
    // On the host, and in the running container, which has loaded its files long ago.
    demo.on(host, &format!("touch /var/lib/openstack/config/nova/{STRAY}")).await?;
    let inside =
        format!("podman exec --user root nova_compute touch /etc/nova/nova.conf.d/{STRAY}");
    demo.on(host, &inside).await?;
    assert!(demo.loaded(host).await?.contains(STRAY));
    demo.configure(host, &options).await?;
    demo.settled_on(host).await?;
    assert_eq!(demo.logged(host, "max_concurrent_builds").await?, default);
    assert_eq!(demo.loaded(host).await?, given);
    let there = demo.on(host, "ls /var/lib/openstack/config/nova").await?;
    assert!(!there.contains(STRAY), "{there}");
    assert_eq!(demo.on(host, "cat /var/lib/nova/compute_id").await?, identity);
    Ok(())
}

#[tokio::test]
async fn no_run_shows_a_password_in_its_log() -> Result<()> {
    let Alone { host, _lock, .. } = any_host().await;
    let demo = Demo::ready_on(host).await?;
    let config = demo.on(host, "cat /var/lib/openstack/config/nova/01-nova.conf").await?;
    let password = |line: &str| line.strip_prefix("password = ").map(str::to_owned);
    let of_bus = |line: &str| {
        let (_, login) = line.strip_prefix("transport_url = ")?.split_once("://")?;
        Some(login.split_once('@')?.0.split_once(':')?.1.to_owned())
    };
    let mut secrets: BTreeSet<String> = config.lines().filter_map(password).collect();
    secrets.extend(config.lines().filter_map(of_bus));
    assert!(secrets.len() >= 2, "the passwords of Keystone and of the message bus");
    let runs = demo.ns.list::<AnsibleEe>().await?;
    let is_of_host = |it: &&AnsibleEe| it.spec.hosts.iter().any(|it| it.name == host);
    let mut n_read = 0;
    for run_of_host in runs.iter().filter(is_of_host) {
        let status = run_of_host.status.as_ref();
        let job = status.and_then(|it| it.job.as_ref()).context("a finished run names its Job")?;
        let log =
            run("kubectl", &["logs", "-n", &demo.ns.name, &format!("job/{}", job.name)]).await?;
        assert!(log.contains("PLAY RECAP"), "{}: {log}", job.name);
        assert!(!secrets.iter().any(|it| log.contains(it)), "{} shows a password", job.name);
        n_read += 1;
    }
    assert!(n_read >= 3, "only {n_read} runs of {host} are left");
    Ok(())
}

#[tokio::test]
async fn a_nova_compute_that_stops_is_reported_on_the_objects_of_the_user() -> Result<()> {
    let Alone { host, cell, _lock } = any_host().await;
    let demo = Demo::ready_on(host).await?;
    demo.up_and_mapped(host).await?;
    demo.on(host, "systemctl stop edpm_nova_compute").await?;
    let stopped = Instant::now();
    let words = ["has not reported to nova since", "systemctl status edpm_nova_compute"];
    let is_down = |it: &ExternalCompute| says(it.conditions(), "Ready", "ServiceDown", &words);
    demo.compute(host, "reported as down", is_down).await?;
    // Nova's own service_down_time, and two of the lab's intervals with the time of a reading.
    assert!(stopped.elapsed() < Duration::from_secs(60 + 2 * 15), "{:?}", stopped.elapsed());
    let reports = |it: &Node| {
        let conditions = it.conditions();
        says(conditions, "nova.openstack.org/ServiceUp", "ServiceDown", &words)
            && holds(conditions, "Ready")
    };
    demo.ns.wait::<Node>(host, "reporting that its compute is down", RUN, reports).await?;
    demo.ns.event("OpenStackDataPlaneNode", host, "ServiceDown").await?;
    demo.ns.reports::<Cell>(cell, "ComputesUp", "ComputesDown", &[host], RUN).await?;
    demo.on(host, "systemctl start edpm_nova_compute").await?;
    demo.settled_on(host).await
}

#[tokio::test]
async fn a_compute_that_its_message_bus_refuses_says_why_until_it_is_corrected() -> Result<()> {
    let Alone { host, cell, _lock } = any_host().await;
    let demo = Demo::ready_on(host).await?;
    let options = demo.options(host).await?;
    let address = if cell == "nova-cell1" { "10.96.10.21" } else { "10.96.10.22" };
    let bus = format!("transport_url = rabbit://{cell}:not-the-password@{address}:5672/{cell}");
    demo.configure(host, &format!("{options}[DEFAULT]\n{bus}\n")).await?;
    let words =
        ["message bus refuses nova-compute", "ACCESS_REFUSED", "nova.openstack.org/redeploy"];
    let refused = |it: &ExternalCompute| says(it.conditions(), "Ready", "TaskFailed", &words);
    let compute = demo.compute(host, "refused by its message bus", refused).await?;
    demo.ns.event("NovaExternalCompute", host, "TaskFailed").await?;
    let of_compute = "nova.openstack.org/Compute";
    demo.ns.reports::<Node>(host, of_compute, "TaskFailed", &words[..2], RUN).await?;
    // It exits and is restarted as long as its login is refused.
    let runs = "until podman container inspect -f '{{.State.Running}}' nova_compute | \
                grep -qx true; do sleep 0.2; done";
    let has_container = demo.on(host, &format!("timeout 60 bash -c \"{runs}\"")).await;
    demo.configure(host, &options).await?;
    has_container.context("the container runs")?;
    let services = compute.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default();
    let nova = services.iter().find(|it| it.name == "nova").context("nova is a service")?;
    assert_eq!(nova.state, RunState::Succeeded, "nova-compute was started");
    let texts = serde_json::to_string(&compute.status)?;
    assert!(!texts.contains("not-the-password"), "the password is shown");
    demo.settled_on(host).await
}

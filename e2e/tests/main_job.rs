//! The main job, on the demo's own hosts: deployed again, configured, refuted and cut off.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use common::api::ansibleee::{AnsibleEe, JobStatus};
use common::api::dataplane::{Node, Role, RunState};
use common::api::nova::ExternalCompute;
use e2e::demo::{self, Demo, HOSTS, conditions};
use e2e::journey::RUN;
use e2e::{holds, run, says};
use kube::ResourceExt;
use serde_json::json;
use tokio::sync::Notify;

/// These tests change the same two hosts, so they take turns on each of them.
static TURNS: LazyLock<Turns> = LazyLock::new(Turns::default);

/// Who may change which host. A test that needs both goes before those that need one: else it would hold the
/// one while others change the other.
#[derive(Default)]
struct Turns {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    is_taken: [bool; 2],
    /// How many tests wait for both hosts, or for the second of them.
    n_before: usize,
}

/// A test's turn on a host.
struct Turn(usize);

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.state().is_taken[self.0] = false;
        TURNS.changed.notify_waiters();
    }
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `take` has taken what it wants.
    async fn taken(&self, take: impl Fn(&mut State) -> bool) {
        let mut changed = pin!(self.changed.notified());
        loop {
            changed.as_mut().enable();
            if take(&mut self.state()) {
                return;
            }
            changed.as_mut().await;
            changed.set(self.changed.notified());
        }
    }

    /// Takes some hosts at once, before all tests that need one host alone.
    async fn first(&self, hosts: &[usize]) {
        self.state().n_before += 1;
        let take = |it: &mut State| {
            let is_free = hosts.iter().all(|host| !it.is_taken[*host]);
            if is_free {
                for host in hosts {
                    it.is_taken[*host] = true;
                }
                it.n_before -= 1;
            }
            is_free
        };
        self.taken(take).await;
        self.changed.notify_waiters();
    }
}

/// A turn on the first or the second host, for a test that needs no other.
async fn turn(idx: usize) -> Turn {
    let take = |it: &mut State| {
        let is_free = !it.is_taken[idx] && it.n_before == 0;
        it.is_taken[idx] |= is_free;
        is_free
    };
    TURNS.taken(take).await;
    Turn(idx)
}

/// A turn on the first and the second host.
async fn both() -> [Turn; 2] {
    TURNS.first(&[0, 1]).await;
    [Turn(0), Turn(1)]
}

/// A turn on a host for a test that has one on the other.
async fn other(idx: usize) -> Turn {
    TURNS.first(&[idx]).await;
    Turn(idx)
}

/// Each service with each of its hosts.
fn pairs(runs: &[AnsibleEe]) -> BTreeSet<(String, String)> {
    let service = |it: &AnsibleEe| it.labels().get("edpm.openstack.org/service").cloned();
    let of = |it: &AnsibleEe| {
        let service = service(it).unwrap_or_default();
        it.spec.hosts.iter().map(move |it| (service.clone(), it.name.clone())).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of).collect()
}

#[tokio::test]
async fn a_second_deployment_of_the_same_inputs_changes_nothing() -> Result<()> {
    let _turns = both().await;
    let demo = Demo::ready().await?;
    let before = demo.ns.list::<AnsibleEe>().await?;
    let known: BTreeSet<_> = before.iter().filter_map(ResourceExt::uid).collect();
    let mut containers = Vec::new();
    let mut instances = Vec::new();
    for host in HOSTS {
        containers.push(demo.containers(host).await?);
        let compute = demo.ns.api::<ExternalCompute>().get(host).await?;
        instances.push(compute.status.and_then(|it| it.host_instance));
    }
    let redeploy = |value| json!({ "dataplane.openstack.org/redeploy": value });
    let annotate = |value| json!({ "metadata": { "annotations": redeploy(value) } });
    let role = demo.ns.api::<Role>().get("edpm-compute").await?;
    demo.ns.merge::<Role>("edpm-compute", annotate(Some(demo::fresh(&role)))).await?;
    for (host, instance) in HOSTS.iter().zip(instances) {
        // The compute follows the node's instance, so the news has come through when it is another.
        let has_heard = |it: &ExternalCompute| {
            it.status.as_ref().is_some_and(|it| it.host_instance != instance)
                && holds(conditions(it), "Ready")
                && holds(conditions(it), "UpToDate")
        };
        demo.compute(host, "deployed again", has_heard).await?;
    }
    demo.settled().await?;
    let mut runs = demo.ns.list::<AnsibleEe>().await?;
    runs.retain(|it| !known.contains(&it.uid().unwrap_or_default()));
    assert_eq!(pairs(&runs), pairs(&before), "every service ran again on every host");
    for run in &runs {
        let (name, status) = (run.name_any(), run.status.as_ref().context("a run has a status")?);
        assert_eq!(status.job_status, Some(JobStatus::Succeeded), "{name}");
        assert_eq!(status.hosts.len(), run.spec.hosts.len(), "{name}");
        for host in &status.hosts {
            assert_eq!(host.changed, Some(0), "{name} on {}", host.name);
        }
    }
    for (host, before) in HOSTS.iter().zip(containers) {
        assert!(before.contains("nova_compute") && before.contains("libvirt"), "{before}");
        assert_eq!(demo.containers(host).await?, before, "containers of {host}");
    }
    demo.ns.merge::<Role>("edpm-compute", annotate(None)).await?;
    demo.settled().await
}

#[tokio::test]
async fn an_option_that_is_removed_is_gone_in_the_process() -> Result<()> {
    let (_turn, host) = (turn(0).await, HOSTS[0]);
    let demo = Demo::ready_on(host).await?;
    let options = demo.options(host).await?;
    let default = demo.logged(host, "max_concurrent_builds").await?;
    assert_ne!(default, "7");
    demo.configure(host, &format!("{options}[DEFAULT]\nmax_concurrent_builds = 7\n")).await?;
    demo.settled_on(host).await?;
    assert_eq!(demo.logged(host, "max_concurrent_builds").await?, "7");
    demo.configure(host, &options).await?;
    demo.settled_on(host).await?;
    assert_eq!(demo.logged(host, "max_concurrent_builds").await?, default);
    Ok(())
}

#[tokio::test]
async fn a_container_that_was_removed_refutes_the_demo() -> Result<()> {
    let [_turn, other] = both().await;
    let demo = Demo::ready().await?;
    let [host, _] = HOSTS;
    demo.on(host, "podman rm -f nova_compute").await?;
    let text = demo.refuted().await?;
    drop(other);
    demo.redeploy(host).await?;
    assert!(text.contains(&format!("facts of {host}")) && text.contains("nova_compute"), "{text}");
    demo.settled_on(host).await
}

#[tokio::test]
async fn a_stray_file_goes_and_the_host_stays_who_it_is() -> Result<()> {
    let (_turn, host) = (turn(0).await, HOSTS[0]);
    let demo = Demo::ready_on(host).await?;
    let status = demo.ns.api::<ExternalCompute>().get(host).await?.status.unwrap_or_default();
    let given: BTreeSet<String> = status.config_files.into_iter().map(|it| it.name).collect();
    assert_eq!(demo.loaded(host).await?, given);
    let identity = demo.on(host, "cat /var/lib/nova/compute_id").await?;
    // On the host, and where the container that runs has long loaded its files.
    let stray = "99-nova-stray.conf";
    demo.on(host, &format!("touch /var/lib/openstack/config/nova/{stray}")).await?;
    let inside =
        format!("podman exec --user root nova_compute touch /etc/nova/nova.conf.d/{stray}");
    demo.on(host, &inside).await?;
    assert!(demo.loaded(host).await?.contains(stray));
    demo.redeploy(host).await?;
    assert_eq!(demo.loaded(host).await?, given);
    let there = demo.on(host, "ls /var/lib/openstack/config/nova").await?;
    assert!(!there.contains(stray), "{there}");
    assert_eq!(demo.on(host, "cat /var/lib/nova/compute_id").await?, identity);
    demo.settled_on(host).await
}

#[tokio::test]
async fn no_run_shows_a_password_in_its_log() -> Result<()> {
    let (_turn, host) = (turn(0).await, HOSTS[0]);
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
async fn a_service_record_that_was_deleted_refutes_the_demo() -> Result<()> {
    let _turns = both().await;
    let demo = Demo::ready().await?;
    let (host, cell) = (HOSTS[1], "nova-cell2");
    // As nova itself deletes: the row stays and is marked.
    let mark = |it: &str| format!("UPDATE services SET deleted={it} WHERE host='{host}'");
    demo.sql(cell, &mark("id")).await?;
    let text = demo.refuted().await;
    demo.sql(cell, &mark("0")).await?;
    reports(&demo, host, cell).await?;
    let text = text?;
    assert!(text.contains(&format!("{host}: services row is \"\"")), "{text}");
    demo.settled().await
}

/// Waits until a compute has just reported to its record.
async fn reports(demo: &Demo, host: &str, cell: &str) -> Result<()> {
    let query = format!(
        "SELECT COUNT(*) FROM services WHERE host='{host}' AND deleted=0 AND last_seen_up > \
         UTC_TIMESTAMP() - INTERVAL 3 SECOND"
    );
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    let up = async {
        while demo.sql(cell, &query).await?.trim() != "1" {
            tick.tick().await;
        }
        anyhow::Ok(())
    };
    let up = tokio::time::timeout(Duration::from_mins(1), up).await;
    up.with_context(|| format!("{host} does not report to {cell}"))?
}

#[tokio::test]
async fn options_that_were_emptied_and_deployed_refute_the_demo() -> Result<()> {
    let (_turn, host) = (turn(1).await, HOSTS[1]);
    let demo = Demo::ready_on(host).await?;
    let options = demo.options(host).await?;
    demo.configure(host, "").await?;
    demo.settled_on(host).await?;
    let other = other(0).await;
    let text = demo.refuted().await;
    drop(other);
    demo.configure(host, &options).await?;
    let text = text?;
    assert!(text.contains(&format!("{host}: nova-compute's log is \"\"")), "{text}");
    demo.settled_on(host).await?;
    assert_eq!(demo.logged(host, "libvirt.cpu_models").await?, "['Nehalem']");
    Ok(())
}

#[tokio::test]
async fn a_compute_that_its_message_bus_refuses_says_why_until_it_is_corrected() -> Result<()> {
    let (_turn, host) = (turn(1).await, HOSTS[1]);
    let demo = Demo::ready_on(host).await?;
    let options = demo.options(host).await?;
    let bus = "transport_url = rabbit://nova-cell2:not-the-password@10.96.10.22:5672/nova-cell2";
    demo.configure(host, &format!("{options}[DEFAULT]\n{bus}\n")).await?;
    let words =
        ["message bus refuses nova-compute", "ACCESS_REFUSED", "nova.openstack.org/redeploy"];
    let refused = |it: &ExternalCompute| says(conditions(it), "Ready", "TaskFailed", &words);
    let compute = demo.compute(host, "refused by its message bus", refused).await?;
    demo.ns.event("NovaExternalCompute", host, "TaskFailed").await?;
    let of_node = |it: &Node| {
        let conditions = it.status.as_ref().map(|it| it.conditions.as_slice());
        says(
            conditions.unwrap_or_default(),
            "nova.openstack.org/Compute",
            "TaskFailed",
            &words[..2],
        )
    };
    demo.ns.wait::<Node>(host, "told of its compute", RUN, of_node).await?;
    // It ends and is started again for as long as it is refused.
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

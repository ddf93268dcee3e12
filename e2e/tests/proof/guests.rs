//! Guests of a host of the demo outlive libvirt's container.

use anyhow::{Context as _, Result, ensure};
use e2e::demo::{Demo, HOSTS};

/// A guest without disk and system: its firmware idles.
const GUEST: &str = "<domain type='qemu'><name>outlives</name><memory unit='MiB'>64</memory>\
    <os><type arch='x86_64' machine='q35'>hvm</type></os><devices>\
    <emulator>/usr/bin/qemu-system-x86_64</emulator></devices></domain>";
/// Waits until libvirt answers, then prints the names of the guests that run.
const RUNNING: &str = "timeout 120 sh -c 'until podman exec libvirt virsh -q list --name \
    2>/dev/null; do sleep 1; done'";

/// Returns the process of the guest; an error if there is none or more than one.
async fn process(demo: &Demo, host: &str) -> Result<String> {
    let said = demo.on(host, "pgrep -f '^/usr/bin/qemu-system-x86_64 .*guest=outlives'").await?;
    let pid = said.trim().to_owned();
    ensure!(pid.parse::<u32>().is_ok(), "one process: {pid}");
    // A process id may be given again, but not with the same start.
    demo.on(host, &format!("cut -d' ' -f1,22 /proc/{pid}/stat")).await
}

async fn outlives_restarts(demo: &Demo, host: &str) -> Result<()> {
    let define = format!(
        "printf %s \"{GUEST}\" >/var/lib/libvirt/outlives.xml && \
         podman exec libvirt virsh define /var/lib/libvirt/outlives.xml && \
         podman exec libvirt virsh start outlives"
    );
    demo.on(host, &define).await?;
    let begun = process(demo, host).await?;
    // The unit restarts; the daemon dies; the role makes the container anew.
    let daemon = "kill -KILL $(pgrep -x libvirtd)";
    for stop in ["systemctl restart edpm_libvirt", daemon, "podman rm --force libvirt"] {
        demo.on(host, stop).await.context(stop)?;
        if stop.contains("rm") {
            demo.redeploy(host).await?;
        }
        let running = demo.on(host, RUNNING).await.context(stop)?;
        ensure!(running.split_whitespace().any(|it| it == "outlives"), "{stop}: {running}");
        ensure!(process(demo, host).await.context(stop)? == begun, "{stop}: another process");
    }
    // The definition is there too, or the guest would be gone once it stops.
    demo.on(host, "podman exec libvirt virsh destroy outlives").await?;
    demo.on(host, "podman exec libvirt virsh domstate outlives | grep 'shut off'").await.map(drop)
}

#[tokio::test]
async fn a_guest_outlives_each_restart_of_libvirts_container() -> Result<()> {
    let host = HOSTS[0];
    let demo = Demo::ready_on(host).await?;
    demo.use_present_runner(host).await?;
    let outcome = outlives_restarts(&demo, host).await;
    let tidy = "podman exec libvirt virsh destroy outlives; \
        podman exec libvirt virsh undefine outlives; rm -f /var/lib/libvirt/outlives.xml";
    demo.on(host, tidy).await?;
    outcome?;
    demo.settled_on(host).await
}

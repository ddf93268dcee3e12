//! Real guests on the demo's hosts: they outlive what is done to their hosts, and leave a host before
//! it would end them.
//!
//! `cargo xtask proof guests` shows the demo with guests, and runs these tests then; those of
//! `removal` come last, because they take a host away.

mod certificates;
mod drain;
mod faults;
mod honest;
mod node_set;
mod outlives;
mod removal;
mod rollout;
mod ssh;

use anyhow::Result;
use api::dataplane::Role;
use e2e::demo::Demo;
use e2e::guests::HOSTS;
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

/// The role of the demo's hosts.
const ROLE: &str = "edpm-compute";
const DRAIN: &str = "nova.openstack.org/drain";
const DRAINED: &str = "nova.openstack.org/Drained";
/// The condition of a node that says how far the removal of its host is.
const COMPUTE: &str = "nova.openstack.org/Compute";

/// Guests go to and fro between the same two hosts: one test at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

/// The demo for one test alone.
struct Stage {
    demo: Demo,
    _lock: MutexGuard<'static, ()>,
}

/// Returns the demo once no other test has it, and both hosts of the first cell are ready.
async fn stage() -> Result<Stage> {
    let lock = ALONE.lock().await;
    let demo = Demo::ready_on(HOSTS[0]).await?;
    demo.settled_on(HOSTS[1]).await?;
    Ok(Stage { demo, _lock: lock })
}

/// Changes the role of the hosts, and returns it.
async fn change_role(demo: &Demo, change: Value) -> Result<Role> {
    demo.ns.merge::<Role>(ROLE, change).await
}

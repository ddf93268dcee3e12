//! Looks after sets of machines as the controller does, with an API server in memory, a line of JSON for
//! each line of JSON: the tests of `ironic-client` look at what a real Ironic made of it.
#![allow(clippy::print_stdout, reason = "its answers are its output")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, stdin};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::baremetal::BaremetalSet;
use api::conditions::find;
use baremetal::backoff::{IronicScope, RequestBackoff};
use baremetal::decide::decide;
use baremetal::ironic::hosts::{Order, orders};
use baremetal::ironic::{list_nodes, requests};
use baremetal::observe::{Observed, Secrets};
use ironic_client::Pool;
use jiff::SignedDuration;
use kube::ResourceExt as _;
use operator_core::object_key::Key;
use operator_core::plan::{Step, Write};
use operator_runtime::clock;
use operator_runtime::http_client::HttpClients;
use operator_runtime::source_cache::Values;
use serde::Deserialize;
use serde_json::json;

/// The limit of passes, after which the answer is an error.
const PASSES: usize = 400;
/// The longest pause between two passes: fake hardware is quick.
const PAUSE: Duration = Duration::from_millis(300);

/// What is asked: passes are made until all conditions have these reasons, or the set is gone.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Question {
    /// As the API server holds it.
    set: BaremetalSet,
    /// Text by key, by Secret.
    secrets: BTreeMap<String, BTreeMap<String, String>>,
    /// By types of conditions their reason, one of several with `|` between, or what their message begins
    /// with; none for a set that goes.
    until: BTreeMap<String, String>,
    /// Passes, counted from 0, after which the operator dies: what was asked of Ironic is acted upon, and
    /// nothing is written.
    #[serde(default)]
    deaths: BTreeSet<usize>,
    /// How many seconds our clock is ahead: pauses are over at once.
    #[serde(default)]
    ahead: i64,
    /// Whether the controller's own pauses are made, and not shorter ones.
    #[serde(default)]
    at_its_pace: bool,
}

/// What came of it.
#[derive(Default)]
struct Course {
    set: Option<BaremetalSet>,
    requested: Vec<String>,
    events: Vec<String>,
    n_writes: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    for line in stdin().lock().lines() {
        let question: Question = serde_json::from_str(&line?)?;
        let Course { set, requested, events, n_writes } = followed(question).await?;
        println!(
            "{}",
            json!({"set": set, "asked": requested, "events": events, "writes": n_writes})
        );
    }
    Ok(())
}

async fn followed(question: Question) -> Result<Course> {
    let Question { set, secrets, until, deaths, ahead, at_its_pace } = question;
    let secrets: Secrets = secrets.into_iter().map(|(name, it)| (name, content(it))).collect();
    let mut provisioning = Course { set: Some(set), ..Course::default() };
    let pool = || Pool::new(HttpClients::with_loopback());
    let (mut of_ironics, mut pauses) = (pool(), RequestBackoff::default());
    for pass in 0..PASSES {
        let Some(set) = provisioning.set.clone() else { return Ok(provisioning) };
        let key = Key::of(&set);
        let mut seen = Observed::new(Arc::new(set), &secrets, Vec::new());
        if let Some(ironic) = &seen.set.spec.ironic {
            seen.machines = list_nodes::list_nodes(&of_ironics, &seen.set, ironic, &secrets).await;
        }
        let now = clock::now() + SignedDuration::from_secs(ahead);
        recall(&pauses, &mut seen);
        let orders = orders(&seen, now);
        provisioning.requested.extend(orders.iter().map(word));
        if let Some(session) = of_ironics.of(&key.to_string()) {
            let asked = requests::send_requests(&session, orders, || true).await;
            pauses.note(&IronicScope::of(&seen.set), asked, now);
            recall(&pauses, &mut seen);
        }
        if deaths.contains(&pass) {
            (of_ironics, pauses) = (pool(), RequestBackoff::default());
            continue;
        }
        let plan = decide(&seen, None, now);
        for step in plan.all() {
            write(&mut provisioning, step)?;
        }
        if provisioning.set.as_ref().is_some_and(|it| !until.is_empty() && says(it, &until)) {
            return Ok(provisioning);
        }
        let longest = if at_its_pace { Duration::MAX } else { PAUSE };
        tokio::time::sleep(plan.requeue_after.unwrap_or(PAUSE).min(longest)).await;
    }
    let reported = provisioning.set.and_then(|it| it.status).context("no status")?;
    bail!("no end after {PASSES} passes: {}, asked {:?}", json!(reported), provisioning.requested)
}

fn recall(pauses: &RequestBackoff, seen: &mut Observed) {
    let nodes = seen.machines.as_ref().map(|it| it.nodes.as_slice()).unwrap_or_default();
    seen.refused = pauses.of(&IronicScope::of(&seen.set), nodes);
}

fn content(entries: BTreeMap<String, String>) -> operator_runtime::source_cache::Content {
    Values::new("1", entries.into_iter().map(|(key, it)| (key, it.into_bytes())).collect()).into()
}

/// Whether the set says all of that, of its present generation.
fn says(set: &BaremetalSet, until: &BTreeMap<String, String>) -> bool {
    let Some(status) = &set.status else { return false };
    let has = |(type_, desired): (&String, &String)| {
        find(&status.conditions, type_).is_some_and(|it| {
            it.message.starts_with(desired) || desired.split('|').any(|one| it.reason == one)
        })
    };
    status.observed_generation == set.metadata.generation && until.iter().all(has)
}

/// What the API server makes of a write.
fn write(provisioning: &mut Course, step: &Step) -> Result<()> {
    provisioning.n_writes += 1;
    let set = provisioning.set.as_mut().context("a write to a set that is gone")?;
    match &step.write {
        Write::AddFinalizer { finalizer } => set.finalizers_mut().push(finalizer.clone()),
        Write::Status { status, notices, .. } => {
            set.status = Some(serde_json::from_value(status.clone())?);
            provisioning.events.extend(notices.iter().map(|it| it.reason.clone()));
        }
        Write::RemoveFinalizer { rest, .. } => {
            set.finalizers_mut().clone_from(rest);
            if rest.is_empty() && set.metadata.deletion_timestamp.is_some() {
                provisioning.set = None;
            }
        }
        Write::Apply { .. } | Write::Create { .. } | Write::Delete { .. } => {
            bail!("a set writes to nothing but itself: {}", step.reason)
        }
    }
    Ok(())
}

/// Host and request, without secrets.
fn word(order: &Order) -> String {
    let path = order.request.path.rsplit('/').next().unwrap_or_default();
    let target = order.request.body.as_ref().and_then(|it| it.expose()["target"].as_str());
    let what = match (target, path == order.node) {
        (Some(target), _) => target,
        (None, true) => "patch",
        (None, false) => path,
    };
    format!("{} {what}", order.host)
}

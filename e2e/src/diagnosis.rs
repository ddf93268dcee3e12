//! Tests the diagnosis of a fault: it must not be reported before it happens, and completely soon
//! after.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::batch::v1::Job;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::describe::Description;
use crate::faults::{Fault, Kstatus};
use crate::transcript::NAMESPACE;
use crate::{Namespace, cluster, kstatus, run, transcript};

/// The time until a description must report a fact that Kubernetes knows.
const SOON: Duration = Duration::from_secs(5);
/// The same for machines, because Ironic is polled every minute.
const ASKED: Duration = Duration::from_secs(75);
/// The same for what nova's API shows, because operators report it after up to three readings.
const READ: Duration = Duration::from_mins(1);
/// The time between two looks at a description that changes with an operator's next poll.
const POLLED: Duration = Duration::from_secs(1);
/// The time limit for what is prepared and for a fact; neither is measured.
pub const PATIENCE: Duration = Duration::from_mins(10);
/// How many faults all tests together check at once; their pods share one machine.
const MAX_CONCURRENT: usize = 4;

static TURNS: Semaphore = Semaphore::const_new(MAX_CONCURRENT);
/// The limit for tests that only wait for their operator's next poll.
static IDLE_TURNS: Semaphore = Semaphore::const_new(MAX_CONCURRENT);
/// The same for what is read of nova's API: two lists at once, one of which needs no hosts.
static READING_TURNS: Semaphore = Semaphore::const_new(2 * MAX_CONCURRENT);

/// How soon faults must be reported, and the limit for how many are checked at once.
pub struct Pace {
    within: Duration,
    turns: &'static Semaphore,
}

static HOSTS: Pace = Pace { within: SOON, turns: &TURNS };
/// For faults between hosts and machines.
pub static MACHINES: Pace = Pace { within: ASKED, turns: &TURNS };
/// For faults whose injection waits until they are reported.
pub static IDLE: Pace = Pace { within: ASKED, turns: &IDLE_TURNS };
/// For what operators read of nova's API.
pub static READINGS: Pace = Pace { within: READ, turns: &READING_TURNS };

/// Checks faults, each in its own namespace. `before` creates the objects without the fault, and
/// `inject` returns once the fault is present. The error lists the faults that are not reported as
/// they should be.
pub async fn judge(
    faults: &[Fault],
    before: impl AsyncFn(&Namespace, &Fault) -> Result<()>,
    inject: impl AsyncFn(&Namespace, &Fault) -> Result<()>,
) -> Result<()> {
    judge_within(&HOSTS, faults, before, inject).await
}

/// The same at another pace.
pub async fn judge_within(
    Pace { within, turns }: &Pace,
    faults: &[Fault],
    before: impl AsyncFn(&Namespace, &Fault) -> Result<()>,
    inject: impl AsyncFn(&Namespace, &Fault) -> Result<()>,
) -> Result<()> {
    let (before, inject) = (&before, &inject);
    let outcomes = stream::iter(faults).map(async |fault| {
        let _turn = turns.acquire().await.ok()?;
        let failure = judged(*within, fault, before, inject).await.err()?;
        Some(format!("{}: {failure:#}", fault.name))
    });
    let outcomes: Vec<Option<String>> = outcomes.buffer_unordered(MAX_CONCURRENT).collect().await;
    let failed: Vec<String> = outcomes.into_iter().flatten().collect();
    if !failed.is_empty() {
        bail!("{} of {} faults:\n{}", failed.len(), faults.len(), failed.join("\n"));
    }
    Ok(())
}

async fn judged(
    within: Duration,
    fault: &Fault,
    before: impl AsyncFn(&Namespace, &Fault) -> Result<()>,
    inject: impl AsyncFn(&Namespace, &Fault) -> Result<()>,
) -> Result<()> {
    transcript::forget(fault);
    let ns = Namespace::new(&format!("fault-{}", fault.name)).await?;
    let words = fault.words.map(|it| it.replace(NAMESPACE, &ns.name));
    before(&ns, fault).await.context("the world before it")?;
    let earlier = Description::of(&ns.name, fault.kind, fault.object).await?;
    for word in &words {
        ensure!(!earlier.mentions(word), "{word:?} is told before the fact: {earlier:?}");
    }
    inject(&ns, fault).await.context("its injection")?;
    let told_first = told(within, &ns, (fault.kind, fault.object), &words).await?;
    agree(&ns, fault, (fault.kind, fault.object)).await?;
    let mut text = told_first.excerpt(&words);
    if let Some(also @ (kind, object)) = fault.also {
        // The fault is propagated from or to this object, so by now both report it.
        let told = told(SOON, &ns, also, &words).await?;
        agree(&ns, fault, also).await?;
        text += &format!("{kind} {object}:\n{}", told.excerpt(&words));
    }
    let text = transcript::normalised(&text, &ns.name);
    let text = cluster::with_aliases(&text);
    transcript::keep(fault, &text)?;
    transcript::compare(fault, &text)?;
    ns.done().await
}

/// Describes the object until it reports the fault, or fails after `within`.
async fn told(
    within: Duration,
    ns: &Namespace,
    (kind, object): (&str, &str),
    words: &[String],
) -> Result<Description> {
    let fact = Instant::now();
    // Each look costs a process: what an operator polls for is looked for less often.
    let pause = if within > SOON { POLLED } else { POLLED / 4 };
    let mut tick = tokio::time::interval(pause);
    loop {
        tick.tick().await;
        let begun = fact.elapsed();
        let found = Description::of(&ns.name, kind, object).await?;
        if found.tells(words) {
            return Ok(found);
        }
        let limit = within.as_secs();
        ensure!(begun < within, "{words:?} are not told within {limit} s: {found:?}");
    }
}

/// Asserts that kstatus, the `Ready` condition and `kubectl wait` agree about the object.
async fn agree(ns: &Namespace, fault: &Fault, (kind, object): (&str, &str)) -> Result<()> {
    let object = [ns.name.as_str(), &format!("{}/{object}", kind.to_lowercase())];
    let text = run("kubectl", &[&["get", "-o", "json", "-n"], &object[..]].concat()).await?;
    let found: Value = serde_json::from_str(&text)?;
    let of_tools = kstatus::kstatus(&found);
    ensure!(of_tools == fault.kstatus, "kstatus says {of_tools}: {found}");
    let is_ready = kstatus::is_ready(&found);
    // Its generation is that of its deletion, which `Ready` need not have observed.
    if of_tools == Kstatus::Terminating {
        return Ok(());
    }
    ensure!(is_ready == (of_tools == Kstatus::Current), "Ready is {is_ready}: {found}");
    // What is ready ends the wait at once, which takes kubectl a while on a busy machine.
    let limit = if is_ready { "--timeout=60s" } else { "--timeout=1s" };
    let wait = ["wait", "--for=condition=Ready", limit, "-n"];
    let waited = run("kubectl", &[&wait[..], &object].concat()).await;
    ensure!(waited.is_ok() == is_ready, "Ready is {is_ready}, kubectl wait says {waited:?}");
    Ok(())
}

/// Waits until a Job has ended, successfully or not.
pub async fn job_ends(ns: &Namespace) -> Result<()> {
    let has_ended = |it: &Job| {
        let conditions = it.status.as_ref().and_then(|it| it.conditions.as_ref());
        let ends = |type_: &str| ["Complete", "Failed"].contains(&type_);
        conditions.into_iter().flatten().any(|it| ends(&it.type_) && it.status == "True")
    };
    ns.wait_any::<Job>(PATIENCE, "a Job that has ended", has_ended).await.map(drop)
}

//! The decision on the audits of a scope: which run ends, which may go, and which hosts are next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Plan, Step, Target};
use operator_core::rejected_write::RejectedWrite;
use operator_core::shares::is_full_for;

use crate::compute::audit::condition::is_out_of_sync;
use crate::compute::audit::report::Verdict;
use crate::compute::audit_runs::build;
use crate::compute::audit_runs::observed::{
    Audit, AuditedHost, Observed, is_compute_settled, is_node_settled,
};
use crate::compute::audit_runs::schedule::slot_start;
use crate::shared_caches::audit_runs::{AFTER_DEPLOYMENT, OF_INTERVAL, is_open};

/// How many hosts share a run: so many of their results fit into its report.
const BATCH: usize = 50;
/// How many bytes of the report the names of hosts may take, each with its count.
const NAMES: usize = 3000;
const COUNT: usize = 24;
/// How long a scope waits before it looks for a free place again.
const PLACE_RETRY: Duration = Duration::from_secs(30);

/// Returns the plan for the audits of a scope.
///
/// # Guarantees
/// An audit that a deployment waits for is deleted, and at most one audit of the scope is open. The
/// newest audit of each host that has ended stays, for its result is read there.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if rejected.is_some() {
        // The condition of each compute stays as it is; the log has the cause.
        return Plan::with_resync();
    }
    plan.steps.extend(ended(seen));
    plan.steps.extend(superseded(seen));
    let requested: Vec<(&AuditedHost, Slot)> =
        seen.hosts.iter().filter_map(|it| Some((it, Slot::of(seen, it, now)?))).collect();
    for (_, slot) in &requested {
        plan.requeue_at(slot.start + slot.interval, now);
    }
    let due: Vec<&AuditedHost> = ready(seen, &requested, now, &mut plan);
    if due.is_empty() || seen.audits.iter().any(|it| is_open(&it.run)) {
        return plan;
    }
    if is_full_for(&seen.owner.namespace, &seen.n_open, seen.max_open) {
        plan.requeue_in(PLACE_RETRY);
        return plan;
    }
    plan.steps.extend(next_run(seen, &due, now));
    plan
}

/// The present interval of a host.
struct Slot {
    start: Timestamp,
    interval: SignedDuration,
}

impl Slot {
    fn of(seen: &Observed, host: &AuditedHost, now: Timestamp) -> Option<Self> {
        let interval = host.audited.request.policy()?.interval;
        let uid = seen.owner.uid.as_deref().unwrap_or_default();
        Some(Self { start: slot_start(interval, uid, now), interval })
    }

    /// Whether the audit of this interval is still to come.
    fn is_open(&self, host: &AuditedHost) -> bool {
        host.audited.last.as_ref().is_none_or(|last| last.created < self.start)
    }
}

/// Returns the hosts whose audit is due and possible now.
///
/// For half of an interval they wait until no host of the scope is deployed, so that a rollout over
/// many hosts leads to few audits.
fn ready<'a>(
    seen: &Observed,
    requested: &[(&'a AuditedHost, Slot)],
    now: Timestamp,
    plan: &mut Plan,
) -> Vec<&'a AuditedHost> {
    let is_quiet = !seen.hosts.iter().any(|it| it.is_busy);
    let mut ready = Vec::new();
    for (host, slot) in requested {
        let is_due = slot.is_open(host) || is_mended(host);
        if !is_due || host.is_busy || !is_settled(host) {
            continue;
        }
        let patience = slot.start + slot.interval / 2;
        if is_quiet || now >= patience {
            ready.push(*host);
        } else {
            plan.requeue_at(patience, now);
        }
    }
    ready
}

/// Returns whether the host was deployed again since its last audit found differences. What is found
/// then waits for the next interval, so that a host that no deployment mends is not deployed without
/// end.
fn is_mended(host: &AuditedHost) -> bool {
    host.audited.last.as_ref().is_some_and(|last| {
        let has_differed = matches!(last.verdict, Verdict::Differs(_));
        has_differed && !last.is_after_deployment && !is_out_of_sync(&host.compute, last)
    })
}

fn is_settled(host: &AuditedHost) -> bool {
    host.ssh.is_some()
        && host.sources.is_some()
        && is_node_settled(&host.node)
        && is_compute_settled(&host.compute)
}

/// Deletes audits that a deployment waits for, those with a host whose inputs have changed, and those
/// that are no longer requested.
fn ended(seen: &Observed) -> Vec<Step> {
    let requested = seen.hosts.iter().filter(|it| it.audited.request.policy().is_some());
    let requested: BTreeSet<String> = requested.map(|it| it.node.name_any()).collect();
    let has = |run: &Audit, hosts: &BTreeSet<String>| {
        run.run.spec.hosts.iter().any(|it| hosts.contains(&it.name))
    };
    // What is expected of a host comes from its inputs, deployed or not.
    let changed = seen.hosts.iter().filter(|it| !is_leaving(it) && !is_settled(it));
    let changed: BTreeSet<String> = changed.map(|it| it.node.name_any()).collect();
    let open = seen.audits.iter().filter(|it| is_open(&it.run) && !is_terminating(&*it.run));
    open.filter_map(|it| {
        let because = if it.is_in_the_way {
            "another run needs a host of this audit"
        } else if has(it, &changed) {
            "a host of this audit is not as it was deployed last"
        } else if has(it, &requested) {
            return None;
        } else {
            "no audits are requested any more"
        };
        Some(Step::delete(Target::of(&*it.run), because))
    })
    .collect()
}

/// A host that is being removed does not keep the others from their audit.
fn is_leaving(host: &AuditedHost) -> bool {
    is_terminating(&*host.node) || is_terminating(&*host.compute)
}

/// Deletes audits that have ended and are the newest of no host.
fn superseded(seen: &Observed) -> Vec<Step> {
    let uid_of = |it: &AuditedHost| it.audited.last.as_ref().map(|it| it.uid.clone());
    let newest: BTreeSet<String> = seen.hosts.iter().filter_map(uid_of).collect();
    let is_newest = |it: &Audit| it.run.uid().is_some_and(|it| newest.contains(&it));
    let over = seen.audits.iter().filter(|it| !is_open(&it.run) && !is_terminating(&*it.run));
    over.filter(|it| !is_newest(it))
        .map(|it| {
            Step::delete(Target::of(&*it.run), "each of its hosts has a newer audit, or none")
        })
        .collect()
}

/// Returns the step that creates the next run: over the first hosts whose runs are equal but for the
/// host.
fn next_run(seen: &Observed, due: &[&AuditedHost], now: Timestamp) -> Option<Step> {
    let mut groups: BTreeMap<(bool, String), Vec<&AuditedHost>> = BTreeMap::new();
    for host in due {
        groups.entry((is_mended(host), build::group(host))).or_default().push(host);
    }
    let ((is_after_deployment, _), mut hosts) = groups.into_iter().next()?;
    hosts.truncate(batch_size(&hosts));
    let kind = if is_after_deployment { AFTER_DEPLOYMENT } else { OF_INTERVAL };
    build::run(&seen.owner, &hosts, kind, now)
}

/// Returns how many of these hosts a run has: each has its name in the report if all of them differ.
fn batch_size(hosts: &[&AuditedHost]) -> usize {
    let mut n_bytes = 0;
    let fits = |it: &&&AuditedHost| {
        n_bytes += it.node.name_any().len() + COUNT;
        n_bytes <= NAMES
    };
    hosts.iter().take(BATCH).take_while(fits).count().max(1)
}

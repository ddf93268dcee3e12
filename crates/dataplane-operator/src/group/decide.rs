//! The judgement on a group: inventories, attempts, runs, and what the statuses say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::api::dataplane::{Node, Role, Service, ServiceRun};
use common::conditions::Finding;
use common::engine::build::{self, Reach};
use common::engine::chain::Need;
use common::engine::rollout::{Gate, Standing};
use common::engine::shards::{Shard, shards};
use common::engine::{Run, State, tidy};
use common::plan::{Kind, Plan, Step, Target, Write};
use common::refusal::{self, Refusal, WRITES_ACCEPTED};
use jiff::Timestamp;
use serde_json::json;

use crate::default_services;
use crate::effective::role_strategy;
use crate::group::build::{inventories, reach, recipe};
use crate::group::faults::{self, Fault};
use crate::group::host::{self, Judged};
use crate::group::observe::Observed;
use crate::group::status::{node_findings, node_step, role_step};

/// A look without a cause, for whatever no watch tells.
const RESYNC: Duration = Duration::from_mins(15);

/// Judges a group.
///
/// # Guarantees
/// Attempts stand in the statuses of their nodes before the runs that carry them are created.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    judge(seen, None, now)
}

/// What is told when a write was refused: the same judgement, with that said.
pub fn refused(seen: &Observed, refusal: &Refusal, now: Timestamp) -> Plan {
    let mut plan = judge(seen, Some(refusal), now);
    plan.steps.retain(|it| matches!(it.write, Write::Status { .. }));
    plan
}

fn judge(seen: &Observed, refusal: Option<&Refusal>, now: Timestamp) -> Plan {
    let mut plan = Plan { look_again: Some(RESYNC), ..Plan::default() };
    if seen.role.as_ref().is_some_and(|it| it.metadata.deletion_timestamp.is_some()) {
        return plan;
    }
    plan.steps.extend(missing_default_services(seen));
    if !plan.steps.is_empty() && refusal.is_none() {
        // Their creation wakes this group again; until then its services are not complete.
        return plan;
    }
    let runs: Vec<Run<'_>> = seen.runs.iter().filter_map(|it| Run::of(it)).collect();
    let group_faults = faults::of_group(seen);
    let hosts = judge_all(seen, &group_faults, &runs, now);
    plan.steps.extend(inventories(seen, &hosts));
    let role = seen.role.as_deref();
    let new_runs = role.map(|it| new_runs(seen, it, &hosts)).unwrap_or_default();
    let superseded = role.map(|_| tidy::superseded(&runs, &recorded(seen))).unwrap_or_default();
    let is_waiting = !new_runs.is_empty() || !superseded.is_empty();
    let refusal = refusal_finding(role, refusal, is_waiting);
    let mut judged: Vec<(Judged, Finding, Finding)> = Vec::new();
    for host in hosts {
        let findings = node_findings(&host, role, refusal.as_ref());
        let (ready, up_to_date) = (findings.ready.clone(), findings.up_to_date.clone());
        plan.steps.extend(node_step(seen, &host, findings, now));
        judged.push((host, ready, up_to_date));
    }
    plan.steps.extend(superseded);
    // A new run wakes the group, and the role then names it: one write instead of two.
    if new_runs.is_empty() || refusal.is_some() {
        plan.steps.extend(role_step(seen, &group_faults, refusal, &judged, now));
    }
    plan.steps.extend(new_runs);
    for (host, _, _) in &judged {
        if let State::Failed { retry_at: Some(at), .. } = &host.chain.state {
            plan.look_again_at(*at, now);
        }
    }
    plan
}

/// What is said of a refused write: of this one, or of the last one for as long as writes are still
/// to be made after the statuses. Those before the statuses have succeeded when a status is written.
fn refusal_finding(
    role: Option<&Role>,
    refusal: Option<&Refusal>,
    is_waiting: bool,
) -> Option<Finding> {
    let status = role?.status.as_ref();
    let previous = status.map(|it| it.conditions.as_slice()).unwrap_or_default();
    match refusal {
        Some(refusal) => Some(refusal.finding(WRITES_ACCEPTED, previous)),
        None if is_waiting => refusal::told(previous),
        None => None,
    }
}

/// Judges all hosts, and holds back those that the role's limits do not let begin.
fn judge_all(seen: &Observed, faults: &[Fault], runs: &[Run<'_>], now: Timestamp) -> Vec<Judged> {
    let judge = |node: &Arc<Node>, hold| host::judge(seen, node, faults, runs, hold, now);
    let hosts: Vec<Judged> = seen
        .nodes
        .iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none())
        .map(|it| judge(it, None))
        .collect();
    let limits = seen.limits();
    if !limits.is_set() {
        return hosts;
    }
    let standings: Vec<Standing> = hosts.iter().map(Judged::standing).collect();
    let mut gate = Gate::of(&limits, &standings);
    hosts
        .into_iter()
        .map(|host| match host.chain.state {
            State::NeedsRun(_) => match gate.admit(host.standing()) {
                Ok(()) => host,
                Err(hold) => judge(&host.node, Some(hold)),
            },
            _ => host,
        })
        .collect()
}

/// Default services that the role lists and that do not exist; a human's own are left alone.
fn missing_default_services(seen: &Observed) -> Vec<Step> {
    let names = seen.role.as_ref().map(|it| it.spec.services.as_slice()).unwrap_or_default();
    names
        .iter()
        .filter(|it| !seen.services.contains_key(*it))
        .filter_map(|it| default_services::find(it).map(|service| (it, service)))
        .map(|(name, service)| {
            let target = Target {
                kind: Kind::of::<Service>(),
                namespace: seen.namespace.clone(),
                name: name.clone(),
                uid: None,
            };
            let object = json!({ "metadata": {}, "spec": service.spec });
            Step::create(target, object, "/kind", "a role lists this default service")
        })
        .collect()
}

fn new_runs(seen: &Observed, role: &Role, judged: &[Judged]) -> Vec<Step> {
    let mut needs: BTreeMap<String, Need> = BTreeMap::new();
    let mut hosts: BTreeMap<&str, &Judged> = BTreeMap::new();
    for host in judged {
        hosts.insert(&host.effective.name, host);
        if let State::NeedsRun(need) = &host.chain.state {
            needs.insert(host.effective.name.clone(), need.clone());
        }
    }
    let reach: BTreeMap<String, Reach> =
        hosts.iter().map(|(name, host)| ((*name).to_owned(), reach(seen, host))).collect();
    let strategy = role_strategy(seen.plane.as_deref(), Some(role));
    let create = |shard: &Shard| {
        let first = shard.attempts.keys().next()?;
        let recipe = recipe(seen, role, &shard.service, hosts.get(first.as_str())?)?;
        Some(build::run(&recipe, shard, &reach))
    };
    shards(needs, strategy.batch_size()).iter().filter_map(create).collect()
}

/// What the API server has recorded, by host.
fn recorded(seen: &Observed) -> BTreeMap<&str, &[ServiceRun]> {
    let name = |it: &'_ std::sync::Arc<common::api::dataplane::Node>| it.metadata.name.is_some();
    seen.nodes
        .iter()
        .filter(|it| name(it))
        .map(|it| {
            let services = it.status.as_ref().map(|it| it.services.as_slice());
            (it.metadata.name.as_deref().unwrap_or_default(), services.unwrap_or_default())
        })
        .collect()
}

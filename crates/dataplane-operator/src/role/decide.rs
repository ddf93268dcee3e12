//! The evaluation of a group: its inventories, attempts, runs and statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Condition, ConditionDraft};
use api::dataplane::Role;
use jiff::Timestamp;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Plan, REST_OF_WRITES, Step, WRITES_PER_PASS};
use operator_core::rejected_write::{self, RejectedWrite};
use operator_core::run_engine::batches::Batch;
use operator_core::run_engine::runs_by_host::RunsByHost;
use operator_core::run_engine::{Run, run_gc};

use crate::host::machines::request;
use crate::host::{networks, runs};
use crate::role::arrivals::Arrivals;
use crate::role::build::{connection, inventories, inventories_of_leaving, run_template};
use crate::role::evaluate::{EvaluatedHost, evaluate};
use crate::role::inventory_shards::node_inventory_name;
use crate::role::machine_request::MachineRequest;
use crate::role::memory::Next;
use crate::role::node_status::{NodeFindings, node_findings, node_step};
use crate::role::observed::Observed;
use crate::role::resolve::{Resolved, resolve};
use crate::role::resolved::{ResolvedHost, recorded_services};
use crate::role::rollout::GroupHost;
use crate::role::status::role_step;
use crate::role::summary::HostSummary;
use crate::role::{deletion, finalizer, last_looks, rollout, secret_vars};

/// Evaluates a group.
///
/// # Guarantees
/// Attempts are recorded in the statuses of their nodes before the runs that carry them are
/// created.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let mut plan = Plan::with_resync();
    let resolved = resolve(seen, now);
    let request = resolved.machine_request.as_ref();
    let set = request.and_then(|it| deletion::set_step(seen, it, &resolved.hosts));
    let pass = Pass { seen, resolved: &resolved, rejected, writes_set: set.is_some(), now };
    let missing =
        seen.defaults.missing(&seen.namespace, seen.listed(), &seen.services, &seen.unreadable);
    plan.steps.extend(let_go(seen, request));
    let deployed = if seen.role.as_ref().is_some_and(|it| is_terminating(&**it)) {
        plan.steps.extend(pass.leaving(pass.rejection(false).as_ref()));
        Deployed { found: Vec::new(), is_whole: true }
    } else if missing.is_empty() || rejected.is_some() {
        let Some(deployed) = pass.deploy(&mut plan) else {
            let mut again = Plan::with_resync();
            again.requeue_in(Duration::ZERO);
            return again;
        };
        deployed
    } else {
        plan.steps.extend(missing);
        // Their creation enqueues this group again; until then its services are incomplete.
        return plan;
    };
    if deployed.is_whole {
        last_looks::add(&mut plan, seen, now);
        // Last, so that a rejected set of machines does not affect hosts that already have theirs.
        plan.steps.extend(set);
    }
    pass.requeue(&mut plan, &deployed.found);
    plan
}

/// Returns the steps about what the group needs no more, whatever its hosts do.
fn let_go(seen: &Observed, request: Option<&MachineRequest<'_>>) -> Vec<Step> {
    let mut steps = Vec::new();
    if request.is_none() {
        steps.extend(deletion::abandonment(seen));
    }
    steps.extend(deletion::leftovers(seen));
    steps.extend(finalizer::removals(seen, request));
    steps
}

/// A resolved group with what has become of its last plan.
struct Pass<'a> {
    seen: &'a Observed,
    resolved: &'a Resolved<'a>,
    rejected: Option<&'a RejectedWrite>,
    /// Whether the set of machines is written at the end.
    writes_set: bool,
    now: Timestamp,
}

/// What was found of a host that was evaluated in this pass.
struct Found<'a> {
    /// The place of its node in the group.
    place: usize,
    findings: NodeFindings<'a>,
    summary: Arc<HostSummary>,
}

/// What a pass does about the hosts of a group.
struct Deployed<'a> {
    /// Those that were evaluated in this pass.
    found: Vec<Found<'a>>,
    /// Whether all writes about them are made; nothing else may begin before that.
    is_whole: bool,
}

impl<'a> Pass<'a> {
    /// Returns the condition of a rejected write; `is_waiting` says whether other writes than that
    /// of the set follow the statuses.
    fn rejection(&self, is_waiting: bool) -> Option<ConditionDraft> {
        let is_waiting = is_waiting || self.writes_set;
        rejected_write::condition(self.rejected, previous(self.seen), is_waiting)
    }

    /// Returns the inventories that hosts lack whose nodes go, and the statuses of nodes and a role whose
    /// deletion waits for machines.
    fn leaving(&self, rejected: Option<&ConditionDraft>) -> Vec<Step> {
        let request = self.resolved.machine_request.as_ref();
        let hosts = &self.resolved.hosts;
        let mut steps = inventories_of_leaving(self.seen, hosts);
        let statuses = |it| deletion::status_steps(self.seen, it, hosts, rejected, self.now);
        steps.extend(request.map(statuses).unwrap_or_default());
        steps
    }

    /// Plans the deployment of the hosts; `None` where hosts that are known from earlier passes are to be
    /// evaluated first.
    fn deploy(&self, plan: &mut Plan) -> Option<Deployed<'a>> {
        let Self { seen, resolved, now, .. } = *self;
        let runs: Vec<Run<'_>> = seen.runs.iter().filter_map(|it| Run::of(it)).collect();
        let of_hosts = RunsByHost::of(&runs);
        let hosts = self.hosts(&of_hosts);
        let counts = rollout::counts(&hosts);
        let admitted = rollout::admitted(seen, hosts, &counts);
        let hosts = admitted.map_err(|outdated| seen.recalled.forget(outdated)).ok()?;
        let present: Vec<&ResolvedHost<'_>> =
            resolved.hosts.iter().filter(|it| !is_terminating(it.node)).collect();
        let superseded = superseded(seen, &runs);
        let shards = secret_vars::mounted_shards(&present);
        let arrivals = Arrivals::of(seen, now);
        let (new_runs, mounted) = self.new_runs(&hosts, &shards, &arrivals);
        if let Some(until) = arrivals.until {
            plan.requeue_at(until, now);
        }
        let is_partial = seen.recalled.is_partial();
        let is_planned = !new_runs.is_empty() || !superseded.is_empty();
        let waits = is_partial || is_planned || arrivals.until.is_some();
        let is_reportable = seen.parent().is_some() || resolved.machine_request.is_some();
        let rejected = self.rejection(waits).filter(|_| is_reportable);
        let (hosts, found) = self.findings(hosts, &of_hosts, rejected.as_ref());
        let described = found.iter().map(|it| (it.findings.evaluated.host, &it.summary));
        plan.independent.extend(resolved.certificates.steps());
        let of_hosts: Vec<Step> = [
            withdrawn(seen, &runs, &hosts, counts.is_failing()),
            // An object that a finalizer keeps is written after the finalizer.
            finalizer::additions(seen, &present),
            inventories(seen, described, &hosts, arrivals.until.map(|_| &mounted)),
            self.leaving(rejected.as_ref()),
            // What is recorded of a run is written before it is deleted, and before it is created.
            found.iter().filter_map(|it| node_step(seen, &it.findings, &shards, now)).collect(),
            superseded,
        ]
        .concat();
        // A report of a rejected write makes the statuses alone; hosts that are known and wait follow in
        // the next pass.
        let most = if self.rejected.is_some() { usize::MAX } else { WRITES_PER_PASS };
        let is_whole = of_hosts.len() <= most && !is_partial;
        if self.rejected.is_none() {
            keep(seen, &found, of_hosts.split_at(most.min(of_hosts.len())), is_whole);
        } else {
            seen.recalled.forget_waiting();
        }
        plan.steps.extend(of_hosts.into_iter().take(most));
        let new_runs = if is_whole { new_runs } else { Vec::new() };
        if !is_whole {
            plan.requeue_in(REST_OF_WRITES);
        }
        // A new run enqueues the group again, and the role then names it: one write instead of two. Where
        // there are several batches, each pass may have another run, and the status would become old.
        let is_status_due =
            new_runs.is_empty() || rejected.is_some() || hosts.len() > seen.batch_size();
        plan.steps.extend(new_runs);
        if is_status_due {
            plan.steps.extend(role_step(seen, resolved, rejected.clone(), &hosts, now));
        }
        Some(Deployed { found, is_whole })
    }

    /// Returns the hosts of the nodes that stay, in their order.
    fn hosts(&self, runs: &RunsByHost<'_>) -> Vec<GroupHost<'a>> {
        let Self { seen, resolved, now, .. } = *self;
        let mut evaluated = resolved.hosts.iter();
        let host = |place| {
            if let Some(known) = seen.recalled.host(place) {
                return Some(GroupHost::Known(known));
            }
            let host = evaluated.next()?;
            let evaluate = || evaluate(host, &resolved.problems, runs, now);
            (!is_terminating(host.node)).then(|| GroupHost::evaluated(place, evaluate()))
        };
        (0..seen.nodes.len()).filter_map(host).collect()
    }

    /// Returns the summaries of the hosts, and what was found of those that were evaluated in this pass.
    fn findings(
        &self,
        hosts: Vec<GroupHost<'a>>,
        runs: &RunsByHost<'_>,
        rejected: Option<&ConditionDraft>,
    ) -> (Vec<Arc<HostSummary>>, Vec<Found<'a>>) {
        let (role, request) = (self.seen.role.as_deref(), self.resolved.machine_request.as_ref());
        let mut found = Vec::new();
        let summary = |host| match host {
            GroupHost::Known(known) => Arc::clone(known),
            GroupHost::Evaluated(place, host, turn) => {
                let findings = node_findings(*host, role, request, rejected);
                let runs = runs.of_host(&findings.evaluated.host.effective.name);
                let summary = Arc::new(findings.summary(role, turn, runs));
                found.push(Found { place, findings, summary: Arc::clone(&summary) });
                summary
            }
        };
        let summaries = hosts.into_iter().map(summary).collect();
        (summaries, found)
    }

    /// Returns the creations of the runs that are due, and the parts of the role's inventory that they
    /// mount; `shards` are the parts with variables from Secrets.
    fn new_runs(
        &self,
        hosts: &[GroupHost<'_>],
        shards: &BTreeSet<usize>,
        arrivals: &Arrivals,
    ) -> (Vec<Step>, BTreeSet<usize>) {
        let seen = self.seen;
        let (mut needs, mut connections) = (BTreeMap::new(), BTreeMap::new());
        let mut by_name: BTreeMap<&str, &ResolvedHost<'_>> = BTreeMap::new();
        for host in hosts {
            // A known host needs no run, or waits until all is written.
            let GroupHost::Evaluated(_, it, _) = host else { continue };
            let name = &it.host.effective.name;
            needs.extend(it.sequence.needed_run().map(|run| (name.clone(), run.clone())));
            connections.insert(name.clone(), connection(it));
            by_name.insert(name, it.host);
        }
        let mut mounted = BTreeSet::new();
        let template = |batch: &Batch| {
            let members = batch.attempts.keys().filter_map(|it| by_name.get(it.as_str()).copied());
            let is_first = seen.listed().first() == Some(&batch.service);
            if arrivals.are_awaited(members.clone().map(|it| it.node), is_first) {
                return None;
            }
            let host = members.clone().next()?;
            mounted.insert(host.shard);
            let service = (batch.service.as_str(), &**seen.services.get(&batch.service)?);
            let own =
                members.filter_map(|it| Some((&*it.effective.name, it.effective.tls.as_ref()?)));
            let tls = self.resolved.certificates.mounts(seen, service, &own.collect());
            run_template(seen, &batch.service, host, shards, tls)
        };
        let runs = runs::new_runs(needs, &connections, seen.batch_size(), template);
        (runs.into_iter().map(|it| it.step).collect(), mounted)
    }

    /// Requeues the group for changes that no informer reports.
    fn requeue(&self, plan: &mut Plan, found: &[Found<'_>]) {
        if let Some(expires) = self.seen.recalled.expires() {
            plan.requeue_at(expires, self.now);
        }
        for EvaluatedHost { host, sequence, .. } in found.iter().map(|it| &it.findings.evaluated) {
            if let Some(at) = sequence.retry_at() {
                plan.requeue_at(at, self.now);
            }
            request::requeue(plan, &host.machine);
            if networks::are_unserved(&host.problems) {
                plan.requeue_in(networks::CRD_POLL_INTERVAL);
            }
        }
        let request = self.resolved.machine_request.as_ref();
        // No watch reports its arrival.
        if self.resolved.certificates.are_unserved()
            || request.is_some_and(MachineRequest::has_migrating_nodes)
        {
            plan.requeue_in(request::CRD_POLL_INTERVAL);
        }
    }
}

/// Returns the deletions of runs whose results stand in the status of their parent.
fn superseded(seen: &Observed, runs: &[Run<'_>]) -> Vec<Step> {
    if seen.parent().is_none() {
        return Vec::new();
    }
    let finished = runs.iter().filter(|it| it.is_finished());
    let carried: BTreeSet<&str> =
        finished.flat_map(|it| it.attempts.keys()).map(String::as_str).collect();
    let nodes = seen.nodes.iter();
    let recorded =
        nodes.filter_map(|it| Some((it.metadata.name.as_deref()?, recorded_services(it))));
    run_gc::superseded(runs, &recorded.filter(|it| carried.contains(it.0)).collect())
}

/// Returns the present conditions of the object that reports a rejected write: the role, or a node
/// without one.
fn previous(seen: &Observed) -> &[Condition] {
    let of_node = || seen.nodes.first().map(|it| it.conditions());
    seen.role.as_deref().map(Role::conditions).or_else(of_node).unwrap_or_default()
}

/// Keeps what was found of hosts about which nothing is written in this pass; `steps` are those of this
/// pass and those of later ones, and `is_whole` says whether runs are created.
fn keep(seen: &Observed, found: &[Found<'_>], steps: (&[Step], &[Step]), is_whole: bool) {
    let targets = |steps: &[Step]| -> BTreeSet<String> {
        steps.iter().map(|it| it.target.name.clone()).collect()
    };
    let (now, later) = (targets(steps.0), targets(steps.1));
    let keep = |Found { place, findings, summary }: &Found<'_>| {
        let inventory = node_inventory_name(&summary.name);
        let is_among =
            |them: &BTreeSet<String>| them.contains(&summary.name) || them.contains(&inventory);
        let host = &findings.evaluated;
        let next = if is_among(&later) {
            Next::Write
        } else if host.sequence.needed_run().is_some() {
            Next::Run
        } else {
            Next::Nothing
        };
        let is_kept = !is_among(&now) && host.stays() && !(is_whole && next == Next::Run);
        is_kept.then(|| (*place, Arc::clone(summary), next))
    };
    seen.recalled.keep(&seen.nodes, &seen.runs, found.iter().filter_map(keep).collect());
}

/// Returns the steps that withdraw waiting runs that none of their hosts needs any more.
///
/// The inputs have changed, the deployment was switched off, the host is gone, or a failure pauses
/// what has not begun.
fn withdrawn(
    seen: &Observed,
    runs: &[Run<'_>],
    hosts: &[Arc<HostSummary>],
    is_failing: bool,
) -> Vec<Step> {
    if seen.parent().is_none() || runs.iter().all(Run::has_begun) {
        return Vec::new();
    }
    let is_paused = seen.limits().pause_on_failure && is_failing;
    let by_name: BTreeMap<&str, &HostSummary> =
        hosts.iter().map(|it| (it.name.as_str(), &**it)).collect();
    let needs = |run: &Run<'_>, name: &str| {
        by_name.get(name).is_some_and(|it| {
            it.wanted_runs.contains(&run.name()) && !(is_paused && it.may_be_paused)
        })
    };
    run_gc::withdrawn(runs, needs)
}

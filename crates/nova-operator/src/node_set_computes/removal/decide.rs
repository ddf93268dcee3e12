//! The decisions on hosts that leave a node set: what is done next about each, and which are let
//! go.

use std::collections::BTreeSet;

use api::conditions::{ConditionDraft, first_names};
use api::dataplane::service_run::ServiceRun;
use api::dataplane::{HostReadiness, HostState, NodeSet};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use nova_config::annotations::SKIP_CLEANUP;
use nova_config::conditions::HOSTS_REMOVED;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{address_of, recorded_trust, taken_out};
use operator_core::plan::{EventDraft, Step, Target};
use operator_core::run_engine::outcome::FailureReason;
use operator_core::run_engine::service_sequence::NeededRun;
use operator_core::run_engine::{Run, last_run, run_gc};
use operator_runtime::source_cache::Digests;

use crate::cell::leftovers;
use crate::cleanup::attempts::{
    self, Evaluation, HostCleanup, NOVA_CLEANUP, Next, identity, is_another_s,
};
use crate::cleanup::build::Extent;
use crate::cleanup::inspection::{MIGRATE, held_by, still_up};
use crate::cleanup::nova_steps::{NovaSteps, is_done, is_empty, never_listed};
use crate::drain::held::EVACUATE;
use crate::drain::order::{HostOrder, OwnService, Remove, Stop};
use crate::drain::progress::HostProgress;
use crate::node_set_computes::claims::{self, Claim};
use crate::node_set_computes::removal::build::{Reached, cleanup};
use crate::node_set_computes::removal::observed::{Removals, TerminatingHost};
use crate::nova_health::ServiceHealth;
use crate::reasons;
use crate::registration::has_registered_since;

/// The pause before the readings are looked at again of a host that they do not show: they enqueue
/// nothing while they stay the same.
const REREAD: SignedDuration = SignedDuration::from_secs(15);
/// How many hosts an Event names.
const NAMED: usize = 5;

/// What follows for the hosts that leave.
#[derive(Debug, Default)]
pub struct Decision {
    /// Those that are let go now, by their names in the inventory.
    pub released: BTreeSet<String>,
    /// Those on which nova-compute was stopped, or cannot be, by their names in the inventory.
    pub stopped: BTreeSet<String>,
    /// Those that record another owner, by their names in the inventory.
    pub another_s: BTreeSet<String>,
    /// Those on which nova-compute was stopped, so that this operator owns them.
    pub cleaned: BTreeSet<String>,
    /// What holds each of the others, by its name in the inventory.
    pub held: Vec<(String, ConditionDraft)>,
    /// Those that are let go now although nova may keep a service of theirs, as it names them:
    /// nothing shows that it is theirs.
    pub left: Vec<String>,
    /// The runs that are created or deleted.
    pub steps: Vec<Step>,
    /// When the next attempt of a run is due.
    pub retry_at: Option<Timestamp>,
}

impl Decision {
    fn retry(&mut self, at: Timestamp) {
        self.retry_at = Some(self.retry_at.map_or(at, |it| it.min(at)));
    }
}

/// Returns what follows; `report` has the host finalizers, and is absent where no host leaves.
pub fn decide(
    set: &NodeSet,
    removals: &Removals,
    report: Option<&HostReadiness>,
    now: Timestamp,
) -> Decision {
    let mut decision = Decision { steps: unneeded(removals).collect(), ..Decision::default() };
    for of in &removals.terminating {
        if is_released(removals, of) || is_done(Some(&of.progress)) {
            decision.released.insert(of.name.clone());
            continue;
        }
        if let Some(draft) = contested(set, removals, of) {
            decision.held.push((of.name.clone(), draft));
            continue;
        }
        if !of.is_reported && !removals.is_skipped {
            decision.held.push((of.name.clone(), unreported(set, of)));
            continue;
        }
        let evaluated = evaluate(set, removals.ssh.as_ref(), of, now);
        if evaluated.services.iter().any(is_another_s) {
            decision.another_s.insert(of.name.clone());
        }
        let is_stopped = is_stopped(&evaluated);
        if is_stopped == Some(true) {
            decision.cleaned.insert(of.name.clone());
        }
        if is_stopped.is_some() {
            decision.stopped.insert(of.name.clone());
            if is_unproven(of) && of.progress.is_empty() {
                decision.released.insert(of.name.clone());
                decision.left.extend(has_service(of).then(|| of.host.clone()));
                continue;
            }
        }
        decision.held.push((of.name.clone(), held(set, removals, of, &evaluated)));
        // No reading enqueues a node set for a host that it does not list any more.
        if of.cell.is_none() {
            decision.retry(now + REREAD);
        }
        let runs: Vec<Run<'_>> = of.runs.iter().filter_map(|it| Run::of(it)).collect();
        decision.steps.extend(last_run::superseded(&runs, &of.name));
        if of.progress.forbids_runs() && !removals.is_skipped {
            decision.steps.extend(run_gc::withdrawn(&runs, |_, _| false));
        }
        match evaluated.next {
            Next::Run { need, was_key_refused } if may_stop(of) => {
                let step = report
                    .and_then(|report| run(set, removals, report, (of, need), was_key_refused));
                decision.steps.extend(step);
            }
            Next::Wait(Some(at)) => {
                decision.retry(at);
            }
            Next::Run { .. } | Next::Wait(None) | Next::Conclude => {}
        }
    }
    decision
}

/// Returns the deletions of runs for hosts that do not leave any more.
fn unneeded(removals: &Removals) -> impl Iterator<Item = Step> {
    let going = removals.unneeded_runs.iter().filter(|it| !is_terminating(&***it));
    let because = "its host does not leave the node set any more";
    going.map(move |it| Step::delete(Target::of(&**it), because))
}

/// Returns what is to be done in nova about a host that leaves, or `None` for nothing.
pub fn host_order(
    set: &NodeSet,
    removals: &Removals,
    of: &TerminatingHost,
    now: Timestamp,
) -> Option<HostOrder> {
    let is_contested = matches!(of.claim, Claim::Contested(_));
    if is_released(removals, of) || is_contested || removals.is_skipped || !of.is_reported {
        return None;
    }
    let evaluated = evaluate(set, removals.ssh.as_ref(), of, now);
    if is_unproven(of) {
        return Some(HostOrder::InspectForRemoval(stop(&evaluated)));
    }
    Some(match is_stopped(&evaluated) {
        Some(is_stopped) => {
            let service = of.record.service_id.clone().map_or(OwnService::None, OwnService::Is);
            let compute_id = of.record.compute_id.clone();
            let is_unmapped = of.mapping.is_settled();
            let awaits_agents = attempts::stops_agents(&(set.uid(), &of.name), &evaluated.services);
            HostOrder::Remove(Remove {
                service,
                compute_id,
                is_stopped,
                is_unmapped,
                awaits_agents,
            })
        }
        None => HostOrder::DrainForRemoval(of.drain.clone(), of.record.compute_id.clone()),
    })
}

/// Whether a host is let go, whatever nova still has of it.
fn is_released(removals: &Removals, of: &TerminatingHost) -> bool {
    // Where its cell is known, nova is asked whether the host is empty, and it is stopped; where that
    // cell is gone, what other ones have says nothing of its nova.
    let is_unknown = is_in_no_cell(of) && of.is_reported && is_read_since(of);
    removals.namespace_goes
        || matches!(of.claim, Claim::Other(_))
        || (is_unknown && is_unproven(of))
        || (removals.is_skipped && of.is_on_record)
}

/// Whether no nova that is read has ever shown a service of the host.
fn is_in_no_cell(of: &TerminatingHost) -> bool {
    let is_not_found = of.health.service == ServiceHealth::NotFound;
    of.cell.is_none() && of.record.cell.is_empty() && is_not_found
}

/// Whether nova was read since the last deployment on the host, which may have started nova-compute.
fn is_read_since(of: &TerminatingHost) -> bool {
    let missing_since = of.health.missing_since;
    missing_since.is_some() && !has_registered_since(of.deployed_at, missing_since)
}

/// Whether nova's service of the host may be another's, so that nothing of it is changed: no
/// deployment of nova is known to have succeeded on the host.
const fn is_unproven(of: &TerminatingHost) -> bool {
    matches!(of.claim, Claim::Unproven)
}

fn has_service(of: &TerminatingHost) -> bool {
    of.health.service != ServiceHealth::NotFound
}

/// Returns the Event on services that nova keeps, although the hosts are let go.
pub fn left_in_nova(decision: &Decision) -> Option<EventDraft> {
    let names = first_names(&decision.left, NAMED);
    let note = format!(
        "Nova may keep the services of hosts that are let go: {names}. No deployment of nova by this \
         node set is known to have succeeded there, so they may be another owner's. If they are the \
         hosts', delete them: `openstack compute service list --service nova-compute` shows the ids \
         for `openstack compute service delete`."
    );
    let reason = reasons::node::LEFT_IN_NOVA.word.to_owned();
    (!decision.left.is_empty()).then_some(EventDraft { warning: true, reason, note })
}

/// Whether nova has nothing on the host that stopping nova-compute there would end.
fn may_stop(of: &TerminatingHost) -> bool {
    if is_unproven(of) { of.progress.is_empty() } else { is_empty(Some(&of.progress)) }
}

/// Returns what holds a host under whose name another object has deployed nova too; `None` where none
/// has, or the user lets the host go.
fn contested(set: &NodeSet, removals: &Removals, of: &TerminatingHost) -> Option<ConditionDraft> {
    let Claim::Contested(other) = &of.claim else { return None };
    let text = format!(
        "{}, so nothing is removed: take the host out of that one; or, if the service is its, let the \
         hosts of this node set that leave go, all of them. {}",
        claims::contested(&of.host, other),
        skip(set)
    );
    (!removals.is_skipped).then(|| reasons::drain::HOST_CONTESTED.condition(HOSTS_REMOVED, text))
}

/// Returns whether nova-compute was stopped on the host; `None` while that is not decided.
fn is_stopped(evaluated: &Evaluation) -> Option<bool> {
    let is_stopped = evaluated.condition.reason == reasons::cleanup::HOST_CLEANED.word;
    matches!(evaluated.next, Next::Conclude).then_some(is_stopped)
}

/// Returns how far the stop of a host is that nova is only asked about.
fn stop(evaluated: &Evaluation) -> Stop {
    match is_stopped(evaluated) {
        None => Stop::Due,
        Some(is_stopped) if is_stopped || evaluated.services.iter().any(is_another_s) => Stop::Done,
        Some(_) => Stop::Failed,
    }
}

/// Returns the command to let the host go, in a sentence.
fn skip(set: &NodeSet) -> String {
    format!(
        "To let the hosts go without it: kubectl annotate --overwrite -n {} \
         openstackdataplanenodeset/{} {SKIP_CLEANUP}=true",
        set.namespace().unwrap_or_default(),
        set.name_any()
    )
}

/// Returns what the cleanup of a host takes away: of one whose service may be another's, the agents
/// of neutron may be too.
fn extent(set: &NodeSet, of: &TerminatingHost) -> Extent {
    let runs = of.runs.iter().filter_map(|it| Run::of(it));
    let begun: Vec<String> =
        runs.filter_map(|it| Some(it.attempts.get(&of.name)?.hash.clone())).collect();
    let begun = begun.iter().map(String::as_str);
    attempts::extent(&(set.uid(), &of.name), begun, !is_unproven(of))
}

/// Evaluates the attempts to stop nova-compute, which the runs alone record.
fn evaluate(
    set: &NodeSet,
    ssh: Option<&Digests>,
    of: &TerminatingHost,
    now: Timestamp,
) -> Evaluation {
    let runs: Vec<Run<'_>> = of.runs.iter().filter_map(|it| Run::of(it)).collect();
    let before = of.record.is_another_s.then_some(FailureReason::HostNotOwned);
    let recorded = last_run::newest((NOVA_CLEANUP, &of.name), &runs, before);
    let recorded: Vec<ServiceRun> = recorded.into_iter().collect();
    let ssh = Digests::ssh_secret(&set.spec.node_template.ansible_ssh_private_key_secret, ssh);
    let cleanup = HostCleanup {
        name: &of.name,
        host: &of.host,
        identity: identity(&(set.uid(), &of.name), extent(set, of)),
        recorded: &recorded,
        ssh: (ssh.name, ssh.version),
        trust: &recorded_trust(set, &of.name),
        skip: &skip(set),
        left: "",
        deletes_service: !is_unproven(of),
    };
    cleanup.evaluate(&runs, now)
}

/// Returns the run of an attempt; `None` until dataplane-operator has reported where the host is.
fn run(
    set: &NodeSet,
    removals: &Removals,
    report: &HostReadiness,
    (of, need): (&TerminatingHost, NeededRun),
    was_key_refused: bool,
) -> Option<Step> {
    let name = of.name.as_str();
    // The inventory has lost a host without an address: then the run fails, and says so.
    let state = || taken_out(set).get(name).map(|it| it.state);
    let lost = || (state() == Some(HostState::Terminating)).then(|| of.host.clone());
    let address = address_of(set, name).or_else(lost)?;
    let secret = &set.spec.node_template.ansible_ssh_private_key_secret;
    let ssh = Digests::ssh_secret(secret, removals.ssh.as_ref());
    let extent = extent(set, of);
    cleanup(set, report, need, &Reached { name, address: &address, ssh, extent, was_key_refused })
}

/// Returns what holds a host that the status of its node set does not have as terminating.
fn unreported(set: &NodeSet, of: &TerminatingHost) -> ConditionDraft {
    let text = format!(
        "Host {} is removed from nova once no deployment of OpenStackDataPlaneNodeSet {} is under way \
         and its status has the host as Terminating.",
        of.host,
        set.name_any()
    );
    reasons::removal::WAITING_FOR_DEPLOYMENT.condition(HOSTS_REMOVED, text)
}

/// Returns what holds a host of which no cell is known to have the service.
fn without_cell(of: &TerminatingHost, skip: &str) -> ConditionDraft {
    let host = &of.host;
    if is_in_no_cell(of) && is_read_since(of) {
        let text = format!("{} {skip}", never_listed(host));
        return reasons::removal::NEVER_LISTED.condition(HOSTS_REMOVED, text);
    }
    if is_in_no_cell(of) {
        let text = format!(
            "Whether nova has a service of host {host} is read twice after the last deployment of nova \
             there has ended, because nova-compute may register late. {skip}"
        );
        return reasons::drain::NOT_READ.condition(HOSTS_REMOVED, text);
    }
    let text = match of.record.cell.as_str() {
        "" => format!(
            "No NovaCell of the namespace is known to have the service of host {host}: the namespace \
             has none, or NovaAPIReady of each has the cause. {skip}"
        ),
        cell => format!(
            "Host {host} was deployed in NovaCell {cell}, which is gone, and no other NovaCell of \
             the namespace is read from the same nova: create it again, or one with the same \
             Keystone and region. {skip}"
        ),
    };
    reasons::drain::NOVA_NOT_ANSWERING.condition(HOSTS_REMOVED, text)
}

/// Returns that nova has servers under the name of a host without a proof; `None` where it has none,
/// or the host has a proof.
fn servers_under_name(
    of: &TerminatingHost,
    is_stopped: Option<bool>,
    skip: &str,
) -> Option<ConditionDraft> {
    let HostProgress::Occupied(found) = &of.progress else { return None };
    let way_on = if is_stopped == Some(true) { EVACUATE } else { MIGRATE };
    let held = held_by(&of.host, found, way_on);
    let text = format!("No deployment of nova is known to have succeeded there, but {held} {skip}");
    is_unproven(of).then(|| reasons::drain::WAITING.condition(HOSTS_REMOVED, text))
}

/// Returns what holds a host: the first step that is not done.
fn held(
    set: &NodeSet,
    removals: &Removals,
    of: &TerminatingHost,
    evaluated: &Evaluation,
) -> ConditionDraft {
    let host = &of.host;
    if removals.is_skipped && of.is_list_full {
        let namespace = set.namespace().unwrap_or_default();
        let text = leftovers::full(host, &namespace, &of.record.cell);
        return reasons::cleanup::LEFTOVERS_FULL.condition(HOSTS_REMOVED, text);
    }
    if removals.is_skipped {
        let text = format!(
            "Host {host} is let go without its removal, once what nova has of it is in \
             status.leftovers of NovaCell {}.",
            of.record.cell
        );
        return reasons::cleanup::CLEANUP_SKIPPED.condition(HOSTS_REMOVED, text);
    }
    let skip = skip(set);
    let Some((cell, secret)) = &of.cell else {
        return without_cell(of, &skip);
    };
    let is_stopped = is_stopped(evaluated);
    if let Some(draft) = servers_under_name(of, is_stopped, &skip) {
        return draft;
    }
    let steps = NovaSteps {
        host,
        skip: &skip,
        secret,
        cell: &cell.name,
        progress: Some(&of.progress),
        mapping: &of.mapping,
        previous: &[],
        was_listed: true,
        is_concluded: is_stopped.is_some(),
    };
    let after = steps.steps();
    let draft = match is_stopped {
        None if may_stop(of) => None,
        Some(_) if is_unproven(of) => {
            let still_up = still_up(host, &of.progress, &skip);
            Some(still_up.unwrap_or_else(|| steps.drained(of.drain.clone())))
        }
        None => Some(steps.drained(of.drain.clone())),
        Some(_) => after.iter().find(|it| !it.holds()).cloned(),
    };
    let draft = draft.unwrap_or_else(|| evaluated.condition.clone()).with_type(HOSTS_REMOVED);
    if is_stopped != Some(false) {
        return draft;
    }
    let text = format!("{} {}", evaluated.condition.message, draft.message);
    draft.with_message(text)
}

//! Which runs may start: no two on one host at a time, and no namespace blocks another.
//!
//! The functions are pure and work on views of the runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use operator_core::shares::is_full_for;

/// How a run in another namespace is reported: without its name and namespace.
const FOREIGN: &str = "a run in another namespace";

/// What the scheduler needs to know about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID of the object.
    pub uid: String,
    /// When it was created.
    pub created: Timestamp,
    /// Its hosts: canonical address → how the host is reported.
    pub hosts: BTreeMap<String, String>,
    /// Its state.
    pub state: State,
}

/// The scheduler's view of a run's state.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It changes its hosts, or may begin to at any moment.
    Active,
    /// It waits for admission.
    Queued {
        /// The leader's term in its status, if any.
        term: Option<String>,
        /// What its status says it waits for.
        reported: Option<String>,
        /// Whether it existed before this leader's term.
        inherited: bool,
    },
}

/// How many runs may be active at the same time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// In all namespaces together.
    pub total: usize,
    /// In each namespace; `None` means no bound of its own.
    pub per_namespace: Option<usize>,
}

/// What to write to the run at that index of the list.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum SchedulingDecision {
    /// The leader's term, so that no write of an earlier leader takes effect any more.
    Stamp(usize),
    /// Its admission.
    Admit(usize),
    /// What it waits for.
    Wait(usize, String),
}

/// Evaluates all runs together.
///
/// # Guarantees
/// No run is admitted that shares an address with an active run or with one admitted here, in any
/// namespace, or with an older queued run of its namespace, so that a run with many hosts is not
/// overtaken forever. A queued run never blocks other namespaces.
/// Among the namespaces with runs that could start, the one with the fewest active runs comes
/// first.
/// Nothing is admitted before every inherited run carries this leader's term.
/// Afterwards at most the limits' total is active, unless more were before. While one namespace has
/// more than three quarters of it, the others together still get a quarter.
pub fn admit(runs: &[View], limits: Limits, term: &str) -> Vec<SchedulingDecision> {
    let stamps: Vec<SchedulingDecision> = runs
        .iter()
        .enumerate()
        .filter(|(_, it)| it.lacks_stamp(term))
        .map(|(idx, _)| SchedulingDecision::Stamp(idx))
        .collect();
    if !stamps.is_empty() {
        return stamps;
    }
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|idx| (runs[*idx].created, &runs[*idx].uid));
    let (active, queued): (Vec<usize>, Vec<usize>) =
        order.into_iter().partition(|idx| runs[*idx].state == State::Active);
    let mut holders = Holders::new(runs);
    for idx in &active {
        holders.occupy(*idx);
    }
    let mut lines: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for idx in &queued {
        if holders.of(*idx).is_empty() {
            lines.entry(&runs[*idx].namespace).or_default().push_back(*idx);
        }
        holders.queue(*idx);
    }
    fill(lines, limits, &mut holders);
    let judge = |idx: usize| {
        if holders.running.contains(&idx) {
            return Some(SchedulingDecision::Admit(idx));
        }
        let is_full = holders.is_full_for(&runs[idx].namespace, limits);
        Some(SchedulingDecision::Wait(idx, holders.wait_text(idx, is_full)?))
    };
    queued.into_iter().filter_map(judge).collect()
}

/// A run that waits for an active one of another namespace.
///
/// It is for cluster administrators, who may know both names.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ForeignWait {
    /// The waiting run, as `namespace/name`.
    pub run: String,
    /// The run that it waits for, as `namespace/name`.
    pub holder: String,
    /// The first host of both, as the waiting run names it.
    pub host: String,
}

/// Returns all waits of runs for those of other namespaces, each pair once.
pub fn foreign_waits(runs: &[View]) -> BTreeSet<ForeignWait> {
    let mut holders = Holders::new(runs);
    let is_active = |it: &usize| runs[*it].state == State::Active;
    (0..runs.len()).filter(is_active).for_each(|it| holders.occupy(it));
    let waits = |idx: usize| {
        let foreign = move |it: &(usize, &str)| runs[it.0].namespace != runs[idx].namespace;
        let wait = move |(holder, host): (usize, &str)| ForeignWait {
            run: runs[idx].path(),
            holder: runs[holder].path(),
            host: host.to_owned(),
        };
        holders.of(idx).into_iter().filter(foreign).map(wait)
    };
    (0..runs.len()).filter(|it| !is_active(it)).flat_map(waits).collect()
}

/// Admits runs while there are free slots, always from the namespace with the fewest active runs.
///
/// `lines` has the runs of each namespace that could start, the oldest first.
fn fill<'a>(
    mut lines: BTreeMap<&'a str, VecDeque<usize>>,
    limits: Limits,
    holders: &mut Holders<'a>,
) {
    loop {
        // Slots only get fewer: a namespace without a free one gets none later.
        lines.retain(|namespace, line| !line.is_empty() && !holders.is_full_for(namespace, limits));
        let turns = lines.iter().filter_map(|(namespace, line)| {
            let run = &holders.runs[*line.front()?];
            Some((holders.n_running(namespace), run.created, &run.uid, *namespace))
        });
        let next = turns.min();
        let Some((.., namespace)) = next else { return };
        let Some(idx) = lines.get_mut(namespace).and_then(VecDeque::pop_front) else { continue };
        // Another namespace's run may have taken one of its hosts meanwhile.
        if holders.of(idx).is_empty() {
            holders.occupy(idx);
        }
    }
}

/// Which run holds each address.
struct Holders<'a> {
    runs: &'a [View],
    /// The runs that are active or admitted here.
    running: BTreeSet<usize>,
    /// How many of them each namespace has.
    n_running: BTreeMap<&'a str, usize>,
    /// Address → the running one that holds it, for all namespaces.
    active: BTreeMap<&'a str, usize>,
    /// Namespace and address → the oldest queued run, which holds it within that namespace.
    queued: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> Holders<'a> {
    fn new(runs: &'a [View]) -> Self {
        Self {
            runs,
            running: BTreeSet::new(),
            n_running: BTreeMap::new(),
            active: BTreeMap::new(),
            queued: BTreeMap::new(),
        }
    }

    fn occupy(&mut self, idx: usize) {
        self.running.insert(idx);
        *self.n_running.entry(&self.runs[idx].namespace).or_default() += 1;
        for address in self.runs[idx].hosts.keys() {
            self.active.entry(address).or_insert(idx);
        }
    }

    fn queue(&mut self, idx: usize) {
        let View { namespace, hosts, .. } = &self.runs[idx];
        for address in hosts.keys() {
            self.queued.entry((namespace, address)).or_insert(idx);
        }
    }

    /// Returns the runs that a run waits for, each once, with how the host is reported.
    fn of(&self, idx: usize) -> Vec<(usize, &'a str)> {
        let View { namespace, hosts, .. } = &self.runs[idx];
        let holder = |(address, host): (&'a String, &'a String)| {
            let queued = || self.queued.get(&(namespace.as_str(), address.as_str()));
            let holder = *self.active.get(address.as_str()).or_else(queued)?;
            (holder != idx).then_some((holder, host.as_str()))
        };
        let mut seen = BTreeSet::new();
        hosts.iter().filter_map(holder).filter(|(idx, _)| seen.insert(*idx)).collect()
    }

    /// Returns how many runs of a namespace are running.
    fn n_running(&self, namespace: &str) -> usize {
        self.n_running.get(namespace).copied().unwrap_or_default()
    }

    /// Returns whether no further run of a namespace may start.
    fn is_full_for(&self, namespace: &str, limits: Limits) -> bool {
        is_full_for(namespace, &self.n_running, limits.total)
            || limits.per_namespace.is_some_and(|it| self.n_running(namespace) >= it)
    }

    /// Returns what a run waits for; `None` when the status says so already.
    ///
    /// Without free slots only running runs are named, because everything waits then.
    fn wait_text(&self, idx: usize, is_full: bool) -> Option<String> {
        let run = &self.runs[idx];
        let State::Queued { reported, .. } = &run.state else { return None };
        let text = |(holder, host): &(usize, &str)| run.waits_for(&self.runs[*holder], host);
        let blockers = self.of(idx);
        // A reported cause is kept as long as it is true: one write per cause.
        if blockers.iter().any(|it| reported.as_ref() == Some(&text(it))) {
            return None;
        }
        let is_named = |it: &&(usize, &str)| !is_full || self.running.contains(&it.0);
        blockers.iter().find(is_named).map(text)
    }
}

impl View {
    fn lacks_stamp(&self, ours: &str) -> bool {
        match &self.state {
            State::Active => false,
            State::Queued { term, inherited, .. } => *inherited && term.as_deref() != Some(ours),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn waits_for(&self, other: &Self, host: &str) -> String {
        let who = if other.namespace == self.namespace { &other.name } else { FOREIGN };
        format!("{who} (host {host})")
    }
}

/// Returns the condition's message of a waiting run.
pub fn message(waiting_for: &str) -> String {
    // A run's name has no white space.
    let what = if waiting_for.starts_with(FOREIGN) { "" } else { "run " };
    format!("Waits for {what}{waiting_for}")
}

#[cfg(test)]
#[path = "scheduling_policy_tests.rs"]
mod tests;

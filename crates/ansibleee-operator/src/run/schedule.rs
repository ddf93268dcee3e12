//! Which runs may start: two never touch one host at the same time. Arithmetic on plain views.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// What the scheduler needs to know of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Identity of the object.
    pub uid: String,
    /// When it was made.
    pub created: Timestamp,
    /// The hosts that it touches: address in its canonical form → how the host is told.
    pub hosts: BTreeMap<String, String>,
    /// Where it stands.
    pub state: State,
}

/// Where a run stands, for the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It touches its hosts, or may do so at any moment.
    Active,
    /// It wants to start.
    Queued {
        /// The leader that last wrote to it.
        term: Option<String>,
        /// What it was told to wait for.
        told: Option<String>,
        /// Whether it was there before this leader's term.
        inherited: bool,
    },
}

/// How many runs may be active at the same time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// In all namespaces together.
    pub total: usize,
    /// In each namespace, where that is bounded: no namespace then takes all.
    pub per_namespace: Option<usize>,
}

/// How many more runs may start.
struct Room<'a> {
    total: usize,
    per_namespace: Option<usize>,
    active: BTreeMap<&'a str, usize>,
}

impl<'a> Room<'a> {
    fn beside(active: impl Iterator<Item = &'a View>, limits: Limits) -> Self {
        let Limits { total, per_namespace } = limits;
        let mut room = Self { total, per_namespace, active: BTreeMap::new() };
        active.for_each(|it| room.take(it));
        room
    }

    fn take(&mut self, run: &'a View) {
        self.total = self.total.saturating_sub(1);
        *self.active.entry(&run.namespace).or_default() += 1;
    }

    fn is_full_for(&self, run: &View) -> bool {
        let active = self.active.get(run.namespace.as_str()).copied().unwrap_or_default();
        self.total == 0 || self.per_namespace.is_some_and(|limit| active >= limit)
    }
}

/// What is to be written to the run at that place of the list.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Verdict {
    /// The leader's term, so that no write of an earlier leader can take effect any more.
    Stamp(usize),
    /// It may start.
    Admit(usize),
    /// What it waits for.
    Wait(usize, String),
}

/// Judges all runs at once.
///
/// # Guarantees
/// No run is admitted that shares an address with an active one, with one admitted here, or with an
/// older one that waits: a run over many hosts is not overtaken for ever.
/// Nothing is admitted before every inherited run carries this leader's term.
/// At most as many runs as the limits say are active afterwards, unless more were before.
pub fn admit(runs: &[View], limits: Limits, term: &str) -> Vec<Verdict> {
    let stamps: Vec<Verdict> = runs
        .iter()
        .enumerate()
        .filter(|(_, it)| it.lacks_stamp(term))
        .map(|(idx, _)| Verdict::Stamp(idx))
        .collect();
    if !stamps.is_empty() {
        return stamps;
    }
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|idx| (runs[*idx].created, &runs[*idx].uid));
    let (active, queued): (Vec<usize>, Vec<usize>) =
        order.into_iter().partition(|idx| runs[*idx].state == State::Active);
    let mut room = Room::beside(active.iter().map(|idx| &runs[*idx]), limits);
    // Who holds an address: the active ones first, then, in their order, those that wait.
    let mut held: BTreeMap<&str, usize> = BTreeMap::new();
    for idx in &active {
        hold(&mut held, runs, *idx);
    }
    let mut verdicts = Vec::new();
    let mut running: BTreeSet<usize> = active.into_iter().collect();
    for idx in queued {
        let run = &runs[idx];
        let blockers = run.blockers(&held);
        let is_full = room.is_full_for(run);
        if blockers.is_empty() && !is_full {
            room.take(run);
            running.insert(idx);
            verdicts.push(Verdict::Admit(idx));
        } else if let Some(text) = wait_text(runs, run, &blockers, is_full, &running) {
            verdicts.push(Verdict::Wait(idx, text));
        }
        hold(&mut held, runs, idx);
    }
    verdicts
}

fn hold<'a>(held: &mut BTreeMap<&'a str, usize>, runs: &'a [View], idx: usize) {
    for address in runs[idx].hosts.keys() {
        held.entry(address).or_insert(idx);
    }
}

/// What a run is told to wait for, where that is not what it was told before.
///
/// While the limit is reached only the active ones are named: everything waits then.
fn wait_text(
    runs: &[View],
    run: &View,
    blockers: &[(usize, &str)],
    is_full: bool,
    running: &BTreeSet<usize>,
) -> Option<String> {
    let State::Queued { told, .. } = &run.state else { return None };
    let text = |(idx, address): &(usize, &str)| run.waits_for(&runs[*idx], address);
    // What it was told holds on as long as it is true: one write per cause.
    if blockers.iter().any(|it| told.as_ref() == Some(&text(it))) {
        return None;
    }
    blockers.iter().find(|(idx, _)| !is_full || running.contains(idx)).map(text)
}

impl View {
    fn lacks_stamp(&self, ours: &str) -> bool {
        match &self.state {
            State::Active => false,
            State::Queued { term, inherited, .. } => *inherited && term.as_deref() != Some(ours),
        }
    }

    /// The runs that hold one of this run's addresses, each once, with the address.
    fn blockers<'a>(&'a self, held: &BTreeMap<&str, usize>) -> Vec<(usize, &'a str)> {
        let mut seen = BTreeSet::new();
        let holder = |it: &'a String| held.get(it.as_str()).map(|idx| (*idx, it.as_str()));
        self.hosts.keys().filter_map(holder).filter(|(idx, _)| seen.insert(*idx)).collect()
    }

    fn waits_for(&self, other: &Self, address: &str) -> String {
        let host = self.hosts.get(address).map_or(address, String::as_str);
        let name = if other.namespace == self.namespace {
            other.name.clone()
        } else {
            format!("{}/{}", other.namespace, other.name)
        };
        format!("{name} (host {host})")
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;

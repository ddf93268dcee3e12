//! Which runs may start: two never touch one host at the same time, and no namespace stops another.
//! Arithmetic on plain views.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

/// How a run of another namespace is told: neither by its name nor by its namespace.
const FOREIGN: &str = "a run of another namespace";

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

impl Limits {
    /// How many places a namespace never takes from the others: a quarter, and at least one where
    /// there are two.
    ///
    /// It is also by how many the total may be passed, while one namespace holds them all.
    pub fn reserve(self) -> usize {
        (self.total / 4).max(1).min(self.total.saturating_sub(1))
    }
}

/// How many more runs may start.
struct Room<'a> {
    limits: Limits,
    active: BTreeMap<&'a str, usize>,
}

impl<'a> Room<'a> {
    fn beside(active: impl Iterator<Item = &'a View>, limits: Limits) -> Self {
        let mut room = Self { limits, active: BTreeMap::new() };
        active.for_each(|it| room.take(it));
        room
    }

    fn take(&mut self, run: &'a View) {
        *self.active.entry(&run.namespace).or_default() += 1;
    }

    /// How many runs of a namespace are active.
    fn active(&self, namespace: &str) -> usize {
        self.active.get(namespace).copied().unwrap_or_default()
    }

    /// Whether no further run of a namespace may start.
    ///
    /// What other namespaces hold beyond their part counts for nothing, so that there are places for
    /// this one however many they took while they were alone.
    fn is_full_for(&self, namespace: &str) -> bool {
        let part = self.limits.total - self.limits.reserve();
        let others = self.active.iter().filter(|(name, _)| **name != namespace);
        let others: usize = others.map(|(_, n)| (*n).min(part)).sum();
        let own = self.active(namespace);
        own + others >= self.limits.total || self.limits.per_namespace.is_some_and(|it| own >= it)
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
/// No run is admitted that shares an address with an active one or with one admitted here, of
/// whatever namespace, or with an older one of its namespace that waits: a run over many hosts is not
/// overtaken for ever. A run that waits holds nothing back in other namespaces.
/// Of the namespaces whose runs could start, the one with the fewest active runs comes first.
/// Nothing is admitted before every inherited run carries this leader's term.
/// At most as many runs as the limits say are active afterwards, unless more were before; while one
/// namespace has more than three quarters of them, the others together have a quarter all the same.
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
    let mut holders = Holders::new(runs);
    for idx in &active {
        holders.hold(*idx);
    }
    let mut room = Room::beside(active.iter().map(|idx| &runs[*idx]), limits);
    let mut lines: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for idx in &queued {
        if holders.of(*idx).is_empty() {
            lines.entry(&runs[*idx].namespace).or_default().push_back(*idx);
        }
        holders.queue(*idx);
    }
    fill(runs, lines, &mut room, &mut holders);
    let judge = |idx: usize| {
        if holders.running.contains(&idx) {
            return Some(Verdict::Admit(idx));
        }
        let is_full = room.is_full_for(&runs[idx].namespace);
        Some(Verdict::Wait(idx, holders.wait_text(idx, is_full)?))
    };
    queued.into_iter().filter_map(judge).collect()
}

/// A run that waits for an active one of another namespace: for administrators of the cluster, who may
/// know both names.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ForeignWait {
    /// Which run waits, as `namespace/name`.
    pub run: String,
    /// Which run it waits for, as `namespace/name`.
    pub holder: String,
    /// The first host of both, as the one that waits has it.
    pub host: String,
}

/// All runs that wait for those of other namespaces, each pair once.
pub fn foreign_waits(runs: &[View]) -> BTreeSet<ForeignWait> {
    let mut holders = Holders::new(runs);
    let is_active = |it: &usize| runs[*it].state == State::Active;
    (0..runs.len()).filter(is_active).for_each(|it| holders.hold(it));
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

/// Lets in what there is room for, always one of the namespace that has the fewest active runs.
///
/// `lines` are the runs of each namespace that could start, the oldest in front.
fn fill<'a>(
    runs: &'a [View],
    mut lines: BTreeMap<&'a str, VecDeque<usize>>,
    room: &mut Room<'a>,
    holders: &mut Holders<'a>,
) {
    loop {
        // Room only shrinks: who has none now gets none later.
        lines.retain(|namespace, line| !line.is_empty() && !room.is_full_for(namespace));
        let turns = lines.iter().filter_map(|(namespace, line)| {
            let run = &runs[*line.front()?];
            Some((room.active(namespace), run.created, &run.uid, *namespace))
        });
        let next = turns.min();
        let Some((.., namespace)) = next else { return };
        let Some(idx) = lines.get_mut(namespace).and_then(VecDeque::pop_front) else { continue };
        // Another namespace's run may have got one of its hosts meanwhile.
        if holders.of(idx).is_empty() {
            room.take(&runs[idx]);
            holders.hold(idx);
        }
    }
}

/// Who holds an address.
struct Holders<'a> {
    runs: &'a [View],
    /// The runs that are active or let in here.
    running: BTreeSet<usize>,
    /// Those of them that have it, for everybody.
    active: BTreeMap<&'a str, usize>,
    /// The oldest that waits, by namespace: for that namespace.
    queued: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> Holders<'a> {
    fn new(runs: &'a [View]) -> Self {
        Self { runs, running: BTreeSet::new(), active: BTreeMap::new(), queued: BTreeMap::new() }
    }

    fn hold(&mut self, idx: usize) {
        self.running.insert(idx);
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

    /// The other runs for which a run waits, each once, with how the host is told.
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
    /// What a run is told to wait for, where that is not what it was told before.
    ///
    /// While there is no room only those that run are named: everything waits then.
    fn wait_text(&self, idx: usize, is_full: bool) -> Option<String> {
        let run = &self.runs[idx];
        let State::Queued { told: reported, .. } = &run.state else { return None };
        let text = |(holder, host): &(usize, &str)| run.waits_for(&self.runs[*holder], host);
        let blockers = self.of(idx);
        // What it was told holds on as long as it is true: one write per cause.
        if blockers.iter().any(|it| reported.as_ref() == Some(&text(it))) {
            return None;
        }
        let is_told = |it: &&(usize, &str)| !is_full || self.running.contains(&it.0);
        blockers.iter().find(is_told).map(text)
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

/// The condition's message of a run that waits for that.
pub fn message(waiting_for: &str) -> String {
    // No run has a name with white space in it.
    let what = if waiting_for.starts_with(FOREIGN) { "" } else { "run " };
    format!("Waits for {what}{waiting_for}")
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;

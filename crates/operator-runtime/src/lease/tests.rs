//! Tests of the election's decisions, and of two replicas over one record under arbitrary delays.

use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::*;
use tokio::time::Instant;

use super::*;

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn timing() -> Timing {
    Timing::of(secs(30))
}

fn held_by(holder: &str) -> LeaseView {
    let holder = Some(holder.to_owned()).filter(|it| !it.is_empty());
    LeaseView { holder, duration: secs(30), transitions: 3, resource_version: "7".into() }
}

#[track_caller]
fn check(lease: Option<&LeaseView>, since_change: Duration, stopping: bool, expected: Step) {
    let seen = Seen { lease, since_change, stopping };
    assert_eq!(next(&seen, "me", &timing()), expected);
}

#[test]
fn a_lease_that_is_missing_or_released_is_taken_at_once() {
    check(None, secs(0), false, Step::Acquire);
    check(Some(&held_by("")), secs(0), false, Step::Acquire);
}

#[test]
fn a_foreign_lease_is_taken_only_after_its_whole_duration_without_a_change() {
    check(Some(&held_by("you")), secs(0), false, Step::Wait(secs(2)));
    check(Some(&held_by("you")), secs(29), false, Step::Wait(secs(1)));
    check(Some(&held_by("you")), secs(30), false, Step::Acquire);
}

#[test]
fn the_holder_renews_every_ten_seconds() {
    check(Some(&held_by("me")), secs(4), false, Step::Wait(secs(6)));
    check(Some(&held_by("me")), secs(10), false, Step::Renew);
}

#[test]
fn a_process_that_ends_releases_what_it_holds_and_takes_nothing() {
    check(Some(&held_by("me")), secs(0), true, Step::Release);
    check(Some(&held_by("you")), secs(90), true, Step::Wait(secs(2)));
    check(None, secs(90), true, Step::Wait(secs(2)));
}

#[test]
fn a_term_ends_before_others_may_take_over() {
    let timing = timing();
    let mut elector = Elector::new("me", timing);
    elector.observed(None, secs(0));
    elector.wrote(held_by("me"), secs(5));
    assert_eq!(elector.claim(), Some(("me/3".into(), secs(5) + timing.deadline)));
    assert!(timing.deadline < timing.lease);
}

#[test]
fn a_renewal_whose_answer_was_lost_is_made_again() {
    let mut elector = Elector::new("me", timing());
    elector.wrote(held_by("me"), secs(0));
    let renewed = LeaseView { resource_version: "8".into(), ..held_by("me") };
    elector.observed(Some(renewed), secs(14));
    assert_eq!(elector.claim(), Some(("me/3".into(), secs(20))));
    assert_eq!(elector.step(secs(14)), Step::Renew);
}

#[test]
fn whoever_sees_another_holder_leads_no_more() {
    let mut elector = Elector::new("me", timing());
    elector.wrote(held_by("me"), secs(0));
    elector.observed(Some(held_by("you")), secs(1));
    assert_eq!(elector.claim(), None);
}

#[tokio::test(start_paused = true)]
async fn a_term_is_not_trusted_after_its_end() {
    let until = Some(Instant::now() + secs(20));
    let leading = Leadership::Leading { term: "me/1".into(), until };
    assert_eq!(leading.term(), Some("me/1"));
    tokio::time::advance(secs(20)).await;
    assert_eq!(leading.term(), None);
}

/// The next event of the simulation.
enum Happening {
    Turn { who: usize },
    Arrives { who: usize, write: Option<LeaseView>, sent: u64 },
    Answered { who: usize, written: bool, record: Option<LeaseView>, sent: u64 },
}

/// Two electors over one record. `delays` gives the duration of every request and response in
/// milliseconds; a delay of 0 loses the response.
struct Simulation {
    electors: Vec<Elector>,
    /// Whether an elector's record was read or written since its last failure.
    fresh: Vec<bool>,
    record: Option<LeaseView>,
    writes: u64,
    queue: BTreeMap<(u64, usize), Happening>,
    delays: std::vec::IntoIter<u16>,
    order: usize,
    /// Who led, from when, until when.
    terms: Vec<(usize, u64, u64)>,
}

impl Simulation {
    fn run(delays: Vec<u16>) -> Self {
        let mut simulation = Self {
            electors: ["a", "b"].map(|it| Elector::new(it, timing())).to_vec(),
            fresh: vec![false; 2],
            record: None,
            writes: 0,
            queue: BTreeMap::new(),
            delays: delays.into_iter(),
            order: 0,
            terms: Vec::new(),
        };
        simulation.push(0, Happening::Turn { who: 0 });
        simulation.push(0, Happening::Turn { who: 1 });
        while simulation.delays.len() > 0 {
            let Some(((now, _), happening)) = simulation.queue.pop_first() else { break };
            simulation.happen(now, happening);
        }
        simulation
    }

    fn push(&mut self, at: u64, happening: Happening) {
        self.order += 1;
        self.queue.insert((at, self.order), happening);
    }

    fn delay(&mut self) -> u64 {
        self.delays.next().unwrap_or(1).into()
    }

    fn happen(&mut self, now: u64, happening: Happening) {
        match happening {
            Happening::Turn { who } => {
                let step = self.electors[who].step(Duration::from_millis(now));
                let write = self.fresh[who].then(|| self.electors[who].record_for(step)).flatten();
                let arrival = now + self.delay();
                self.push(arrival, Happening::Arrives { who, write, sent: now });
            }
            Happening::Arrives { who, write, sent } => {
                let written = write.is_some_and(|it| self.commit(it));
                let record = self.record.clone();
                match self.delay() {
                    0 => {
                        self.fresh[who] = false;
                        self.push(now + 4000, Happening::Turn { who });
                    }
                    delay => {
                        let answer = Happening::Answered { who, written, record, sent };
                        self.push(now + delay, answer);
                    }
                }
            }
            Happening::Answered { who, written, record, sent } => {
                let pause = self.answered(who, now, record, written.then_some(sent));
                self.push(now + pause, Happening::Turn { who });
            }
        }
    }

    /// The replica's side: absorbs a response and returns the delay until its next turn.
    fn answered(
        &mut self,
        who: usize,
        now: u64,
        record: Option<LeaseView>,
        written: Option<u64>,
    ) -> u64 {
        let (time, elector) = (Duration::from_millis(now), &mut self.electors[who]);
        match (record, written) {
            (Some(record), Some(sent)) => elector.wrote(record, Duration::from_millis(sent)),
            (record, _) => elector.observed(record, time),
        }
        self.fresh[who] = true;
        self.note(who, now);
        match self.electors[who].step(time) {
            Step::Wait(pause) => u64::try_from(pause.as_millis()).unwrap(),
            Step::Acquire | Step::Renew | Step::Release => 0,
        }
    }

    /// The server's side: a write succeeds only on the version that its author had read.
    fn commit(&mut self, wanted: LeaseView) -> bool {
        let version = self.record.as_ref().map(|it| it.resource_version.clone());
        if wanted.resource_version != version.unwrap_or_default() {
            return false;
        }
        self.writes += 1;
        self.record = Some(LeaseView { resource_version: self.writes.to_string(), ..wanted });
        true
    }

    fn note(&mut self, who: usize, now: u64) {
        if let Some((_, until)) = self.electors[who].claim() {
            let until = u64::try_from(until.as_millis()).unwrap();
            if now < until {
                self.terms.push((who, now, until));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn there_are_never_two_holders(delays in prop::collection::vec(
        prop_oneof![4 => 1..50_u16, 2 => 0..4000_u16, 1 => 0..60_000_u16], 10..200,
    )) {
        let terms = Simulation::run(delays).terms;
        for (one, from, until) in &terms {
            for (other, others_from, others_until) in &terms {
                let apart = others_until <= from || until <= others_from;
                prop_assert!(one == other || apart, "{terms:?}");
            }
        }
    }
}

#[test]
fn without_faults_one_replica_leads_with_six_writes_a_minute() {
    let simulation = Simulation::run(vec![5; 2000]);
    let (leader, _, last) = *simulation.terms.last().unwrap();
    assert!(simulation.terms.iter().all(|it| it.0 == leader));
    let minutes = last / 60_000;
    assert!(minutes > 10 && simulation.writes <= minutes * 6 + 6, "{}", simulation.writes);
}

//! The real scheduler and controller in a simulated cluster, with 50 runs on 10 hosts.
//!
//! Everything is in memory. Informers lag, leaders change, and writes of an old leader arrive late.

mod leader;
mod world;

use std::collections::BTreeMap;

use jiff::Timestamp;
use leader::Leader;
use operator_core::shares::reserve;
use proptest::prelude::*;
use world::World;

use super::scheduling_policy::Limits;

const RUNS: usize = 50;
const HOSTS: usize = 10;
/// More than any history needs.
const PATIENCE: usize = 400;

/// A random number generator that is reproducible by its seed.
struct Dice(u64);

impl Dice {
    /// Returns a number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let n = u64::try_from(n).unwrap();
        usize::try_from((mixed ^ (mixed >> 31)) % n).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// What may differ from one history to another.
#[derive(Clone, Copy, Debug)]
struct Story {
    seed: u64,
    limits: Limits,
    /// How often another leader takes over.
    handovers: usize,
    /// Whether users delete runs, also while they are active.
    has_deletions: bool,
}

/// The result of a history.
#[derive(Debug, Default, PartialEq)]
struct Tale {
    /// The runs in the order of their admission, with their leader.
    admissions: Vec<(String, usize)>,
    /// How many late admissions of old leaders got a conflict.
    fenced: usize,
    /// The most runs that were active at once.
    most_active: usize,
}

/// Simulates a history from the first run to the end of the last; a violated invariant fails the
/// test.
fn play(story: Story) -> Tale {
    let mut dice = Dice(story.seed);
    let mut world = World::new(story);
    let mut leader = Leader::elected(&world, 1);
    // What an old leader had decided when it was paused, and its knowledge.
    let mut late: Vec<(Leader, operator_core::plan::Step)> = Vec::new();
    let mut handovers = story.handovers;
    let mut made = 0;
    while made < RUNS || handovers > 0 {
        world.tick();
        match dice.below(12) {
            0 | 1 if made < RUNS => {
                world.make_run(made, &mut dice);
                made += 1;
            }
            0..=4 => leader.hear_something(&world, &mut dice),
            5 | 6 => leader.schedule(&mut world),
            7 | 8 => leader.look_at_some_run(&mut world, &mut dice),
            9 if story.has_deletions && dice.one_in(6) => {
                if world.delete_some_run(&mut dice) {
                    leader.hear_of_pods(&world);
                }
            }
            9 if handovers > 0 && made > RUNS / (handovers + 1) && dice.one_in(3) => {
                let decided = leader.decided(&world);
                // An old leader without a decision when it was paused would prove nothing.
                if decided.iter().any(world::is_admission) || made == RUNS {
                    handovers -= 1;
                    late.extend(decided.into_iter().map(|it| (leader.clone(), it)));
                    leader = Leader::elected(&world, leader.number + 1);
                }
            }
            10 if !late.is_empty() => {
                let (old, step) = late.remove(0);
                world.late_write(&old, &step);
            }
            _ => world.go_on(&mut dice),
        }
        world.check();
    }
    for (old, step) in late {
        world.late_write(&old, &step);
        world.check();
    }
    finish(&mut world, &mut leader, &mut dice);
    world.tale()
}

/// Delivers all events and goes on until every run has ended.
fn finish(world: &mut World, leader: &mut Leader, dice: &mut Dice) {
    for _ in 0..PATIENCE {
        world.tick();
        leader.hear_everything(world);
        leader.schedule(world);
        leader.schedule(world);
        leader.schedule(world);
        world.check();
        world.check_that_nobody_waits_in_vain();
        leader.look_at_all_runs(world);
        for _ in 0..3 * HOSTS {
            world.go_on(dice);
            world.check();
        }
        if world.is_done() {
            return;
        }
    }
    panic!("{:?}: runs wait for ever: {:?}", world.story, world.waiting());
}

fn story(seed: u64) -> Story {
    let per_namespace = [None, Some(2), Some(3)][usize::try_from(seed % 3).unwrap()];
    let total = 2 + usize::try_from(seed % 5).unwrap();
    Story {
        seed,
        limits: Limits { total, per_namespace },
        handovers: usize::try_from(seed % 4).unwrap(),
        has_deletions: seed.is_multiple_of(2),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 0, ..ProptestConfig::default() })]

    /// A failure prints its seed; `the_same_seed_tells_the_same_tale` makes it worth to be kept.
    #[test]
    fn fifty_runs_over_ten_hosts_get_their_turn_and_never_meet(seed in any::<u64>()) {
        let tale = play(story(seed));
        prop_assert!(tale.admissions.len() <= RUNS);
        let limits = story(seed).limits;
        prop_assert!(tale.most_active <= limits.total + reserve(limits.total));
    }
}

#[test]
fn every_run_is_let_in_once_and_in_order_on_each_host() {
    // Without deletions all fifty runs are admitted.
    for seed in [1, 5] {
        let tale = play(Story { handovers: 0, has_deletions: false, ..story(seed) });
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        tale.admissions.iter().for_each(|(run, _)| *count.entry(run).or_default() += 1);
        assert_eq!((count.len(), tale.admissions.len()), (RUNS, RUNS), "seed {seed}");
    }
}

#[test]
fn late_admissions_of_an_old_leader_meet_a_conflict() {
    let mut fenced = 0;
    // Enough slots that there is something to decide at each moment.
    let limits = Limits { total: 10, per_namespace: None };
    for seed in 0..4 {
        let tale = play(Story { seed, limits, handovers: 3, has_deletions: false });
        assert_eq!(tale.admissions.len(), RUNS, "seed {seed}");
        assert!(tale.admissions.iter().any(|(_, leader)| *leader > 1), "seed {seed}");
        fenced += tale.fenced;
    }
    assert!(fenced > 0, "no old leader had anything to say");
}

#[test]
fn a_run_that_is_made_again_under_its_name_waits_for_the_pods_of_the_old_one() {
    let mut dice = Dice(0);
    let limits = Limits { total: 10, per_namespace: None };
    let mut world = World::new(Story { seed: 0, limits, handovers: 0, has_deletions: true });
    let mut leader = Leader::elected(&world, 1);
    world.make_run(0, &mut dice);
    let id = world.all("OpenStackAnsibleEE").next().unwrap().0.clone();
    let goes_on = |world: &mut World, leader: &mut Leader| {
        leader.hear_everything(world);
        leader.schedule(world);
        leader.look_at_all_runs(world);
    };
    while world.all("Pod").next().is_none() {
        goes_on(&mut world, &mut leader);
        world.go_on(&mut dice);
    }
    world.delete_some_run(&mut dice);
    world.make_again(&id);
    let is_in = |world: &World| world.get(&id).unwrap()["status"]["admission"].is_object();
    goes_on(&mut world, &mut leader);
    assert!(!is_in(&world), "a pod of the run before it still works on its hosts");
    // The pod, the only thing that can proceed, ends.
    world.go_on(&mut dice);
    goes_on(&mut world, &mut leader);
    assert!(is_in(&world));
}

#[test]
fn the_limit_is_reached_and_not_passed() {
    let limits = Limits { total: 3, per_namespace: Some(2) };
    let tale = play(Story { seed: 3, limits, handovers: 1, has_deletions: false });
    assert_eq!(tale.most_active, 3);
}

#[test]
fn the_same_seed_tells_the_same_tale() {
    assert_eq!(play(story(2)), play(story(2)));
}

/// The beginning of all histories.
fn beginning() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

//! Operators that go at random moments while the end-to-end tests run: the same end.

use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Result, anyhow, ensure};

use crate::demo::{OPERATORS as NAMESPACE, RELEASE};
use crate::{lab, sh};

const OPERATORS: [&str; 3] = ["ansibleee-operator", "dataplane-operator", "nova-operator"];
/// The shortest and the longest pause between two restarts, in seconds.
const PAUSE: (u64, u64) = (20, 60);

/// Tests that run on their own when the others are done, and why: a file of tests, or one of them.
pub(super) const ALONE: [(&str, &str); 3] = [
    ("e2e upgrade::", "it replaces the operators itself and waits for the pods that it knows"),
    (
        "e2e removal::an_operator_that_was_down_meanwhile_cleans_up_when_it_is_back",
        "nova-operator must stay down until the test lets it go on",
    ),
    (
        "e2e removal::what_an_uninstalled_operator_holds_is_released_by_the_documented_command",
        "nova-operator must stay down until the test lets it go on",
    ),
];

/// Whether a test runs on its own.
pub(super) fn is_alone(test: &str) -> bool {
    ALONE.iter().any(|(name, _)| is_of(name, test))
}

/// Names of the list that stand for no test.
pub(super) fn unknown(tests: &[String]) -> Vec<&'static str> {
    let is_unknown = |name: &&str| !tests.iter().any(|it| is_of(name, it));
    ALONE.iter().map(|(name, _)| *name).filter(is_unknown).collect()
}

fn is_of(name: &str, test: &str) -> bool {
    if name.ends_with("::") { test.starts_with(name) } else { test == name }
}

/// What decides when which operator goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u64);

impl FromStr for Seed {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        if text == "now" {
            return Ok(Self(UNIX_EPOCH.elapsed().unwrap_or_default().as_secs()));
        }
        text.parse().map(Self)
    }
}

/// Restarts that go on until they are ended.
pub(super) struct Restarts {
    env: lab::Env,
    seed: u64,
    stop: Sender<()>,
    thread: JoinHandle<Result<usize>>,
}

impl Restarts {
    /// Begins; the same seed gives the same operators after the same pauses.
    pub(super) fn begin(env: &lab::Env, Seed(seed): Seed) -> Self {
        println!("operators are restarted at random, seed {seed}");
        let (stop, stopped) = mpsc::channel();
        let of_thread = env.clone();
        let thread = std::thread::spawn(move || {
            let mut random = Random(seed);
            for n_restarts in 0.. {
                let (pause, operator) = random.restart();
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return Ok(n_restarts);
                }
                restart(&of_thread, operator)?;
                println!("   restarted {operator} (seed {seed}, number {})", n_restarts + 1);
            }
            Ok(usize::MAX)
        });
        Self { env: env.clone(), seed, stop, thread }
    }

    /// Ends, and waits until all operators are there; fails if none was ever restarted.
    pub(super) fn end(self) -> Result<()> {
        let Self { env, seed, stop, thread } = self;
        // A thread that has failed has nobody who listens; its own error says more.
        let _ = stop.send(());
        let n_restarts = thread.join().map_err(|_| anyhow!("restarting operators panicked"))??;
        println!("operators were restarted {n_restarts} times, seed {seed}");
        ensure!(n_restarts > 0, "no operator was restarted");
        for operator in OPERATORS {
            let mut wait = env.kubectl();
            wait.args(["-n", NAMESPACE, "rollout", "status", "deployment", operator]);
            sh::run(wait.arg("--timeout=2m"))?;
        }
        Ok(())
    }
}

/// Deletes the operator's pod; its Deployment makes another.
fn restart(env: &lab::Env, operator: &str) -> Result<()> {
    let mut delete = env.kubectl();
    let labels = format!("app.kubernetes.io/name={operator},app.kubernetes.io/instance={RELEASE}");
    delete.args(["-n", NAMESPACE, "delete", "pod", "-l", &labels, "--wait=false"]);
    sh::run(&mut delete).map(drop)
}

/// Numbers that look random and follow from the seed (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next restart: after which pause, and of whom.
    fn restart(&mut self) -> (Duration, &'static str) {
        let (shortest, longest) = PAUSE;
        let pause = shortest + self.next() % (longest - shortest + 1);
        let n_operators = u64::try_from(OPERATORS.len()).unwrap_or(1);
        let operator = usize::try_from(self.next() % n_operators).unwrap_or_default();
        (Duration::from_secs(pause), OPERATORS[operator])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn schedule(seed: u64) -> Vec<(Duration, &'static str)> {
        let mut random = Random(seed);
        (0..50).map(|_| random.restart()).collect()
    }

    #[test]
    fn a_seed_decides_the_whole_schedule() {
        assert_eq!(Random(0).next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(schedule(7), schedule(7));
        assert_ne!(schedule(7), schedule(8));
    }

    #[test]
    fn each_operator_is_met_and_each_pause_is_within_its_bounds() {
        let schedule = schedule(1);
        let met: BTreeSet<&str> = schedule.iter().map(|it| it.1).collect();
        assert_eq!(met, BTreeSet::from(OPERATORS));
        assert!(schedule.iter().all(|(pause, _)| (20..=60).contains(&pause.as_secs())));
    }

    #[test]
    fn a_file_of_tests_or_one_test_runs_alone() {
        assert!(is_alone("e2e upgrade::it_runs_nothing"));
        let of_removal = ALONE[1].0;
        assert!(is_alone(of_removal) && !is_alone(&format!("{of_removal}_again")));
        assert!(!is_alone("e2e main_job::no_run_shows_a_password_in_its_log"));
        assert_eq!(unknown(&["e2e upgrade::a".to_owned()]).len(), ALONE.len() - 1);
    }
}

//! Many failed computes of one role: how many of them are retried at once.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use operator_core::object_key::Key;

use super::rollout::{Fleet, absorb};
use super::*;
use crate::rollout::blocked_rollout::BlockedRollout;

impl Fleet {
    /// Fifty computes in service, on all of which a change has ended with `result`, under a limit
    /// that was reset to a fifth since.
    async fn failed(result: &'static str) -> Self {
        let mut fleet = Self::new(50, IntOrString::String("100%".into()), false);
        fleet.settle(0).await;
        fleet.rotate("mistyped").settle(50).await;
        fleet.end(|_| result);
        fleet.settle(50).await;
        assert_eq!(fleet.not_ready().len(), 50);
        fleet.unset_limit();
        fleet.settle(50).await;
        fleet
    }

    /// The role sets no limit any more: a fifth of the computes.
    fn unset_limit(&mut self) {
        self.max = None;
        self.with_nodes(|node| node.status.as_mut().unwrap().max_unavailable = None);
    }

    fn with_nodes(&mut self, change: impl Fn(&mut Node)) {
        let names: Vec<String> = self.worlds.keys().cloned().collect();
        for name in names {
            let world = self.worlds.get_mut(&name).unwrap();
            change(world.node());
            absorb(&*self.shared_caches.nodes, &**world.seen.node.as_ref().unwrap());
            self.written(&name);
        }
    }

    /// Ends each open run; `result` says how by the compute's name.
    fn end(&mut self, result: impl Fn(&str) -> &'static str) {
        for name in self.at_work() {
            self.worlds.get_mut(&name).unwrap().end(result(&name));
            self.queue.insert(name);
        }
    }

    fn at_work(&self) -> Vec<String> {
        let is_at_work = |it: &&String| self.worlds[*it].seen.runs.iter().any(is_open);
        self.worlds.keys().filter(is_at_work).cloned().collect()
    }

    /// Reconciles until the queue is empty, never with more than `most` runs.
    async fn settle_tries(&mut self, most: usize) {
        while let Some(name) = self.queue.pop_first() {
            self.pass(&name, true).await;
            let at_work = self.at_work();
            assert!(at_work.len() <= most, "{at_work:?}");
        }
    }

    /// Time passes, and every compute is reconciled again.
    fn sleep(&mut self, seconds: i64) {
        for (name, world) in &mut self.worlds {
            world.now = world.now.saturating_add(SignedDuration::from_secs(seconds)).unwrap();
            self.queue.insert(name.clone());
        }
    }
}

fn first_ten() -> Vec<String> {
    (0..10).map(|it| format!("n{it:03}")).collect()
}

#[tokio::test]
async fn of_many_computes_that_failed_no_more_are_tried_at_once_than_may_be_out_of_service() {
    let mut fleet = Fleet::failed("Failed").await;
    fleet.rotate("mistyped once more").settle_tries(10).await;
    assert_eq!(fleet.at_work(), first_ten());
    let message = fleet.message("n030");
    for words in [
        "held by computes that fail",
        "raise deployStrategy.maxUnavailable of the role",
        "deployStrategy.deploy: false on their nodes",
    ] {
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(fleet.worlds["n030"].reason("Ready"), "WaitingForTurn");
    // A compute that is corrected meanwhile waits as well, and the next one gets the correction.
    fleet.rotate("mended").settle_tries(10).await;
    fleet.n_passes = 0;
    for _ in 0..30 {
        fleet.end(|_| "Ok");
        fleet.settle_tries(10).await;
    }
    assert_eq!(fleet.names("UpToDate", ConditionStatus::True).len(), 50);
    assert!(fleet.n_passes <= 500, "{} passes: who waits is woken too often", fleet.n_passes);
}

#[tokio::test]
async fn computes_that_fail_again_and_again_keep_no_other_from_healing() {
    let mut fleet = Fleet::failed("Unreachable").await;
    for round in 0..60 {
        fleet.sleep(61);
        fleet.settle_tries(10).await;
        if round == 0 {
            assert_eq!(fleet.at_work(), first_ten());
            let told = fleet.worlds["n030"].reason("Ready");
            assert_eq!(told, "HostUnreachable", "the cause stays told");
            let looks =
                recorded(decide(&held(&fleet, "n030").await, None, fleet.worlds["n030"].now))
                    .requeue_after;
            assert_eq!(looks, Some(std::time::Duration::from_secs(30)));
        }
        fleet.end(|it| if it < "n005" { "Unreachable" } else { "Ok" });
        fleet.settle_tries(10).await;
    }
    assert_eq!(fleet.names("UpToDate", ConditionStatus::True).len(), 45);
    assert_eq!(fleet.not_ready(), ["n000", "n001", "n002", "n003", "n004"]);
}

/// The observed state of a compute that has to wait.
async fn held(fleet: &Fleet, name: &str) -> Observed {
    let mut seen = fleet.worlds[name].seen.clone();
    seen.slot = fleet.coordinator.slot(&seen.compute, seen.node.as_deref()).await;
    assert_eq!(seen.slot.blocked(), Some(&BlockedRollout::Try));
    seen
}

#[tokio::test]
async fn computes_that_were_never_in_service_are_tried_again_together() {
    let mut fleet = Fleet::new(0, None, false);
    for it in 0..50 {
        fleet.add(World::named(&format!("n{it:03}")));
    }
    fleet.settle(50).await;
    fleet.end(|_| "Failed");
    fleet.settle(50).await;
    for world in fleet.worlds.values_mut() {
        world.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
    }
    fleet.sleep(0);
    fleet.settle_tries(50).await;
    assert_eq!(fleet.at_work().len(), 50);
}

#[tokio::test]
async fn a_compute_that_failed_alone_is_tried_at_once_and_as_often_as_it_is_asked_for() {
    let mut fleet = Fleet::new(3, IntOrString::Int(1), false);
    fleet.rotate("mistyped").settle(1).await;
    fleet.end(|_| "Failed");
    for attempt in 0..3 {
        let failing = fleet.worlds.get_mut("n000").unwrap();
        failing.compute().annotations_mut().insert(REDEPLOY.into(), attempt.to_string());
        fleet.written("n000");
        fleet.settle(1).await;
        assert_eq!(fleet.at_work(), ["n000"]);
        fleet.end(|_| "Failed");
    }
}

#[tokio::test]
async fn tries_that_are_recorded_are_counted_after_a_restart() {
    let mut fleet = Fleet::failed("Failed").await;
    fleet.rotate("mended");
    // Attempts are recorded, and the process ends before it could create their runs.
    for name in fleet.queue.clone() {
        fleet.pass(&name, false).await;
    }
    assert_eq!(fleet.at_work(), [""; 0]);
    fleet.restart();
    fleet.settle_tries(10).await;
    assert_eq!(fleet.at_work(), first_ten());
    fleet.restart();
    fleet.settle_tries(10).await;
}

#[tokio::test]
async fn a_try_that_nothing_comes_of_goes_to_another_compute_and_is_counted_anew_when_it_goes_on() {
    let mut fleet = Fleet::failed("Failed").await;
    for world in fleet.worlds.values_mut() {
        world.is_queueing = true;
    }
    fleet.rotate("mended").settle_tries(10).await;
    // Their runs are queued when their nodes stop being ready: they are withdrawn.
    let set = |fleet: &mut Fleet, status: &str| {
        fleet.with_nodes(|node| {
            if node.name_any().as_str() < "n010" {
                node.status.as_mut().unwrap().conditions = ready(status);
            }
        });
    };
    set(&mut fleet, "False");
    for name in first_ten() {
        fleet.worlds.get_mut(&name).unwrap().configure(Some("[libvirt]\ncpu_mode = none\n"));
        fleet.written(&name);
    }
    fleet.settle_tries(20).await;
    let next: Vec<String> = (10..20).map(|it| format!("n{it:03}")).collect();
    assert_eq!(fleet.at_work(), next);
    for world in fleet.worlds.values_mut() {
        world.is_queueing = false;
    }
    set(&mut fleet, "True");
    fleet.settle_tries(10).await;
    // Another reconciliation changes nothing: they wait for a slot.
    fleet.sleep(1);
    fleet.settle_tries(10).await;
    for _ in 0..30 {
        fleet.end(|_| "Ok");
        fleet.settle_tries(10).await;
    }
    assert_eq!(fleet.names("UpToDate", ConditionStatus::True).len(), 50);
}

#[tokio::test]
async fn a_compute_that_goes_in_the_middle_of_a_try_leaves_it_to_another_one() {
    let mut fleet = Fleet::failed("Failed").await;
    fleet.rotate("mended").settle_tries(10).await;
    let mut compute = (*fleet.worlds["n000"].seen.compute).clone();
    let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(fleet.worlds["n000"].now);
    compute.metadata.deletion_timestamp = Some(time);
    absorb(&*fleet.shared_caches.computes, &compute);
    let stir = fleet.coordinator.refresh(&Key::of(&compute));
    assert_eq!(stir.computes, [Key::new("ns", "n010")]);
}

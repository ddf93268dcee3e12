//! Rollouts over computes of one role of which some are down, or are drained first.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use nova_config::annotations::DRAIN_BEFORE;

use super::rollout::{Fleet, absorb};
use super::*;
use crate::nova::drain::progress::HostProgress;
use crate::nova::health::{HostHealth, MappingHealth, ServiceHealth};

impl Fleet {
    /// Deployed computes that nova's API shows as up, one of which may be unavailable at a time.
    async fn read(count: usize) -> Self {
        let mut fleet = Self::new(count, IntOrString::Int(1), false);
        let names: Vec<String> = fleet.worlds.keys().cloned().collect();
        for name in names {
            fleet.shows(&name, ServiceHealth::Up { disabled: None });
        }
        fleet.settle(0).await;
        fleet
    }

    /// Nova's API shows the service of a compute so.
    fn shows(&mut self, name: &str, service: ServiceHealth) {
        let mapping = MappingHealth::Mapped;
        let health = HostHealth { service, mapping, ..HostHealth::default() };
        self.worlds.get_mut(name).unwrap().seen.health = Some(health);
        self.queue.insert(name.to_owned());
    }

    /// A pass over nova has found this of the host of a compute.
    fn finds(&mut self, name: &str, progress: HostProgress) {
        self.worlds.get_mut(name).unwrap().seen.drain = Some(progress);
        self.queue.insert(name.to_owned());
    }

    fn running(&self) -> Vec<&str> {
        let is_running = |it: &&String| self.worlds[*it].seen.runs.iter().any(is_open);
        self.worlds.keys().filter(is_running).map(String::as_str).collect()
    }
}

fn down() -> ServiceHealth {
    ServiceHealth::Down { since: None, is_forced: false }
}

#[tokio::test]
async fn a_compute_that_is_down_holds_its_place_by_name_and_may_begin_itself() {
    let mut fleet = Fleet::read(3).await;
    fleet.shows("n001", down());
    fleet.settle(1).await;
    fleet.rotate("second").settle(1).await;
    assert_eq!(fleet.running(), ["n001"]);
    for _ in 0..2 {
        fleet.finish(&[]).settle(1).await;
    }
    assert_eq!(fleet.running(), [""; 0], "it is still down");
    for name in ["n000", "n002"] {
        let message = fleet.message(name);
        assert!(message.contains("computes that fail or are down: n001."), "{message}");
    }
    fleet.shows("n001", ServiceHealth::Up { disabled: None });
    fleet.complete(1).await;
    assert_eq!(fleet.not_ready(), [""; 0]);
}

#[tokio::test]
async fn a_service_that_is_disabled_or_of_which_nothing_is_known_holds_no_place() {
    let unknown = [
        ServiceHealth::Up { disabled: Some("broken fan".to_owned()) },
        ServiceHealth::ApiFails,
        ServiceHealth::CellNotAnswering,
        ServiceHealth::Pending,
    ];
    for service in unknown {
        let mut fleet = Fleet::read(2).await;
        fleet.shows("n001", service.clone());
        fleet.settle(0).await;
        fleet.rotate("second").settle(1).await;
        assert_eq!(fleet.running(), ["n000"], "{service:?}");
    }
}

#[tokio::test]
async fn a_compute_that_comes_up_or_goes_while_others_wait_lets_the_next_one_begin() {
    let mut fleet = Fleet::read(3).await;
    fleet.rotate("second").settle(1).await;
    assert_eq!(fleet.running(), ["n000"]);
    fleet.shows("n002", down());
    fleet.rounds(2, 2).await;
    fleet.settle(2).await;
    // It is down, so that it is the only one that may begin.
    assert_eq!(fleet.running(), ["n002"]);
    fleet.shows("n002", ServiceHealth::Up { disabled: None });
    fleet.complete(2).await;
    assert_eq!(fleet.not_ready(), [""; 0]);
}

/// The same as [`Fleet::read`], with hosts that are drained first.
async fn draining(count: usize) -> Fleet {
    let mut fleet = Fleet::read(count).await;
    for name in fleet.worlds.keys().cloned().collect::<Vec<_>>() {
        let world = fleet.worlds.get_mut(&name).unwrap();
        world.node().annotations_mut().insert(DRAIN_BEFORE.into(), "true".into());
        absorb(&*fleet.shared_caches.nodes, &**world.seen.node.as_ref().unwrap());
        fleet.finds(&name, HostProgress::Pending);
        fleet.written(&name);
    }
    fleet.settle(0).await;
    fleet
}

#[tokio::test]
async fn hosts_are_drained_changed_and_given_back_one_after_the_other() {
    let mut fleet = draining(3).await;
    fleet.rotate("second");
    for name in ["n000", "n001", "n002"] {
        fleet.settle(1).await;
        assert_eq!((fleet.not_ready(), fleet.running()), (vec![name], vec![]));
        assert_eq!(fleet.worlds[name].reason("Ready"), "WaitingForDrain");
        fleet.finds(name, HostProgress::Drained);
        for _ in 0..2 {
            fleet.settle(1).await;
            assert_eq!(fleet.running(), [name]);
            fleet.finish(&[]);
        }
        fleet.finds(name, HostProgress::NotReporting);
        fleet.settle(0).await;
        assert_eq!(fleet.running(), [""; 0], "{name} is not given back");
        fleet.restart();
        fleet.settle(0).await;
        fleet.finds(name, HostProgress::Released);
    }
    fleet.settle(0).await;
    assert_eq!(fleet.names("UpToDate", ConditionStatus::True).len(), 3);
}

#[tokio::test]
async fn a_rollout_that_drains_hosts_stops_at_its_first_failure() {
    let mut fleet = draining(3).await;
    for world in fleet.worlds.values_mut() {
        world.node().status.as_mut().unwrap().max_unavailable = Some(IntOrString::Int(2));
        absorb(&*fleet.shared_caches.nodes, &**world.seen.node.as_ref().unwrap());
    }
    fleet.rotate("mistyped").settle(2).await;
    for name in ["n000", "n001"] {
        fleet.finds(name, HostProgress::Drained);
    }
    fleet.settle(2).await;
    assert_eq!(fleet.running(), ["n000", "n001"]);
    fleet.finish(&["n000"]).settle(2).await;
    fleet.finish(&[]);
    fleet.finds("n001", HostProgress::Released);
    fleet.settle(2).await;
    assert_eq!((fleet.not_ready(), fleet.running()), (vec!["n000"], vec![]));
    let message = fleet.message("n002");
    for part in ["stops at the first compute that fails", "NovaExternalCompute n000 does"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!message.contains("pauseOnFailure"), "{message}");
}

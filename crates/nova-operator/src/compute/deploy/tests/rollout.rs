//! Rollouts over many computes of one role, each reconciled only when its queue contains it.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use operator_core::object_key::Key;
use operator_runtime::cache::WriteThrough;

use super::*;
use crate::cell_inputs::of_cell;
use crate::rollout::RolloutCoordinator;
use crate::shared_caches::SharedCaches;

/// The computes of one role, with the real caches and the real rollout coordinator.
pub(super) struct Fleet {
    pub(super) shared_caches: SharedCaches,
    pub(super) coordinator: RolloutCoordinator,
    pub(super) worlds: BTreeMap<String, World>,
    /// The computes to reconcile.
    pub(super) queue: BTreeSet<String>,
    pub(super) n_passes: usize,
    pub(super) max: Option<IntOrString>,
    pauses: bool,
}

pub(super) fn absorb(cache: &impl WriteThrough, object: &impl serde::Serialize) {
    cache.absorb(&serde_json::to_value(object).unwrap());
}

impl Fleet {
    /// `count` computes that are deployed, under a role with these limits.
    pub(super) fn new(count: usize, max: impl Into<Option<IntOrString>>, pauses: bool) -> Self {
        let max = max.into();
        let watched = SharedCaches::default();
        let peers = RolloutCoordinator::new(watched.clone());
        let (worlds, queue) = (BTreeMap::new(), BTreeSet::new());
        let mut fleet = Self {
            shared_caches: watched,
            coordinator: peers,
            worlds,
            queue,
            n_passes: 0,
            max,
            pauses,
        };
        for it in 0..count {
            fleet.add(World::named(&format!("n{it:03}")).deploy());
        }
        fleet
    }

    pub(super) fn add(&mut self, mut world: World) {
        let status = world.node().status.as_mut().unwrap();
        status.max_unavailable.clone_from(&self.max);
        status.pause_on_failure = self.pauses.then_some(true);
        absorb(&*self.shared_caches.nodes, &**world.seen.node.as_ref().unwrap());
        let name = world.seen.compute.name_any();
        self.worlds.insert(name.clone(), world);
        self.written(&name);
    }

    /// What follows a write: the caches contain it, and the affected computes are enqueued.
    pub(super) fn written(&mut self, name: &str) {
        let compute = &self.worlds[name].seen.compute;
        absorb(&*self.shared_caches.computes, &**compute);
        let stir = self.coordinator.refresh(&Key::of(&**compute));
        self.queue.extend(stir.computes.into_iter().map(|it| it.name));
        self.queue.insert(name.to_owned());
    }

    /// The coordinator of a restarted operator.
    pub(super) fn restart(&mut self) {
        self.coordinator = RolloutCoordinator::new(self.shared_caches.clone());
        for name in self.worlds.keys() {
            self.coordinator.refresh(&Key::new("ns", name));
            self.queue.insert(name.clone());
        }
    }

    /// Another password of the message bus: all computes of the cell are enqueued.
    pub(super) fn rotate(&mut self, password: &str) -> &mut Self {
        let url = format!("rabbit://nova:{password}@192.0.2.2/v");
        for (name, world) in &mut self.worlds {
            world.seen.message_bus = Some(content(&[("transport_url", &url)]));
            self.queue.insert(name.clone());
        }
        self
    }

    /// One reconciliation; without `runs` the process ends before it has created one.
    pub(super) async fn pass(&mut self, name: &str, runs: bool) {
        self.n_passes += 1;
        let world = self.worlds.get_mut(name).unwrap();
        let before = world.writes.len();
        world.seen.slot =
            self.coordinator.slot(&world.seen.compute, world.seen.node.as_deref()).await;
        let mut steps = recorded(decide(&world.seen, None, world.now)).steps;
        steps.retain(|it| runs || !matches!(it.write, Write::Create { .. }));
        world.take(&steps);
        let has_written = world.writes.len() > before;
        if has_written {
            self.written(name);
        }
        // Released once the decision is in the caches.
        self.worlds.get_mut(name).unwrap().seen.slot = RolloutSlot::Free;
    }

    /// Reconciles until the queue is empty, never with more than `most` that are not ready.
    pub(super) async fn settle(&mut self, most: usize) {
        while let Some(name) = self.queue.pop_first() {
            self.pass(&name, true).await;
            let not_ready = self.not_ready();
            assert!(not_ready.len() <= most, "{not_ready:?}");
        }
    }

    /// Comes to rest and ends all runs well, so many times.
    pub(super) async fn rounds(&mut self, n: usize, most: usize) {
        for _ in 0..n {
            self.settle(most).await;
            self.finish(&[]);
        }
    }

    /// Ends the running run of each compute, successfully unless it is named here.
    pub(super) fn finish(&mut self, failing: &[&str]) -> &mut Self {
        for (name, world) in &mut self.worlds {
            if world.seen.runs.iter().any(is_open) {
                world.end(if failing.contains(&name.as_str()) { "Failed" } else { "Ok" });
                self.queue.insert(name.clone());
            }
        }
        self
    }

    pub(super) fn names(&self, type_: &str, truth: ConditionStatus) -> Vec<&str> {
        let is_so = |it: &&String| {
            let status = self.worlds[*it].seen.compute.status.as_ref();
            let found = status.and_then(|it| find(&it.conditions, type_));
            found.is_some_and(|it| it.status == truth)
        };
        self.worlds.keys().filter(is_so).map(String::as_str).collect()
    }

    pub(super) fn not_ready(&self) -> Vec<&str> {
        self.names("Ready", ConditionStatus::False)
    }

    pub(super) fn message(&self, name: &str) -> String {
        self.worlds[name].condition("UpToDate").message
    }

    /// Ends runs and settles until all use the current inputs; returns the number of rounds.
    pub(super) async fn complete(&mut self, most: usize) -> usize {
        for round in 0..100 {
            self.settle(most).await;
            if self.names("UpToDate", ConditionStatus::True).len() == self.worlds.len() {
                return round;
            }
            self.finish(&[]);
        }
        panic!("it never ends: {:?}", self.names("UpToDate", ConditionStatus::False));
    }
}

#[tokio::test]
async fn a_rotation_over_a_hundred_computes_disturbs_at_most_its_share_at_once() {
    let mut fleet = Fleet::new(100, IntOrString::String("10%".into()), false);
    fleet.settle(0).await;
    fleet.n_passes = 0;
    fleet.rotate("second");
    // Ten batches of two runs each: nova, and the registration check.
    assert_eq!(fleet.complete(10).await, 20);
    assert!(fleet.n_passes <= 1_000, "{} passes: who waits is woken too often", fleet.n_passes);
    for world in fleet.worlds.values() {
        assert_eq!(world.n_runs(), 2);
    }
}

#[tokio::test]
async fn a_bad_change_on_fifty_computes_stops_by_itself_at_a_fifth_of_them() {
    let mut fleet = Fleet::new(50, None, false);
    fleet.settle(0).await;
    fleet.rotate("mistyped");
    for _ in 0..5 {
        fleet.settle(10).await;
        let names: Vec<String> = fleet.worlds.keys().cloned().collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        fleet.finish(&all);
    }
    let failed: Vec<String> = (0..10).map(|it| format!("n{it:03}")).collect();
    assert_eq!(fleet.not_ready(), failed);
    let message = fleet.message("n030");
    for words in [
        "held by computes that fail or are down: n000, n001, n002 and 7 more",
        "raise deployStrategy.maxUnavailable",
        "deployStrategy.deploy: false on their nodes",
    ] {
        assert!(message.contains(words), "{message}");
    }
    // Each waiting compute reports once that all have failed, and not one failure after another.
    assert!(fleet.n_passes <= 500, "{} passes", fleet.n_passes);
    fleet.rotate("mended").settle(10).await;
    let at_work = |it: &&String| fleet.worlds[*it].seen.runs.iter().any(is_open);
    let at_work: Vec<&String> = fleet.worlds.keys().filter(at_work).collect();
    assert_eq!(at_work, failed.iter().collect::<Vec<_>>(), "what is corrected goes to them first");
    fleet.complete(10).await;
    assert_eq!(fleet.not_ready(), [""; 0]);
}

#[tokio::test]
async fn a_first_deployment_of_computes_waits_for_nobody() {
    let mut fleet = Fleet::new(0, None, false);
    for it in 0..50 {
        fleet.add(World::named(&format!("n{it:03}")));
    }
    fleet.settle(50).await;
    let at_work = fleet.worlds.values().filter(|it| it.seen.runs.iter().any(is_open)).count();
    assert_eq!(at_work, 50);
}

#[tokio::test]
async fn a_compute_that_waits_for_its_turn_stays_ready_and_says_so() {
    let mut fleet = Fleet::new(3, IntOrString::Int(1), false);
    fleet.rotate("second").settle(1).await;
    assert_eq!(fleet.not_ready(), ["n000"]);
    let waiting = &fleet.worlds["n002"];
    waiting.says(
        "UpToDate",
        "InputsChanged",
        &["Secret bus transport_url", "waits for its turn", "maxUnavailable"],
    );
    assert_eq!(waiting.reason("DeploymentReady"), "Deployed");
    // Its files are rendered, and no run has copied them to the host yet.
    assert!(waiting.files["01-nova.conf"].contains("second"));
    assert_eq!(waiting.n_runs(), 0);
}

#[tokio::test]
async fn a_failure_pauses_the_others_by_name_until_it_is_mended() {
    let mut fleet = Fleet::new(5, IntOrString::Int(2), true);
    fleet.rotate("mistyped").settle(2).await;
    fleet.finish(&["n001"]).settle(2).await;
    // A deployment that has started is completed.
    fleet.finish(&[]).settle(2).await;
    assert_eq!(fleet.not_ready(), ["n001"]);
    assert_eq!(fleet.names("UpToDate", ConditionStatus::True), ["n000"]);
    let message = fleet.message("n003");
    assert!(message.contains("pauseOnFailure of the role is set"), "{message}");
    assert!(message.contains("NovaExternalCompute n001 fails"), "{message}");
    fleet.rotate("mended");
    fleet.complete(2).await;
    assert_eq!(fleet.not_ready(), [""; 0]);
}

#[tokio::test]
async fn a_redeploy_of_the_failing_one_lets_the_others_go_on() {
    let mut fleet = Fleet::new(3, IntOrString::Int(1), true);
    fleet.rotate("second").settle(1).await;
    fleet.finish(&["n000"]).settle(1).await;
    assert!(fleet.message("n002").contains("n000 fails"), "{}", fleet.message("n002"));
    let failing = fleet.worlds.get_mut("n000").unwrap();
    failing.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
    fleet.written("n000");
    fleet.complete(1).await;
}

#[tokio::test]
async fn a_new_compute_waits_only_while_another_one_fails() {
    let mut fleet = Fleet::new(2, IntOrString::Int(1), true);
    fleet.rotate("second").settle(1).await;
    fleet.add(World::named("n900"));
    fleet.settle(2).await;
    assert_eq!(fleet.worlds["n900"].reason("DeploymentReady"), "Deploying", "it takes no place");
    fleet.finish(&["n000"]);
    fleet.add(World::named("n901"));
    fleet.settle(4).await;
    let waiting = &fleet.worlds["n901"];
    assert_eq!(waiting.reason("DeploymentReady"), "Paused");
    waiting.mentions("Ready", &["n000 fails"]);
    fleet.rotate("third");
    fleet.complete(4).await;
}

#[tokio::test]
async fn a_second_rotation_in_the_middle_reaches_all_under_the_same_limit() {
    let mut fleet = Fleet::new(12, IntOrString::Int(3), false);
    fleet.rotate("second");
    fleet.rounds(3, 3).await;
    fleet.settle(3).await;
    assert_eq!(fleet.names("UpToDate", ConditionStatus::True), ["n000", "n001", "n002"]);
    fleet.rotate("third");
    fleet.complete(3).await;
    for (name, world) in &fleet.worlds {
        assert!(world.files["01-nova.conf"].contains("third"), "{name}");
    }
}

#[tokio::test]
async fn a_restart_in_the_middle_begins_with_no_compute_too_many() {
    let mut fleet = Fleet::new(6, IntOrString::Int(2), false);
    fleet.rotate("second");
    // Attempts are recorded, and the process ends before it could create their runs.
    for name in fleet.queue.clone() {
        fleet.pass(&name, false).await;
    }
    assert_eq!(fleet.not_ready(), ["n000", "n001"]);
    fleet.restart();
    fleet.complete(2).await;
    for world in fleet.worlds.values() {
        assert_eq!(world.n_runs(), 2);
    }
}

#[tokio::test]
async fn a_wider_limit_and_one_that_allows_all_let_more_begin() {
    let mut fleet = Fleet::new(6, IntOrString::Int(1), false);
    fleet.rotate("second").settle(1).await;
    for (max, expected) in [(IntOrString::Int(3), 3), (IntOrString::String("100%".into()), 6)] {
        let names: Vec<String> = fleet.worlds.keys().cloned().collect();
        for name in names {
            let world = fleet.worlds.get_mut(&name).unwrap();
            world.node().status.as_mut().unwrap().max_unavailable = Some(max.clone());
            let node = Arc::clone(world.seen.node.as_ref().unwrap());
            absorb(&*fleet.shared_caches.nodes, &*node);
            fleet.written(&name);
        }
        fleet.settle(expected).await;
        assert_eq!(fleet.not_ready().len(), expected, "{max:?}");
    }
}

#[test]
fn credentials_reach_no_host_before_the_cell_has_logged_in_with_them() {
    let mut world = World::deployed();
    let tried = |world: &World| {
        let seen = &world.seen;
        let secrets = (seen.cell_secret.as_ref(), seen.message_bus.as_ref());
        inputs::short(&of_cell(seen.cell.as_deref().unwrap(), secrets.0, secrets.1)).text()
    };
    let tell = |world: &mut World| {
        let hash = tried(world);
        world.cell().status.as_mut().unwrap().hash.insert(CREDENTIALS.into(), hash);
    };
    tell(&mut world);
    assert_eq!(world.settle(), Vec::<String>::new());
    let bus = content(&[("transport_url", "rabbit://nova:mistyped@192.0.2.2/v")]);
    world.seen.message_bus = Some(bus);
    assert_eq!(world.settle(), Vec::<String>::new(), "all stays as it was");
    // It has, and the message bus rejects them.
    tell(&mut world);
    world.set_cell_ready("False");
    world.settle();
    assert_eq!((world.n_runs(), world.reason("NovaCellReady").as_str()), (0, "NovaCellNotReady"));
    world.set_cell_ready("True");
    world.settle();
    assert_eq!(world.n_runs(), 1);
}

#[test]
fn a_compute_that_was_never_deployed_says_that_the_credentials_are_still_to_be_tried() {
    let mut world = World::new();
    world.cell().status.as_mut().unwrap().hash.insert(CREDENTIALS.into(), "older".into());
    world.settle();
    assert_eq!(world.n_runs(), 0);
    let words = ["logged in to its message bus", "until the NovaCell has logged in"];
    world.says("Ready", "Waiting", &words);
}

#[test]
fn what_a_foreign_control_plane_has_tried_nobody_asks() {
    let mut world = World::deployed();
    world.seen.cells_are_ours = false;
    world.cell().status.as_mut().unwrap().hash.insert(CREDENTIALS.into(), "old".into());
    let bus = content(&[("transport_url", "rabbit://nova:second@192.0.2.2/v")]);
    world.seen.message_bus = Some(bus);
    world.settle();
    assert_eq!(world.n_runs(), 1);
}

#[tokio::test]
async fn a_compute_whose_options_break_while_its_run_waits_gives_its_place_up() {
    let mut fleet = Fleet::new(3, None, false);
    fleet.settle(0).await;
    for world in fleet.worlds.values_mut() {
        world.is_queueing = true;
    }
    fleet.rotate("second").settle(3).await;
    assert_eq!(fleet.not_ready(), ["n000"]);
    fleet.worlds.get_mut("n000").unwrap().configure(Some("no options at all"));
    fleet.written("n000");
    for world in fleet.worlds.values_mut() {
        world.is_queueing = false;
    }
    fleet.rounds(8, 3).await;
    assert_eq!(fleet.names("UpToDate", ConditionStatus::True), ["n001", "n002"]);
}

#[tokio::test]
async fn a_compute_that_cannot_begin_what_is_recorded_holds_no_place() {
    let mut fleet = Fleet::new(3, None, false);
    fleet.settle(0).await;
    fleet.rotate("second");
    // The attempt is recorded, the process ends before it can create the run, and the node is
    // removed.
    fleet.pass("n000", false).await;
    let world = fleet.worlds.get_mut("n000").unwrap();
    world.set_node_ready("False");
    let node = Arc::clone(world.seen.node.as_ref().unwrap());
    absorb(&*fleet.shared_caches.nodes, &*node);
    fleet.written("n000");
    fleet.rounds(8, 3).await;
    assert_eq!(fleet.names("UpToDate", ConditionStatus::True), ["n001", "n002"]);
}

#[tokio::test]
async fn computes_that_were_never_in_service_make_no_share_larger() {
    let mut fleet = Fleet::new(10, None, false);
    fleet.settle(0).await;
    for it in 0..40 {
        fleet.add(World::named(&format!("x{it:03}")));
    }
    fleet.settle(50).await;
    fleet.rotate("mistyped").settle(50).await;
    let at_work =
        |it: &(&String, &World)| it.0.starts_with('n') && it.1.seen.runs.iter().any(is_open);
    let at_work: Vec<&String> = fleet.worlds.iter().filter(at_work).map(|it| it.0).collect();
    assert_eq!(at_work, ["n000", "n001"], "a fifth of those that were in service");
}

#[tokio::test]
async fn an_edit_of_a_compute_that_waits_for_computes_that_fail_is_not_ready() {
    let mut fleet = Fleet::new(3, IntOrString::Int(1), false);
    fleet.settle(0).await;
    fleet.rotate("mistyped").settle(1).await;
    fleet.finish(&["n000"]).settle(1).await;
    assert_eq!(fleet.not_ready(), ["n000"]);
    let config = Some("[libvirt]\ncpu_mode = none\n");
    fleet.worlds.get_mut("n002").unwrap().configure(config);
    fleet.written("n002");
    fleet.settle(2).await;
    assert_eq!(fleet.not_ready(), ["n000", "n002"]);
    assert_eq!(fleet.worlds["n002"].reason("Ready"), "WaitingForTurn");
}

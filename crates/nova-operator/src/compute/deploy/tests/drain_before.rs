//! Deployments that drain the host first, with a nova in memory.

use nova_config::annotations::{DRAIN, DRAIN_BEFORE};
use operator_core::plan::Write as PlanWrite;

use super::*;
use crate::compute::deploy::resolve::with_progress;
use crate::nova::drain::order::{HostOrder, MARKER, OrderOfHost};
use crate::nova::drain::progress::{HostProgress, IdentityUse, Occupied};
use crate::nova::health::{HostHealth, MappingHealth, ServiceHealth};

const MARKED: &str = "nova.openstack.org/drain: rollout";

/// How many turns there are from one reading of all services to the next.
const READ_EVERY: usize = 3;

/// A compute, what nova has of its host, and what the task about the host remembers.
struct Cloud {
    world: World,
    disabled: Option<String>,
    /// The same as the last reading of all services has it, which is seldom.
    read: Option<String>,
    n_turns: usize,
    is_up: bool,
    is_listed: bool,
    has_servers: bool,
    order: Option<OrderOfHost>,
    progress: HostProgress,
}

fn annotate(world: &mut World, name: &str, value: Option<&str>) {
    let annotations = world.node().annotations_mut();
    annotations.remove(name);
    annotations.extend(value.map(|it| (name.to_owned(), it.to_owned())));
}

impl Cloud {
    fn of(mut world: World, drain_before: &str) -> Self {
        annotate(&mut world, DRAIN_BEFORE, Some(drain_before));
        Self {
            world,
            disabled: None,
            read: None,
            n_turns: 0,
            is_up: true,
            is_listed: true,
            has_servers: false,
            order: None,
            progress: HostProgress::Pending,
        }
    }

    /// A deployed compute with a server, and a change of its options.
    fn changed() -> Self {
        let mut cloud = Self::of(World::deployed(), "true");
        cloud.has_servers = true;
        cloud.settle();
        cloud.world.writes.clear();
        cloud.world.configure(Some("[libvirt]\ncpu_mode = none\n"));
        cloud
    }

    /// One reconciliation, of whose writes the first `n_steps` are made, and one pass over nova.
    fn turn(&mut self, n_steps: usize) {
        if self.n_turns.is_multiple_of(READ_EVERY) {
            self.read.clone_from(&self.disabled);
        }
        self.n_turns += 1;
        let up = ServiceHealth::Up { disabled: self.read.clone() };
        let service = match (self.is_listed, self.is_up) {
            (false, _) => ServiceHealth::NotFound,
            (true, true) => up,
            (true, false) => ServiceHealth::Down { since: None, is_forced: false },
        };
        self.world.seen.health = Some(HostHealth {
            service,
            mapping: MappingHealth::Mapped,
            disabled: self.read.clone(),
            ..HostHealth::default()
        });
        self.world.seen.drain = Some(HostProgress::Pending);
        let known = self.order.clone().map(|it| (it, self.progress.clone()));
        self.world.seen = with_progress(&self.world.seen, &known.into_iter().collect());
        let Plan { mut steps, orders, .. } =
            recorded(decide(&self.world.seen, None, self.world.now));
        let is_whole = steps.len() <= n_steps;
        steps.truncate(n_steps);
        let creates = steps.iter().any(|it| matches!(it.write, PlanWrite::Create { .. }));
        let is_drained = self.disabled.is_some() && !self.has_servers;
        assert!(
            !creates || is_drained || !drain_of(&self.world.seen).drains_before,
            "it is not drained"
        );
        self.world.take(&steps);
        // Without its writes, a plan only ends the order of the one before.
        let order = orders.into_iter().next().map(|it| it.what);
        if order != self.order {
            (self.order, self.progress) = (order.filter(|_| is_whole), HostProgress::Pending);
        }
        self.pass();
    }

    fn order(&self) -> Option<&HostOrder> {
        self.order.as_ref().map(|it| &it.order)
    }

    /// What a pass over nova does and finds.
    fn pass(&mut self) {
        let is_marked = self.disabled.is_some();
        self.progress = match self.order() {
            Some(_) if !self.is_listed => HostProgress::NotFound,
            Some(HostOrder::Drain(drain) | HostOrder::DrainForChange(drain)) => {
                self.disabled = Some(drain.disabled_reason(MARKER));
                let is_empty = is_marked && !self.has_servers;
                let servers = self.has_servers.then(|| "b0".to_owned()).into_iter().collect();
                let occupied = Occupied { servers, ..Occupied::default() };
                if is_empty { HostProgress::Drained } else { HostProgress::Occupied(occupied) }
            }
            Some(HostOrder::EnableOnceUp) if is_marked && !self.is_up => HostProgress::NotReporting,
            Some(HostOrder::Enable | HostOrder::EnableOnceUp) => {
                self.disabled = None;
                HostProgress::Released
            }
            Some(
                HostOrder::DrainForRemoval(..)
                | HostOrder::Remove(_)
                | HostOrder::Identity(_)
                | HostOrder::DeleteLeftover(_)
                | HostOrder::Inspect
                | HostOrder::InspectForRemoval(_),
            )
            | None => HostProgress::Pending,
        };
    }

    /// The operator is killed: what its task remembers is gone.
    fn restart(&mut self) {
        (self.order, self.progress) = (None, HostProgress::Pending);
    }

    /// Reconciles until nothing changes any more.
    fn settle(&mut self) {
        let mut n_quiet = 0;
        for _ in 0..40 {
            let before = self.state();
            self.turn(usize::MAX);
            n_quiet = if self.state() == before { n_quiet + 1 } else { 0 };
            if n_quiet > READ_EVERY {
                return;
            }
        }
        panic!("it never settles: {:?}", self.state());
    }

    /// The last server leaves the host.
    fn empty(&mut self) {
        self.has_servers = false;
        self.settle();
    }

    fn state(&self) -> (usize, Option<String>, Option<OrderOfHost>, HostProgress) {
        let writes = self.world.writes.len();
        (writes, self.disabled.clone(), self.order.clone(), self.progress.clone())
    }

    fn end(&mut self, result: &str) {
        self.world.end(result);
        self.settle();
    }

    fn runs(&self) -> Vec<&str> {
        let runs = self.world.writes.iter().filter_map(|it| it.strip_prefix("run "));
        runs.collect()
    }

    fn is_as_before(&self) -> bool {
        let is_quiet = self.disabled.is_none() && !self.world.has_condition("Drained");
        is_quiet && self.world.condition("Ready").status == ConditionStatus::True
    }
}

#[test]
fn a_change_waits_for_the_drain_and_the_host_is_given_back_once_its_service_is_up() {
    let mut cloud = Cloud::changed();
    cloud.settle();
    assert_eq!((cloud.runs(), cloud.disabled.as_deref()), (vec![], Some(MARKED)));
    assert_eq!(cloud.world.reason("Ready"), "WaitingForDrain");
    assert_eq!(cloud.world.reason("Drained"), "Migrating");
    cloud.empty();
    assert_eq!(cloud.runs(), ["nova"]);
    cloud.end("Ok");
    assert_eq!(cloud.runs(), ["nova", "nova-registered"]);
    cloud.is_up = false;
    cloud.end("Ok");
    assert_eq!(cloud.world.reason("Drained"), "WaitingForService");
    assert_eq!(cloud.disabled.as_deref(), Some(MARKED));
    cloud.is_up = true;
    cloud.settle();
    assert!(cloud.is_as_before(), "{:?}", cloud.state());
    assert_eq!(cloud.runs().len(), 2);
}

#[test]
fn a_change_of_a_host_that_nova_does_not_list_waits_until_the_user_gives_the_drain_up() {
    let mut cloud = Cloud::changed();
    cloud.is_listed = false;
    cloud.settle();
    assert_eq!((cloud.runs(), cloud.world.reason("Ready")), (vec![], "WaitingForDrain".into()));
    cloud.world.says(
        "Drained",
        "ServiceNotFound",
        &["does not list host n0.example.org", "OpenStackDataPlaneNode n0 to false"],
    );
    annotate(&mut cloud.world, DRAIN_BEFORE, Some("false"));
    cloud.settle();
    assert_eq!(cloud.runs(), ["nova"]);
}

#[test]
fn the_host_is_rebooted_where_needed_before_its_registration_is_checked() {
    let contents = |cloud: &Cloud| {
        let run = cloud.world.seen.runs.iter().rfind(|it| it.spec.playbook_contents.is_some());
        run.unwrap().spec.playbook_contents.clone().unwrap()
    };
    let mut cloud = Cloud::changed();
    cloud.empty();
    cloud.end("Ok");
    assert!(contents(&cloud).starts_with("- import_playbook: osp.edpm.reboot\n# "));
    annotate(&mut cloud.world, DRAIN_BEFORE, Some("false"));
    cloud.settle();
    assert_eq!(cloud.disabled.as_deref(), Some(MARKED), "the run may still restart the host");
    cloud.end("Ok");
    assert_eq!(cloud.disabled, None);
    cloud.world.configure(None);
    cloud.settle();
    cloud.end("Ok");
    assert!(!contents(&cloud).contains("osp.edpm.reboot"));
}

#[test]
fn a_renewed_certificate_alone_drains_no_host_and_reboots_none() {
    let mut world = World::with_tls();
    world.ask();
    world.issue("1");
    let mut world = world.deploy();
    world.ask();
    world.writes.clear();
    let mut cloud = Cloud::of(world, "true");
    cloud.has_servers = true;
    cloud.settle();
    cloud.world.issue("2");
    cloud.settle();
    assert_eq!((cloud.runs(), cloud.disabled.as_deref()), (vec!["libvirt"], None));
    // An input of another object that is gone for a moment begins no drain either.
    let secret = cloud.world.seen.cell_secret.take();
    cloud.settle();
    assert_eq!(cloud.disabled, None);
    cloud.world.seen.cell_secret = secret;
    cloud.end("Ok");
    assert_eq!(cloud.runs(), ["libvirt", "nova-registered"]);
    let run = cloud.world.seen.runs.iter().rfind(|it| it.spec.playbook_contents.is_some());
    let play = run.unwrap().spec.playbook_contents.clone().unwrap();
    assert!(!play.contains("osp.edpm.reboot"), "{play}");
    cloud.end("Ok");
    assert!(cloud.is_as_before(), "{:?}", cloud.state());
    // With a change that the user asked for, it waits as that does.
    cloud.world.issue("3");
    cloud.world.configure(Some("[libvirt]\ncpu_mode = none\n"));
    cloud.settle();
    assert_eq!((cloud.runs().len(), cloud.disabled.as_deref()), (2, Some(MARKED)));
    cloud.empty();
    assert_eq!(cloud.runs()[2..], ["libvirt"]);
}

#[test]
fn the_users_own_drain_decides_how_and_outlives_the_deployment() {
    let mut cloud = Cloud::changed();
    annotate(&mut cloud.world, DRAIN, Some("wait"));
    cloud.settle();
    assert_eq!(cloud.world.reason("Drained"), "ServersOnHost");
    assert_eq!(cloud.disabled.as_deref(), Some("nova.openstack.org/drain"));
    cloud.empty();
    cloud.end("Ok");
    cloud.end("Ok");
    let drained = cloud.world.condition("Drained");
    assert_eq!(
        (drained.status, cloud.world.reason("Ready").as_str()),
        (ConditionStatus::True, "Ready")
    );
    annotate(&mut cloud.world, DRAIN, None);
    cloud.settle();
    assert!(cloud.is_as_before(), "{:?}", cloud.state());
}

#[test]
fn a_change_of_a_host_that_its_user_has_drained_waits_for_a_reading_of_its_own() {
    let mut cloud = Cloud::of(World::deployed(), "true");
    annotate(&mut cloud.world, DRAIN, Some("wait"));
    cloud.settle();
    assert_eq!(cloud.progress, HostProgress::Drained);
    assert!(matches!(cloud.order(), Some(HostOrder::Drain(_))));
    // A server has come since the last reading, which counts for minutes.
    cloud.has_servers = true;
    cloud.world.configure(Some("[libvirt]\ncpu_mode = none\n"));
    cloud.world.writes.clear();
    cloud.settle();
    assert!(matches!(cloud.order(), Some(HostOrder::DrainForChange(_))));
    assert_eq!((cloud.runs(), cloud.world.reason("Ready").as_str()), (vec![], "WaitingForDrain"));
    cloud.empty();
    assert_eq!(cloud.runs(), ["nova"]);
    cloud.end("Ok");
    cloud.end("Ok");
    assert!(matches!(cloud.order(), Some(HostOrder::Drain(_))), "{:?}", cloud.state());
    assert_eq!(cloud.world.reason("Ready"), "Ready");
}

#[test]
fn a_request_of_the_user_that_is_not_valid_holds_the_deployment() {
    let mut cloud = Cloud::changed();
    cloud.has_servers = false;
    annotate(&mut cloud.world, DRAIN, Some("evacuate"));
    cloud.settle();
    assert_eq!(cloud.world.reason("Ready"), "WaitingForDrain");
    assert_eq!((cloud.world.reason("Drained").as_str(), cloud.runs()), ("DrainInvalid", vec![]));
    // What is found of the identity of the host follows no drain then.
    cloud.world.seen.drain = Some(HostProgress::Identity(IdentityUse::Free));
    let waits = |world: &World| drain_of(&world.seen).waits();
    assert!(waits(&cloud.world));
    annotate(&mut cloud.world, DRAIN, Some("wait"));
    assert!(!waits(&cloud.world));
}

#[test]
fn a_host_whose_deployment_fails_stays_drained_and_the_correction_goes_to_it() {
    let mut cloud = Cloud::changed();
    cloud.empty();
    cloud.end("Failed");
    cloud.settle();
    let ready = cloud.world.condition("Ready");
    assert_eq!((ready.reason.as_str(), cloud.disabled.as_deref()), ("TaskFailed", Some(MARKED)));
    for part in ["boom", "The host stays drained, and the rollout stops here.", "n0 to false"] {
        assert!(ready.message.contains(part), "{}", ready.message);
    }
    cloud.world.configure(None);
    cloud.settle();
    cloud.end("Ok");
    assert_eq!(cloud.disabled.as_deref(), Some(MARKED));
    cloud.end("Ok");
    assert!(cloud.is_as_before(), "{:?}", cloud.state());
    assert_eq!(cloud.runs(), ["nova", "nova", "nova-registered"]);
}

#[test]
fn a_host_that_failed_without_a_drain_is_drained_when_its_next_attempt_is_due() {
    let mut world = World::deployed();
    world.configure(Some("[libvirt]\ncpu_mode = none\n"));
    world.settle();
    world.end("Failed");
    world.settle();
    let mut cloud = Cloud::of(world, "true");
    cloud.settle();
    assert_eq!((cloud.world.reason("Ready").as_str(), &cloud.disabled), ("TaskFailed", &None));
    cloud.world.configure(None);
    cloud.settle();
    assert_eq!(cloud.disabled.as_deref(), Some(MARKED));
    cloud.end("Ok");
    cloud.end("Ok");
    assert!(cloud.is_as_before(), "{:?}", cloud.state());
}

#[test]
fn a_change_that_is_taken_back_during_the_drain_gives_the_host_back() {
    let mut cloud = Cloud::changed();
    cloud.settle();
    cloud.world.configure(Some("[libvirt]\ncpu_mode = custom\n"));
    cloud.settle();
    assert!(cloud.is_as_before(), "{:?}", cloud.state());
    assert_eq!(cloud.runs(), [""; 0]);
}

#[test]
fn a_drain_that_is_switched_off_while_it_lasts_leaves_only_the_change() {
    let mut cloud = Cloud::changed();
    cloud.settle();
    annotate(&mut cloud.world, DRAIN_BEFORE, Some("false"));
    cloud.world.seen.drain = Some(HostProgress::Pending);
    assert_eq!(host_order(&cloud.world.seen), Some(HostOrder::EnableOnceUp));
    cloud.world.settle();
    assert_eq!(cloud.runs(), ["nova"]);
}

#[test]
fn a_first_deployment_waits_for_no_drain() {
    for value in ["true", "false"] {
        let mut cloud = Cloud::of(World::new(), value);
        for _ in 0..3 {
            cloud.settle();
            cloud.end("Ok");
        }
        assert!(cloud.is_as_before(), "{value}");
    }
}

#[test]
fn without_novas_api_nothing_is_deployed_again_and_a_first_deployment_goes_on() {
    let mut world = World::new();
    annotate(&mut world, DRAIN_BEFORE, Some("true"));
    let mut world = world.deploy();
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    world.says(
        "InputReady",
        "NovaAPINotUsed",
        &["nova.api.enabled to true", "the annotation to false"],
    );
    world.configure(None);
    world.settle();
    assert_eq!((world.reason("Ready").as_str(), world.n_runs()), ("NovaAPINotUsed", 0));
    annotate(&mut world, DRAIN_BEFORE, Some("false"));
    world.settle();
    assert_eq!(world.n_runs(), 1);
}

#[test]
fn a_value_that_is_not_understood_deploys_nothing_and_enables_nothing() {
    let mut cloud = Cloud::changed();
    cloud.settle();
    annotate(&mut cloud.world, DRAIN_BEFORE, Some("yes"));
    cloud.empty();
    let input = cloud.world.condition("InputReady");
    assert_eq!(
        (input.reason.as_str(), cloud.world.reason("Drained").as_str()),
        ("DrainBeforeInvalid", "DrainInvalid")
    );
    assert!(input.message.contains("set it to true or false"), "{}", input.message);
    assert_eq!((cloud.runs(), cloud.disabled.as_deref()), (vec![], Some(MARKED)));
}

#[test]
fn a_role_that_is_gone_gives_no_host_back() {
    let mut cloud = Cloud::of(World::deployed(), "true");
    annotate(&mut cloud.world, DRAIN_BEFORE, None);
    let role = cloud.world.seen.group.as_mut().unwrap().role_mut();
    let annotation = (DRAIN_BEFORE.to_owned(), "true".to_owned());
    role.annotations_mut().extend([annotation]);
    cloud.has_servers = true;
    cloud.world.configure(None);
    cloud.settle();
    assert_eq!(cloud.disabled.as_deref(), Some(MARKED));
    let group = cloud.world.seen.group.take();
    cloud.settle();
    assert_eq!((cloud.order.clone(), cloud.disabled.as_deref()), (None, Some(MARKED)));
    cloud.world.seen.group = group;
    cloud.empty();
    assert_eq!(cloud.runs(), ["nova"]);
}

#[test]
fn a_run_that_waits_is_withdrawn_when_the_host_has_servers_again() {
    let mut cloud = Cloud::changed();
    cloud.world.is_queueing = true;
    cloud.empty();
    assert_eq!(cloud.runs(), ["nova"]);
    let is_waiting = |it: &Cloud| it.world.seen.runs.iter().any(is_open);
    cloud.has_servers = true;
    cloud.settle();
    assert!(!is_waiting(&cloud));
    assert_eq!(cloud.world.reason("DeploymentReady"), "WaitingForDrain");
    cloud.empty();
    assert!(is_waiting(&cloud));
}

#[test]
fn a_host_is_not_given_back_before_nova_was_read_after_a_restart_in_the_middle_of_a_run() {
    for takes_role in [false, true] {
        let mut cloud = Cloud::changed();
        cloud.empty();
        assert_eq!((cloud.runs(), cloud.disabled.as_deref()), (vec!["nova"], Some(MARKED)));
        if takes_role {
            let world = &mut cloud.world;
            let annotations = world.node().annotations_mut();
            annotations.remove(DRAIN_BEFORE);
            world.seen.group = None;
        } else {
            annotate(&mut cloud.world, DRAIN_BEFORE, Some("false"));
        }
        cloud.settle();
        assert_eq!(cloud.disabled.as_deref(), Some(MARKED), "the run is at work");
        cloud.restart();
        cloud.world.seen.health = Some(HostHealth::default());
        cloud.world.settle();
        assert_eq!(host_order(&cloud.world.seen), None, "{takes_role}");
    }
}

#[test]
fn an_operator_that_is_killed_at_any_point_comes_to_the_same_end() {
    for cut in (0..16).flat_map(|turn| (0..3).map(move |n_steps| (turn, n_steps))) {
        let mut cloud = Cloud::changed();
        for turn in 0..40 {
            let n_steps = if turn == cut.0 { cut.1 } else { usize::MAX };
            cloud.turn(n_steps);
            if turn == cut.0 {
                cloud.restart();
            }
            cloud.has_servers &= turn < 4;
            if turn % 4 == 3 && cloud.world.seen.runs.iter().any(is_open) {
                cloud.world.end("Ok");
            }
        }
        assert!(cloud.is_as_before(), "{cut:?}: {:?}", cloud.state());
        assert_eq!(cloud.runs(), ["nova", "nova-registered"], "{cut:?}");
    }
}

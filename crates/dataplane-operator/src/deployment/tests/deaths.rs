//! Whenever the operator dies, and whatever nodes it sees as they were before, it or its successor
//! continues: nothing runs twice, no success is repeated, and the end is the same.

use api::ansibleee::HostOutcome;
use proptest::prelude::*;

use super::*;

/// The outcome of a service's n-th attempt on a host, which depends only on the arguments.
fn outcome(seed: u64, service: &str, host: &str, n_tried: usize) -> &'static str {
    let sum: u64 = service.bytes().chain(host.bytes()).map(u64::from).sum();
    match (seed ^ sum.wrapping_mul(0x9e37_79b9) ^ n_tried as u64) % 5 {
        0 => "Failed",
        1 => "Unreachable",
        _ => "Ok",
    }
}

const HOSTS: [&str; 4] = ["a0", "a1", "a2", "b0"];

fn world() -> World {
    let sets = vec![
        node_set("a", &["a0", "a1", "a2"], &["first", "everywhere", "second"]),
        node_set("b", &["b0"], &["everywhere", "third"]),
    ];
    World::with(sets, json!({ "backoffLimit": 1 }))
}

/// What disturbs a pass.
#[derive(Clone, Debug)]
struct Disturbance {
    /// How many writes of its plan are made before the operator dies.
    n_made: usize,
    /// The hosts whose nodes it sees as they were.
    behind: Vec<&'static str>,
    /// So many passes before.
    lag: usize,
}

fn disturbance() -> impl Strategy<Value = Disturbance> {
    let behind = prop::sample::subsequence(HOSTS.to_vec(), 0..=HOSTS.len());
    (prop_oneof![0_usize..4, Just(usize::MAX)], behind, 1_usize..6)
        .prop_map(|(n_made, behind, lag)| Disturbance { n_made, behind, lag })
}

type Nodes = BTreeMap<String, BTreeMap<String, Arc<Node>>>;

/// The plan of an operator that sees some nodes as they were.
fn plan(world: &World, past: &[Nodes], disturbance: &Disturbance) -> Plan {
    let Some(before) = past.len().checked_sub(disturbance.lag) else { return world.plan() };
    let mut world = world.clone();
    for (node_set, nodes) in &past[before] {
        let old = nodes.iter().filter(|it| disturbance.behind.contains(&it.0.as_str()));
        let old = old.map(|(host, node)| (host.clone(), Arc::clone(node)));
        world.seen.nodes.get_mut(node_set).unwrap().extend(old);
    }
    world.plan()
}

/// The services that have succeeded on hosts.
fn succeeded(world: &World) -> BTreeSet<(String, String)> {
    let of_run = |run: &Arc<AnsibleEe>| {
        let service = run.labels()["openstackdataplaneservice"].clone();
        let hosts = run.status.iter().flat_map(|it| &it.hosts);
        let good = hosts.filter(|it| it.result == HostOutcome::Ok);
        good.map(|it| (service.clone(), it.name.clone())).collect::<Vec<_>>()
    };
    world.seen.runs.iter().flat_map(of_run).collect()
}

/// The final state after these disturbances of its first passes.
fn end(seed: u64, disturbances: &[Disturbance]) -> World {
    let mut world = world();
    let mut disturbances = disturbances.iter();
    let mut past: Vec<Nodes> = Vec::new();
    for _ in 0..400 {
        let disturbance = disturbances.next();
        let plan = disturbance.map_or_else(|| world.plan(), |it| plan(&world, &past, it));
        let n_made = disturbance.map_or(usize::MAX, |it| it.n_made).min(plan.steps.len());
        let is_at_rest = plan.steps.is_empty();
        past.push(world.seen.nodes.clone());
        let (n_carried, good) = (world.carried.len(), succeeded(&world));
        world.take(&plan.steps[..n_made]);
        for (service, host, _) in &world.carried[n_carried..] {
            assert!(!good.contains(&(service.clone(), host.clone())), "{service} again on {host}");
        }
        if world.is_over() {
            return world;
        }
        if is_at_rest {
            let tried = world.carried.clone();
            world.finish_with(|service, host| {
                let is_it = |it: &&(String, String, i64)| it.0 == service && it.1 == host;
                outcome(seed, service, host, tried.iter().filter(is_it).count())
            });
            world.sleep(900);
        }
    }
    panic!("no end: {:?}", world.writes);
}

/// The part of a final state that is compared: no times, no runs.
fn essence(world: &World) -> Value {
    let host = |host: &str| {
        let node = world.node(host);
        let service = |it: &ServiceRun| json!([it.name, it.state, it.attempt, it.reason]);
        let services: Vec<Value> = node.services.iter().map(service).collect();
        let deployment = node.deployment.as_ref().map(|it| (it.state, it.attempt));
        json!([services, deployment, node.deployed_config_hash])
    };
    let status = world.status();
    json!([
        HOSTS.map(host),
        status.deployed,
        status.node_set_hashes,
        world.condition("DeploymentReady")
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nothing_runs_twice_and_the_end_is_the_same(
        seed in any::<u64>(),
        disturbances in prop::collection::vec(disturbance(), 0..60),
    ) {
        let undisturbed = end(seed, &[]);
        let disturbed = end(seed, &disturbances);
        prop_assert_eq!(essence(&disturbed), essence(&undisturbed));
        prop_assert_eq!(once(&disturbed), once(&undisturbed));
    }
}

//! Whenever the operator dies, its successor continues: nothing runs twice, and the end is the
//! same.

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

/// The final state when the operator makes only this many writes of each plan before it dies.
fn end(seed: u64, deaths: &[usize]) -> World {
    let mut world = world();
    let mut deaths = deaths.iter().copied();
    for _ in 0..400 {
        let plan = world.plan();
        let n_made = deaths.next().unwrap_or(usize::MAX).min(plan.steps.len());
        let is_at_rest = plan.steps.is_empty();
        world.take(&plan.steps[..n_made]);
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
        deaths in prop::collection::vec(0_usize..4, 0..60),
    ) {
        let undisturbed = end(seed, &[]);
        let disturbed = end(seed, &deaths);
        prop_assert_eq!(essence(&disturbed), essence(&undisturbed));
        prop_assert_eq!(once(&disturbed), once(&undisturbed));
    }
}

//! Objects as a cluster has them, for the tests of every command.

use common::yaml;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::world::World;

/// A time at which the objects are as they are.
pub(crate) const NOW: &str = "2026-11-21T12:00:00Z";

const OBJECTS: &str = include_str!("../testdata/world.yaml");

/// Four hosts: deployed, with nova on its way, failed in phase 0, and waiting for another's run.
pub(crate) fn world() -> World {
    World {
        roles: of("OpenStackDataPlaneRole"),
        nodes: of("OpenStackDataPlaneNode"),
        computes: of("NovaExternalCompute"),
        cells: of("NovaCell"),
        runs: of("OpenStackAnsibleEE"),
    }
}

fn of<K: DeserializeOwned>(kind: &str) -> Vec<K> {
    let all: Vec<Value> = yaml::documents(OBJECTS).unwrap();
    let chosen = all.into_iter().filter(|it| it["kind"] == kind);
    chosen.map(|it| serde_json::from_value(it).unwrap()).collect()
}

//! The least writes that a step needs, each with its name; Events and Leases do not count.

use super::manifests::{self, SERVICES, SETS_OF_DEPLOYMENT};
use super::step::Step;
use super::{Fleet, Road};

/// The hosts of one batch, which share the runs.
const BATCH: usize = 50;
/// One of so many hosts in service may be out of it at once.
const DISTURBED: usize = 5;
/// The runs of a compute: libvirt and nova.
const RUNS_OF_COMPUTE: usize = 2;

/// Writes of one kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Writes {
    pub(super) what: &'static str,
    pub(super) n: usize,
}

const fn writes(what: &'static str, n: usize) -> Writes {
    Writes { what, n }
}

/// Returns the least writes of a step; `None` where they are not known.
pub(super) fn of(fleet: Fleet, step: Step, default_services: usize) -> Option<Vec<Writes>> {
    match step {
        Step::First => Some(first_deployment(fleet, default_services)),
        Step::Redeploy => Some(redeployment(fleet)),
        Step::Restart | Step::Idle => Some(Vec::new()),
        Step::Edit if fleet.road == Road::Role => Some(edit(fleet)),
        Step::Edit
        | Step::Change
        | Step::Delete
        | Step::Add
        | Step::Down
        | Step::Up
        | Step::Drain
        | Step::Undrain => None,
    }
}

fn first_deployment(fleet: Fleet, default_services: usize) -> Vec<Writes> {
    let n_hosts = fleet.nodes;
    let n_batches = n_batches(fleet, BATCH);
    let mut found = vec![writes("default services: created, judged", 2 * default_services)];
    match fleet.road {
        Road::Role => found.extend(of_role(n_hosts, n_batches)),
        Road::Compute => {
            found.extend(of_role(n_hosts, n_batches));
            found.extend(of_computes(n_hosts));
        }
        Road::NodeSet => found.extend(of_node_sets(n_hosts)),
    }
    found.extend(of_batches(n_batches));
    found
}

/// Returns those of a role and its nodes.
fn of_role(n_hosts: usize, n_batches: usize) -> [Writes; 3] {
    [
        writes("role: finalizer, begun, ended", 3),
        writes("nodes: finalizer, begun, ended", 3 * n_hosts),
        writes("inventories: one for each batch", n_batches),
    ]
}

/// Returns those of node sets, their nodes, and one deployment for every five of them.
fn of_node_sets(n_hosts: usize) -> [Writes; 4] {
    let n_sets = manifests::sets(n_hosts).len();
    [
        writes("node sets: finalizer, begun, ended", 3 * n_sets),
        writes(
            "deployments: finalizer, begun, ended, released",
            4 * n_sets.div_ceil(SETS_OF_DEPLOYMENT),
        ),
        writes("nodes: created, begun, ended", 3 * n_hosts),
        writes("inventories: one for each node set", n_sets),
    ]
}

/// Returns those of computes, each of which has runs of its own.
fn of_computes(n_hosts: usize) -> [Writes; 2] {
    [
        writes("computes: six each", 6 * n_hosts),
        writes("runs of computes: four each", 4 * RUNS_OF_COMPUTE * n_hosts),
    ]
}

/// Returns those of batches and of the runs of their services.
fn of_batches(n_batches: usize) -> [Writes; 2] {
    [
        writes("batches: two each", 2 * n_batches),
        writes("runs of services: five each", 5 * SERVICES.len() * n_batches),
    ]
}

/// Every host is begun and ended once more; a batch has no more hosts than may be out of service. Until
/// its turn comes, the node of a role's host says that it is out of date.
fn redeployment(fleet: Fleet) -> Vec<Writes> {
    let n_hosts = fleet.nodes;
    let n_disturbed = (n_hosts / DISTURBED).max(1);
    let mut found = vec![writes("nodes: begun, ended", 2 * n_hosts)];
    match fleet.road {
        Road::Role => found.extend(of_role_again(n_hosts - n_disturbed)),
        Road::Compute => {
            found.extend(of_role_again(n_hosts - n_disturbed));
            found.extend([
                writes("computes: begun, ended", 2 * n_hosts),
                writes("runs of computes: four each", 4 * RUNS_OF_COMPUTE * n_hosts),
            ]);
        }
        Road::NodeSet => {
            let n_sets = manifests::sets(n_hosts).len();
            let n_deployments = n_sets.div_ceil(SETS_OF_DEPLOYMENT);
            found.push(writes("node sets: begun, ended", 2 * n_sets));
            found.push(writes("deployments: finalizer, begun, ended, released", 4 * n_deployments));
        }
    }
    found.extend(of_batches(n_batches(fleet, n_disturbed.min(BATCH))));
    found
}

/// Returns those of an edit of a role's template: what its inventories say changes, and each host is
/// deployed again.
fn edit(fleet: Fleet) -> Vec<Writes> {
    let mut found = redeployment(fleet);
    found.push(writes("inventories: one for each batch", n_batches(fleet, BATCH)));
    found
}

/// Returns those of a role that is deployed again, of whose hosts some wait for their turn.
fn of_role_again(n_waiting: usize) -> [Writes; 2] {
    [writes("role: begun, ended", 2), writes("nodes: out of date, until their turn", n_waiting)]
}

/// Returns the number of batches of at most `size` hosts; no two node sets share one.
fn n_batches(fleet: Fleet, size: usize) -> usize {
    match fleet.road {
        Road::Role | Road::Compute => fleet.nodes.div_ceil(size),
        Road::NodeSet => {
            manifests::sets(fleet.nodes).iter().map(|it| it.len().div_ceil(size)).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(road: Road, nodes: usize, step: Step) -> usize {
        let fleet = Fleet { road, nodes, nodes_first: false };
        of(fleet, step, 36).unwrap().iter().map(|it| it.n).sum()
    }

    #[test]
    fn a_first_deployment_needs_three_writes_a_host_and_those_of_batches_and_services() {
        let first = |road, nodes| sum(road, nodes, Step::First);
        assert_eq!(first(Road::Role, 200), 72 + 3 + 3 * 200 + 4 + 4 * 27);
        assert_eq!(first(Road::Role, 5000), 72 + 3 + 3 * 5000 + 100 + 100 * 27);
        assert_eq!(first(Road::NodeSet, 200), 72 + (3 + 4 + 1) + 3 * 200 + 4 * 27);
        assert_eq!(first(Road::NodeSet, 5000), 72 + (30 + 8 + 10) + 3 * 5000 + 100 * 27);
        // One host more is one batch more, of a second node set.
        assert_eq!(first(Road::NodeSet, 501) - first(Road::NodeSet, 500), (3 + 1) + 3 + 27);
        let of_computes = first(Road::Compute, 200) - first(Road::Role, 200);
        assert_eq!(of_computes, (6 + 4 * 2) * 200);
    }

    #[test]
    fn a_redeployment_has_the_batches_that_a_fifth_out_of_service_allows() {
        let again = |road, nodes| sum(road, nodes, Step::Redeploy);
        assert_eq!(again(Road::Role, 10), 2 * 10 + 2 + 8 + 5 * 27);
        assert_eq!(again(Road::Role, 200), 2 * 200 + 2 + 160 + 5 * 27);
        assert_eq!(again(Road::Role, 1000), 2 * 1000 + 2 + 800 + 20 * 27);
        assert_eq!(sum(Road::Role, 200, Step::Edit), again(Road::Role, 200) + 4);
        assert_eq!(again(Road::NodeSet, 10), 2 * 10 + 2 + 4 + 5 * 27);
        assert_eq!(again(Road::Compute, 10) - again(Road::Role, 10), (2 + 4 * 2) * 10);
    }

    #[test]
    fn nothing_is_written_at_rest_nor_after_a_restart() {
        assert_eq!([Step::Idle, Step::Restart].map(|it| sum(Road::Role, 10, it)), [0, 0]);
        let fleet = Fleet { road: Road::Role, nodes: 10, nodes_first: false };
        assert_eq!(of(fleet, Step::Delete, 36), None);
    }
}

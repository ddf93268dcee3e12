//! Maps changes of watched objects to the keys that the controllers reconcile.

use std::sync::Arc;
use std::time::Duration;

use api::ansibleee::AnsibleEe;
use api::conditions::find;
use api::dataplane::{Node, NodeSet};
use api::nova::{Cell, CredentialKind, ExternalCompute, MappingReading};
use kube::{Resource, ResourceExt};
use nova_config::conditions::HOST_DISCOVERED;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host;
use operator_core::object_key::Key;
use operator_runtime::event_mapping::EventMapping;

use crate::caches::Caches;
use crate::cell::nova_matches::reported;
use crate::cell::observed::discovery::unmapped;
use crate::compute::audit::scope::Scope;
use crate::compute::audit_runs::observed::{is_compute_settled, is_node_settled};
use crate::compute::credentials::observe::held_as;
use crate::compute_status::computes_up::service_up;
use crate::controller_names::{CELL, CELL_READINGS, COMPUTE, SERVICE_CONFIG};
use crate::group::{GroupKey, group_key};
use crate::shared_caches::SharedCaches;
use crate::shared_caches::audit_runs::{audited_nodes, is_audit, is_open, open_addresses};
use crate::shared_caches::cleanup_runs;
use crate::shared_caches::cleanup_runs::cleans_up_after;
use crate::shared_caches::credential_keys::keys_of;
use crate::shared_caches::discovery_jobs::cell_of;
use crate::shared_caches::indexes::{BY_CELL, BY_NODE, BY_OPEN_ADDRESS, BY_OWNER, cell_key};
use crate::shared_caches::queues::Queues;
use crate::wiring::relevant_fields::{relevant_fields, relevant_metadata};

/// Delay before the computes of a cell or role are counted, or its hosts are looked at for an
/// audit, so that a rollout over many causes few passes.
const COUNT_PAUSE: Duration = Duration::from_secs(2);

/// Registers the event handlers: each change enqueues the objects that depend on it.
pub fn map_events(caches: &Arc<Caches>, queues: &Queues) {
    let all = &**caches;
    map_nodes(caches, &EventMapping::new(&queues.nodes, caches));
    map_computes(caches, &EventMapping::new(&queues.computes, caches));
    map_cells(caches, &EventMapping::new(&queues.cells, caches));
    if all.nova.is_some() {
        map_cell_readings(all, &EventMapping::new(&queues.cell_readings, caches));
    }
    map_rollouts(caches, queues);
    let shared = Arc::new(all.shared.clone());
    map_groups(&shared, &EventMapping::new(&queues.groups, &shared).delayed(COUNT_PAUSE));
    map_audits(all, &EventMapping::new(&queues.audits, caches));
    map_held(all, &EventMapping::new(&queues.held_credentials, caches));
    let services = EventMapping::new(&queues.services, caches);
    services.watches(&all.services, |_, service| [Key::of(service)]);
    all.sources.on_change(SERVICE_CONFIG, services.handler(|_, reader| [reader]));
    let cleanups = EventMapping::new(&queues.cleanups, caches);
    cleanups.watches(&all.shared.runs, |_, run| cleans_up_after(run).map(|_| Key::of(run)));
    cleanups.watches(&all.shared.computes, |caches, compute| {
        let runs = caches.shared.runs.indexed(BY_OWNER, &uid_key(compute));
        Key::of_each(runs.into_iter().filter(|it| cleans_up_after(it).is_some()))
    });
}

fn map_nodes(all: &Caches, nodes: &EventMapping<Caches>) {
    nodes.watches(&all.shared.nodes, |_, node| [Key::of(node)]);
    nodes.watches(&all.shared.computes, |_, compute| [Key::of(compute)]);
    map_inherited(all, nodes, |_, nodes| nodes);
    // A service of type nova decides which computes the nodes have that list it, and the cell whose files
    // it mounts is theirs.
    nodes.watches(&all.services, |caches, service| Key::of_each(caches.listing(service)));
    nodes.debounced().watches_changes(
        &all.cells,
        |_| (),
        |caches, cell| {
            Key::of_each(caches.shared.nodes.in_namespace(&cell.namespace().unwrap_or_default()))
        },
    );
}

fn map_computes(all: &Caches, computes: &EventMapping<Caches>) {
    computes.watches(&all.shared.computes, |_, compute| [Key::of(compute)]);
    computes.watches(&all.shared.nodes, |caches, node| computes_of(caches, [Key::of(node)]));
    map_inherited(all, computes, computes_of);
    computes.watches(&all.services, |caches, service| {
        computes_of(caches, Key::of_each(caches.listing(service)))
    });
    computes.watches(&all.shared.runs, |_, run| compute_of(run));
    computes.watches(&all.shared.runs, |caches, run| {
        let nodes = if is_open(run) { Vec::new() } else { audited_nodes(run) };
        computes_of(caches, nodes)
    });
    // Changes of counters alone enqueue nothing: otherwise each count would cause another.
    computes.watches_changes(&all.cells, relevant_fields, |caches, cell| {
        Key::of_each(caches.shared.computes.indexed(BY_CELL, &Key::of(cell)))
    });
    // Removals wait for what the cell has read of mappings, and for their places in its list.
    let of_removals = |it: &Cell| (readings(it), on_record(it));
    computes.watches_changes(&all.cells, of_removals, |caches, cell| {
        let all = caches.shared.computes.indexed(BY_CELL, &Key::of(cell)).into_iter();
        Key::of_each(all.filter(|it| is_terminating(&**it)))
    });
    map_certificates(all, &computes.debounced());
    all.sources.on_change(COMPUTE, computes.handler(|_, reader| [reader]));
}

fn map_certificates(all: &Caches, computes: &EventMapping<Caches>) {
    let cert_manager = &all.cert_manager;
    computes.watches(cert_manager.certificates.cache(), |_, it| owning_compute(it));
    computes.watches(cert_manager.issuers.cache(), |caches, issuer| {
        let namespace = issuer.namespace().unwrap_or_default();
        Key::of_each(caches.shared.computes.in_namespace(&namespace))
    });
}

fn map_cells(all: &Caches, cells: &EventMapping<Caches>) {
    cells.watches_changes(&all.cells, relevant_fields, |_, cell| [Key::of(cell)]);
    // Two cells of a namespace may not have the same message bus.
    let of_others = |it: &Cell| (it.spec.clone(), is_terminating(it));
    cells.watches_changes(&all.cells, of_others, |caches, cell| {
        caches.cells_of(&cell.namespace().unwrap_or_default())
    });
    cells.watches(&all.shared.computes, |_, compute| {
        compute.metadata.deletion_timestamp.as_ref().map(|_| cell_key(compute))
    });
    // A batch of new hosts has one discovery, and computes of another nova have one condition.
    let of_cell = |it: &ExternalCompute| (unmapped(it), reported(it).map(str::to_owned));
    let paused = cells.delayed(COUNT_PAUSE);
    paused.watches_changes(&all.shared.computes, of_cell, |_, compute| [cell_key(compute)]);
    if let Some(jobs) = &all.discovery_jobs {
        cells.watches(jobs, |_, job| cell_of(job));
    }
    all.sources.on_change(CELL, cells.handler(|_, reader| [reader]));
}

/// Maps what the readings for a cell depend on: the cell, its Secrets, and computes that name a cell
/// which does not exist.
fn map_cell_readings(all: &Caches, readings: &EventMapping<Caches>) {
    readings.watches(&all.cells, |_, cell| [Key::of(cell)]);
    readings.watches(&all.shared.computes, |caches, compute| {
        Some(cell_key(compute)).filter(|it| caches.cells.get(it).is_none())
    });
    all.sources.on_change(CELL_READINGS, readings.handler(|_, reader| [reader]));
}

/// Maps what is held to the computes that use it, or did so until now.
fn map_held(all: &Caches, held: &EventMapping<Caches>) {
    const OF_SECRETS: &[CredentialKind] =
        &[CredentialKind::TransportSecret, CredentialKind::ApplicationCredential];
    // A rollout over many hosts changes each of them.
    held.delayed(COUNT_PAUSE).watches(&all.shared.computes, |_, compute| keys_of(compute));
    held.watches(&all.secrets, |_, secret| held_as(secret, OF_SECRETS));
    held.watches(all.rabbitmq_users.cache(), |_, user| {
        held_as(user, &[CredentialKind::RabbitMqUser])
    });
}

/// Maps what audits depend on: who requests them, whether hosts are being deployed, and the runs on
/// these hosts.
fn map_audits(all: &Caches, audits: &EventMapping<Caches>) {
    let shared = &all.shared;
    audits.watches_changes(&shared.roles, relevant_metadata, |_, role| {
        [GroupKey::Role(Key::of(role)).work_key()]
    });
    audits.watches_changes(&shared.node_sets, relevant_metadata, |_, set| {
        [GroupKey::NodeSet(Key::of(set)).work_key()]
    });
    // A rollout over many hosts changes each of them.
    let paused = audits.delayed(COUNT_PAUSE);
    let of_node = |it: &Node| (relevant_metadata(it), is_node_settled(it));
    paused.watches_changes(&shared.nodes, of_node, |_, node| [Scope::of_node(node).key()]);
    let of_compute = |it: &ExternalCompute| (relevant_metadata(it), is_compute_settled(it));
    paused.watches_changes(&shared.computes, of_compute, |caches, compute| {
        caches.shared.node_of(compute).map(|it| Scope::of_node(&it).key())
    });
    audits.watches(&shared.runs, scopes_of);
}

/// Returns the scope of an audit; of another run those whose audits use its hosts now.
fn scopes_of(caches: &Caches, run: &AnsibleEe) -> Vec<Key> {
    if is_audit(run) {
        return Scope::of_run(run).map(|it| it.key()).into_iter().collect();
    }
    let addresses = open_addresses(run).into_iter();
    let beside = addresses.flat_map(|it| caches.shared.runs.indexed(BY_OPEN_ADDRESS, &it));
    let audits = beside.filter(|it| is_audit(it));
    audits.filter_map(|it| Scope::of_run(&it)).map(|it| it.key()).collect()
}

fn on_record(cell: &Cell) -> Vec<String> {
    cell.leftovers().iter().map(|it| it.uid.clone()).collect()
}

/// Returns what the removals of a cell's hosts depend on: what was read of mappings, or why none is.
fn readings(cell: &Cell) -> (Option<MappingReading>, Option<String>) {
    let Some(status) = &cell.status else { return (None, None) };
    let discovery = find(&status.conditions, HOST_DISCOVERED).map(|it| it.reason.clone());
    (status.mapping_reading.clone(), discovery)
}

/// Maps what is said about a role or node set depends on: which nodes it has, and whether their computes
/// are up.
fn map_groups(all: &SharedCaches, groups: &EventMapping<SharedCaches>) {
    groups.watches(&all.roles, |_, role| [GroupKey::Role(Key::of(role)).work_key()]);
    groups.watches(&all.node_sets, |_, set| [GroupKey::NodeSet(Key::of(set)).work_key()]);
    groups.watches_changes(&all.nodes, group_key, |caches, node| {
        let now = caches.nodes.get(&Key::of(node)).and_then(|it| group_key(&it));
        // Of a node that changes its group, both groups.
        let both = group_key(node).into_iter().chain(now);
        both.map(|it| it.work_key()).collect::<Vec<_>>()
    });
    groups.watches_changes(&all.computes, service_up, |caches, compute| {
        caches.node_of(compute).and_then(|it| group_key(&it)).map(|it| it.work_key())
    });
}

/// Maps what nodes have of their roles and node sets; `concerned` are the objects of these nodes.
fn map_inherited(
    all: &Caches,
    queue: &EventMapping<Caches>,
    concerned: fn(&Caches, Vec<Key>) -> Vec<Key>,
) {
    let of_group = move |caches: &Caches, group| {
        concerned(caches, Key::of_each(caches.shared.nodes_of(&group)))
    };
    queue.watches_changes(&all.shared.roles, relevant_metadata, move |caches, role| {
        of_group(caches, GroupKey::Role(Key::of(role)))
    });
    let inherited = |it: &NodeSet| (relevant_metadata(it), node_set_host::dns_config(it));
    queue.watches_changes(&all.shared.node_sets, inherited, move |caches, set| {
        of_group(caches, GroupKey::NodeSet(Key::of(set)))
    });
}

/// Refreshes the rollout state of changed computes, and enqueues the computes and cells that
/// the change affects.
fn map_rollouts(all: &Arc<Caches>, queues: &Queues) {
    let (caches, computes) = (Arc::clone(all), Arc::clone(&queues.computes));
    let cells = Arc::clone(&queues.cells);
    let refresh = move |key: &Key| {
        let affected = caches.coordinator.refresh(key);
        affected.computes.into_iter().for_each(|it| computes.push(it));
        affected.cells.into_iter().for_each(|it| cells.push_in(it, COUNT_PAUSE));
    };
    let (caches, of_node) = (Arc::clone(all), refresh.clone());
    all.shared.nodes.on_change(move |node| {
        computes_of(&caches, [Key::of(node)]).iter().for_each(&of_node);
    });
    all.shared.computes.on_change(move |compute| refresh(&Key::of(compute)));
}

fn computes_of(caches: &Caches, nodes: impl IntoIterator<Item = Key>) -> Vec<Key> {
    Key::of_each(nodes.into_iter().flat_map(|it| caches.shared.computes.indexed(BY_NODE, &it)))
}

/// Returns the key of an object in the index [`BY_OWNER`] of what it owns.
fn uid_key(owner: &ExternalCompute) -> Key {
    Key::new(owner.namespace().unwrap_or_default(), owner.uid().unwrap_or_default())
}

/// Returns the compute that owns a run, or that the run cleans up after.
fn compute_of(run: &AnsibleEe) -> Option<Key> {
    owning_compute(run).or_else(|| cleanup_runs::compute_of(run))
}

/// Returns the compute that owns an object.
fn owning_compute<K: ResourceExt>(object: &K) -> Option<Key> {
    let kind = ExternalCompute::kind(&());
    let owner = object.owner_references().iter().find(|it| it.kind == kind)?;
    Some(Key::new(object.namespace().unwrap_or_default(), &owner.name))
}

#[cfg(test)]
mod tests {
    use operator_runtime::cache::WriteThrough as _;
    use operator_runtime::workqueue::WorkQueue;
    use serde_json::{Value, json};
    use testkit::conditions::stated;

    use super::*;

    fn object(api: &str, kind: &str, version: u32, spec: &Value, status: &Value) -> Value {
        json!({
            "apiVersion": format!("{api}.openstack.org/v1beta1"),
            "kind": kind,
            "metadata": {
                "name": "n0", "namespace": "ns", "uid": "u", "resourceVersion": version.to_string(),
            },
            "spec": spec,
            "status": status,
        })
    }

    fn node(version: u32, role: &str) -> Value {
        let spec = json!({"ansibleHost": "192.0.2.7", "role": role});
        object("dataplane", "OpenStackDataPlaneNode", version, &spec, &json!({}))
    }

    /// A compute with that status of `ServiceUp` and that message of it.
    fn compute(version: u32, service_up: &str, message: &str) -> Value {
        let condition = stated("ServiceUp", service_up, "x", message);
        let spec = json!({"dataplaneNodeName": "n0", "cellName": "cell1"});
        let status = json!({"conditions": [condition]});
        object("nova", "NovaExternalCompute", version, &spec, &status)
    }

    async fn enqueued(queue: &WorkQueue) -> Vec<String> {
        let mut names = Vec::new();
        while !queue.is_empty() {
            let key = queue.next().await;
            queue.done(&key);
            names.push(key.name);
        }
        names
    }

    #[tokio::test]
    async fn a_group_is_enqueued_when_a_compute_goes_up_or_down_or_a_node_joins_and_not_otherwise()
    {
        let (caches, queue) = (Arc::new(SharedCaches::default()), Arc::<WorkQueue>::default());
        map_groups(&caches, &EventMapping::new(&queue, &caches));
        caches.nodes.absorb(&node(1, "one"));
        assert_eq!(enqueued(&queue).await, ["role/one"]);
        caches.computes.absorb(&compute(2, "True", "x"));
        assert_eq!(enqueued(&queue).await, ["role/one"]);
        caches.computes.absorb(&compute(3, "True", "y"));
        caches.nodes.absorb(&node(4, "one"));
        assert_eq!(enqueued(&queue).await, [""; 0], "nothing that counts has changed");
        caches.computes.absorb(&compute(5, "False", "y"));
        assert_eq!(enqueued(&queue).await, ["role/one"]);
        caches.nodes.absorb(&node(6, "two"));
        assert_eq!(enqueued(&queue).await, ["role/one", "role/two"]);
    }
}

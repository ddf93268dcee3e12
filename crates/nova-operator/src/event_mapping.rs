//! Maps changes of watched objects to the keys that the controllers reconcile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::ansibleee::AnsibleEe;
use api::conditions::find;
use api::dataplane::{HostReadiness, NodeSet, Role};
use api::nova::{Cell, CredentialKind, ExternalCompute, MappingReading};
use kube::{Resource, ResourceExt};
use nova_config::annotations::SKIP_CLEANUP;
use nova_config::conditions::HOST_DISCOVERED;
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;
use operator_core::run_engine::Run;
use operator_runtime::cache::{Cache, Watchable};
use operator_runtime::change_filter::ChangeFilter;
use operator_runtime::event_mapping::EventMapping;

use crate::audit::run::{audited_nodes, is_audit, is_open, open_addresses};
use crate::audit::scope::Scope;
use crate::audit_runs::observed::{is_compute_settled, is_node_settled};
use crate::caches::Caches;
use crate::cell::discovery::observed::{cell_of, unmapped};
use crate::cell::nova_matches::reported;
use crate::cleanup::labels::{self, cleans_up_after};
use crate::computes_up::service_up;
use crate::controller_names::{CELL, CELL_READINGS, COMPUTE, NODE_SET, SERVICE_CONFIG};
use crate::held_credentials::observe::held_as;
use crate::held_credentials::observed::keys_of;
use crate::indexes::{
    BY_CELL, BY_NODE, BY_OPEN_ADDRESS, BY_OWNER, BY_ROLE, cell_key, node_key, node_set_key,
    role_key,
};
use crate::node_set_caches::NodeSetCaches;
use crate::node_set_computes::removal::condition::is_contested;
use crate::node_set_computes::removal::labels::node_set_of;
use crate::node_set_computes::removal::observed::terminating;
use crate::node_set_computes::removal::record::records;
use crate::node_set_readiness::{is_ours, report_key};
use crate::queues::Queues;
use crate::relevant_fields::{
    RelevantFields, RelevantMetadata, relevant_fields, relevant_metadata,
};
use crate::shared_caches::SharedCaches;

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
    if let Some(node_sets) = &all.node_sets {
        map_node_sets(all, node_sets, &EventMapping::new(&queues.node_sets, caches));
        let shared = Arc::new(all.watched());
        map_roles(&shared, &EventMapping::new(&queues.roles, &shared).delayed(COUNT_PAUSE));
    }
    map_audits(all, &EventMapping::new(&queues.audits, caches));
    map_held(all, &EventMapping::new(&queues.held_credentials, caches));
    let services = EventMapping::new(&queues.services, caches);
    services.watches(&all.services, |_, service| [Key::of(service)]);
    all.sources.on_change(SERVICE_CONFIG, services.handler(|_, reader| [reader]));
    let cleanups = EventMapping::new(&queues.cleanups, caches);
    cleanups.watches(&all.runs, |_, run| cleans_up_after(run).map(|_| Key::of(run)));
    cleanups.watches(&all.computes, |caches, compute| {
        let runs = caches.runs.indexed(BY_OWNER, &uid_key(compute));
        Key::of_each(runs.into_iter().filter(|it| cleans_up_after(it).is_some()))
    });
}

fn map_nodes(all: &Caches, nodes: &EventMapping<Caches>) {
    nodes.watches(&all.nodes, |_, node| [Key::of(node)]);
    nodes.watches(&all.computes, |_, compute| [Key::of(compute)]);
    let changes = ChangeFilter::default();
    nodes.watches(&all.roles, move |caches, role| changed_role(caches, &changes, role));
    // A service of type nova conflicts with the computes of the nodes that list it.
    nodes.watches(&all.services, |caches, service| Key::of_each(caches.listing(service)));
}

fn map_computes(all: &Caches, computes: &EventMapping<Caches>) {
    computes.watches(&all.computes, |_, compute| [Key::of(compute)]);
    computes.watches(&all.nodes, |caches, node| computes_of(caches, [Key::of(node)]));
    let changes = ChangeFilter::default();
    computes.watches(&all.roles, move |caches, role| {
        computes_of(caches, changed_role(caches, &changes, role))
    });
    computes.watches(&all.services, |caches, service| {
        computes_of(caches, Key::of_each(caches.listing(service)))
    });
    computes.watches(&all.runs, |_, run| compute_of(run));
    computes.watches(&all.runs, |caches, run| {
        let nodes = if is_open(run) { Vec::new() } else { audited_nodes(run) };
        computes_of(caches, nodes)
    });
    let changes = ChangeFilter::default();
    computes.watches(&all.cells, move |caches, cell| {
        let key = Key::of(cell);
        let computes = || Key::of_each(caches.computes.indexed(BY_CELL, &key));
        if is_relevant(caches, &changes, &key) { computes() } else { Vec::new() }
    });
    // Removals wait for what the cell has read of mappings, and for their places in its list.
    let changes = ChangeFilter::default();
    computes.watches(&all.cells, move |caches, cell| {
        let key = Key::of(cell);
        let now = || caches.cells.get(&key).map(|it| (readings(&it), on_record(&it)));
        let is_changed = changes.changes(&key, now);
        let all = if is_changed { caches.computes.indexed(BY_CELL, &key) } else { Vec::new() };
        Key::of_each(all.into_iter().filter(|it| is_terminating(&**it)))
    });
    map_certificates(all, &computes.debounced());
    all.sources.on_change(COMPUTE, computes.handler(|_, reader| [reader]));
}

fn map_certificates(all: &Caches, computes: &EventMapping<Caches>) {
    let cert_manager = &all.cert_manager;
    computes.watches(cert_manager.certificates.cache(), |_, it| owning_compute(it));
    computes.watches(cert_manager.issuers.cache(), |caches, issuer| {
        let is_here = |it: &Arc<ExternalCompute>| it.namespace() == issuer.namespace();
        Key::of_each(caches.computes.all().into_iter().filter(is_here))
    });
}

fn map_cells(all: &Caches, cells: &EventMapping<Caches>) {
    let changes = ChangeFilter::default();
    cells.watches(&all.cells, move |caches, cell| {
        Some(Key::of(cell)).filter(|it| is_relevant(caches, &changes, it))
    });
    cells.watches(&all.computes, |_, compute| {
        compute.metadata.deletion_timestamp.as_ref().map(|_| cell_key(compute))
    });
    if let Some(of_sets) = &all.node_sets {
        map_let_go(of_sets, cells);
    }
    // A batch of new hosts has one discovery, and computes of another nova have one condition.
    let changes = ChangeFilter::default();
    cells.delayed(COUNT_PAUSE).watches(&all.computes, move |caches, compute| {
        let key = Key::of(compute);
        let told = |it: &ExternalCompute| (unmapped(it), reported(it).map(str::to_owned));
        let now = || caches.computes.get(&key).map(|it| told(&it));
        changes.changes(&key, now).then(|| cell_key(compute))
    });
    if let Some(jobs) = &all.discovery_jobs {
        cells.watches(jobs, |_, job| cell_of(job));
    }
    all.sources.on_change(CELL, cells.handler(|_, reader| [reader]));
}

/// Maps what the readings for a cell depend on: the cell, its Secrets, and computes that name a cell
/// which does not exist.
fn map_cell_readings(all: &Caches, readings: &EventMapping<Caches>) {
    readings.watches(&all.cells, |_, cell| [Key::of(cell)]);
    readings.watches(&all.computes, |caches, compute| {
        Some(cell_key(compute)).filter(|it| caches.cells.get(it).is_none())
    });
    all.sources.on_change(CELL_READINGS, readings.handler(|_, reader| [reader]));
}

/// Maps what a cell records of hosts that node sets let go without a removal from nova.
fn map_let_go(of_sets: &NodeSetCaches, cells: &EventMapping<Caches>) {
    let changes = ChangeFilter::default();
    cells.watches(of_sets.node_sets.cache(), move |caches, set| {
        let key = Key::of(set);
        let skips =
            |it: &Arc<NodeSet>| it.annotations().get(SKIP_CLEANUP).is_some_and(|it| it == "true");
        let now = || {
            let set = caches.node_sets.as_ref()?.node_sets.cache().get(&key).filter(skips)?;
            Some(relevant_metadata(&*set))
        };
        if changes.changes(&key, now) { caches.cells_of(&key.namespace) } else { Vec::new() }
    });
    let changes = ChangeFilter::default();
    cells.watches(of_sets.reports.cache(), move |caches, report| {
        let key = Key::of(report);
        let now = || {
            let report = caches.node_sets.as_ref()?.reports.cache().get(&key);
            let report = report.filter(|it| is_ours(it))?;
            let finalizers = report.spec.host_finalizers.clone();
            let records = records(&report).into_iter();
            let recorded: Vec<_> = records.map(|(name, it)| (name, it.cell, it.mapping)).collect();
            (!finalizers.is_empty()).then_some((finalizers, recorded))
        };
        if changes.changes(&key, now) { caches.cells_of(&key.namespace) } else { Vec::new() }
    });
}

/// Maps what is held to the computes that use it, or did so until now.
fn map_held(all: &Caches, held: &EventMapping<Caches>) {
    const OF_SECRETS: &[CredentialKind] =
        &[CredentialKind::TransportSecret, CredentialKind::ApplicationCredential];
    // A rollout over many hosts changes each of them.
    held.delayed(COUNT_PAUSE).watches(&all.computes, |_, compute| keys_of(compute));
    held.watches(&all.secrets, |_, secret| held_as(secret, OF_SECRETS));
    held.watches(all.rabbitmq_users.cache(), |_, user| {
        held_as(user, &[CredentialKind::RabbitMqUser])
    });
}

/// Maps what audits depend on: who requests them, whether hosts are being deployed, and the runs on
/// these hosts.
fn map_audits(all: &Caches, audits: &EventMapping<Caches>) {
    let changes = ChangeFilter::default();
    audits.watches(&all.roles, move |caches, role| {
        let key = Key::of(role);
        let now = || caches.roles.get(&key).map(|it| relevant_metadata(&*it));
        changes.changes(&key, now).then(|| Scope::Role(key.clone()).key())
    });
    let changes = ChangeFilter::default();
    // A rollout over many hosts changes each of them.
    let paused = audits.delayed(COUNT_PAUSE);
    paused.watches(&all.nodes, move |caches, node| {
        let key = Key::of(node);
        let now =
            || caches.nodes.get(&key).map(|it| (relevant_metadata(&*it), is_node_settled(&it)));
        changes.changes(&key, now).then(|| Scope::of_node(node).key())
    });
    let changes = ChangeFilter::default();
    paused.watches(&all.computes, move |caches, compute| {
        let key = Key::of(compute);
        let now = || {
            let it = caches.computes.get(&key)?;
            Some((relevant_metadata(&*it), is_compute_settled(&it)))
        };
        let node = changes.changes(&key, now).then(|| caches.nodes.get(&node_key(compute)));
        node.flatten().map(|it| Scope::of_node(&it).key())
    });
    audits.watches(&all.runs, scopes_of);
}

/// Returns the scope of an audit; of another run those whose audits use its hosts now.
fn scopes_of(caches: &Caches, run: &AnsibleEe) -> Vec<Key> {
    if is_audit(run) {
        return Scope::of_run(run).map(|it| it.key()).into_iter().collect();
    }
    let addresses = open_addresses(run).into_iter();
    let beside = addresses.flat_map(|it| caches.runs.indexed(BY_OPEN_ADDRESS, &it));
    let audits = beside.filter(|it| is_audit(it));
    audits.filter_map(|it| Scope::of_run(&it)).map(|it| it.key()).collect()
}

/// Maps what the count of a node set and the report about it depend on, besides nova's API: its own
/// hosts and services, the cells of its namespace, and the present report.
fn map_node_sets(all: &Caches, of_sets: &NodeSetCaches, queue: &EventMapping<Caches>) {
    queue.watches(of_sets.node_sets.cache(), |_, set| [Key::of(set)]);
    queue.watches(of_sets.reports.cache(), |_, report| reported_set(report));
    queue.watches(&all.services, |caches, service| {
        let all = caches.node_sets_of(&Key::of(service).namespace).into_iter();
        Key::of_each(all.filter(|it| it.spec.services.contains(&service.name_any())))
    });
    let changes = ChangeFilter::default();
    queue.watches(&all.cells, move |caches, cell| {
        let key = Key::of(cell);
        let node_sets = || Key::of_each(caches.node_sets_of(&key.namespace));
        // What is on record of hosts that are let go counts too.
        let now = || caches.cells.get(&key).map(|it| (relevant_fields(&it), on_record(&it)));
        if changes.changes(&key, now) { node_sets() } else { Vec::new() }
    });
    map_removals(all, of_sets, queue);
}

fn on_record(cell: &Cell) -> Vec<String> {
    let leftovers = cell.status.as_ref().map(|it| it.leftovers.as_slice()).unwrap_or_default();
    leftovers.iter().map(|it| it.uid.clone()).collect()
}

/// Maps what the removal of hosts that leave a node set depends on: the runs that clean them up,
/// the ssh Secret, what cells have read of mappings, and the objects that may have the hosts from now
/// on.
fn map_removals(all: &Caches, of_sets: &NodeSetCaches, queue: &EventMapping<Caches>) {
    queue.watches(&all.runs, |_, run| {
        let has_ended = Run::of(run).is_some_and(|it| it.is_finished());
        node_set_of(run).or_else(|| node_set_key(run).filter(|_| has_ended))
    });
    let changes = ChangeFilter::default();
    queue.watches(of_sets.reports.cache(), move |caches, report| {
        let key = Key::of(report);
        let now = || Some(claimed(&*caches.node_sets.as_ref()?.reports.cache().get(&key)?));
        if changes.changes(&key, now) { rivals(caches, report) } else { Vec::new() }
    });
    all.sources.on_change(NODE_SET, queue.handler(|_, reader| [reader]));
    let changes = ChangeFilter::default();
    queue.watches(of_sets.node_sets.cache(), move |caches, set| {
        let key = Key::of(set);
        let now = || relevant_of(caches.node_sets.as_ref()?.node_sets.cache(), &key);
        if changes.changes(&key, now) { leaving_sets(caches, &key) } else { Vec::new() }
    });
    let changes = ChangeFilter::default();
    queue.watches(&all.cells, move |caches, cell| {
        let key = Key::of(cell);
        let now = || caches.cells.get(&key).map(|it| readings(&it));
        if changes.changes(&key, now) { leaving_sets(caches, &key) } else { Vec::new() }
    });
    let changes = ChangeFilter::default();
    queue.watches(&all.nodes, move |caches, node| {
        let key = Key::of(node);
        let now = || relevant_of(&caches.nodes, &key);
        if changes.changes(&key, now) { leaving_sets(caches, &key) } else { Vec::new() }
    });
    let changes = ChangeFilter::default();
    queue.watches(&all.computes, move |caches, compute| {
        let key = Key::of(compute);
        let now = || relevant_of(&caches.computes, &key);
        if !changes.changes(&key, now) {
            return Vec::new();
        }
        // One of another namespace may be the rival of a host.
        let of_sets = caches.node_sets.iter().flat_map(|it| it.node_sets.cache().all());
        let contested = Key::of_each(of_sets.filter(|it| is_contested(it)));
        leaving_sets(caches, &key).into_iter().chain(contested).collect()
    });
}

/// Returns the names under which a node set has hosts in nova, and whether it has deployed nova there.
fn claimed(report: &HostReadiness) -> BTreeSet<(String, bool)> {
    let records = records(report);
    let is_unproven = |it: &String| records.get(it).is_some_and(|it| it.is_unproven);
    let all = report.spec.host_finalizers.iter();
    all.map(|(name, host)| (host.clone(), is_unproven(name))).collect()
}

/// Returns the node sets that have hosts under the names of a report too, and those that wait until
/// another one has theirs no more.
fn rivals(caches: &Caches, report: &HostReadiness) -> Vec<Key> {
    let Some(of_sets) = &caches.node_sets else { return Vec::new() };
    let hosts: BTreeSet<&String> = report.spec.host_finalizers.values().collect();
    let is_rival = |it: &Arc<NodeSet>| {
        let own = of_sets.report_about(it);
        is_contested(it)
            || own.is_some_and(|it| it.spec.host_finalizers.values().any(|it| hosts.contains(it)))
    };
    let all = of_sets.node_sets.cache().all();
    let mut keys = Key::of_each(all.into_iter().filter(is_rival));
    keys.retain(|it| report_key(it) != Key::of(report));
    keys
}

/// Returns what the removals of a cell's hosts depend on: what was read of mappings, or why none is.
fn readings(cell: &Cell) -> (Option<MappingReading>, Option<String>) {
    let Some(status) = &cell.status else { return (None, None) };
    let discovery = find(&status.conditions, HOST_DISCOVERED).map(|it| it.reason.clone());
    (status.mapping_reading.clone(), discovery)
}

fn relevant_of<K: Watchable>(cache: &Cache<K>, key: &Key) -> Option<RelevantMetadata> {
    cache.get(key).map(|it| relevant_metadata(&*it))
}

/// Returns the node sets with hosts that leave, in the namespace of an object.
fn leaving_sets(caches: &Caches, beside: &Key) -> Vec<Key> {
    let Some(of_sets) = &caches.node_sets else { return Vec::new() };
    let has_leaving = |it: &Arc<NodeSet>| {
        of_sets.report_about(it).is_some_and(|report| !terminating(it, &report).is_empty())
    };
    Key::of_each(caches.node_sets_of(&beside.namespace).into_iter().filter(has_leaving))
}

/// Maps what the count of a role depends on: which nodes it has, and whether their computes are up.
fn map_roles(all: &SharedCaches, roles: &EventMapping<SharedCaches>) {
    roles.watches(&all.roles, |_, role| [Key::of(role)]);
    let changes = ChangeFilter::default();
    roles.watches(&all.nodes, move |caches, node| {
        let now = caches.nodes.get(&Key::of(node)).and_then(|it| role_key(&it));
        let is_moved = changes.changes(&Key::of(node), || now.clone());
        // Of a node that changes its role, both roles.
        role_key(node).into_iter().chain(now).filter(|_| is_moved).collect::<Vec<_>>()
    });
    let changes = ChangeFilter::default();
    roles.watches(&all.computes, move |caches, compute| {
        let key = Key::of(compute);
        let now = || caches.computes.get(&key).map(|it| service_up(&it));
        let node = changes.changes(&key, now).then(|| caches.nodes.get(&node_key(compute)));
        node.flatten().and_then(|it| role_key(&it))
    });
}

/// Returns the node set that a report of this operator is about; `None` for one of another
/// operator.
fn reported_set(report: &HostReadiness) -> Option<Key> {
    is_ours(report).then(|| Key::new(report.namespace().unwrap_or_default(), &report.spec.node_set))
}

/// Returns the nodes of a role that has changed in something else than its status, which no node
/// and no compute depends on.
fn changed_role(
    caches: &Caches,
    changes: &ChangeFilter<RelevantMetadata>,
    role: &Role,
) -> Vec<Key> {
    let key = Key::of(role);
    if changes.changes(&key, || caches.roles.get(&key).map(|it| relevant_metadata(&*it))) {
        Key::of_each(caches.nodes.indexed(BY_ROLE, &key))
    } else {
        Vec::new()
    }
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
    all.nodes.on_change(move |node| {
        computes_of(&caches, [Key::of(node)]).iter().for_each(&of_node);
    });
    all.computes.on_change(move |compute| refresh(&Key::of(compute)));
}

/// Returns whether a cell has changed in a field that concerns others.
///
/// Changes of counters alone enqueue nothing: otherwise each count would cause another.
fn is_relevant(caches: &Caches, changes: &ChangeFilter<RelevantFields>, cell: &Key) -> bool {
    changes.changes(cell, || caches.cells.get(cell).map(|it| relevant_fields(&it)))
}

fn computes_of(caches: &Caches, nodes: impl IntoIterator<Item = Key>) -> Vec<Key> {
    Key::of_each(nodes.into_iter().flat_map(|it| caches.computes.indexed(BY_NODE, &it)))
}

/// Returns the key of an object in the index [`BY_OWNER`] of what it owns.
fn uid_key(owner: &ExternalCompute) -> Key {
    Key::new(owner.namespace().unwrap_or_default(), owner.uid().unwrap_or_default())
}

/// Returns the compute that owns a run, or that the run cleans up after.
fn compute_of(run: &AnsibleEe) -> Option<Key> {
    owning_compute(run).or_else(|| labels::compute_of(run))
}

/// Returns the compute that owns an object.
fn owning_compute<K: ResourceExt>(object: &K) -> Option<Key> {
    let kind = ExternalCompute::kind(&());
    let owner = object.owner_references().iter().find(|it| it.kind == kind)?;
    Some(Key::new(object.namespace().unwrap_or_default(), &owner.name))
}

#[cfg(test)]
mod tests {
    use nova_config::conditions::NODE_SERVICE_UP;
    use operator_runtime::cache::WriteThrough as _;
    use operator_runtime::workqueue::WorkQueue;
    use serde_json::{Value, json};

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
        let condition = json!({
            "type": "ServiceUp", "status": service_up, "reason": "x", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let spec = json!({"dataplaneNodeName": "n0", "cellName": "cell1"});
        let status = json!({"conditions": [condition]});
        object("nova", "NovaExternalCompute", version, &spec, &status)
    }

    /// A report about node set `set` of a gate of that type.
    fn report(version: u32, condition_type: &str) -> Value {
        let spec = json!({"nodeSet": "set", "conditionType": condition_type, "notReady": {}});
        object("dataplane", "OpenStackDataPlaneHostReadiness", version, &spec, &json!({}))
    }

    #[tokio::test]
    async fn a_node_set_is_enqueued_by_the_report_of_this_operator_and_by_no_other() {
        let (caches, queue) = (Arc::new(Cache::new(vec![])), Arc::<WorkQueue>::default());
        let reports = EventMapping::new(&queue, &caches);
        reports.watches(&caches, |_, report| reported_set(report));
        caches.absorb(&report(1, "example.org/Other"));
        assert_eq!(enqueued(&queue).await, [""; 0]);
        caches.absorb(&report(2, NODE_SERVICE_UP));
        assert_eq!(enqueued(&queue).await, ["set"]);
        caches.absorb(&report(3, "example.org/Other"));
        assert_eq!(enqueued(&queue).await, ["set"], "somebody has changed the report");
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
    async fn a_role_is_enqueued_when_a_compute_goes_up_or_down_or_a_node_joins_and_not_otherwise() {
        let (caches, queue) = (Arc::new(SharedCaches::default()), Arc::<WorkQueue>::default());
        map_roles(&caches, &EventMapping::new(&queue, &caches));
        caches.nodes.absorb(&node(1, "one"));
        assert_eq!(enqueued(&queue).await, ["one"]);
        caches.computes.absorb(&compute(2, "True", "x"));
        assert_eq!(enqueued(&queue).await, ["one"]);
        caches.computes.absorb(&compute(3, "True", "y"));
        caches.nodes.absorb(&node(4, "one"));
        assert_eq!(enqueued(&queue).await, [""; 0], "nothing that counts has changed");
        caches.computes.absorb(&compute(5, "False", "y"));
        assert_eq!(enqueued(&queue).await, ["one"]);
        caches.nodes.absorb(&node(6, "two"));
        assert_eq!(enqueued(&queue).await, ["one", "two"]);
    }
}

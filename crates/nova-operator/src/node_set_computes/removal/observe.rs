//! Reads what concerns the hosts of a node set that leave it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{HostReadiness, HostState, NodeSet};
use kube::ResourceExt;
use nova_config::annotations::SKIP_CLEANUP;
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{Host, canonical_host_name, hosts};
use operator_core::object_key::Key;
use operator_core::run_engine::Run;
use operator_runtime::error::Result;
use operator_runtime::source_cache::Digests;

use crate::caches::Caches;
use crate::cell::leftovers;
use crate::cell::mappings::known::{self, Mapping};
use crate::controller_names::NODE_SET;
use crate::drain::order::{Drain, DrainMode};
use crate::drain::progress::HostProgress;
use crate::indexes::{BY_NODE_SET, BY_OWNER};
use crate::node_set_computes::claims::{self, Claim, NovaDeployment};
use crate::node_set_computes::removal::observed::{
    Removals, TerminatingHost, leftover_uid, reported_state, terminating,
};
use crate::node_set_computes::removal::owner::other_owner;
use crate::node_set_computes::removal::record::{
    HostRecord, HostRecords, MappingStep, earlier, has_moved, records,
};
use crate::node_set_computes::rivals::Claims;
use crate::nova_health::HostHealth;
use crate::nova_identity::Identity;
use crate::nova_monitor::NovaMonitor;

/// What is read of the caches and of nova's APIs.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// All caches of the operator.
    pub caches: &'a Caches,
    /// The readers of nova's APIs.
    pub monitor: &'a NovaMonitor,
    /// The cells of the namespace.
    pub cells: &'a [Key],
    /// Which of their services are the node set's.
    pub claims: &'a Claims,
    /// The present report about the node set, if it is one of this operator.
    pub report: Option<&'a HostReadiness>,
}

impl Sources<'_> {
    /// Returns what is recorded of the hosts of the report.
    pub fn recorded(&self) -> HostRecords {
        self.report.map(records).unwrap_or_default()
    }

    /// Returns the recorded identity of a host, which has that name in the inventory and is registered
    /// under the other one, in a cell; an empty one if the record is of another name or cell.
    pub fn identity(
        &self,
        recorded: &HostRecords,
        (name, host): (&str, &str),
        cell: &Key,
    ) -> Identity {
        let finalizer = self.report.and_then(|it| it.spec.host_finalizers.get(name));
        let record = recorded.get(name).filter(|it| it.cell == cell.name);
        let record = record.filter(|_| finalizer.is_some_and(|it| it == host));
        record.map(HostRecord::identity).unwrap_or_default()
    }

    /// Returns the name under which nova has a host, and whether a deployment of nova has succeeded there
    /// under that name. It is `canonical`, the present one, unless nova has had the host under an earlier
    /// one and it has not moved since.
    pub fn registered(
        &self,
        recorded: &HostRecords,
        name: &str,
        canonical: String,
    ) -> (String, Option<NovaDeployment>) {
        let before = self.report.and_then(|it| earlier(it, recorded, name, &canonical));
        let health = |host: &str| self.monitor.host_in(self.cells, host);
        let before = before
            .filter(|(host, _)| !has_moved(recorded, name, (&health(host), &health(&canonical))));
        let deployed = self.claims.deployment(name);
        match before {
            Some((host, record)) if !record.is_unproven => (host, Some(NovaDeployment::Succeeded)),
            Some((host, _)) => (host, deployed),
            None => (canonical, deployed),
        }
    }
}

/// Returns what is observed of the hosts that leave a node set, and of those that get a host
/// finalizer where `has_nova`: the node set lists a service of type nova. `modes` has how servers
/// leave, by the names of hosts in the inventory.
pub async fn observe(
    from: Sources<'_>,
    set: &NodeSet,
    has_nova: bool,
    modes: &BTreeMap<String, DrainMode>,
) -> Result<Removals> {
    let caches = from.caches;
    let namespace = set.namespace().unwrap_or_default();
    let recorded = from.recorded();
    let leaving = from.report.map(|it| terminating(set, it)).unwrap_or_default();
    let runs = runs(caches, &namespace, from.report);
    let is_needed =
        |it: &Arc<AnsibleEe>| cleaned_host(it).is_some_and(|it| leaving.contains_key(it.as_str()));
    let (needed, unneeded_runs): (Vec<_>, Vec<_>) = runs.into_iter().partition(is_needed);
    let secret = &set.spec.node_template.ansible_ssh_private_key_secret;
    let secret = SourceRef::secret(&namespace, secret);
    let ssh = ssh(caches, &Key::of(set), secret, !leaving.is_empty()).await?;
    let namespace_goes = is_terminating(set)
        && !leaving.is_empty()
        && caches.api.is_namespace_terminating(&namespace).await?;
    let host = |(name, host): (&&str, &&str)| {
        let record = recorded.get(*name).cloned().unwrap_or_default();
        let mode = modes.get(*name).copied().unwrap_or(DrainMode::Wait);
        of_host(from, set, (name, host), record, mode, &needed)
    };
    Ok(Removals {
        deployed: if has_nova { deployed(from, set, &recorded) } else { BTreeMap::new() },
        terminating: leaving.iter().map(host).collect(),
        unneeded_runs,
        ssh,
        is_skipped: set.annotations().get(SKIP_CLEANUP).is_some_and(|it| it == "true"),
        namespace_goes,
    })
}

/// Returns the hosts of a node set that get a host finalizer; see [`Removals::deployed`].
fn deployed(
    from: Sources<'_>,
    set: &NodeSet,
    recorded: &HostRecords,
) -> BTreeMap<String, (String, HostRecord)> {
    // Without a cell there is no nova to be asked, now or later.
    if from.cells.is_empty() {
        return BTreeMap::new();
    }
    let namespace = set.namespace().unwrap_or_default();
    let of_host = |it: Host<'_>| {
        let (host, deployment) = from.registered(recorded, &it.name, canonical_host_name(set, &it));
        let is_unproven = deployment? < NovaDeployment::Succeeded;
        let found = from.monitor.cell_with(from.cells, &host).map(|cell| {
            let claim = from.claims.claim(&cell, &host, !is_unproven);
            (from.monitor.host(&cell, &host), cell.name, claim)
        });
        let record = record_of(found)?;
        let key = if it.key == it.name { String::new() } else { it.key.to_owned() };
        let nova = from.monitor.nova_of(&Key::new(&namespace, &record.cell));
        Some((it.name, (host, HostRecord { nova, key, is_unproven, ..record })))
    };
    hosts(set).into_iter().filter_map(of_host).collect()
}

/// Returns what is recorded of a host on which a deployment has begun, or `None` for one that needs no
/// removal. `found` is what nova has of it, in which cell, and whether that is the node set's.
fn record_of(found: Option<(HostHealth, String, Claim)>) -> Option<HostRecord> {
    match found {
        Some((_, _, Claim::Other(_))) => None,
        // What has that name may be another's, so its UUIDs are not the host's.
        Some((_, cell, Claim::Unproven)) => Some(HostRecord { cell, ..HostRecord::default() }),
        Some((health, cell, Claim::Own | Claim::Contested(_))) => {
            let HostHealth { service_id, compute_id, .. } = health;
            Some(HostRecord { cell, service_id, compute_id, ..HostRecord::default() })
        }
        // It may have registered although nova was not read since, and have guests.
        None => Some(HostRecord::default()),
    }
}

/// Reads nothing any more for a node set that does not exist.
pub fn forget(caches: &Caches, set: &Key) {
    caches.sources.depends(NODE_SET, set, BTreeSet::new());
}

/// Returns the runs that belong to a report.
fn runs(caches: &Caches, namespace: &str, report: Option<&HostReadiness>) -> Vec<Arc<AnsibleEe>> {
    let uid = report.and_then(ResourceExt::uid);
    uid.map(|it| caches.runs.indexed(BY_OWNER, &Key::new(namespace, it))).unwrap_or_default()
}

/// Returns the host that a run cleans up, by its name in the inventory.
fn cleaned_host(run: &AnsibleEe) -> Option<String> {
    Run::of(run)?.attempts.into_keys().next()
}

/// Reads the digests of the ssh Secret while hosts leave.
async fn ssh(
    caches: &Caches,
    set: &Key,
    secret: SourceRef,
    is_needed: bool,
) -> Result<Option<Digests>> {
    let needed: BTreeSet<SourceRef> = is_needed.then_some(secret.clone()).into_iter().collect();
    // Registered before reading, so that a change in between enqueues the node set again.
    caches.sources.depends(NODE_SET, set, needed);
    if is_needed { caches.sources.digests(&caches.api, &secret).await } else { Ok(None) }
}

fn of_host(
    from: Sources<'_>,
    set: &NodeSet,
    (name, host): (&str, &str),
    mut record: HostRecord,
    mode: DrainMode,
    runs: &[Arc<AnsibleEe>],
) -> TerminatingHost {
    let (caches, monitor) = (from.caches, from.monitor);
    // A deployment that was under way when the host was taken out may have succeeded since.
    record.is_unproven &= from.claims.deployment(name) != Some(NovaDeployment::Succeeded);
    let namespace = set.namespace().unwrap_or_default();
    let recorded = Key::new(&namespace, &record.cell);
    // Once the service is deleted, only the record has the cell.
    let key = match caches.cells.get(&recorded) {
        Some(_) => Some(recorded),
        None if record.cell.is_empty() => monitor.cell_with(from.cells, host),
        None => sharing_cell(from, host, &record),
    };
    let cell = key.and_then(|key| {
        let secret = caches.cells.get(&key)?.spec.secret.clone();
        Some((key, secret))
    });
    let own = if record.is_unproven { Claim::Unproven } else { Claim::Own };
    let in_nova =
        cell.as_ref().map_or(own, |it| from.claims.claim(&it.0, host, !record.is_unproven));
    let claim = other_owner(caches, set, (name, host)).map_or(in_nova, Claim::Other);
    let health = match &cell {
        Some((key, _)) => monitor.host(key, host),
        None => host_in_none(from, host),
    };
    let deployed_at = || {
        let runs = caches.runs.indexed(BY_NODE_SET, &Key::of(set));
        claims::deployed_at(set, &runs, name)
    };
    let mapping = mapping(caches, cell.as_ref().map(|it| &it.0), host, &record);
    let is_its = |it: &&Arc<AnsibleEe>| cleaned_host(it).as_deref() == Some(name);
    let reason = format!("host leaves OpenStackDataPlaneNodeSet {namespace}/{}", set.name_any());
    TerminatingHost {
        name: name.to_owned(),
        host: host.to_owned(),
        health,
        deployed_at: cell.is_none().then(deployed_at).flatten(),
        drain: Drain { mode, reason },
        is_reported: reported_state(set, name) == Some(HostState::Terminating),
        runs: runs.iter().filter(is_its).cloned().collect(),
        progress: HostProgress::Pending,
        mapping,
        is_on_record: is_on_record(caches, set, name, cell.as_ref().map(|it| &it.0)),
        is_list_full: is_list_full(caches, cell.as_ref().map(|it| &it.0)),
        claim,
        cell,
        record,
    }
}

/// Returns what is known of a host that no cell is known to have: it is missing since each of them was
/// read without it.
fn host_in_none(from: Sources<'_>, host: &str) -> HostHealth {
    let each = from.cells.iter().map(|it| from.monitor.host(it, host).missing_since);
    let missing_since = each.min().flatten();
    HostHealth { missing_since, ..from.monitor.host_in(from.cells, host) }
}

/// Returns a cell that shares the nova of the recorded one, which is gone: the service of another nova
/// under the host's name is not the host's.
fn sharing_cell(from: Sources<'_>, host: &str, record: &HostRecord) -> Option<Key> {
    let novas = from.cells.iter().map(|cell| {
        let service = from.monitor.host(cell, host).service_id;
        (cell, from.monitor.nova_of(cell), service)
    });
    sharing(record, novas).cloned()
}

/// Returns the first of these cells, each with its nova and the UUID of the service there, that shares
/// the nova of a recorded host.
fn sharing<'a>(
    record: &HostRecord,
    cells: impl Iterator<Item = (&'a Key, Option<String>, Option<String>)>,
) -> Option<&'a Key> {
    let cells: Vec<_> = cells.collect();
    let has_nova = |nova: &Option<String>| nova.is_some() && *nova == record.nova;
    // A release before has recorded no digest, or that of another spelling of Keystone's URL.
    let has_service = |it: &Option<String>| it.is_some() && *it == record.service_id;
    let of_nova = cells.iter().find(|it| has_nova(&it.1));
    of_nova.or_else(|| cells.iter().find(|it| has_service(&it.2))).map(|it| it.0)
}

/// Returns what is known of the mapping of a host; what is recorded as settled stays so.
fn mapping(caches: &Caches, cell: Option<&Key>, host: &str, record: &HostRecord) -> Mapping {
    let since = match &record.mapping {
        Some(MappingStep::Settled) => return Mapping::Absent,
        Some(MappingStep::Awaited(since)) => Some(since.0),
        None => None,
    };
    let cell = cell.and_then(|it| caches.cells.get(it));
    known::mapping(cell.as_deref(), caches.cells_are_ours, host, since)
}

fn is_list_full(caches: &Caches, cell: Option<&Key>) -> bool {
    cell.and_then(|it| caches.cells.get(it)).is_some_and(|it| leftovers::is_full(&it))
}

/// Whether what a host leaves in nova is in `status.leftovers` of its cell, or this operator has no
/// cell to record it.
fn is_on_record(caches: &Caches, set: &NodeSet, name: &str, cell: Option<&Key>) -> bool {
    let Some(cell) = cell.and_then(|it| caches.cells.get(it)) else { return true };
    let uid = leftover_uid(set, name);
    let leftovers = cell.status.as_ref().map(|it| it.leftovers.as_slice()).unwrap_or_default();
    !caches.cells_are_ours || leftovers.iter().any(|it| it.uid == uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_removal_goes_on_in_a_cell_that_shares_the_nova_of_one_that_is_gone_and_in_no_other() {
        let cells = ["c1", "c2"].map(|it| Key::new("ns", it));
        let text = |it: &str| Some(it.to_owned());
        let record = |nova: Option<&str>, service_id: Option<&str>| HostRecord {
            cell: "gone".to_owned(),
            nova: nova.map(str::to_owned),
            service_id: service_id.map(str::to_owned),
            ..HostRecord::default()
        };
        let of = |record: HostRecord| {
            let novas = [(&cells[0], text("n1"), text("s1")), (&cells[1], text("n2"), text("s2"))];
            sharing(&record, novas.into_iter()).map(|it| it.name.clone())
        };
        assert_eq!(of(record(Some("n2"), Some("s1"))), text("c2"));
        assert_eq!(of(record(Some("n3"), Some("s3"))), None);
        assert_eq!(of(record(Some("n3"), Some("s1"))), text("c1"), "of another spelling");
        assert_eq!(of(record(None, Some("s2"))), text("c2"), "of a release before");
        assert_eq!((of(record(None, Some("s3"))), of(record(None, None))), (None, None));
    }

    #[test]
    fn a_host_is_held_before_nova_has_it_and_has_the_uuids_of_its_own_service_alone() {
        let record = |claim: Option<Claim>| {
            let ids = || (Some("s".to_owned()), Some("c".to_owned()));
            let (service_id, compute_id) = ids();
            let health = HostHealth { service_id, compute_id, ..HostHealth::default() };
            let record = record_of(claim.map(|it| (health, "c1".to_owned(), it)))?;
            Some((record.cell, (record.service_id, record.compute_id) == ids()))
        };
        assert_eq!(record(None), Some((String::new(), false)));
        let in_cell = |has_ids| Some(("c1".to_owned(), has_ids));
        assert_eq!(record(Some(Claim::Own)), in_cell(true));
        assert_eq!(record(Some(Claim::Contested("x".into()))), in_cell(true));
        assert_eq!(record(Some(Claim::Unproven)), in_cell(false));
        assert_eq!(record(Some(Claim::Other("x".into()))), None);
    }
}

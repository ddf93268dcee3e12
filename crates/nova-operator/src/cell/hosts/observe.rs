//! Reads what concerns the hosts of a cell in nova.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::nova::{Cell, ExternalCompute, Leftover};
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;

use crate::caches::Caches;
use crate::cell::config::is_cell_zero;
use crate::cell::observed::hosts::{HostsSeen, LeftoverSeen, user};
use crate::compute::removal::leftover_places::has_ids;
use crate::nova::drain::progress::HostProgress;
use crate::nova::monitor::{ApiHosts, NovaMonitor};

/// What is read of the caches and of nova's API.
struct Sources<'a> {
    caches: &'a Caches,
    monitor: &'a NovaMonitor,
    cell: &'a Key,
}

/// Returns what is observed in nova of a cell's hosts; `None` for a cell0, which has none, and
/// where nova's API is not used. `computes` are those of the cell.
pub fn observe(
    caches: &Caches,
    cell: &Cell,
    key: &Key,
    computes: &[Arc<ExternalCompute>],
) -> Option<HostsSeen> {
    let monitor = caches.nova.as_deref().filter(|_| !is_cell_zero(cell))?;
    let from = Sources { caches, monitor, cell: key };
    let leftovers = cell.leftovers();
    let is_releasing = is_terminating(cell) && computes.is_empty();
    Some(HostsSeen {
        leftovers: from.leftovers(leftovers),
        hosts: is_releasing.then(|| from.hosts(leftovers)).flatten(),
    })
}

impl Sources<'_> {
    /// Returns what is known of the leftovers with UUIDs, without those of computes that are there.
    fn leftovers(&self, leftovers: &[Leftover]) -> BTreeMap<String, LeftoverSeen> {
        let leftovers: Vec<&Leftover> = leftovers.iter().filter(|it| has_ids(it)).collect();
        if leftovers.is_empty() {
            return <_>::default();
        }
        let mut computes = self.caches.shared.computes.all();
        computes.retain(|it| it.metadata.namespace.as_ref() == Some(&self.cell.namespace));
        let is_there =
            |it: &&Leftover| computes.iter().any(|of| of.uid().as_ref() == Some(&it.uid));
        let gone = leftovers.into_iter().filter(|it| !is_there(it));
        gone.map(|it| {
            let seen = match user(it, &computes).or_else(|| self.other_user(it)) {
                Some(user) => LeftoverSeen::InUse(user),
                None => self.leftover(it),
            };
            (it.uid.clone(), seen)
        })
        .collect()
    }

    /// Returns the compute that nova shows to have the host of a leftover, whichever its namespace.
    fn other_user(&self, leftover: &Leftover) -> Option<String> {
        let confirmed = self.monitor.confirmed_on(self.cell, &leftover.host_name);
        confirmed.first().map(|it| format!("NovaExternalCompute {it}"))
    }

    fn leftover(&self, leftover: &Leftover) -> LeftoverSeen {
        let node = self.monitor.host(self.cell, &leftover.host_name).compute_id;
        let is_other = |it: &String| leftover.compute_id.as_ref().is_some_and(|id| id != it);
        let other = node.filter(is_other).map(LeftoverSeen::OtherNode);
        other.unwrap_or(LeftoverSeen::Progress(HostProgress::Pending))
    }

    /// Returns the hosts of the cell; `None` where it is unknown which it has.
    fn hosts(&self, leftovers: &[Leftover]) -> Option<Vec<(String, HostProgress)>> {
        let mut all: BTreeSet<String> = leftovers.iter().map(|it| it.host_name.clone()).collect();
        match self.monitor.hosts(self.cell) {
            ApiHosts::OfSeveralCells => {}
            ApiHosts::Unknown => return None,
            ApiHosts::OfCell(hosts) => all.extend(hosts),
        }
        Some(all.into_iter().map(|host| (host, HostProgress::Pending)).collect())
    }
}

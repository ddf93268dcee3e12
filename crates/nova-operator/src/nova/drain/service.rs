//! The service of one host in nova, and what is on the host.

use openstack_client::compute::{KnownService, Liveness, ServiceState};
use openstack_client::{Compute, Fault};
use tokio::time::Instant;

use crate::nova::drain::progress::{HostProgress, Occupied};

/// What nova has of the service of a host.
pub enum Found {
    /// A service of a cell that answers.
    Known(KnownService),
    /// A service of a cell that does not answer.
    Unknown,
    /// None.
    Absent,
}

/// The service of a host as it was read before, and when that began; `None` where it was not read.
///
/// Behind a cell that hangs nova has each service as down: then its reports in two answers count.
#[derive(Debug, Default)]
pub struct EarlierService(Option<(Instant, KnownService)>);

impl EarlierService {
    /// Returns what was found by a request that began then.
    pub fn of(begun: Instant, found: &Found) -> Self {
        Self(match found {
            Found::Known(service) => Some((begun, service.clone())),
            Found::Unknown | Found::Absent => None,
        })
    }

    /// Returns the UUID of the service.
    pub fn id(&self) -> Option<&str> {
        self.0.as_ref().map(|(_, service)| service.id.as_str())
    }

    /// Returns whether a service reports, which was read by a request that began then.
    pub fn liveness(&self, begun: Instant, service: &KnownService) -> Liveness {
        match (service.liveness, &self.0) {
            (Liveness::Late, Some((before, earlier))) => {
                service.by_reports(earlier, begun.duration_since(*before))
            }
            (liveness, _) => liveness,
        }
    }
}

/// Reads what is on a host whose servers the operator does not migrate.
pub async fn occupied(nova: &Compute, host: &str) -> Result<Occupied, Fault> {
    let (servers, migrations) = tokio::try_join!(nova.servers_on(host), nova.migrations_on(host))?;
    Ok(Occupied::unmoved(&servers, &migrations))
}

/// Returns the servers of a compute node that nova's lists by host may have left out: they leave out a
/// cell of which the query of servers alone fails, and its services are known meanwhile. What is read of
/// the compute node fails then. `None` without servers.
pub async fn left_out(nova: &Compute, node: &str) -> Result<Option<Occupied>, Fault> {
    let servers = nova.servers_of_node(node).await?.unwrap_or_default();
    Ok((!servers.is_empty()).then(|| Occupied::unmoved(&servers, &[])))
}

/// Reads the service of a host. Of several cells that have one, each must answer, and the one with the
/// UUID `own` counts, where there is one.
pub async fn service(nova: &Compute, host: &str, own: Option<&str>) -> Result<Found, Fault> {
    let mut counts = Found::Absent;
    for found in nova.services_on(host).await?.into_iter().filter(|it| it.host == host) {
        match (found.state, &counts) {
            (ServiceState::Unknown, _) => return Ok(Found::Unknown),
            (ServiceState::Known(service), Found::Known(_)) if own != Some(&service.id) => {}
            (ServiceState::Known(service), _) => counts = Found::Known(service),
        }
    }
    Ok(counts)
}

/// What shows whether the cell of a host answers, of which nova has no service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Witness<'a> {
    /// Another host of the cell, of which the last reading of nova has the service.
    Host(&'a str),
    /// Nothing: no other host of the cell is known.
    None,
    /// Nothing: other hosts of the cell are known, and nova lists none of them. It may be another nova
    /// than theirs, or one that was not read yet.
    Unlisted,
}

/// Returns what is known of a host whose service is absent and which nova's lists have nothing on:
/// they leave out what is in a cell that does not answer, and a service of another host of the cell
/// shows whether it does.
///
/// It is `NotFound` where the cell answers, else `CellNotAnswering`, or `CellNotConfirmed` where
/// nova has no service of the other host, or there is none.
pub async fn of_cell(nova: &Compute, witness: Witness<'_>) -> Result<HostProgress, Fault> {
    let Witness::Host(witness) = witness else { return Ok(HostProgress::CellNotConfirmed) };
    Ok(match service(nova, witness, None).await? {
        Found::Known(_) => HostProgress::NotFound,
        Found::Unknown => HostProgress::CellNotAnswering,
        Found::Absent => HostProgress::CellNotConfirmed,
    })
}

//! The service of one host in nova, and what is on the host.

use openstack_client::compute::{KnownService, ServiceState};
use openstack_client::{Compute, Fault};

use crate::drain::progress::Occupied;

/// What nova has of the service of a host.
pub enum Found {
    /// A service of a cell that answers.
    Known(KnownService),
    /// A service of a cell that does not answer.
    Unknown,
    /// None.
    Absent,
}

/// Reads what is on a host whose servers the operator does not migrate.
pub async fn occupied(nova: &Compute, host: &str) -> Result<Occupied, Fault> {
    let (servers, migrations) = tokio::try_join!(nova.servers_on(host), nova.migrations_on(host))?;
    Ok(Occupied::unmoved(servers, &migrations))
}

/// Reads the service of a host.
pub async fn service(nova: &Compute, host: &str) -> Result<Found, Fault> {
    let found = nova.services_on(host).await?.into_iter().find(|it| it.host == host);
    Ok(match found.map(|it| it.state) {
        Some(ServiceState::Known(service)) => Found::Known(service),
        Some(ServiceState::Unknown) => Found::Unknown,
        None => Found::Absent,
    })
}

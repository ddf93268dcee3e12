//! The service of one host in nova.

use openstack_client::compute::{KnownService, ServiceState};
use openstack_client::{Compute, Fault};

/// What nova has of the service of a host.
pub enum Found {
    /// A service of a cell that answers.
    Known(KnownService),
    /// A service of a cell that does not answer.
    Unknown,
    /// None.
    Absent,
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

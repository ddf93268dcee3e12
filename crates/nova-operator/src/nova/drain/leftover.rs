//! The deletion of what a compute left in nova and placement, by the UUIDs that were recorded of it.

use openstack_client::Fault;
use openstack_client::compute::{KnownService, Liveness};

use crate::nova::drain::identity::other_host;
use crate::nova::drain::order::LeftBehind;
use crate::nova::drain::progress::{HostProgress, PlacementRemoval, Removal, ServiceRemoval};
use crate::nova::drain::remove::{Apis, delete_service, has_consumers, of_placement};
use crate::nova::drain::service::{Found, Witness, of_cell};

/// Deletes as much as possible now: the service, then the provider. Nothing else is deleted than
/// what has these UUIDs, and nothing of a host on which nova has servers or migrations.
///
/// What is gone already counts as deleted. `witness` is as in [`crate::nova::drain::pass::HostOfOrder`].
pub async fn leftover(
    apis: &Apis,
    host: &str,
    left: &LeftBehind,
    found: Found,
    witness: Witness<'_>,
) -> Result<HostProgress, Fault> {
    let known = match found {
        Found::Unknown => return Ok(HostProgress::CellNotAnswering),
        Found::Known(service) if left.service_id.as_ref() != Some(&service.id) => {
            return Ok(HostProgress::OtherService { id: service.id });
        }
        Found::Known(service) => Some(service),
        Found::Absent if witness == Witness::Unlisted => return Ok(HostProgress::CellNotConfirmed),
        Found::Absent => None,
    };
    // The machine may have been deployed under another name since, and have kept its UUID.
    if let Some(id) = &left.compute_id
        && let Some(other) = other_host(apis, host, id).await?
    {
        return Ok(HostProgress::Identity(other));
    }
    if let Some(cell) = unconfirmed(apis, left, known.as_ref(), witness).await? {
        return Ok(cell);
    }
    let mut removal = Removal::of_service(match known {
        Some(service) if service.liveness != Liveness::Down => ServiceRemoval::StillUp,
        Some(service) => delete_service(apis, host, &service).await?,
        None => ServiceRemoval::Done,
    });
    if removal.service == ServiceRemoval::Done {
        removal.placement = match &left.compute_id {
            Some(id) => of_placement(apis, host, Some(id)).await?,
            None => PlacementRemoval::Done,
        };
    }
    Ok(HostProgress::Removing(removal))
}

/// Returns what is unknown of the host if shares of its provider would have to be dropped: without a
/// service, nova's lists show only with another host that the cell answers.
async fn unconfirmed(
    apis: &Apis,
    left: &LeftBehind,
    known: Option<&KnownService>,
    witness: Witness<'_>,
) -> Result<Option<HostProgress>, Fault> {
    let (None, Some(id)) = (known, &left.compute_id) else { return Ok(None) };
    if !has_consumers(&apis.placement, id).await? {
        return Ok(None);
    }
    let cell = of_cell(&apis.compute, witness).await?;
    Ok((cell != HostProgress::NotFound).then_some(cell))
}

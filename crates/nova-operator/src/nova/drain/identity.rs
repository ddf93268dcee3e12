//! What uses the identity of a host that has neither servers nor open migrations.

use openstack_client::Fault;
use openstack_client::compute::Liveness;
use tokio::time::Instant;

use crate::nova::drain::order::{IdentityGoal, IdentityOrder};
use crate::nova::drain::progress::{HostProgress, IdentityUse};
use crate::nova::drain::remove::{Apis, delete_provider, node_host, other_provider};
use crate::nova::drain::service::{EarlierService, Found, left_out, occupied, service};

/// Finds out whether the identity of a host is free, and frees its name in placement where that is
/// ordered. Nothing is changed of a host with servers or open migrations. `earlier` is the service as
/// the pass has found it first.
pub async fn identity(
    apis: &Apis,
    host: &str,
    order: &IdentityOrder,
    earlier: &EarlierService,
) -> Result<HostProgress, Fault> {
    let nova = &apis.compute;
    let occupied = occupied(nova, host).await?;
    if !occupied.is_empty() {
        return Ok(HostProgress::Occupied(occupied));
    }
    let begun = Instant::now();
    // Nova leaves out the servers of a cell that does not answer, and does not say so.
    let may_report = match service(nova, host, earlier.id()).await? {
        Found::Unknown => return Ok(HostProgress::CellNotAnswering),
        Found::Known(after) => earlier.liveness(begun, &after) != Liveness::Down,
        Found::Absent => false,
    };
    Ok(HostProgress::Identity(match order.goal {
        IdentityGoal::Restore if may_report => IdentityUse::Reporting,
        // The UUID of a host may be restored there alone.
        IdentityGoal::Restore => {
            other_host(apis, host, &order.compute_id).await?.unwrap_or(IdentityUse::Free)
        }
        IdentityGoal::Name => match left_out(nova, &order.compute_id).await? {
            Some(occupied) => return Ok(HostProgress::Occupied(occupied)),
            None => of_name(apis, host, &order.compute_id).await?,
        },
    }))
}

/// Returns the other host that nova has the compute node of this UUID on; `None` without one.
pub async fn other_host(
    apis: &Apis,
    host: &str,
    compute_id: &str,
) -> Result<Option<IdentityUse>, Fault> {
    let other = node_host(apis, compute_id).await?.filter(|it| it != host);
    Ok(other.map(|host| IdentityUse::OtherHost { compute_id: compute_id.to_owned(), host }))
}

/// A provider of the name under which the host's own is to be is a stale one where it is not the host's
/// own, and nova has no compute node of it.
async fn of_name(apis: &Apis, host: &str, compute_id: &str) -> Result<IdentityUse, Fault> {
    let own = apis.compute.hypervisor(compute_id).await?.map(|it| it.hypervisor_hostname);
    let name = own.filter(|it| !it.is_empty()).unwrap_or_else(|| host.to_owned());
    let provider = match other_provider(apis, &name, compute_id).await? {
        None => return Ok(IdentityUse::Free),
        Some((compute_id, Some(host))) => return Ok(IdentityUse::OtherHost { compute_id, host }),
        Some((provider, None)) => provider,
    };
    let consumers = apis.placement.allocations_of(&provider).await?;
    let kept = delete_provider(&apis.placement, &provider, &consumers).await?;
    Ok(kept.map_or(IdentityUse::Free, |message| IdentityUse::ProviderKept { provider, message }))
}

#[cfg(test)]
mod tests;

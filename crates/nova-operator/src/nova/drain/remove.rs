//! The removal of what nova, placement and neutron have of a host that is empty and stopped.

use openstack_client::compute::{KnownService, Liveness};
use openstack_client::network::Agent;
use openstack_client::{Compute, Error, Fault, Network, Placement};

use crate::nova::drain::few::Few;
use crate::nova::drain::order::Remove;
use crate::nova::drain::progress::{AgentsRemoval, PlacementRemoval, Removal, ServiceRemoval};
use crate::nova::drain::service::{Found, occupied, service};

/// How often agents are listed in one pass.
const AGENT_LISTS: usize = 4;

/// The APIs of one cloud, as one user sees them in one region.
pub struct Apis {
    /// Nova.
    pub compute: Compute,
    /// Placement.
    pub placement: Placement,
    /// Neutron.
    pub network: Network,
}

/// Removes as much as possible now, in nova's order; what is gone already counts as removed.
pub async fn remove(
    apis: &Apis,
    host: &str,
    order: &Remove,
    found: Found,
) -> Result<Removal, Fault> {
    let mut removal = Removal::of_service(of_service(apis, host, order, found).await?);
    if removal.service != ServiceRemoval::Done {
        return Ok(removal);
    }
    removal.placement = of_placement(apis, host, order.compute_id.as_deref()).await?;
    if removal.placement == PlacementRemoval::Done
        && let Some(kept) = of_stale(apis, host, order.compute_id.as_deref()).await?
    {
        removal.placement = kept;
    }
    if removal.placement == PlacementRemoval::Done && order.is_unmapped {
        removal.agents = of_agents(&apis.network, host, order.awaits_agents).await?;
    }
    Ok(removal)
}

async fn of_service(
    apis: &Apis,
    host: &str,
    order: &Remove,
    found: Found,
) -> Result<ServiceRemoval, Fault> {
    let Found::Known(known) = found else { return Ok(ServiceRemoval::Done) };
    if known.liveness != Liveness::Down && !order.is_stopped {
        return Ok(ServiceRemoval::StillUp);
    }
    delete_service(apis, host, &known).await
}

/// Deletes the service of a host; nova refuses that while it has servers or migrations.
pub async fn delete_service(
    apis: &Apis,
    host: &str,
    known: &KnownService,
) -> Result<ServiceRemoval, Fault> {
    let nova = &apis.compute;
    match nova.delete_service(&known.id).await {
        Ok(()) => {}
        Err(Fault { error: Error::Conflict(message), .. }) => {
            let servers = nova.servers_on(host).await?.into_iter().collect();
            return Ok(ServiceRemoval::Kept { servers, message });
        }
        Err(fault) => return Err(fault),
    }
    // A nova-compute that still runs makes its service anew.
    Ok(match service(nova, host, None).await? {
        Found::Absent => ServiceRemoval::Done,
        Found::Known(_) | Found::Unknown => ServiceRemoval::StillUp,
    })
}

/// Whether servers or migrations have a share of a provider, which may be gone.
pub async fn has_consumers(placement: &Placement, provider_uuid: &str) -> Result<bool, Fault> {
    let Some(provider) = placement.provider(provider_uuid).await? else { return Ok(false) };
    Ok(!placement.allocations_of(&provider.uuid).await?.is_empty())
}

/// Deletes the provider of a host, that with the UUID `compute_id` where it is known, and looks for
/// aggregates that list the host. One that nova has a compute node of is kept: the host may have another
/// name in nova than the one that is removed.
///
/// Nova deletes the provider with the service, and says nothing if placement refuses.
pub async fn of_placement(
    apis: &Apis,
    host: &str,
    compute_id: Option<&str>,
) -> Result<PlacementRemoval, Fault> {
    let placement = &apis.placement;
    let provider = match compute_id {
        Some(id) => placement.provider(id).await?,
        None => placement.provider_named(host).await?,
    };
    if let Some(provider) = provider.map(|it| it.uuid) {
        if let Some(other) = node_host(apis, &provider).await? {
            let message = format!("nova has it as the compute node of host {other}");
            return Ok(PlacementRemoval::Kept { provider, message });
        }
        if let Some(kept) = of_provider(apis, host, provider).await? {
            return Ok(kept);
        }
    }
    let aggregates: Few<String> = apis.compute.aggregates_with(host).await?.into_iter().collect();
    let is_in_none = aggregates.is_empty();
    Ok(if is_in_none { PlacementRemoval::Done } else { PlacementRemoval::InAggregates(aggregates) })
}

/// Deletes a provider of the host's name under another UUID than the recorded one, which an earlier
/// installation of the host has left; one that nova has a compute node of is another host's. Returns
/// what is kept.
async fn of_stale(
    apis: &Apis,
    host: &str,
    compute_id: Option<&str>,
) -> Result<Option<PlacementRemoval>, Fault> {
    // Without a recorded UUID the provider was looked for by this name before.
    let Some(own) = compute_id else { return Ok(None) };
    match other_provider(apis, host, own).await? {
        Some((provider, None)) => of_provider(apis, host, provider).await,
        Some((_, Some(_))) | None => Ok(None),
    }
}

/// Returns the provider of this name under another UUID than a host's own, and the host of the compute
/// node that nova has of it, if any.
pub async fn other_provider(
    apis: &Apis,
    name: &str,
    own: &str,
) -> Result<Option<(String, Option<String>)>, Fault> {
    let found = apis.placement.provider_named(name).await?.map(|it| it.uuid);
    let Some(provider) = found.filter(|it| it != own) else { return Ok(None) };
    let user = node_host(apis, &provider).await?;
    Ok(Some((provider, user)))
}

/// Returns the host on which nova has the compute node of this UUID, which its resource provider has too;
/// `None` without one.
pub async fn node_host(apis: &Apis, compute_id: &str) -> Result<Option<String>, Fault> {
    Ok(apis.compute.hypervisor(compute_id).await?.map(|it| it.service.host))
}

/// Deletes a provider of a host, whose shares are dropped only where nova has nothing on the host.
/// Returns what is kept.
async fn of_provider(
    apis: &Apis,
    host: &str,
    provider: String,
) -> Result<Option<PlacementRemoval>, Fault> {
    let placement = &apis.placement;
    let consumers = placement.allocations_of(&provider).await?;
    // Only where nova has nothing on the host is a share of its provider one that was left.
    if !consumers.is_empty() && !occupied(&apis.compute, host).await?.is_empty() {
        let message = "nova still has servers or migrations on the host".to_owned();
        return Ok(Some(PlacementRemoval::Kept { provider, message }));
    }
    let kept = delete_provider(placement, &provider, &consumers).await?;
    Ok(kept.map(|message| PlacementRemoval::Kept { provider, message }))
}

/// Deletes the provider of a host without servers, after the shares of it that these consumers still
/// have. Returns placement's message where placement keeps it.
pub async fn delete_provider(
    placement: &Placement,
    provider: &str,
    consumers: &[String],
) -> Result<Option<String>, Fault> {
    for consumer in consumers {
        placement.drop_share(consumer, provider).await?;
    }
    match placement.delete_provider(provider).await {
        Ok(()) => Ok(None),
        Err(Fault { error: Error::Conflict(message), .. }) => Ok(Some(message)),
        Err(fault) => Err(fault),
    }
}

/// Deletes the agents of a host that are down; `None` while neutron lists more of them, because it may
/// cut a list.
///
/// An agent that reports is of a process on the host, and would be back. Neutron counts it as down a
/// while after the last report of one that was stopped.
async fn of_agents(
    network: &Network,
    host: &str,
    awaits_agents: bool,
) -> Result<Option<AgentsRemoval>, Fault> {
    for _ in 0..AGENT_LISTS {
        let agents = match network.agents_on(host).await {
            Ok(agents) => agents,
            Err(Fault { error: Error::NoEndpoint { .. }, .. }) => {
                return Ok(Some(AgentsRemoval::NoNeutron));
            }
            Err(fault) => return Err(fault),
        };
        let (alive, down): (Vec<Agent>, Vec<Agent>) =
            agents.into_iter().partition(|it| it.is_alive);
        if down.is_empty() {
            return Ok(Some(reporting(alive, awaits_agents)));
        }
        for agent in down {
            network.delete_agent(&agent.id).await?;
        }
    }
    Ok(None)
}

/// Returns the end for now where only these agents are left, which report.
fn reporting(alive: Vec<Agent>, awaits_agents: bool) -> AgentsRemoval {
    if alive.is_empty() || !awaits_agents {
        return AgentsRemoval::Done { n_alive: alive.len() };
    }
    AgentsRemoval::Reporting(alive.into_iter().map(|it| it.binary).collect())
}

#[cfg(test)]
mod tests;

//! One pass over nova's API about one host.
//!
//! Everything that a pass decides follows from what it reads, so that an operator which was killed
//! anywhere in between comes to the same end.

use openstack_client::compute::{KnownService, Liveness};
use openstack_client::{Compute, Fault};
use tokio::time::Instant;

use crate::nova::drain::identity::identity;
use crate::nova::drain::leftover::leftover;
use crate::nova::drain::migrations::{Moves, moved};
use crate::nova::drain::order::{
    Drain, DrainMode, HostOrder, IdentityOrder, MARKER, REMOVAL_MARKER, Remove, Stop, is_of_nova,
    is_ours, kept,
};
use crate::nova::drain::progress::{HostProgress, Removal, ServiceRemoval};
use crate::nova::drain::remove::{Apis, node_host, remove};
use crate::nova::drain::service::{
    EarlierService, Found, Witness, left_out, occupied, of_cell, service,
};

/// What the passes about one host remember of the ones before. An operator that has lost it comes to
/// the same end, perhaps later.
#[derive(Debug, Default)]
pub struct PassMemory {
    moves: Moves,
    /// What the last pass was about.
    order: Option<HostOrder>,
    earlier: EarlierService,
}

impl PassMemory {
    /// Returns what a pass that began then has found first, a late answer judged by the reports since
    /// the pass before, and remembers it for the next one over the same order.
    fn judged(&mut self, order: &HostOrder, begun: Instant, mut found: Found) -> Found {
        if self.order.as_ref() != Some(order) {
            self.order = Some(order.clone());
            self.earlier = EarlierService::default();
        }
        if let Found::Known(service) = &mut found {
            service.liveness = self.earlier.liveness(begun, service);
        }
        self.earlier = EarlierService::of(begun, &found);
        found
    }
}

/// The host of an order.
pub struct HostOfOrder<'a> {
    /// Its name, as its service is registered.
    pub name: &'a str,
    /// The UUID of its service; `None` where it was never recorded.
    pub service: Option<&'a str>,
    /// The UUID of its compute node as last read, which is none where any cell of nova is down, or else as
    /// recorded.
    pub node: Option<&'a str>,
    /// What shows whether its cell answers where nova has no service of the host.
    pub witness: Witness<'a>,
}

/// Carries out an order about a host as far as possible now; no part of it, if nova has another service
/// under the name of the host.
pub async fn pass(
    apis: &Apis,
    host: &HostOfOrder<'_>,
    order: &HostOrder,
    memory: &mut PassMemory,
) -> Result<HostProgress, Fault> {
    let found = carried_out(apis, host, order, memory).await?;
    let recorded = if let HostOrder::DrainForRemoval(_, id) = order { id.as_deref() } else { None };
    confirmed(&apis.compute, host.node.or(recorded), found).await
}

/// Returns what was found, unless the cell of the host has servers there that nova's lists have left out.
async fn confirmed(
    nova: &Compute,
    node: Option<&str>,
    found: HostProgress,
) -> Result<HostProgress, Fault> {
    let is_empty =
        matches!(found, HostProgress::Drained | HostProgress::Empty | HostProgress::Identity(_));
    let Some(node) = node.filter(|_| is_empty) else { return Ok(found) };
    Ok(left_out(nova, node).await?.map_or(found, HostProgress::Occupied))
}

async fn carried_out(
    apis: &Apis,
    host: &HostOfOrder<'_>,
    order: &HostOrder,
    memory: &mut PassMemory,
) -> Result<HostProgress, Fault> {
    let (nova, begun) = (&apis.compute, Instant::now());
    let HostOfOrder { name: host, service: own, witness, .. } = *host;
    let found = memory.judged(order, begun, service(nova, host, own).await?);
    if let Some(unknown) = not_its_own(&found, own) {
        return Ok(unknown);
    }
    let PassMemory { moves, earlier, .. } = memory;
    match (order, found) {
        (HostOrder::Enable, Found::Known(service)) => released(nova, &service).await,
        (HostOrder::EnableOnceUp, Found::Known(service)) => {
            let waits = service.liveness != Liveness::Up && is_disabled_by_us(&service);
            if waits { Ok(HostProgress::NotReporting) } else { released(nova, &service).await }
        }
        (HostOrder::Drain(drain) | HostOrder::DrainForChange(drain), Found::Known(service)) => {
            drained(nova, host, &service, (drain, MARKER), moves).await
        }
        (HostOrder::DrainForRemoval(drain, _), Found::Known(service)) => {
            drained(nova, host, &service, (drain, REMOVAL_MARKER), moves).await
        }
        (HostOrder::InspectForRemoval(Stop::Failed), Found::Known(service)) => {
            after_failed_stop(nova, host, &service).await
        }
        (HostOrder::Inspect | HostOrder::InspectForRemoval(_), Found::Known(_)) => {
            inspected(nova, host).await
        }
        (HostOrder::DeleteLeftover(left), found) => {
            leftover(apis, host, left, found, witness).await
        }
        (HostOrder::Drain(_) | HostOrder::DrainForChange(_), found) => {
            Ok(unless_unconfirmed(of_absent(nova, host, &found, witness).await?))
        }
        (HostOrder::DrainForRemoval(_, compute_id), found) => {
            let found = of_absent(nova, host, &found, witness).await?;
            unless_elsewhere(apis, host, compute_id.as_deref(), found).await
        }
        (HostOrder::Inspect | HostOrder::InspectForRemoval(_), found) => {
            of_absent(nova, host, &found, witness).await
        }
        (HostOrder::Enable | HostOrder::EnableOnceUp, Found::Absent | Found::Unknown) => {
            Ok(HostProgress::NotFound)
        }
        (HostOrder::Remove(order), found) => removed(apis, host, order, found, witness).await,
        (HostOrder::Identity(order), found) => {
            if is_silent(nova, &found, witness).await? {
                return Ok(HostProgress::CellNotAnswering);
            }
            match undrained(nova, host, order, &found, moves).await? {
                Some(undrained) => Ok(undrained),
                None => identity(apis, host, order, earlier).await,
            }
        }
    }
}

/// Returns why what was found is not known to be of the host whose service has the UUID `own`.
fn not_its_own(found: &Found, own: Option<&str>) -> Option<HostProgress> {
    match found {
        Found::Unknown => Some(HostProgress::CellNotAnswering),
        Found::Known(service) if own.is_some_and(|it| it != service.id) => {
            Some(HostProgress::OtherService { id: service.id.clone() })
        }
        Found::Known(_) | Found::Absent => None,
    }
}

/// Removes what is left of a host, unless nova has another service under its name.
async fn removed(
    apis: &Apis,
    host: &str,
    order: &Remove,
    found: Found,
    witness: Witness<'_>,
) -> Result<HostProgress, Fault> {
    if is_silent(&apis.compute, &found, witness).await? {
        return Ok(HostProgress::CellNotAnswering);
    }
    if let Found::Known(service) = &found
        && order.service.is_another(&service.id)
    {
        return Ok(HostProgress::OtherService { id: service.id.clone() });
    }
    Ok(HostProgress::Removing(remove(apis, host, order, found).await?))
}

/// Returns how far the drain is that is requested with an order about the identity of a host; `None` once
/// the host is drained, and where none is.
async fn undrained(
    nova: &Compute,
    host: &str,
    order: &IdentityOrder,
    found: &Found,
    moves: &mut Moves,
) -> Result<Option<HostProgress>, Fault> {
    let Some(drain) = &order.drain else { return Ok(None) };
    let drained = match found {
        Found::Known(service) => drained(nova, host, service, (drain, MARKER), moves).await?,
        Found::Absent | Found::Unknown => without_service(nova, host).await?,
    };
    let is_drained = matches!(drained, HostProgress::Drained | HostProgress::NotFound);
    Ok((!is_drained).then_some(drained))
}

/// Returns what a host without a service has. Of a mapped host in a silent cell nova has a service that
/// is unknown, so where no other host of the cell is known a service that is absent is gone.
async fn of_absent(
    nova: &Compute,
    host: &str,
    found: &Found,
    witness: Witness<'_>,
) -> Result<HostProgress, Fault> {
    let progress = without_service(nova, host).await?;
    if progress != HostProgress::NotFound || !matches!(found, Found::Absent) {
        return Ok(progress);
    }
    match witness {
        Witness::None => Ok(progress),
        Witness::Host(_) | Witness::Unlisted => of_cell(nova, witness).await,
    }
}

/// Returns what was found of a host that is to be removed, unless nova has nothing of it and its compute
/// node on another host.
async fn unless_elsewhere(
    apis: &Apis,
    host: &str,
    compute_id: Option<&str>,
    found: HostProgress,
) -> Result<HostProgress, Fault> {
    let (HostProgress::NotFound, Some(id)) = (&found, compute_id) else { return Ok(found) };
    Ok(match node_host(apis, id).await?.filter(|it| it != host) {
        Some(host) => HostProgress::OtherHost { compute_id: id.to_owned(), host },
        None => found,
    })
}

/// Returns what was found of a host without a service that is only drained: nothing is removed because
/// of it, so no other host has to confirm it.
fn unless_unconfirmed(found: HostProgress) -> HostProgress {
    let is_unconfirmed = found == HostProgress::CellNotConfirmed;
    if is_unconfirmed { HostProgress::NotFound } else { found }
}

/// Whether the cell of a host without a service is known not to answer.
async fn is_silent(nova: &Compute, found: &Found, witness: Witness<'_>) -> Result<bool, Fault> {
    let is_absent = matches!(found, Found::Absent);
    Ok(is_absent && of_cell(nova, witness).await? == HostProgress::CellNotAnswering)
}

/// Enables the service if this operator disabled it, or gives it back as it was disabled before: of what
/// nova disabled by itself, that is what it enables by itself.
async fn released(nova: &Compute, service: &KnownService) -> Result<HostProgress, Fault> {
    if is_disabled_by_us(service) {
        match kept(reason(service)) {
            Some(before) => nova.disable(&service.id, before).await?,
            None => nova.enable(&service.id).await?,
        }
    }
    Ok(HostProgress::Released)
}

fn is_disabled_by_us(service: &KnownService) -> bool {
    service.is_disabled && is_ours(reason(service))
}

/// A service that is gone runs no server, but nova may still have records of servers on its host.
async fn without_service(nova: &Compute, host: &str) -> Result<HostProgress, Fault> {
    let occupied = occupied(nova, host).await?;
    let is_empty = occupied.is_empty();
    Ok(if is_empty { HostProgress::NotFound } else { HostProgress::Occupied(occupied) })
}

/// Returns what a host has, in lists between two readings that show that its cell answers.
async fn inspected(nova: &Compute, host: &str) -> Result<HostProgress, Fault> {
    let occupied = occupied(nova, host).await?;
    if !occupied.is_empty() {
        return Ok(HostProgress::Occupied(occupied));
    }
    Ok(match service(nova, host, None).await? {
        Found::Known(_) => HostProgress::Empty,
        Found::Unknown => HostProgress::CellNotAnswering,
        Found::Absent => HostProgress::NotFound,
    })
}

/// Returns what a host has on which nova-compute could not be stopped, which may get servers as long as
/// it is not down.
async fn after_failed_stop(
    nova: &Compute,
    host: &str,
    service: &KnownService,
) -> Result<HostProgress, Fault> {
    let found = inspected(nova, host).await?;
    let may_get_servers = found.is_empty() && service.liveness != Liveness::Down;
    let still_up = HostProgress::Removing(Removal::of_service(ServiceRemoval::StillUp));
    Ok(if may_get_servers { still_up } else { found })
}

fn reason(service: &KnownService) -> &str {
    service.disabled_reason.as_deref().unwrap_or_default()
}

/// Whether nova itself may enable a service that is disabled.
fn may_be_enabled(service: &KnownService) -> bool {
    service.is_disabled && is_of_nova(reason(service))
}

async fn drained(
    nova: &Compute,
    host: &str,
    service: &KnownService,
    (drain, marker): (&Drain, &str),
    moves: &mut Moves,
) -> Result<HostProgress, Fault> {
    let present = service.is_disabled.then(|| reason(service));
    let wanted = drain.reason_over(marker, present);
    if present != Some(wanted.as_str()) {
        nova.disable(&service.id, &wanted).await?;
    }
    let occupied = match drain.mode {
        DrainMode::Wait => occupied(nova, host).await?,
        DrainMode::Migrate(most) => moved(nova, host, most, moves).await?,
    };
    // A server may have been scheduled to the host while its service was still enabled: only a pass
    // that found it disabled can find the host empty.
    if !occupied.is_empty() || !service.is_disabled {
        return Ok(HostProgress::Occupied(occupied));
    }
    // Nova leaves out the servers of a cell that does not answer, and does not say so.
    Ok(match self::service(nova, host, Some(&service.id)).await? {
        Found::Known(after) if may_be_enabled(&after) => HostProgress::DisabledByNova,
        Found::Known(after) if after.is_disabled && !may_be_enabled(service) => {
            HostProgress::Drained
        }
        Found::Known(_) => HostProgress::Occupied(occupied),
        Found::Unknown => HostProgress::CellNotAnswering,
        Found::Absent => HostProgress::NotFound,
    })
}

#[cfg(test)]
mod tests;

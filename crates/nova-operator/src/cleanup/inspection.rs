//! What holds a compute that is not known to have registered: nova is only asked about its host.

use api::conditions::{ConditionDraft, find};
use nova_config::conditions::{DRAINED, HOST_CLEANED};

use crate::cleanup::messages::{host, skip};
use crate::compute::observed::Observed;
use crate::drain::condition::counted;
use crate::drain::progress::{HostProgress, Occupied};
use crate::drain::unknown::unknown;
use crate::reasons;

/// Whether nova has shown that a host has neither servers nor open migrations.
pub const fn is_empty(progress: Option<&HostProgress>) -> bool {
    matches!(progress, Some(HostProgress::Empty | HostProgress::NotFound))
}

/// Returns the condition `Drained` of a compute that is held; `None` where the last inspection has
/// not ended, and the host is being stopped already.
pub fn drained(seen: &Observed) -> Option<ConditionDraft> {
    let compute = &*seen.compute;
    let (host, skip) = (host(compute), skip(compute));
    if let Some(HostProgress::Occupied(found)) = &seen.drain {
        return Some(occupied(&host, found, &skip));
    }
    let cause = if let Some(cell) = &seen.cell {
        seen.drain.as_ref().and_then(|it| unknown(it, &cell.spec.secret))
    } else {
        let text = format!("NovaCell {} does not exist.", compute.spec.cell_name);
        Some((&reasons::drain::NOVA_NOT_ANSWERING, text))
    };
    if let Some((reason, cause)) = cause {
        let text = format!("It is unknown whether host {host} has servers, because {cause} {skip}");
        return Some(reason.condition(DRAINED, text));
    }
    let previous = compute.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default();
    if let Some(before) = find(previous, DRAINED) {
        return Some(ConditionDraft::repeated(before));
    }
    let text = format!("The servers of host {host} have not been read yet. {skip}");
    let is_begun = find(previous, HOST_CLEANED).is_some();
    (!is_begun).then(|| reasons::drain::NOT_READ.condition(DRAINED, text))
}

fn occupied(host: &str, found: &Occupied, skip: &str) -> ConditionDraft {
    let text = format!(
        "The compute is not known to have registered, but nova has {} and {} on host {host}. \
         Migrate or delete them; `openstack server list --all-projects --host {host}` lists them. \
         {skip}",
        counted(found.servers.len() + found.stuck.len(), "server"),
        counted(found.migrations, "open migration")
    );
    reasons::drain::WAITING.condition(DRAINED, text)
}

//! Whether a cell that is being deleted is held by what nova has on its hosts.

use api::conditions::{ConditionDraft, first_names};
use kube::ResourceExt;
use nova_config::annotations::SKIP_CLEANUP;
use nova_config::conditions::{NOVA_API_READY, RELEASED};

use crate::cell::observed::Observed;
use crate::cell::observed::hosts::HostsSeen;
use crate::compute::removal::leftover_places::has_ids;
use crate::nova::drain::condition::counted;
use crate::nova::drain::progress::HostProgress;
use crate::nova::drain::unknown::unknown;
use crate::reasons;

/// How many hosts are named, and how many servers of each.
const NAMED: usize = 5;

/// Whether no host holds the cell: nova was asked of each and has nothing on it, and what others have left
/// is deleted; or nova's API is not used, or the user lets the cell go.
pub fn is_free(seen: &Observed) -> bool {
    let Some(HostsSeen { hosts, .. }) = &seen.hosts else { return true };
    let is_skipped = seen.cell.annotations().get(SKIP_CLEANUP).is_some_and(|it| it == "true");
    let are_empty = || hosts.as_ref().is_some_and(|all| all.iter().all(|(_, it)| it.is_empty()));
    is_skipped || (left_behind(seen).is_empty() && are_empty())
}

/// Returns the hosts in the list of leftovers of which UUIDs are still to be deleted: nothing else has
/// these UUIDs.
fn left_behind(seen: &Observed) -> Vec<&str> {
    let all = seen.cell.leftovers().iter();
    all.filter(|it| has_ids(it)).map(|it| it.host_name.as_str()).collect()
}

/// Returns the condition of a cell that its hosts hold, which names them and their servers.
pub fn condition(seen: &Observed) -> ConditionDraft {
    let hosts = seen.hosts.as_ref().and_then(|it| it.hosts.as_deref());
    let occupied: Vec<String> = hosts.unwrap_or_default().iter().filter_map(occupied).collect();
    let cell = seen.cell.name_any();
    let skip = skip(seen);
    if !occupied.is_empty() {
        let text = format!(
            "NovaCell {cell} goes when its hosts have no servers and no open migrations any more: \
             {}. Migrate or delete them; `openstack server list --all-projects --host HOST` lists \
             them. {skip}",
            first_names(&occupied, NAMED)
        );
        return reasons::cell::SERVERS_IN_CELL.condition(RELEASED, text);
    }
    let left = left_behind(seen);
    if !left.is_empty() && hosts.is_some_and(|all| all.iter().all(|(_, it)| it.is_empty())) {
        let text = format!(
            "NovaCell {cell} goes when what these hosts have left in nova and placement is deleted: \
             {}. status.leftovers says what each entry waits for. {skip}",
            first_names(&left, NAMED)
        );
        return reasons::cell::LEFTOVERS_IN_CELL.condition(RELEASED, text);
    }
    let cause = match hosts {
        Some(hosts) => cause(hosts, &seen.cell.spec.secret),
        None => format!(
            "nova's API has not been read; see its condition {NOVA_API_READY}, and keep its \
             Secrets until it is gone."
        ),
    };
    let text =
        format!("It is unknown whether hosts of NovaCell {cell} have servers: {cause} {skip}");
    reasons::cell::SERVERS_UNKNOWN.condition(RELEASED, text)
}

fn skip(seen: &Observed) -> String {
    format!(
        "To let it go all the same: kubectl annotate --overwrite -n {} novacell/{} \
         {SKIP_CLEANUP}=true",
        seen.cell.namespace().unwrap_or_default(),
        seen.cell.name_any()
    )
}

/// Returns what a host has, if it has something.
fn occupied((host, progress): &(String, HostProgress)) -> Option<String> {
    let HostProgress::Occupied(found) = progress else { return None };
    let servers = match found.servers.names(NAMED) {
        names if names.is_empty() => "no servers".to_owned(),
        names => format!("servers {names}"),
    };
    let unconfirmed = match found.unconfirmed.names(NAMED) {
        names if names.is_empty() => names,
        names => format!(", to be confirmed or reverted: {names}"),
    };
    let migrations = counted(found.migrations, "open migration");
    Some(format!("{host} ({servers}, {migrations}{unconfirmed})"))
}

/// Returns why it is unknown what the first host has that was not found empty.
fn cause(hosts: &[(String, HostProgress)], secret: &str) -> String {
    let Some((host, progress)) = hosts.iter().find(|(_, it)| !it.is_empty()) else {
        return "they are being read.".to_owned();
    };
    match unknown(progress, secret) {
        Some((_, cause)) if *progress == HostProgress::CellNotAnswering => {
            format!("of host {host}, {cause}")
        }
        Some((_, cause)) => cause,
        None => format!("host {host} has not been read yet."),
    }
}

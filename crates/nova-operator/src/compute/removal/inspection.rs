//! What holds a compute that is not known to have registered: nova is only asked about its host.

use api::conditions::{ConditionDraft, find};
use nova_config::conditions::DRAINED;

use crate::compute::removal::resolve::Resolved;
use crate::nova::drain::condition::{counted, unconfirmed, unnamed_migrations};
use crate::nova::drain::progress::{HostProgress, Occupied, ServiceRemoval};
use crate::nova::drain::unknown::unknown;
use crate::reasons;

/// Returns the condition of the host, after what holds its stop.
pub fn conditions(resolved: &Resolved<'_>, of_host: ConditionDraft) -> Vec<ConditionDraft> {
    let drained = resolved.is_held().then(|| drained(resolved, &of_host)).flatten();
    drained.into_iter().chain([of_host]).collect()
}

/// Returns the condition `Drained` of a compute that is held. `of_host` is its condition
/// `HostCleaned`; `None` where that says enough, because the first inspection since the operator
/// began has not ended.
fn drained(resolved: &Resolved<'_>, of_host: &ConditionDraft) -> Option<ConditionDraft> {
    let Resolved { compute, host, skip, secret, progress, .. } = resolved;
    if let Some(HostProgress::Occupied(found)) = progress {
        return Some(occupied(host, found, of_host, skip));
    }
    let removal = progress.and_then(HostProgress::removal);
    if removal.is_some_and(|it| it.service == ServiceRemoval::StillUp) {
        let text = format!(
            "Nova may schedule servers to host {host}, because a nova-compute still reports under that \
             name: if it is this host's, stop it there with `systemctl disable --now \
             edpm_nova_compute`. {skip}"
        );
        return Some(reasons::removal::STILL_UP.condition(DRAINED, text));
    }
    let cause = if resolved.seen.cell.is_some() {
        progress.and_then(|it| unknown(it, secret))
    } else {
        let text = format!("NovaCell {} does not exist.", compute.spec.cell_name);
        Some((&reasons::drain::NOVA_NOT_ANSWERING, text))
    };
    if let Some((reason, cause)) = cause {
        let text = format!("It is unknown whether host {host} has servers, because {cause} {skip}");
        return Some(reason.condition(DRAINED, text));
    }
    if let Some(before) = find(compute.conditions(), DRAINED) {
        return Some(ConditionDraft::repeated(before));
    }
    let text = format!("The servers of host {host} have not been read yet. {skip}");
    let waits = of_host.reason == reasons::removal::WAITING_FOR_DRAIN.word;
    waits.then(|| reasons::drain::NOT_READ.condition(DRAINED, text))
}

fn occupied(host: &str, found: &Occupied, of_host: &ConditionDraft, skip: &str) -> ConditionDraft {
    let way_on = if of_host.holds() {
        "nova-compute is stopped there: delete or evacuate them, or start it again with `systemctl \
         enable --now edpm_nova_compute` to migrate them"
    } else {
        "Migrate or delete them"
    };
    let held = held_by(host, found, way_on);
    let text = format!("The compute is not known to have registered, but {held} {skip}");
    reasons::drain::WAITING.condition(DRAINED, text)
}

/// Returns what nova has on a host, in a clause, and what to do about it, in a sentence that begins
/// with `way_on` where there are servers.
fn held_by(host: &str, found: &Occupied, way_on: &str) -> String {
    let n_servers = found.servers.len() + found.stuck.len();
    let next = if n_servers == 0 {
        unnamed_migrations(host, found)
    } else {
        format!(" {way_on}; `openstack server list --all-projects --host {host}` lists them.")
    };
    format!(
        "nova has {} and {} on host {host}.{}{next}",
        counted(n_servers, "server"),
        counted(found.migrations, "open migration"),
        unconfirmed(found)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(servers: &[&str], unconfirmed: &[&str]) -> String {
        let owned = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let (servers, unconfirmed) = (owned(servers), owned(unconfirmed));
        let found = Occupied {
            servers: servers.into(),
            unconfirmed: unconfirmed.into(),
            migrations: 1,
            ..Occupied::default()
        };
        held_by("h1", &found, "Migrate or delete them")
    }

    #[test]
    fn what_to_do_is_said_of_servers_only_where_there_are_some() {
        let (all, one) =
            (held(&["b0"], &["b8"]), "nova has 1 server and 1 open migration on host h1.");
        assert!(all.starts_with(one) && all.contains("be confirmed"), "{all}");
        assert!(all.contains(" Migrate or delete them; `openstack server list"), "{all}");
        let unconfirmed = held(&[], &["b8"]);
        assert!(unconfirmed.ends_with("may be on another host: b8."), "{unconfirmed}");
        let listed = "0 servers and 1 open migration on host h1. `openstack server migration list \
                      --host h1` lists what is open.";
        assert_eq!(held(&[], &[]), format!("nova has {listed}"));
    }
}

//! Why nova or placement keeps something of a host, in the words of conditions and leftovers.

use crate::nova::drain::few::Few;
use crate::nova::drain::progress::{PlacementRemoval, ServiceRemoval};

/// How many servers or aggregates are named.
const NAMED: usize = 5;

/// What to do about servers on a host without a nova-compute, which a live migration would need.
pub const EVACUATE: &str = "nova-compute does not run there: evacuate or delete them";

/// Returns what holds the service of a host, and what to do about it; `None` once it is deleted.
pub fn service(host: &str, removal: &ServiceRemoval) -> Option<String> {
    match removal {
        ServiceRemoval::Done => None,
        ServiceRemoval::StillUp => Some(format!(
            "nova-compute on host {host} still reports to nova, and would register again: stop it \
             there with `systemctl disable --now edpm_nova_compute`."
        )),
        ServiceRemoval::Kept { servers, message } => {
            let servers = match servers.names(NAMED) {
                names if names.is_empty() => String::new(),
                names => format!(" Servers on it: {names}. {EVACUATE}."),
            };
            let message = message.trim_end_matches('.');
            Some(format!("Nova keeps the service of host {host}: {message}.{servers}"))
        }
    }
}

/// Returns what holds the resource provider of a host, and what to do about it; `None` where it was
/// not looked at yet, and once it is gone.
pub fn provider(host: &str, removal: &PlacementRemoval) -> Option<String> {
    match removal {
        PlacementRemoval::Pending | PlacementRemoval::Done => None,
        PlacementRemoval::Kept { provider, message } => {
            let message = message.trim_end_matches('.');
            Some(format!(
                "Placement keeps resource provider {provider} of host {host}: {message}. Look at \
                 it with `openstack resource provider show --allocations {provider}`."
            ))
        }
        PlacementRemoval::InAggregates(aggregates) => Some(format!(
            "Aggregates still list host {host}: {}. Remove it from each with `openstack aggregate \
             remove host AGGREGATE {host}`.",
            aggregates.names(NAMED)
        )),
    }
}

/// Returns what holds the agents that the cleanup was to stop, and what to do about it.
pub fn agents(host: &str, programs: &Few<String>) -> String {
    format!(
        "Agents of host {host} still report to neutron: {}. They are deleted once neutron counts them \
         as down, which is 75 seconds after they were stopped unless its agent_down_time differs. If \
         they run, `systemctl list-units` on the host shows their units, which `systemctl disable \
         --now` stops.",
        programs.names(NAMED)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_on_a_host_that_is_stopped_cannot_be_migrated() {
        let kept = |servers: &[&str]| ServiceRemoval::Kept {
            servers: servers.iter().map(|it| (*it).to_owned()).collect(),
            message: "no.".to_owned(),
        };
        let text = service("n0", &kept(&["s0", "s1"])).unwrap();
        assert!(
            text.ends_with("s0, s1. nova-compute does not run there: evacuate or delete them.")
        );
        assert!(!text.contains("igrate"), "{text}");
        assert_eq!(service("n0", &kept(&[])).unwrap(), "Nova keeps the service of host n0: no.");
    }
}

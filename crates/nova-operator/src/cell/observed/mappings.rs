//! Which hosts wait until nova has no mapping of them, and what a reading has left, as plain data.

use api::conditions::find;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use nova_config::conditions::HOST_UNMAPPED;
use operator_core::finalizers::is_terminating;

use crate::compute::removal::known_mappings::is_passable;
use crate::reasons;

/// Label of these Jobs and their pods, beside that of all Jobs of a cell; its value is always
/// `true`.
pub const MAPPINGS_LABEL: &str = "nova.openstack.org/host-mappings";

/// A host whose removal waits until nova has no mapping of it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct AwaitedHost {
    /// The host, named as its service is registered.
    pub host: String,
    /// Since when it waits, or a time before that in the same removal.
    pub since: Timestamp,
}

/// Returns the host of a compute whose removal waits for the mapping of the host; `None` for any
/// other compute.
pub fn awaited(compute: &ExternalCompute) -> Option<AwaitedHost> {
    let status = compute.status.as_ref().filter(|_| is_terminating(compute))?;
    let found = find(&status.conditions, HOST_UNMAPPED)?;
    let waits = [reasons::removal::READING_MAPPINGS.word, reasons::removal::STILL_MAPPED.word];
    let host = status.host_name.clone().filter(|it| is_passable(it))?;
    let since = found.last_transition_time.0;
    waits.contains(&found.reason.as_str()).then_some(AwaitedHost { host, since })
}

/// Returns the hosts that nova still maps, from the message of a reading of these hosts; `None` if
/// the message has anything but names of them, one a line.
pub fn still_mapped(message: &str, hosts: &[String]) -> Option<Vec<String>> {
    let asked = |line: &str| hosts.iter().find(|it| *it == line).cloned();
    message.lines().map(asked).collect()
}

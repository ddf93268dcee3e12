//! What is known of the mapping of a host that is removed, as the status of its cell has it.

use api::conditions::find;
use api::nova::{Cell, DiscoveryState, MappingReading};
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::annotations::HOST_DISCOVERY;
use nova_config::conditions::HOST_DISCOVERED;
use operator_core::finalizers::is_terminating;

use crate::reasons;
use crate::requested::host_discovery::{Discovery, discovery};

/// Maximum length of a host's name in nova, in bytes.
const NAME_LIMIT: usize = 255;

/// What is known of the mapping of a host whose service is deleted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Mapping {
    /// It was not read yet.
    #[default]
    Unread,
    /// Nova still maps the host.
    Present,
    /// Nova still mapped the host when it was last read, and the newest reading of it has failed,
    /// for this reason, in sentences.
    PresentThenFailed(String),
    /// Nova does not map the host any more.
    Absent,
    /// It is not read, for this reason, in sentences: nova is trusted to have deleted it with
    /// the service.
    NotRead(String),
}

impl Mapping {
    /// Whether the removal of the host goes on.
    pub const fn is_settled(&self) -> bool {
        matches!(self, Self::Absent | Self::NotRead(_))
    }
}

/// Returns what is known of the mapping of a host, named as its service is registered, that is
/// awaited since then; `None` where it is not awaited yet. `cells_are_ours` is whether this operator
/// reconciles cells.
pub fn mapping(
    cell: Option<&Cell>,
    cells_are_ours: bool,
    host: &str,
    since: Option<Timestamp>,
) -> Mapping {
    if let Some(cause) = not_read(cell, cells_are_ours, host) {
        return Mapping::NotRead(cause);
    }
    let reading = cell.and_then(|it| it.status.as_ref()?.mapping_reading.as_ref());
    reading.zip(since).map_or(Mapping::Unread, |(reading, since)| recorded(reading, host, since))
}

/// Returns what a reading has of a host whose mapping is awaited since then: one that is older was
/// about an earlier removal.
pub fn recorded(reading: &MappingReading, host: &str, since: Timestamp) -> Mapping {
    // Objects have times in whole seconds.
    let is_older = reading.since.0.as_second() < since.as_second();
    let is_among = |hosts: &[String]| !is_older && hosts.iter().any(|it| it == host);
    if is_among(&reading.unmapped) {
        return Mapping::Absent;
    }
    let has_failed = reading.state == DiscoveryState::Failed && is_among(&reading.hosts);
    let (job, message) = (&reading.job, reading.message.trim_end_matches('.'));
    let failure = || format!("Job {job}, which was to run it, has failed: {message}.");
    match (is_among(&reading.mapped), has_failed) {
        (true, false) => Mapping::Present,
        (true, true) => Mapping::PresentThenFailed(failure()),
        (false, true) => Mapping::NotRead(failure()),
        (false, false) => Mapping::Unread,
    }
}

/// Returns why mappings are not read, in sentences; `None` where they are.
fn not_read(cell: Option<&Cell>, cells_are_ours: bool, host: &str) -> Option<String> {
    let Some(cell) = cell else { return Some("Its NovaCell does not exist.".to_owned()) };
    let name = cell.name_any();
    if !cells_are_ours {
        return Some(format!("Another operator reconciles NovaCell {name}."));
    }
    if is_terminating(cell) {
        return Some(format!("NovaCell {name} is being deleted."));
    }
    if !is_passable(host) {
        let text = "The name of the host has other characters than letters, digits, `.`, `-` and \
                    `_`.";
        return Some(text.to_owned());
    }
    match discovery(cell) {
        Discovery::External => Some(format!(
            "Annotation {HOST_DISCOVERY} of NovaCell {name} leaves the discovery of hosts to others."
        )),
        Discovery::Invalid(text) => Some(text),
        Discovery::Operator(_) => {
            let found = find(&cell.status.as_ref()?.conditions, HOST_DISCOVERED)?;
            let is_missing = found.reason == reasons::cell::DISCOVERY_INPUT_MISSING.word;
            is_missing.then(|| found.message.clone())
        }
    }
}

/// Whether the name of a host may be an argument of a container: Kubernetes replaces `$(NAME)`
/// there, and lines and columns are separated by other characters.
pub fn is_passable(host: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b".-_".contains(&it);
    (1..=NAME_LIMIT).contains(&host.len()) && host.bytes().all(is_plain)
}

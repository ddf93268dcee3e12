//! The condition `Drained` of a compute.

use api::conditions::{Condition, ConditionDraft, find};
use nova_config::conditions::DRAINED;

use crate::nova::drain::order::{Drain, DrainMode};
use crate::nova::drain::progress::{HostProgress, Occupied, Stuck, StuckCause};
use crate::nova::drain::request::DrainRequest;
use crate::nova::drain::unknown::unknown;
use crate::reasons;

/// How many servers are named for one cause.
const NAMED: usize = 5;

/// What the condition follows from.
pub struct Drained<'a> {
    /// What is requested.
    pub request: &'a DrainRequest,
    /// What the last pass found, or `None` where nova's API is not read.
    pub progress: Option<&'a HostProgress>,
    /// Whether the service carries the marker of this operator, or is not known to be without it
    /// since the last drain.
    pub is_marked: bool,
    /// The host, named as its service is registered; `None` before the first deployment.
    pub host: Option<&'a str>,
    /// The name of the cell's Secret.
    pub secret: &'a str,
    /// The present conditions of the compute.
    pub previous: &'a [Condition],
}

impl Drained<'_> {
    /// Returns the condition, or `None` where no drain is requested and none has to be undone.
    pub fn condition(&self) -> Option<ConditionDraft> {
        match self.request {
            DrainRequest::Invalid(message) => {
                Some(reasons::drain::INVALID.condition(DRAINED, message.clone()))
            }
            DrainRequest::Drain(drain) => Some(self.of_drain(drain)),
            DrainRequest::Absent => self.is_marked.then(|| self.of_release()),
        }
    }

    fn of_drain(&self, drain: &Drain) -> ConditionDraft {
        let Some(progress) = self.progress else {
            let text = "The drain has no effect, because nova's API is not used: set \
                        nova.api.enabled to true in the values of the chart.";
            return reasons::drain::NO_API.condition(DRAINED, text);
        };
        let Some(host) = self.host else {
            let text = "The compute has not registered yet, so its host has no servers; it is \
                        drained once it has.";
            return reasons::drain::NOT_REGISTERED.condition(DRAINED, text);
        };
        if matches!(progress, HostProgress::Drained | HostProgress::Identity(_)) {
            let text = format!(
                "Host {host} has no servers and no open migrations, and nova schedules nothing to it."
            );
            return reasons::drain::DRAINED.condition(DRAINED, text);
        }
        if let HostProgress::Occupied(found) = progress {
            return occupied(host, drain.mode, found);
        }
        if *progress == HostProgress::DisabledByNova {
            let text = format!(
                "Host {host} has no servers and no open migrations, but nova has disabled its service \
                 by itself and will enable it by itself: mend what its reason names on the host, \
                 mostly libvirt, or disable it in your own words: `openstack compute service set \
                 --disable --disable-reason REASON {host} nova-compute`."
            );
            return reasons::drain::DISABLED_BY_NOVA.condition(DRAINED, text);
        }
        if *progress == HostProgress::NotFound {
            let text = format!(
                "Nova has no compute service of host {host}, so it cannot be drained; see ServiceUp."
            );
            return reasons::drain::SERVICE_NOT_FOUND.condition(DRAINED, text);
        }
        self.unknown(host, progress).unwrap_or_else(|| self.as_before(host))
    }

    fn of_release(&self) -> ConditionDraft {
        let host = self.host.unwrap_or_default();
        if let Some(unknown) = self.progress.and_then(|it| self.unknown(host, it)) {
            return unknown;
        }
        if self.progress == Some(&HostProgress::NotReporting) {
            let text = format!(
                "No drain is requested any more: the service of host {host} is enabled once \
                 nova-compute reports to nova; see ServiceUp."
            );
            return reasons::drain::WAITING_FOR_SERVICE.condition(DRAINED, text);
        }
        let text = format!("No drain is requested: the service of host {host} is being enabled.");
        reasons::drain::ENABLING.condition(DRAINED, text)
    }

    fn unknown(&self, host: &str, progress: &HostProgress) -> Option<ConditionDraft> {
        let (reason, cause) = if let HostProgress::OtherService { id } = progress {
            let cause = format!(
                "nova has service {id} under its name, which is not the recorded one of the compute: \
                 delete whichever is stale; `openstack compute service list --host {host}` lists \
                 them."
            );
            (&reasons::drain::OTHER_IDENTITY, cause)
        } else {
            unknown(progress, self.secret)?
        };
        let text = format!("It is unknown whether host {host} has servers, because {cause}");
        Some(reason.condition(DRAINED, text))
    }

    fn as_before(&self, host: &str) -> ConditionDraft {
        let before = find(self.previous, DRAINED).map(ConditionDraft::repeated);
        before.unwrap_or_else(|| {
            let text = format!("The servers of host {host} have not been read yet.");
            reasons::drain::NOT_READ.condition(DRAINED, text)
        })
    }
}

fn occupied(host: &str, mode: DrainMode, found: &Occupied) -> ConditionDraft {
    let n_all = found.servers.len() + found.stuck.len();
    let text = format!(
        "Host {host} has {} and {}, and nova schedules nothing to it.{}",
        counted(n_all, "server"),
        counted(found.migrations, "open migration"),
        unconfirmed(found)
    );
    let list = format!("`openstack server list --all-projects --host {host}` lists them.");
    let next = match mode {
        DrainMode::Migrate(_) if !found.stuck.is_empty() => format!(
            "{} Not migrated live: {}. Start, confirm, migrate or delete them; {list}",
            config_drives(found),
            found.stuck.named(NAMED, named)
        ),
        DrainMode::Migrate(most) if !found.servers.is_empty() => {
            format!(" They are migrated live, at most {most} at a time.{}", config_drives(found))
        }
        DrainMode::Wait if n_all > 0 => format!(" Migrate or delete them; {list}"),
        DrainMode::Migrate(_) | DrainMode::Wait => unnamed_migrations(host, found),
    };
    let is_unconfirmed = !found.unconfirmed.is_empty() && found.servers.is_empty();
    let is_stuck = !found.stuck.is_empty() || is_unconfirmed;
    let reason = match mode {
        DrainMode::Wait => reasons::drain::WAITING,
        DrainMode::Migrate(_) if is_stuck => reasons::drain::SERVERS_STUCK,
        DrainMode::Migrate(_) => reasons::drain::MIGRATING,
    };
    reason.condition(DRAINED, text + &next)
}

/// Returns how many of the servers that move have a config drive, in a sentence after a blank; empty
/// where none has.
fn config_drives(found: &Occupied) -> String {
    if found.config_drives == 0 {
        return String::new();
    }
    format!(
        " Servers with a config drive among those that move: {}; nova 2025.1 or later leaves it empty \
         on a host without shared storage, see docs/guests.md.",
        found.config_drives
    )
}

/// Returns whose resizes or migrations a user has to end, in a sentence after a blank; empty where
/// there are none.
pub fn unconfirmed(found: &Occupied) -> String {
    if found.unconfirmed.is_empty() {
        return String::new();
    }
    format!(
        " A resize or migration waits to be confirmed or reverted (`openstack server resize confirm \
         SERVER`, or `revert`), of servers that may be on another host: {}.",
        found.unconfirmed.names(NAMED)
    )
}

/// Returns the command that lists the open migrations of a host, in a sentence after a blank; empty
/// where there are none, or [`unconfirmed`] names their servers.
pub fn unnamed_migrations(host: &str, found: &Occupied) -> String {
    if found.migrations == 0 || !found.unconfirmed.is_empty() {
        return String::new();
    }
    format!(" `openstack server migration list --host {host}` lists what is open.")
}

/// Returns a number of things, as in `2 servers`.
pub fn counted(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

fn named(stuck: &Stuck) -> String {
    let server = &stuck.server;
    match &stuck.cause {
        StuckCause::Status(status) => format!("{server} (its status is {status})"),
        StuckCause::Refused(why) => {
            format!("{server} (nova refuses: {})", why.trim_end_matches('.'))
        }
        StuckCause::Stayed => format!(
            "{server} (nova did not move it; `openstack server event list {server}` has its attempts)"
        ),
        StuckCause::Task(task) => {
            format!("{server} (its task {task} has not ended for ten minutes)")
        }
    }
}

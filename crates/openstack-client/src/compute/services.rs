//! The services nova-compute, and what nova says of them.

use std::time::Duration;

use hyper::body::Bytes;
use jiff::civil::DateTime;
use serde::Deserialize;

use crate::error::Error;
use crate::footprint::{Footprint, OF_ALL_HOSTS};
use crate::response::parsed;
use crate::text::{self, footprint, is_id};

/// How many characters the reason of a disabled service has at most, in nova's API and its database.
const REASON_LIMIT: usize = 255;

/// An answer that takes longer may have services as down that report, see [`Liveness::Late`]: by
/// default they report every 10 seconds, and are down after 60.
pub(crate) const LATE: Duration = Duration::from_secs(40);

/// A nova-compute service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ComputeService {
    /// The host under which it is registered: its option `host`.
    pub host: String,
    /// What nova says of it.
    pub state: ServiceState,
}

/// What nova says of a service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ServiceState {
    /// The database of the service's cell does not answer.
    Unknown,
    /// The service is known.
    Known(KnownService),
}

/// A service of a cell that answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownService {
    /// Its UUID.
    pub id: String,
    /// Whether it reports to nova.
    pub liveness: Liveness,
    /// Whether an administrator has forced it down.
    pub is_forced_down: bool,
    /// Whether the scheduler leaves it out.
    pub is_disabled: bool,
    /// Why it is disabled, in the administrator's words.
    pub disabled_reason: Option<String>,
    /// When its record was last written, in UTC: its last report, or a later change of the record.
    pub updated_at: Option<DateTime>,
}

/// Whether a service reports to nova.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Liveness {
    /// It has reported within nova's `service_down_time`, and is not forced down.
    Up,
    /// It has not reported so long, or is forced down.
    Down,
    /// Nova has it as down, but its report may have been young when nova read it. Nova reads the
    /// reports of all cells first, then waits up to a minute for cells that do not answer, and
    /// compares the reports with the time after that (`nova/servicegroup/drivers/db.py`).
    Late,
}

#[derive(Deserialize)]
struct Services {
    services: Vec<ListedService>,
}

/// A service in nova's list; a service of a cell that does not answer has only host and status.
#[derive(Deserialize)]
struct ListedService {
    #[serde(deserialize_with = "text::name")]
    host: String,
    status: String,
    id: Option<String>,
    state: Option<String>,
    #[serde(default)]
    forced_down: bool,
    disabled_reason: Option<String>,
    updated_at: Option<String>,
}

/// Returns the services of a response.
pub(crate) fn services_of(body: &Bytes) -> Result<Vec<ComputeService>, Error> {
    let listed = parsed::<Services>(body)?.services;
    let services = listed.into_iter().map(ComputeService::of).collect::<Option<_>>();
    services.ok_or(Error::NotTheService)
}

impl Footprint for ComputeService {
    const PLURAL: &'static str = "services";
    const MOST: usize = OF_ALL_HOSTS;

    /// It includes that of maps by host: of all services, and of those whose host is not mapped.
    fn footprint(&self) -> usize {
        let of_state = match &self.state {
            ServiceState::Unknown => 0,
            ServiceState::Known(known) => {
                footprint(&known.id) + known.disabled_reason.as_deref().map_or(0, footprint)
            }
        };
        2 * (size_of::<Self>() + footprint(&self.host)) + of_state
    }
}

impl KnownService {
    /// Judges the service by its reports, as an earlier answer, requested `apart` before this one, has
    /// it: up if it has reported since, down if it has not within [`LATE`], else still
    /// [`Liveness::Late`].
    ///
    /// Another service of the host, or a change by an administrator, looks like a report, so that
    /// nothing follows from it.
    pub fn by_reports(&self, earlier: &Self, apart: Duration) -> Liveness {
        let record = |it: &Self| {
            (it.id.clone(), it.is_forced_down, it.is_disabled, it.disabled_reason.clone())
        };
        if record(self) != record(earlier) {
            Liveness::Late
        } else if self.updated_at != earlier.updated_at {
            Liveness::Up
        } else if apart >= LATE {
            Liveness::Down
        } else {
            Liveness::Late
        }
    }
}

impl ComputeService {
    /// Marks what comes from an answer for which nova has waited.
    pub(crate) fn late(&mut self) {
        if let ServiceState::Known(known) = &mut self.state
            && known.liveness == Liveness::Down
            && !known.is_forced_down
        {
            known.liveness = Liveness::Late;
        }
    }

    /// Returns the service; `None` when a field has no value that nova gives it.
    fn of(listed: ListedService) -> Option<Self> {
        let host = listed.host;
        if listed.status == "UNKNOWN" {
            return Some(Self { host, state: ServiceState::Unknown });
        }
        let is_disabled = match listed.status.as_str() {
            "enabled" => false,
            "disabled" => true,
            _ => return None,
        };
        let liveness = match listed.state?.as_str() {
            "up" => Liveness::Up,
            "down" => Liveness::Down,
            _ => return None,
        };
        let disabled_reason = listed.disabled_reason.filter(|it| !it.is_empty());
        if disabled_reason.as_ref().is_some_and(|it| it.chars().count() > REASON_LIMIT) {
            return None;
        }
        let state = ServiceState::Known(KnownService {
            id: listed.id.filter(|it| is_id(it))?,
            liveness,
            is_forced_down: listed.forced_down,
            is_disabled,
            disabled_reason,
            updated_at: listed.updated_at.and_then(|it| it.parse().ok()),
        });
        Some(Self { host, state })
    }
}

//! How far an order about a host is carried out, as one pass over nova's API found it.

use std::collections::BTreeSet;

use openstack_client::compute::{Migration, Server};
use openstack_client::error::Fault;

use crate::nova::drain::few::Few;

/// What the last pass found.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum HostProgress {
    /// No pass has ended yet.
    #[default]
    Pending,
    /// Nova's API is not read, because an input of the cell is missing or wrong.
    Unread {
        /// The name of the cell.
        cell: String,
    },
    /// The cell of the host is not known, so nothing is asked.
    CellUnknown,
    /// Nova's API cannot be used.
    Fails(Fault),
    /// The database of the host's cell does not answer, so the host's servers are unknown.
    CellNotAnswering,
    /// Nova has neither a service of the host nor servers on it, and no other host shows whether its
    /// cell's database answers, so the host's servers are unknown.
    CellNotConfirmed,
    /// Nova has no service of the host; where the host is to be removed, it has no servers either,
    /// and where it is inspected, nova lists none.
    NotFound,
    /// The host has servers or open migrations, or is to be drained and had its service enabled until
    /// this pass.
    Occupied(Occupied),
    /// The service is disabled, and the host has neither servers nor open migrations.
    Drained,
    /// The same, but nova has disabled the service by itself, and may enable it by itself at any time.
    DisabledByNova,
    /// The host has neither servers nor open migrations; its service may be enabled.
    Empty,
    /// Nova has another service of the host than the order is meant for, which is left as it is.
    OtherService {
        /// Its UUID.
        id: String,
    },
    /// Nova has the host under another identity than the recorded one, or is not known to be the nova
    /// that it has registered in, so no order is given; a text has both identities and the way on.
    OtherIdentity(String),
    /// Nova has nothing under the name of a host that is to be removed, and its compute node on another
    /// host: the machine has another name in nova by now, and may have servers.
    OtherHost {
        /// The UUID of its compute node.
        compute_id: String,
        /// The other host, named as its service is registered.
        host: String,
    },
    /// The service is to be enabled once it is up, and it is not.
    NotReporting,
    /// The service is enabled again, or another administrator has disabled it.
    Released,
    /// How far what nova, placement and neutron have of the host is removed.
    Removing(Removal),
    /// The host has neither servers nor open migrations; what uses its identity.
    Identity(IdentityUse),
}

impl HostProgress {
    /// Whether a run that disturbs the host must not begin, although the host was found empty before:
    /// nova has something there by now, or does not answer any more.
    pub const fn forbids_runs(&self) -> bool {
        matches!(
            self,
            Self::Occupied(_)
                | Self::DisabledByNova
                | Self::OtherHost { .. }
                | Self::OtherService { .. }
                | Self::OtherIdentity(_)
                | Self::CellNotAnswering
                | Self::Fails(_)
                | Self::Unread { .. }
                | Self::CellUnknown
        )
    }

    /// Returns whether an inspection has shown that nova has neither servers nor open migrations on
    /// the host.
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty | Self::NotFound)
    }

    /// Returns how far what is left of the host is removed; `None` where no pass was about that.
    pub const fn removal(&self) -> Option<&Removal> {
        if let Self::Removing(removal) = self { Some(removal) } else { None }
    }
}

/// What uses the UUID of a host's compute node, or its name in placement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum IdentityUse {
    /// Nothing else.
    Free,
    /// A nova-compute that reports under the name of the host.
    Reporting,
    /// The compute node with this UUID is of that host.
    OtherHost {
        /// Its UUID.
        compute_id: String,
        /// The other host, named as its service is registered.
        host: String,
    },
    /// Placement keeps the provider with this UUID, and says why.
    ProviderKept {
        /// Its UUID.
        provider: String,
        /// Placement's message.
        message: String,
    },
}

/// What a host still has.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Occupied {
    /// The UUIDs of the servers that can leave the host.
    pub servers: Few<String>,
    /// How many of those have a config drive; not counted where the operator does not migrate them.
    pub config_drives: usize,
    /// The servers that cannot be migrated live as they are.
    pub stuck: Few<Stuck>,
    /// How many migrations from or to the host are open.
    pub migrations: usize,
    /// The UUIDs of servers whose resize or cold migration from or to the host a user has
    /// to confirm or revert; those that are stuck on the host are not among them.
    pub unconfirmed: Few<String>,
}

/// A server that cannot be migrated live as it is.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Stuck {
    /// Its UUID.
    pub server: String,
    /// Why it cannot.
    pub cause: StuckCause,
}

/// Why a server cannot be migrated live.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum StuckCause {
    /// It is not running; nova's word for its status.
    Status(String),
    /// Nova refuses the migration with this message.
    Refused(String),
    /// Nova accepted the migration, and the server is still there without an open migration.
    Stayed,
    /// Nova has been doing this with it for too long; nova's word for its task.
    Task(String),
}

impl Occupied {
    /// Returns what is on a host whose servers the operator does not migrate.
    pub fn unmoved(servers: &[String], migrations: &[Migration]) -> Self {
        let servers = servers.iter().cloned().collect();
        let unconfirmed = unconfirmed(migrations).into_iter().collect();
        Self { servers, migrations: migrations.len(), unconfirmed, ..Self::default() }
    }

    /// Sorts what is on a host. `cause` returns why a server that no migration moves cannot be
    /// migrated live.
    pub fn of(
        servers: &[Server],
        migrations: &[Migration],
        cause: impl Fn(&Server) -> Option<StuckCause>,
    ) -> Self {
        let (mut free, mut stuck, mut config_drives) = (Vec::new(), Vec::new(), 0);
        let mut unconfirmed = unconfirmed(migrations);
        for server in servers {
            let id = server.id.clone();
            let is_moving = migrations.iter().any(|it| it.server_id == id && is_moving(it));
            if let Some(cause) = cause(server).filter(|_| !is_moving) {
                unconfirmed.remove(&id);
                stuck.push(Stuck { server: id, cause });
            } else {
                config_drives += usize::from(server.has_config_drive);
                free.push(id);
            }
        }
        let unconfirmed = unconfirmed.into_iter().collect();
        let (servers, stuck) = (free.into(), stuck.into());
        Self { servers, config_drives, stuck, migrations: migrations.len(), unconfirmed }
    }

    /// Returns the UUIDs of all servers on the host.
    pub fn all_servers(&self) -> Few<String> {
        self.servers.clone() + self.stuck.of(|it| it.server.clone())
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.stuck.is_empty() && self.migrations == 0
    }
}

/// Returns the UUIDs of the servers whose migrations a user has to confirm or revert.
fn unconfirmed(migrations: &[Migration]) -> BTreeSet<String> {
    migrations.iter().filter(|it| !is_moving(it)).map(|it| it.server_id.clone()).collect()
}

/// Whether an open migration goes on by itself: one that has `finished` waits until a user confirms
/// or reverts it.
pub fn is_moving(migration: &Migration) -> bool {
    migration.status != "finished"
}

/// How far what is left of a host is removed, in the order of the fields.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Removal {
    /// Its service in nova, and with it the mapping of the host.
    pub service: ServiceRemoval,
    /// Its resource provider in placement, and its membership of aggregates.
    pub placement: PlacementRemoval,
    /// Its agents in neutron, or `None` before they were looked for, which is once its mapping is
    /// known to be gone.
    pub agents: Option<AgentsRemoval>,
}

/// How far the service of a host is removed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ServiceRemoval {
    /// nova-compute still reports, and would register again.
    StillUp,
    /// Nova keeps it, and says why; these servers are on the host, by their UUIDs.
    Kept {
        /// The UUIDs of the servers.
        servers: Few<String>,
        /// Nova's message.
        message: String,
    },
    /// Nova has no service of the host.
    Done,
}

/// How far the resource provider of a host is removed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PlacementRemoval {
    /// It was not looked at yet.
    Pending,
    /// Placement keeps the provider with this UUID, and says why.
    Kept {
        /// Its UUID.
        provider: String,
        /// Placement's message.
        message: String,
    },
    /// These aggregates still list the host.
    InAggregates(Few<String>),
    /// Placement has no provider of the host, and no aggregate lists it.
    Done,
}

/// What was found of a host's agents.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AgentsRemoval {
    /// The catalog has no neutron.
    NoNeutron,
    /// Those that were down are deleted. These programs, which the cleanup was to stop, still report,
    /// and would be back if they were deleted.
    Reporting(Few<String>),
    /// Those that were down are deleted. So many report, and are not awaited, because the cleanup was
    /// not to stop them.
    Done {
        /// How many report.
        n_alive: usize,
    },
}

impl Removal {
    /// Returns a removal that goes no further than the service.
    pub const fn of_service(service: ServiceRemoval) -> Self {
        Self { service, placement: PlacementRemoval::Pending, agents: None }
    }

    /// Whether nova and placement have nothing of the host any more, as far as they say.
    pub fn is_out_of_nova(&self) -> bool {
        self.service == ServiceRemoval::Done && self.placement == PlacementRemoval::Done
    }

    /// Whether nothing is left to do.
    pub fn is_done(&self) -> bool {
        let found = self.agents.as_ref();
        self.is_out_of_nova() && found.is_some_and(|it| !matches!(it, AgentsRemoval::Reporting(_)))
    }
}

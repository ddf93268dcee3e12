//! The live migrations that empty a host, and the servers that none can move.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use openstack_client::compute::{Migration, Server};
use openstack_client::{Compute, Error, Fault};
use tokio::time::Instant;

use crate::nova::drain::progress::{Occupied, StuckCause, is_moving};

/// Pause before a server's second migration, which doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_mins(1);
/// Maximum pause before a server is migrated again.
const LONGEST_PAUSE: Duration = Duration::from_mins(30);
/// For how long nova may be doing something with a server that has no open migration: a task whose
/// process died stays recorded until a nova-compute is started again.
const LONGEST_TASK: Duration = Duration::from_mins(10);

/// Of how many servers of a host the tasks are remembered.
const TASKS: usize = 64;

/// What this process knows of the servers of one host.
#[derive(Debug, Default)]
pub struct Moves {
    /// Server → the last migration of it that this process has started.
    started: BTreeMap<String, Move>,
    /// Server → its task, and when it was first seen with it and without an open migration.
    tasks: BTreeMap<String, (String, Instant)>,
}

#[derive(Debug)]
struct Move {
    n_started: u32,
    again_at: Instant,
    refused: Option<String>,
}

/// Reads what is on a host, and migrates what can move, at most `most` at a time.
pub async fn moved(
    nova: &Compute,
    host: &str,
    most: NonZeroUsize,
    moves: &mut Moves,
) -> Result<Occupied, Fault> {
    let (servers, mut migrations) =
        tokio::try_join!(nova.server_states_on(host), nova.migrations_on(host))?;
    moves.observe(&servers, &migrations, Instant::now());
    if start(nova, &servers, &migrations, most, moves).await? {
        migrations = nova.migrations_on(host).await?;
    }
    Ok(Occupied::of(&servers, &migrations, |it| moves.cause(it)))
}

/// Starts migrations as long as fewer than `most` are open; returns whether it started one. One that
/// nova has accepted counts before its conductor has made the record of it.
async fn start(
    nova: &Compute,
    servers: &[Server],
    migrations: &[Migration],
    most: NonZeroUsize,
    moves: &mut Moves,
) -> Result<bool, Fault> {
    let migrations: Vec<&Migration> = migrations.iter().filter(|it| is_moving(it)).collect();
    let is_free = |it: &&Server| {
        let is_moving = migrations.iter().any(|open| open.server_id == it.id);
        can_migrate(it) && !is_busy(it) && !is_moving
    };
    let now = Instant::now();
    let due = servers.iter().filter(is_free).filter(|it| moves.is_due(&it.id, now));
    let is_accepted = |it: &&Server| {
        let is_recorded = migrations.iter().any(|open| open.server_id == it.id);
        it.task_state.as_deref() == Some("migrating") && !is_recorded && !moves.is_stalled(it, now)
    };
    let n_open = migrations.len() + servers.iter().filter(is_accepted).count();
    let due: Vec<&Server> = due.take(most.get().saturating_sub(n_open)).collect();
    for server in &due {
        match nova.live_migrate(&server.id).await {
            Ok(()) => moves.started(&server.id, now, None),
            // The server is gone, which the next pass sees.
            Err(Fault { error: Error::NotFound, .. }) => {}
            // What nova says of one server holds back none of the others.
            Err(Fault {
                error:
                    Error::Conflict(why)
                    | Error::Refused(why)
                    | Error::Busy(why)
                    | Error::Failed(_, why),
                ..
            }) => moves.started(&server.id, now, Some(why)),
            Err(fault) => return Err(fault),
        }
    }
    Ok(!due.is_empty())
}

/// Whether nova is doing something with the server, so that its state will change by itself.
const fn is_busy(server: &Server) -> bool {
    server.task_state.is_some()
}

/// Whether a server is in the state in which it migrates live without a change for its guest.
fn can_migrate(server: &Server) -> bool {
    server.vm_state == "active"
}

impl Moves {
    /// Forgets servers that are gone and tasks that have ended, and remembers those that were not
    /// seen before.
    fn observe(&mut self, servers: &[Server], migrations: &[Migration], now: Instant) {
        self.started.retain(|server, _| servers.iter().any(|it| it.id == *server));
        let mut before = std::mem::take(&mut self.tasks);
        for server in servers {
            if self.tasks.len() >= TASKS {
                break;
            }
            let is_open = migrations.iter().any(|it| it.server_id == server.id);
            let Some(task) = server.task_state.clone().filter(|_| !is_open) else { continue };
            let since = before.remove(&server.id).filter(|it| it.0 == task).map(|it| it.1);
            self.tasks.insert(server.id.clone(), (task, since.unwrap_or(now)));
        }
    }

    fn is_due(&self, server: &str, now: Instant) -> bool {
        self.started.get(server).is_none_or(|it| it.again_at <= now)
    }

    /// Whether a server has had the same task for too long.
    fn is_stalled(&self, server: &Server, now: Instant) -> bool {
        self.tasks.get(&server.id).is_some_and(|it| now.duration_since(it.1) >= LONGEST_TASK)
    }

    /// Remembers that a migration was started, or why nova refused it.
    pub(crate) fn started(&mut self, server: &str, now: Instant, refused: Option<String>) {
        let n_before = self.started.get(server).map_or(0, |it| it.n_started);
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(n_before)).min(LONGEST_PAUSE);
        let started =
            Move { n_started: n_before.saturating_add(1), again_at: now + pause, refused };
        self.started.insert(server.to_owned(), started);
    }

    /// Returns why a server without a migration that is under way cannot move; `None` where it can,
    /// or may be able to by itself.
    fn cause(&self, server: &Server) -> Option<StuckCause> {
        if let Some(task) = &server.task_state {
            let is_stalled = self.is_stalled(server, Instant::now());
            return is_stalled.then(|| StuckCause::Task(task.clone()));
        }
        if !can_migrate(server) {
            return Some(StuckCause::Status(server.status.clone()));
        }
        let refused = self.started.get(&server.id)?.refused.clone().map(StuckCause::Refused);
        Some(refused.unwrap_or(StuckCause::Stayed))
    }
}

#[cfg(test)]
impl Moves {
    /// Returns when a server that was migrated may be migrated again.
    pub fn again_at(&self, server: &str) -> Instant {
        self.started[server].again_at
    }

    /// Lets all tasks have begun so much earlier.
    pub fn age(&mut self, by: Duration) {
        for (_, since) in self.tasks.values_mut() {
            *since -= by;
        }
    }
}

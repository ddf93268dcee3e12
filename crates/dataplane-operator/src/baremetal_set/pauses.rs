//! What Ironic did not do lately, machine by machine: when each may be asked again, and whose turn it is.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ironic::{Error, Node, State};
use jiff::Timestamp;

/// The pause of a machine after what heals by itself, and of everything that does.
pub const AGAIN: Duration = Duration::from_secs(15);
/// The pause after what only a human can heal.
pub const SELDOM: Duration = Duration::from_mins(1);

/// What became of a request for a machine.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The machine's UUID.
    pub node: String,
    /// Its state when the request was decided.
    pub state: State,
    /// What went wrong.
    pub outcome: Result<(), Error>,
}

/// A request for a machine that was not done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    /// Why not.
    pub error: Error,
    /// When.
    pub at: Timestamp,
    /// The machine's state when the request was decided.
    pub state: State,
}

impl Refused {
    /// How long the machine is not asked for anything; nothing once the pause is over.
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        let pause = if self.error.heals() { AGAIN } else { SELDOM };
        // A clock that was ahead does not make the pause longer.
        let gone = Duration::try_from(now.duration_since(self.at)).unwrap_or_default();
        pause.checked_sub(gone).filter(|it| !it.is_zero())
    }
}

/// Requests that were not done, by the machine's UUID; each is forgotten when one for it is done.
#[derive(Debug, Default)]
pub struct Pauses(Mutex<BTreeMap<String, Refused>>);

impl Pauses {
    /// Takes notice of what became of requests.
    pub fn note(&self, asked: Vec<Asked>, now: Timestamp) {
        let mut kept = self.lock();
        for Asked { node, state, outcome } in asked {
            match outcome {
                Ok(()) => kept.remove(&node),
                Err(error) => kept.insert(node, Refused { error, at: now, state }),
            };
        }
    }

    /// What was not done for these machines. What was asked in another state of a machine says nothing
    /// of it any more.
    pub fn of(&self, nodes: &[Node]) -> BTreeMap<String, Refused> {
        let mut kept = self.lock();
        let mut found = BTreeMap::new();
        for node in nodes {
            let Some(refused) = kept.get(&node.uuid) else { continue };
            if refused.state == node.provision_state {
                found.insert(node.uuid.clone(), refused.clone());
            } else {
                kept.remove(&node.uuid);
            }
        }
        found
    }

    /// The map is whole whoever panicked while holding it.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Refused>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(outcome: Result<(), Error>) -> Vec<Asked> {
        vec![Asked { node: "m".into(), state: State::Available, outcome }]
    }

    fn node(state: State) -> Vec<Node> {
        vec![Node { uuid: "m".into(), provision_state: state, ..Node::default() }]
    }

    #[test]
    fn a_machine_pauses_as_long_as_what_went_wrong_takes_and_no_longer_in_another_state() {
        let pauses = Pauses::default();
        let time = |it: i64| Timestamp::from_second(it).unwrap();
        let left =
            |now| pauses.of(&node(State::Available)).get("m").and_then(|it| it.left(time(now)));
        for (error, seconds) in [
            (Error::Busy("no worker".into()), 15),
            (Error::Unreachable("no answer within 20 s".into()), 15),
            (Error::Refused("no such device".into()), 60),
        ] {
            pauses.note(asked(Err(error)), time(1000));
            assert_eq!(left(1000), Some(Duration::from_secs(seconds)));
            assert_eq!(left(990), Some(Duration::from_secs(seconds)));
            assert_eq!(left(1001), Some(Duration::from_secs(seconds - 1)));
            assert_eq!(left(1060), None);
            // Whose turn it is, is still known.
            assert_eq!(pauses.of(&node(State::Available))["m"].at, time(1000));
        }
        assert!(pauses.of(&node(State::Deploying)).is_empty());
        assert!(pauses.of(&node(State::Available)).is_empty());
        pauses.note(asked(Err(Error::Unauthorized)), time(1000));
        pauses.note(asked(Ok(())), time(1001));
        assert!(pauses.of(&node(State::Available)).is_empty());
    }
}

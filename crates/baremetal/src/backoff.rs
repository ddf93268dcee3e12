//! What Ironic did not do lately, machine by machine: when each may be asked again, and whose turn it is.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::baremetal::BaremetalSet;
use ironic::{Error, Node, State};
use jiff::Timestamp;
use kube::ResourceExt;

/// The pause of a machine after what heals by itself, and of everything that does.
pub const AGAIN: Duration = Duration::from_secs(15);
/// The pause after what only a human can heal.
pub const SELDOM: Duration = Duration::from_mins(1);

/// What became of a request for a machine.
#[derive(Clone, Debug)]
pub struct LastRequest {
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

/// For how long at most a request that was not done is remembered.
const REMEMBERED: Duration = Duration::from_hours(1);
/// How many such requests are remembered of one Ironic in one namespace.
const MOST: usize = 10_000;
/// How many are remembered in all; beyond that, who has most of them loses theirs.
const MOST_OF_ALL: usize = 50_000;
/// How long a name of a machine is at most, in bytes; a UUID has 36.
const LONGEST: usize = 64;

/// Requests that were not done, by the machine's UUID; each is forgotten when one for it is done, or
/// after an hour.
///
/// Whoever writes a set chooses the Ironic, and an Ironic chooses the UUIDs: what it tells must not
/// count for the machines of others.
#[derive(Debug, Default)]
pub struct RequestBackoff(Mutex<BTreeMap<Place, BTreeMap<String, Refused>>>);

/// An Ironic, as a namespace asks it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Place {
    /// The namespace of the sets.
    pub namespace: String,
    /// The endpoint that they name.
    pub endpoint: String,
}

impl Place {
    /// Where a set's machines are.
    pub fn of(set: &BaremetalSet) -> Self {
        let endpoint = set.spec.ironic.as_ref().map(|it| it.endpoint.clone());
        Self {
            namespace: set.namespace().unwrap_or_default(),
            endpoint: endpoint.unwrap_or_default(),
        }
    }
}

impl RequestBackoff {
    /// Takes notice of what became of requests.
    pub fn note(&self, place: &Place, asked: Vec<LastRequest>, now: Timestamp) {
        let mut all = self.lock();
        all.retain(|_, kept| {
            kept.retain(|_, it| {
                Duration::try_from(now.duration_since(it.at)).unwrap_or_default() < REMEMBERED
            });
            !kept.is_empty()
        });
        let kept = all.entry(place.clone()).or_default();
        for LastRequest { node, state, outcome } in
            asked.into_iter().filter(|it| it.node.len() <= LONGEST)
        {
            match outcome {
                Ok(()) => kept.remove(&node),
                Err(_) if kept.len() >= MOST && !kept.contains_key(&node) => None,
                Err(error) => kept.insert(node, Refused { error, at: now, state }),
            };
        }
        if all.values().map(BTreeMap::len).sum::<usize>() > MOST_OF_ALL {
            let largest = all.iter().max_by_key(|it| it.1.len()).map(|it| it.0.clone());
            largest.and_then(|it| all.remove(&it));
        }
    }

    /// What was not done for these machines. What was asked in another state of a machine says nothing
    /// of it any more.
    pub fn of(&self, place: &Place, nodes: &[Node]) -> BTreeMap<String, Refused> {
        let (mut all, mut found) = (self.lock(), BTreeMap::new());
        let Some(kept) = all.get_mut(place) else { return found };
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
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, BTreeMap<String, Refused>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(outcome: Result<(), Error>) -> Vec<LastRequest> {
        vec![LastRequest { node: "m".into(), state: State::Available, outcome }]
    }

    fn place(namespace: &str, endpoint: &str) -> Place {
        Place { namespace: namespace.into(), endpoint: endpoint.into() }
    }

    #[test]
    fn an_ironic_of_others_pauses_nobodys_machine_and_nothing_is_remembered_for_ever() {
        let (pauses, ours) = (RequestBackoff::default(), place("a", "http://ironic"));
        let time = |it: i64| Timestamp::from_second(it).unwrap();
        let refused = || asked(Err(Error::Busy("no worker".into())));
        pauses.note(&place("b", "http://ironic"), refused(), time(1000));
        pauses.note(&place("a", "http://other"), refused(), time(1000));
        assert!(pauses.of(&ours, &node(State::Available)).is_empty());
        pauses.note(&ours, refused(), time(1000));
        assert_eq!(pauses.of(&ours, &node(State::Available)).len(), 1);
        pauses.note(&place("c", "http://ironic"), refused(), time(1000 + 3600));
        assert_eq!(pauses.lock().len(), 1);
        let many =
            (0..MOST + 5).map(|it| LastRequest { node: it.to_string(), ..refused().remove(0) });
        pauses.note(&ours, many.collect(), time(5000));
        assert_eq!(pauses.lock()[&ours].len(), MOST);
    }

    #[test]
    fn what_ironics_of_others_tell_is_bounded_in_bytes_and_number_and_costs_only_who_tells_most() {
        let (pauses, ours) = (RequestBackoff::default(), place("a", "http://ironic"));
        let now = Timestamp::from_second(1000).unwrap();
        let refused = |node: String| LastRequest {
            node,
            ..asked(Err(Error::Busy("no worker".into()))).remove(0)
        };
        pauses.note(&ours, vec![refused("m".into()), refused("m".repeat(LONGEST + 1))], now);
        assert_eq!(pauses.lock()[&ours].len(), 1);
        for idx in 0..20 {
            let other = place("b", &format!("http://other-{idx}"));
            pauses.note(&other, (0..MOST).map(|it| refused(it.to_string())).collect(), now);
            let n_all: usize = pauses.lock().values().map(BTreeMap::len).sum();
            assert!(n_all <= MOST_OF_ALL, "{n_all}");
        }
        assert_eq!(pauses.of(&ours, &node(State::Available)).len(), 1);
    }

    fn node(state: State) -> Vec<Node> {
        vec![Node { uuid: "m".into(), provision_state: state, ..Node::default() }]
    }

    #[test]
    fn a_machine_pauses_as_long_as_what_went_wrong_takes_and_no_longer_in_another_state() {
        let (pauses, ours) = (RequestBackoff::default(), place("a", "http://ironic"));
        let time = |it: i64| Timestamp::from_second(it).unwrap();
        let left = |now| {
            pauses.of(&ours, &node(State::Available)).get("m").and_then(|it| it.left(time(now)))
        };
        for (error, seconds) in [
            (Error::Busy("no worker".into()), 15),
            (Error::Unreachable("no answer within 20 s".into()), 15),
            (Error::Refused("no such device".into()), 60),
        ] {
            pauses.note(&ours, asked(Err(error)), time(1000));
            assert_eq!(left(1000), Some(Duration::from_secs(seconds)));
            assert_eq!(left(990), Some(Duration::from_secs(seconds)));
            assert_eq!(left(1001), Some(Duration::from_secs(seconds - 1)));
            assert_eq!(left(1060), None);
            // Whose turn it is, is still known.
            assert_eq!(pauses.of(&ours, &node(State::Available))["m"].at, time(1000));
        }
        assert!(pauses.of(&ours, &node(State::Deploying)).is_empty());
        assert!(pauses.of(&ours, &node(State::Available)).is_empty());
        pauses.note(&ours, asked(Err(Error::Unauthorized)), time(1000));
        pauses.note(&ours, asked(Ok(())), time(1001));
        assert!(pauses.of(&ours, &node(State::Available)).is_empty());
    }
}

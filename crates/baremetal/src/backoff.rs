//! Backoff of failed Ironic requests, per machine: when each may be retried, and in which order.

use std::collections::BTreeMap;
use std::time::Duration;

use api::baremetal::BaremetalSet;
use ironic::{Error, Node, State};
use jiff::Timestamp;
use kube::ResourceExt;
use parking_lot::Mutex;

/// Backoff of a machine after an error that heals by itself.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(15);
/// Backoff after an error that only a user can fix.
pub const POLL_INTERVAL: Duration = Duration::from_mins(1);

/// The outcome of a request for a machine.
#[derive(Clone, Debug)]
pub struct LastRequest {
    /// The machine's UUID.
    pub node: String,
    /// Its state when the request was decided.
    pub state: State,
    /// The error, if it failed.
    pub outcome: Result<(), Error>,
}

/// A failed request for a machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    /// The error.
    pub error: Error,
    /// When it failed.
    pub at: Timestamp,
    /// The machine's state when the request was decided.
    pub state: State,
}

impl Refused {
    /// Returns the remaining backoff of the machine; `None` once it is over.
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        let pause = if self.error.heals() { RETRY_INTERVAL } else { POLL_INTERVAL };
        // A clock that was ahead must not prolong the backoff.
        let gone = Duration::try_from(now.duration_since(self.at)).unwrap_or_default();
        pause.checked_sub(gone).filter(|it| !it.is_zero())
    }
}

/// How long a failed request is remembered at most.
const REMEMBERED: Duration = Duration::from_hours(1);
/// How many failed requests are remembered per Ironic and namespace.
const MOST: usize = 10_000;
/// How many are remembered in total. Beyond that, the largest [`IronicScope`] is dropped.
const MOST_OF_ALL: usize = 50_000;
/// Maximum length of a machine's UUID in bytes; a regular one has 36.
const LONGEST: usize = 64;

/// Failed requests by the machine's UUID. An entry is dropped when a request for the machine
/// succeeds, when its state changes, or after an hour.
///
/// The author of a set chooses the Ironic, and an Ironic chooses the UUIDs. Entries are therefore
/// kept per [`IronicScope`], so that one Ironic cannot affect the machines of others.
#[derive(Debug, Default)]
pub struct RequestBackoff(Mutex<BTreeMap<IronicScope, BTreeMap<String, Refused>>>);

/// An Ironic, as used by one namespace.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct IronicScope {
    /// The namespace of the sets.
    pub namespace: String,
    /// The Ironic endpoint that they name.
    pub endpoint: String,
}

impl IronicScope {
    /// Returns the place of a set's machines.
    pub fn of(set: &BaremetalSet) -> Self {
        let endpoint = set.spec.ironic.as_ref().map(|it| it.endpoint.clone());
        Self {
            namespace: set.namespace().unwrap_or_default(),
            endpoint: endpoint.unwrap_or_default(),
        }
    }
}

impl RequestBackoff {
    /// Records the outcomes of requests.
    pub fn note(&self, place: &IronicScope, asked: Vec<LastRequest>, now: Timestamp) {
        let mut all = self.0.lock();
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

    /// Returns the failed requests of these machines. A request made in another state of a machine
    /// is dropped as outdated.
    pub fn of(&self, place: &IronicScope, nodes: &[Node]) -> BTreeMap<String, Refused> {
        let (mut all, mut found) = (self.0.lock(), BTreeMap::new());
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(outcome: Result<(), Error>) -> Vec<LastRequest> {
        vec![LastRequest { node: "m".into(), state: State::Available, outcome }]
    }

    fn place(namespace: &str, endpoint: &str) -> IronicScope {
        IronicScope { namespace: namespace.into(), endpoint: endpoint.into() }
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
        assert_eq!(pauses.0.lock().len(), 1);
        let many =
            (0..MOST + 5).map(|it| LastRequest { node: it.to_string(), ..refused().remove(0) });
        pauses.note(&ours, many.collect(), time(5000));
        assert_eq!(pauses.0.lock()[&ours].len(), MOST);
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
        assert_eq!(pauses.0.lock()[&ours].len(), 1);
        for idx in 0..20 {
            let other = place("b", &format!("http://other-{idx}"));
            pauses.note(&other, (0..MOST).map(|it| refused(it.to_string())).collect(), now);
            let n_all: usize = pauses.0.lock().values().map(BTreeMap::len).sum();
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
            // The order of retries is still known.
            assert_eq!(pauses.of(&ours, &node(State::Available))["m"].at, time(1000));
        }
        assert!(pauses.of(&ours, &node(State::Deploying)).is_empty());
        assert!(pauses.of(&ours, &node(State::Available)).is_empty());
        pauses.note(&ours, asked(Err(Error::Unauthorized)), time(1000));
        pauses.note(&ours, asked(Ok(())), time(1001));
        assert!(pauses.of(&ours, &node(State::Available)).is_empty());
    }
}

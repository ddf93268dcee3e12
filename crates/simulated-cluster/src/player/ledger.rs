//! Records which run touched which host, outside the API: two concurrent runs on one host, or one
//! run executed twice, are faults whatever the API says.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

/// One play on a host.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The namespace of the run.
    pub namespace: String,
    /// The name of the run.
    pub run: String,
    /// The service; empty when the run has none.
    pub service: String,
    /// The host's name in the run.
    pub host: String,
    /// `address:port` of the host.
    pub address: String,
    /// The host's variables according to the pod's inventory.
    pub variables: BTreeMap<String, Value>,
    /// The files that the pod mounts, by path.
    pub files: BTreeMap<String, String>,
    /// Whether the play ended on the host; false when it was cut off.
    pub is_complete: bool,
    /// Whether its tasks succeeded.
    pub is_done: bool,
}

/// A pod of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct RunPod {
    /// Its UID.
    pub(crate) uid: String,
    /// Its namespace.
    pub(crate) namespace: String,
    /// The name of its run.
    pub(crate) run: String,
}

/// All visits, and all faults.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    visits: Vec<Visit>,
    /// Address → pods that may be working there.
    active: BTreeMap<String, Vec<RunPod>>,
    /// UID of each run of the run engine → the pod that was started for it.
    started: BTreeMap<String, RunPod>,
    /// Namespace → faults found there.
    faults: BTreeMap<String, Vec<String>>,
}

impl Ledger {
    /// Returns the visits of an address in order.
    pub fn visits(&self, address: &str) -> Vec<Visit> {
        self.entries().visits.iter().filter(|it| it.address == address).cloned().collect()
    }

    /// Returns the faults found in a namespace.
    pub fn faults(&self, namespace: &str) -> Vec<String> {
        self.entries().faults.get(namespace).cloned().unwrap_or_default()
    }

    /// Records that a pod was started for a run of the run engine, by the run's UID; a second start
    /// is a fault.
    pub(crate) fn starts(&self, run: &str, pod: &RunPod) {
        let mut entries = self.entries();
        if entries.started.insert(run.to_owned(), pod.clone()).is_some() {
            entries.fault(&pod.namespace, format!("run {} was started twice", pod.run));
        }
    }

    /// Records that a pod works at its run's addresses; it is a fault if another pod may be working
    /// at one of them.
    pub(crate) fn enters(&self, pod: &RunPod, addresses: impl IntoIterator<Item = String>) {
        let mut entries = self.entries();
        for address in addresses {
            let there = entries.active.entry(address.clone()).or_default();
            let others = there.clone();
            there.push(pod.clone());
            for other in others.iter().filter(|it| it.uid != pod.uid) {
                let fault =
                    format!("run {} came to {address} while {} was there", pod.run, other.run);
                entries.fault(&pod.namespace, fault.clone());
                if other.namespace != pod.namespace {
                    entries.fault(&other.namespace, fault);
                }
            }
        }
    }

    /// Records that the pod with that UID no longer works anywhere.
    pub(crate) fn leaves(&self, uid: &str) {
        for there in self.entries().active.values_mut() {
            there.retain(|it| it.uid != uid);
        }
    }

    /// Records that a play begins on a host; returns the index of the visit.
    pub(crate) fn begins(&self, visit: Visit) -> usize {
        let mut entries = self.entries();
        entries.visits.push(visit);
        entries.visits.len() - 1
    }

    /// Records that the play ended on the host, and whether its tasks succeeded.
    pub(crate) fn ends(&self, visit: usize, is_done: bool) {
        let visit = &mut self.entries().visits[visit];
        (visit.is_complete, visit.is_done) = (true, is_done);
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock()
    }
}

impl Entries {
    fn fault(&mut self, namespace: &str, fault: String) {
        self.faults.entry(namespace.to_owned()).or_default().push(fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str, run: &str) -> RunPod {
        RunPod { uid: uid.into(), namespace: "ns".into(), run: run.into() }
    }

    fn at(address: &str) -> [String; 1] {
        [address.to_owned()]
    }

    #[test]
    fn two_pods_at_one_address_are_a_fault_until_the_first_one_leaves() {
        let ledger = Ledger::default();
        ledger.enters(&pod("1", "a"), at("x:22"));
        ledger.enters(&pod("2", "b"), at("y:22"));
        ledger.leaves("1");
        ledger.enters(&pod("3", "c"), at("x:22"));
        assert_eq!(ledger.faults("ns"), [""; 0]);
        ledger.enters(&RunPod { namespace: "other".into(), ..pod("4", "d") }, at("x:22"));
        let fault = "run d came to x:22 while c was there";
        assert_eq!(
            (ledger.faults("ns"), ledger.faults("other")),
            (vec![fault.into()], vec![fault.into()])
        );
        // The later pod leaves first: the other one is still there.
        ledger.leaves("4");
        ledger.enters(&pod("5", "e"), at("x:22"));
        assert_eq!(ledger.faults("ns").len(), 2);
    }

    #[test]
    fn a_run_that_is_started_twice_is_a_fault_whatever_its_pods_are() {
        let ledger = Ledger::default();
        ledger.starts("u", &pod("1", "a"));
        // Another object with the same name.
        ledger.starts("v", &pod("2", "a"));
        assert_eq!(ledger.faults("ns"), [""; 0]);
        ledger.starts("u", &pod("3", "a"));
        assert_eq!(ledger.faults("ns"), ["run a was started twice"]);
        assert_eq!(ledger.faults("other"), [""; 0]);
    }
}

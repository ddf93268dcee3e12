//! What touched which host when, kept outside the API: two runs on one host at a time, or one run twice,
//! are faults whatever the API says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// One play that reached a host.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The namespace of the run.
    pub namespace: String,
    /// The name of the run.
    pub run: String,
    /// The service, where the run has one.
    pub service: String,
    /// The host's name in the run.
    pub host: String,
    /// `address:port` of the host.
    pub address: String,
    /// The host's variables, as the inventory of the pod gives them.
    pub variables: BTreeMap<String, Value>,
    /// The files that the pod mounts, by path.
    pub files: BTreeMap<String, String>,
    /// Whether the play came to its end on the host, or was cut off.
    pub is_complete: bool,
    /// Whether its tasks were carried out.
    pub is_done: bool,
}

/// All visits, and what must never happen.
#[derive(Debug, Default)]
pub struct Ledger {
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    visits: Vec<Visit>,
    /// Address → the run that is on it.
    active: BTreeMap<String, String>,
    /// Namespace and UID of each run of the engine that a pod was started for.
    started: BTreeSet<(String, String)>,
    /// Namespace → what happened there.
    faults: BTreeMap<String, Vec<String>>,
}

/// A visit that goes on; one that is dropped was cut off.
#[derive(Debug)]
pub(crate) struct Open<'a> {
    ledger: &'a Ledger,
    idx: usize,
}

impl Ledger {
    /// The visits of an address, in their order.
    pub fn visits(&self, address: &str) -> Vec<Visit> {
        self.books().visits.iter().filter(|it| it.address == address).cloned().collect()
    }

    /// All visits by runs of a namespace, in their order.
    pub fn visits_of(&self, namespace: &str) -> Vec<Visit> {
        self.books().visits.iter().filter(|it| it.namespace == namespace).cloned().collect()
    }

    /// What happened in a namespace that must never happen.
    pub fn faults(&self, namespace: &str) -> Vec<String> {
        self.books().faults.get(namespace).cloned().unwrap_or_default()
    }

    /// Notes that a pod of a run of the engine was started; a second one of the same run is a fault.
    pub(crate) fn starts(&self, namespace: &str, run: &str, uid: &str) {
        let mut books = self.books();
        if !books.started.insert((namespace.to_owned(), uid.to_owned())) {
            let fault = format!("run {run} was started twice");
            books.faults.entry(namespace.to_owned()).or_default().push(fault);
        }
    }

    /// Begins a visit; one at an address where another run is at work is a fault.
    pub(crate) fn begins(&self, visit: Visit) -> Open<'_> {
        let mut books = self.books();
        let other = books.active.insert(visit.address.clone(), visit.run.clone());
        if let Some(other) = other {
            let (run, address) = (&visit.run, &visit.address);
            let fault = format!("run {run} came to {address} while {other} was there");
            books.faults.entry(visit.namespace.clone()).or_default().push(fault);
        }
        books.visits.push(visit);
        Open { ledger: self, idx: books.visits.len() - 1 }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open<'_> {
    /// The play came to its end on the host, with its tasks carried out or not.
    pub(crate) fn ends(self, is_done: bool) {
        let mut books = self.ledger.books();
        let visit = &mut books.visits[self.idx];
        (visit.is_complete, visit.is_done) = (true, is_done);
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut books = self.ledger.books();
        let address = books.visits[self.idx].address.clone();
        books.active.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(run: &str, address: &str) -> Visit {
        Visit {
            namespace: "ns".into(),
            run: run.into(),
            service: String::new(),
            host: "n0".into(),
            address: address.into(),
            variables: BTreeMap::new(),
            files: BTreeMap::new(),
            is_complete: false,
            is_done: false,
        }
    }

    #[test]
    fn two_runs_at_one_address_are_a_fault_and_one_after_the_other_are_none() {
        let ledger = Ledger::default();
        ledger.begins(visit("a", "x:22")).ends(true);
        let open = ledger.begins(visit("b", "x:22"));
        assert_eq!(ledger.faults("ns"), [""; 0]);
        drop(ledger.begins(visit("c", "x:22")));
        assert_eq!(ledger.faults("ns"), ["run c came to x:22 while b was there"]);
        drop(open);
        let done: Vec<bool> = ledger.visits("x:22").iter().map(|it| it.is_complete).collect();
        assert_eq!(done, [true, false, false]);
    }

    #[test]
    fn a_run_that_is_started_twice_is_a_fault() {
        let ledger = Ledger::default();
        for uid in ["u", "v"] {
            ledger.starts("ns", "a", uid);
        }
        assert_eq!(ledger.faults("ns"), [""; 0]);
        ledger.starts("ns", "a", "u");
        assert_eq!(ledger.faults("ns"), ["run a was started twice"]);
        assert_eq!(ledger.faults("other"), [""; 0]);
    }
}

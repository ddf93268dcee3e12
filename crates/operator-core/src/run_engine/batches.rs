//! Which attempts share a run: same service, same group, and at most a batch of hosts.

use std::collections::{BTreeMap, BTreeSet};

use crate::hash;
use crate::run_engine::host_key::SCAN_LIMIT;
use crate::run_engine::run::Attempt;
use crate::run_engine::service_sequence::NeededRun;

/// The hosts of one run that must be created.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Batch {
    /// The service.
    pub service: String,
    /// The group that all its hosts share.
    pub group: String,
    /// Host name → attempt.
    pub attempts: BTreeMap<String, Attempt>,
}

impl Batch {
    /// Returns the identity of the run: equal for runs that would do the same.
    pub fn identity(&self) -> String {
        hash::digest(&(&self.service, &self.group, &self.attempts))
    }
}

/// Distributes attempts to as few runs as possible, in the order of the hosts' names.
///
/// `asked` are the hosts whose own key the run scans; a run has at most [`SCAN_LIMIT`] of them.
pub fn batches(
    needs: BTreeMap<String, NeededRun>,
    batch_size: usize,
    asked: &BTreeSet<String>,
) -> Vec<Batch> {
    let mut groups: BTreeMap<(String, String), Vec<(String, Attempt)>> = BTreeMap::new();
    for (host, need) in needs {
        groups.entry((need.service, need.group)).or_default().push((host, need.attempt));
    }
    let mut batches = Vec::new();
    for ((service, group), attempts) in groups {
        for attempts in chunks(attempts, batch_size.max(1), asked) {
            batches.push(Batch { service: service.clone(), group: group.clone(), attempts });
        }
    }
    batches
}

fn chunks(
    attempts: Vec<(String, Attempt)>,
    batch_size: usize,
    asked: &BTreeSet<String>,
) -> Vec<BTreeMap<String, Attempt>> {
    let mut chunks = Vec::new();
    let (mut chunk, mut n_asked) = (BTreeMap::new(), 0);
    for (host, attempt) in attempts {
        let asks = usize::from(asked.contains(&host));
        if chunk.len() == batch_size || n_asked + asks > SCAN_LIMIT {
            chunks.push(std::mem::take(&mut chunk));
            n_asked = 0;
        }
        n_asked += asks;
        chunk.insert(host, attempt);
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(hosts: &[(&str, &str)]) -> BTreeMap<String, NeededRun> {
        hosts
            .iter()
            .map(|(host, group)| {
                let attempt = Attempt { hash: "h".into(), attempt: 1 };
                let need = NeededRun { service: "a".into(), group: (*group).into(), attempt };
                ((*host).to_owned(), need)
            })
            .collect()
    }

    #[test]
    fn hosts_that_agree_share_a_run_and_others_do_not() {
        let found = batches(needs(&[("n0", "x"), ("n1", "y"), ("n2", "x")]), 50, &BTreeSet::new());
        let hosts: Vec<Vec<&String>> =
            found.iter().map(|it| it.attempts.keys().collect()).collect();
        assert_eq!(hosts, [vec!["n0", "n2"], vec!["n1"]]);
    }

    #[test]
    fn no_run_is_larger_than_a_batch() {
        let found = batches(needs(&[("n0", "x"), ("n1", "x"), ("n2", "x")]), 2, &BTreeSet::new());
        assert_eq!(found.iter().map(|it| it.attempts.len()).collect::<Vec<_>>(), [2, 1]);
        assert_ne!(found[0].identity(), found[1].identity());
    }

    #[test]
    fn no_run_asks_more_hosts_for_their_keys_than_it_can_tell_of() {
        let sizes = |n_hosts: usize, batch_size, is_asked: fn(usize) -> bool| {
            let names: Vec<String> = (0..n_hosts).map(|it| format!("n{it:03}")).collect();
            let hosts: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "x")).collect();
            let asked = (0..n_hosts).filter(|it| is_asked(*it)).map(|it| names[it].clone());
            let found = batches(needs(&hosts), batch_size, &asked.collect());
            found.iter().map(|it| it.attempts.len()).collect::<Vec<_>>()
        };
        let (all, none) = (|_| true, |_| false);
        assert_eq!(sizes(200, 500, none), [200]);
        assert_eq!(sizes(80, 500, all), [80]);
        assert_eq!(sizes(81, 500, all), [80, 1]);
        assert_eq!(sizes(200, 500, all), [80, 80, 40]);
        assert_eq!(sizes(200, 50, all), [50, 50, 50, 50]);
        // Hosts whose key is known do not count.
        assert_eq!(sizes(200, 500, |it| it % 2 == 0), [160, 40]);
        assert_eq!(sizes(200, 500, |it| it >= 100), [180, 20]);
        assert_eq!(sizes(0, 500, all), [0; 0]);
    }
}

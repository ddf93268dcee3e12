//! Which attempts share a run: same service, same group, at most a shard's size of hosts.

use std::collections::BTreeMap;

use crate::engine::chain::Need;
use crate::engine::run::Attempt;
use crate::hash;

/// How many hosts share a run where the human says nothing.
pub const BATCH_SIZE: usize = 50;

/// One run that must be made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shard {
    /// The service.
    pub service: String,
    /// What its hosts agree in.
    pub group: String,
    /// Its hosts and what is deployed there.
    pub attempts: BTreeMap<String, Attempt>,
}

impl Shard {
    /// The identity of the run: two runs that would do the same are the same.
    pub fn identity(&self) -> String {
        hash::digest(&(&self.service, &self.group, &self.attempts))
    }
}

/// Puts attempts into as few runs as possible, in the order of the hosts' names.
pub fn shards(needs: BTreeMap<String, Need>, batch_size: usize) -> Vec<Shard> {
    let mut groups: BTreeMap<(String, String), Vec<(String, Attempt)>> = BTreeMap::new();
    for (host, need) in needs {
        groups.entry((need.service, need.group)).or_default().push((host, need.attempt));
    }
    let mut shards = Vec::new();
    for ((service, group), attempts) in groups {
        for chunk in attempts.chunks(batch_size.max(1)) {
            shards.push(Shard {
                service: service.clone(),
                group: group.clone(),
                attempts: chunk.iter().cloned().collect(),
            });
        }
    }
    shards
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(hosts: &[(&str, &str)]) -> BTreeMap<String, Need> {
        hosts
            .iter()
            .map(|(host, group)| {
                let attempt = Attempt { hash: "h".into(), attempt: 1 };
                let need = Need { service: "a".into(), group: (*group).into(), attempt };
                ((*host).to_owned(), need)
            })
            .collect()
    }

    #[test]
    fn hosts_that_agree_share_a_run_and_others_do_not() {
        let found = shards(needs(&[("n0", "x"), ("n1", "y"), ("n2", "x")]), 50);
        let hosts: Vec<Vec<&String>> =
            found.iter().map(|it| it.attempts.keys().collect()).collect();
        assert_eq!(hosts, [vec!["n0", "n2"], vec!["n1"]]);
    }

    #[test]
    fn no_run_is_larger_than_a_batch() {
        let found = shards(needs(&[("n0", "x"), ("n1", "x"), ("n2", "x")]), 2);
        assert_eq!(found.iter().map(|it| it.attempts.len()).collect::<Vec<_>>(), [2, 1]);
        assert_ne!(found[0].identity(), found[1].identity());
    }
}

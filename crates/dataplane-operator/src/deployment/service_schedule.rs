//! What the hosts of a node set go through: services that nothing changes while the deployment lasts,
//! and the runs that are theirs.

use std::collections::BTreeMap;

use api::dataplane::{Deployment, NodeSetProgress};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::hash;
use operator_core::keyed::Digest;
use operator_core::run_engine::service_sequence::{self, ServiceSequence};
use operator_core::run_engine::{DesiredService, Host, Run, SequenceState};

/// The list of fields in the hash of a service: another number would be another hash for everyone.
const VERSION: &str = "v1";

/// What the hosts of a node set go through.
pub struct ServiceSchedule<'a> {
    /// Its services.
    pub desired: Vec<DesiredService>,
    /// Those of them that begin with another node set.
    joined: &'a [String],
    /// The runs for a host that has come to so many of the joined services.
    runs: Vec<Vec<Run<'a>>>,
    /// Where the runs reach the hosts: the inventory stays what the first of them began with.
    pub addresses: BTreeMap<&'a str, &'a str>,
}

impl<'a> ServiceSchedule<'a> {
    /// Of a deployment's node set with the runs that touch its hosts.
    pub fn of(
        deployment: &Deployment,
        runs: &[Run<'a>],
        name: &str,
        kept: &'a NodeSetProgress,
    ) -> Self {
        let desired = |service: &String| {
            let hash = Digest::from(hash_of(deployment, service));
            DesiredService {
                service: service.clone(),
                run_hash: hash.clone(),
                hash,
                group: name.to_owned(),
            }
        };
        let joined = kept.joined.as_slice();
        let of_reached = |n_reached: usize| {
            let is_ahead = |it: &&Run<'_>| !joined[n_reached..].contains(&it.service);
            runs.iter().filter(is_ahead).cloned().collect()
        };
        Self {
            desired: kept.services.iter().map(desired).collect(),
            joined,
            runs: (0..=joined.len()).map(of_reached).collect(),
            addresses: addresses(runs),
        }
    }

    /// Judges a host: a run that another node set's hosts came to earlier is its own as soon as it
    /// has come to that service itself.
    pub fn schedule(
        &self,
        host: &Host<'_>,
        done: usize,
        now: Timestamp,
    ) -> (ServiceSequence, &[Run<'a>]) {
        let n_before = self.desired.len() - self.joined.len();
        let mut n_reached = (done + 1).saturating_sub(n_before).min(self.joined.len());
        loop {
            let sequence = service_sequence::evaluate(host, &self.runs[n_reached], now);
            match (&sequence.state, self.joined.get(n_reached)) {
                (SequenceState::NeedsRun(need), Some(next)) if need.service == *next => {
                    n_reached += 1;
                }
                _ => return (sequence, &self.runs[n_reached]),
            }
        }
    }
}

fn addresses<'a>(runs: &[Run<'a>]) -> BTreeMap<&'a str, &'a str> {
    let hosts = runs.iter().flat_map(|it| &it.object.spec.hosts);
    hosts.map(|it| (it.name.as_str(), it.address.as_str())).collect()
}

/// The hash of a service: nothing changes it while the deployment lasts.
pub fn hash_of(deployment: &Deployment, service: &str) -> String {
    hash::short(&(VERSION, &deployment.uid().unwrap_or_default(), service))
}

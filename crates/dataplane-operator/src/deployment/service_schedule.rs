//! The service sequence of a node set's hosts, which does not change during the deployment, and the
//! runs that belong to it.

use std::collections::BTreeMap;

use api::dataplane::{Deployment, DeploymentNodeSet, RunState, ServiceRun};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::keyed::Digest;
use operator_core::run_engine::runs_by_host::RunsByHost;
use operator_core::run_engine::service_sequence::{self, ServiceSequence};
use operator_core::run_engine::{DesiredService, Host, Run};

use crate::host::node_state::hash_of;

/// The service sequence of a node set's hosts, with their runs.
pub struct ServiceSchedule<'a> {
    /// The desired services, in order.
    pub desired: Vec<DesiredService>,
    /// Those of them that another node set leads.
    joined: &'a [String],
    /// The runs that target its hosts.
    runs: RunsByHost<'a>,
    /// The addresses at which runs reach the hosts: the inventory stays as the first run used it.
    pub addresses: BTreeMap<&'a str, &'a str>,
}

impl<'a> ServiceSchedule<'a> {
    /// Builds the schedule of a deployment's node set with the runs that target its hosts.
    pub fn of(
        deployment: &Deployment,
        runs: &[&'a Run<'a>],
        name: &str,
        begun: &'a DeploymentNodeSet,
    ) -> Self {
        let uid = deployment.uid().unwrap_or_default();
        let desired = |service: &String| {
            let hash = Digest::from(hash_of(&uid, service));
            DesiredService {
                service: service.clone(),
                run_hash: hash.clone(),
                hash,
                group: name.to_owned(),
            }
        };
        Self {
            desired: begun.services.iter().map(desired).collect(),
            joined: begun.joined.as_slice(),
            runs: RunsByHost::of(runs.iter().copied()),
            addresses: addresses(runs),
        }
    }

    /// Evaluates a host.
    ///
    /// A run that hosts of another node set reached earlier belongs to this host as soon as the
    /// host has reached that service itself.
    pub fn evaluate(&self, host: &Host<'_>, now: Timestamp) -> ServiceSequence {
        let is_done = |it: &&ServiceRun| it.state == RunState::Succeeded;
        let done = host.recorded.iter().take_while(is_done).count();
        let n_before = self.desired.len() - self.joined.len();
        let mut n_reached = (done + 1).saturating_sub(n_before).min(self.joined.len());
        loop {
            let ahead = &self.joined[n_reached..];
            let runs = self.runs.of_host(host.name).iter().copied();
            let runs = runs.filter(|it| !ahead.contains(&it.service));
            let sequence = service_sequence::evaluate(host, runs, now);
            let next = self.joined.get(n_reached);
            if sequence.needed_run().is_none_or(|it| Some(&it.service) != next) {
                return sequence;
            }
            n_reached += 1;
        }
    }
}

fn addresses<'a>(runs: &[&'a Run<'a>]) -> BTreeMap<&'a str, &'a str> {
    let hosts = runs.iter().flat_map(|it| &it.object.spec.hosts);
    hosts.map(|it| (it.name.as_str(), it.address.as_str())).collect()
}

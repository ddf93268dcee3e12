//! The hosts of a node set that other deployments have begun and not finished.

use std::collections::BTreeMap;
use std::sync::Arc;

use common::api::dataplane::{Deployment, HostProgress, NodeSet, NodeSetProgress, RunState};
use kube::ResourceExt;

use crate::deployment::progress::position;
use crate::deployment::texts::is_failing;

/// What another deployment does on a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Begun {
    /// The deployment, by name.
    pub deployment: String,
    /// Whether it has failed there, and is in no run at present.
    pub fails: bool,
}

/// The hosts of a node set that others among these deployments have begun and not finished; of several
/// deployments on a host one that is at work there.
///
/// `is_for_all` tells of a service whether it waits for all node sets: hosts that wait there, or behind
/// it, are in service.
pub fn begun(
    deployments: &[Arc<Deployment>],
    ours: &Deployment,
    set: &NodeSet,
    is_for_all: impl Fn(&str) -> bool,
) -> BTreeMap<String, Begun> {
    let is_other = |it: &&Arc<Deployment>| it.uid() != ours.uid() && !it.has_ended();
    let mut begun = BTreeMap::new();
    for other in deployments.iter().filter(is_other) {
        let Some(progress) = other.progress_of(set) else { continue };
        let hosts = progress.hosts.iter().filter(|it| is_begun(progress, it.1, &is_for_all));
        for (host, at) in hosts {
            let fails = is_failing(at) && at.run.is_none();
            if !fails || !begun.contains_key(host) {
                begun.insert(host.clone(), Begun { deployment: other.name_any(), fails });
            }
        }
    }
    begun
}

fn is_begun(
    progress: &NodeSetProgress,
    at: &HostProgress,
    is_for_all: impl Fn(&str) -> bool,
) -> bool {
    let is_for_all = |place: usize| progress.services.get(place).is_some_and(|it| is_for_all(it));
    let done = position(at);
    let is_between = || done > 0 && !is_for_all(done) && !is_for_all(done - 1);
    at.state != RunState::Succeeded && (at.run.is_some() || at.attempt > 0 || is_between())
}

//! By which key the host of a node is known: the human's known hosts, else the one that was learned.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{HostMachine, Node};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::run_engine::host_key::{self, ACCEPT, HostKey, HostKeyTrust};
use operator_core::run_engine::known_hosts::{covers, line};
use operator_core::run_engine::ssh_secret::KNOWN_HOSTS;

use crate::effective_spec::{EffectiveSpec, OWN_OPTIONS};
use crate::host_conflicts::Claim;
use crate::role::observed::Observed;

/// A key that a run was offered.
struct Offer {
    key: HostKey,
    address: String,
    created: Option<Timestamp>,
    ended: Option<Timestamp>,
}

/// What runs were offered as keys, by the name of the host.
#[derive(Default)]
pub struct Offers<'a>(BTreeMap<&'a str, Vec<Offer>>);

impl<'a> Offers<'a> {
    /// All that these runs were offered.
    pub fn of(runs: impl IntoIterator<Item = &'a Arc<AnsibleEe>>) -> Self {
        let mut offers = Self::default();
        for run in runs {
            for (host, offer) in offers_of(run) {
                offers.0.entry(host).or_default().push(offer);
            }
        }
        for list in offers.0.values_mut() {
            list.sort_by(|a, b| (a.ended, &a.key).cmp(&(b.ended, &b.key)));
        }
        offers
    }

    /// The keys that a host offered at its present address, the oldest first. What was offered
    /// before the object that describes it was made, `since` then, concerns another host.
    pub fn keys(&self, host: &str, since: Option<Timestamp>, address: &str) -> Vec<HostKey> {
        let offers = self.0.get(host).map(Vec::as_slice).unwrap_or_default();
        let fits = |it: &&Offer| it.address == address && it.created >= since;
        offers.iter().filter(fits).map(|it| it.key.clone()).collect()
    }
}

fn offers_of(run: &AnsibleEe) -> impl Iterator<Item = (&str, Offer)> {
    let reports = run.status.as_ref().map(|it| it.host_keys.as_slice()).unwrap_or_default();
    let ended = run.status.as_ref().and_then(|it| it.completion_time.as_ref()).map(|it| it.0);
    let created = run.creation_timestamp().map(|it| it.0);
    reports.iter().filter_map(move |report| {
        let key = HostKey::parse(report.key.as_deref()?)?;
        let host = run.spec.hosts.iter().find(|it| it.name == report.name)?;
        let address = host.address.clone();
        Some((report.name.as_str(), Offer { key, address, created, ended }))
    })
}

/// By which key the host is known.
///
/// A key of the human's always wins: where they name the host, a learned one is forgotten. So is one
/// of an earlier installation on its machine, whatever was accepted of it; whether the present one is
/// new stands beside what is told of the machine.
pub fn trust(
    seen: &Observed,
    node: &Node,
    effective: &EffectiveSpec,
    (machine, is_new): (Option<&HostMachine>, bool),
    offers: &Offers<'_>,
) -> HostKeyTrust {
    let recorded = node.status.as_ref().and_then(|it| HostKey::parse(it.host_key.as_deref()?));
    let recorded = recorded.filter(|_| !is_new);
    if !is_learned(seen, effective, recorded.is_some()) {
        return HostKeyTrust::default();
    }
    let former = machine.and_then(|it| it.former_key.as_ref());
    let accepted = host_key::accepted(node.annotations().get(ACCEPT));
    let accepted = accepted.filter(|it| Some(it) != former);
    let address = effective.address().unwrap_or_default();
    let installed = machine.and_then(|it| it.installed.as_ref()).map(|it| it.0);
    let since = installed.max(node.creation_timestamp().map(|it| it.0));
    HostKeyTrust::learned(recorded, accepted, &offers.keys(&node.name_any(), since, &address))
}

/// What is said of a host whose key others showed before.
pub fn shared(
    seen: &Observed,
    node: &Node,
    effective: &EffectiveSpec,
    trust: &HostKeyTrust,
) -> Option<String> {
    let claim = Claim::of_node_at(node, effective.address().as_deref());
    let claim = claim.showing(|_| trust.key.clone());
    claim.shared_keys_text(&claim.shared_keys(&seen.claims))
}

fn is_learned(seen: &Observed, effective: &EffectiveSpec, has_key: bool) -> bool {
    if OWN_OPTIONS.iter().any(|it| effective.vars.contains_key(*it)) {
        return false;
    }
    let secret = effective.ssh_secret.as_deref().unwrap_or_default();
    let Some(digests) = seen.sources.get(&SourceRef::secret(&seen.namespace, secret)) else {
        // A Secret that is not there says nothing about known hosts: all stays as it was.
        return has_key;
    };
    let names = |it: &str| covers(it, &effective.ansible_host, effective.ansible_port);
    !digests.texts.get(KNOWN_HOSTS).is_some_and(|it| names(it))
}

/// The line by which ssh knows the host, where its key is a learned one.
pub fn known_host(effective: &EffectiveSpec, trust: &HostKeyTrust) -> Option<String> {
    line(&effective.ansible_host, effective.ansible_port, trust.key.as_ref()?)
}

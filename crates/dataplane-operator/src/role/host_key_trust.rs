//! The trusted ssh host key of a node's host: from the user's `known_hosts`, else a learned one.

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

use crate::effective_spec::{EffectiveSpec, has_own_options};
use crate::host_conflicts::Claim;
use crate::role::observed::Observed;

/// A host key that was presented to a run.
struct Offer {
    key: HostKey,
    address: String,
    created: Option<Timestamp>,
    ended: Option<Timestamp>,
}

/// The host keys that were presented to runs, by the name of the host.
#[derive(Default)]
pub struct Offers<'a>(BTreeMap<&'a str, Vec<Offer>>);

impl<'a> Offers<'a> {
    /// Collects the host keys from the reports of these runs.
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

    /// Returns the keys that a host presented at its present address, the oldest first.
    ///
    /// Runs created before `since` are ignored: they concern another host, or an earlier
    /// installation.
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

/// Returns which host key is trusted.
///
/// A key of the user's takes precedence: when the user's `known_hosts` name the host, a learned key
/// is dropped. So is the key of an earlier installation on the machine, even if it was accepted.
/// `is_new` says whether the present installation is new; it comes with the machine's record.
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

/// Returns the message about a host whose key another host presented before.
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
    if has_own_options(&effective.vars) {
        return false;
    }
    let secret = effective.ssh_secret.as_deref().unwrap_or_default();
    let Some(digests) = seen.sources.get(&SourceRef::secret(&seen.namespace, secret)) else {
        // A missing Secret does not say anything about known hosts, so nothing changes.
        return has_key;
    };
    let names = |it: &str| covers(it, &effective.ansible_host, effective.ansible_port);
    !digests.texts.get(KNOWN_HOSTS).is_some_and(|it| names(it))
}

/// Returns the host's line for `known_hosts`; `None` when no key is trusted yet.
pub fn known_host(effective: &EffectiveSpec, trust: &HostKeyTrust) -> Option<String> {
    line(&effective.ansible_host, effective.ansible_port, trust.key.as_ref()?)
}

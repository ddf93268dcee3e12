//! The trusted ssh key of a host: what the user's known hosts name, else a learned key.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{HostMachine, Node, NodeSet};
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::node_set_host::Host;
use operator_core::run_engine::host_key::{ACCEPT, HostKey, HostKeyTrust, accepted};
use operator_core::run_engine::known_hosts::covers;
use operator_core::run_engine::ssh_secret::{KNOWN_HOSTS, PRIVATE_KEY};
use operator_runtime::source_cache::Digests;

use crate::host::effective_spec::has_own_options;
use crate::reasons;

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
    fn keys(&self, host: &str, since: Option<Timestamp>, address: &str) -> Vec<HostKey> {
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

/// A host as ssh meets it, with what is recorded of it.
pub struct SshHost<'a> {
    /// Its inventory name.
    pub name: &'a str,
    /// The address and the port of its ssh server.
    pub address: (&'a str, i32),
    /// Whether variables override ssh's options, so that no key of ours is used.
    pub has_own_options: bool,
    /// The digests of its ssh Secret; `None` when that does not exist.
    pub ssh: Option<&'a Digests>,
    /// The key in the status of its object; `None` when its machine has a new installation, which
    /// has other keys.
    pub recorded: Option<&'a String>,
    /// The record of its machine, if it has one.
    pub machine: Option<&'a HostMachine>,
    /// When its object was created.
    pub created: Option<Timestamp>,
    /// Its node's annotation with the fingerprint that the user accepts.
    pub accepted: Option<&'a String>,
}

impl<'a> SshHost<'a> {
    /// Returns a host with an entry in a node set; `ssh` holds the digests of its ssh Secret, if that
    /// exists.
    pub fn of_entry(
        set: &NodeSet,
        node: Option<&'a Node>,
        ssh: Option<&'a Digests>,
        host: &'a Host<'_>,
    ) -> Self {
        let levels = [host.node.ansible.as_ref(), set.spec.node_template.ansible.as_ref()];
        let mut vars = levels.into_iter().flatten().map(|it| &it.ansible_vars);
        let address = (host.ansible_host.as_str(), host.ansible_port);
        Self::of_node(set, node, ssh, &host.name, address, vars.any(has_own_options))
    }

    /// Returns a host as its node records it; `owner` is the object that lists it.
    pub fn of_node(
        owner: &impl ResourceExt,
        node: Option<&'a Node>,
        ssh: Option<&'a Digests>,
        name: &'a str,
        address: (&'a str, i32),
        has_own_options: bool,
    ) -> Self {
        let status = node.and_then(|it| it.status.as_ref());
        Self {
            name,
            address,
            has_own_options,
            ssh,
            recorded: status.and_then(|it| it.host_key.as_ref()),
            machine: status.and_then(|it| it.machine.as_ref()),
            created: owner.creation_timestamp().map(|it| it.0),
            accepted: node.and_then(|it| it.annotations().get(ACCEPT)),
        }
    }

    /// Returns which host key is trusted. An accepted one of an earlier installation does not count.
    ///
    /// A key of the user's takes precedence: when the user's `known_hosts` name the host, a learned
    /// key is dropped. So is the key of an earlier installation on the machine.
    pub fn trust(&self, offers: &Offers<'_>) -> HostKeyTrust {
        let recorded = self.recorded.and_then(|it| HostKey::parse(it));
        if !self.is_learned(recorded.is_some()) {
            return HostKeyTrust::default();
        }
        let former = self.machine.and_then(|it| it.former_key.as_ref());
        let accepted = accepted(self.accepted).filter(|it| Some(it) != former);
        let installed = self.machine.and_then(|it| it.installed.as_ref()).map(|it| it.0);
        let (host, port) = self.address;
        let offered =
            offers.keys(self.name, installed.max(self.created), &format!("{host}:{port}"));
        HostKeyTrust::learned(recorded, accepted, &offered)
    }

    fn is_learned(&self, has_key: bool) -> bool {
        if self.has_own_options {
            return false;
        }
        // A missing Secret does not say anything about known hosts, so nothing changes.
        let Some(Digests { texts, .. }) = self.ssh else { return has_key };
        let (host, port) = self.address;
        !texts.get(KNOWN_HOSTS).is_some_and(|it| covers(it, host, port))
    }
}

/// Returns the fault of the Secret with the ssh key, if it has one.
///
/// `digests` are those of its content; `None` means that the Secret does not exist.
pub fn secret_fault(namespace: &str, secret: &str, digests: Option<&Digests>) -> Option<Problem> {
    let Some(digests) = digests else {
        return Some(Problem::new(
            &reasons::inputs::SSH_SECRET_NOT_FOUND,
            format!(
                "Secret {secret} with the ssh key does not exist: create it with kubectl create \
                 secret generic -n {namespace} {secret} --from-file={PRIVATE_KEY}=<private key>, \
                 and --from-file={KNOWN_HOSTS}=<known hosts> where you know the hosts' own keys."
            ),
        ));
    };
    if !digests.keys.contains_key(PRIVATE_KEY) {
        let text = format!(
            "Secret {secret} has no key {PRIVATE_KEY}: add it with the private key that the hosts \
             accept."
        );
        return Some(Problem::new(&reasons::SSH_SECRET_INCOMPLETE, text));
    }
    let fault = digests.ssh_key_fault?;
    let text = format!("{PRIVATE_KEY} of Secret {secret} {}.", fault.text());
    Some(Problem::new(&reasons::SSH_SECRET_INVALID, text))
}

//! The input to evaluating a service sequence: the host's desired services and recorded state.

use api::dataplane::service_run::ServiceRun;
use jiff::Timestamp;

use crate::keyed::Digest;
use crate::run_engine::host_key::HostKeyTrust;
use crate::run_engine::retry::Retries;
use crate::run_engine::run::Run;

/// The desired state of one service on one host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DesiredService {
    /// The service's name.
    pub service: String,
    /// Hash of all inputs of the service on this host.
    pub hash: Digest,
    /// Hash of what a run now would do: `hash`, combined with tags and limit if those narrow the
    /// run.
    pub run_hash: Digest,
    /// Hosts whose attempts have the same group may share a run.
    pub group: String,
}

impl DesiredService {
    /// Returns whether a run now would do only a part of the service.
    pub fn is_partial(&self) -> bool {
        self.hash != self.run_hash
    }
}

/// One host with its desired services and their recorded state.
#[derive(Clone, Debug)]
pub struct Host<'a> {
    /// Its inventory name.
    pub name: &'a str,
    /// Its services, in order.
    pub desired: &'a [DesiredService],
    /// The services in the parent's status.
    pub recorded: &'a [ServiceRun],
    /// Whether the runs in the status belonged to another owner, because that owner was deleted or
    /// the host has moved to another address.
    pub has_moved: bool,
    /// Whether it is recorded that the first run of a sequence has begun; otherwise the end is the next
    /// record, which is one write less.
    pub records_begin: bool,
    /// Name and resource version of the ssh Secret.
    pub ssh_key: (&'a str, &'a str),
    /// What is trusted as its own key.
    pub trust: &'a HostKeyTrust,
    /// The namespace of its node, which has its name; `None` where messages name no command for the node.
    pub namespace: Option<&'a str>,
    /// Which failures are retried, and how the user requests another attempt.
    pub retries: Retries<'a>,
}

/// A host in one evaluation of its service sequence.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    /// The host.
    pub(super) host: &'a Host<'a>,
    /// The runs of its parent, at least those that carry an attempt of the host.
    pub(super) runs: &'a [&'a Run<'a>],
    /// The present time.
    pub(super) now: Timestamp,
}

//! A host as its chain is judged: its services as they should be, and what was recorded of them.

use api::dataplane::service_run::ServiceRun;

use crate::keyed::Digest;
use crate::run_engine::retry::Retries;

/// One service as it should be on one host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DesiredService {
    /// Its name.
    pub service: String,
    /// Hash of all inputs of the service on this host.
    pub hash: Digest,
    /// Hash of what a run now would do: `hash`, or `hash` with tags and limit where those narrow it.
    pub run_hash: Digest,
    /// Hosts whose attempts agree in this may share a run.
    pub group: String,
}

impl DesiredService {
    /// Whether a run now does only a part of the service.
    pub fn is_partial(&self) -> bool {
        self.hash != self.run_hash
    }
}

/// One host, its services, and what was recorded of them.
#[derive(Clone, Debug)]
pub struct Host<'a> {
    /// Its inventory name.
    pub name: &'a str,
    /// Its services in order.
    pub desired: &'a [DesiredService],
    /// What the parent's status says of them.
    pub recorded: &'a [ServiceRun],
    /// Whether a run may start: deployment is on and every input is there.
    pub may_run: bool,
    /// Whether the runs that the status tells of were somebody else's: whose they were has gone, or
    /// the host has moved.
    pub has_moved: bool,
    /// The ssh Secret and its resource version.
    pub ssh_key: (&'a str, &'a str),
    /// What is trusted as its own key, in a word; empty where the Secret's known hosts decide alone.
    pub trusted: &'a str,
    /// The command by which a human accepts its present key, up to the fingerprint; absent where
    /// that is of no use.
    pub accept: Option<&'a str>,
    /// The command by which the host is taken over from another owner, up to that owner's UID.
    pub take_over: &'a str,
    /// Which failures are tried again, and how a human asks for another attempt.
    pub retries: Retries<'a>,
}

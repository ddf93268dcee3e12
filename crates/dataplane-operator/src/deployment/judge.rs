//! The judgement on one node set of a deployment: where each host stands, and what is told of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use common::api::dataplane::{HostProgress, NodeSet, NodeSetProgress, RunState};
use common::engine::chain::{self, Chain};
use common::engine::host_key::Trust;
use common::engine::retry::Retries;
use common::engine::{Host, Run, State, Wanted, limit};
use common::hash;
use jiff::Timestamp;
use kube::ResourceExt;

use crate::deployment::build::NODE_SET_LABEL;
use crate::deployment::hosts::{by_name, ssh_digests};
use crate::deployment::observe::Observed;
use crate::deployment::progress::{compacted, expanded, live, position};
use crate::group::faults::Fault;
use crate::group::host_key::Offers;
use crate::node_set::host::Host as Described;
use crate::node_set::host_keys::{accept_command, trust};

/// The list of fields in the hash of a service: another number would be another hash for everyone.
const VERSION: &str = "v1";

/// One host, judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Its name in the inventory.
    pub name: String,
    /// Its `host:port`; unknown while its node set is.
    pub address: Option<String>,
    /// By which key it is known.
    pub trust: Trust,
    /// Where it stands.
    pub chain: Chain,
    /// Where it is now, in few words.
    pub live: HostProgress,
    /// Whether what the status says of it must be written, whatever the others do.
    pub is_news: bool,
}

/// A node set's part of a deployment that has begun.
#[derive(Clone, Debug)]
pub struct Part {
    /// The node set's name.
    pub name: String,
    /// The node set, where it exists.
    pub node_set: Option<Arc<NodeSet>>,
    /// Its services in order, as they were when the deployment began.
    pub services: Vec<String>,
    /// What keeps its next runs from being made.
    pub faults: Vec<Fault>,
    /// Its hosts, by name.
    pub hosts: Vec<Judged>,
    /// Whether this pass tells where each host is now.
    pub is_news: bool,
    /// What the status says of it.
    pub shown: NodeSetProgress,
}

/// What is the same for all hosts of a node set.
pub struct Common<'a> {
    /// Everything that was seen.
    pub seen: &'a Observed,
    /// The runs of this node set.
    pub runs: &'a [Run<'a>],
    /// What runs were offered as hosts' keys.
    pub offers: &'a Offers<'a>,
    /// Whether the next service may begin.
    pub may_run: bool,
    /// The time.
    pub now: Timestamp,
}

/// How many attempts a service has on a host.
pub fn attempts(seen: &Observed) -> i64 {
    i64::from(seen.deployment.spec.backoff_limit) + 1
}

/// Whether nothing will be done about a host any more.
pub fn is_ended(kept: &HostProgress, attempts: i64) -> bool {
    kept.state == RunState::Succeeded || is_given_up(kept, attempts)
}

/// Whether a host has failed for good.
pub fn is_given_up(kept: &HostProgress, attempts: i64) -> bool {
    kept.state == RunState::Failed && kept.attempt >= attempts
}

/// The progress of a node set that begins: its hosts but those that the limit leaves out.
pub fn beginning(seen: &Observed, node_set: &NodeSet, services: Vec<String>) -> NodeSetProgress {
    let group = node_set.name_any();
    let limit = seen.deployment.spec.ansible_limit.as_deref();
    let is_in =
        |host: &String| !limit.is_some_and(|it| limit::leaves_out(it, host, &[group.as_str()]));
    let state = if services.is_empty() { RunState::Succeeded } else { RunState::Pending };
    let pending = HostProgress {
        done: 0,
        state,
        attempt: i64::from(!services.is_empty()),
        failures: 0,
        reason: None,
        since: None,
        run: None,
    };
    let hosts = by_name(node_set).into_keys().filter(is_in);
    let status = node_set.status.as_ref();
    NodeSetProgress {
        services,
        config_hash: status.and_then(|it| it.config_hash.clone()).unwrap_or_default(),
        hosts: hosts.map(|it| (it, pending.clone())).collect(),
    }
}

/// Judges a node set's part; `is_new` says whether the status does not tell of it yet.
pub fn part(
    common: &Common<'_>,
    name: &str,
    kept: &NodeSetProgress,
    faults: Vec<Fault>,
    is_new: bool,
) -> Part {
    let seen = common.seen;
    let node_set = seen.node_sets.get(name).cloned();
    let mut described = node_set.as_deref().map(by_name);
    let wanted = wanted(seen, name, &kept.services);
    let mut judged = Vec::new();
    for (host, kept) in &kept.hosts {
        let found = described.as_mut().and_then(|it| it.remove(host));
        // A host that was taken out of the node set is nobody's any more.
        if found.is_none() && node_set.is_some() {
            continue;
        }
        let may_run = common.may_run && faults.is_empty();
        judged.push(one(
            common,
            (name, node_set.as_deref()),
            (host, found),
            &wanted,
            kept,
            may_run,
        ));
    }
    let is_news = is_new || is_told(&judged, &kept.hosts);
    let shown = |it: &Judged| {
        let kept = kept.hosts.get(&it.name).filter(|_| !is_news);
        (it.name.clone(), kept.unwrap_or(&it.live).clone())
    };
    let shown = NodeSetProgress {
        services: kept.services.clone(),
        config_hash: kept.config_hash.clone(),
        hosts: judged.iter().map(shown).collect(),
    };
    let services = kept.services.clone();
    Part { name: name.to_owned(), node_set, services, faults, hosts: judged, is_news, shown }
}

/// The services of a node set, each with a hash that nothing changes while the deployment lasts.
fn wanted(seen: &Observed, node_set: &str, services: &[String]) -> Vec<Wanted> {
    let uid = seen.deployment.uid().unwrap_or_default();
    let wanted = |service: &String| {
        let hash = hash::short(&(VERSION, &uid, service));
        let group = node_set.to_owned();
        Wanted { service: service.clone(), run_hash: hash.clone(), hash, group }
    };
    services.iter().map(wanted).collect()
}

fn one(
    common: &Common<'_>,
    (set_name, node_set): (&str, Option<&NodeSet>),
    (host, found): (&str, Option<Described<'_>>),
    wanted: &[Wanted],
    kept: &HostProgress,
    may_run: bool,
) -> Judged {
    let Common { seen, runs, offers, now, .. } = *common;
    let ssh = node_set.and_then(|it| ssh_digests(seen, it));
    let known = node_set.zip(found.as_ref());
    let trust = known.map(|(set, it)| trust(set, ssh, it, offers)).unwrap_or_default();
    let failures = seen.deployment.status.iter().flat_map(|it| &it.failures);
    let mut text = failures.filter(|it| it.node_set == set_name && it.host == host);
    let text = text.next().map(|it| it.message.as_str());
    let recorded = expanded(host, wanted, Some(kept), runs, text);
    let secret = node_set.map(|it| it.spec.node_template.ansible_ssh_private_key_secret.clone());
    let version = ssh.map(|it| it.version.clone());
    let accept = trust.is_learned.then(|| accept_command(&seen.namespace, set_name));
    let chain = chain::judge(
        &Host {
            name: host,
            wanted,
            recorded: &recorded,
            may_run,
            has_moved: false,
            ssh_key: (&secret.unwrap_or_default(), &version.unwrap_or_default()),
            trusted: &trust.token(),
            accept: accept.as_deref(),
            retries: Retries::Limited {
                attempts: attempts(seen),
                way_on: "correct the cause and create another OpenStackDataPlaneDeployment",
            },
        },
        runs,
        now,
    );
    let live = live(host, wanted, &chain, runs);
    let is_news = compacted(&chain.services) != *kept;
    let address = found.map(|it| it.address());
    Judged { name: host.to_owned(), address, trust, chain, live, is_news }
}

/// Whether the status is to tell where each host is now.
///
/// The engine's news are written at once. In between, what the runs tell themselves is written when
/// all hosts have left a service, and then only after the next runs have begun: one write for each
/// service, which also names the runs that are at work.
fn is_told(hosts: &[Judged], kept: &BTreeMap<String, HostProgress>) -> bool {
    if hosts.iter().any(|it| it.is_news) {
        return true;
    }
    let front = hosts.iter().map(|it| position(&it.live)).min().unwrap_or_default();
    let told = hosts.iter().filter_map(|it| kept.get(&it.name)).map(position).min();
    let is_about_to_begin = |it: &Judged| match &it.chain.state {
        State::NeedsRun(_) => true,
        State::InRun { waiting_for, .. } => {
            waiting_for.is_none() && it.live.state == RunState::Pending
        }
        State::Done | State::OutOfDate | State::Failed { .. } => false,
    };
    let at_front = |it: &&Judged| position(&it.live) == front;
    told.is_some_and(|it| it < front) && !hosts.iter().filter(at_front).any(is_about_to_begin)
}

/// The runs of a node set.
pub fn runs_of<'a>(runs: &[Run<'a>], node_set: &str) -> Vec<Run<'a>> {
    let is_its =
        |it: &&Run<'a>| it.object.labels().get(NODE_SET_LABEL).is_some_and(|it| it == node_set);
    runs.iter().filter(is_its).cloned().collect()
}

//! What earlier passes found of the hosts of a role, for as long as all that it follows from is the same.
//!
//! A host about which nothing is to be written or run need not be evaluated again before something of it
//! changes: its node, its runs, what its group has in common, or what [`ChangedHosts`] notes.
//! So a change of one host costs the evaluation of that host, however many the role has.
//!
//! [`ChangedHosts`]: crate::host::changed_hosts::ChangedHosts

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{DataPlane, Node, Role, Service};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::core::object::HasSpec;
use operator_core::data_sources::SourceRef;
use operator_core::keyed::Digest;
use operator_core::plan::WRITES_PER_PASS;
use operator_runtime::source_cache::Digests;
use parking_lot::Mutex;

use crate::host::networks::Networks;
use crate::role::inventory_part::{ContentMark, InventoryPart};
use crate::role::summary::HostSummary;

/// What is remembered of a role.
#[derive(Debug)]
pub struct GroupMemory {
    /// Until when it is relied on.
    pub expires: Timestamp,
    remembered: Mutex<Remembered>,
}

#[derive(Debug, Default)]
struct Remembered {
    common: Option<Common>,
    hosts: BTreeMap<String, Entry>,
    /// The parts of each inventory object of the role, with what is compared of its content.
    contents: BTreeMap<usize, (Vec<Arc<InventoryPart>>, Arc<ContentMark>)>,
}

#[derive(Debug)]
struct Entry {
    node: Arc<Node>,
    runs: Vec<Arc<AnsibleEe>>,
    summary: Arc<HostSummary>,
    next: Next,
}

/// What is to be done about a host that was evaluated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// Nothing, before something of it changes.
    Nothing,
    /// A run is to be created, once nothing is left to write about any host.
    Run,
    /// Something is to be written about it, in a later pass.
    Write,
}

/// What holds of the hosts of a group from earlier passes, in one pass.
#[derive(Clone, Debug, Default)]
pub struct Recalled {
    /// The summaries of known hosts, in the order of the group's nodes.
    known: Vec<Option<Arc<HostSummary>>>,
    /// Whether something is to be done about a known host.
    is_partial: bool,
    /// Where what this pass finds is kept; `None` where nothing is.
    memory: Option<Arc<GroupMemory>>,
}

impl Recalled {
    /// Returns what is known of the host whose node has that place in the group.
    pub fn host(&self, place: usize) -> Option<&Arc<HostSummary>> {
        self.known.get(place)?.as_ref()
    }

    /// Returns those of a group's nodes whose hosts are not known, in their order, with their places.
    pub fn unknown<'a>(
        &self,
        nodes: &'a [Arc<Node>],
    ) -> impl Iterator<Item = (usize, &'a Arc<Node>)> {
        nodes.iter().enumerate().filter(|(place, _)| self.host(*place).is_none())
    }

    /// Returns the known hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Arc<HostSummary>> {
        self.known.iter().flatten()
    }

    /// Returns whether something is to be done about a known host, in a later pass.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Keeps what was found of hosts, by their places, with what is to be done about each.
    pub fn keep(
        &self,
        nodes: &[Arc<Node>],
        runs: &[Arc<AnsibleEe>],
        found: Vec<(usize, Arc<HostSummary>, Next)>,
    ) {
        let Some(memory) = &self.memory else { return };
        if found.is_empty() {
            return;
        }
        let runs = by_host(runs);
        let mut memory = memory.remembered.lock();
        for (place, summary, next) in found {
            let node = Arc::clone(&nodes[place]);
            let of_host = runs.get(summary.name.as_str()).cloned().unwrap_or_default();
            let runs = of_host.into_iter().cloned().collect();
            memory.hosts.insert(summary.name.clone(), Entry { node, runs, summary, next });
        }
    }

    /// Drops what is known of these hosts.
    pub fn forget(&self, names: impl IntoIterator<Item = String>) {
        if let Some(memory) = &self.memory {
            memory.forget(names);
        }
    }

    /// Returns until when it is relied on; `None` where nothing is kept.
    pub fn expires(&self) -> Option<Timestamp> {
        self.memory.as_ref().map(|it| it.expires)
    }

    /// Drops what is known of hosts about which something is to be done: a rejected write concerns all of
    /// them.
    pub fn forget_waiting(&self) {
        if let Some(memory) = &self.memory {
            memory.remembered.lock().hosts.retain(|_, it| it.next == Next::Nothing);
        }
    }

    /// Returns what is compared of the content of one of the role's inventory objects, which is made of
    /// these parts; `mark` computes it.
    pub fn content(
        &self,
        shard: usize,
        parts: &[&Arc<InventoryPart>],
        mark: impl FnOnce() -> ContentMark,
    ) -> Arc<ContentMark> {
        let Some(memory) = &self.memory else { return Arc::new(mark()) };
        let mut memory = memory.remembered.lock();
        let is_same = |a: &Arc<InventoryPart>, b: &Arc<InventoryPart>| Arc::ptr_eq(a, b) || a == b;
        let are_same = |of: &Vec<Arc<InventoryPart>>| {
            of.len() == parts.len() && of.iter().zip(parts).all(|(a, b)| is_same(a, b))
        };
        if let Some((_, mark)) = memory.contents.get(&shard).filter(|it| are_same(&it.0)) {
            return Arc::clone(mark);
        }
        let mark = Arc::new(mark());
        let parts = parts.iter().map(|it| Arc::clone(it)).collect();
        memory.contents.insert(shard, (parts, Arc::clone(&mark)));
        mark
    }
}

impl GroupMemory {
    /// Creates a memory that is relied on until then.
    pub fn until(expires: Timestamp) -> Self {
        Self { expires, remembered: Mutex::default() }
    }

    /// Drops what is known of these hosts.
    pub fn forget(&self, names: impl IntoIterator<Item = String>) {
        let mut memory = self.remembered.lock();
        for name in names {
            memory.hosts.remove(&name);
        }
    }

    /// Returns what is known of the hosts of a group with these runs; `shards` are the inventory objects that
    /// are to contain them, in the order of the nodes. It holds only where [`GroupMemory::fits`] says so.
    ///
    /// Of the hosts about which something is to be written, those are evaluated that one pass has writes for;
    /// those that need runs are when all is written.
    pub fn recall(
        self: &Arc<Self>,
        nodes: &[Arc<Node>],
        shards: &[usize],
        runs: &[Arc<AnsibleEe>],
    ) -> Recalled {
        let runs = by_host(runs);
        let mut memory = self.remembered.lock();
        let entry = |(node, shard): (&Arc<Node>, &usize)| {
            let entry = memory.hosts.get(node.metadata.name.as_deref()?)?;
            let runs = runs.get(entry.summary.name.as_str()).map(Vec::as_slice).unwrap_or_default();
            let are_same = Arc::ptr_eq(&entry.node, node)
                && entry.summary.shard == *shard
                && entry.runs.len() == runs.len()
                && entry.runs.iter().zip(runs).all(|(a, b)| Arc::ptr_eq(a, b));
            are_same.then_some(entry)
        };
        let entries: Vec<Option<&Entry>> = nodes.iter().zip(shards).map(entry).collect();
        let n_to_write = entries.iter().flatten().filter(|it| it.next == Next::Write).count();
        let mut n_due = 0;
        let mut stays = |it: &&Entry| match it.next {
            Next::Nothing => true,
            Next::Run => n_to_write > 0,
            Next::Write => {
                n_due += 1;
                n_due > WRITES_PER_PASS
            }
        };
        let (mut is_partial, mut n_known) = (false, 0);
        let known = |it: Option<&Entry>| {
            let it = it.filter(&mut stays)?;
            is_partial |= it.next != Next::Nothing;
            n_known += 1;
            Some(Arc::clone(&it.summary))
        };
        let known: Vec<Option<Arc<HostSummary>>> = entries.into_iter().map(known).collect();
        // What does not hold any more goes, and with it the objects that it was found of.
        for (node, _) in nodes.iter().zip(&known).filter(|it| it.1.is_none()) {
            memory.hosts.remove(&node.name_any());
        }
        if n_known < memory.hosts.len() {
            let present: BTreeSet<&str> =
                nodes.iter().filter_map(|it| it.metadata.name.as_deref()).collect();
            memory.hosts.retain(|name, _| present.contains(name.as_str()));
        }
        Recalled { known, is_partial, memory: Some(Arc::clone(self)) }
    }

    /// Returns whether all that the hosts of a group have in common is as it was; if not, everything is
    /// forgotten.
    pub fn fits(&self, common: Common) -> bool {
        let mut memory = self.remembered.lock();
        if memory.common.as_ref() == Some(&common) {
            return true;
        }
        *memory = Remembered { common: Some(common), ..Remembered::default() };
        false
    }
}

/// Returns the runs that name each host.
fn by_host(runs: &[Arc<AnsibleEe>]) -> BTreeMap<&str, Vec<&Arc<AnsibleEe>>> {
    let mut found: BTreeMap<&str, Vec<&Arc<AnsibleEe>>> = BTreeMap::new();
    for run in runs {
        for host in &run.spec.hosts {
            found.entry(&host.name).or_default().push(run);
        }
    }
    found
}

/// An object without its status, which sums up the hosts and changes with each of them.
#[derive(Debug)]
pub struct Stated<T>(pub Arc<T>);

impl<T: HasSpec<Spec: PartialEq> + ResourceExt> PartialEq for Stated<T> {
    fn eq(&self, other: &Self) -> bool {
        let meta = |it: &ObjectMeta| ObjectMeta {
            resource_version: None,
            managed_fields: None,
            ..it.clone()
        };
        Arc::ptr_eq(&self.0, &other.0)
            || (meta(self.0.meta()) == meta(other.0.meta()) && self.0.spec() == other.0.spec())
    }
}

/// What the evaluation of every host of a group depends on.
#[derive(Debug, PartialEq)]
pub struct Common {
    /// The role.
    pub role: Option<Stated<Role>>,
    /// Its data plane.
    pub data_plane: Option<Stated<DataPlane>>,
    /// Its services.
    pub services: BTreeMap<String, Stated<Service>>,
    /// Those that cannot be parsed.
    pub unreadable: BTreeMap<String, String>,
    /// What hosts and services refer to.
    pub sources: BTreeMap<SourceRef, Digests>,
    /// The values that are given as variables.
    pub variables: BTreeMap<SourceRef, BTreeMap<String, Digest>>,
    /// The network attachments of the namespace.
    pub networks: Networks,
    /// The first node with network attachments of its own, with which others are compared.
    pub attachments: Option<(String, Vec<String>)>,
}

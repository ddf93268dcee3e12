//! An index of claims, so that what else describes a host is a look-up, and who owns a host.

use std::collections::BTreeMap;

use operator_core::run_engine::host_key::HostKey;

use crate::host::conflicts::host_claim::{AddressTaken, Claim, Contested, HostClaim};

/// A host in one of the claims.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a> {
    /// The place of the claim among all, and that of the host in the claim.
    pub position: (usize, usize),
    /// The claim.
    pub claim: &'a Claim,
    /// The host.
    pub host: &'a HostClaim,
}

/// The hosts of claims, by their addresses and names and by the ssh keys that they present.
#[derive(Default)]
pub struct ClaimIndex<'a> {
    by_mark: BTreeMap<&'a str, Vec<Description<'a>>>,
    by_key: BTreeMap<&'a HostKey, Vec<Description<'a>>>,
}

impl<'a> ClaimIndex<'a> {
    /// Indexes the hosts of these claims.
    pub fn of(claims: &'a [Claim]) -> Self {
        let mut index = Self::default();
        for (idx, claim) in claims.iter().enumerate() {
            for (place, host) in claim.hosts.iter().enumerate() {
                let described = Description { position: (idx, place), claim, host };
                for mark in host.marks() {
                    index.by_mark.entry(mark).or_default().push(described);
                }
                if let Some(key) = &host.key {
                    index.by_key.entry(key).or_default().push(described);
                }
            }
        }
        index
    }

    /// Returns the first description, in the order of the claims, for which `find` finds something.
    /// It is asked only about those with the host's address or one of its names.
    pub fn first<T>(
        &self,
        host: &HostClaim,
        find: impl Fn(&Description<'a>) -> Option<T>,
    ) -> Option<(Description<'a>, T)> {
        let lists = host.marks().filter_map(|it| self.by_mark.get(it.as_str()));
        let first = lists.filter_map(|list| list.iter().find_map(|it| Some((*it, find(it)?))));
        first.min_by_key(|(it, _)| it.position)
    }

    /// Returns the hosts that present an ssh key, in the order of the claims.
    pub fn showing(&self, key: &HostKey) -> &[Description<'a>] {
        self.by_key.get(key).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Claim {
    /// Returns the hosts of this claim that belong to one of the others.
    pub fn taken(&self, others: &ClaimIndex<'_>) -> Vec<AddressTaken> {
        self.hosts.iter().filter_map(|it| self.taken_in(others, it)).collect()
    }

    /// Returns the host as taken if another object owns it. Within a namespace the older object
    /// owns a host. Across namespaces, naming an address is not enough, so that hosts in service
    /// stay with their object: the other object owns the host only if its runs have reached it and
    /// ours have not. If both have, the owner recorded on the host decides.
    fn taken_in(&self, others: &ClaimIndex<'_>, host: &HostClaim) -> Option<AddressTaken> {
        let is_here = |it: &Self| it.namespace == self.namespace;
        let owns = |it: &Description<'_>| {
            if is_here(it.claim) {
                it.claim.age() < self.age()
            } else {
                it.host.is_reached && !host.is_reached
            }
        };
        let mark = |it: &Description<'_>| {
            let mark = host.shared(it.host, is_here(it.claim));
            mark.filter(|_| !it.claim.is_of_same(self) && owns(it))
        };
        let (found, mark) = others.first(host, mark)?;
        Some(AddressTaken {
            host: host.name.clone(),
            path: host.path.clone(),
            mark: mark.clone(),
            owner: is_here(found.claim).then(|| found.claim.title()),
            is_terminating: found.host.is_terminating,
        })
    }

    /// Returns the hosts that younger objects of the namespace describe too, each with the mark and
    /// the other object.
    pub fn contested<'a>(&'a self, others: &'a [Self]) -> Vec<Contested<'a>> {
        let is_here = |it: &&Self| it.namespace == self.namespace && !it.is_of_same(self);
        let mut found = Vec::new();
        for other in others.iter().filter(is_here).filter(|it| it.age() > self.age()) {
            let described = ClaimIndex::of(std::slice::from_ref(other));
            for host in &self.hosts {
                let same = described.first(host, |it| host.shared(it.host, true));
                found.extend(same.map(|it| Contested { host, mark: it.1.clone(), other }));
            }
        }
        found
    }

    /// Returns the hosts that the object describes twice: path, earlier path, and mark.
    pub fn twice(&self) -> Vec<(&str, &str, String)> {
        let all = ClaimIndex::of(std::slice::from_ref(self));
        let mut found = Vec::new();
        for (idx, host) in self.hosts.iter().enumerate() {
            let before = |it: &Description<'_>| it.position.1 < idx;
            let same = all.first(host, |it| host.shared(it.host, true).filter(|_| before(it)));
            found.extend(same.map(|(it, mark)| (&*host.path, it.host.path.as_str(), mark.clone())));
        }
        found
    }

    /// Returns the hosts that are the same as one that is still terminating: host, terminating
    /// host, and mark.
    pub fn still_terminating(&self) -> Vec<(&str, &str, String)> {
        let all = ClaimIndex::of(std::slice::from_ref(self));
        let mut found = Vec::new();
        for host in self.hosts.iter().filter(|it| !it.is_terminating) {
            let goes = |it: &Description<'_>| it.host.is_terminating;
            let same = all.first(host, |it| host.shared(it.host, true).filter(|_| goes(it)));
            found.extend(same.map(|(it, mark)| (&*host.name, it.host.name.as_str(), mark.clone())));
        }
        found
    }
}

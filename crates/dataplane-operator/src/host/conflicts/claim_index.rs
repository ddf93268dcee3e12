//! An index of claims, so that what else describes a host is a look-up.

use std::collections::BTreeMap;

use operator_core::run_engine::host_key::HostKey;

use crate::host::conflicts::host_claim::{Claim, HostClaim};

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

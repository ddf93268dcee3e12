//! What an operator is allowed to do, as data: the chart's roles are rendered from it.

use crate::keyed::SECRET;

/// Verbs on resources of API groups, as in a Role's rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule {
    /// API groups; the empty one is the core group.
    pub groups: &'static [&'static str],
    /// Plurals, with their subresource where one is meant.
    pub resources: &'static [&'static str],
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// The only names that it holds for; empty means all.
    pub resource_names: &'static [&'static str],
}

impl Rule {
    /// Verbs on all objects of resources of one group.
    pub const fn of(
        groups: &'static [&'static str],
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
    ) -> Self {
        Self { groups, resources, verbs, resource_names: &[] }
    }

    /// The same for the named objects alone.
    #[must_use]
    pub const fn named(mut self, resource_names: &'static [&'static str]) -> Self {
        self.resource_names = resource_names;
        self
    }
}

/// What the election needs in the operator's own namespace.
pub const ELECTION: Rule =
    Rule::of(&["coordination.k8s.io"], &["leases"], &["create", "get", "update"]);

/// What the key for digests of Secrets needs in the operators' own namespace.
pub const DIGEST_KEY: Rule = Rule::of(&[""], &["secrets"], &["create", "get"]).named(&[SECRET]);

/// Whose these definitions are may be asked, in the whole cluster.
pub const fn definitions(names: &'static [&'static str]) -> Rule {
    Rule::of(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &["get"]).named(names)
}

/// What Events need in every watched namespace.
pub const EVENTS: Rule = Rule::of(&["events.k8s.io"], &["events"], &["create", "patch"]);

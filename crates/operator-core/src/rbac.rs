//! The permissions of an operator as data: the chart's roles are rendered from it.

use crate::keyed::SECRET;

/// Verbs on resources of API groups, as in a Role's rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule {
    /// API groups; the empty string is the core group.
    pub groups: &'static [&'static str],
    /// Plurals, with the subresource if one is meant.
    pub resources: &'static [&'static str],
    /// The allowed verbs.
    pub verbs: &'static [&'static str],
    /// The only names that it applies to; empty means all.
    pub resource_names: &'static [&'static str],
}

impl Rule {
    /// Allows verbs on all objects of resources.
    pub const fn of(
        groups: &'static [&'static str],
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
    ) -> Self {
        Self { groups, resources, verbs, resource_names: &[] }
    }

    /// Restricts the rule to the named objects.
    #[must_use]
    pub const fn named(mut self, resource_names: &'static [&'static str]) -> Self {
        self.resource_names = resource_names;
        self
    }
}

/// The verbs on objects that are watched.
pub const READ: &[&str] = &["get", "list", "watch"];
/// The verbs on objects that are watched, applied and deleted.
pub const WRITE: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];

/// What leader election needs in the operator's own namespace.
pub const ELECTION: Rule =
    Rule::of(&["coordination.k8s.io"], &["leases"], &["create", "get", "update"]);

/// What the digest key needs in the operators' own namespace.
pub const DIGEST_KEY: Rule = Rule::of(&[""], &["secrets"], &["create", "get"]).named(&[SECRET]);

/// Allows reading these CRDs, to find out who owns them; cluster-wide.
pub const fn definitions(names: &'static [&'static str]) -> Rule {
    Rule::of(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &["get"]).named(names)
}

/// What publishing Events needs in every watched namespace.
pub const EVENTS: Rule = Rule::of(&["events.k8s.io"], &["events"], &["create", "patch"]);

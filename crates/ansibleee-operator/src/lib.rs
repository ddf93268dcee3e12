//! ansibleee-operator: runs each AnsibleEE as one Job, and records each host's result.

use operator_core::rbac::{EVENTS, READ, Rule, definitions};

pub mod args;
pub mod callback;
pub mod condition_catalog;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod objects;
pub mod operator;
mod reasons;
pub mod run;

/// Permission to read the CRD of the kind that it reconciles.
pub const DEFINITIONS: Rule = definitions(&["openstackansibleees.ansibleee.openstack.org"]);

/// The operator's permissions in every watched namespace.
///
/// It reads neither Secrets nor `ConfigMaps`.
pub const RULES: &[Rule] = &[
    Rule::of(&["ansibleee.openstack.org"], &["openstackansibleees"], READ),
    Rule::of(&["ansibleee.openstack.org"], &["openstackansibleees/status"], &["patch"]),
    // OpenShift requires it for owner references that block the owner's deletion.
    Rule::of(&["ansibleee.openstack.org"], &["openstackansibleees/finalizers"], &["update"]),
    Rule::of(&["batch"], &["jobs"], &["create", "delete", "get", "list", "watch"]),
    Rule::of(&[""], &["pods"], &["list", "watch"]),
    // Nothing but an Event of the Job says why its pod is refused.
    Rule::of(&[""], &["events"], &["list"]),
    EVENTS,
];

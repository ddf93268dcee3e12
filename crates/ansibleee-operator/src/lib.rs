//! ansibleee-operator: one AnsibleEE becomes one Job, and what it did to each host becomes its status.

use operator_core::rbac::{EVENTS, Rule, definitions};

pub mod args;
pub mod callback;
pub mod condition_catalog;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod objects;
pub mod operator;
pub mod run;

/// The definition of the kind that it looks after.
pub const DEFINITIONS: Rule = definitions(&["openstackansibleees.ansibleee.openstack.org"]);

/// What the operator may do in every namespace that it works in.
///
/// It reads neither Secrets nor `ConfigMaps`.
pub const RULES: &[Rule] = &[
    Rule::of(&["ansibleee.openstack.org"], &["openstackansibleees"], &["get", "list", "watch"]),
    Rule::of(&["ansibleee.openstack.org"], &["openstackansibleees/status"], &["patch"]),
    // OpenShift asks for it before an owner's deletion may be blocked.
    Rule::of(&["ansibleee.openstack.org"], &["openstackansibleees/finalizers"], &["update"]),
    Rule::of(&["batch"], &["jobs"], &["create", "delete", "get", "list", "watch"]),
    Rule::of(&[""], &["pods"], &["list", "watch"]),
    EVENTS,
];

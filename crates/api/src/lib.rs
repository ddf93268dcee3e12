//! The kinds that the operators serve, one file per kind: Spec, Status and the rules of the schema.

#![expect(
    unreachable_pub,
    reason = "KubeSchema copies each struct into a function to derive its schema"
)]
#![expect(clippy::duplicated_attributes, reason = "each printer column has a type and a path")]

pub mod ansibleee;
pub mod baremetal;
pub mod cert_manager;
pub mod conditions;
pub mod dataplane;
pub mod definitions;
pub mod facts;
pub mod fault;
pub mod infra;
pub mod metal3;
pub mod names;
pub mod nova;
pub mod plays;
pub mod problem;
pub mod rabbitmq;
pub mod rollout_limits;
pub mod secret;
pub mod shared;
pub mod terminal;
pub mod yaml;

/// The label by which a controller recognizes a definition as this project's.
pub const MANAGED_BY_LABEL: &str = "edpm.openstack.org/managed-by";
/// The value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY: &str = "edpm-operators";

#[cfg(test)]
mod tests;

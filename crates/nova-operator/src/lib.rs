//! nova-operator: nova-compute on hosts that dataplane-operator made ready, and the cells that
//! computes register in.

pub mod admission;
pub mod args;
pub mod audit_limits;
pub mod caches;
pub mod cell;
pub mod cell_inputs;
pub mod compute;
pub mod compute_status;
pub mod condition_catalog;
pub mod controller_names;
pub mod finalizers;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod group;
pub mod images;
pub mod nova;
pub mod operator;
mod reasons;
pub mod requested;
pub mod rollout;
pub mod rollup;
pub mod shared_caches;
#[cfg(test)]
mod test_cloud;
pub mod wiring;

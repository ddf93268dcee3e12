//! nova-operator: nova-compute on hosts that dataplane-operator made ready, and the cells that
//! computes register in.

pub mod admission;
pub mod cell;
pub mod cell_once;
pub mod compute;
pub mod compute_creation;
pub mod concern;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod holds;
pub mod images;
pub mod indexes;
pub mod operator;
pub mod own_condition;
pub mod peers;
pub mod probe;
pub mod reasons;
pub mod release_cache;
pub mod removal;
pub mod rendered_secret;
pub mod rival;
pub mod service_config;
pub mod watched;
pub mod world;

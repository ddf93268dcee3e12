//! nova-operator: nova-compute on hosts that dataplane-operator made ready, and the cells that
//! computes register in.

pub mod admission;
pub mod annotations;
pub mod cell;
pub mod cell_once;
pub mod compute;
pub mod compute_creation;
pub mod conf;
pub mod operator;
pub mod oslo;
pub mod probe;
pub mod reasons;
pub mod release;
pub mod rival;
pub mod watched;
pub mod world;

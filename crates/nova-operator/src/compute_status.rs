//! What the status of a compute says.

pub mod computes_up;
pub mod deployed_files;
pub mod host_cleaned;
pub mod registration;

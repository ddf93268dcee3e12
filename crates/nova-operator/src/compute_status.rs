//! What the status of a compute says, for all who ask.

pub mod computes_up;
pub mod deployed_files;
pub mod host_cleaned;
pub mod registration;

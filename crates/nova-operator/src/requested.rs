//! What the annotations and services of nodes and cells request.

pub mod cell_immutability;
pub mod desired_compute;
pub mod host_discovery;
pub mod mounted_cell;

//! Maps the hosts of a cell in nova, where the cell's annotations give that to the operator: one
//! Job of one pod at a time, which runs `nova-manage`.
//!
//! Whether a host is mapped is only what nova's API reports afterwards, as `HostMapped` of the
//! computes repeats it. The attempt is recorded in the cell's status before its Job is created, and
//! everything follows from that record, the Jobs and the computes.

pub mod build;
pub mod decide;
pub mod failure;
pub mod observe;

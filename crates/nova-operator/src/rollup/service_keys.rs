//! Reports, on a service of type nova, the keys of its data sources that nova-compute would not
//! read.
//!
//! The plays copy every file to the host, but Kolla copies only some of them to where nova-compute
//! reads. A key with another name has no effect, and no error on the host shows that.

pub mod decide;
pub mod observe;
pub mod observed;

#[cfg(test)]
mod tests;

pub use observed::Observed;

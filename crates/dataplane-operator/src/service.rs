//! Services as objects: default services are restored, all are evaluated, and host ports exposed.

pub mod decide;
pub mod event_mapping;
pub mod observe;
pub mod observed;
pub mod status;

#[cfg(test)]
mod tests;

pub use observed::Observed;

//! Leader election among replicas: pure decisions in `election`, requests in `task`.

mod election;
mod elector;
mod leadership;
mod task;
#[cfg(test)]
mod task_tests;
#[cfg(test)]
mod tests;

pub use election::{LeaseView, Seen, Step, Timing, next};
pub use elector::Elector;
pub use leadership::{Leadership, LeadershipWatch, leading};
pub use task::{always, elect};

/// Returns a holder identity for this process: the replica's name and a random suffix per start.
pub fn holder(replica: &str) -> String {
    let mut bytes = [0; 4];
    // Randomness fails only on systems that have none; the replica's name must then suffice.
    let _ = rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes);
    format!("{replica}_{:08x}", u32::from_be_bytes(bytes))
}

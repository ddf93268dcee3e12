//! Who of several replicas may write: pure judgement in `election`, the requests in `task`.

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

/// A name for this process: the replica's name, and a part that no restart repeats.
pub fn holder(replica: &str) -> String {
    let mut bytes = [0; 4];
    // The provider's randomness fails only where the system has none; the name is unique enough
    // within a replica then.
    let _ = rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes);
    format!("{replica}_{:08x}", u32::from_be_bytes(bytes))
}

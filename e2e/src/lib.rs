//! Helpers for the end-to-end tests: a namespace for each test, hosts over ssh, and conditions
//! awaited by watches.
//!
//! The tests need a cluster with the operators installed, selected by `KUBECONFIG`; `cargo xtask
//! test e2e` provides both.

pub mod attachments;
pub mod cells;
pub mod cluster;
pub mod demo;
pub mod describe;
pub mod diagnosis;
pub mod faults;
pub mod guests;
pub mod honest;
pub mod host;
pub mod installation;
pub mod ironic;
pub mod journey;
pub mod kstatus;
pub mod logins;
pub mod metal3;
mod namespace;
pub mod neighbours;
pub mod own_ironic;
pub mod plugin;
mod program;
pub mod transcript;

pub use host::Host;
pub use namespace::{Kind, Namespace, SOON, eventually};
pub use program::run;

use api::conditions::{Condition, ConditionStatus};

/// Whether a condition has this type and reason, and all of these words in its message.
pub fn says(conditions: &[Condition], type_: &str, reason: &str, words: &[&str]) -> bool {
    conditions.iter().any(|it| {
        it.type_ == type_
            && it.reason == reason
            && words.iter().all(|word| it.message.contains(word))
    })
}

/// Whether the condition of this type is `True`.
pub fn holds(conditions: &[Condition], type_: &str) -> bool {
    conditions.iter().any(|it| it.type_ == type_ && it.status == ConditionStatus::True)
}

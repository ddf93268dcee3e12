//! CRD types and everything that is only arithmetic on them: no client, no clock, no environment.

pub mod api;
pub mod conditions;
pub mod engine;
pub mod fault;
pub mod finalizers;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hash;
pub mod host_address;
pub mod keyed;
pub mod names;
pub mod plan;
pub mod plays;
pub mod rbac;
pub mod refusal;
pub mod terminal;
pub mod upstream_hash;
pub mod yaml;

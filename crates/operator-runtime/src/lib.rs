//! All shared I/O: the only holder of a Kubernetes client; knows no kind of this project.

pub mod admin;
pub mod api;
pub mod args;
pub mod backoff;
pub mod cache;
pub mod client;
pub mod clock;
pub mod controller;
pub mod digest_key;
pub mod doors;
pub mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod leader;
pub mod lease;
pub mod metrics;
pub mod owned;
pub mod ownership;
pub mod queue;
pub mod runtime;
pub mod shutdown;
pub mod sources;
pub mod stream;
pub mod telemetry;
pub mod tls;
pub mod unreadable;
pub mod vault;
pub mod web;
pub mod webhook;
pub mod weight;

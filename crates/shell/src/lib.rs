//! All shared I/O: the only holder of a Kubernetes client; knows no kind of this project.

pub mod admin;
pub mod args;
pub mod backoff;
pub mod error;
pub mod lease;
pub mod metrics;
pub mod telemetry;
pub mod tls;
pub mod webhook;

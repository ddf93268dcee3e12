//! I/O shared by all operators: the only crate that holds a Kubernetes client; it knows none of
//! this project's kinds.

pub mod admin;
pub mod allowed_networks;
pub mod answer_memory;
pub mod api;
pub mod args;
pub mod backoff;
pub mod cache;
pub mod cache_registry;
pub mod cert_manager;
pub mod change_filter;
pub mod client;
pub mod clock;
pub mod controller;
pub mod crd_ownership;
pub mod digest_key;
pub mod error;
pub mod event_mapping;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod http_client;
pub mod informers;
pub mod lease;
pub mod managed_fields;
pub mod manager;
pub mod metrics;
pub mod object_size;
pub mod optional_informer;
pub mod places;
pub mod request_times;
pub mod runtime;
pub mod shutdown;
pub mod source_cache;
pub mod ssh_probe;
pub mod telemetry;
pub mod tls;
pub mod tls_stream;
pub mod unreadable;
pub mod webhook;
pub mod workqueue;

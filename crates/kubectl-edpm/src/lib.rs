//! The kubectl plugin `kubectl edpm`: shows the state of hosts outside the cluster, read from the
//! cluster and, on request, from the host itself.
//!
//! Every command reads objects into a [`snapshot::Snapshot`], and a pure function renders text from
//! it. Only [`app`], [`cluster`], [`fetch`], [`follow`], [`live_query`] and [`watch`] call the API
//! server.

pub mod app;
pub mod args;
pub mod clock;
pub mod cluster;
pub mod color;
pub mod complete;
pub mod conditions;
pub mod config_files;
pub mod deployments;
pub mod diff;
pub mod error;
pub mod explain;
pub mod fetch;
pub mod follow;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod host;
pub mod kinds;
pub mod live_query;
pub mod logs;
pub mod object_meta;
pub mod option_names;
pub mod option_sources;
pub mod proxied_client;
pub mod proxy;
pub mod query_run;
pub mod retry;
pub mod run;
pub mod snapshot;
pub mod stage;
pub mod status;
pub mod terminal;
#[cfg(test)]
mod testdata;
pub mod trace;
pub mod watch;
pub mod words;

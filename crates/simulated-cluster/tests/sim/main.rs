//! Control logic against one simulated cluster that all of these tests share.

mod cell_inputs;
mod cell_set_once;
mod compute_options;
mod computes;
mod data_plane;
mod deployment;
mod diagnosis;
mod host_failures;
mod host_keys;
mod isolation;
mod journey;
mod main_job;
mod manifests;
mod membership;
mod metal3;
mod node_inputs;
mod node_set;
mod node_set_networks;
mod service_operator;
mod services;
mod variables;
mod world;

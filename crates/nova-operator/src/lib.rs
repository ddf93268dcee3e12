//! nova-operator: nova-compute on hosts that dataplane-operator made ready, and the cells that
//! computes register in.

pub mod admission;
pub mod audit;
pub mod audit_runs;
pub mod caches;
pub mod cell;
pub mod cell_immutability;
pub mod cell_readings;
pub mod cleanup;
pub mod compute;
pub mod compute_lifecycle;
pub mod computes_up;
pub mod condition_catalog;
pub mod conflicting_service;
pub mod credential_keys;
pub mod discovery_jobs;
pub mod host_cleaned;
pub mod node_part;
pub mod controller_names;
pub mod deployed_files;
pub mod drain;
pub mod event_mapping;
pub mod finalizers;
pub mod foreign_condition;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod group;
pub mod group_computes;
pub mod held_credentials;
pub mod host_layout;
pub mod ignored_annotations;
pub mod images;
pub mod indexes;
mod inherited_annotation;
pub mod nova_fault;
pub mod nova_health;
pub mod nova_identity;
pub mod nova_monitor;
pub mod nova_orders;
pub mod nova_reading;
pub mod operator;
pub mod probe;
pub mod queues;

mod reasons;
pub mod registration;
pub mod release_cache;
pub mod relevant_fields;
pub mod rendered_secret;
pub mod rollout_coordinator;
pub mod service_keys;
pub mod shared_caches;
#[cfg(test)]
mod test_cloud;

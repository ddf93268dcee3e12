//! The deployment of a compute that stays: its node and its cell are awaited, nova's configuration is
//! rendered, and libvirt, nova-compute and the check of its registration are run.

pub mod build;
pub mod config;
pub mod config_inputs;
pub mod decide;
pub mod drain;
pub mod evaluate;
pub mod health;
pub mod host_facts;
pub mod identity;
pub mod inputs;
pub mod libvirt_tls;
pub mod messages;
pub mod migration_key;
pub mod nova_matches;
pub mod observe;
pub mod observed;
pub mod observed_host;
pub mod preconditions;
pub mod repair;
pub mod resolve;
pub mod status;
pub mod warnings;

#[cfg(test)]
mod tests;

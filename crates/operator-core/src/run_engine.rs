//! The run engine: derives runs from services and hosts, and a host's state from the runs' results.
//!
//! Both kinds of parents and both phases share it; it knows no OpenStack service.
//! A *service sequence* is the ordered list of services of one host. An *attempt* is one try of one
//! service on one host at one hash. A *run* is one AnsibleEE that carries attempts of several
//! hosts.

pub mod batches;
pub mod build;
pub mod connection_vars;
pub mod host;
pub mod host_guests;
pub mod host_key;
pub mod host_owner;
pub mod host_progress;
pub mod inventory;
pub mod known_hosts;
pub mod last_run;
pub mod layout;
pub mod limit;
pub mod mounts;
mod next_attempt;
mod next_retry;
pub mod outcome;
pub mod retry;
pub mod rollout;
pub mod run;
pub mod run_gc;
pub mod run_template;
pub mod runs_by_host;
pub mod secret_vars;
pub mod service_sequence;
pub mod sources;
pub mod ssh_secret;
#[cfg(test)]
mod test_runs;

pub use host::{DesiredService, Host};
pub use run::Run;
pub use service_sequence::{SequenceState, ServiceSequence};

/// Returns the message for a host whose inputs differ from those of its last attempt.
///
/// `names` are the inputs that differ from its last deployment, joined by commas.
pub fn changed_text(names: &str) -> String {
    if names.is_empty() {
        return "The inputs are those of the last deployment again, but an attempt with others came \
                in between."
            .to_owned();
    }
    format!("Changed since the last deployment: {names}.")
}

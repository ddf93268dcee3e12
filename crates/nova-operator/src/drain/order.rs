//! What the operator does in nova about one host, and the marker of services that it disabled.

use std::num::NonZeroUsize;

use api::conditions::one_line;

/// The beginning of the reason of each service that this operator disabled.
pub const MARKER: &str = "nova.openstack.org/drain";
/// What follows the marker where a rollout drains the host, without a request of the user.
pub const ROLLOUT: &str = "rollout";
/// How many bytes nova stores of the reason of a disabled service.
const NOVA_LIMIT: usize = 255;

/// How servers leave a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DrainMode {
    /// Users or administrators move or delete them.
    Wait,
    /// The operator migrates them live, at most so many at a time.
    Migrate(NonZeroUsize),
}

/// A drain of a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Drain {
    /// How servers leave.
    pub mode: DrainMode,
    /// Why, in the user's words; empty without a reason.
    pub reason: String,
}

/// What is to be done about a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostOrder {
    /// Disable the service, and have the servers leave.
    Drain(Drain),
    /// Enable the service if this operator disabled it.
    Enable,
    /// The same, once nova has the service as up: what is read after the order was given counts.
    EnableOnceUp,
    /// Remove what is left of a host that was drained and on which nova-compute was stopped.
    Remove(Remove),
}

/// What is known of a host that is removed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Remove {
    /// The UUID of its compute node and its resource provider, or `None` if it was never read.
    pub compute_id: Option<String>,
    /// Whether nova-compute was stopped on the host; else it must be down first.
    pub is_stopped: bool,
}

impl Drain {
    /// Returns the reason with which the service is disabled: the marker and the user's reason.
    pub fn disabled_reason(&self) -> String {
        let reason = one_line(&self.reason, NOVA_LIMIT - MARKER.len() - 2);
        if reason.is_empty() { MARKER.to_owned() } else { format!("{MARKER}: {reason}") }
    }
}

/// Returns whether a service with this reason was disabled by this operator.
pub fn is_ours(disabled_reason: &str) -> bool {
    let rest = disabled_reason.strip_prefix(MARKER);
    rest.is_some_and(|it| it.is_empty() || it.starts_with(": "))
}

/// Returns whether a service with this reason was disabled by a rollout.
pub fn is_of_rollout(disabled_reason: &str) -> bool {
    is_ours(disabled_reason) && disabled_reason.strip_prefix(MARKER) == Some(": rollout")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(reason: &str) -> Drain {
        Drain { mode: DrainMode::Wait, reason: reason.to_owned() }
    }

    #[test]
    fn the_marker_is_recognized_and_nothing_like_it() {
        for reason in ["", "new kernel", "line\nbreak", &"long ".repeat(100)] {
            let written = drain(reason).disabled_reason();
            assert!(is_ours(&written) && written.len() <= NOVA_LIMIT, "{written}");
            assert!(!written.contains('\n'));
        }
        let by_rollout = drain(ROLLOUT).disabled_reason();
        assert!(is_ours(&by_rollout) && is_of_rollout(&by_rollout), "{by_rollout}");
        for other in ["", MARKER, &drain("new kernel").disabled_reason(), ": rollout"] {
            assert!(!is_of_rollout(other), "{other}");
        }
        for other in ["", "broken", "nova.openstack.org/drainage", "x nova.openstack.org/drain"] {
            assert!(!is_ours(other), "{other}");
        }
    }
}

//! What the operator does in nova about one host, and the markers of services that it disabled.

use std::num::NonZeroUsize;

use api::conditions::one_line;
use api::dataplane::DisruptionTarget;
use operator_core::object_key::Key;

use crate::nova::identity::Identity;

/// The beginning of the reason of each service that this operator disabled for a drain.
pub const MARKER: &str = "nova.openstack.org/drain";
/// The beginning of the reason of each service that this operator disabled for a removal. One that a
/// removal left is enabled by the next compute of its host, unless that one is to be drained.
pub const REMOVAL_MARKER: &str = "nova.openstack.org/removal";
/// What follows the marker where a rollout drains the host, without a request of the user.
pub const ROLLOUT: &str = "rollout";
/// How many bytes nova stores of the reason of a disabled service.
const NOVA_LIMIT: usize = 255;
/// What follows the marker of a removal where somebody else had disabled the service before: their reason
/// comes after it.
const BEFORE: &str = "; before:";
/// The beginning of the reason of a service that nova has disabled by itself, and enables by itself while
/// the reason is there (`DISABLE_PREFIX` of its libvirt driver).
const OF_NOVA: &str = "AUTO: ";

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

/// An order about one host, as plans have it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OrderOfHost {
    /// The cell whose credentials are used.
    pub cell: Key,
    /// The host, named as its service is registered.
    pub host: String,
    /// The identity in nova that the host is to have, as far as it is recorded.
    pub meant_for: Identity,
    /// What is to be done.
    pub order: HostOrder,
    /// The deployment of a node set that waits for it: another one is another order, so that nothing
    /// which was found before it came counts for it.
    pub target: Option<DisruptionTarget>,
}

/// What is to be done about a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostOrder {
    /// Disable the service, and have the servers leave.
    Drain(Drain),
    /// The same for a host that is changed when it is empty: it is always read anew, because what was
    /// found before the change was due says nothing of the servers there now.
    DrainForChange(Drain),
    /// The same for a host that is removed when it is empty, with the UUID of its compute node where it
    /// is known.
    DrainForRemoval(Drain, Option<String>),
    /// Enable the service if this operator disabled it.
    Enable,
    /// The same, once nova has the service as up: what is read after the order was given counts.
    EnableOnceUp,
    /// Remove what is left of a host that was drained and on which nova-compute was stopped.
    Remove(Remove),
    /// Free the identity of a host that is empty.
    Identity(IdentityOrder),
    /// Delete what a compute that was let go has left in nova and placement.
    DeleteLeftover(LeftBehind),
    /// Change nothing: whether the host has servers or open migrations is to be known.
    Inspect,
    /// The same for a host that is stopped when it is empty: it is always read anew.
    InspectForRemoval(Stop),
}

/// How far a host is that nova is only asked about before and after it is stopped. What was found
/// before the stop says nothing of the servers there now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stop {
    /// nova-compute is to be stopped.
    Due,
    /// It was stopped, or another owner has the host.
    Done,
    /// It could not be stopped, so it must be down before the host counts as empty.
    Failed,
}

/// What is to be freed of the identity of a host, once the host is empty.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IdentityOrder {
    /// The UUID of its compute node.
    pub compute_id: String,
    /// What is to be free.
    pub goal: IdentityGoal,
    /// The drain that is requested at the same time, or `None` without one.
    pub drain: Option<Drain>,
}

/// What is to be free of the identity of a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IdentityGoal {
    /// Its UUID, so that it can be restored on the host: nothing is changed.
    Restore,
    /// Its name in placement: a provider of that name under another UUID is deleted.
    Name,
}

/// The UUIDs of what a compute has left; nothing else may be deleted.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LeftBehind {
    /// That of its service, or `None` if it was never read.
    pub service_id: Option<String>,
    /// That of its compute node and its resource provider, or `None` if it was never read.
    pub compute_id: Option<String>,
}

/// Which service of a host belongs to what is removed; another one that appears under the host's name
/// is never deleted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OwnService {
    /// The one with this UUID.
    Is(String),
    /// None: nova had no service of the host when its removal began.
    None,
    /// The one that nova has, because its UUID was never read.
    Unread,
}

/// What is known of a host that is removed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Remove {
    /// Its service.
    pub service: OwnService,
    /// The UUID of its compute node and its resource provider, or `None` if it was never read.
    pub compute_id: Option<String>,
    /// Whether nova-compute was stopped on the host; else it must be down first.
    pub is_stopped: bool,
    /// Whether the mapping of the host is known to be gone, or cannot be read; else its agents
    /// are left for now.
    pub is_unmapped: bool,
    /// Whether the agents of neutron were stopped on the host, so that none is to report any more; else
    /// those stay that do.
    pub awaits_agents: bool,
}

impl OrderOfHost {
    /// Returns the leftover that the order is about, of which a host may have several; `None` for an
    /// order about the host itself.
    pub const fn leftover(&self) -> Option<&LeftBehind> {
        if let HostOrder::DeleteLeftover(left) = &self.order { Some(left) } else { None }
    }
}

impl OwnService {
    /// Returns whether the service with this UUID, which nova has under the host's name, is another
    /// one.
    pub fn is_another(&self, id: &str) -> bool {
        match self {
            Self::Is(own) => own != id,
            Self::None => true,
            Self::Unread => false,
        }
    }
}

impl Drain {
    /// Returns the reason that the service is to have, which is disabled with `present` now, or enabled:
    /// somebody else's stays for a drain, and is kept behind the marker for a removal, because the host is
    /// stopped when it is empty and no other client may enable its service meanwhile.
    pub fn reason_over(&self, marker: &str, present: Option<&str>) -> String {
        let other = present.and_then(|it| if is_ours(it) { kept(it) } else { Some(it) });
        match other {
            None => self.disabled_reason(marker),
            Some(other) if marker == REMOVAL_MARKER => {
                one_line(&format!("{REMOVAL_MARKER}{BEFORE} {other}"), NOVA_LIMIT)
            }
            Some(other) => other.to_owned(),
        }
    }

    /// Returns the reason with which the service is disabled: the marker, one of [`MARKER`] and
    /// [`REMOVAL_MARKER`], and the reason of the drain.
    pub fn disabled_reason(&self, marker: &str) -> String {
        let reason = one_line(&self.reason, NOVA_LIMIT - marker.len() - 2);
        if reason.is_empty() { marker.to_owned() } else { format!("{marker}: {reason}") }
    }
}

/// Returns whether a service with this reason was disabled by this operator.
pub fn is_ours(disabled_reason: &str) -> bool {
    let is_behind = |marker| {
        let rest = disabled_reason.strip_prefix(marker);
        rest.is_some_and(|it: &str| it.is_empty() || it.starts_with(": "))
    };
    [MARKER, REMOVAL_MARKER].into_iter().any(is_behind) || kept(disabled_reason).is_some()
}

/// Returns the reason of somebody else that the marker of a removal keeps; empty where they gave none.
pub fn kept(disabled_reason: &str) -> Option<&str> {
    let kept = disabled_reason.strip_prefix(REMOVAL_MARKER)?.strip_prefix(BEFORE)?;
    Some(kept.trim_start())
}

/// Returns whether nova disabled a service with this reason by itself, and may enable it by itself.
pub fn is_of_nova(disabled_reason: &str) -> bool {
    disabled_reason.starts_with(OF_NOVA)
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
    fn the_markers_are_recognized_and_nothing_like_them() {
        for reason in ["", "new kernel", "line\nbreak", &"long ".repeat(100)] {
            for marker in [MARKER, REMOVAL_MARKER] {
                let written = drain(reason).disabled_reason(marker);
                assert!(is_ours(&written) && written.len() <= NOVA_LIMIT, "{written}");
                assert!(written.starts_with(marker), "{written}");
                assert!(!written.contains('\n'));
            }
        }
        let by_rollout = drain(ROLLOUT).disabled_reason(MARKER);
        assert!(is_ours(&by_rollout) && is_of_rollout(&by_rollout), "{by_rollout}");
        for other in ["", MARKER, &drain("new kernel").disabled_reason(MARKER), ": rollout"] {
            assert!(!is_of_rollout(other), "{other}");
        }
        for other in ["", "broken", "nova.openstack.org/drainage", "x nova.openstack.org/removal"] {
            assert!(!is_ours(other), "{other}");
        }
    }

    #[test]
    fn a_removal_keeps_what_somebody_else_said_and_a_drain_leaves_it() {
        let (goes, long) = (drain("it goes"), "long ".repeat(50));
        for other in ["", "broken fan", "AUTO: Connection to libvirt lost: 1", &long] {
            let written = goes.reason_over(REMOVAL_MARKER, Some(other));
            assert!(is_ours(&written) && written.starts_with(REMOVAL_MARKER), "{written}");
            assert!(written.len() <= NOVA_LIMIT, "{written}");
            let kept = kept(&written).unwrap();
            assert!(kept == other || (other == long && kept.starts_with("long long")), "{kept}");
            assert_eq!(goes.reason_over(REMOVAL_MARKER, Some(&written)), written, "it stays");
            // A drain in its place has the reason that was there before.
            assert_eq!(drain("kernel").reason_over(MARKER, Some(&written)), kept);
            assert_eq!(drain("kernel").reason_over(MARKER, Some(other)), other);
        }
        for present in [None, Some(MARKER), Some(REMOVAL_MARKER)] {
            let written = goes.reason_over(REMOVAL_MARKER, present);
            assert_eq!(written, "nova.openstack.org/removal: it goes");
        }
        assert!(is_of_nova("AUTO: Connection to libvirt lost: 1") && !is_of_nova("AUTOMATON"));
    }
}

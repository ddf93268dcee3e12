//! What the flow of a set leaves to Ironic or Metal3. Everything else is the same for both: see
//! [`crate::decide`].

use std::time::Duration;

use api::baremetal::HostStatus;
use api::conditions::{ConditionDraft, Severity};
use jiff::Timestamp;
use operator_core::plan::Step;

use crate::hosts::{Evaluated, Host, Reason};
use crate::observe::Observed;

/// Who provisions the machines of a set.
pub(crate) trait Provisioner: Sized {
    /// A machine, as observed.
    type Machine: 'static;
    /// The next step for a machine.
    type Next;

    /// Returns all hosts with their machines and the next step for each.
    fn evaluate(seen: &Observed, now: Timestamp) -> Evaluated<'_, Self>;

    /// Returns whether all machines are given back, or no longer can be.
    fn is_over(seen: &Observed, hosts: &[Host<'_, Self>]) -> bool;

    /// Returns the writes to other objects than the set. Without any, machines advance by requests,
    /// which were sent before.
    fn writes(_seen: &Observed, _hosts: &[Host<'_, Self>]) -> Vec<Step> {
        Vec::new()
    }

    /// Returns the requeue interval.
    fn pace(seen: &Observed, hosts: &[Host<'_, Self>], now: Timestamp) -> Duration;

    /// Returns the condition on the provisioner itself.
    fn server(seen: &Observed) -> ConditionDraft;

    /// Returns the name of a machine for users.
    fn title(machine: &Self::Machine) -> String;

    /// Returns whether a machine that needs no further step has the present config drive; `None`
    /// for any other machine.
    fn is_current(next: &Self::Next) -> Option<bool>;

    /// Returns what keeps a host with that machine from being ready, with at most `words` bytes of
    /// the provisioner's text; `None` if nothing does.
    fn matter(
        seen: &Observed,
        host: &Host<'_, Self>,
        at: (&Self::Machine, &Self::Next),
        words: usize,
    ) -> Option<(Severity, Reason)>;

    /// Returns the status entry of a host with that machine, made from its `blank` one. Without a
    /// next step, the machine waits.
    fn entry(
        seen: &Observed,
        host: &Host<'_, Self>,
        at: (&Self::Machine, Option<&Self::Next>),
        blank: HostStatus,
        words: usize,
    ) -> HostStatus;
}

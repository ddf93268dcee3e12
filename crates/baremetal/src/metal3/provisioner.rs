//! Metal3 as the provisioner of a set: what the shared flow asks of it.

use std::time::Duration;

use api::baremetal::{HostStatus, UNASSIGNED};
use api::conditions::{ConditionDraft, Severity};
use api::metal3::BareMetalHost;
use jiff::Timestamp;
use operator_core::plan::Step;

use super::bare_metal_host::title;
use super::hosts::{Host, evaluate};
use super::next::Next;
use super::{BareMetalHosts, status, writes};
use crate::hosts::Evaluated;
use crate::observe::Observed;
use crate::provisioner::Provisioner;

/// Requeue interval. Machines and Secrets are watched; this notices CRDs, whose arrival no watch
/// reports.
const SELDOM: Duration = Duration::from_mins(1);

impl Provisioner for BareMetalHosts {
    type Machine = BareMetalHost;
    type Next = Next;

    fn evaluate(seen: &Observed, _: Timestamp) -> Evaluated<'_, BareMetalHost, Next> {
        evaluate(seen)
    }

    // Without the CRD there are neither machines nor their Secrets.
    fn is_over(seen: &Observed, hosts: &[Host<'_>]) -> bool {
        let is_done = hosts.is_empty() && seen.metal3.secrets.is_empty();
        (seen.lacks_metal3() || is_done) && !has_anothers(seen)
    }

    fn writes(seen: &Observed, hosts: &[Host<'_>]) -> Vec<Step> {
        writes::steps(seen, hosts)
    }

    fn pace(_: &Observed, _: &[Host<'_>], _: Timestamp) -> Duration {
        SELDOM
    }

    fn server(seen: &Observed) -> ConditionDraft {
        status::server(seen)
    }

    fn title(machine: &BareMetalHost) -> String {
        title(machine)
    }

    fn is_current(next: &Next) -> Option<bool> {
        if let Next::Done { is_current } = next { Some(*is_current) } else { None }
    }

    fn matter(
        seen: &Observed,
        host: &Host<'_>,
        at: (&BareMetalHost, &Next),
        _: usize,
    ) -> Option<(Severity, &'static str, String)> {
        status::matter(seen, host, at)
    }

    fn entry(
        seen: &Observed,
        host: &Host<'_>,
        at: (&BareMetalHost, Option<&Next>),
        blank: HostStatus,
        _: usize,
    ) -> HostStatus {
        status::entry(seen, host, at, blank)
    }
}

/// Returns whether the status has machines of another provisioner, which must give them back.
/// Metal3's have a namespace in their reference.
fn has_anothers(seen: &Observed) -> bool {
    let reported = seen.set.status.iter().flat_map(|it| it.baremetal_hosts.values());
    reported.into_iter().any(|it| it.bmh_ref != UNASSIGNED && !it.bmh_ref.contains('/'))
}

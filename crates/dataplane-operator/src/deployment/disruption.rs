//! The hosts of a node set that a deployment may disturb, as other operators report.
//!
//! Why a host has to wait is not known here: a report lists the hosts that may be disturbed.

use std::collections::{BTreeMap, BTreeSet};

use api::dataplane::HostReadiness;
use kube::ResourceExt;
use operator_core::run_engine::rollout::named;

use crate::deployment::hosts::may_serve;
use crate::deployment::node_set_part::{Hold, NodeSetPart};
use crate::deployment::observed::Observed;

/// Returns whether hosts of a node set that are in service wait until they may be disturbed.
pub fn is_restricted(seen: &Observed, node_set: &str) -> bool {
    restricting(seen, node_set).next().is_some()
}

/// Returns the name of a report for which hosts of one of the node sets wait.
pub fn first_report(seen: &Observed, parts: &[NodeSetPart]) -> Option<String> {
    parts.iter().find_map(|it| restricting(seen, &it.name).next()).map(|it| it.0.name_any())
}

/// Returns whether each report lets this deployment disturb a host; true without such a report.
pub fn is_allowed(seen: &Observed, node_set: &str, host: &str) -> bool {
    let uid = seen.deployment.uid();
    restricting(seen, node_set).all(|(_, listed)| listed.get(host) == uid.as_ref())
}

/// Returns whether a report lists a host, for this deployment or another one: then it counts as
/// unavailable.
pub fn is_listed(seen: &Observed, node_set: &str, host: &str) -> bool {
    restricting(seen, node_set).any(|(_, listed)| listed.contains_key(host))
}

/// Returns the hosts of a node set that may serve and that each report lets this deployment
/// disturb; none without such a report.
pub fn allowed<'a>(seen: &Observed, part: &'a NodeSetPart) -> BTreeSet<&'a str> {
    if !is_restricted(seen, &part.name) {
        return BTreeSet::new();
    }
    let names = part.node_set.iter().flat_map(|it| may_serve(it)).map(|it| it.name.as_str());
    names.filter(|it| is_allowed(seen, &part.name, it)).collect()
}

/// Returns the reports about a node set that list which of its hosts may be disturbed.
fn restricting<'a>(
    seen: &'a Observed,
    node_set: &str,
) -> impl Iterator<Item = (&'a HostReadiness, &'a BTreeMap<String, String>)> {
    let reports = seen.readiness.get(node_set).into_iter().flatten();
    reports.filter_map(|it| Some((&**it, it.spec.disruption_allowed.as_ref()?)))
}

/// Returns whether nothing is at work, and hosts wait until they may be disturbed.
pub fn is_all_that_is_left(parts: &[NodeSetPart]) -> bool {
    let hosts = || parts.iter().flat_map(|it| &it.hosts);
    hosts().any(|it| it.blocked == Some(Hold::Disruption))
        && !hosts().any(|it| it.sequence.is_due())
}

/// Returns the message about hosts that wait until they may be disturbed; `None` without any.
pub fn waiting(seen: &Observed, parts: &[NodeSetPart]) -> Option<String> {
    let texts: Vec<String> = parts.iter().flat_map(|it| of_part(seen, it)).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

fn of_part(seen: &Observed, part: &NodeSetPart) -> Vec<String> {
    let held = |hold: Hold| {
        let hosts = part.hosts.iter().filter(move |it| it.blocked == Some(hold));
        hosts.map(|it| it.name.as_str()).collect::<Vec<_>>()
    };
    let (waiting, later) = (held(Hold::Disruption), held(Hold::ServiceForAll));
    let set = format!("OpenStackDataPlaneNodeSet {}", part.name);
    let n_all = part.hosts.len();
    let count = |held: &[&str]| format!("{} of {n_all} hosts of {set} wait", held.len());
    let text = format!("{} until they may be disturbed: {}.", count(&waiting), named(&waiting));
    let waits = (!waiting.is_empty()).then_some(text);
    let text = format!(
        "{} until the other node sets have come to what is for all of them ({}): {}.",
        count(&later),
        part.joined.join(", "),
        named(&later)
    );
    let arrives = (!later.is_empty()).then_some(text);
    let cause = lacking(seen, part, &waiting);
    waits.into_iter().chain(cause).chain(arrives).collect()
}

/// Returns the text that names the first report that does not list one of the hosts yet.
fn lacking(seen: &Observed, part: &NodeSetPart, hosts: &[&str]) -> Option<String> {
    let uid = seen.deployment.uid();
    let lacks = |listed: &BTreeMap<String, String>| {
        hosts.iter().any(|host| listed.get(*host) != uid.as_ref())
    };
    let (report, _) = restricting(seen, &part.name).find(|it| lacks(it.1))?;
    Some(format!(
        "OpenStackDataPlaneHostReadiness {report} ({type_}) does not list them yet; see the \
         conditions of its operator: kubectl describe -n {namespace} \
         openstackdataplanenodeset/{set}. Where that operator does not run any more: kubectl \
         delete -n {namespace} openstackdataplanehostreadiness/{report}",
        report = report.name_any(),
        type_ = report.spec.condition_type,
        namespace = seen.namespace,
        set = part.name,
    ))
}

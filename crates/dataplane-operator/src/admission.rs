//! The admission webhooks on nodes and node sets, which warn when another object describes a host.
//!
//! They deny nothing: the API server rejects only what no operator can parse.
//! The controllers evaluate with the same functions, so nothing depends on a webhook. The webhooks
//! answer from caches, on every replica, and never query the API server.

use api::conditions;
use api::dataplane::{Node, NodeSet};
use kube::core::DynamicObject;
use operator_runtime::webhook::{AdmissionDecision, Request, Webhook};

use crate::host::conflicts::{Claim, ClaimCaches, ClaimIndex, Contested};

/// Path of the webhook on nodes.
pub const NODE: &str = "/warn-dataplane-openstack-org-v1beta1-openstackdataplanenode";
/// The match condition of nodes that describe a host themselves: what the entry of a node set says is
/// judged there.
pub const OWN_DESCRIPTION: &str = "!has(object.spec) || !has(object.spec.nodeSet)";
/// Path of the webhook on node sets.
pub const NODE_SET: &str = "/warn-dataplane-openstack-org-v1beta1-openstackdataplanenodeset";

/// The maximum number of hosts in the warnings, and of characters for each host.
///
/// The API server shows 4,096 characters of all warnings together.
const WARNED: usize = 8;
const WARNED_TEXT: usize = 450;

/// The caches from which the webhooks answer; empty until they have synced.
pub type AdmissionCaches = operator_runtime::webhook::AdmissionCache<ClaimCaches>;

/// Returns the handler of both webhooks.
pub fn webhook(known: &AdmissionCaches) -> Webhook {
    let (of_nodes, of_node_sets) = (known.clone(), known.clone());
    Webhook::new()
        .validate(NODE, move |it| validate(it, &of_nodes, of_node))
        .validate(NODE_SET, move |it| validate(it, &of_node_sets, of_node_set))
}

/// Returns `None` when the object cannot be parsed; the controllers report that.
fn of_node(object: &DynamicObject, known: &ClaimCaches) -> Option<Claim> {
    object.clone().try_parse::<Node>().ok().map(|it| known.of_node(&it))
}

fn of_node_set(object: &DynamicObject, known: &ClaimCaches) -> Option<Claim> {
    object.clone().try_parse::<NodeSet>().ok().map(|it| known.of_node_set(&it))
}

/// Allows the request, and warns of each new or changed host that another object describes too.
fn validate(
    request: &Request,
    known: &AdmissionCaches,
    read: fn(&DynamicObject, &ClaimCaches) -> Option<Claim>,
) -> AdmissionDecision {
    let Some(known) = known.now() else { return AdmissionDecision::allow() };
    let read = |it: &Option<DynamicObject>| read(it.as_ref()?, &known);
    let Some(new) = read(&request.object) else { return AdmissionDecision::allow() };
    let claim = new.changed_since(read(&request.old_object).as_ref());
    let others = known.overlapping(std::slice::from_ref(&claim), None);
    warnings(&claim, &others).into_iter().fold(AdmissionDecision::allow(), AdmissionDecision::warn)
}

fn warnings(claim: &Claim, others: &[Claim]) -> Vec<String> {
    let object = claim.title();
    let taken = claim.taken(&ClaimIndex::of(others));
    let contested = claim.contested(others);
    let contested = contested.iter();
    let contested =
        contested.map(|it| format!("{}: {}", it.host.path, not_for_the_younger(it, &object)));
    let taken = taken.iter().map(|it| format!("{}: {}", it.path, it.message(&object)));
    let all: Vec<String> = taken.chain(contested).collect();
    let text = |it: &String| conditions::truncated(it, WARNED_TEXT);
    let mut reported: Vec<String> = all.iter().take(WARNED).map(text).collect();
    if all.len() > WARNED {
        reported.push(format!("{} more hosts are described by others too", all.len() - WARNED));
    }
    reported
}

/// Returns the warning for a host that a younger object describes too.
fn not_for_the_younger(contested: &Contested<'_>, object: &str) -> String {
    let Contested { host, mark, other } = contested;
    format!(
        "Host {} of {object} is described by {} too, which is younger and has the same {mark}: \
         nothing more is deployed for that one. Take the host out of one of the two.",
        host.name,
        other.title()
    )
}

#[cfg(test)]
mod tests;

//! The admission webhooks on nodes and node sets: they warn where another object has a host, and the
//! server refuses only what no operator can read.
//!
//! The controllers judge by the same function, so nothing hangs on a webhook. It answers from caches,
//! on every replica, and never asks the API server.

use api::conditions;
use api::dataplane::{Node, NodeSet};
use kube::core::DynamicObject;
use operator_runtime::webhook::{AdmissionDecision, Request, Webhook};

use crate::host_conflicts::{Claim, ClaimCaches, Contested};

/// Path of the webhook on nodes.
pub const NODE: &str = "/warn-dataplane-openstack-org-v1beta1-openstackdataplanenode";
/// Path of the webhook on node sets.
pub const NODE_SET: &str = "/warn-dataplane-openstack-org-v1beta1-openstackdataplanenodeset";

/// How many hosts are told of, and how many characters of each: the API server shows 4,096 of all
/// warnings together.
const WARNED: usize = 8;
const WARNED_TEXT: usize = 450;

/// The caches that the webhooks answer from.
pub type Known = operator_runtime::webhook::AdmissionCache<ClaimCaches>;

/// Both webhooks.
pub fn webhook(known: &Known) -> Webhook {
    let (of_nodes, of_node_sets) = (known.clone(), known.clone());
    Webhook::new()
        .validate(NODE, move |it| judged(it, &of_nodes, of_node))
        .validate(NODE_SET, move |it| judged(it, &of_node_sets, of_node_set))
}

/// What cannot be read describes no host here; the controllers tell of it.
fn of_node(object: &DynamicObject, known: &ClaimCaches) -> Option<Claim> {
    object.clone().try_parse::<Node>().ok().map(|it| known.of_node(&it))
}

fn of_node_set(object: &DynamicObject, _: &ClaimCaches) -> Option<Claim> {
    object.clone().try_parse::<NodeSet>().ok().map(|it| Claim::of_node_set(&it))
}

/// Accepts, with a warning for each host that is new in the object, or changed, and is another's too.
fn judged(
    request: &Request,
    known: &Known,
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
    let taken = claim.taken(others);
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

/// Of a host that a younger object describes too.
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

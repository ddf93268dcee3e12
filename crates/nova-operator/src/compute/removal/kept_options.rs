//! The options that a user wrote into a compute which goes: they are kept in a Secret of its node.

use std::collections::BTreeMap;

use api::nova::ExternalCompute;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use operator_core::hash;
use operator_core::plan::{EventDraft, Plan, Step, Target, Write};
use serde_json::json;

use crate::compute::removal::resolve::Resolved;
use crate::nova::drain::order::OrderOfHost;

/// The key of `spec.customServiceConfig` in the Secret, beside the files of
/// `spec.defaultConfigOverwrite`.
const OPTIONS: &str = "customServiceConfig";

/// Bytes of texts that the Secret has room for: the API server takes none above 1 MiB.
const ROOM: usize = 900 * 1024;

/// Adds to a plan that lets a compute go the Secret with what its user wrote, and an Event on the node
/// that names it.
///
/// A compute that is made again for the node begins with the defaults. Where the node goes too, its
/// user wants nothing of it any more.
pub fn keep(resolved: &Resolved<'_>, plan: &mut Plan<OrderOfHost>) {
    let compute = resolved.compute;
    let lets_go = |it: &Step| matches!(it.write, Write::RemoveFinalizer { .. });
    let Some(at) = plan.steps.iter().position(lets_go) else { return };
    let node = resolved.own_node.filter(|it| !it.is_leaving());
    let (Some(node), false) = (node, resolved.seen.namespace_goes) else { return };
    let written = written(compute);
    if written.is_empty() {
        return;
    }
    let kept = fitting(&written);
    let node = Target::of(node);
    let name = secret_name(compute);
    let n_lost = written.len() - kept.len();
    plan.events.push((node.clone(), event(compute, &name, n_lost)));
    let data: BTreeMap<String, ByteString> =
        kept.into_iter().map(|(key, text)| (key, ByteString(text.as_bytes().to_vec()))).collect();
    // It goes with the node.
    let owner = json!({
        "apiVersion": node.kind.api_version(),
        "kind": node.kind.kind,
        "name": node.name,
        "uid": node.uid,
    });
    let object =
        json!({ "metadata": { "ownerReferences": [owner] }, "type": "Opaque", "data": data });
    let target = Target::named::<Secret>(node.namespace, name);
    plan.steps.insert(at, Step::apply(target, object, "what its user wrote would be lost"));
}

/// Returns what the user wrote, each text with its name, the options first.
fn written(compute: &ExternalCompute) -> Vec<(&str, &str)> {
    let spec = &compute.spec;
    let options = spec.custom_service_config.as_deref().map(|it| (OPTIONS, it));
    let files = spec.default_config_overwrite.iter().map(|(name, it)| (name.as_str(), it.as_str()));
    options.into_iter().chain(files).filter(|(_, it)| !it.trim().is_empty()).collect()
}

/// Returns the texts that a Secret takes, by key. One that the API server refuses would hold the compute
/// for ever, so names get the letters of a key, and what has no room is left out.
fn fitting<'a>(written: &[(&str, &'a str)]) -> BTreeMap<String, &'a str> {
    let mut room = ROOM;
    let mut kept = BTreeMap::new();
    for (name, text) in written {
        if let Some(left) = room.checked_sub(text.len()) {
            room = left;
            kept.entry(key(name)).or_insert(*text);
        }
    }
    kept
}

/// Returns the key of a Secret for a name of a file, which the definition does not bound.
fn key(name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    let plain = name.trim_start_matches('.').chars().take(250);
    let plain: String = plain.map(|it| if is_plain(it) { it } else { '-' }).collect();
    if plain.is_empty() { "file".to_owned() } else { plain }
}

/// Returns a name that no Secret of a user and no earlier compute of the node has.
fn secret_name(compute: &ExternalCompute) -> String {
    format!("{}-options-{}", compute.name_any(), hash::short(&compute.uid().unwrap_or_default()))
}

fn event(compute: &ExternalCompute, secret: &str, n_lost: usize) -> EventDraft {
    let lost = match n_lost {
        0 => String::new(),
        _ => format!(
            ", but for {n_lost} of the files of defaultConfigOverwrite, which it cannot hold"
        ),
    };
    let note = format!(
        "NovaExternalCompute {} was deleted with the options in its spec. They are kept in Secret \
         {secret}{lost}: kubectl get -n {} secret {secret} -o \
         go-template='{{{{range .data}}}}{{{{base64decode .}}}}{{{{end}}}}'",
        compute.name_any(),
        compute.namespace().unwrap_or_default()
    );
    EventDraft { warning: true, reason: "OptionsKept".to_owned(), note }
}

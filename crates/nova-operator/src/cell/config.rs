//! The Secret with the files that all computes of a cell share, for deployments by node sets.

use std::collections::BTreeMap;

use api::conditions::ConditionDraft;
use api::nova::Cell;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use nova_config::conditions::SERVICE_CONFIG_READY;
use nova_config::conf::{self, CellView, Source};
use nova_config::rendered_secret::{CONFIG_HASH, cell_secret_name};
use operator_core::keyed::Digest;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::build::owner;
use operator_core::upstream_hash;
use serde_json::json;

use crate::cell::observed::{Observed, Rendered};
use crate::compute::rendered_secret::{is_of_others, not_ours};
use crate::reasons;

const OPAQUE: &str = "Opaque";

/// The result of rendering a cell's files.
pub struct Config {
    /// The condition on the cell.
    pub condition: ConditionDraft,
    /// The hash of the Secret's content, or `None` when it is not rendered.
    pub hash: Option<Digest>,
    /// The step that writes the Secret, or `None` when it is up to date.
    pub step: Option<Step>,
    /// The step that renews only the Secret's digest, when that was computed with an older key.
    pub renewing: Option<Step>,
}

impl Config {
    fn without(condition: ConditionDraft) -> Self {
        Self { condition, hash: None, step: None, renewing: None }
    }
}

/// Whether a cell is a cell0, which never has computes: the same rule rejects them.
pub fn is_cell_zero(cell: &Cell) -> bool {
    cell.name_any().ends_with("cell0") || cell.spec.cell_name == "cell0"
}

/// Renders the files of a cell; `view` is `None` when its inputs are incomplete.
pub fn render(seen: &Observed, view: Option<&CellView>) -> Config {
    let name = cell_secret_name(&seen.cell.name_any());
    if is_cell_zero(&seen.cell) {
        let text = "cell0 never has computes, so there is nothing to give them.";
        return Config::without(reasons::cell::NOT_NEEDED.condition(SERVICE_CONFIG_READY, text));
    }
    let Some(view) = view else {
        let text = "The files are rendered once InputReady holds.";
        return Config::without(reasons::NOT_RENDERED.condition(SERVICE_CONFIG_READY, text));
    };
    let cell = &*seen.cell;
    let is_others =
        |it: &Rendered| is_of_others(cell, it.controller.as_deref(), &it.managed_fields);
    if seen.rendered.as_ref().is_some_and(is_others) {
        return Config::without(not_ours(cell, &name));
    }
    let (hash, step, renewing) = rendered(seen, view, name.clone());
    let text = format!("The files that computes of the cell share are in Secret {name}.");
    let draft = reasons::cell::RENDERED.condition(SERVICE_CONFIG_READY, text);
    Config { condition: draft, hash: Some(hash), step, renewing }
}

/// Returns the hash of the files, the step that writes them if they differ, and the step that only
/// renews their digest.
fn rendered(
    seen: &Observed,
    view: &CellView,
    name: String,
) -> (Digest, Option<Step>, Option<Step>) {
    let cell = &seen.cell;
    let namespace = cell.namespace().unwrap_or_default();
    let source = Source::new("NovaCell", &namespace, &cell.name_any());
    let data: BTreeMap<String, ByteString> = conf::cell_files(view, &source)
        .into_iter()
        .map(|(name, file)| (name, ByteString(file.content.into_bytes())))
        .collect();
    let hash = upstream_hash::of_secret_by(&seen.keys, &data, OPAQUE);
    let intact = seen.rendered.as_ref().filter(|it| {
        hash.is_certainly(&it.hash)
            && it.managed_fields.has([CONFIG_HASH], data.keys().map(String::as_str))
    });
    if intact.is_some_and(|it| !hash.renews(&it.hash)) {
        return (hash, None, None);
    }
    let object = json!({
        "metadata": {
            "annotations": { CONFIG_HASH: hash.text() },
            "ownerReferences": [owner(&Target::of::<Cell>(cell))],
        },
        "type": OPAQUE,
        "data": data,
    });
    let target = Target::named::<Secret>(namespace, name);
    if intact.is_some() {
        let step = Step::apply(target, object, "the digest of its files is by another key");
        return (hash, None, Some(step));
    }
    let step = Step::apply(target, object, "the files differ from what they are made from");
    (hash, Some(step), None)
}

//! The Secret with nova's files, and its condition.

use std::collections::BTreeMap;

use api::conditions::{ConditionDraft, append_more_in_parentheses};
use api::nova::{ConfigFile, ExternalCompute};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt};
use nova_config::conditions::SERVICE_CONFIG_READY;
use nova_config::conf::{self, Source, Text, further_fault};
use nova_config::oslo;
use nova_config::rendered_secret::{CONFIG_FILES, CONFIG_HASH, CONFIG_INPUTS, compute_secret_name};
use operator_core::hash;
use operator_core::keyed::{Digest, Inputs, changed_inputs};
use operator_core::plan::{Step, Target};
use operator_core::run_engine::build::owner;
use serde_json::json;

use crate::compute::deploy::config_inputs::Complete;
use crate::compute::deploy::observed::{Observed, Rendered};
use crate::compute::rendered_secret::{is_of_others, not_ours};
use crate::compute_status::deployed_files;
use crate::reasons;

/// Raised when the same inputs give other files: they are rendered anew for the next attempt, and nothing
/// runs by it.
const RENDERER: u32 = 3;

/// Returns whether oslo.config can parse what users wrote.
pub fn condition(compute: &ExternalCompute, complete: Option<&Complete>) -> ConditionDraft {
    let custom = compute.spec.custom_service_config.as_deref().unwrap_or_default();
    let faults = oslo::faults(custom);
    if let Some(first) = faults.first.first() {
        let n_more = faults.first.len() - 1 + faults.n_more;
        let first = append_more_in_parentheses(first.message.clone(), n_more);
        let text = format!("{first}. Nothing is deployed until it is corrected.");
        return reasons::compute::INVALID_CONFIG.condition(SERVICE_CONFIG_READY, text);
    }
    let mut further = compute.spec.default_config_overwrite.keys();
    if let Some((name, why)) = further.find_map(|it| Some((it, further_fault(it)?))) {
        let text = format!(
            "spec.defaultConfigOverwrite: file {name}: {why}. Nothing is deployed until it is \
             corrected."
        );
        return reasons::compute::INVALID_CONFIG.condition(SERVICE_CONFIG_READY, text);
    }
    let Some(complete) = complete else {
        let text = "The files are rendered once every input is there.";
        return reasons::NOT_RENDERED.condition(SERVICE_CONFIG_READY, text);
    };
    if let Some(default) = &complete.default_config
        && let Some(first) = oslo::parse(&default.text).1.first()
    {
        let text = format!(
            "ConfigMap {}, line {}, column {}: {}. Nothing is deployed until it is corrected.",
            default.name,
            first.line,
            first.column,
            first.reason.message()
        );
        return reasons::compute::INVALID_DEFAULT_CONFIG.condition(SERVICE_CONFIG_READY, text);
    }
    let text = format!("The files are in Secret {}.", compute_secret_name(&compute.name_any()));
    reasons::compute::RENDERED.condition(SERVICE_CONFIG_READY, text)
}

/// Returns the condition for a Secret of this name that the operator did not create; else `None`.
pub fn of_others(seen: &Observed) -> Option<ConditionDraft> {
    let found = seen.rendered.as_ref()?;
    let compute = &*seen.compute;
    let name = compute_secret_name(&compute.name_any());
    is_of_others(compute, found.controller.as_deref(), &found.managed_fields)
        .then(|| not_ours(compute, &name))
}

/// The files of a compute, as they are in the Secret or as `step` writes them.
pub struct Files {
    /// The list of the files.
    pub listed: Vec<ConfigFile>,
    /// The step that writes the files, or `None` when they are up to date.
    pub step: Option<Step>,
    /// The renewed digests to write with the next status, when the Secret has digests of an older
    /// key.
    pub renewing: Option<Renewing>,
    /// The names of the files that differ by now from those that were deployed, as far as these are
    /// recorded.
    pub changed: Vec<String>,
}

impl Files {
    /// Returns the files that are listed, without anything to do.
    pub const fn unchanged(listed: Vec<ConfigFile>) -> Self {
        Self { listed, step: None, renewing: None, changed: Vec::new() }
    }
}

/// The digests to renew.
pub struct Renewing {
    /// File name → digest.
    pub digests: Inputs,
    /// The step that writes the Secret.
    pub step: Step,
}

/// What the files of a compute are for.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// The digest of the inputs of nova-compute.
    pub inputs: &'a Digest,
    /// Whether an attempt of nova-compute begins, which brings them to the host.
    pub is_attempt: bool,
}

/// Returns the files of a compute, and the step that writes them when they are outdated.
///
/// While the inputs stay as they are, files that another release would render otherwise are kept until
/// the next attempt: they are what was deployed.
pub fn files(seen: &Observed, complete: &Complete, inputs: &Inputs, purpose: Purpose<'_>) -> Files {
    let says_how_to_stop = conf::says_how_to_stop(seen.release.release());
    let digest = Digest::combined(inputs.values(), |view| {
        hash::digest(&(RENDERER, says_how_to_stop, view.all(inputs)))
    });
    let deployed = seen.compute.status.as_ref().map(|it| it.deployed_files.clone());
    let deployed = deployed.filter(|it| !it.is_empty());
    let intact = seen.rendered.as_ref().and_then(|it| Some((it, intact(it)?)));
    let is_present = |it: &Rendered| !it.inputs.is_empty() && digest.is_certainly(&it.hash);
    if let Some((secret, listed)) = &intact {
        let is_as_deployed = || deployed.iter().all(|it| *it == deployed_files::digests(listed));
        if is_present(secret) && !digest.renews(&secret.hash) && is_as_deployed() {
            return Files::unchanged(listed.clone());
        }
    }
    let files = rendered(seen, complete);
    let digest_of = |file: &conf::File| seen.keys.of_bytes(file.content.as_bytes());
    let digests: Inputs = files.iter().map(|(name, it)| (name.clone(), digest_of(it))).collect();
    let listed: Vec<ConfigFile> = files
        .iter()
        .map(|(name, file)| ConfigFile {
            name: name.clone(),
            source: file.source.to_string(),
            hash: digests[name].text(),
        })
        .collect();
    let changed = deployed.map(|it| changed_inputs(&it, &digests)).unwrap_or_default();
    let step = step(seen, &files, &listed, (&digest, purpose.inputs));
    let is_kept = |secret: &Rendered, listed: &[ConfigFile]| {
        let is_for_them = purpose.inputs.is_certainly(&secret.inputs)
            || (secret.inputs.is_empty()
                && deployed_files::are_of_last_attempt(&seen.compute, listed));
        let differs = || !changed_inputs(&deployed_files::digests(listed), &digests).is_empty();
        !purpose.is_attempt && is_for_them && differs()
    };
    match intact {
        Some((secret, listed)) if is_present(secret) && digest.renews(&secret.hash) => Files {
            renewing: Some(Renewing { digests, step }),
            changed,
            ..Files::unchanged(listed)
        },
        Some((secret, listed)) if is_present(secret) || is_kept(secret, &listed) => {
            Files { changed, ..Files::unchanged(listed) }
        }
        _ => Files { step: Some(step), changed, ..Files::unchanged(listed) },
    }
}

fn step(
    seen: &Observed,
    files: &BTreeMap<String, conf::File>,
    listed: &[ConfigFile],
    (digest, inputs): (&Digest, &Digest),
) -> Step {
    let encoded = |it: &conf::File| ByteString(it.content.clone().into_bytes());
    // Not `stringData`: keys removed from it would stay in the Secret.
    let data: BTreeMap<&String, ByteString> =
        files.iter().map(|(name, file)| (name, encoded(file))).collect();
    let object = json!({
        "metadata": {
            "annotations": {
                CONFIG_HASH: digest.text(),
                CONFIG_INPUTS: inputs.text(),
                CONFIG_FILES: serde_json::to_string(listed).unwrap_or_default(),
            },
            "ownerReferences": [owner(&Target::of(&*seen.compute))],
        },
        "type": "Opaque",
        "data": data,
    });
    let name = compute_secret_name(&seen.compute.name_any());
    let target = Target::named::<Secret>(seen.compute.namespace().unwrap_or_default(), name);
    Step::apply(target, object, "the files, or their digests, differ from what they are made from")
}

/// Returns the files in the Secret when they are unchanged since written.
fn intact(rendered: &Rendered) -> Option<Vec<ConfigFile>> {
    let files: Vec<ConfigFile> = serde_json::from_str(&rendered.files).ok()?;
    let names = files.iter().map(|it| it.name.as_str());
    // The release before has not written the last one.
    let inputs = Some(CONFIG_INPUTS).filter(|_| !rendered.inputs.is_empty());
    let annotations = [CONFIG_HASH, CONFIG_FILES].into_iter().chain(inputs);
    rendered.managed_fields.has(annotations, names).then_some(files)
}

fn rendered(seen: &Observed, complete: &Complete) -> BTreeMap<String, conf::File> {
    let compute = &seen.compute;
    let namespace = compute.namespace().unwrap_or_default();
    let source = |kind: &str, name: &str| Source::new(kind, &namespace, name);
    let kind = ExternalCompute::kind(&());
    conf::files(&conf::Input {
        cell: &complete.cell,
        cell_source: source("NovaCell", &compute.spec.cell_name),
        host: &complete.host,
        release: seen.release.release(),
        role_default: complete
            .default_config
            .as_ref()
            .map(|it| Text { source: source("ConfigMap", &it.name), text: &it.text }),
        custom: Text {
            source: source(&kind, &compute.name_any()),
            text: compute.spec.custom_service_config.as_deref().unwrap_or_default(),
        },
        further: &compute.spec.default_config_overwrite,
    })
}

//! The inputs that differ from those of the last deployment, from the operator's condition and from
//! a local comparison.

use std::collections::BTreeMap;

use api::conditions::{ConditionStatus, READY};
use api::dataplane::condition_types::UP_TO_DATE;
use operator_core::hash;
use serde_json::json;

use crate::host::Host;
use crate::option_sources::Options;
use crate::stage::{Phase, Stage};

/// The prefix of the operators' message that lists changed inputs.
const CHANGED: &str = "Changed since the last deployment: ";

/// The changes of one stage.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Changes {
    None,
    Never,
    Unknown(String),
    Inputs { names: Vec<String>, is_cut: bool },
}

impl Changes {
    /// Combines the operator's condition with a local comparison, because the status may lag
    /// behind.
    pub(super) fn of(stage: &Stage<'_>, options: Option<&Options<'_>>) -> Self {
        // The operator only looks after such a compute.
        if stage.desired.is_empty() && !stage.name.is_empty() {
            return Self::None;
        }
        let none = BTreeMap::new();
        let deployed = stage.deployed_inputs.unwrap_or(&none);
        let up_to_date = stage.condition(UP_TO_DATE);
        let is_deployed =
            stage.phase == Phase::Deploy && stage.truth(READY) == ConditionStatus::True;
        if deployed.is_empty() && !is_deployed {
            return Self::Never;
        }
        let mut names = Vec::new();
        let mut is_cut = false;
        match up_to_date.map(|it| (it.status, it.message.as_str())) {
            Some((ConditionStatus::Unknown, why)) => return Self::Unknown(why.to_owned()),
            Some((ConditionStatus::False, message)) => match listed(message) {
                Some((found, cut)) => (names, is_cut) = (found, cut),
                None => return Self::Unknown(message.to_owned()),
            },
            Some((ConditionStatus::True, _)) | None => {}
        }
        for name in options.map(|it| differing(stage, it)).unwrap_or_default() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() { Self::None } else { Self::Inputs { names, is_cut } }
    }

    /// Removes the inputs of other hosts of the node set.
    pub(super) fn without_others(self, host: &Host<'_>) -> Self {
        let status = host.node.status.as_ref();
        let key = status.and_then(|it| it.observed_node_set.as_ref()?.key.as_ref());
        let (Self::Inputs { mut names, is_cut }, Some(own)) = (self.clone(), key) else {
            return self;
        };
        names.retain(|it| it.strip_prefix("nodes.").is_none_or(|key| key == own));
        if names.is_empty() && !is_cut { Self::None } else { Self::Inputs { names, is_cut } }
    }
}

/// Returns the inputs that differ from the last deployment, among those that can be compared here.
pub fn differing(stage: &Stage<'_>, options: &Options<'_>) -> Vec<String> {
    let none = BTreeMap::new();
    let deployed = stage.deployed_inputs.unwrap_or(&none);
    let all = present(options).into_iter();
    all.filter(|(name, digest)| deployed.get(name) != digest.as_ref()).map(|it| it.0).collect()
}

/// Parses the operators' message: the names, and whether the list is truncated. Returns `None` for
/// another message.
pub(super) fn listed(message: &str) -> Option<(Vec<String>, bool)> {
    let list = message.strip_prefix(CHANGED)?;
    // Another sentence may follow. Names contain dots, but no dot followed by a space.
    let list = list.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let is_cut = list.ends_with('…');
    let mut names: Vec<String> = list.split(", ").map(str::to_owned).collect();
    if is_cut {
        names.pop();
    }
    Some((names, is_cut))
}

/// Computes the digests of the inputs that the user may read, as nova-operator does.
fn present(options: &Options<'_>) -> BTreeMap<String, Option<String>> {
    let spec = &options.compute.spec;
    let digest =
        |text: Option<&String>| text.filter(|it| !it.is_empty()).map(|it| hash::short(&json!(it)));
    let fields = [
        ("customServiceConfig", &spec.custom_service_config),
        ("novaComputeContainerImage", &spec.nova_compute_container_image),
        ("novaLibvirtContainerImage", &spec.nova_libvirt_container_image),
    ];
    let fields = fields.map(|(name, text)| (name.to_owned(), digest(text.as_ref())));
    let default = options.default_config.as_ref().and_then(|it| {
        let (_, text) = it.text.found()?;
        Some((format!("ConfigMap {}", it.name), digest(Some(text))))
    });
    fields.into_iter().chain(default).collect()
}

//! The decision on a service: one condition on the keys of its data sources.

use std::collections::BTreeSet;

use api::conditions::{Condition, ConditionDraft};
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::conditions::CONFIG_CONDITION;
use nova_config::file_names::{Effect, HOST_FILE, effect, working_name};
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Plan, Target};
use operator_core::rejected_write::RejectedWrite;

use crate::reasons;
use crate::rollup::foreign_condition::step;
use crate::rollup::service_keys::observed::{Observed, own_condition};

/// The number of keys that a message lists.
const TOLD: usize = 5;

/// Returns the plan for a service. The only write is its condition, so a rejection is not reported.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let mut plan = Plan::with_resync();
    if !is_terminating(&*seen.service) && rejected.is_none() {
        let (service, condition) = (&*seen.service, seen.is_nova.then(|| condition(seen)));
        let previous: Vec<Condition> = own_condition(service).into_iter().cloned().collect();
        let because = "what its keys do differs from the service's condition";
        let drafts = condition.into_iter().collect();
        plan.steps.extend(step(Target::of(service), &previous, drafts, because, now));
    }
    plan
}

fn condition(seen: &Observed) -> ConditionDraft {
    let mut taken: BTreeSet<String> = seen.sources.values().flatten().cloned().collect();
    let (mut texts, mut reason) = (Vec::new(), &reasons::service::KEY_IGNORED);
    for (source, key) in
        seen.sources.iter().flat_map(|(it, keys)| keys.iter().map(move |k| (it, k)))
    {
        let found = effect(key, seen.has_cell);
        if let Some(text) = message(source, key, &found, &mut taken) {
            texts.push(text);
            if texts.len() == 1 && matches!(found, Effect::Before(_)) {
                reason = &reasons::service::KEY_OVERRULED;
            }
        }
    }
    if texts.is_empty() {
        let text = "nova-compute or its play uses every key of the data sources that users wrote.";
        return reasons::service::KEYS_USED.condition(CONFIG_CONDITION, text);
    }
    let n_more = texts.len().saturating_sub(TOLD);
    texts.truncate(TOLD);
    if n_more > 0 {
        texts.push(format!("So it is with {n_more} more."));
    }
    let service = seen.service.name_any();
    let text = format!("OpenStackDataPlaneService {service}: {}", texts.join(" "));
    reason.condition(CONFIG_CONDITION, text)
}

/// Returns the message on a key, with a name that would work, and adds that name to `taken`;
/// returns `None` when the key has an effect.
fn message(
    source: &SourceRef,
    key: &str,
    found: &Effect,
    taken: &mut BTreeSet<String>,
) -> Option<String> {
    let why = match found {
        Effect::Used => return None,
        Effect::Ignored => "is not read, for nova-compute reads *nova*.conf alone".to_owned(),
        Effect::Replaced => format!("is not read, for the play writes {HOST_FILE} itself"),
        Effect::Before(file) => format!("is read before {file}, whose values win"),
    };
    let kind = source.kind.as_str();
    let object = &source.key.name;
    let name = working_name(key, taken);
    let text =
        format!("Key {key} of {kind} {object} {why}: if it holds options of nova, name it {name}.");
    taken.insert(name);
    Some(text)
}

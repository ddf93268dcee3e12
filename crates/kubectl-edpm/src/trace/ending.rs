//! The last lines of a trace: the value in force, or the step at which the option stops and what to
//! do.

use super::file_steps::EffectiveEntry;
use super::inputs::TraceInputs;
use super::next;
use super::trace_step::{Mark, TraceStep};
use crate::config_files::value;

/// Whether the option is in force, as far as the trace has checked.
pub(super) fn is_in_force(
    steps: &[TraceStep],
    seen: &TraceInputs<'_>,
    effective: &EffectiveEntry<'_>,
) -> bool {
    let is_open = steps.iter().any(|it| it.mark.is_open());
    !is_open && effective.file_steps.files.is_some() && unanswered(steps, seen).is_none()
}

/// Returns the number of the process step if nova-compute was queried and did not report the
/// option.
fn unanswered(steps: &[TraceStep], seen: &TraceInputs<'_>) -> Option<usize> {
    seen.answer.as_ref()?;
    let at = steps.iter().position(|it| it.name == "process" && it.mark == Mark::Unknown)?;
    Some(at + 1)
}

/// Returns the last lines of a trace.
pub(super) fn text(
    steps: &[TraceStep],
    seen: &TraceInputs<'_>,
    effective: &EffectiveEntry<'_>,
) -> String {
    let in_force = in_force(steps, seen, effective);
    match steps.iter().position(|it| it.mark.is_open()) {
        Some(at) => {
            let step = format!("It stops at step {}, {}: ", at + 1, steps[at].name);
            let next = next::next_step(&steps[at], seen, &effective.file_steps.service);
            let next = next.map(|it| format!("Next: {it}.\n")).unwrap_or_default();
            let in_force = in_force.unwrap_or_default();
            format!("{step}what follows does not have it yet.\n{next}{in_force}")
        }
        None if effective.file_steps.files.is_none() => {
            "Without the object it is unknown which file sets it.\n".to_owned()
        }
        None => match (unanswered(steps, seen), in_force) {
            (Some(at), _) => format!(
                "nova-compute was asked and did not answer, so what is in force is unknown.\n\
                 Next: correct what step {at}, process, names, then ask again.\n{}",
                by_the_cluster(effective)
            ),
            (None, Some(in_force)) => in_force,
            (None, None) => by_the_cluster(effective),
        },
    }
}

/// Returns the value that the process reports, if known.
fn in_force(
    steps: &[TraceStep],
    seen: &TraceInputs<'_>,
    effective: &EffectiveEntry<'_>,
) -> Option<String> {
    let answer = seen.said().filter(|it| it.said.is_known())?;
    let origin = answer.asked.origin.as_ref().filter(|it| it.kind == "user");
    let is_proven = steps.iter().any(|it| it.name == "process" && it.mark == Mark::Ok);
    let from = origin.filter(|_| is_proven).map(|it| {
        let source = effective.file().map(|it| it.source.as_str()).filter(|it| !it.is_empty());
        let source = source.map(|it| format!(" of {it}")).unwrap_or_default();
        format!(", from {}{source}", it.detail)
    });
    Some(format!("In force: {}{}.\n", answer.said.shown(), from.unwrap_or_default()))
}

fn by_the_cluster(effective: &EffectiveEntry<'_>) -> String {
    match effective.winner {
        Some((file, entry)) => {
            let from =
                if file.source.is_empty() { String::new() } else { format!(" of {}", file.source) };
            format!(
                "As far as the cluster shows, in force: {} = {}, from {}{from}.\n",
                entry.key,
                value(entry),
                file.name
            )
        }
        None => "No file sets it: as far as the cluster shows, nova's own default is in force.\n"
            .to_owned(),
    }
}

//! The last lines of a trace: the value in force, or the step at which the option stops and what to
//! do.

use super::next;
use super::seen::Seen;
use super::stop::{Mark, Stop};
use super::way::Came;
use crate::config_files::value;

/// Whether the option is in force, as far as the trace has checked.
pub(super) fn is_in_force(stops: &[Stop], seen: &Seen<'_>, came: &Came<'_>) -> bool {
    let is_open = stops.iter().any(|it| it.mark.is_open());
    !is_open && came.way.files.is_some() && unanswered(stops, seen).is_none()
}

/// Returns the number of the process step if nova-compute was queried and did not report the
/// option.
fn unanswered(stops: &[Stop], seen: &Seen<'_>) -> Option<usize> {
    seen.answer.as_ref()?;
    let at = stops.iter().position(|it| it.name == "process" && it.mark == Mark::Unknown)?;
    Some(at + 1)
}

/// Returns the last lines of a trace.
pub(super) fn text(stops: &[Stop], seen: &Seen<'_>, came: &Came<'_>) -> String {
    let in_force = in_force(stops, seen, came);
    match stops.iter().position(|it| it.mark.is_open()) {
        Some(at) => {
            let step = format!("It stops at step {}, {}: ", at + 1, stops[at].name);
            let next = next::of(&stops[at], seen, &came.way.service);
            let next = next.map(|it| format!("Next: {it}.\n")).unwrap_or_default();
            let in_force = in_force.unwrap_or_default();
            format!("{step}what follows does not have it yet.\n{next}{in_force}")
        }
        None if came.way.files.is_none() => {
            "Without the object nobody can tell which file sets it.\n".to_owned()
        }
        None => match (unanswered(stops, seen), in_force) {
            (Some(at), _) => format!(
                "nova-compute was asked and did not tell, so what is in force is unknown.\n\
                 Next: mend what step {at}, process, names, then ask again.\n{}",
                by_the_cluster(came)
            ),
            (None, Some(in_force)) => in_force,
            (None, None) => by_the_cluster(came),
        },
    }
}

/// Returns the value that the process reports, if known.
fn in_force(stops: &[Stop], seen: &Seen<'_>, came: &Came<'_>) -> Option<String> {
    let answer = seen.said().filter(|it| it.said.is_known())?;
    let origin = answer.asked.origin.as_ref().filter(|it| it.kind == "user");
    let is_proven = stops.iter().any(|it| it.name == "process" && it.mark == Mark::Ok);
    let from = origin.filter(|_| is_proven).map(|it| {
        let source = came.file().map(|it| it.source.as_str()).filter(|it| !it.is_empty());
        let source = source.map(|it| format!(" of {it}")).unwrap_or_default();
        format!(", from {}{source}", it.detail)
    });
    Some(format!("In force: {}{}.\n", answer.said.shown(), from.unwrap_or_default()))
}

fn by_the_cluster(came: &Came<'_>) -> String {
    match came.winner {
        Some((file, entry)) => {
            let from =
                if file.source.is_empty() { String::new() } else { format!(" of {}", file.source) };
            format!(
                "As far as the cluster knows, in force: {} = {}, from {}{from}.\n",
                entry.key,
                value(entry),
                file.name
            )
        }
        None => "No file sets it: as far as the cluster knows, nova's own default is in force.\n"
            .to_owned(),
    }
}

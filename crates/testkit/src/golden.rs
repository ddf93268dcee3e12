//! Records the plans that tests make, to show that a refactoring changes none of them.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::thread;

use operator_core::hash;
use operator_core::plan::{EventDraft, Plan, Step, Write};
use serde_json::{Value, json};

/// The environment variable with the directory for recorded plans; when it is unset, nothing is
/// recorded.
pub const FOLDER: &str = "EDPM_PLANS";

/// Returns the plan, after recording it under the name of the current thread's test.
///
/// # Panics
///
/// When [`FOLDER`] names a directory that cannot be written.
#[must_use]
pub fn recorded<O: Debug>(plan: Plan<O>) -> Plan<O> {
    if let Some(folder) = std::env::var_os(FOLDER) {
        record(&folder, &plan);
    }
    plan
}

/// Appends the digest of a plan to the file of the current test; threads without a test name record
/// nothing.
fn record<O: Debug>(folder: &OsStr, plan: &Plan<O>) {
    let thread = thread::current();
    let Some((_, test)) = thread.name().and_then(|it| it.rsplit_once("::")) else { return };
    let folder = Path::new(folder);
    fs::create_dir_all(folder).expect("the folder of plans can be made");
    let file = OpenOptions::new().create(true).append(true).open(folder.join(test));
    let line = format!("{}\n", hash::digest(&text(plan)));
    // A single write, because tests of the same name in two crates share the file.
    file.and_then(|mut it| it.write_all(line.as_bytes())).expect("a plan can be recorded");
}

/// Serialises a plan with fixed names, so that types and fields may be renamed, but those of orders.
/// The reasons of steps and orders are left out, because they only reach the log.
fn text<O: Debug>(plan: &Plan<O>) -> String {
    let mut text = format!("look again {:?}\n", plan.requeue_after);
    for (place, steps) in [("apart", &plan.independent), ("in order", &plan.steps)] {
        for step in steps {
            let _ = writeln!(text, "{place} {}", step_text(step));
        }
    }
    for order in &plan.orders {
        let _ = writeln!(text, "order {:?}", order.what);
    }
    for (target, event) in &plan.events {
        let _ =
            writeln!(text, "event {}/{}: {}", target.namespace, target.name, event_value(event));
    }
    text
}

fn event_value(event: &EventDraft) -> Value {
    json!([event.warning, event.reason, event.note])
}

fn step_text(step: &Step) -> String {
    let target = &step.target;
    let write = match &step.write {
        Write::Apply { object, force, manager } => {
            json!({ "apply": object, "force": force, "manager": manager })
        }
        Write::Create { object, identity } => json!({ "create": object, "identity": identity }),
        Write::Status { status, resource_version, notices } => {
            let events: Vec<_> = notices.iter().map(event_value).collect();
            json!({ "status": status, "version": resource_version, "events": events })
        }
        Write::Delete { resource_version } => json!({ "delete": resource_version }),
        Write::AddFinalizer { finalizer } => json!({ "hold": finalizer }),
        Write::RemoveFinalizer { rest, resource_version } => {
            json!({ "release": rest, "version": resource_version })
        }
    };
    let kind = format!("{} {}", target.kind.api_version(), target.kind.kind);
    format!("{kind} {}/{} {:?}: {write}", target.namespace, target.name, target.uid)
}

#[cfg(test)]
mod tests {
    use operator_core::plan::{Kind, Target};

    use super::*;

    fn plan(value: &str) -> Plan {
        let kind =
            Kind { group: "g".into(), version: "v1".into(), kind: "K".into(), plural: "ks".into() };
        let target = Target { kind, namespace: "ns".into(), name: "a".into(), uid: None };
        let write = Write::Apply { object: json!({ "a": value }), force: true, manager: None };
        let step = Step { target, write, reason: value.into() };
        Plan { steps: vec![step], ..Plan::default() }
    }

    #[test]
    fn another_content_is_another_text_and_the_reason_of_a_step_none() {
        let first = plan("x");
        let mut same = first.clone();
        same.steps[0].reason = "another reason".into();
        assert_eq!(text(&first), text(&same));
        assert_ne!(text(&first), text(&plan("y")));
        let expected = "look again None\nin order g/v1 K ns/a None: \
                        {\"apply\":{\"a\":\"x\"},\"force\":true,\"manager\":null}\n";
        assert_eq!(text(&first), expected);
    }

    #[test]
    fn a_plan_is_recorded_under_the_name_of_its_test() {
        let folder = std::env::temp_dir().join(format!("edpm-plans-{}", std::process::id()));
        record(folder.as_os_str(), &plan("x"));
        record(folder.as_os_str(), &plan("y"));
        let file = folder.join("a_plan_is_recorded_under_the_name_of_its_test");
        let lines = fs::read_to_string(file).unwrap();
        fs::remove_dir_all(folder).unwrap();
        let expected = [plan("x"), plan("y")].map(|it| hash::digest(&text(&it)));
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }
}

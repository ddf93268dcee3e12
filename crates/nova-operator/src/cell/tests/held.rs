//! A cell with computes is held, and records what removed computes leave in nova.

use api::nova::Leftover;
use api::nova::cell::LEFTOVERS;
use kube::ResourceExt;

use super::*;

fn time(seconds: usize) -> String {
    Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap().to_string()
}

/// A compute that is being deleted, and whose host cleanup ended at that second.
fn done(name: &str, seconds: usize) -> Arc<ExternalCompute> {
    let mut compute = compute(name);
    let it = Arc::make_mut(&mut compute);
    it.metadata.deletion_timestamp = serde_json::from_value(json!(time(0))).unwrap();
    let condition = json!({
        "type": "HostCleaned", "status": "True", "reason": "HostCleaned", "message": "x",
        "lastTransitionTime": time(seconds),
    });
    it.status.as_mut().unwrap().conditions = vec![serde_json::from_value(condition).unwrap()];
    compute
}

/// The state after the status and the files were written.
fn settled(mut seen: Observed) -> Observed {
    let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
    let (status, applied) = written(&plan);
    seen.rendered = applied.map(rendered).or(seen.rendered);
    Arc::make_mut(&mut seen.cell).status = Some(status);
    seen
}

fn leftovers(seen: &Observed) -> Vec<&str> {
    let leftovers = &seen.cell.status.as_ref().unwrap().leftovers;
    leftovers.iter().map(|it: &Leftover| it.host_name.as_str()).collect()
}

fn finalizers(seen: &mut Observed, finalizers: &[&str], is_terminating: bool) {
    let cell = Arc::make_mut(&mut seen.cell);
    cell.metadata.finalizers = Some(finalizers.iter().map(|it| (*it).to_owned()).collect());
    let at = is_terminating.then(|| json!(time(0)));
    cell.metadata.deletion_timestamp = serde_json::from_value(json!(at)).unwrap();
}

fn last_write(seen: &Observed) -> Option<Write> {
    recorded(decide(seen, None, Timestamp::UNIX_EPOCH)).steps.pop().map(|it| it.write)
}

#[test]
fn a_cell_is_held_for_as_long_as_it_has_computes() {
    let mut seen = settled(seen());
    let release = || Write::RemoveFinalizer { rest: vec!["x/y".into()], resource_version: None };
    finalizers(&mut seen, &["x/y"], false);
    assert_eq!(last_write(&seen), Some(Write::AddFinalizer { finalizer: finalizers::CELL.into() }));
    finalizers(&mut seen, &["x/y", finalizers::CELL], false);
    assert_eq!(last_write(&seen), None);
    seen.computes.clear();
    assert_eq!(last_write(&seen), Some(release()));
    assert_eq!(status(&seen).computes, Some(0), "a cell that only is not held goes on");
    finalizers(&mut seen, &["x/y", finalizers::CELL], true);
    assert_eq!(last_write(&seen), Some(release()));
    seen.computes = vec![compute("n0")];
    seen.namespace_goes = true;
    assert_eq!(last_write(&seen), Some(release()), "in a namespace that goes nothing is held");
}

#[test]
fn a_deleted_cell_names_five_of_its_computes_and_their_count() {
    let mut seen = seen();
    seen.computes = (0..7).map(|it| compute(&format!("n{it}"))).collect();
    assert!(find(&status(&seen).conditions, "Released").is_none());
    finalizers(&mut seen, &[finalizers::CELL], true);
    says(&status(&seen), "Released", "CellInUse", &["7 do: n0, n1, n2, n3, n4 and 2 more."]);
    let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
    assert!(
        !plan.steps.iter().any(|it| matches!(it.write, Write::RemoveFinalizer { .. })),
        "{plan:?}"
    );
}

#[test]
fn what_a_compute_leaves_is_remembered_told_once_and_forgotten_when_it_is_in_use_again() {
    let mut seen = settled(seen());
    seen.computes = vec![compute("n0"), done("n1", 5)];
    let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
    let Write::Status { notices, .. } = &plan.steps[0].write else { panic!("{plan:?}") };
    assert_eq!((notices.len(), notices[0].reason.as_str()), (1, "LeftInNova"));
    assert!(notices[0].note.contains("n1.example.org"), "{}", notices[0].note);
    seen = settled(seen);
    assert_eq!(leftovers(&seen), ["n1.example.org"]);
    assert_eq!(recorded(decide(&seen, None, Timestamp::UNIX_EPOCH)).steps, []);
    seen.computes.pop();
    seen = settled(seen);
    assert_eq!(leftovers(&seen), ["n1.example.org"], "the compute is gone, its records are not");
    seen.computes.push(compute("n1"));
    seen = settled(seen);
    assert_eq!(leftovers(&seen), [""; 0]);
}

#[test]
fn what_a_human_takes_off_the_list_stays_off() {
    let mut seen = settled(seen());
    seen.computes = vec![done("n1", 5)];
    seen = settled(seen);
    seen.computes = vec![compute("n0")];
    Arc::make_mut(&mut seen.cell).status.as_mut().unwrap().leftovers.clear();
    assert_eq!(leftovers(&settled(seen)), [""; 0]);
}

#[test]
fn the_list_is_bounded_and_every_compute_that_waits_gets_its_turn() {
    let mut seen = settled(seen());
    let all: Vec<_> = (0..LEFTOVERS + 7).map(|it| done(&format!("n{it:03}"), it)).collect();
    seen.computes.clone_from(&all);
    let mut remembered = 0;
    while !seen.computes.is_empty() {
        seen = settled(seen);
        let listed: Vec<String> = leftovers(&seen).into_iter().map(str::to_owned).collect();
        assert!(listed.len() <= LEFTOVERS);
        // The recorded computes are removed.
        let before = seen.computes.len();
        seen.computes.retain(|it| !listed.contains(&format!("{}.example.org", it.name_any())));
        assert!(seen.computes.len() < before, "nobody gets on");
        remembered += before - seen.computes.len();
    }
    assert_eq!(remembered, all.len());
    assert!(leftovers(&seen).contains(&format!("n{:03}.example.org", LEFTOVERS + 6).as_str()));
}

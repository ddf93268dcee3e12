//! Tests of the scheduler: a table of single cases, and properties of whole histories.

use operator_core::shares::reserve;
use proptest::prelude::*;

use super::*;

const TERM: &str = "b/2";

fn run(name: &str, second: i64, hosts: &[&str]) -> View {
    View {
        namespace: "ns".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
        created: Timestamp::from_second(second).unwrap(),
        hosts: hosts.iter().map(|it| ((*it).to_owned(), format!("{it}, {it}:22"))).collect(),
        state: State::Queued { term: Some(TERM.into()), reported: None, inherited: false },
    }
}

fn active(mut run: View) -> View {
    run.state = State::Active;
    run
}

fn foreign(mut run: View) -> View {
    run.namespace = "else".into();
    run
}

fn reported(mut run: View, text: &str) -> View {
    run.state =
        State::Queued { term: Some(TERM.into()), reported: Some(text.into()), inherited: false };
    run
}

fn of_term(mut run: View, term: Option<&str>) -> View {
    run.state = State::Queued { term: term.map(Into::into), reported: None, inherited: true };
    run
}

fn waits(idx: usize, text: &str) -> SchedulingDecision {
    SchedulingDecision::Wait(idx, text.into())
}

fn limit(total: usize) -> Limits {
    Limits { total, per_namespace: None }
}

#[track_caller]
fn check(runs: &[View], expected: &[SchedulingDecision]) {
    assert_eq!(admit(runs, limit(20), TERM), expected);
}

#[test]
fn runs_on_different_hosts_start_together() {
    check(
        &[run("a", 1, &["x"]), run("b", 2, &["y"]), run("c", 3, &[])],
        &[SchedulingDecision::Admit(0), SchedulingDecision::Admit(1), SchedulingDecision::Admit(2)],
    );
}

#[test]
fn a_run_waits_for_the_active_run_on_its_host_and_names_both() {
    check(
        &[active(run("a", 1, &["x", "y"])), run("b", 2, &["y", "z"])],
        &[waits(1, "a (host y, y:22)")],
    );
}

#[test]
fn of_two_new_runs_on_one_host_the_older_one_starts() {
    check(
        &[run("younger", 2, &["x"]), run("older", 1, &["x"])],
        &[SchedulingDecision::Admit(1), waits(0, "older (host x, x:22)")],
    );
}

#[test]
fn runs_made_in_the_same_second_start_in_the_order_of_their_uids() {
    check(
        &[run("b", 1, &["x"]), run("a", 1, &["x"])],
        &[SchedulingDecision::Admit(1), waits(0, "a (host x, x:22)")],
    );
}

#[test]
fn a_run_over_many_hosts_is_not_overtaken_on_any_of_them() {
    check(
        &[active(run("a", 1, &["x"])), run("wide", 2, &["x", "y"]), run("late", 3, &["y"])],
        &[waits(1, "a (host x, x:22)"), waits(2, "wide (host y, y:22)")],
    );
}

#[test]
fn one_address_is_one_host_whatever_its_names() {
    let mut other = run("b", 2, &["y"]);
    other.hosts = BTreeMap::from([("x".into(), "alias, X:22".into())]);
    check(&[active(run("a", 1, &["x"])), other], &[waits(1, "a (host alias, X:22)")]);
}

#[test]
fn a_run_of_another_namespace_is_told_without_names() {
    let text = "a run in another namespace (host x, x:22)";
    let secret = |name| foreign(active(run(name, 1, &["x"])));
    check(&[secret("a"), run("b", 2, &["x"])], &[waits(1, text)]);
    // Another holder is not reported to whoever may not know its name.
    check(&[secret("c"), reported(run("b", 2, &["x"]), text)], &[]);
    assert_eq!(message(text), "Waits for a run in another namespace (host x, x:22)");
    assert_eq!(message("a (host x, x:22)"), "Waits for run a (host x, x:22)");
}

#[test]
fn an_administrator_is_told_both_runs_by_name_where_they_are_of_two_namespaces() {
    let wait = |run: &str, holder: &str, host: &str| ForeignWait {
        run: run.into(),
        holder: holder.into(),
        host: host.into(),
    };
    let runs = [
        foreign(active(run("a", 1, &["x", "y"]))),
        active(run("own", 1, &["z"])),
        run("wide", 2, &["x", "y", "z"]),
        // A run that only waits holds nothing there.
        run("mine", 3, &["w"]),
        foreign(run("other", 4, &["w", "z"])),
    ];
    let expected = [wait("else/other", "ns/own", "z, z:22"), wait("ns/wide", "else/a", "x, x:22")];
    assert_eq!(foreign_waits(&runs), BTreeSet::from(expected));
    assert_eq!(foreign_waits(&runs[1..4]), BTreeSet::new());
}

#[test]
fn a_run_that_only_waits_holds_no_host_back_from_other_namespaces() {
    let runs = [
        active(run("a", 1, &["x"])),
        run("wide", 2, &["x", "y"]),
        run("late", 3, &["y"]),
        foreign(run("other", 4, &["y"])),
    ];
    let late = waits(2, "a run in another namespace (host y, y:22)");
    check(&runs, &[waits(1, "a (host x, x:22)"), late, SchedulingDecision::Admit(3)]);
}

#[test]
fn of_two_namespaces_that_want_one_host_the_one_with_fewer_active_runs_gets_it() {
    let rivals = [run("mine", 2, &["x"]), foreign(run("other", 3, &["x"]))];
    let text = "a run in another namespace (host x, x:22)";
    check(&rivals, &[SchedulingDecision::Admit(0), waits(1, text)]);
    let [mine, other] = rivals;
    check(
        &[active(run("a", 1, &["a"])), mine, other],
        &[waits(1, text), SchedulingDecision::Admit(2)],
    );
}

#[test]
fn what_a_run_waits_for_is_written_once_per_cause() {
    let (a, b) = (active(run("a", 1, &["x"])), active(run("b", 2, &["y"])));
    let wide = run("wide", 3, &["x", "y"]);
    check(&[a, b.clone(), reported(wide.clone(), "b (host y, y:22)")], &[]);
    check(&[b, reported(wide, "a (host x, x:22)")], &[waits(1, "b (host y, y:22)")]);
}

#[test]
fn the_limit_counts_active_runs_and_is_told_to_nobody() {
    let runs = [active(run("a", 1, &["x"])), run("b", 2, &["y"]), run("c", 3, &["z"])];
    assert_eq!(admit(&runs, limit(2), TERM), [SchedulingDecision::Admit(1)]);
    assert_eq!(admit(&runs, limit(1), TERM), []);
    let runs = [active(run("a", 1, &["x"])), run("b", 2, &["y"]), run("c", 3, &["y"])];
    assert_eq!(admit(&runs, limit(1), TERM), []);
    let runs = [active(run("a", 1, &["x"])), run("b", 2, &["x"])];
    assert_eq!(admit(&runs, limit(1), TERM), [waits(1, "a (host x, x:22)")]);
}

#[test]
fn a_namespace_with_a_limit_of_its_own_leaves_room_for_the_others() {
    let limits = Limits { total: 3, per_namespace: Some(2) };
    let runs = [
        active(run("a", 1, &["a"])),
        run("b", 2, &["b"]),
        run("c", 3, &["c"]),
        foreign(run("d", 4, &["d"])),
    ];
    // b is the second of its namespace, c the third; d takes the last slot.
    assert_eq!(
        admit(&runs, limits, TERM),
        [SchedulingDecision::Admit(1), SchedulingDecision::Admit(3)]
    );
}

#[test]
fn a_run_that_waits_for_its_namespaces_limit_holds_its_hosts_within_the_namespace_alone() {
    let limits = Limits { total: 9, per_namespace: Some(1) };
    let runs = [active(run("a", 1, &["a"])), run("b", 2, &["x"]), run("late", 3, &["x"])];
    assert_eq!(admit(&runs, limits, TERM), []);
    let [a, b, late] = runs;
    let admitted = admit(&[a, b, foreign(late)], limits, TERM);
    assert_eq!(admitted[1..], [SchedulingDecision::Admit(2)]);
}

/// Returns `n` runs, each on a host of its own.
fn many(n: usize, name: &str, second: i64) -> Vec<View> {
    let one = |it: usize| {
        let name = format!("{name}{it:03}");
        run(&name, second, &[&name])
    };
    (0..n).map(one).collect()
}

fn n_admitted(runs: &[View], total: usize, namespace: &str) -> usize {
    let is_here = |idx: &usize| runs[*idx].namespace == namespace;
    let is_in =
        |it: &SchedulingDecision| matches!(it, SchedulingDecision::Admit(idx) if is_here(idx));
    admit(runs, limit(total), TERM).iter().filter(|it| is_in(it)).count()
}

#[test]
fn a_namespace_alone_may_use_all_places_also_beside_runs_that_cannot_start() {
    let mut runs = many(30, "a", 1);
    assert_eq!(n_admitted(&runs, 20, "ns"), 20);
    // This one waits for a host, not for a slot.
    runs.push(active(foreign(run("busy", 1, &["x"]))));
    runs.push(foreign(run("waits", 2, &["x"])));
    assert_eq!((n_admitted(&runs, 20, "ns"), n_admitted(&runs, 20, "else")), (19, 0));
}

#[test]
fn namespaces_that_want_more_than_there_is_share_it_whoever_came_first() {
    let mut runs = many(30, "a", 1);
    runs.extend(many(30, "b", 2).into_iter().map(foreign));
    assert_eq!((n_admitted(&runs, 20, "ns"), n_admitted(&runs, 20, "else")), (10, 10));
    let mut few = many(30, "a", 1);
    few.extend(many(3, "b", 2).into_iter().map(foreign));
    assert_eq!((n_admitted(&few, 20, "ns"), n_admitted(&few, 20, "else")), (17, 3));
}

#[test]
fn a_namespace_that_holds_all_places_leaves_a_quarter_more_to_the_others() {
    for (total, more) in [(20, 5), (5, 1), (2, 1), (1, 0)] {
        let mut runs: Vec<View> = many(total, "a", 1).into_iter().map(active).collect();
        runs.extend(many(30, "later", 2));
        runs.extend(many(30, "b", 3).into_iter().map(foreign));
        let found = (n_admitted(&runs, total, "ns"), n_admitted(&runs, total, "else"));
        assert_eq!(found, (0, more), "{total}");
    }
}

#[test]
fn a_new_leader_writes_its_term_into_every_inherited_run_before_it_admits_any() {
    let runs = [
        of_term(run("a", 1, &["x"]), Some("a/1")),
        of_term(run("b", 2, &["y"]), None),
        of_term(run("c", 3, &["z"]), Some(TERM)),
        run("new", 4, &["w"]),
    ];
    check(&runs, &[SchedulingDecision::Stamp(0), SchedulingDecision::Stamp(1)]);
}

#[test]
fn a_run_that_came_under_this_leader_needs_no_stamp() {
    let mut new = run("new", 1, &["w"]);
    new.state = State::Queued { term: None, reported: None, inherited: false };
    check(&[new], &[SchedulingDecision::Admit(0)]);
}

/// A history: runs with hosts and an age, of which some end, until nothing changes any more.
fn history() -> impl Strategy<Value = Vec<(i64, Vec<u8>)>> {
    prop::collection::vec((0..4_i64, prop::collection::vec(0..5_u8, 0..4)), 1..14)
}

/// Returns the runs of a history, all of which wait.
fn queued(queue: &[(i64, Vec<u8>)]) -> Vec<View> {
    let one = |(idx, (second, hosts)): (usize, &(i64, Vec<u8>))| {
        let hosts: Vec<String> = hosts.iter().map(|it| format!("h{it}")).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        run(&format!("r{idx:02}"), *second, &hosts)
    };
    queue.iter().enumerate().map(one).collect()
}

proptest! {
    #[test]
    fn no_two_active_runs_ever_share_an_address_and_every_run_gets_its_turn(
        queue in history(),
        ends in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
        total in 1..5_usize,
        per_namespace in prop::option::of(1..3_usize),
    ) {
        let mut runs = queued(&queue);
        // Two namespaces, so that neither limit makes the other irrelevant.
        for (idx, run) in runs.iter_mut().enumerate().filter(|(idx, _)| idx % 2 == 1) {
            run.namespace = format!("ns{}", idx % 2);
        }
        let limits = Limits { total, per_namespace };
        let mut ends = ends.into_iter().cycle();
        let mut writes = 0;
        while !runs.is_empty() {
            for decision in admit(&runs, limits, TERM) {
                writes += 1;
                match decision {
                    SchedulingDecision::Admit(idx) => runs[idx].state = State::Active,
                    SchedulingDecision::Wait(idx, text) => {
                        runs[idx] = reported(runs[idx].clone(), &text);
                    }
                    SchedulingDecision::Stamp(_) => prop_assert!(false, "nothing is inherited"),
                }
            }
            let active: Vec<usize> =
                (0..runs.len()).filter(|idx| runs[*idx].state == State::Active).collect();
            prop_assert!(!active.is_empty(), "nothing can start: {runs:#?}");
            prop_assert!(active.len() <= total + reserve(limits.total));
            for namespace in ["ns", "ns1"] {
                let its = active.iter().filter(|idx| runs[**idx].namespace == namespace).count();
                prop_assert!(per_namespace.is_none_or(|limit| its <= limit));
            }
            for (n, one) in active.iter().enumerate() {
                for other in &active[n + 1..] {
                    let shared = runs[*one].hosts.keys().find(|it| runs[*other].hosts.contains_key(*it));
                    prop_assert_eq!(shared, None);
                }
            }
            // Evaluating the same state again writes nothing.
            prop_assert_eq!(admit(&runs, limits, TERM), vec![]);
            let ended = ends.next().unwrap();
            runs.remove(active[ended.index(active.len())]);
        }
        prop_assert!(writes <= queue.len() * queue.len() + queue.len());
    }

    #[test]
    fn of_two_queued_runs_that_share_a_host_the_younger_never_starts_first(queue in history()) {
        let runs = queued(&queue);
        let admitted: BTreeSet<usize> = admit(&runs, limit(100), TERM)
            .into_iter()
            .filter_map(|it| if let SchedulingDecision::Admit(idx) = it { Some(idx) } else { None })
            .collect();
        for idx in &admitted {
            let age = |it: &View| (it.created, it.uid.clone());
            let older = runs.iter().enumerate().filter(|(_, it)| age(it) < age(&runs[*idx]));
            for (other, it) in older {
                let shares = it.hosts.keys().any(|address| runs[*idx].hosts.contains_key(address));
                prop_assert!(!shares || !admitted.contains(&other), "{} and {}", it.name, runs[*idx].name);
                prop_assert!(!shares, "{} overtook {}", runs[*idx].name, it.name);
            }
        }
    }

    /// One namespace has runs that never end, and runs that list the others' hosts and only wait.
    #[test]
    fn no_namespace_starves_whatever_another_one_holds_for_ever(
        total in 2..9_usize,
        n_held in 1..12_usize,
        n_more in 0..12_usize,
        queue in history(),
        ends in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let limits = limit(total);
        let mut runs: Vec<View> =
            many(n_held.min(total), "held", 0).into_iter().map(active).map(foreign).collect();
        runs.extend(many(n_more, "more", 1).into_iter().map(foreign));
        runs.push(foreign(run("greedy", 0, &["held000", "h0", "h1", "h2", "h3", "h4"])));
        let n_foreign = runs.len();
        let later: Vec<_> = queue.into_iter().map(|(second, hosts)| (second + 2, hosts)).collect();
        runs.extend(queued(&later));
        for (idx, run) in runs[n_foreign..].iter_mut().enumerate() {
            run.namespace = format!("ns{}", idx % 2);
        }
        let mut ends = ends.into_iter().cycle();
        while runs.len() > n_foreign {
            for decision in admit(&runs, limits, TERM) {
                if let SchedulingDecision::Admit(idx) = decision {
                    runs[idx].state = State::Active;
                }
            }
            let active = |it: &usize| runs[*it].state == State::Active;
            let n_active = (0..runs.len()).filter(active).count();
            prop_assert!(n_active <= total + reserve(limits.total));
            let of_others: Vec<usize> = (n_foreign..runs.len()).filter(active).collect();
            prop_assert!(!of_others.is_empty(), "nothing of the others can start: {runs:#?}");
            let ended = ends.next().unwrap();
            runs.remove(of_others[ended.index(of_others.len())]);
        }
    }
}

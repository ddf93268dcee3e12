//! Tests of the scheduler's arithmetic: a table of single cases, and properties of whole histories.

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
        state: State::Queued { term: Some(TERM.into()), told: None, inherited: false },
    }
}

fn active(mut run: View) -> View {
    run.state = State::Active;
    run
}

fn told(mut run: View, text: &str) -> View {
    run.state =
        State::Queued { term: Some(TERM.into()), told: Some(text.into()), inherited: false };
    run
}

fn of_term(mut run: View, term: Option<&str>) -> View {
    run.state = State::Queued { term: term.map(Into::into), told: None, inherited: true };
    run
}

fn waits(idx: usize, text: &str) -> Verdict {
    Verdict::Wait(idx, text.into())
}

fn limit(total: usize) -> Limits {
    Limits { total, per_namespace: None }
}

#[track_caller]
fn check(runs: &[View], expected: &[Verdict]) {
    assert_eq!(admit(runs, limit(20), TERM), expected);
}

#[test]
fn runs_on_different_hosts_start_together() {
    check(
        &[run("a", 1, &["x"]), run("b", 2, &["y"]), run("c", 3, &[])],
        &[Verdict::Admit(0), Verdict::Admit(1), Verdict::Admit(2)],
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
        &[Verdict::Admit(1), waits(0, "older (host x, x:22)")],
    );
}

#[test]
fn runs_made_in_the_same_second_start_in_the_order_of_their_uids() {
    check(
        &[run("b", 1, &["x"]), run("a", 1, &["x"])],
        &[Verdict::Admit(1), waits(0, "a (host x, x:22)")],
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
fn a_run_in_another_namespace_is_named_with_it() {
    let mut other = active(run("a", 1, &["x"]));
    other.namespace = "else".into();
    check(&[other, run("b", 2, &["x"])], &[waits(1, "else/a (host x, x:22)")]);
}

#[test]
fn what_a_run_waits_for_is_written_once_per_cause() {
    let (a, b) = (active(run("a", 1, &["x"])), active(run("b", 2, &["y"])));
    let wide = run("wide", 3, &["x", "y"]);
    check(&[a, b.clone(), told(wide.clone(), "b (host y, y:22)")], &[]);
    check(&[b, told(wide, "a (host x, x:22)")], &[waits(1, "b (host y, y:22)")]);
}

#[test]
fn the_limit_counts_active_runs_and_is_told_to_nobody() {
    let runs = [active(run("a", 1, &["x"])), run("b", 2, &["y"]), run("c", 3, &["z"])];
    assert_eq!(admit(&runs, limit(2), TERM), [Verdict::Admit(1)]);
    assert_eq!(admit(&runs, limit(1), TERM), []);
    let runs = [active(run("a", 1, &["x"])), run("b", 2, &["y"]), run("c", 3, &["y"])];
    assert_eq!(admit(&runs, limit(1), TERM), []);
    let runs = [active(run("a", 1, &["x"])), run("b", 2, &["x"])];
    assert_eq!(admit(&runs, limit(1), TERM), [waits(1, "a (host x, x:22)")]);
}

#[test]
fn a_namespace_with_a_limit_of_its_own_leaves_room_for_the_others() {
    let limits = Limits { total: 3, per_namespace: Some(2) };
    let other = |mut run: View| {
        run.namespace = "else".into();
        run
    };
    let runs = [
        active(run("a", 1, &["a"])),
        run("b", 2, &["b"]),
        run("c", 3, &["c"]),
        other(run("d", 4, &["d"])),
        other(run("e", 5, &["e"])),
    ];
    // b is the second of its namespace, c the third; d takes the last place of all.
    assert_eq!(admit(&runs, limits, TERM), [Verdict::Admit(1), Verdict::Admit(3)]);
}

#[test]
fn a_run_that_waits_for_its_namespaces_limit_is_not_overtaken_on_its_hosts() {
    let limits = Limits { total: 9, per_namespace: Some(1) };
    let mut late = run("late", 3, &["x"]);
    late.namespace = "else".into();
    let runs = [active(run("a", 1, &["a"])), run("b", 2, &["x"]), late];
    assert_eq!(admit(&runs, limits, TERM), [waits(2, "ns/b (host x, x:22)")]);
}

#[test]
fn a_new_leader_writes_its_term_into_every_inherited_run_before_it_admits_any() {
    let runs = [
        of_term(run("a", 1, &["x"]), Some("a/1")),
        of_term(run("b", 2, &["y"]), None),
        of_term(run("c", 3, &["z"]), Some(TERM)),
        run("new", 4, &["w"]),
    ];
    check(&runs, &[Verdict::Stamp(0), Verdict::Stamp(1)]);
}

#[test]
fn a_run_that_came_under_this_leader_needs_no_stamp() {
    let mut new = run("new", 1, &["w"]);
    new.state = State::Queued { term: None, told: None, inherited: false };
    check(&[new], &[Verdict::Admit(0)]);
}

/// A history: runs with hosts and an age, of which some end, until nothing changes any more.
fn history() -> impl Strategy<Value = Vec<(i64, Vec<u8>)>> {
    prop::collection::vec((0..4_i64, prop::collection::vec(0..5_u8, 0..4)), 1..14)
}

proptest! {
    #[test]
    fn no_two_active_runs_ever_share_an_address_and_every_run_gets_its_turn(
        wishes in history(),
        ends in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
        total in 1..5_usize,
        per_namespace in prop::option::of(1..3_usize),
    ) {
        let mut runs: Vec<View> = wishes
            .iter()
            .enumerate()
            .map(|(idx, (second, hosts))| {
                let hosts: Vec<String> = hosts.iter().map(|it| format!("h{it}")).collect();
                let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
                run(&format!("r{idx:02}"), *second, &hosts)
            })
            .collect();
        // Two namespaces, so that neither limit makes the other idle.
        for (idx, run) in runs.iter_mut().enumerate().filter(|(idx, _)| idx % 2 == 1) {
            run.namespace = format!("ns{}", idx % 2);
        }
        let limits = Limits { total, per_namespace };
        let mut ends = ends.into_iter().cycle();
        let mut writes = 0;
        while !runs.is_empty() {
            for verdict in admit(&runs, limits, TERM) {
                writes += 1;
                match verdict {
                    Verdict::Admit(idx) => runs[idx].state = State::Active,
                    Verdict::Wait(idx, text) => runs[idx] = told(runs[idx].clone(), &text),
                    Verdict::Stamp(_) => prop_assert!(false, "nothing is inherited"),
                }
            }
            let active: Vec<usize> =
                (0..runs.len()).filter(|idx| runs[*idx].state == State::Active).collect();
            prop_assert!(!active.is_empty(), "nothing can start: {runs:#?}");
            prop_assert!(active.len() <= total);
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
            // A second look at the same state writes nothing.
            prop_assert_eq!(admit(&runs, limits, TERM), vec![]);
            let ended = ends.next().unwrap();
            runs.remove(active[ended.index(active.len())]);
        }
        prop_assert!(writes <= wishes.len() * wishes.len() + wishes.len());
    }

    #[test]
    fn of_two_queued_runs_that_share_a_host_the_younger_never_starts_first(wishes in history()) {
        let runs: Vec<View> = wishes
            .iter()
            .enumerate()
            .map(|(idx, (second, hosts))| {
                let hosts: Vec<String> = hosts.iter().map(|it| format!("h{it}")).collect();
                let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
                run(&format!("r{idx:02}"), *second, &hosts)
            })
            .collect();
        let admitted: BTreeSet<usize> = admit(&runs, limit(100), TERM)
            .into_iter()
            .filter_map(|it| if let Verdict::Admit(idx) = it { Some(idx) } else { None })
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
}

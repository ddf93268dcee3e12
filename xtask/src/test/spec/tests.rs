//! Tests that the tables of the docs are correct, and that errors in a table are found.

use super::table::Mutant;
use super::*;

fn row(number: usize, tests: &[&str]) -> Row {
    let tests = tests.iter().map(|it| (*it).to_owned()).collect();
    Row { number, said: "\"it is\"".into(), tests, ..Row::default() }
}

fn page(rows: Vec<Row>) -> Page {
    Page { file: "p.md", n_rows: 3, is_quoting: true, rows }
}

fn place() -> Place {
    Place { file: "f.rs".into(), text: "x".into() }
}

fn found(rows: Vec<Row>) -> String {
    faults(&[page(rows)], &|_| Ok(())).join("; ")
}

#[test]
fn the_tables_of_the_docs_hold() {
    let pages = pages().unwrap();
    let mut faults = faults(&pages, &in_repo);
    faults.extend(pages.iter().filter_map(incomplete));
    faults.extend(unwritten(&pages, &Sources::read().unwrap()));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_test_that_is_absent_skipped_or_failed_is_named() {
    let tests = Tests::from([
        ("common a::good".to_owned(), Outcome::Passed),
        ("common a::bad".to_owned(), Outcome::Failed),
        ("common a::off".to_owned(), Outcome::Skipped),
    ]);
    let parts = BTreeMap::from([("unit".to_owned(), tests)]);
    let report = Report { parts, ..Report::default() };
    for (test, expected) in [
        ("common a::good", ""),
        ("common a::bad", "common a::bad failed"),
        ("common a::off", "common a::off was skipped"),
        ("common a::gone", "common a::gone is no test of part unit"),
        ("common b::bad", "common b::bad is no test of part unit, but common a::bad is"),
    ] {
        let row = row(1, &["common a::good", test]);
        let (faults, waiting) = judge(&row, &report);
        assert_eq!((faults.join("; ").as_str(), waiting.len()), (expected, 0));
    }
}

#[test]
fn a_row_waits_for_the_parts_that_did_not_run() {
    let parts = BTreeMap::from([("unit".to_owned(), Tests::new())]);
    let report = Report { parts, ..Report::default() };
    let row = row(1, &["e2e a::b", "ansible t.C.d", "common a::b"]);
    let (faults, waiting) = judge(&row, &report);
    assert_eq!(faults, ["common a::b is no test of part unit"]);
    assert_eq!(waiting, BTreeSet::from(["ansible", "e2e"]));
}

#[test]
fn a_table_that_is_short_or_out_of_order_is_noticed() {
    let of = |numbers: &[usize]| page(numbers.iter().map(|it| row(*it, &["a b"])).collect());
    assert_eq!(incomplete(&of(&[1, 2, 3])), None);
    assert_eq!(incomplete(&of(&[2])).as_deref(), Some("p.md lacks rows: 1, 3"));
    assert_eq!(found(of(&[1, 3]).rows), "");
    for numbers in [[2, 1], [1, 1]] {
        assert!(found(of(&numbers).rows).contains("it stands behind row"), "{numbers:?}");
    }
}

#[test]
fn a_test_stands_in_three_rows_at_most_over_all_tables() {
    let rows = |n| (1..=n).map(|it| row(it, &["a b", "a b"])).collect();
    assert_eq!(found(rows(3)), "");
    assert_eq!(found(rows(4)), "a b stands in 4 rows, more than 3");
    let both = faults(&[page(rows(2)), page(rows(2))], &|_| Ok(()));
    assert_eq!(both, ["a b stands in 4 rows, more than 3"]);
}

#[test]
fn a_row_needs_a_proof_and_a_quote() {
    assert_eq!(found(vec![row(1, &[])]), "p.md, row 1: nothing proves it");
    assert_eq!(found(vec![Row { types: vec![place()], ..row(1, &[]) }]), "");
    let unquoted = Row { said: "it is".into(), ..row(1, &["a b"]) };
    assert_eq!(found(vec![unquoted]), "p.md, row 1: it quotes nothing");
}

#[test]
fn a_row_of_a_rule_names_a_mutant_that_its_unit_tests_can_meet() {
    let mutant = Some(Mutant { place: place(), by: "y".into(), is_seen: true });
    let of = |rule: &str, mutant, test| Row { rule: Some(rule.into()), mutant, ..row(1, &[test]) };
    assert_eq!(found(vec![of("D1", mutant.clone(), "a b")]), "");
    assert!(found(vec![of("D1", None, "a b")]).contains("names no mutant"));
    assert!(found(vec![of("D2", mutant.clone(), "a b")]).contains("no rule with mutants"));
    assert!(found(vec![of("D1", mutant.clone(), "e2e a::b")]).contains("no unit test"));
    let rows = vec![of("D1", mutant, "a b")];
    let gone = faults(&[page(rows)], &|it| Err(format!("{} is gone", it.text)));
    assert_eq!(gone, ["p.md, row 1: x is gone"]);
}

#[test]
fn quotes_are_compared_word_for_word_without_marks_and_line_ends() {
    let of = |said: &str| page(vec![Row { said: said.into(), ..row(1, &["a b"]) }]);
    let specification = "The `Field` is\n  never set by\nthe operator.";
    assert!(misquotes(&[of("\"Field is never … operator\"")], specification).is_empty());
    let wrong = misquotes(&[of("\"Field is always\" and \"never set\"")], specification);
    assert_eq!(wrong, ["p.md, row 1: not a quote: Field is always"]);
}

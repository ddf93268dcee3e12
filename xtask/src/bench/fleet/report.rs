//! The figures of a measurement: as a table for people, and as JSON.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum as _;
use serde_json::{Value, json};

use super::Fleet;
use super::meter::Phase;
use crate::bench::audit::{n_requests, n_writes};
use crate::bench::process::{OPERATORS, Usage};

/// A figure in each phase; empty where there is none.
type Row = (String, Vec<String>);

/// Returns a table with a column for each phase.
pub(super) fn table(phases: &[Phase]) -> String {
    let mut rows = vec![(String::new(), phases.iter().map(|it| it.name.to_owned()).collect())];
    rows.extend(common(phases));
    for operator in OPERATORS {
        rows.extend(of_operator(operator, phases));
    }
    aligned(&rows)
}

/// Returns the rows that are about no single operator.
fn common(phases: &[Phase]) -> Vec<Row> {
    let mut rows = vec![row("time, s", phases, |it| it.seconds.map(tenths))];
    let objects: BTreeSet<&str> = phases.iter().flat_map(|it| it.ages.keys().copied()).collect();
    for resource in objects {
        let age = |it: &Phase| it.ages.get(resource).copied();
        rows.push(row(&format!("{resource}: first status after, s"), phases, |it| {
            age(it).map(|it| tenths(it.first()))
        }));
        rows.push(row(&format!("{resource}: longest without a new one, s"), phases, |it| {
            age(it).map(|it| tenths(it.longest()))
        }));
    }
    rows.push(row("writes, Events apart", phases, |it| {
        Some(OPERATORS.iter().map(|of| n_writes(&it.requests.of(of))).sum::<u64>().to_string())
    }));
    rows.push(row("writes, the least", phases, |it| it.least_writes.map(|it| it.to_string())));
    rows
}

/// Returns the rows about one operator.
fn of_operator(operator: &str, phases: &[Phase]) -> Vec<Row> {
    let usage = |it: &Phase, figure: fn(&Usage) -> String| {
        it.processes.iter().find(|it| it.name == operator).map(figure)
    };
    let counts: Vec<BTreeMap<String, u64>> =
        phases.iter().map(|it| it.requests.of(operator)).collect();
    let count = |name: &str, figure: &dyn Fn(&BTreeMap<String, u64>) -> u64| {
        (name.to_owned(), counts.iter().map(|it| figure(it).to_string()).collect())
    };
    let mut rows = vec![
        (operator.to_owned(), Vec::new()),
        row("  CPU, s", phases, |it| usage(it, |it| format!("{:.2}", it.cpu_seconds))),
        row("  RSS, MiB", phases, |it| usage(it, |it| tenths(it.rss_mib))),
        row("  peak RSS, MiB", phases, |it| usage(it, |it| tenths(it.peak_mib))),
        count("  requests, Leases apart", &n_requests),
        count("  writes, Events apart", &n_writes),
    ];
    // Lists and watches of the start are in the JSON alone.
    let kinds: BTreeSet<&String> = counts.iter().skip(1).flat_map(BTreeMap::keys).collect();
    rows.extend(kinds.into_iter().map(|kind| {
        count(&format!("    {kind}"), &|it| it.get(kind).copied().unwrap_or_default())
    }));
    rows
}

fn row(name: &str, phases: &[Phase], figure: impl Fn(&Phase) -> Option<String>) -> Row {
    (name.to_owned(), phases.iter().map(|it| figure(it).unwrap_or_default()).collect())
}

fn tenths(figure: f64) -> String {
    format!("{figure:.1}")
}

/// Returns the rows as lines, with names to the left and figures to the right of their columns.
fn aligned(rows: &[Row]) -> String {
    let n_columns = rows.iter().map(|it| it.1.len()).max().unwrap_or_default();
    let names = width(rows.iter().map(|it| &it.0));
    let column = |idx: usize| width(rows.iter().filter_map(|it| it.1.get(idx)));
    let widths: Vec<usize> = (0..n_columns).map(column).collect();
    let line = |(name, figures): &Row| {
        let mut line = format!("{name:names$}");
        for (figure, width) in figures.iter().zip(widths.iter().copied()) {
            line += &format!("  {figure:>width$}");
        }
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn width<'a>(texts: impl Iterator<Item = &'a String>) -> usize {
    texts.map(|it| it.chars().count()).max().unwrap_or_default()
}

/// Returns all figures as JSON.
pub(super) fn as_json(fleet: Fleet, phases: &[Phase]) -> Value {
    let phase = |it: &Phase| {
        let ages: BTreeMap<&str, Value> =
            it.ages.iter().map(|(resource, age)| (*resource, age.as_json())).collect();
        let operator = |name: &str| {
            let counts = it.requests.of(name);
            let mut figures = it
                .processes
                .iter()
                .find(|it| it.name == name)
                .map_or_else(|| json!({}), Usage::as_json);
            figures["requests"] = json!(n_requests(&counts));
            figures["writes"] = json!(n_writes(&counts));
            figures["byKind"] = json!(counts);
            figures
        };
        let operators = OPERATORS.map(|it| (it, operator(it)));
        json!({
            "name": it.name, "seconds": it.seconds, "leastWrites": it.least_writes,
            "statuses": ages, "operators": BTreeMap::from(operators),
        })
    };
    let road = fleet.road.to_possible_value().map(|it| it.get_name().to_owned());
    json!({
        "road": road, "nodes": fleet.nodes,
        "phases": phases.iter().map(phase).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Road;
    use super::*;

    fn phases() -> Vec<Phase> {
        let requests = [("patch", "secrets"), ("get", "secrets"), ("patch", "secrets")];
        let mut work = Phase::of("first", &requests);
        (work.seconds, work.least_writes) = (Some(12.34), Some(1));
        let name = "dataplane-operator".to_owned();
        let usage = Usage { name, rss_mib: 20.0, peak_mib: 21.3, cpu_seconds: 0.5 };
        work.processes = vec![usage];
        vec![Phase::of("start", &[("list", "jobs"), ("get", "secrets")]), work]
    }

    #[test]
    fn the_table_has_a_column_for_each_phase_and_a_row_for_each_kind_of_request() {
        let table = table(&phases());
        let (common, of_operator) = table.split_once("dataplane-operator\n").unwrap();
        for (text, row, figures) in [
            (common, "", &["start", "first"][..]),
            (common, "time, s", &["12.3"]),
            (common, "writes, Events apart", &["0", "2"]),
            (common, "writes, the least", &["1"]),
            (of_operator, "  CPU, s", &["0.50"]),
            (of_operator, "  peak RSS, MiB", &["21.3"]),
            (of_operator, "    patch secrets", &["0", "2"]),
            (of_operator, "    get secrets", &["1", "1"]),
        ] {
            let line = text.lines().find(|it| it.starts_with(row)).unwrap();
            assert_eq!(line[row.len()..].split_whitespace().collect::<Vec<_>>(), figures, "{row}");
        }
        assert!(!table.contains("list jobs"), "{table}");
    }

    #[test]
    fn figures_are_below_each_other() {
        let rows = [("", vec!["a", "long"]), ("bb", vec!["10", "1"]), ("c", Vec::new())];
        let rows =
            rows.map(|(name, it)| (name.to_owned(), it.into_iter().map(str::to_owned).collect()));
        assert_eq!(aligned(&rows), "     a  long\nbb  10     1\nc\n");
    }

    #[test]
    fn the_json_has_what_the_table_has() {
        let found = as_json(Fleet { road: Road::NodeSet, nodes: 7 }, &phases());
        assert_eq!((&found["road"], &found["nodes"]), (&json!("node-set"), &json!(7)));
        let work = &found["phases"][1];
        assert_eq!((&work["name"], &work["leastWrites"]), (&json!("first"), &json!(1)));
        let operator = &work["operators"]["dataplane-operator"];
        assert_eq!(operator["byKind"], json!({ "get secrets": 1, "patch secrets": 2 }));
        assert_eq!((&operator["requests"], &operator["writes"]), (&json!(3), &json!(2)));
        assert_eq!(operator["cpuSeconds"], json!(0.5));
        assert_eq!(work["operators"]["nova-operator"]["requests"], json!(0));
    }
}

//! The figures of a measurement: as Markdown tables for people and documents, and as JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Fleet;
use super::least::Writes;
use super::meter::Phase;
use crate::bench::audit::{n_requests, n_writes};
use crate::bench::process::{OPERATORS, Usage};

/// A figure in each phase; empty where there is none.
type Row = (String, Vec<String>);

/// Returns three tables: the figures of each phase, its requests by kind, and the least writes by name.
pub(super) fn markdown(fleet: Fleet, phases: &[Phase]) -> String {
    let head = (title(fleet), phases.iter().map(|it| it.name.clone()).collect());
    let with_head = |rows: Vec<Row>| table(&[vec![head.clone()], rows].concat());
    let mut figures = common(phases);
    figures.extend(OPERATORS.iter().flat_map(|it| of_operator(it, phases)));
    let kinds = OPERATORS.iter().flat_map(|it| kinds(it, phases)).collect();
    [with_head(figures), with_head(kinds), with_head(least(phases))].join("\n")
}

fn title(fleet: Fleet) -> String {
    let first = if fleet.nodes_first { ", nodes first" } else { "" };
    format!("{}, {} hosts{first}", fleet.road.name(), fleet.nodes)
}

/// Returns the rows that are about no single operator.
fn common(phases: &[Phase]) -> Vec<Row> {
    let mut rows = vec![
        row("time, s", phases, |it| it.seconds.map(tenths)),
        row("time until nothing was left to do, s", phases, |it| it.settled_seconds.map(tenths)),
    ];
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
    rows.push(row("writes, Events apart", phases, |it| Some(it.n_writes().to_string())));
    rows.push(row("writes, the least", phases, |it| Some(it.least_writes()?.to_string())));
    rows.push(row("writes, of the least", phases, |it| {
        let least = it.least_writes().filter(|it| *it > 0)?;
        Some(format!("{:.2}", ratio(it.n_writes(), least)))
    }));
    rows
}

/// Returns the rows about one operator.
fn of_operator(operator: &str, phases: &[Phase]) -> Vec<Row> {
    let usage = |it: &Phase, figure: fn(&Usage) -> String| {
        it.processes.iter().find(|it| it.name == operator).map(figure)
    };
    let name = |what: &str| format!("{operator}: {what}");
    let count = |what: &str, figure: fn(&BTreeMap<String, u64>) -> u64| {
        row(&name(what), phases, |it| Some(figure(&it.requests.of(operator)).to_string()))
    };
    vec![
        row(&name("CPU, s"), phases, |it| usage(it, |it| format!("{:.2}", it.cpu_seconds))),
        row(&name("RSS, MiB"), phases, |it| usage(it, |it| tenths(it.rss_mib))),
        row(&name("peak RSS, MiB"), phases, |it| usage(it, |it| tenths(it.peak_mib))),
        count("requests, Leases apart", n_requests),
        count("writes, Events apart", n_writes),
    ]
}

/// Returns a row for each kind of request of an operator. Lists and watches of the start are in the JSON
/// alone.
fn kinds(operator: &str, phases: &[Phase]) -> Vec<Row> {
    let counts: Vec<BTreeMap<String, u64>> =
        phases.iter().map(|it| it.requests.of(operator)).collect();
    let kinds: BTreeSet<&String> = counts.iter().skip(1).flat_map(BTreeMap::keys).collect();
    let figure =
        |kind: &String, it: &BTreeMap<String, u64>| it.get(kind).copied().unwrap_or_default();
    let row = |kind: &String| {
        let figures = counts.iter().map(|it| figure(kind, it).to_string()).collect();
        (format!("{operator}: {kind}"), figures)
    };
    kinds.into_iter().map(row).collect()
}

/// Returns a row for each name of least writes.
fn least(phases: &[Phase]) -> Vec<Row> {
    let all = || phases.iter().flat_map(|it| it.least.iter().flatten());
    let mut names: Vec<&str> = Vec::new();
    for Writes { what, .. } in all() {
        if !names.contains(what) {
            names.push(what);
        }
    }
    let of = |phase: &Phase, name: &str| {
        let mut found = phase.least.iter().flatten().filter(|it| it.what == name);
        found.next().map(|it| it.n.to_string())
    };
    names
        .into_iter()
        .map(|name| row(&format!("least: {name}"), phases, |it| of(it, name)))
        .collect()
}

fn row(name: &str, phases: &[Phase], figure: impl Fn(&Phase) -> Option<String>) -> Row {
    (name.to_owned(), phases.iter().map(|it| figure(it).unwrap_or_default()).collect())
}

fn tenths(figure: f64) -> String {
    format!("{figure:.1}")
}

/// Returns one figure divided by another one.
#[expect(clippy::cast_precision_loss, reason = "counts of requests are far below 2^52")]
pub(super) fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

/// Returns the rows as a Markdown table, with names to the left and figures to the right of their
/// columns; the first row is its head.
fn table(rows: &[Row]) -> String {
    let n_columns = rows.iter().map(|it| it.1.len()).max().unwrap_or_default();
    let names = width(rows.iter().map(|it| &it.0));
    let column = |idx: usize| width(rows.iter().filter_map(|it| it.1.get(idx))).max(2);
    let widths: Vec<usize> = (0..n_columns).map(column).collect();
    let line = |(name, figures): &Row| {
        let mut line = format!("| {name:names$} |");
        for (figure, width) in figures.iter().zip(widths.iter().copied()) {
            line += &format!(" {figure:>width$} |");
        }
        line + "\n"
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    let rule = |width: &usize| format!(" {}: |", "-".repeat(width - 1));
    let rules: String = widths.iter().map(rule).collect();
    lines.insert(1.min(lines.len()), format!("| {} |{rules}\n", "-".repeat(names)));
    lines.concat()
}

fn width<'a>(texts: impl Iterator<Item = &'a String>) -> usize {
    texts.map(|it| it.chars().count()).max().unwrap_or_default()
}

impl Phase {
    /// Returns the writes of all operators.
    pub(super) fn n_writes(&self) -> u64 {
        OPERATORS.iter().map(|of| n_writes(&self.requests.of(of))).sum()
    }

    /// Returns the processor time of all operators.
    pub(super) fn cpu_seconds(&self) -> f64 {
        self.processes.iter().map(|it| it.cpu_seconds).sum()
    }

    fn least_writes(&self) -> Option<u64> {
        Some(self.least.as_ref()?.iter().map(|it| it.n as u64).sum())
    }
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
        let least: Option<BTreeMap<&str, usize>> =
            it.least.as_ref().map(|it| it.iter().map(|it| (it.what, it.n)).collect());
        json!({
            "name": it.name, "seconds": it.seconds, "settledSeconds": it.settled_seconds,
            "leastWrites": least, "statuses": ages, "operators": BTreeMap::from(operators),
        })
    };
    json!({
        "road": fleet.road.name(), "nodes": fleet.nodes, "nodesFirst": fleet.nodes_first,
        "phases": phases.iter().map(phase).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Road;
    use super::*;

    const FLEET: Fleet = Fleet { road: Road::NodeSet, nodes: 7, nodes_first: false };

    fn phases() -> Vec<Phase> {
        let requests = [("patch", "secrets"), ("get", "secrets"), ("patch", "secrets")];
        let mut work = Phase::of("first", &requests);
        (work.seconds, work.settled_seconds) = (Some(12.34), Some(15.0));
        work.least = Some(vec![Writes { what: "nodes", n: 1 }]);
        let name = "dataplane-operator".to_owned();
        let usage = Usage { name, pid: 7, rss_mib: 20.0, peak_mib: 21.3, cpu_seconds: 0.5 };
        work.processes = vec![usage];
        vec![Phase::of("start", &[("list", "jobs"), ("get", "secrets")]), work]
    }

    #[test]
    fn the_tables_have_a_column_for_each_phase_and_a_row_for_each_figure() {
        let text = markdown(FLEET, &phases());
        for (name, figures) in [
            ("node-set, 7 hosts", ["start", "first"]),
            ("time, s", ["", "12.3"]),
            ("time until nothing was left to do, s", ["", "15.0"]),
            ("writes, Events apart", ["0", "2"]),
            ("writes, the least", ["", "1"]),
            ("writes, of the least", ["", "2.00"]),
            ("dataplane-operator: CPU, s", ["", "0.50"]),
            ("dataplane-operator: peak RSS, MiB", ["", "21.3"]),
            ("dataplane-operator: patch secrets", ["0", "2"]),
            ("dataplane-operator: get secrets", ["1", "1"]),
            ("least: nodes", ["", "1"]),
        ] {
            let cells = |line: &str| {
                let cells = line.trim_matches('|').split('|');
                cells.map(|it| it.trim().to_owned()).collect::<Vec<_>>()
            };
            let mut lines = text.lines().map(cells);
            let found = lines.find(|it| it[0] == name).unwrap();
            assert_eq!(found[1..], figures, "{name}");
        }
        assert!(!text.contains("list jobs"), "{text}");
    }

    #[test]
    fn a_table_is_markdown_with_figures_below_each_other() {
        let rows = [("", vec!["a", "long"]), ("bb", vec!["10", "1"])];
        let rows =
            rows.map(|(name, it)| (name.to_owned(), it.into_iter().map(str::to_owned).collect()));
        assert_eq!(table(&rows), "|    |  a | long |\n| -- | -: | ---: |\n| bb | 10 |    1 |\n");
    }

    #[test]
    fn the_json_has_what_the_tables_have() {
        let found = as_json(FLEET, &phases());
        assert_eq!((&found["road"], &found["nodes"]), (&json!("node-set"), &json!(7)));
        let work = &found["phases"][1];
        assert_eq!(work["name"], json!("first"));
        assert_eq!(work["leastWrites"], json!({ "nodes": 1 }));
        let operator = &work["operators"]["dataplane-operator"];
        assert_eq!(operator["byKind"], json!({ "get secrets": 1, "patch secrets": 2 }));
        assert_eq!((&operator["requests"], &operator["writes"]), (&json!(3), &json!(2)));
        assert_eq!(operator["cpuSeconds"], json!(0.5));
        assert_eq!(work["operators"]["nova-operator"]["requests"], json!(0));
    }
}

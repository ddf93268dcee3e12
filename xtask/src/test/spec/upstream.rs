//! The table that compares with upstream field by field: each row says that this project is the
//! same, or better and how, both with tests, or not yet and why.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::table;
use crate::{paths, yaml};

/// The page, from the root of the repository.
pub(super) const FILE: &str = "docs/upstream.md";

/// The kinds whose fields each need a row, with their names in the page.
const KINDS: [(&str, &str); 3] = [
    ("OpenStackDataPlaneNodeSet", "NodeSet"),
    ("OpenStackDataPlaneDeployment", "Deployment"),
    ("OpenStackDataPlaneService", "Service"),
];

/// Fields that upstream does not have.
const OURS: [&str; 22] = [
    "Deployment.spec.maxUnavailable",
    "Deployment.spec.pauseOnFailure",
    "Deployment.status.failures",
    "Deployment.status.nodeSets",
    "NodeSet.status.certificates",
    "NodeSet.status.deployedInputs",
    "NodeSet.status.failures",
    "NodeSet.status.hosts",
    "NodeSet.status.inputs",
    "NodeSet.status.machines",
    "NodeSet.status.nodes",
    "NodeSet.status.readyNodes",
    "NodeSet.status.settledDeployments",
    "Service.spec.configMaps",
    "Service.spec.factVariables",
    "Service.spec.label",
    "Service.spec.play",
    "Service.spec.auditPlaybook",
    "Service.spec.readinessGates",
    "Service.spec.secrets",
    "Service.spec.services",
    "Service.status.observedGeneration",
];

/// The result of the comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    Same,
    Better,
    NotYet,
}

/// One row of the page.
#[derive(Clone, Debug)]
pub(super) struct Row {
    number: usize,
    /// The fields that it covers, as `NodeSet.spec.nodes`.
    fields: Vec<String>,
    verdict: Verdict,
    how: String,
    tests: Vec<String>,
}

impl Row {
    /// Converts the row to one whose tests can be checked.
    pub(super) fn judged(&self) -> table::Row {
        table::Row { number: self.number, tests: self.tests.clone(), ..table::Row::default() }
    }
}

/// Reads the rows of the docs.
pub(super) fn read() -> Result<Vec<Row>> {
    rows(&fs::read_to_string(paths::repo().join(FILE)).context(FILE)?).context(FILE)
}

/// Parses the rows of all tables of the page: the lines whose first cell is a number.
fn rows(page: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in page.lines().filter(|it| it.starts_with('|')) {
        let cells = table::cells(line);
        let Some(Ok(number)) = cells.first().map(|it| it.parse()) else { continue };
        rows.push(row(number, &cells).with_context(|| format!("row {number}"))?);
    }
    Ok(rows)
}

fn row(number: usize, cells: &[String]) -> Result<Row> {
    let [_, said, verdict, how, tests] = cells else {
        bail!("{} cells instead of five", cells.len());
    };
    let verdict = match verdict.as_str() {
        "same" => Verdict::Same,
        "better" => Verdict::Better,
        "not yet" => Verdict::NotYet,
        other => bail!("{other:?} is neither same nor better nor not yet"),
    };
    let is_field = |it: &String| KINDS.iter().any(|(_, kind)| it.starts_with(&format!("{kind}.s")));
    let fields = table::codes(said).into_iter().filter(is_field).collect();
    Ok(Row { number, fields, verdict, how: how.clone(), tests: table::codes(tests) })
}

/// Returns the fields of the kinds according to their CRDs.
///
/// # Assumptions
///
/// The generated files are current; another test checks that.
pub(super) fn defined() -> Result<BTreeSet<String>> {
    let mut fields = BTreeSet::new();
    for entry in fs::read_dir(paths::repo().join("crds")).context("the definitions")? {
        let value = yaml::value(&fs::read_to_string(entry?.path())?)?;
        let found = KINDS.iter().find(|it| value["spec"]["names"]["kind"] == it.0);
        let Some((_, kind)) = found else { continue };
        for part in ["spec", "status"] {
            let path = "/spec/versions/0/schema/openAPIV3Schema/properties";
            let part_of = value.pointer(&format!("{path}/{part}/properties"));
            let names =
                part_of.and_then(Value::as_object).into_iter().flat_map(serde_json::Map::keys);
            fields.extend(names.map(|it| format!("{kind}.{part}.{it}")));
        }
    }
    Ok(fields)
}

/// Returns the errors of the rows that need no report; `have` says whether a test exists in the
/// sources.
pub(super) fn faults(
    rows: &[Row],
    defined: &BTreeSet<String>,
    have: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (idx, row) in rows.iter().enumerate() {
        let mut of_row = Vec::new();
        if row.number != idx + 1 {
            of_row.push(format!("it is the {}. row", idx + 1));
        }
        match (row.verdict, row.tests.is_empty()) {
            (Verdict::Same | Verdict::Better, true) => of_row.push("nothing proves it".to_owned()),
            (Verdict::NotYet, false) => of_row.push("it names tests of what is not there".into()),
            (Verdict::Same | Verdict::Better, false) | (Verdict::NotYet, true) => {}
        }
        if row.verdict != Verdict::Same && row.how.is_empty() {
            of_row.push("it does not say how, or why not".to_owned());
        }
        of_row.extend(row.tests.iter().filter(|it| !have(it)).map(|it| format!("no test {it}")));
        let is_claimed = row.verdict != Verdict::NotYet;
        let absent = row.fields.iter().filter(|it| is_claimed && !defined.contains(*it));
        of_row.extend(absent.map(|it| format!("no definition has {it}")));
        faults.extend(of_row.into_iter().map(|it| format!("{FILE}, row {}: {it}", row.number)));
    }
    let named: BTreeSet<&str> = rows.iter().flat_map(|it| &it.fields).map(String::as_str).collect();
    let is_named = |it: &&String| named.contains(it.as_str()) || OURS.contains(&it.as_str());
    faults.extend(defined.iter().filter(|it| !is_named(it)).map(|it| format!("{FILE} lacks {it}")));
    faults
}

#[cfg(test)]
mod tests {
    use super::super::written::Sources;
    use super::*;

    #[test]
    fn every_field_of_upstream_has_its_row_and_every_claim_its_test() {
        let sources = Sources::read().unwrap();
        let faults = faults(&read().unwrap(), &defined().unwrap(), |it| sources.have(it));
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn fields_of_ours_are_those_that_exist() {
        let defined = defined().unwrap();
        let gone: Vec<&&str> = OURS.iter().filter(|it| !defined.contains(**it)).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }

    #[test]
    fn a_row_that_claims_too_much_is_named() {
        let defined = BTreeSet::from(["NodeSet.spec.a".to_owned()]);
        let of = |line: &str| {
            let rows =
                rows(&format!("| 1 | `NodeSet.spec.a` | same | | `c a::b` |\n{line}")).unwrap();
            faults(&rows, &defined, |it| it == "c a::b").join("; ")
        };
        assert_eq!(of(""), "");
        assert_eq!(of("| 2 | x | better | So. | `c a::b` |"), "");
        assert_eq!(of("| 2 | x | not yet | Because. | |"), "");
        for (line, expected) in [
            ("| 2 | x | same | | |", "nothing proves it"),
            ("| 2 | x | better | | `c a::b` |", "does not say how"),
            ("| 2 | x | not yet | | |", "why not"),
            ("| 2 | x | not yet | Because. | `c a::b` |", "tests of what is not there"),
            ("| 3 | x | same | | `c a::b` |", "it is the 2. row"),
            ("| 2 | x | same | | `c a::gone` |", "no test c a::gone"),
            ("| 2 | `NodeSet.spec.b` | same | | `c a::b` |", "no definition has NodeSet.spec.b"),
        ] {
            assert!(of(line).contains(expected), "{line}: {}", of(line));
        }
        let lacking = faults(&[], &defined, |_| true);
        assert_eq!(lacking, ["docs/upstream.md lacks NodeSet.spec.a"]);
        assert!(rows("| 1 | x | perhaps | | |").is_err());
    }
}

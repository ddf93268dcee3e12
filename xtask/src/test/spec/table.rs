//! Parses the tables in the docs that name, for each requirement, what proves it.

use anyhow::{Context, Result, bail, ensure};

/// The mark of a mutant that has not been caught in a run yet.
const TO_BE_SEEN: &str = "(to be seen)";
/// The prefix of types and schemas that make a mistake impossible.
const CANNOT_HAPPEN: &str = "cannot happen:";

/// One requirement or mistake, and its proofs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Row {
    /// Its number in the table, from 1.
    pub(crate) number: usize,
    /// The quoted specification, or the mistake elsewhere.
    pub(crate) said: String,
    /// The rule that it belongs to, if it is one with mutants.
    pub(crate) rule: Option<String>,
    /// The tests, by their names in the report.
    pub(crate) tests: Vec<String>,
    /// The types and schemas that prevent it.
    pub(crate) types: Vec<Place>,
    /// A change of the code that the tests catch.
    pub(crate) mutant: Option<Mutant>,
}

/// A text in a file of the repository.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    /// The file, from the root of the repository.
    pub(crate) file: String,
    /// The text.
    pub(crate) text: String,
}

/// A change of one line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Mutant {
    /// The text to replace.
    pub(crate) place: Place,
    /// The replacement.
    pub(crate) by: String,
    /// Whether a test has caught it in a run.
    pub(crate) is_seen: bool,
}

/// Parses the rows of all tables of a page: the lines whose first cell is a number.
pub(crate) fn rows(page: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in page.lines().filter(|it| it.starts_with('|')) {
        let cells = cells(line);
        let Some(Ok(number)) = cells.first().map(|it| it.parse()) else { continue };
        rows.push(row(number, &cells).with_context(|| format!("row {number}"))?);
    }
    Ok(rows)
}

fn row(number: usize, cells: &[String]) -> Result<Row> {
    let [_, said, _, rule, proof, mutant] = cells else {
        bail!("{} cells instead of six", cells.len());
    };
    let (tests, types) = proof.split_once(CANNOT_HAPPEN).unwrap_or((proof, ""));
    let types = codes(types);
    ensure!(types.len().is_multiple_of(2), "after '{CANNOT_HAPPEN}', a file and what stands there");
    Ok(Row {
        number,
        said: said.clone(),
        rule: Some(rule.clone()).filter(|it| !it.is_empty()),
        tests: codes(tests),
        types: types
            .chunks_exact(2)
            .map(|it| Place { file: it[0].clone(), text: it[1].clone() })
            .collect(),
        mutant: mutant_of(mutant)?,
    })
}

fn mutant_of(cell: &str) -> Result<Option<Mutant>> {
    if cell.is_empty() {
        return Ok(None);
    }
    let [file, text, by] =
        codes(cell).try_into().ok().context("a mutant: `file`: `old` → `new`")?;
    let place = Place { file, text };
    Ok(Some(Mutant { place, by, is_seen: !cell.contains(TO_BE_SEEN) }))
}

/// Returns the cells of a line, trimmed; `\|` is a literal bar.
pub(super) fn cells(line: &str) -> Vec<String> {
    const BAR: &str = "\u{1}";
    let line = line.trim().replace(r"\|", BAR);
    let inner = line.trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|it| it.trim().replace(BAR, "|")).collect()
}

/// Returns the texts between backticks.
pub(super) fn codes(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, text: &str) -> Place {
        Place { file: file.into(), text: text.into() }
    }

    #[test]
    fn a_row_is_read_with_its_tests_and_its_mutant() {
        let page = r#"
| No. | Said | Held | Rule | Tests | Mutant |
| --- | --- | --- | --- | --- | --- |
| 1 | "it is" | So. | D1 | `a b::c`, `e2e d::e` | `f.rs`: `x \|\| y` → `x` (to be seen) |
| 2 | "is it" | | | `a b::d`; cannot happen: `g.rs`: `Option<bool>` | |
"#;
        let mutant = Mutant { place: place("f.rs", "x || y"), by: "x".into(), is_seen: false };
        let first = Row {
            number: 1,
            said: "\"it is\"".into(),
            rule: Some("D1".into()),
            tests: vec!["a b::c".into(), "e2e d::e".into()],
            mutant: Some(mutant),
            ..Row::default()
        };
        let second = Row {
            number: 2,
            said: "\"is it\"".into(),
            tests: vec!["a b::d".into()],
            types: vec![place("g.rs", "Option<bool>")],
            ..Row::default()
        };
        assert_eq!(rows(page).unwrap(), [first, second]);
    }

    #[test]
    fn a_row_that_cannot_be_read_is_named() {
        for (line, cause) in [
            ("| 7 | a | b |", "3 cells"),
            ("| 7 | a | | | | `f`: `x` |", "a mutant"),
            ("| 7 | a | | | cannot happen: `f` | |", "a file and what stands there"),
        ] {
            let error = format!("{:#}", rows(line).unwrap_err());
            assert!(error.contains("row 7") && error.contains(cause), "{error}");
        }
    }
}

//! Transcripts of faults, without parts that differ in each run.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::faults::Fault;

/// The placeholder for a test's namespace in words and transcripts.
pub const NAMESPACE: &str = "NAMESPACE";

/// Whether a character fits a letter of a shape: `d` for a digit, `x` for a hex digit, `w` for a
/// digit or lower-case letter, else itself.
fn fits(shape: char, letter: char) -> bool {
    match shape {
        'd' => letter.is_ascii_digit(),
        'x' => letter.is_ascii_digit() || ('a'..='f').contains(&letter),
        'w' => letter.is_ascii_digit() || letter.is_ascii_lowercase(),
        _ => shape == letter,
    }
}

/// Replaces each word of a shape.
fn replaced(text: &str, shape: &str, by: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length: usize = shape.len();
        let is_here = rest.is_char_boundary(length.min(rest.len()))
            && rest.len() >= length
            && shape.chars().zip(rest.chars()).all(|(shape, letter)| fits(shape, letter))
            && !rest[length..].starts_with(|it: char| it.is_ascii_alphanumeric());
        let (taken, written) =
            if is_here { (length, by) } else { (first.len_utf8(), &rest[..first.len_utf8()]) };
        result.push_str(written);
        rest = &rest[taken..];
    }
    result
}

/// Replaces times, identifiers and generated parts of names.
pub fn normalised(text: &str, namespace: &str) -> String {
    let text = text.replace(namespace, NAMESPACE);
    let text = replaced(&text, "dddd-dd-ddTdd:dd:ddZ", "TIME");
    let text = replaced(&text, "dddd-dd-dd dd:dd:dd UTC", "TIME");
    let text = replaced(&text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "UID");
    // Names of runs, Jobs and pods.
    let text = replaced(&text, "-xxxxxxxxxx", "-HASH");
    aligned(&uncounted(&replaced(&text, "-HASH-wwwww", "-HASH-POD")))
}

/// Aligns the fields of conditions with each other: kubectl aligns them with fields of the status that no
/// transcript shows, and that may be there or not.
fn aligned(text: &str) -> String {
    let width = text.lines().filter_map(field).map(|(name, _)| name.len()).max().unwrap_or(0);
    let aligned = |line| match field(line) {
        Some((name, value)) => format!("    {name:width$}  {value}\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(aligned).collect()
}

/// Returns the name, with its colon, and the value of a condition's field.
fn field(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("    ")?;
    let (name, value) = line.split_at(line.find(':')? + 1);
    let is_name = name.starts_with(|it: char| it.is_ascii_uppercase());
    is_name.then_some((name, value.trim_start()))
}

/// Replaces how many objects a quota has counted: it takes notice of a deletion only after a while.
fn uncounted(text: &str) -> String {
    let mut parts = text.split("used: count/");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once('=') {
        Some((resource, rest)) => {
            let rest = rest.trim_start_matches(|it: char| it.is_ascii_digit());
            format!("{text}used: count/{resource}=COUNT{rest}")
        }
        None => format!("{text}used: count/{part}"),
    })
}

/// Writes the transcript of a fault to the file that `cargo xtask codegen` reads.
pub fn keep(fault: &Fault, text: &str) -> Result<()> {
    let file = file(fault);
    file.parent().map(std::fs::create_dir_all).transpose()?;
    std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
}

/// Asserts that docs/faults.md contains the transcript of a fault verbatim.
pub fn compare(fault: &Fault, text: &str) -> Result<()> {
    let docs = include_str!("../../docs/faults.md");
    let head = format!("### {}\n", fault.name);
    let (_, section) = docs.split_once(&head).context("docs/faults.md lacks the fault")?;
    let (_, shown) = section.split_once("```text\n").context("no transcript in docs/faults.md")?;
    let shown = shown.split("```").next().unwrap_or_default();
    ensure!(
        shown.trim_end() == text.trim_end(),
        "docs/faults.md shows another transcript (cargo xtask codegen makes it anew):\n{shown}\nnow:\n{text}"
    );
    Ok(())
}

/// Removes the transcript that an earlier run has left.
pub fn forget(fault: &Fault) {
    // Usually there is none.
    let _ = std::fs::remove_file(file(fault));
}

fn file(fault: &Fault) -> PathBuf {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/diagnosis"));
    folder.join(format!("{}.txt", fault.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_another_in_each_run_is_named_by_its_meaning() {
        let cases = [
            ("-n e2e-fault-x run", "-n NAMESPACE run"),
            ("since 2026-01-01T00:00:09Z.", "since TIME."),
            ("since 2026-01-01 00:00:09 UTC.", "since TIME."),
            ("2026-01-01T00:00:09Zulu", "2026-01-01T00:00:09Zulu"),
            ("uid 01234567-89ab-cdef-0123-456789abcdef", "uid UID"),
            ("Job run-0123456789 (", "Job run-HASH ("),
            ("logs run-0123456789-x7k2p", "logs run-HASH-POD"),
            ("AnsibleEE noop-compute-0123abcdef.", "AnsibleEE noop-compute-HASH."),
            ("SHA256-0123456789a", "SHA256-0123456789a"),
            (
                "used: count/pods=12, limited: count/pods=0",
                "used: count/pods=COUNT, limited: count/pods=0",
            ),
            ("… übrig-0123456789", "… übrig-HASH"),
        ];
        for (text, expected) in cases {
            assert_eq!(normalised(text, "e2e-fault-x"), format!("{expected}\n"));
        }
    }

    #[test]
    fn fields_of_conditions_are_aligned_with_each_other_alone() {
        let text = "Conditions:\n    Message:      a: b\n    Last Seen:    c\nEvents:\n  X  y\n";
        let expected = "Conditions:\n    Message:    a: b\n    Last Seen:  c\nEvents:\n  X  y\n";
        assert_eq!(normalised(text, "e2e-fault-x"), expected);
    }
}

//! Terminal colours, and tables whose column widths ignore colour codes.

use std::io::Write as _;

use api::conditions::{Condition, ConditionStatus, Severity};
use tabwriter::TabWriter;

/// Whether output is coloured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint {
    is_on: bool,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tone {
    /// A good state.
    Good,
    /// In progress; no action is needed.
    Busy,
    /// A warning that the user should know of.
    Warn,
    /// A failure that needs action by the user.
    Bad,
    /// Secondary text.
    Dim,
    /// Emphasised text.
    Bold,
}

impl Tone {
    /// Returns the tone of a condition. A false condition without a severity is good.
    pub fn of(condition: &Condition) -> Self {
        match (condition.status, condition.severity) {
            (ConditionStatus::True, _) | (ConditionStatus::False, None) => Self::Good,
            (ConditionStatus::False, Some(Severity::Error)) => Self::Bad,
            (ConditionStatus::False, Some(Severity::Warning)) | (ConditionStatus::Unknown, _) => {
                Self::Warn
            }
            (ConditionStatus::False, Some(Severity::Info)) => Self::Busy,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Busy => "36",
            Self::Warn => "33",
            Self::Bad => "31",
            Self::Dim => "2",
            Self::Bold => "1",
        }
    }
}

impl Paint {
    /// Creates a painter with colours on or off.
    pub fn new(is_on: bool) -> Self {
        Self { is_on }
    }

    /// Returns the text in the colour of the tone, or unchanged when colours are off or it is
    /// empty.
    pub fn text(self, tone: Tone, text: &str) -> String {
        if self.is_on && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", tone.code())
        } else {
            text.to_owned()
        }
    }
}

/// Renders rows of cells as columns, three spaces apart as in kubectl, without trailing spaces.
pub fn table(lines: &[Vec<String>]) -> String {
    let mut writer = TabWriter::new(Vec::new()).padding(3).minwidth(0).ansi(true);
    for line in lines {
        // A tab or a line break in a cell would begin another cell.
        let cells: Vec<String> = line.iter().map(|it| it.replace(['\t', '\n'], " ")).collect();
        writeln!(writer, "{}", cells.join("\t")).expect("a vector takes every text");
    }
    let bytes = writer.into_inner().expect("a vector takes every text");
    let text = String::from_utf8(bytes).expect("what was written is text");
    text.lines().flat_map(|it| [it.trim_end(), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_do_not_move_columns() {
        let lines = |paint: Paint| {
            vec![
                vec!["NODE".to_owned(), "READY".to_owned(), "AGE".to_owned()],
                vec!["n0".to_owned(), paint.text(Tone::Good, "True"), "3d".to_owned()],
            ]
        };
        let plain = table(&lines(Paint::new(false)));
        assert_eq!(plain, "NODE   READY   AGE\nn0     True    3d\n");
        let painted = table(&lines(Paint::new(true)));
        assert_ne!(painted, plain);
        assert_eq!(painted.replace("\u{1b}[32m", "").replace("\u{1b}[0m", ""), plain);
    }

    #[test]
    fn a_tab_in_a_message_is_no_column() {
        let lines = vec![vec!["a\tb".to_owned(), "c".to_owned()]];
        assert_eq!(table(&lines), "a b   c\n");
    }
}

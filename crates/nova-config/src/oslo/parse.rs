//! The parser, its entries, and its errors. It never stops at an error, so that one bad line does
//! not hide the next.

/// The longest text that is parsed, in bytes; a longer one is an error. No annotation of kubectl
/// can hold more, and no compute's options come near it.
pub const LONGEST_TEXT: usize = 256 * 1024;

/// The longest name of a section, in bytes, because each of its entries repeats it.
const LONGEST_SECTION: usize = 128;

/// One option of a file; a repeated key gives one entry per occurrence, as a `MultiOpt` reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The section's name as written, without its brackets.
    pub section: String,
    /// The option's name.
    pub key: String,
    /// The value, without a pair of quotes around it; continuation lines are joined by `\n`.
    pub value: String,
    /// The line of the key, from 1.
    pub line: usize,
    /// The column of the key in characters, from 1.
    pub column: usize,
}

/// One position where oslo.config would reject the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub reason: Reason,
}

/// Why oslo.config rejects a line, or why the line is not passed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Neither `=` nor `:` in a line that is not a header, a comment or a continuation.
    NoAssignment,
    /// Nothing before the `=` or `:`.
    EmptyKey,
    /// An indented line with no option above it.
    UnexpectedContinuation,
    /// A line that begins with `[` and does not end with `]`.
    UnclosedSection,
    /// `[]`.
    EmptySection,
    /// An option above the first section header.
    NoSection,
    /// A section name that is longer than any known one.
    LongSection,
    /// The whole text is longer than [`LONGEST_TEXT`].
    LongText,
}

impl Reason {
    /// Returns the cause and the correction, as text for the user.
    pub fn message(self) -> &'static str {
        match self {
            Self::NoAssignment => {
                "this line has neither '=' nor ':'; write `option = value`, start the line with \
                 '#' to make it a comment, or indent it to continue the value above"
            }
            Self::EmptyKey => "the option has no name; write `option = value`",
            Self::UnexpectedContinuation => {
                "this line is indented, which continues the value above, but no value is open \
                 there (a blank line, a comment or a section header ends it); remove the spaces \
                 at its beginning"
            }
            Self::UnclosedSection => {
                "a section header must end with ']', and nothing may follow it; move what follows \
                 to a line of its own"
            }
            Self::EmptySection => {
                "the section header is empty; name the section, as in `[libvirt]`"
            }
            Self::NoSection => {
                "this option stands above the first section header; put a header such as \
                 `[DEFAULT]` above it"
            }
            Self::LongSection => "the section's name is longer than 128 bytes; shorten it",
            Self::LongText => {
                "the text is longer than 256 KiB and is not read; write only the options that \
                 differ from the defaults"
            }
        }
    }
}

/// Parses a whole file; the entries are what oslo.config would read without the faulty lines.
///
/// A text that is too long gives no entries and one error.
pub fn parse(text: &str) -> (Vec<Entry>, Vec<SyntaxError>) {
    if text.len() > LONGEST_TEXT {
        return (vec![], vec![SyntaxError { line: 1, column: 1, reason: Reason::LongText }]);
    }
    let mut reader = Reader::default();
    // Python opens the file with universal newlines.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    for (line_idx, line) in text.split('\n').enumerate() {
        reader.line(line_idx + 1, line.trim_end_matches(is_space));
    }
    reader.flush();
    (reader.entries, reader.errors)
}

/// Whether Python's `str.strip` removes the character: Unicode white space and four ASCII
/// separators.
pub(super) fn is_space(it: char) -> bool {
    it.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&it)
}

/// The section of the lines that follow.
#[derive(Default)]
enum Section {
    /// No header yet.
    #[default]
    None,
    /// Below this header.
    Named(String),
    /// Below a header that could not be parsed, or whose absence was already reported.
    Lost,
}

/// An option whose value may continue in the next line.
struct Open {
    key: String,
    value: Vec<String>,
    line: usize,
    column: usize,
}

#[derive(Default)]
struct Reader {
    section: Section,
    open: Option<Open>,
    entries: Vec<Entry>,
    errors: Vec<SyntaxError>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) {
        if line.is_empty() {
            return self.flush();
        }
        if line.starts_with([' ', '\t']) {
            return self.continuation(number, line);
        }
        self.flush();
        match line.chars().next() {
            Some('[') => self.header(number, line),
            Some('#' | ';') => {}
            _ => self.assignment(number, line),
        }
    }

    fn continuation(&mut self, number: usize, line: &str) {
        let content = line.trim_start_matches(is_space);
        if let Some(open) = &mut self.open {
            open.value.push(content.to_owned());
        } else {
            let indent = line.chars().count() - content.chars().count();
            self.error(number, indent + 1, Reason::UnexpectedContinuation);
        }
    }

    fn header(&mut self, number: usize, line: &str) {
        let name = line.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        self.section = match name {
            Some("") => {
                self.error(number, 1, Reason::EmptySection);
                Section::Lost
            }
            Some(name) if name.len() > LONGEST_SECTION => {
                self.error(number, 2, Reason::LongSection);
                Section::Lost
            }
            Some(name) => Section::Named(name.to_owned()),
            None => {
                self.error(number, after_bracket(line), Reason::UnclosedSection);
                Section::Lost
            }
        };
    }

    fn assignment(&mut self, number: usize, line: &str) {
        let Some((key, value)) = line.split_once(['=', ':']) else {
            return self.error(number, 1, Reason::NoAssignment);
        };
        let column = key.chars().take_while(|it| is_space(*it)).count() + 1;
        let key = key.trim_matches(is_space);
        if key.is_empty() {
            return self.error(number, 1, Reason::EmptyKey);
        }
        let value = unquoted(value.trim_matches(is_space)).to_owned();
        self.open = Some(Open { key: key.to_owned(), value: vec![value], line: number, column });
    }

    fn flush(&mut self) {
        let Some(Open { key, value, line, column }) = self.open.take() else { return };
        match &self.section {
            Section::Named(section) => {
                let (section, value) = (section.clone(), value.join("\n"));
                self.entries.push(Entry { section, key, value, line, column });
            }
            Section::None => {
                // Reported once: one header corrects every option above the first header.
                self.section = Section::Lost;
                self.error(line, column, Reason::NoSection);
            }
            Section::Lost => {}
        }
    }

    fn error(&mut self, line: usize, column: usize, reason: Reason) {
        self.errors.push(SyntaxError { line, column, reason });
    }
}

/// Returns the column behind a header's bracket, or where the bracket is missing.
fn after_bracket(line: &str) -> usize {
    let read = line.find(']').map_or(line, |at| &line[..=at]);
    read.chars().count() + 1
}

/// Removes a pair of quotes; a lone quote counts as a pair, as in oslo.config.
fn unquoted(value: &str) -> &str {
    let Some(quote @ ('"' | '\'')) = value.chars().next() else { return value };
    match value[1..].strip_suffix(quote) {
        Some(inner) => inner,
        None if value.len() == 1 => "",
        None => value,
    }
}

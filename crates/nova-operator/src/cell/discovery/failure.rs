//! The line about a failed discovery: what nova-manage printed last, without what may be secret.

use api::conditions::{one_line, printable};

/// Maximum length of the line, in bytes.
const LIMIT: usize = 300;
/// Maximum length of the Job controller's own words, in bytes.
const WORDS_LIMIT: usize = 200;
/// What stands in place of a login.
const HIDDEN: &str = "***";

/// Returns the last line of a termination message, or the exception of its traceback: bounded, and
/// without logins and lines of the configuration. `None` when the message has no line.
pub fn last_line(message: &str) -> Option<String> {
    let printed = printable(message);
    let lines: Vec<&str> = printed.lines().filter(|it| !it.trim().is_empty()).collect();
    let line = exception(&lines).or_else(|| lines.last().copied())?;
    let words: Vec<String> = without_configuration(line).split_whitespace().map(masked).collect();
    Some(one_line(&words.join(" "), LIMIT))
}

/// Returns why a Job failed: the last line of its termination message, else the words of the Job
/// controller, bounded likewise.
pub fn cause(message: Option<&str>, words: &str) -> String {
    message.and_then(last_line).unwrap_or_else(|| one_line(words, WORDS_LIMIT))
}

/// Returns the line that names the exception of the last traceback: a failed query follows it.
/// `None` when there is no traceback.
fn exception<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let frame = lines.iter().rposition(|it| it.starts_with("  File "))?;
    lines[frame..].iter().find(|it| !it.starts_with(' ')).copied()
}

/// Returns a line up to the quoted line of a file that oslo.config cannot read: it may be a password
/// on a line without `=`.
fn without_configuration(line: &str) -> &str {
    if !line.contains("Failed to parse ") {
        return line;
    }
    let end = [": '", ": \""].iter().filter_map(|it| line.find(it)).min();
    &line[..end.unwrap_or(line.len())]
}

/// Returns a word without the login of a URL, which ends at the last `@`.
fn masked(word: &str) -> String {
    word.rsplit_once('@').map_or_else(|| word.to_owned(), |(_, rest)| format!("{HIDDEN}@{rest}"))
}

//! Values that oslo.config reads otherwise than they look: comments and options that it takes for a
//! part of a value, and quotes that stay.

use super::parse::Entry;

/// What is looked for in a value, and what is said of it.
type Check = (fn(&str) -> bool, &'static str);

/// Returns how the value of an entry is read otherwise than it looks.
pub(super) fn differences(entry: &Entry) -> Vec<&'static str> {
    let checks: [Check; 3] = [
        (
            has_comment,
            "has a comment that belongs to its value: put comments on lines of their own that begin \
             with #",
        ),
        (
            has_header,
            "has an indented section header, which is a part of its value: remove the spaces at the \
             beginning of that line",
        ),
        (
            has_odd_quotes,
            "has quotes that belong to its value: oslo.config removes one pair around the whole \
             value, so write it without quotes",
        ),
    ];
    checks.into_iter().filter(|(it, _)| it(&entry.value)).map(|(_, text)| text).collect()
}

/// Returns the lines of a value that look like options of their own, each with its name: they are
/// indented, and so continue the value.
pub(super) fn indented_options(entry: &Entry) -> impl Iterator<Item = (usize, &str)> {
    let lines = (entry.line..).zip(entry.value.split('\n')).skip(1);
    lines.filter_map(|(number, line)| Some((number, line.split_once('=')?.0.trim_end())))
}

fn has_comment(value: &str) -> bool {
    let is_comment = |(idx, line): (usize, &str)| {
        let begins = line.starts_with(['#', ';']);
        let follows = [" #", "\t#", " ; "].iter().any(|it| line.contains(it));
        // A value may begin with such a letter, but hardly with one that stands alone.
        follows || (begins && (idx > 0 || line[1..].starts_with(' ')))
    };
    value.split('\n').enumerate().any(is_comment)
}

fn has_header(value: &str) -> bool {
    let is_header = |line: &str| {
        let name = line.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        name.is_some_and(|it| {
            it.starts_with(|it: char| it.is_ascii_alphabetic())
                && it.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it))
        })
    };
    value.split('\n').skip(1).any(is_header)
}

/// Whether one end of a value has a quote that the other end lacks, or quotes part its items.
fn has_odd_quotes(value: &str) -> bool {
    let quotes = ['"', '\''];
    let is_json = value.starts_with(['{', '[']);
    let parts = ["\",\"", "\", \"", "','", "', '"];
    !is_json
        && (value.starts_with(quotes) != value.ends_with(quotes)
            || parts.iter().any(|it| value.contains(it)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oslo::parse;

    #[test]
    fn comments_headers_and_quotes_that_oslo_config_keeps_are_found() {
        for (text, expected) in [
            ("cpu_mode = custom # as on the others", [true, false, false]),
            ("cpu_mode = custom ; as on the others", [true, false, false]),
            ("cpu_mode = # custom", [true, false, false]),
            ("cpu_models = Nehalem,\n  # Haswell,\n  Skylake", [true, false, false]),
            ("password = a#b;c", [false; 3]),
            ("password = #a", [false; 3]),
            ("cpu_mode = custom\n  [vnc]", [false, true, false]),
            ("device_spec = [\n  {\"a\": \"1\"},\n  [1]\n  ]", [false; 3]),
            ("cpu_models = \"Nehalem\",\"Haswell\"", [false, false, true]),
            ("cpu_models = \"Nehalem", [false, false, true]),
            ("cpu_models = \"Nehalem\", Haswell", [false, false, true]),
            ("cpu_models = \"Nehalem\"", [false; 3]),
            ("device_spec = {\"a\": \"1\", \"b\": \"2\"}", [false; 3]),
            ("cpu_models = \"'a'\"", [false; 3]),
        ] {
            let entries = parse(&format!("[libvirt]\n{text}\n")).0;
            let value = &entries[0].value;
            let found = [has_comment(value), has_header(value), has_odd_quotes(value)];
            assert_eq!(found, expected, "{text}");
            let n_expected = expected.iter().filter(|it| **it).count();
            assert_eq!(differences(&entries[0]).len(), n_expected, "{text}");
        }
    }

    #[test]
    fn indented_options_have_their_line_and_name() {
        let entries = parse("[libvirt]\ncpu_mode = custom\n  cpu_models = Nehalem\n  x\n").0;
        assert_eq!(indented_options(&entries[0]).collect::<Vec<_>>(), [(3, "cpu_models")]);
    }
}

//! Removal of terminal control sequences from texts that hosts influence.

/// Returns whether a character is a control character or a bidirectional mark.
pub fn is_obeyed(it: char) -> bool {
    let is_mark = matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_mark || it.is_control()
}

/// Returns a line without what a terminal would execute, except colours, as Ansible sets them, and
/// tabs.
pub fn coloured(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        let colour = colour(rest);
        shown.push_str(colour);
        if colour.is_empty() && (next == '\t' || !is_obeyed(next)) {
            shown.push(next);
        }
        rest = &rest[colour.len().max(next.len_utf8())..];
    }
    shown
}

/// Returns the colour sequence at the beginning of a text; empty when there is none.
fn colour(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("\u{1b}[") else { return "" };
    let length = inner.find(|it: char| !it.is_ascii_digit() && it != ';').unwrap_or(inner.len());
    let is_shade =
        |it: &str| matches!(it.as_bytes(), [b'3' | b'4' | b'9', b'0'..=b'7'] | [b'3' | b'4', b'9']);
    let is_harmless = |it: &str| matches!(it, "" | "0" | "1") || is_shade(it);
    let codes = &inner[..length];
    let is_colour = match codes.strip_prefix("38;5;") {
        Some(shade) => !shade.contains(';'),
        None => codes.split(';').all(is_harmless),
    };
    if is_colour && inner[length..].starts_with('m') { &text[..length + 3] } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_terminal_obeys_only_colours_stay() {
        for (line, shown) in [
            ("ok: [n0] => ü\t1", "ok: [n0] => ü\t1"),
            ("\u{1b}[0;31mfatal\u{1b}[0m", "\u{1b}[0;31mfatal\u{1b}[0m"),
            ("\u{1b}[38;5;208ma\u{1b}[m", "\u{1b}[38;5;208ma\u{1b}[m"),
            ("\u{1b}[8mhidden\u{1b}[0;8m", "[8mhidden[0;8m"),
            ("\u{1b}[2Ja\u{1b}]0;title\u{7}b", "[2Ja]0;titleb"),
            ("a\u{9b}1m\u{61c}b\u{202e}c\rd\u{0}", "a1mbcd"),
            ("\u{1b}[38;5;1;8ma", "[38;5;1;8ma"),
            ("\u{1b}[\u{1b}[31", "[[31"),
            ("\u{1b}", ""),
        ] {
            assert_eq!(coloured(line), shown, "{line:?}");
        }
    }
}

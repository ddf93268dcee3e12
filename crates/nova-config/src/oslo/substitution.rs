//! The options that a value refers to, which oslo.config substitutes when the value is read.

/// Returns the names behind each `$` of a value, as oslo.config finds them: `$$` and `\$` are a
/// literal dollar sign, and a name goes on over dots.
pub(super) fn references(value: &str) -> Vec<String> {
    // As oslo.config does before it looks for names.
    let value = value.replace(r"\$", "$$");
    let mut found = Vec::new();
    let mut rest = value.as_str();
    while let Some((_, after)) = rest.split_once('$') {
        let (name, next) = name(after);
        found.extend(name.map(str::to_owned));
        rest = next;
    }
    found
}

/// Returns the name at the beginning of a text, and the text behind it.
fn name(text: &str) -> (Option<&str>, &str) {
    if let Some(next) = text.strip_prefix('$') {
        return (None, next);
    }
    let bare = text.strip_prefix('{').unwrap_or(text);
    let begins = bare.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    let is_inner = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '.';
    let (name, next) = bare.split_at(bare.find(|it| !is_inner(it)).unwrap_or(bare.len()));
    match (begins, bare.len() == text.len()) {
        (true, true) => (Some(name), next),
        (true, false) if next.starts_with('}') => (Some(name), &next[1..]),
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_oslo_config_finds_them() {
        let cases: [(&str, &[&str]); 14] = [
            ("$my_ip", &["my_ip"]),
            ("http://${my_ip}:80/$libvirt.cpu_mode", &["my_ip", "libvirt.cpu_mode"]),
            ("$my_ip.example", &["my_ip.example"]),
            ("$my_ip.", &["my_ip."]),
            ("$my-ip", &["my"]),
            ("a$own$", &["own"]),
            ("$$x", &[]),
            ("$$$x", &["x"]),
            ("\\$x", &[]),
            ("\\$$x", &["x"]),
            ("$\\$x", &["x"]),
            ("${x", &[]),
            ("$1 ${} $", &[]),
            ("$a$b", &["a", "b"]),
        ];
        for (value, expected) in cases {
            assert_eq!(references(value), expected, "{value}");
        }
    }
}

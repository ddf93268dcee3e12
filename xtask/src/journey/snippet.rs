//! The user's snippet: its path, content and hash.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::sh;

/// A file with options of nova.
pub(super) struct Snippet {
    /// Its path.
    pub(super) file: PathBuf,
    /// Its content.
    pub(super) text: String,
    /// Its SHA-256 in hex.
    pub(super) sha256: String,
    /// Section and name of each option, in order.
    pub(super) options: Vec<(String, String)>,
}

impl Snippet {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or sets no option, so that its arrival could not be checked.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let file = std::path::absolute(file)?;
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let options = options(&text);
        ensure!(!options.is_empty(), "{} sets no option", file.display());
        Ok(Self { sha256: sh::sha256(text.as_bytes()), file, text, options })
    }
}

/// Returns the options that a text sets, as oslo.config reads it: continuation lines begin with a
/// blank.
fn options(text: &str) -> Vec<(String, String)> {
    let mut section = "DEFAULT".to_owned();
    let mut options = Vec::new();
    for line in text.lines() {
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.split_once(']')) {
            name.0.clone_into(&mut section);
        } else if let Some((name, _)) = line.split_once(['=', ':']) {
            let option = (section.clone(), name.trim().to_owned());
            if !options.contains(&option) {
                options.push(option);
            }
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_by_section_once_each() {
        let text = "debug = True\n# a = b\n[libvirt]\ncpu_mode: custom\ncpu_models = a,\n  b = c\n\
                    cpu_mode = host-model\n\n";
        let pair = |section: &str, name: &str| (section.to_owned(), name.to_owned());
        let expected =
            [pair("DEFAULT", "debug"), pair("libvirt", "cpu_mode"), pair("libvirt", "cpu_models")];
        assert_eq!(options(text), expected);
        assert_eq!(options("# nothing\n[libvirt]\n"), []);
    }

    #[test]
    fn the_examples_own_snippet_can_be_seen_to_arrive() {
        let file = crate::paths::repo().join("examples/journey/my.conf");
        assert_eq!(Snippet::read(&file).unwrap().options.len(), 2);
    }
}

//! Reads and writes YAML: the only file that uses the YAML crate, and Ansible's data writer.

use serde::Serialize;
use serde::de::DeserializeOwned;

mod tree;

pub use tree::{Tree, Var};

/// Why a text is not the expected YAML, with line and column.
///
/// The message may quote the text.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
    line: Option<u64>,
}

impl Error {
    /// Returns the line, counted from 1, if known; it may be reported even for a secret text.
    pub fn line(&self) -> Option<u64> {
        self.line
    }
}

impl From<serde_saphyr::Error> for Error {
    fn from(error: serde_saphyr::Error) -> Self {
        Self { message: error.to_string(), line: error.location().map(|it| it.line()) }
    }
}

/// Returns a value as a YAML document.
pub fn to_string<T: Serialize>(value: &T) -> Result<String, Error> {
    let written = serde_saphyr::to_string(value);
    written.map_err(|it| Error { message: it.to_string(), line: None })
}

/// Parses a text with one YAML document.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    Ok(serde_saphyr::from_str(text)?)
}

/// Parses a text with one YAML document that another program reads, as most do: of a key that stands
/// twice the last value counts, and `!!binary` need not be text.
pub fn from_foreign_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        ignore_binary_tag_for_string: true,
    };
    Ok(serde_saphyr::from_str_with_options(text, options)?)
}

/// Parses a text with several YAML documents; empty documents are skipped.
pub fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, Error> {
    Ok(serde_saphyr::from_multiple(text)?)
}

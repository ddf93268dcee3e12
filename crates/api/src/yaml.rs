//! YAML in and out: the only file that names the YAML crate, and the writer of Ansible's data.

use serde::Serialize;
use serde::de::DeserializeOwned;

mod tree;

pub use tree::{Tree, Var};

/// Why a text is not the YAML that was expected, with line and column.
///
/// The message may quote the text.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
    line: Option<u64>,
}

impl Error {
    /// The line, counted from 1, where one is known: what may be told of a text that is secret.
    pub fn line(&self) -> Option<u64> {
        self.line
    }
}

impl From<serde_saphyr::Error> for Error {
    fn from(error: serde_saphyr::Error) -> Self {
        Self { message: error.to_string(), line: error.location().map(|it| it.line()) }
    }
}

/// A value as a YAML document.
pub fn to_string<T: Serialize>(value: &T) -> Result<String, Error> {
    let written = serde_saphyr::to_string(value);
    written.map_err(|it| Error { message: it.to_string(), line: None })
}

/// The value in a text of one YAML document.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    Ok(serde_saphyr::from_str(text)?)
}

/// The values in a text of YAML documents; empty documents are left out.
pub fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, Error> {
    Ok(serde_saphyr::from_multiple(text)?)
}

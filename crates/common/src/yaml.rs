//! YAML in and out: the only file that names the YAML crate, and the writer of Ansible's data.

use serde::Serialize;
use serde::de::DeserializeOwned;

mod tree;

pub use tree::{Tree, Var};

/// Why a text is not the YAML that was expected, with line and column.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// A value as a YAML document.
pub fn to_string<T: Serialize>(value: &T) -> Result<String, Error> {
    serde_saphyr::to_string(value).map_err(|it| Error(it.to_string()))
}

/// The value in a text of one YAML document.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_saphyr::from_str(text).map_err(|it| Error(it.to_string()))
}

/// The values in a text of YAML documents; empty documents are left out.
pub fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, Error> {
    serde_saphyr::from_multiple(text).map_err(|it| Error(it.to_string()))
}

//! Parses YAML. Commands use this module instead of `api::yaml`, because the crate `api` would take
//! a minute to compile.

use anyhow::Result;
use serde_json::Value;

/// Parses one YAML document.
pub(crate) fn value(text: &str) -> Result<Value> {
    Ok(serde_saphyr::from_str(text)?)
}

/// Parses a sequence of YAML documents; empty documents are left out.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>> {
    Ok(serde_saphyr::from_multiple(text)?)
}

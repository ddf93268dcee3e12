//! YAML in. Commands do without the crate `common`, which has more of it: it would take a minute to compile.

use anyhow::Result;
use serde_json::Value;

/// The value in a text of one YAML document.
pub(crate) fn value(text: &str) -> Result<Value> {
    Ok(serde_saphyr::from_str(text)?)
}

/// The values in a text of YAML documents; empty documents are left out.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>> {
    Ok(serde_saphyr::from_multiple(text)?)
}

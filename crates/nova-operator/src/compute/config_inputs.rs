//! What the files of a compute are rendered from: the cell, the host and the role's default
//! configuration.

use nova_config::conf::{CellView, DEFAULT_FILE, HostView};
use operator_runtime::source_contents::Content;

/// The inputs of a configuration, complete and fit for files.
#[derive(Clone, Debug)]
pub struct Complete {
    /// The cell.
    pub cell: CellView,
    /// The host.
    pub host: HostView,
    /// The role's default configuration.
    pub default_config: Option<Default>,
}

/// The role's default configuration.
#[derive(Clone, Debug)]
pub struct Default {
    /// The ConfigMap.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The text in a ConfigMap: the key of the file's own name, or the only key.
pub fn default_text(content: &Content) -> Result<&str, String> {
    if let Some(text) = content.text(DEFAULT_FILE) {
        return Ok(text);
    }
    let mut keys = content.keys();
    let (Some(only), None) = (keys.next(), keys.next()) else {
        return Err(format!(
            "must have a key {DEFAULT_FILE}, or a single key with the options of nova-compute"
        ));
    };
    content.text(only).ok_or_else(|| format!("has a key {only} that is no text"))
}

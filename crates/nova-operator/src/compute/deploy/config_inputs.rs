//! The inputs of a compute's files: the cell, the host and the role's default configuration.

use nova_config::conf::{CellView, DEFAULT_FILE, HostView};
use operator_runtime::source_cache::Content;

/// The complete and valid inputs of a configuration.
#[derive(Clone, Debug)]
pub struct Complete {
    /// The cell.
    pub cell: CellView,
    /// The host.
    pub host: HostView,
    /// The role's default configuration, or `None` without one.
    pub default_config: Option<Default>,
}

/// The role's default configuration.
#[derive(Clone, Debug)]
pub struct Default {
    /// The name of the ConfigMap.
    pub name: String,
    /// The text of the configuration.
    pub text: String,
}

/// Returns the text in a ConfigMap: that of the key with the file's name, or of the only key.
/// Returns an error message when there is neither.
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

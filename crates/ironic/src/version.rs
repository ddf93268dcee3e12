//! Negotiation of Ironic's API version.

use config_drive::ApiVersion;
use serde_json::Value;

use crate::error::Error;
use crate::supported_versions::{NEWEST, OLDEST};

/// Returns the version to use, from the document at the API's root.
pub fn negotiated(document: &Value) -> Result<ApiVersion, Error> {
    let found = [document.get("default_version"), document.pointer("/versions/0")];
    let found = found.into_iter().flatten().find(|it| it.get("min_version").is_some());
    let read = |key: &str| {
        let text = found.and_then(|it| it.get(key)).and_then(Value::as_str)?;
        text.parse::<ApiVersion>().ok()
    };
    let (Some(min), Some(max)) = (read("min_version"), read("version")) else {
        return Err(Error::NotIronic);
    };
    if max < OLDEST || min > NEWEST {
        return Err(Error::Version { min: min.to_string(), max: max.to_string() });
    }
    Ok(max.min(NEWEST))
}

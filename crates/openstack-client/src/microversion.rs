//! Microversions of nova's API.

use serde::Deserialize;

/// The microversion of every request to nova.
///
/// From 2.53 on, services and hypervisors have UUIDs; from 2.69 on, the services of a cell whose
/// database does not answer are listed as UNKNOWN. From 2.88 on, nova may ask each host for its
/// uptime when hypervisors are listed, which takes too long for thousands.
pub const NEEDED: &str = "2.69";
const NEEDED_NUMBERS: (u32, u32) = (2, 69);

/// The header by which both sides state the microversion.
pub(crate) const HEADER: &str = "OpenStack-API-Version";
/// The service type in that header.
pub(crate) const SERVICE_TYPE: &str = "compute";

/// The description of a version of nova's API.
#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    version: Described,
}

#[derive(Debug, Deserialize)]
struct Described {
    /// The newest microversion; empty where there are none.
    version: String,
    min_version: String,
}

impl Document {
    /// Returns whether the needed microversion is supported.
    pub(crate) fn supports_needed(&self) -> bool {
        let (min, max) = (numbers(&self.version.min_version), numbers(&self.version.version));
        min.is_some_and(|it| it <= NEEDED_NUMBERS) && max.is_some_and(|it| it >= NEEDED_NUMBERS)
    }

    /// Returns the supported microversions for a message.
    pub(crate) fn supported(&self) -> String {
        match (numbers(&self.version.min_version), numbers(&self.version.version)) {
            (Some(min), Some(max)) => format!("{}.{} to {}.{}", min.0, min.1, max.0, max.1),
            _ => "none".to_owned(),
        }
    }
}

/// Returns the header's value of a request.
pub(crate) fn header_value() -> String {
    format!("{SERVICE_TYPE} {NEEDED}")
}

fn numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(min: &str, max: &str, expected: (bool, &str)) {
        let document = json!({"version": {"id": "v2.1", "version": max, "min_version": min}});
        let document: Document = serde_json::from_value(document).unwrap();
        assert_eq!((document.supports_needed(), document.supported().as_str()), expected);
    }

    #[test]
    fn the_needed_microversion_is_between_the_oldest_and_the_newest() {
        check("2.1", "2.100", (true, "2.1 to 2.100"));
        check("2.69", "2.69", (true, "2.69 to 2.69"));
        check("2.1", "2.60", (false, "2.1 to 2.60"));
        check("2.70", "2.100", (false, "2.70 to 2.100"));
        check("", "", (false, "none"));
    }

    #[test]
    fn the_numbers_are_those_of_the_text() {
        assert_eq!(numbers(NEEDED), Some(NEEDED_NUMBERS));
    }
}

//! The form in which a drive is sent to Ironic, from the user's choice and the API version.

use std::fmt;
use std::str::FromStr;

use api::baremetal::ConfigDriveFormat;

use crate::fault::Fault;

/// The first API version that accepts an object.
const OBJECT: ApiVersion = ApiVersion { major: 1, minor: 56 };
/// The first API version that accepts `vendor_data` in it.
const VENDOR_DATA: ApiVersion = ApiVersion { major: 1, minor: 59 };

/// A version of Ironic's API, as in `X-OpenStack-Ironic-API-Version`: `1.59`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ApiVersion {
    /// The number before the dot, so far always 1.
    pub major: u16,
    /// The number after the dot.
    pub minor: u16,
}

impl FromStr for ApiVersion {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let parsed = text.split_once('.').and_then(|(major, minor)| {
            Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
        });
        let fault = || Fault::new("version", text, "is not an API version", "write it as in 1.59");
        parsed.ok_or_else(fault)
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A form of the drive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    Json,
    Iso,
}

/// Returns the form for the user's choice and an API version.
pub(crate) fn form(
    wanted: ConfigDriveFormat,
    version: ApiVersion,
    has_vendor_data: bool,
) -> Result<Form, Fault> {
    use ConfigDriveFormat::{Auto, Iso, Json};
    let needed = if has_vendor_data { VENDOR_DATA } else { OBJECT };
    match (wanted, version >= needed) {
        (Auto | Json, true) => Ok(Form::Json),
        (Iso, _) | (Auto, false) => Ok(Form::Iso),
        (Json, false) => {
            let with = if has_vendor_data { " with vendor data" } else { "" };
            let cause =
                format!("{with} needs version {needed} of Ironic's API, and this is {version}");
            Err(Fault::new("configDriveFormat", "Json", cause.trim_start(), "use Auto or Iso"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(wanted: ConfigDriveFormat, version: &str, has_vendor_data: bool) -> Option<Form> {
        form(wanted, version.parse().unwrap(), has_vendor_data).ok()
    }

    #[test]
    fn auto_takes_json_from_the_first_version_that_has_it() {
        let cases =
            [("1.31", false, Form::Iso), ("1.55", false, Form::Iso), ("1.56", false, Form::Json)];
        let vendor =
            [("1.58", true, Form::Iso), ("1.59", true, Form::Json), ("1.109", true, Form::Json)];
        for (version, has_vendor_data, expected) in cases.into_iter().chain(vendor) {
            assert_eq!(good(ConfigDriveFormat::Auto, version, has_vendor_data), Some(expected));
        }
    }

    #[test]
    fn a_form_that_the_human_wants_is_taken_or_refused_with_the_versions() {
        assert_eq!(good(ConfigDriveFormat::Iso, "1.109", true), Some(Form::Iso));
        assert_eq!(good(ConfigDriveFormat::Json, "1.59", true), Some(Form::Json));
        let fault = form(ConfigDriveFormat::Json, "1.58".parse().unwrap(), true).unwrap_err();
        let expected = "configDriveFormat: \"Json\" with vendor data needs version 1.59 of Ironic's API, \
                        and this is 1.58; use Auto or Iso";
        assert_eq!(fault.to_string(), expected);
        assert!("1".parse::<ApiVersion>().is_err() && "a.b".parse::<ApiVersion>().is_err());
    }
}

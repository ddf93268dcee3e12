//! What a set of machines says of the Ironic that provisions them.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Ironic that provisions the machines of a set.
#[derive(Clone, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(self.authentication == 'none') != has(self.secret)")
    .message("secret is required with http_basic and keystone, and must be left out with none"))]
pub struct Ironic {
    /// URL of its API, without a version: `https://ironic.example.org:6385`.
    #[schemars(length(max = 1024), regex(pattern = r"^https?://[^\s/?#]+(/[^\s?#]*)?$"))]
    pub endpoint: String,
    /// How requests are authenticated.
    #[serde(default)]
    pub authentication: Authentication,
    /// A Secret with the credentials: `username` and `password`; for Keystone also `authURL` and
    /// `projectName`, and `userDomainName` and `projectDomainName` where these are not `Default`; or
    /// `authURL`, `applicationCredentialID` and `applicationCredentialSecret`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret: Option<String>,
    /// A Secret with the certificates to trust, PEM, in `ca.crt`; those of the operator's image
    /// when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ca_secret: Option<String>,
    /// The image that is written to the machines; where absent they boot from what Ironic has
    /// recorded of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Which disk of a machine gets the image, in Ironic's words: `name`, `serial`, `size`, `wwn`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub root_device: BTreeMap<String, String>,
    /// What all machines of the set must have; a host may ask for more.
    #[serde(default, skip_serializing_if = "Machine::is_any")]
    pub machine: Machine,
    /// Whether machines that are only enrolled or manageable may be made available for the set: their
    /// disks are then cleaned as Ironic is configured to.
    #[serde(default)]
    pub provide: bool,
    /// How often one machine is deployed before a user has to act.
    #[serde(default = "default_deploy_attempts")]
    #[schemars(range(min = 1, max = 20))]
    pub deploy_attempts: i64,
}

fn default_deploy_attempts() -> i64 {
    3
}

/// How requests to Ironic are authenticated.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Authentication {
    /// Not at all.
    #[default]
    None,
    /// By user and password in each request.
    HttpBasic,
    /// By a token of Keystone.
    Keystone,
}

/// An image of an operating system.
#[derive(Clone, Debug, Deserialize, Eq, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.checksum) || !self.source.matches('^https?://')")
    .message("an image at a URL needs a checksum: the output of `sha256sum`, or the URL of such a \
              file"))]
pub struct Image {
    /// Its URL, or its id where Ironic gets it from Glance.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^\S+$"))]
    pub source: String,
    /// Its SHA-256 in hexadecimal, or the URL of a file with checksums.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^([0-9a-f]{64}|https?://\S+)$"))]
    pub checksum: Option<String>,
}

/// What a machine must have to be taken; nothing for any.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Its name or UUID in Ironic.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub node: Option<String>,
    /// Its resource class.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub resource_class: Option<String>,
    /// Traits, all of which it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 255)))]
    pub traits: Vec<String>,
    /// Capabilities of its properties, with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub capabilities: BTreeMap<String, String>,
    /// Texts in its field `extra`, by their keys, used like labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub extra: BTreeMap<String, String>,
}

impl Machine {
    /// Whether any machine is as good as another.
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

/// In which form the config drive goes to Ironic.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum ConfigDriveFormat {
    /// JSON where the API takes it, else the image.
    #[default]
    Auto,
    /// An object, of which Ironic makes the image: its conductor needs genisoimage or xorriso for that.
    Json,
    /// The image, ready made, for every version of the API and conductors without such a program.
    Iso,
}

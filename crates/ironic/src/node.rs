//! A machine as Ironic's API describes it.

use std::collections::BTreeMap;

use config_drive::ApiVersion;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::state::State;

/// The fields of [`Node`] that all supported API versions have.
///
/// `allocation_uuid` is not among them: a list of Ironic 39.0.0 with it fails with 500, and an
/// allocation sets `instance_uuid` as well.
const FIELDS: &str = "uuid,name,instance_uuid,instance_info,resource_class,traits,properties,extra,\
                      provision_state,target_provision_state,provision_updated_at,power_state,\
                      target_power_state,maintenance,maintenance_reason,last_error,reservation";
/// A newer field, and its API version; older versions reject requests that name it.
const LATER: (&str, ApiVersion) = ("retired", ApiVersion { major: 1, minor: 61 });

/// How many bytes of a machine's name are reported; Ironic's own limit is 255 characters.
const TITLE_LIMIT: usize = 255;

/// Returns the fields of [`Node`] for requests of an API version.
pub fn fields(version: ApiVersion) -> String {
    let (later, since) = LATER;
    if version >= since { format!("{FIELDS},{later}") } else { FIELDS.to_owned() }
}

/// A machine as Ironic's API describes it; absent fields and nulls are empty.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Node {
    /// Its UUID.
    pub uuid: String,
    /// Its name, unique if set.
    pub name: Option<String>,
    /// The UUID of the instance or allocation that it is reserved for.
    pub instance_uuid: Option<String>,
    /// What its deployment needs; empty once it is undeployed. Ironic masks the config drive in it.
    #[serde(deserialize_with = "or_empty")]
    pub instance_info: Map<String, Value>,
    /// Its resource class.
    pub resource_class: Option<String>,
    /// Its traits.
    #[serde(deserialize_with = "or_empty")]
    pub traits: Vec<String>,
    /// The properties of its hardware.
    #[serde(deserialize_with = "or_empty")]
    pub properties: Map<String, Value>,
    /// Free-form data of its owner.
    #[serde(deserialize_with = "or_empty")]
    pub extra: Map<String, Value>,
    /// Its provisioning state.
    pub provision_state: State,
    /// The provisioning state of its present transition.
    pub target_provision_state: Option<String>,
    /// When its provisioning state last changed, in Ironic's own format.
    pub provision_updated_at: Option<String>,
    /// `power on`, `power off` or `error`; `None` if it was never read.
    pub power_state: Option<String>,
    /// The power state of its present transition.
    pub target_power_state: Option<String>,
    /// Whether it is in maintenance, so that Ironic does not act on it.
    #[serde(deserialize_with = "or_empty")]
    pub maintenance: bool,
    /// Why it is in maintenance.
    pub maintenance_reason: Option<String>,
    /// The last error.
    pub last_error: Option<String>,
    /// The conductor that holds its lock; requests are rejected meanwhile.
    pub reservation: Option<String>,
    /// Whether it must never become available again.
    #[serde(deserialize_with = "or_empty")]
    pub retired: bool,
}

/// Memory of a map or list entry in addition to its text, in bytes.
const ENTRY: usize = 64;
/// Memory of a map with its first entry, in bytes.
const OBJECT: usize = 640;

fn footprint_of_object(object: &Map<String, Value>) -> usize {
    let entry = |(key, value): (&String, &Value)| ENTRY + key.len() + footprint(value);
    if object.is_empty() { 0 } else { OBJECT + object.iter().map(entry).sum::<usize>() }
}

/// Returns a value's memory in addition to its place in the container.
fn footprint(value: &Value) -> usize {
    match value {
        Value::Object(object) => footprint_of_object(object),
        Value::Array(items) => items.iter().map(|it| ENTRY + footprint(it)).sum(),
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Deserializes null as the empty value.
fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Node {
    /// Returns its name, or the UUID if it has none.
    pub fn title(&self) -> &str {
        let title = self.name.as_deref().filter(|it| !it.is_empty()).unwrap_or(&self.uuid);
        &title[..title.floor_char_boundary(TITLE_LIMIT)]
    }

    /// Returns its capabilities: `properties/capabilities` is a text such as
    /// `boot_mode:uefi,disk_label:gpt`.
    pub fn capabilities(&self) -> BTreeMap<&str, &str> {
        let text = self.properties.get("capabilities").and_then(Value::as_str).unwrap_or_default();
        let entries = text.split(',').filter_map(|it| it.split_once(':'));
        entries.map(|(key, value)| (key.trim(), value.trim())).collect()
    }

    /// Returns an upper estimate of its memory in bytes.
    ///
    /// A map is a tree node with room for several entries.
    pub fn footprint(&self) -> usize {
        let maps = [&self.instance_info, &self.properties, &self.extra];
        let traits = self.traits.iter().map(|it| it.len() + ENTRY).sum::<usize>();
        let texts = [
            &self.name,
            &self.instance_uuid,
            &self.resource_class,
            &self.target_provision_state,
            &self.provision_updated_at,
            &self.power_state,
            &self.target_power_state,
            &self.maintenance_reason,
            &self.last_error,
            &self.reservation,
        ];
        let texts = texts.into_iter().flatten().chain([&self.uuid]).map(String::len).sum::<usize>();
        maps.into_iter().map(footprint_of_object).sum::<usize>()
            + traits
            + texts
            + size_of::<Self>()
    }

    /// Returns whether it is reserved by that UUID.
    pub fn is_of(&self, instance: &str) -> bool {
        self.instance_uuid.as_deref() == Some(instance)
    }

    /// Returns whether Ironic reads its power as off, and is not about to change it.
    pub fn is_off(&self) -> bool {
        let is_moving = self.target_power_state.as_ref().is_some_and(|it| !it.is_empty());
        self.power_state.as_deref() == Some("power off") && !is_moving
    }

    /// Returns whether a conductor holds its lock, so that requests are rejected.
    pub(crate) fn is_busy(&self) -> bool {
        self.reservation.as_ref().is_some_and(|it| !it.is_empty())
    }
}

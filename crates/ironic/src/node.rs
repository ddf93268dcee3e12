//! A machine as Ironic tells of it.

use std::collections::BTreeMap;

use config_drive::ApiVersion;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::state::State;

/// The fields of [`Node`] that every version has which is spoken here. Not `allocation_uuid`: a list of
/// Ironic 39.0.0 that asks for it ends with 500, and an allocation sets `instance_uuid` as well.
const FIELDS: &str = "uuid,name,instance_uuid,instance_info,resource_class,traits,properties,extra,\
                      provision_state,target_provision_state,provision_updated_at,power_state,\
                      target_power_state,maintenance,maintenance_reason,last_error,reservation";
/// A field that came later, and the version that it came with: older ones refuse a request that names it.
const LATER: (&str, ApiVersion) = ("retired", ApiVersion { major: 1, minor: 61 });

/// How much of a machine's name is told, in bytes; Ironic's own limit is 255 characters.
const TITLE_LIMIT: usize = 255;

/// The fields of [`Node`], as requests of a version ask for them.
pub fn fields(version: ApiVersion) -> String {
    let (later, since) = LATER;
    if version >= since { format!("{FIELDS},{later}") } else { FIELDS.to_owned() }
}

/// A machine as Ironic tells of it; absent fields and nulls are empty.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Node {
    /// Its UUID.
    pub uuid: String,
    /// Its name, unique where it has one.
    pub name: Option<String>,
    /// Whom it is reserved for: an instance, or an allocation, whose UUID Ironic writes here too.
    pub instance_uuid: Option<String>,
    /// What its deployment needs; empty once it is undeployed. Ironic masks the config drive in it.
    #[serde(deserialize_with = "or_empty")]
    pub instance_info: Map<String, Value>,
    /// Its resource class.
    pub resource_class: Option<String>,
    /// Its traits.
    #[serde(deserialize_with = "or_empty")]
    pub traits: Vec<String>,
    /// What hardware it has.
    #[serde(deserialize_with = "or_empty")]
    pub properties: Map<String, Value>,
    /// What its owner noted.
    #[serde(deserialize_with = "or_empty")]
    pub extra: Map<String, Value>,
    /// Its state.
    pub provision_state: State,
    /// The state that it is on the way to.
    pub target_provision_state: Option<String>,
    /// When its state last changed, in Ironic's own form.
    pub provision_updated_at: Option<String>,
    /// `power on`, `power off`, `error`, or nothing where nobody asked yet.
    pub power_state: Option<String>,
    /// The power state that it is on the way to.
    pub target_power_state: Option<String>,
    /// Whether Ironic leaves it alone.
    #[serde(deserialize_with = "or_empty")]
    pub maintenance: bool,
    /// Why it does.
    pub maintenance_reason: Option<String>,
    /// What last went wrong.
    pub last_error: Option<String>,
    /// The conductor that works on it; requests are refused meanwhile.
    pub reservation: Option<String>,
    /// Whether it shall never be available again.
    #[serde(deserialize_with = "or_empty")]
    pub retired: bool,
}

/// What an entry of an object or a list takes beside its text, in bytes.
const ENTRY: usize = 64;
/// What an object takes with its first entry, in bytes.
const OBJECT: usize = 640;

fn footprint_of_object(object: &Map<String, Value>) -> usize {
    let entry = |(key, value): (&String, &Value)| ENTRY + key.len() + footprint(value);
    if object.is_empty() { 0 } else { OBJECT + object.iter().map(entry).sum::<usize>() }
}

/// What a value takes beside its place in what holds it.
fn footprint(value: &Value) -> usize {
    match value {
        Value::Object(object) => footprint_of_object(object),
        Value::Array(items) => items.iter().map(|it| ENTRY + footprint(it)).sum(),
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Null as the empty value.
fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Node {
    /// What a human calls it.
    pub fn title(&self) -> &str {
        let title = self.name.as_deref().filter(|it| !it.is_empty()).unwrap_or(&self.uuid);
        &title[..title.floor_char_boundary(TITLE_LIMIT)]
    }

    /// Its capabilities: `properties/capabilities` is a text such as `boot_mode:uefi,disk_label:gpt`.
    pub fn capabilities(&self) -> BTreeMap<&str, &str> {
        let text = self.properties.get("capabilities").and_then(Value::as_str).unwrap_or_default();
        let entries = text.split(',').filter_map(|it| it.split_once(':'));
        entries.map(|(key, value)| (key.trim(), value.trim())).collect()
    }

    /// How many bytes its trees take in memory, estimated rather too high: an object is a node of a tree
    /// with places for several entries.
    pub fn footprint(&self) -> usize {
        let maps = [&self.instance_info, &self.properties, &self.extra];
        let traits = self.traits.iter().map(|it| it.len() + ENTRY).sum::<usize>();
        maps.into_iter().map(footprint_of_object).sum::<usize>() + traits + size_of::<Self>()
    }

    /// Whether it is reserved by that UUID.
    pub fn is_of(&self, instance: &str) -> bool {
        self.instance_uuid.as_deref() == Some(instance)
    }

    /// Whether a conductor works on it: requests are refused meanwhile.
    pub(crate) fn is_busy(&self) -> bool {
        self.reservation.as_ref().is_some_and(|it| !it.is_empty())
    }
}

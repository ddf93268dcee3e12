//! `meta_data.json`: identifies the deployment and the host.

use serde_json::{Map, Value, json};

use crate::fault::Fault;
use crate::input::Host;

/// Keys that point to other files of a drive; with them cloud-init rejects our drive.
const POINTERS: [&str; 2] = ["files", "network_config"];

/// Returns the metadata: ours, overridden by the user's.
///
/// cloud-init uses `uuid` as the identity of the instance, and `hostname` if the user data names no
/// host.
pub(crate) fn meta_data(
    host: &Host,
    given: Option<Map<String, Value>>,
    faults: &mut Vec<Fault>,
) -> Value {
    let name = host.fqdn.as_ref().unwrap_or(&host.host_name);
    let mut keys = Map::new();
    keys.insert("uuid".into(), json!(host.instance_uuid));
    keys.insert("name".into(), json!(host.host_name));
    keys.insert("hostname".into(), json!(name));
    if let Some(given) = given {
        of_given(&given, faults);
        keys.extend(given);
    }
    Value::Object(keys)
}

fn of_given(given: &Map<String, Value>, faults: &mut Vec<Fault>) {
    let mut wrong = |key: &str, cause, way| {
        faults.push(Fault::hidden(format!("given.metaData.{key}"), cause, way));
    };
    for key in POINTERS.into_iter().filter(|it| given.contains_key(*it)) {
        wrong(key, "points to files that are not on this drive", "write files with userData");
    }
    for key in ["uuid", "name", "hostname"] {
        if given.get(key).is_some_and(|it| it.as_str().is_none_or(str::is_empty)) {
            wrong(key, "is not text", "write a text, or leave it out");
        }
    }
    if given.get("meta").is_some_and(|it| !it.is_object()) {
        wrong("meta", "is not an object", "write keys and values, or leave it out");
    }
    if given.contains_key("random_seed") {
        let way = "leave it out: hosts have better random sources";
        wrong("random_seed", "would be the same for all who read the Secret", way);
    }
}

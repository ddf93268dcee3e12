//! The user's texts: parsed, completed where Ironic needs more, never repeated in faults.

use api::yaml;
use serde_json::{Map, Value, json};

use crate::fault::Fault;
use api::secret::Secret;

/// The Ethernet MTU, for links of the user's network data without one.
const ETHERNET_MTU: u64 = 1500;

/// Parses an object from a text of YAML or JSON.
pub(crate) fn object(
    path: &str,
    text: Option<&Secret<String>>,
    faults: &mut Vec<Fault>,
) -> Option<Map<String, Value>> {
    let cause = match yaml::from_str(text?.expose()) {
        Ok(Value::Object(map)) => return Some(map),
        Ok(_) => "is not an object".to_owned(),
        // The parser's message may quote the text.
        Err(error) => match error.line() {
            Some(line) => format!("is neither YAML nor JSON: line {line}"),
            None => "is neither YAML nor JSON".to_owned(),
        },
    };
    faults.push(Fault::hidden(path, cause, "give keys and values, as YAML or JSON"));
    None
}

/// How user data begins that cloud-init reads, in lower case; it ignores all other text.
const BEGINNINGS: [&str; 6] =
    ["#!", "#cloud-boothook", CLOUD_CONFIG, "#include", "#part-handler", "## template: jinja"];
/// The beginning of a cloud-config, and of its archive and patch.
const CLOUD_CONFIG: &str = "#cloud-config";
/// How many bytes of user data cloud-init searches for the header of a MIME message.
const MIME_WITHIN: usize = 4096;

/// Returns the user data that replaces ours.
pub(crate) fn user_data(text: &Secret<String>, faults: &mut Vec<Fault>) -> String {
    faults.extend(ignored(text.expose()));
    text.expose().clone()
}

/// Returns why the host would ignore user data.
fn ignored(text: &str) -> Option<Fault> {
    let fault = |cause: String, way| Some(Fault::hidden("given.userData", cause, way));
    let text = text.trim_start();
    if text.is_empty() {
        let way = "give one that cloud-init supports, such as #cloud-config, or leave it out";
        return fault("is empty".to_owned(), way);
    }
    let head = text[..text.floor_char_boundary(MIME_WITHIN)].to_lowercase();
    let is_ignition = head.starts_with('{') && text.contains("\"ignition\"");
    if head.contains("mime-version:") || is_ignition {
        return None;
    }
    if !BEGINNINGS.iter().any(|it| head.starts_with(it)) {
        let cause = "begins with nothing that cloud-init reads, so it ignores all of it".to_owned();
        let way = "begin it with the line #cloud-config, with #! and an interpreter, or give a MIME \
                   message";
        return fault(cause, way);
    }
    let config = head.strip_prefix(CLOUD_CONFIG).filter(|it| !it.starts_with('-'));
    let cause = match config.map(|_| yaml::from_foreign_str::<Value>(text))? {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(_) => String::new(),
        // The parser's message may quote the text.
        Err(error) => error.line().map(|it| format!(": line {it}")).unwrap_or_default(),
    };
    let cause = format!("is no YAML of keys and values, so cloud-init ignores all of it{cause}");
    fault(cause, "correct it; `cloud-init schema --config-file FILE` checks it")
}

/// Returns the vendor data.
pub(crate) fn vendor_data(data: Map<String, Value>, faults: &mut Vec<Fault>) -> Value {
    if data.get("cloud-init").is_some_and(Value::is_object) {
        let way = "write a text that begins with #cloud-config, or a list of such texts";
        let cause = "is an object, which cloud-init refuses";
        faults.push(Fault::hidden("given.vendorData.cloud-init", cause, way));
    }
    Value::Object(data)
}

/// Returns the network data that replaces ours, with an `mtu` on each link.
///
/// Ironic may replace network data without it by its own.
pub(crate) fn network_data(mut data: Map<String, Value>, faults: &mut Vec<Fault>) -> Value {
    for key in ["links", "networks"] {
        let entries = data.get(key).and_then(Value::as_array);
        if entries.is_none_or(|it| it.is_empty() || !it.iter().all(Value::is_object)) {
            let way = "write them as in OpenStack's network_data.json";
            let cause = "is not a list of objects";
            faults.push(Fault::hidden(format!("given.networkData.{key}"), cause, way));
        }
    }
    let links = data.get("links").cloned().unwrap_or_default();
    for link in data.get_mut("links").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(entry) = link.as_object_mut()
            && entry.get("mtu").is_none_or(Value::is_null)
        {
            let mtu = inherited_mtu(entry, &links);
            entry.insert("mtu".into(), mtu);
        }
    }
    data.entry("services").or_insert_with(|| json!([]));
    Value::Object(data)
}

/// Returns what the kernel would use without an `mtu`: a VLAN has its parent's, a bond its
/// members'.
fn inherited_mtu(link: &Map<String, Value>, links: &Value) -> Value {
    let below = |link: &Map<String, Value>| {
        let id = link.get("vlan_link").or_else(|| link.get("bond_links")?.get(0))?.clone();
        links.as_array()?.iter().find(|it| it["id"] == id)?.as_object().cloned()
    };
    let mut at = link.clone();
    // A VLAN on a bond on a card is the maximum depth; cycles end here too.
    for _ in 0..3 {
        match at.get("mtu") {
            Some(mtu) if !mtu.is_null() => return mtu.clone(),
            _ => match below(&at) {
                Some(next) => at = next,
                None => break,
            },
        }
    }
    json!(ETHERNET_MTU)
}

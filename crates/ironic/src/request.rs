//! Requests to Ironic as data; the sender adds address, version and credentials.

use api::secret::Secret;
use config_drive::ApiVersion;
use http::Method;
use serde_json::{Map, Value, json};

use crate::node::fields;

/// Machines per page of a list; Ironic allows at most 1,000.
const PAGE: usize = 500;

/// A provisioning verb, the `target` of a machine's provisioning state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verb {
    /// Lets Ironic verify that it can reach the machine.
    Manage,
    /// Cleans the machine and makes it available.
    Provide,
    /// Deploys the machine.
    Active,
    /// Adopts the machine as it runs.
    Adopt,
    /// Undeploys the machine.
    Deleted,
}

impl Verb {
    /// Returns Ironic's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Manage => "manage",
            Self::Provide => "provide",
            Self::Active => "active",
            Self::Adopt => "adopt",
            Self::Deleted => "deleted",
        }
    }
}

/// A request to Ironic. Debug does not show the body, which may contain a config drive.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query below the endpoint, such as `/v1/nodes/a`.
    pub path: String,
    /// The body, JSON.
    pub body: Option<Secret<Value>>,
}

impl Request {
    fn new(method: Method, path: impl Into<String>, body: Option<Value>) -> Self {
        Self { method, path: path.into(), body: body.map(Secret::new) }
    }

    /// Reads the API's versions; needs no credentials.
    pub fn versions() -> Self {
        Self::new(Method::GET, "/", None)
    }

    /// Lists the machines sorted by UUID, from the first one or the one after `after`.
    pub fn nodes(version: ApiVersion, after: Option<&str>) -> Self {
        let marker = after.map(|it| format!("&marker={it}")).unwrap_or_default();
        let path =
            format!("/v1/nodes?limit={PAGE}&sort_key=uuid{marker}&fields={}", fields(version));
        Self::new(Method::GET, path, None)
    }

    /// Reads one machine.
    pub fn node(version: ApiVersion, uuid: &str) -> Self {
        Self::new(Method::GET, format!("/v1/nodes/{uuid}?fields={}", fields(version)), None)
    }

    /// Reads a machine's history. Ironic keeps 300 entries by default, and cuts each event here.
    pub fn history(uuid: &str) -> Self {
        Self::new(Method::GET, format!("/v1/nodes/{uuid}/history"), None)
    }

    /// Reads one entry of a machine's history, whose event is not cut.
    pub fn history_entry(uuid: &str, entry: &str) -> Self {
        Self::new(Method::GET, format!("/v1/nodes/{uuid}/history/{entry}"), None)
    }

    /// Reserves a machine and records what its deployment needs, in one request.
    ///
    /// Ironic rejects it with 409 if the machine is reserved, or another one is by this UUID.
    /// `more` is part of the same patch.
    pub fn reserve(
        uuid: &str,
        instance: &str,
        info: &Map<String, Value>,
        more: Vec<Value>,
    ) -> Self {
        let reserve = json!({"op": "add", "path": "/instance_uuid", "value": instance});
        Self::patch(uuid, vec![reserve, noted(info)], more)
    }

    /// Records what a machine's deployment needs. `more` is part of the same patch.
    pub fn record(uuid: &str, info: &Map<String, Value>, more: Vec<Value>) -> Self {
        Self::patch(uuid, vec![noted(info)], more)
    }

    /// Releases a machine's reservation and sets its `instance_info`; its state stays.
    ///
    /// `more` is part of the same patch.
    pub fn unreserve(uuid: &str, info: &Map<String, Value>, more: Vec<Value>) -> Self {
        let free = json!({"op": "remove", "path": "/instance_uuid"});
        Self::patch(uuid, vec![free, noted(info)], more)
    }

    /// Patches a machine's description atomically.
    fn patch(uuid: &str, mut changes: Vec<Value>, more: Vec<Value>) -> Self {
        changes.extend(more);
        Self::new(Method::PATCH, format!("/v1/nodes/{uuid}"), Some(Value::Array(changes)))
    }

    /// Starts a transition of a machine; the response comes before it is done.
    pub fn provision(uuid: &str, verb: Verb) -> Self {
        let body = json!({"target": verb.word()});
        Self::new(Method::PUT, format!("/v1/nodes/{uuid}/states/provision"), Some(body))
    }

    /// Deploys a machine with that config drive.
    pub fn deploy(uuid: &str, drive: &Secret<Value>) -> Self {
        let body = json!({"target": Verb::Active.word(), "configdrive": drive.expose()});
        Self::new(Method::PUT, format!("/v1/nodes/{uuid}/states/provision"), Some(body))
    }

    /// Powers a machine on.
    pub fn power_on(uuid: &str) -> Self {
        let body = json!({"target": "power on"});
        Self::new(Method::PUT, format!("/v1/nodes/{uuid}/states/power"), Some(body))
    }
}

/// Returns the patch operation that sets `instance_info`.
fn noted(info: &Map<String, Value>) -> Value {
    json!({"op": "add", "path": "/instance_info", "value": info})
}

//! What Ironic is asked, as data; whoever sends it adds address, version and credentials.

use config_drive::{ApiVersion, Secret};
use serde_json::{Map, Value, json};

use crate::node::fields;

/// How many machines one answer to a list has; Ironic itself gives no more than 1,000.
const PAGE: usize = 500;

/// An HTTP method.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Method {
    /// Reads.
    Get,
    /// Makes.
    Post,
    /// Sets.
    Put,
    /// Changes.
    Patch,
    /// Takes away.
    Delete,
}

impl Method {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What a machine is told to do, as `target` of its provision state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verb {
    /// Let Ironic try to reach it.
    Manage,
    /// Clean it and make it free.
    Provide,
    /// Deploy it.
    Active,
    /// Take it over as it runs.
    Adopt,
    /// Undeploy it.
    Deleted,
}

impl Verb {
    /// Its word.
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

/// A question to Ironic. Its body may hold a config drive, so Debug does not show it.
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

    /// Which versions the API has; needs no credentials.
    pub fn versions() -> Self {
        Self::new(Method::Get, "/", None)
    }

    /// The machines after the one of that UUID, or the first ones; sorted by UUID.
    pub fn nodes(version: ApiVersion, after: Option<&str>) -> Self {
        let marker = after.map(|it| format!("&marker={it}")).unwrap_or_default();
        let path =
            format!("/v1/nodes?limit={PAGE}&sort_key=uuid{marker}&fields={}", fields(version));
        Self::new(Method::Get, path, None)
    }

    /// One machine.
    pub fn node(version: ApiVersion, uuid: &str) -> Self {
        Self::new(Method::Get, format!("/v1/nodes/{uuid}?fields={}", fields(version)), None)
    }

    /// Makes a machine known, as its maker describes it.
    pub fn enroll(description: &Value) -> Self {
        Self::new(Method::Post, "/v1/nodes", Some(description.clone()))
    }

    /// Makes a machine unknown.
    pub fn forget(uuid: &str) -> Self {
        Self::new(Method::Delete, format!("/v1/nodes/{uuid}"), None)
    }

    /// Reserves a machine, and says what its deployment needs, in one go: it is refused with 409 if the
    /// machine is reserved, or another one is by this UUID. `more` is said in the same go.
    pub fn reserve(
        uuid: &str,
        instance: &str,
        info: &Map<String, Value>,
        more: Vec<Value>,
    ) -> Self {
        let reserve = json!({"op": "add", "path": "/instance_uuid", "value": instance});
        Self::patch(uuid, vec![reserve, noted(info)], more)
    }

    /// Says anew what a machine's deployment needs. `more` is said in the same go.
    pub fn record(uuid: &str, info: &Map<String, Value>, more: Vec<Value>) -> Self {
        Self::patch(uuid, vec![noted(info)], more)
    }

    /// Gives a machine's reservation up, and leaves that of what its deployment needs; its state stays.
    /// `more` is said in the same go.
    pub fn unreserve(uuid: &str, info: &Map<String, Value>, more: Vec<Value>) -> Self {
        let free = json!({"op": "remove", "path": "/instance_uuid"});
        Self::patch(uuid, vec![free, noted(info)], more)
    }

    /// Changes a machine's description: all of it, or nothing.
    fn patch(uuid: &str, mut changes: Vec<Value>, more: Vec<Value>) -> Self {
        changes.extend(more);
        Self::new(Method::Patch, format!("/v1/nodes/{uuid}"), Some(Value::Array(changes)))
    }

    /// Tells a machine what to do; answered before it is done.
    pub fn provision(uuid: &str, verb: Verb) -> Self {
        let body = json!({"target": verb.word()});
        Self::new(Method::Put, format!("/v1/nodes/{uuid}/states/provision"), Some(body))
    }

    /// Deploys a machine with that config drive.
    pub fn deploy(uuid: &str, drive: &Secret<Value>) -> Self {
        let body = json!({"target": Verb::Active.word(), "configdrive": drive.expose()});
        Self::new(Method::Put, format!("/v1/nodes/{uuid}/states/provision"), Some(body))
    }

    /// Powers a machine on.
    pub fn power_on(uuid: &str) -> Self {
        let body = json!({"target": "power on"});
        Self::new(Method::Put, format!("/v1/nodes/{uuid}/states/power"), Some(body))
    }
}

/// The part of a patch that says what a machine's deployment needs.
fn noted(info: &Map<String, Value>) -> Value {
    json!({"op": "add", "path": "/instance_info", "value": info})
}

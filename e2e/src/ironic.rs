//! The lab's Ironic, called from its own pod, and the machines that boot when it deploys them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::{Namespace, cells, run};

/// The namespace of Ironic.
pub(crate) const NAMESPACE: &str = "openstack";
/// The namespace of its machines' pods.
const MACHINES: &str = "edpm-hosts";
/// The URL for operators.
pub const ENDPOINT: &str = "http://10.96.10.12:6385";
/// The Secret with its username and password.
pub const SECRET: &str = "ironic";
/// How long the lab's machine process may take to follow Ironic.
const SEEN: Duration = Duration::from_mins(10);

/// A machine that Ironic knows.
pub struct Machine {
    client: Client,
    /// Its name in Ironic.
    pub name: String,
}

impl Machine {
    /// Enrolls a machine in Ironic, as the only one of its resource class, unless it is enrolled
    /// already.
    pub async fn enroll(client: &Client, name: &str) -> Result<Self> {
        let known = ask("GET", "/v1/nodes?fields=name", None).await?;
        let known = known["nodes"].as_array().context("Ironic lists no nodes")?;
        if known.iter().all(|it| it["name"] != name) {
            let node = json!({ "name": name, "driver": "fake-hardware", "resource_class": name });
            ask("POST", "/v1/nodes", Some(&node)).await?;
        }
        Ok(Self { client: client.clone(), name: name.to_owned() })
    }

    /// Returns the machine's node object in Ironic.
    pub async fn node(&self) -> Result<Value> {
        ask("GET", &format!("/v1/nodes/{}", self.name), None).await
    }

    /// Returns the host key of the deployed host, as its console would show it.
    pub async fn host_key(&self) -> Result<String> {
        let (pod, file) = (self.pod(), "/etc/ssh/ssh_host_ed25519_key.pub");
        let text = run("kubectl", &["-n", MACHINES, "exec", &pod, "--", "cat", file]).await?;
        Ok(text.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
    }

    /// Waits, by a watch, until the machine's pod is gone.
    pub async fn stopped(&self) -> Result<()> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), MACHINES);
        let pod = self.pod();
        let gone = await_condition(api, &pod, |it: Option<&Pod>| it.is_none());
        let waited = tokio::time::timeout(SEEN, gone).await;
        waited.with_context(|| format!("{pod} still runs"))?.map(drop).map_err(Into::into)
    }

    fn pod(&self) -> String {
        format!("machine-{}", self.name)
    }
}

/// Creates the Secret with the credentials for Ironic in a namespace.
pub async fn secret(ns: &Namespace) -> Result<()> {
    let (username, password) = (
        cells::demo_value(ns, SECRET, "username").await?,
        cells::demo_value(ns, SECRET, "password").await?,
    );
    ns.secret(SECRET, &[("username", &username), ("password", &password)]).await
}

async fn ask(method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
    ask_in(NAMESPACE, method, path, body).await
}

/// Calls the API with curl in the pod of a namespace's Ironic, which has the password. Returns null
/// when the response has no body.
pub(crate) async fn ask_in(
    namespace: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value> {
    let url = format!("http://127.0.0.1:6385{path}");
    let body = body.map(Value::to_string);
    let mut words = vec!["-n", namespace, "exec", "deployment/ironic", "-c", "ironic", "--"];
    words.extend(["curl", "--config", "/etc/ironic/curl", "--request", method]);
    if let Some(body) = &body {
        words.extend(["--data-binary", body]);
    }
    words.push(&url);
    let text = run("kubectl", &words).await?;
    if text.trim().is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&text)?) }
}

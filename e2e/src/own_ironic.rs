//! An Ironic for one test that authenticates with the lab's Keystone; its machines boot no host.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::{Namespace, cells, ironic};

/// The timeout for each wait.
const PATIENCE: Duration = Duration::from_mins(10);
/// The name of all its objects.
const NAME: &str = "ironic";
/// The URL of the lab's Keystone.
pub const KEYSTONE: &str = "http://10.96.10.10:5000";

/// An Ironic that runs in a namespace.
pub struct OwnIronic {
    namespace: String,
    /// The URL for operators.
    pub endpoint: String,
}

impl OwnIronic {
    /// Starts an Ironic at an address of the Service range, and waits until it answers.
    pub async fn start(ns: &Namespace, address: &str) -> Result<Self> {
        let config = config(&password_of_nova(ns).await?);
        ns.secret("ironic-config", &[("ironic.conf", &config), ("curl", CURL)]).await?;
        ns.create::<Deployment>(NAME, deployment(&image(ns).await?)).await?;
        let service = json!({
            "clusterIP": address, "selector": { "app": NAME }, "ports": [{ "port": 6385 }],
        });
        ns.create::<Service>(NAME, service).await?;
        let answers =
            |it: &Deployment| it.status.as_ref().is_some_and(|it| it.available_replicas == Some(1));
        ns.wait::<Deployment>(NAME, "answering", PATIENCE, answers).await?;
        Ok(Self { namespace: ns.name.clone(), endpoint: format!("http://{address}:6385") })
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        ironic::ask_in(&self.namespace, method, path, body).await
    }

    /// Enrolls a machine, as the only one of its resource class.
    pub async fn enroll(&self, name: &str) -> Result<()> {
        let node = json!({ "name": name, "driver": "fake-hardware", "resource_class": name });
        self.ask("POST", "/v1/nodes", Some(&node)).await.map(drop)
    }

    /// Waits until a machine is in a state, by polling, as Ironic has no watches.
    pub async fn reaches(&self, machine: &str, state: &str) -> Result<()> {
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        let reached = async {
            loop {
                tick.tick().await;
                let node = self.ask("GET", &format!("/v1/nodes/{machine}"), None).await?;
                if node["provision_state"] == state {
                    return Ok(());
                }
            }
        };
        let waited = tokio::time::timeout(PATIENCE, reached).await;
        waited.with_context(|| format!("machine {machine} does not become {state}"))?
    }
}

/// Returns the image of the lab's Ironic.
async fn image(ns: &Namespace) -> Result<String> {
    let lab = Namespace::existing(&ns.client, ironic::NAMESPACE);
    let found = lab.api::<Deployment>().get(NAME).await.context("the lab has no Ironic")?;
    let pod = found.spec.and_then(|it| it.template.spec).context("no pod")?;
    pod.containers.first().and_then(|it| it.image.clone()).context("no image")
}

/// Returns the password of the user `nova`, an administrator of the project `service`.
pub async fn password_of_nova(ns: &Namespace) -> Result<String> {
    cells::demo_value(ns, "keystone-users", "NOVA_PASSWORD").await
}

/// curl's configuration in the pod, which keeps the token off the command line.
const CURL: &str = "header = \"@/run/ironic/token\"
header = \"X-OpenStack-Ironic-API-Version: latest\"
header = \"Content-Type: application/json\"
silent
show-error
fail-with-body
";

/// Returns its configuration. Users with a role in the service project may see all machines, not
/// only those of that project.
fn config(password: &str) -> String {
    format!(
        "[DEFAULT]
use_stderr = true
host = ironic
auth_strategy = keystone
rbac_service_role_elevated_access = true
rpc_transport = none
enabled_hardware_types = fake-hardware
enabled_boot_interfaces = fake
enabled_deploy_interfaces = fake
enabled_vendor_interfaces = fake
enabled_network_interfaces = noop
tempdir = /run/ironic
[api]
host_ip = 0.0.0.0
port = 6385
[database]
connection = sqlite:////run/ironic/ironic.sqlite
[deploy]
configdrive_use_object_store = false
[keystone_authtoken]
www_authenticate_uri = {KEYSTONE}
auth_url = {KEYSTONE}
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = nova
password = {password}
"
    )
}

/// Requests a token from the lab's Keystone to enroll machines with, valid for an hour.
const TOKEN: &str = r#"python3 -c '
import configparser, json, urllib.request
found = configparser.ConfigParser(interpolation=None)
found.read("/etc/ironic/ironic.conf")
it = found["keystone_authtoken"]
domain = {"name": "Default"}
user = {"name": it["username"], "domain": domain, "password": it["password"]}
scope = {"project": {"name": it["project_name"], "domain": domain}}
identity = {"methods": ["password"], "password": {"user": user}}
body = json.dumps({"auth": {"identity": identity, "scope": scope}}).encode()
kind = {"Content-Type": "application/json"}
request = urllib.request.Request(it["auth_url"] + "/v3/auth/tokens", body, kind)
print("X-Auth-Token: " + urllib.request.urlopen(request).headers["X-Subject-Token"])
' > /run/ironic/token"#;

/// Checks that the API answers and a conductor has registered its hardware types. The latter is
/// read from the database, because the API shows it to system administrators only.
const HAS_DRIVERS: &str = r#"curl --config /etc/ironic/curl http://127.0.0.1:6385/v1/nodes &&
python3 -c '
import sqlite3
tables = sqlite3.connect("/run/ironic/ironic.sqlite")
count = "SELECT count(*) FROM conductor_hardware_interfaces"
raise SystemExit(tables.execute(count).fetchone()[0] == 0)'"#;

/// Returns the start script: get a token, create the database schema, start Ironic.
fn start() -> String {
    format!(
        "{TOKEN}
ironic-dbsync --config-file /etc/ironic/ironic.conf create_schema
exec ironic --config-file /etc/ironic/ironic.conf"
    )
}

fn deployment(image: &str) -> Value {
    let container = json!({
        "name": NAME, "image": image, "command": ["bash", "-ec", start()],
        // Ready once its conductor has registered its hardware types: before, no machine can be
        // enrolled.
        "readinessProbe": {
            "exec": { "command": ["bash", "-c", HAS_DRIVERS] }, "periodSeconds": 2, "timeoutSeconds": 5,
        },
        "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
        },
        "volumeMounts": [
            { "name": "config", "mountPath": "/etc/ironic" },
            { "name": "run", "mountPath": "/run/ironic" },
        ],
    });
    json!({
        "replicas": 1,
        "strategy": { "type": "Recreate" },
        "selector": { "matchLabels": { "app": NAME } },
        "template": {
            "metadata": { "labels": { "app": NAME } },
            "spec": {
                "dnsPolicy": "Default",
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": 2,
                "automountServiceAccountToken": false,
                "securityContext": {
                    "runAsUser": 42436, "runAsGroup": 42436, "fsGroup": 42436, "runAsNonRoot": true,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [container],
                "volumes": [
                    { "name": "config", "secret": { "secretName": "ironic-config", "defaultMode": 288 } },
                    { "name": "run", "emptyDir": { "medium": "Memory" } },
                ],
            },
        },
    })
}

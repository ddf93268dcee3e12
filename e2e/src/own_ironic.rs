//! An Ironic of a test's own: its machines boot nowhere, its failures are real and concern nobody else.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::{Namespace, cells, ironic};

/// Its username and its password, for nobody else.
pub const USER: [(&str, &str); 2] = [("username", "operator"), ("password", "only-for-tests")];
/// How long it may take to start, or to end.
const PATIENCE: Duration = Duration::from_mins(4);
/// The name of all objects that it is made of.
const NAME: &str = "ironic";
/// Where the lab's Keystone is reached.
pub const KEYSTONE: &str = "http://10.96.10.10:5000";

/// Which one it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Flavour {
    /// It does what it is told.
    Sound,
    /// It does what those tell it whom the lab's Keystone knows.
    Keystone,
    /// Each deployment with a config drive fails, for it is to be kept where nothing is.
    WithoutStore,
    /// It answers as one of the year 2017: only which versions of the API it speaks.
    Old,
}

/// An Ironic that runs in a namespace.
pub struct OwnIronic {
    namespace: String,
    /// Where operators reach it.
    pub endpoint: String,
}

impl OwnIronic {
    /// Starts one at an address of the range of Services, and waits until it answers.
    pub async fn start(ns: &Namespace, flavour: Flavour, address: &str) -> Result<Self> {
        let config = match flavour {
            Flavour::Keystone => keystone(&config(flavour), &password_of_nova(ns).await?),
            Flavour::Sound | Flavour::WithoutStore | Flavour::Old => config(flavour),
        };
        ns.secret("ironic-config", &[("ironic.conf", &config), ("curl", &curl(flavour))]).await?;
        let image = image(ns).await?;
        ns.create::<Deployment>(NAME, deployment(flavour, &image)).await?;
        let service = json!({
            "clusterIP": address, "selector": { "app": NAME }, "ports": [{ "port": 6385 }],
        });
        ns.create::<Service>(NAME, service).await?;
        let answers =
            |it: &Deployment| it.status.as_ref().is_some_and(|it| it.available_replicas == Some(1));
        ns.wait::<Deployment>(NAME, "answering", PATIENCE, answers).await?;
        Ok(Self { namespace: ns.name.clone(), endpoint: format!("http://{address}:6385") })
    }

    /// An answer of its API.
    pub async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        ironic::ask_in(&self.namespace, method, path, body).await
    }

    /// Makes a machine known to it, as the only one of its resource class.
    pub async fn enroll(&self, name: &str, more: Value) -> Result<()> {
        let mut node = json!({ "name": name, "driver": "fake-hardware", "resource_class": name });
        let fields = node.as_object_mut().context("no object")?;
        fields.extend(more.as_object().cloned().unwrap_or_default());
        self.ask("POST", "/v1/nodes", Some(&node)).await.map(drop)
    }

    /// Waits until a machine is in a state; nobody but Ironic tells, so it is asked.
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

/// Ends the one of a namespace, and waits until nobody answers.
pub async fn stop(ns: &Namespace) -> Result<()> {
    let is_its = |it: &Pod| it.labels().get("app").is_some_and(|it| it == NAME);
    let pods = ns.list::<Pod>().await?.into_iter().filter(is_its);
    ns.merge::<Deployment>(NAME, json!({ "spec": { "replicas": 0 } })).await?;
    for pod in pods {
        ns.gone::<Pod>(&pod.name_any(), PATIENCE).await?;
    }
    Ok(())
}

/// The image of the lab's Ironic.
async fn image(ns: &Namespace) -> Result<String> {
    let lab = Namespace::existing(&ns.client, ironic::NAMESPACE);
    let found = lab.api::<Deployment>().get(NAME).await.context("the lab has no Ironic")?;
    let pod = found.spec.and_then(|it| it.template.spec).context("no pod")?;
    pod.containers.first().and_then(|it| it.image.clone()).context("no image")
}

/// Its configuration. It looks at the power of machines seldom, for it forgets then what went wrong with
/// them.
fn config(flavour: Flavour) -> String {
    format!(
        "[DEFAULT]
use_stderr = true
host = ironic
auth_strategy = http_basic
http_basic_auth_user_file = /run/ironic/htpasswd
rpc_transport = none
enabled_hardware_types = fake-hardware
enabled_boot_interfaces = fake
enabled_deploy_interfaces = fake,ramdisk
enabled_vendor_interfaces = fake
enabled_network_interfaces = noop
tempdir = /run/ironic
[api]
host_ip = 0.0.0.0
port = 6385
[conductor]
sync_power_state_interval = 3600
[database]
connection = sqlite:////run/ironic/ironic.sqlite
[deploy]
configdrive_use_object_store = {}
",
        flavour == Flavour::WithoutStore
    )
}

/// The password of the user `nova`, who is an administrator of the project `service`.
pub async fn password_of_nova(ns: &Namespace) -> Result<String> {
    cells::demo_value(ns, "keystone-users", "NOVA_PASSWORD").await
}

/// A configuration with the lab's Keystone. Who has a role in the project of the services may see all
/// machines, not only those of that project.
fn keystone(config: &str, password: &str) -> String {
    let config = config.replace(
        "auth_strategy = http_basic\n",
        "auth_strategy = keystone\nrbac_service_role_elevated_access = true\n",
    );
    format!(
        "{config}[keystone_authtoken]
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

/// How curl in the pod asks: no command line shows the password, or the token.
fn curl(flavour: Flavour) -> String {
    let [(_, user), (_, password)] = USER;
    let basic = ironic::curl(user, password);
    if flavour != Flavour::Keystone {
        return basic;
    }
    let rest = basic.lines().skip(1).collect::<Vec<_>>().join("\n");
    format!("header = \"@/run/ironic/token\"\n{rest}\n")
}

/// Asks the lab's Keystone for a token with which the test enrolls machines, for an hour.
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

/// Whether a conductor has told which hardware it knows, and the API answers.
const HAS_DRIVERS: &str = r#"curl --config /etc/ironic/curl http://127.0.0.1:6385/v1/nodes &&
python3 -c '
import sqlite3
tables = sqlite3.connect("/run/ironic/ironic.sqlite")
count = "SELECT count(*) FROM conductor_hardware_interfaces"
raise SystemExit(tables.execute(count).fetchone()[0] == 0)'"#;

/// Makes who may ask it and its tables, and becomes Ironic.
fn start(flavour: Flavour) -> String {
    let [(_, user), (_, password)] = USER;
    let login = if flavour == Flavour::Keystone {
        TOKEN.to_owned()
    } else {
        format!(
            "python3 -c 'import bcrypt
hashed = bcrypt.hashpw(b\"{password}\", bcrypt.gensalt(5)).decode()
print(\"{user}:\" + hashed)' > /run/ironic/htpasswd"
        )
    };
    format!(
        "{login}
ironic-dbsync --config-file /etc/ironic/ironic.conf create_schema
exec ironic --config-file /etc/ironic/ironic.conf"
    )
}

/// Answers which versions it speaks, and nothing else.
const OLD: &str = r#"exec python3 -c '
import http.server

class Old(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"""{"default_version": {"min_version": "1.1", "version": "1.31"}}""")

http.server.ThreadingHTTPServer(("", 6385), Old).serve_forever()'"#;

fn deployment(flavour: Flavour, image: &str) -> Value {
    let (command, path) = match flavour {
        Flavour::Old => (OLD.to_owned(), "/"),
        Flavour::Sound | Flavour::Keystone | Flavour::WithoutStore => {
            (start(flavour), "/v1/drivers")
        }
    };
    let what = if flavour == Flavour::Old { "default_version" } else { "fake-hardware" };
    let asks = if flavour == Flavour::Keystone {
        // Only an administrator of the system may ask for drivers.
        HAS_DRIVERS.to_owned()
    } else {
        format!("curl --config /etc/ironic/curl http://127.0.0.1:6385{path} | grep -q {what}")
    };
    let container = json!({
        "name": NAME, "image": image, "command": ["bash", "-ec", command],
        // Ready once its conductor has told which hardware it knows: before, no machine can be enrolled.
        "readinessProbe": {
            "exec": { "command": ["bash", "-c", asks] }, "periodSeconds": 2, "timeoutSeconds": 5,
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

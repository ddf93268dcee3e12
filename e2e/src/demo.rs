//! The demo's objects, for tests of the main job; tests restore what they change.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use api::conditions::Condition;
use api::dataplane::Node;
use api::nova::ExternalCompute;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{Namespace, cluster, holds, run};

/// The names of the hosts, which are also those of their nodes and computes.
pub const HOSTS: [&str; 2] = ["edpm-compute-0", "edpm-compute-1"];
/// The timeout for a deployment of both hosts.
pub const DEPLOYMENT: Duration = Duration::from_mins(14);

/// The variable of nova-operator with the runner image that new computes get.
const RUNNER_IMAGE: &str = "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT";

/// The namespace of the demo.
pub struct Demo {
    /// The namespace.
    pub ns: Namespace,
}

impl Demo {
    /// Returns the demo once both hosts are ready.
    pub async fn ready() -> Result<Self> {
        let client = cluster::client().await?;
        let demo = Self { ns: Namespace::existing(&client, "openstack") };
        demo.settled().await?;
        Ok(demo)
    }

    /// Returns the demo once one host is ready; the other may be in any state.
    pub async fn ready_on(host: &str) -> Result<Self> {
        let client = cluster::client().await?;
        let demo = Self { ns: Namespace::existing(&client, "openstack") };
        demo.settled_on(host).await?;
        Ok(demo)
    }

    /// Waits until both hosts are ready and up to date.
    pub async fn settled(&self) -> Result<()> {
        for host in HOSTS {
            self.settled_on(host).await?;
        }
        Ok(())
    }

    /// Waits until a host is ready and up to date.
    pub async fn settled_on(&self, host: &str) -> Result<()> {
        let is_settled = |it: &Node| is_settled(it.metadata.generation, &of_node(it));
        self.ns.wait::<Node>(host, "ready and up to date", DEPLOYMENT, is_settled).await?;
        self.compute(host, "ready and up to date", is_settled_compute).await.map(drop)
    }

    /// Waits until a compute satisfies `is_it`.
    pub async fn compute(
        &self,
        host: &str,
        what: &str,
        is_it: impl Fn(&ExternalCompute) -> bool,
    ) -> Result<ExternalCompute> {
        self.ns.wait(host, what, DEPLOYMENT, is_it).await
    }

    /// Changes annotations of a node.
    pub async fn annotate(&self, node: &str, annotations: Value) -> Result<()> {
        let change = json!({ "metadata": { "annotations": annotations } });
        self.ns.merge::<Node>(node, change).await.map(drop)
    }

    /// Waits until the conditions of a node satisfy `is_it`.
    pub async fn node(
        &self,
        node: &str,
        what: &str,
        is_it: impl Fn(&[Condition]) -> bool,
    ) -> Result<()> {
        let is_it = |it: &Node| is_it(of_node(it).1);
        self.ns.wait::<Node>(node, what, DEPLOYMENT, is_it).await.map(drop)
    }

    /// Returns the user's options of a compute.
    pub async fn options(&self, host: &str) -> Result<String> {
        let compute = self.ns.api::<ExternalCompute>().get(host).await?;
        Ok(compute.spec.custom_service_config.unwrap_or_default())
    }

    /// Sets the options of a compute.
    pub async fn configure(&self, host: &str, options: &str) -> Result<()> {
        let change = json!({ "spec": { "customServiceConfig": options } });
        self.ns.merge::<ExternalCompute>(host, change).await.map(drop)
    }

    /// Requests another attempt of a compute's services, and waits until it has succeeded.
    pub async fn redeploy(&self, host: &str) -> Result<()> {
        let before = self.ns.api::<ExternalCompute>().get(host).await?;
        let value = json!({ "nova.openstack.org/redeploy": fresh(&before) });
        let change = json!({ "metadata": { "annotations": value } });
        self.ns.merge::<ExternalCompute>(host, change).await?;
        let instance = |it: &ExternalCompute| it.status.as_ref()?.host_instance.clone();
        let is_done =
            |it: &ExternalCompute| instance(it) != instance(&before) && is_settled_compute(it);
        self.compute(host, "deployed once more", is_done).await.map(drop)
    }

    /// Has a compute deployed by the runner image of the operators that run now: one that an earlier
    /// release made keeps the image of that release.
    pub async fn use_present_runner(&self, host: &str) -> Result<()> {
        if self.set_present_runner(host).await? {
            self.redeploy(host).await?;
        }
        Ok(())
    }

    /// Sets that image for the next deployment; returns whether it was another one.
    pub async fn set_present_runner(&self, host: &str) -> Result<bool> {
        let path = format!(
            "jsonpath={{.spec.template.spec.containers[*].env[?(@.name=='{RUNNER_IMAGE}')].value}}"
        );
        let get = ["get", "deployment", "-n", "edpm-system", "nova-operator", "-o", &path];
        let image = run("kubectl", &get).await?;
        ensure!(!image.is_empty(), "nova-operator has no {RUNNER_IMAGE}");
        let compute = self.ns.api::<ExternalCompute>().get(host).await?;
        if compute.spec.ansible_ee_container_image.as_ref() == Some(&image) {
            return Ok(false);
        }
        let change = json!({ "spec": { "ansibleEEContainerImage": image } });
        self.ns.merge::<ExternalCompute>(host, change).await?;
        Ok(true)
    }

    /// Runs a shell command on a host.
    pub async fn on(&self, host: &str, command: &str) -> Result<String> {
        run("kubectl", &["exec", "-n", "edpm-hosts", host, "--", "sh", "-c", command]).await
    }

    /// Runs an SQL statement in the database of a cell.
    pub async fn sql(&self, cell: &str, statement: &str) -> Result<String> {
        let database = cell.replace('-', "_");
        let query = ["mariadb", "--batch", "--skip-column-names", &database, "-e", statement];
        self.exec("mariadb", &query).await
    }

    /// Keeps a record of a server on a host that nova's scheduler chooses, or deletes it: see the
    /// program `nova-server` of the lab's image. Returns what it prints.
    pub async fn server(&self, arguments: &[&str]) -> Result<String> {
        let said = self.exec("nova-api", &[&["nova-server"], arguments].concat()).await?;
        Ok(said.trim().to_owned())
    }

    /// Runs a program with nova's libraries, where nova's API runs.
    pub async fn python(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let python = ["/opt/openstack/bin/python3", "-c", program];
        self.exec("nova-api", &[&python[..], arguments].concat()).await.map(drop)
    }

    /// Returns the answer of nova's API to a GET of a path, at microversion 2.88.
    pub async fn nova(&self, path: &str) -> Result<Value> {
        let said = self.exec("nova-api", &["openstack-get", "compute", path, "2.88"]).await?;
        serde_json::from_str(&said).with_context(|| said)
    }

    /// Returns the answer of placement's API to a GET of a path, at microversion 1.20.
    pub async fn placement(&self, path: &str) -> Result<Value> {
        let said = self.exec("nova-api", &["openstack-get", "placement", path, "1.20"]).await?;
        serde_json::from_str(&said).with_context(|| said)
    }

    /// Returns the table of the hosts that nova has mapped to cells, as `nova-manage` prints it.
    pub async fn mapped_hosts(&self) -> Result<String> {
        self.exec("nova-manage", &["nova-manage", "cell_v2", "list_hosts"]).await
    }

    /// Has nova map the hosts that it has not mapped to cells.
    pub async fn discover_hosts(&self) -> Result<()> {
        let discover = ["nova-manage", "cell_v2", "discover_hosts"];
        self.exec("nova-manage", &discover).await.map(drop)
    }

    /// Runs a command in a Deployment of the control plane.
    pub(crate) async fn exec(&self, deployment: &str, command: &[&str]) -> Result<String> {
        let target = format!("deployment/{deployment}");
        let exec = ["exec", "-n", &self.ns.name, &target, "--"];
        run("kubectl", &[&exec[..], command].concat()).await
    }

    /// Returns what nova's API says of the service of a host: whether it is disabled, and why;
    /// `None` where it has no service of the host.
    pub async fn service(&self, host: &str) -> Result<Option<(String, String)>> {
        let found = self.nova(&format!("/os-services?host={host}&binary=nova-compute")).await?;
        let services = found["services"].as_array().context("a list of services")?;
        ensure!(services.len() < 2, "{found}");
        let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        Ok(services.first().map(|it| (word(&it["status"]), word(&it["disabled_reason"]))))
    }

    /// Returns the UUID of the compute node of a host as nova's API lists it, which leaves out hosts
    /// without a mapping.
    pub async fn hypervisor(&self, host: &str) -> Result<Option<String>> {
        let found = self.nova("/os-hypervisors").await?;
        let all = found["hypervisors"].as_array().context("a list of hypervisors")?;
        let of_host = all.iter().find(|it| it["hypervisor_hostname"] == host);
        Ok(of_host.and_then(|it| it["id"].as_str()).map(str::to_owned))
    }

    /// Returns the UUID of the resource provider of a host; `None` where placement has none.
    pub async fn provider(&self, host: &str) -> Result<Option<String>> {
        let found = self.placement(&format!("/resource_providers?name={host}")).await?;
        let all = found["resource_providers"].as_array().context("a list of providers")?;
        Ok(all.first().and_then(|it| it["uuid"].as_str()).map(str::to_owned))
    }

    /// Waits until nova's API lists a compute as up and its host as mapped.
    pub async fn up_and_mapped(&self, host: &str) -> Result<()> {
        let is_healthy =
            |it: &ExternalCompute| ["ServiceUp", "HostMapped"].map(|t| holds(it.conditions(), t));
        self.compute(host, "up and mapped", |it| is_healthy(it) == [true; 2]).await.map(drop)
    }

    /// Returns name, ID and start time of each container on a host.
    pub async fn containers(&self, host: &str) -> Result<String> {
        let format = "{{.Names}} {{.ID}} {{.StartedAt}}";
        self.on(host, &format!("podman ps --no-trunc --format '{format}' | sort")).await
    }

    /// Returns the names of the files that the running nova-compute reads, as listed in its
    /// container.
    pub async fn loaded(&self, host: &str) -> Result<BTreeSet<String>> {
        let names = self.on(host, "podman exec nova_compute ls /etc/nova/nova.conf.d").await?;
        Ok(names.split_whitespace().map(str::to_owned).collect())
    }

    /// Returns the value of an option that the running nova-compute logged at its start.
    pub async fn logged(&self, host: &str, option: &str) -> Result<String> {
        let command = format!(
            "started=$(podman inspect --format '{{{{.State.StartedAt.Unix}}}}' nova_compute); \
             podman logs --since $started nova_compute 2>&1 | grep -F ' {option} ' | \
             grep -F log_opt_values | tail -n 1"
        );
        let line = self.on(host, &command).await?;
        let value = line.split_once(" = ").and_then(|(_, it)| it.split_once(" log_opt_values"));
        let value = value.with_context(|| format!("{option} is not in the log of {host}: {line}"));
        Ok(value?.0.trim().to_owned())
    }

    /// Runs `cargo xtask demo --verify`, which must fail, and returns its output.
    pub async fn refuted(&self) -> Result<String> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let verify = format!("cd '{root}' && cargo xtask demo --verify");
        match run("sh", &["-c", &verify]).await {
            Ok(text) => bail!("the demo holds, it says: {text}"),
            Err(error) => Ok(format!("{error:#}")),
        }
    }
}

/// Returns a value that no annotation of the object has had before.
pub fn fresh(object: &impl ResourceExt) -> String {
    object.resource_version().unwrap_or_default()
}

/// Whether a compute is ready and up to date.
fn is_settled_compute(it: &ExternalCompute) -> bool {
    let status = it.status.as_ref();
    let observed = status.and_then(|it| it.observed_generation);
    is_settled(it.metadata.generation, &(observed, it.conditions()))
}

fn of_node(it: &Node) -> (Option<i64>, &[Condition]) {
    (it.status.as_ref().and_then(|it| it.observed_generation), it.conditions())
}

fn is_settled(
    generation: Option<i64>,
    (observed, conditions): &(Option<i64>, &[Condition]),
) -> bool {
    *observed == generation && holds(conditions, "Ready") && holds(conditions, "UpToDate")
}

//! One simulated cluster from start to end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::broker::Broker;
use crate::control_plane::{Audit, ControlPlane};
use crate::folder::Folder;
use crate::helm_release::{self, Rendered, apply};
use crate::keystone::Keystone;
use crate::nova::Nova;
use crate::operator::Operator;
use crate::operators::Operators;
use crate::player::Player;
use crate::processes::Processes;
use crate::ready_watch::ReadyWatch;
use crate::{ports, programs};

/// Values of the chart that tests may change: most have no nova, and all servers are on this host.
const DEFAULTS: [&str; 2] = ["nova.api.enabled=false", "allowedEndpointNetworks={127.0.0.0/8}"];
/// The region of cells whose Secret names none.
const REGION: &str = "regionOne";

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Deviations of a simulated cluster from the chart's defaults.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Values of the chart, as Helm's `--set` takes them. Nova's API is not used unless they say so:
    /// most tests have no nova.
    pub values: Vec<String>,
    /// Lease duration in seconds, after which another process takes over from a killed leader;
    /// `None` keeps the operators' default.
    pub lease_seconds: Option<u16>,
    /// Where the API server writes its audit log; `None` writes none.
    pub audit: Option<Audit>,
}

/// A running simulated cluster; all its processes end with the process that started it.
pub struct Simulation {
    /// Client with the administrator's permissions.
    pub client: Client,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The folder that contains kubectl and helm.
    pub bin: PathBuf,
    /// The operators.
    pub operators: Operators,
    /// Plays the role of kubelet, hosts and Ansible.
    pub player: Player,
    /// What became of `Ready` of all objects.
    pub ready: ReadyWatch,
    /// The message bus of each cell, whose users are `nova-cell1` and `nova-cell2`.
    pub brokers: [Broker; 2],
    /// The Keystone of all cells. It lets no user in before a test admits one, so that an operator
    /// which reads nova's API gets no answer from [`Simulation::nova`] in other tests.
    pub keystone: Keystone,
    /// The nova of the default region, where computes register when they are deployed.
    pub nova: Nova,
    rendered: Rendered,
    values: Vec<String>,
    // Dropped last: the folder is removed when no process writes there any more.
    _plane: ControlPlane,
    _folder: Folder,
}

impl Simulation {
    /// Starts everything; resolves when each operator leads and is ready.
    pub async fn start(options: &Options) -> Result<Self> {
        // An error means that a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let bin = programs::of_cluster()?;
        let values: Vec<String> =
            DEFAULTS.iter().map(|it| (*it).to_owned()).chain(options.values.clone()).collect();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = Folder::new(&format!("{}-{number}", std::process::id()))?;
        let processes = Processes::new();
        let (plane, rendered) = tokio::try_join!(
            ControlPlane::start(&bin, &folder, &processes, options.audit.as_ref()),
            Rendered::new(&bin, &values),
        )?;
        let client = plane.client().await?;
        let mut webhooks = BTreeMap::new();
        for operator in Operator::SERVING {
            webhooks.insert(operator, ports::free()?);
        }
        for name in rendered.namespaces() {
            make_namespace(&client, name).await?;
        }
        apply(&bin, &plane.kubeconfig, &rendered.applied(&webhooks)).await?;
        let player = Player::start(client.clone()).await?;
        let ready = ReadyWatch::start(&client);
        let broker = async |cell: &str| Broker::start(cell, &format!("bus-of-{cell}"), cell).await;
        let brokers = [broker("nova-cell1").await?, broker("nova-cell2").await?];
        let keystone = Keystone::start().await?;
        let nova = Nova::start(&keystone, REGION).await?;
        player.registers_in(REGION, &nova);
        let operators = Operators::new(
            programs::of_operators()?,
            (&folder, &processes),
            &plane,
            &client,
            (&rendered, webhooks, options.lease_seconds),
        )
        .await?;
        for operator in Operator::ALL {
            operators.start(operator)?;
        }
        for operator in Operator::ALL {
            operators.ready(operator).await?;
        }
        let kubeconfig = plane.kubeconfig.clone();
        Ok(Self {
            client,
            kubeconfig,
            bin,
            operators,
            player,
            ready,
            brokers,
            keystone,
            nova,
            rendered,
            values,
            _plane: plane,
            _folder: folder,
        })
    }

    /// Starts the nova of one more region, where the computes of cells in that region register when
    /// they are deployed.
    pub async fn nova_of(&self, region: &str) -> Result<Nova> {
        let nova = Nova::start(&self.keystone, region).await?;
        self.player.registers_in(region, &nova);
        Ok(nova)
    }

    /// Returns the objects of a kind as the chart renders them.
    pub fn rendered(&self, kind: &str) -> Vec<Value> {
        self.rendered.of_kind(kind).cloned().collect()
    }

    /// Installs the release with Helm over the objects applied at the start. From then on its
    /// webhooks point to a Service without endpoints, as if all pods were gone.
    pub async fn install(&self) -> Result<()> {
        helm_release::install(&self.bin, &self.kubeconfig, &self.values).await
    }

    /// Uninstalls the release with Helm, as a user does.
    pub async fn uninstall(&self) -> Result<()> {
        helm_release::uninstall(&self.bin, &self.kubeconfig).await
    }
}

/// Applies the namespace instead of creating it, so that the request can be retried after a
/// timeout.
async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let (params, namespace) = (PatchParams::apply("simulated-cluster"), Patch::Apply(namespace));
    let made = Api::<Namespace>::all(client.clone()).patch(name, &params, &namespace).await;
    made.map(drop).with_context(|| format!("make the namespace {name}"))
}

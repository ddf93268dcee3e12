//! The connection to a cluster, configured as in kubectl, and the reads and writes of the commands.

use std::fmt::Debug;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client, Config, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::Access;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::proxied_client;
use crate::proxy::Variables;
use crate::snapshot::Snapshot;

/// A namespaced kind that the commands read.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
{
}

/// A client for a cluster, with the namespace of the command.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    server: String,
    /// The namespace of the command.
    pub namespace: String,
}

/// The result of reading an object that may be missing or that the user may not read.
#[derive(Clone, Debug)]
pub enum Read<K> {
    /// The object exists.
    Found(K),
    /// The object does not exist.
    Missing,
    /// The server denied the read (401 or 403); with its message.
    Refused(String),
}

impl<K> Read<K> {
    /// Returns the object, or `None` when it is missing or the read was denied.
    pub fn found(&self) -> Option<&K> {
        match self {
            Self::Found(object) => Some(object),
            Self::Missing | Self::Refused(_) => None,
        }
    }

    /// Maps a found object; the other variants stay as they are.
    pub fn map<T>(self, make: impl FnOnce(K) -> T) -> Read<T> {
        match self {
            Self::Found(object) => Read::Found(make(object)),
            Self::Missing => Read::Missing,
            Self::Refused(why) => Read::Refused(why),
        }
    }
}

impl Cluster {
    /// Connects with kubectl's precedence: flags, then KUBECONFIG, then `~/.kube/config`, then the
    /// service account of the pod.
    pub async fn connect(access: &Access) -> Result<Self> {
        // Fails only if a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (config, proxy) = config(access).await?;
        Self::reach(config, proxy.as_deref(), access, &Variables::read())
    }

    /// Creates the client, through a proxy where the kubeconfig or the environment names one.
    fn reach(
        mut config: Config,
        proxy: Option<&str>,
        access: &Access,
        variables: &Variables,
    ) -> Result<Self> {
        let server = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        let namespace = access.namespace.clone();
        let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
        let client = if let Some(proxy) = variables.proxy_of(&config.cluster_url, proxy)? {
            proxied_client::client(&config, &proxy)
        } else {
            // kube reads the environment by rules of its own.
            config.proxy_url = None;
            Client::try_from(config)
        };
        let client = client.map_err(|it| Error::of_client(&it, &server))?;
        Ok(Self { client, server, namespace })
    }

    /// Wraps an existing client.
    pub fn of_client(client: Client, server: &str, namespace: &str) -> Self {
        Self { client, server: server.to_owned(), namespace: namespace.to_owned() }
    }

    /// Returns the API of a kind in the namespace.
    pub fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Returns the API of a kind in the namespace, or in all namespaces.
    pub fn api_of<K: Kind>(&self, all_namespaces: bool) -> Api<K> {
        if all_namespaces { Api::all(self.client.clone()) } else { self.api() }
    }

    /// Converts an error of the client into the one that the user sees.
    pub fn error(&self, error: &kube::Error) -> Error {
        Error::of_client(error, &self.server)
    }

    /// Returns the host with this name in the namespace, or a `NotFound` error as the server would
    /// return it.
    pub fn host_in<'a>(&self, snapshot: &'a Snapshot, name: &str) -> Result<Host<'a>> {
        snapshot.host(&self.namespace, name).ok_or_else(|| Error::no_such_node(name))
    }

    /// Reads all objects that describe hosts. Kinds other than nodes may be absent from the
    /// cluster.
    pub async fn snapshot(&self, all_namespaces: bool) -> Result<Snapshot> {
        let is_all = all_namespaces;
        let nodes = match self.list::<Node>(is_all).await {
            Err(error) if error.is_not_found() => {
                let text = "the server doesn't have a resource type \"openstackdataplanenodes\": \
                            the operators' chart is not installed in this cluster, or KUBECONFIG \
                            or --context names another one than you mean";
                return Err(Error::message(text));
            }
            nodes => nodes?,
        };
        Ok(Snapshot {
            nodes,
            roles: self.list_known::<Role>(is_all).await?,
            node_sets: self.list_known(is_all).await?,
            deployments: self.list_known(is_all).await?,
            computes: self.list_known(is_all).await?,
            cells: self.list_known(is_all).await?,
            runs: self.list_known::<AnsibleEe>(is_all).await?,
        })
    }

    /// Reads an object that may be missing or that the user may not read; other failures are
    /// errors.
    pub async fn read<K: Kind>(&self, name: &str) -> Result<Read<K>> {
        match self.api().get(name).await.map_err(|it| self.error(&it)) {
            Ok(object) => Ok(Read::Found(object)),
            Err(error) if error.is_not_found() => Ok(Read::Missing),
            Err(Error::Server(status)) if matches!(status.code, 401 | 403) => {
                Ok(Read::Refused(status.message))
            }
            Err(error) => Err(error),
        }
    }

    /// Creates an object and returns it as the server stored it, with the name that the server
    /// generated.
    pub async fn create<K: Kind + Serialize>(&self, object: &K) -> Result<K> {
        let manager = Some("kubectl-edpm".to_owned());
        let params = PostParams { field_manager: manager, ..PostParams::default() };
        self.api().create(&params, object).await.map_err(|it| self.error(&it))
    }

    /// Applies a JSON merge patch; fields that the patch does not name stay unchanged.
    pub async fn merge<K: Kind>(&self, name: &str, change: &Value) -> Result<()> {
        let manager = PatchParams::apply("kubectl-edpm");
        let patched = self.api::<K>().patch(name, &manager, &Patch::Merge(change)).await;
        patched.map(drop).map_err(|it| self.error(&it))
    }

    async fn list<K: Kind>(&self, all_namespaces: bool) -> Result<Vec<K>> {
        let list = self.api_of(all_namespaces).list(&ListParams::default()).await;
        list.map(|it| it.items).map_err(|it| self.error(&it))
    }

    /// Lists the objects of a kind. The list is empty when the cluster does not have the kind,
    /// since its operator may not be installed.
    pub async fn list_known<K: Kind>(&self, all_namespaces: bool) -> Result<Vec<K>> {
        match self.list(all_namespaces).await {
            Err(error) if error.is_not_found() => Ok(vec![]),
            list => list,
        }
    }
}

/// Returns the configuration, and the proxy that the kubeconfig names.
async fn config(access: &Access) -> Result<(Config, Option<String>)> {
    let kubeconfig = match &access.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let is_explicit = access.kubeconfig.is_some() || access.context.is_some();
    let kubeconfig = match kubeconfig {
        Err(KubeconfigError::ReadConfig(..) | KubeconfigError::FindPath) if !is_explicit => {
            let text = "no kubeconfig: name one by KUBECONFIG or --kubeconfig";
            let config = Config::incluster().map_err(|_| Error::message(text))?;
            return Ok((config, None));
        }
        other => other.map_err(|it| Error::of_kubeconfig(&it))?,
    };
    let options =
        KubeConfigOptions { context: access.context.clone(), ..KubeConfigOptions::default() };
    let proxy = configured_proxy(&kubeconfig, access.context.as_deref());
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    Ok((config.map_err(|it| Error::of_kubeconfig(&it))?, proxy))
}

/// Returns the proxy of the cluster of a context, by default of the current one.
fn configured_proxy(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|it| it.name == name)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|it| it.name == context.cluster)?;
    cluster.cluster.as_ref()?.proxy_url.clone()
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;

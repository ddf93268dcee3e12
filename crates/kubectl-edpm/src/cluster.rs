//! The connection to a cluster, found as kubectl finds it, and what is read there.

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
use crate::snapshot::World;

/// A kind that the commands read.
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

/// A cluster, and the namespace that is meant.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    server: String,
    /// The namespace.
    pub namespace: String,
}

/// An object that a human may be kept from reading.
#[derive(Clone, Debug)]
pub enum Read<K> {
    /// It is there.
    Found(K),
    /// It is not there.
    Missing,
    /// Nobody knows: the server's words.
    Refused(String),
}

impl<K> Read<K> {
    /// The object, where it was found.
    pub fn found(&self) -> Option<&K> {
        match self {
            Self::Found(object) => Some(object),
            Self::Missing | Self::Refused(_) => None,
        }
    }

    /// The same of what is made from the object.
    pub fn map<T>(self, make: impl FnOnce(K) -> T) -> Read<T> {
        match self {
            Self::Found(object) => Read::Found(make(object)),
            Self::Missing => Read::Missing,
            Self::Refused(why) => Read::Refused(why),
        }
    }
}

impl Cluster {
    /// Finds the cluster as kubectl does: flags, then KUBECONFIG, then ~/.kube/config, then the pod's
    /// own account.
    pub async fn connect(access: &Access) -> Result<Self> {
        // Another one is installed only where somebody did so before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = config(access).await?;
        let server = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        let namespace = access.namespace.clone();
        let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|it| Error::of_client(&it, &server))?;
        Ok(Self { client, server, namespace })
    }

    /// A cluster that somebody else has connected to.
    pub fn of_client(client: Client, server: &str, namespace: &str) -> Self {
        Self { client, server: server.to_owned(), namespace: namespace.to_owned() }
    }

    /// The objects of a kind in the namespace.
    pub fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The objects of a kind in the namespace, or in all.
    pub fn api_of<K: Kind>(&self, all_namespaces: bool) -> Api<K> {
        if all_namespaces { Api::all(self.client.clone()) } else { self.api() }
    }

    /// An error of the client as the human sees it.
    pub fn error(&self, error: &kube::Error) -> Error {
        Error::of_client(error, &self.server)
    }

    /// The host of that name in the namespace that is meant, or the server's word that there is none.
    pub fn host_in<'a>(&self, world: &'a World, name: &str) -> Result<Host<'a>> {
        world.host(&self.namespace, name).ok_or_else(|| Error::no_such_node(name))
    }

    /// Reads everything that hosts are made of.
    pub async fn world(&self, all_namespaces: bool) -> Result<World> {
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
        Ok(World {
            nodes,
            roles: self.list_known::<Role>(is_all).await?,
            node_sets: self.list_known(is_all).await?,
            deployments: self.list_known(is_all).await?,
            computes: self.list_known(is_all).await?,
            cells: self.list_known(is_all).await?,
            runs: self.list_known::<AnsibleEe>(is_all).await?,
        })
    }

    /// One object, or the server's word that it is not there.
    pub async fn get<K: Kind>(&self, name: &str) -> Result<K> {
        self.api().get(name).await.map_err(|it| self.error(&it))
    }

    /// One object that may be missing, or not be the human's to read.
    pub async fn read<K: Kind>(&self, name: &str) -> Result<Read<K>> {
        match self.get(name).await {
            Ok(object) => Ok(Read::Found(object)),
            Err(error) if error.is_not_found() => Ok(Read::Missing),
            Err(Error::Server { code: 401 | 403, message, .. }) => Ok(Read::Refused(message)),
            Err(error) => Err(error),
        }
    }

    /// Makes an object; the answer has the name that the server gave it.
    pub async fn create<K: Kind + Serialize>(&self, object: &K) -> Result<K> {
        let manager = Some("kubectl-edpm".to_owned());
        let params = PostParams { field_manager: manager, ..PostParams::default() };
        self.api().create(&params, object).await.map_err(|it| self.error(&it))
    }

    /// Changes an object, and nothing that the change does not name.
    pub async fn merge<K: Kind>(&self, name: &str, change: &Value) -> Result<()> {
        let manager = PatchParams::apply("kubectl-edpm");
        let patched = self.api::<K>().patch(name, &manager, &Patch::Merge(change)).await;
        patched.map(drop).map_err(|it| self.error(&it))
    }

    async fn list<K: Kind>(&self, all_namespaces: bool) -> Result<Vec<K>> {
        let list = self.api_of(all_namespaces).list(&ListParams::default()).await;
        list.map(|it| it.items).map_err(|it| self.error(&it))
    }

    /// The objects of a kind; none where the cluster does not have the kind: its operator may not be installed.
    pub async fn list_known<K: Kind>(&self, all_namespaces: bool) -> Result<Vec<K>> {
        match self.list(all_namespaces).await {
            Err(error) if error.is_not_found() => Ok(vec![]),
            list => list,
        }
    }
}

async fn config(access: &Access) -> Result<Config> {
    let kubeconfig = match &access.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let is_explicit = access.kubeconfig.is_some() || access.context.is_some();
    let kubeconfig = match kubeconfig {
        Err(KubeconfigError::ReadConfig(..) | KubeconfigError::FindPath) if !is_explicit => {
            let text = "no kubeconfig: name one by KUBECONFIG or --kubeconfig";
            return Config::incluster().map_err(|_| Error::message(text));
        }
        other => other.map_err(|it| Error::of_kubeconfig(&it))?,
    };
    let options =
        KubeConfigOptions { context: access.context.clone(), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(|it| Error::of_kubeconfig(&it))
}

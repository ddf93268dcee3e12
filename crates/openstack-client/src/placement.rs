//! Placement: resource providers, and what consumers have allocated of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use hyper::body::Bytes;
use operator_runtime::answer_memory::Held;
use operator_runtime::http_client::HttpClient;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::Client;
use crate::error::{Error, Fault, Service};
use crate::keystone::Login;
use crate::response::parsed;
use crate::text::{self, WORD_LIMIT, is_id, query_value};

/// How many providers a consumer has shares of at most.
const PROVIDERS: usize = 128;
/// How many resource classes a share has at most.
const CLASSES: usize = 64;

/// Placement's API at the endpoint that the catalog has for a region.
#[derive(Debug)]
pub struct Placement(Client);

/// A resource provider: what placement has of a compute node.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Provider {
    /// Its UUID, which is that of the compute node.
    #[serde(deserialize_with = "text::id")]
    pub uuid: String,
    /// Its name, which is the hypervisor's host name: one line of at most 255 bytes.
    #[serde(deserialize_with = "text::word")]
    pub name: String,
    /// The number of its changes.
    pub generation: i64,
}

#[derive(Deserialize)]
struct Providers {
    resource_providers: Vec<Provider>,
}

/// The allocations of a provider by consumer, of which only the consumers are read.
#[derive(Deserialize)]
struct OfProvider {
    allocations: BTreeMap<String, Share>,
}

/// The allocations of a consumer by provider.
///
/// A consumer that has none has no project, user and generation either.
#[derive(Debug, Deserialize)]
pub(crate) struct OfConsumer {
    allocations: BTreeMap<String, Share>,
    project_id: Option<String>,
    user_id: Option<String>,
    consumer_generation: Option<i64>,
}

/// What a consumer has of one provider: amounts by resource class.
#[derive(Debug, Deserialize, Serialize)]
struct Share {
    resources: BTreeMap<String, u64>,
}

impl Placement {
    /// Creates the client without sending anything. Clients of several services may share a login.
    pub fn new(login: impl Into<Arc<Login>>, http: HttpClient, region: &str) -> Self {
        Self(Client::new(Service::Placement, login.into(), http, region))
    }

    /// Returns a provider; `None` when there is none of this UUID.
    pub async fn provider(&self, uuid: &str) -> Result<Option<Provider>, Fault> {
        self.0.find(&format!("/resource_providers/{}", self.0.id(uuid)?), provider_of).await
    }

    /// Returns the provider of a name, which only one can have; `None` when there is none.
    pub async fn provider_named(&self, name: &str) -> Result<Option<Provider>, Fault> {
        let path = format!("/resource_providers?name={}", query_value(name));
        self.0.get(&path, provider_in).await
    }

    /// Returns the UUIDs of the consumers that have a share of a provider: servers and migrations.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no provider of this UUID.
    pub async fn allocations_of(&self, provider_uuid: &str) -> Result<Held<String>, Fault> {
        let path = format!("/resource_providers/{}/allocations", self.0.id(provider_uuid)?);
        self.0.list(&path, consumers_of).await
    }

    /// Takes away what a consumer has of one provider; its shares of others stay as they are, and
    /// nothing is sent when it has none of this provider.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the consumer's allocations change at the same time.
    pub async fn drop_share(&self, consumer: &str, provider_uuid: &str) -> Result<(), Fault> {
        let path = format!("/allocations/{}", self.0.id(consumer)?);
        let allocations = self.0.get(&path, allocations_of).await?;
        let rest = allocations.without(provider_uuid).map_err(|it| self.0.fault(it))?;
        let Some(rest) = rest else { return Ok(()) };
        self.0.send(&Method::PUT, &path, Some(&rest)).await.map(|_| ())
    }

    /// Deletes a provider; it is no error when there is none.
    ///
    /// # Errors
    /// [`Error::Conflict`] while consumers have a share of it, or other providers are below it.
    pub async fn delete_provider(&self, uuid: &str) -> Result<(), Fault> {
        self.0.delete(&format!("/resource_providers/{}", self.0.id(uuid)?)).await
    }
}

impl OfConsumer {
    /// Whether there is no more of it than a server or migration can have.
    fn is_bounded(&self) -> bool {
        let shares = || self.allocations.values();
        let names = self.allocations.keys().chain(shares().flat_map(|it| it.resources.keys()));
        let mut names = names.chain(&self.project_id).chain(&self.user_id);
        self.allocations.len() <= PROVIDERS
            && shares().all(|it| it.resources.len() <= CLASSES)
            && names.all(|it| it.len() <= WORD_LIMIT)
    }

    /// Returns the request body that leaves all but the share of one provider; `None` when the
    /// consumer has no such share.
    pub(crate) fn without(mut self, provider_uuid: &str) -> Result<Option<Value>, Error> {
        if self.allocations.remove(provider_uuid).is_none() {
            return Ok(None);
        }
        let (Some(project), Some(user)) = (self.project_id, self.user_id) else {
            return Err(Error::NotTheService);
        };
        let generation = self.consumer_generation.ok_or(Error::NotTheService)?;
        Ok(Some(json!({
            "allocations": self.allocations,
            "project_id": project,
            "user_id": user,
            "consumer_generation": generation,
        })))
    }
}

/// Returns the provider of a response.
pub(crate) fn provider_of(body: &Bytes) -> Result<Provider, Error> {
    parsed(body)
}

/// Returns the provider of a list that has one or none.
pub(crate) fn provider_in(body: &Bytes) -> Result<Option<Provider>, Error> {
    let mut listed = parsed::<Providers>(body)?.resource_providers;
    let provider = listed.pop();
    if listed.is_empty() { Ok(provider) } else { Err(Error::NotTheService) }
}

/// Returns the consumers of a provider's allocations.
pub(crate) fn consumers_of(body: &Bytes) -> Result<Vec<String>, Error> {
    let consumers: Vec<String> = parsed::<OfProvider>(body)?.allocations.into_keys().collect();
    if consumers.iter().all(|it| is_id(it)) { Ok(consumers) } else { Err(Error::NotTheService) }
}

/// Returns a consumer's allocations.
pub(crate) fn allocations_of(body: &Bytes) -> Result<OfConsumer, Error> {
    let allocations = parsed::<OfConsumer>(body)?;
    if allocations.is_bounded() { Ok(allocations) } else { Err(Error::NotTheService) }
}

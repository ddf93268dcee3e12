//! Neutron: the agents of a host.

use std::sync::Arc;

use hyper::body::Bytes;
use operator_runtime::answer_memory::Held;
use operator_runtime::http_client::HttpClient;
use serde::Deserialize;

use crate::client::Client;
use crate::error::{Error, Fault, Service};
use crate::footprint::Footprint;
use crate::keystone::Login;
use crate::response::parsed;
use crate::text::{self, footprint, is_segment, not_an_id, query_value};

/// Neutron's API at the endpoint that the catalog has for a region.
#[derive(Debug)]
pub struct Network(Client);

/// An agent of a host.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Agent {
    /// Its id: a UUID, or the name of its chassis with OVN.
    #[serde(deserialize_with = "text::segment")]
    pub id: String,
    /// Its kind, for instance `OVN Controller agent`: one line of at most 255 bytes.
    #[serde(deserialize_with = "text::word")]
    pub agent_type: String,
    /// Its program, for instance `ovn-controller`: one line of at most 255 bytes.
    #[serde(deserialize_with = "text::word")]
    pub binary: String,
    /// Whether it has reported lately.
    #[serde(rename = "alive")]
    pub is_alive: bool,
}

#[derive(Deserialize)]
struct Agents {
    agents: Vec<Agent>,
}

impl Network {
    /// Creates the client without sending anything. Clients of several services may share a login.
    pub fn new(login: impl Into<Arc<Login>>, http: HttpClient, region: &str) -> Self {
        Self(Client::new(Service::Network, login.into(), http, region))
    }

    /// Returns the agents of a host.
    ///
    /// A neutron whose `pagination_max_limit` is less than a host's few agents leaves out some, so
    /// agents that were deleted are to be listed again until there is none.
    ///
    /// # Errors
    /// [`Error::NoEndpoint`] in a cloud without neutron.
    pub async fn agents_on(&self, host: &str) -> Result<Held<Agent>, Fault> {
        self.0.list(&format!("/v2.0/agents?host={}", query_value(host)), agents_of).await
    }

    /// Deletes an agent; it is no error when there is none.
    ///
    /// An agent that still runs comes back with its next report.
    pub async fn delete_agent(&self, id: &str) -> Result<(), Fault> {
        if !is_segment(id) {
            return Err(self.0.fault(not_an_id(id)));
        }
        self.0.delete(&format!("/v2.0/agents/{id}")).await
    }
}

impl Footprint for Agent {
    const PLURAL: &'static str = "agents";

    fn footprint(&self) -> usize {
        let texts = [&self.id, &self.agent_type, &self.binary];
        size_of::<Self>() + texts.into_iter().map(|it| footprint(it)).sum::<usize>()
    }
}

/// Returns the agents of a response.
pub(crate) fn agents_of(body: &Bytes) -> Result<Vec<Agent>, Error> {
    Ok(parsed::<Agents>(body)?.agents)
}

//! Hypervisors: compute nodes of hosts that are mapped to a cell.

use hyper::body::Bytes;
use serde::Deserialize;

use super::pages::{Entry, Page};
use crate::error::Error;
use crate::footprint::{Footprint, OF_ALL_HOSTS};
use crate::response::parsed;
use crate::text::{self, footprint};

/// A hypervisor, which nova lists only after its host was mapped to a cell.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Hypervisor {
    /// The UUID of the compute node; placement has its resource provider under the same one.
    #[serde(deserialize_with = "text::id")]
    pub id: String,
    /// The name of its resource provider, which need not be that of its host; empty where nova does not
    /// say it.
    #[serde(default, deserialize_with = "text::name")]
    pub hypervisor_hostname: String,
    /// Its service.
    pub service: HypervisorService,
}

/// The service of a hypervisor.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct HypervisorService {
    /// The host under which it is registered.
    #[serde(deserialize_with = "text::name")]
    pub host: String,
}

#[derive(Deserialize)]
struct Hypervisors {
    hypervisors: Vec<Hypervisor>,
}

#[derive(Deserialize)]
struct One<T> {
    hypervisor: T,
}

/// The servers of a hypervisor, which nova leaves out where there are none.
#[derive(Deserialize)]
struct WithServers {
    #[serde(default)]
    servers: Vec<ServerOfNode>,
}

#[derive(Deserialize)]
struct ServerOfNode {
    #[serde(deserialize_with = "text::id")]
    uuid: String,
}

impl Footprint for Hypervisor {
    const PLURAL: &'static str = "hypervisors";
    const MOST: usize = OF_ALL_HOSTS;

    /// It includes that of a map by host.
    fn footprint(&self) -> usize {
        let texts = [&self.id, &self.hypervisor_hostname, &self.service.host];
        2 * size_of::<Self>() + texts.into_iter().map(|it| footprint(it)).sum::<usize>()
    }
}

impl Entry for Hypervisor {
    fn id(&self) -> &str {
        &self.id
    }
}

/// Returns the hypervisor of a response.
pub(crate) fn hypervisor_of(body: &Bytes) -> Result<Hypervisor, Error> {
    Ok(parsed::<One<Hypervisor>>(body)?.hypervisor)
}

/// Returns the servers of the hypervisor of a response.
pub(crate) fn servers_of_node(body: &Bytes) -> Result<Vec<String>, Error> {
    let servers = parsed::<One<WithServers>>(body)?.hypervisor.servers;
    Ok(servers.into_iter().map(|it| it.uuid).collect())
}

/// Returns the hypervisors of a page.
///
/// A page may have fewer entries than were requested although another one follows, because nova
/// leaves out hosts without a mapping afterwards; so the last page is the first empty one.
pub(crate) fn hypervisors_of(body: &Bytes) -> Result<Page<Hypervisor>, Error> {
    let entries = parsed::<Hypervisors>(body)?.hypervisors;
    Ok(Page { is_last: entries.is_empty(), entries })
}

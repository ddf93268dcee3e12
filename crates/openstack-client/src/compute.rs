//! Nova's API, as one user sees it in one region.

mod aggregates;
mod hypervisors;
mod migrations;
mod pages;
mod servers;
mod services;

use std::sync::Arc;
use std::time::Instant;

use http::Method;
use operator_runtime::answer_memory::Held;
use operator_runtime::http_client::HttpClient;
use operator_runtime::request_times::RequestTimes;
use serde_json::{Value, json};

use crate::client::Client;
use crate::error::{Fault, Service};
use crate::keystone::Login;
use crate::text::query_value;

pub(crate) use aggregates::aggregates_with;
pub use hypervisors::{Hypervisor, HypervisorService};
pub(crate) use hypervisors::{hypervisor_of, hypervisors_of, servers_of_node};
pub use migrations::Migration;
pub(crate) use migrations::migrations_of;
pub use servers::Server;
pub(crate) use servers::{server_ids_of, servers_of};
use services::LATE;
pub(crate) use services::services_of;
pub use services::{ComputeService, KnownService, Liveness, ServiceState};

/// How many entries of a list are requested at once: nova's own limit.
const PAGE: usize = 1000;
/// Returns the query for the servers of all projects on a host, those included that are deleted and
/// may still be restored.
fn of_host(host: &str) -> String {
    format!("all_tenants=1&host={}&limit={PAGE}&soft_deleted=True", query_value(host))
}

/// Nova's API at the endpoint that the catalog has for a region.
#[derive(Debug)]
pub struct Compute(Client);

impl Compute {
    /// Creates the client without sending anything. Clients of several services may share a login.
    pub fn new(login: impl Into<Arc<Login>>, http: HttpClient, region: &str) -> Self {
        Self(Client::new(Service::Compute, login.into(), http, region))
    }

    /// Counts each request in `times`.
    #[must_use]
    pub fn counted(self, times: RequestTimes) -> Self {
        Self(self.0.counted(times))
    }

    /// Returns all nova-compute services, in one request.
    pub async fn services(&self) -> Result<Held<ComputeService>, Fault> {
        self.list_services("/os-services?binary=nova-compute").await
    }

    /// Returns the nova-compute services of a host: none, or one, unless something is wrong.
    ///
    /// `host` is the host's option `host`, exactly.
    pub async fn services_on(&self, host: &str) -> Result<Held<ComputeService>, Fault> {
        let host = query_value(host);
        self.list_services(&format!("/os-services?binary=nova-compute&host={host}")).await
    }

    async fn list_services(&self, path: &str) -> Result<Held<ComputeService>, Fault> {
        let begun = Instant::now();
        let mut services = self.0.list(path, services_of).await?;
        if begun.elapsed() >= LATE {
            services.iter_mut().for_each(ComputeService::late);
        }
        Ok(services)
    }

    /// Disables a service, so that the scheduler leaves it out; one that is disabled gets the
    /// reason, or none where it is empty. Nova takes a reason of 1 to 255 characters.
    pub async fn disable(&self, service_id: &str, reason: &str) -> Result<(), Fault> {
        let mut body = json!({"status": "disabled"});
        if !reason.is_empty() {
            body["disabled_reason"] = reason.into();
        }
        self.change_service(service_id, &body).await
    }

    /// Enables a service, whose reason goes away; it may be enabled already.
    pub async fn enable(&self, service_id: &str) -> Result<(), Fault> {
        self.change_service(service_id, &json!({"status": "enabled"})).await
    }

    /// Deletes a service, with the provider, the mapping and the memberships in aggregates of its
    /// host; it is no error when there is none.
    ///
    /// # Errors
    /// [`crate::Error::Conflict`] when the host has servers or migrations.
    pub async fn delete_service(&self, service_id: &str) -> Result<(), Fault> {
        self.0.delete(&format!("/os-services/{}", self.0.id(service_id)?)).await
    }

    /// Returns all hypervisors, page by page.
    pub async fn hypervisors(&self) -> Result<Held<Hypervisor>, Fault> {
        let list = format!("/os-hypervisors/detail?limit={PAGE}");
        pages::read(&self.0, &list, hypervisors_of).await
    }

    /// Returns the hypervisor with this UUID; `None` when nova lists none, as for a host that is not
    /// mapped to a cell.
    pub async fn hypervisor(&self, id: &str) -> Result<Option<Hypervisor>, Fault> {
        self.0.find(&format!("/os-hypervisors/{}", self.0.id(id)?), hypervisor_of).await
    }

    /// Returns the UUIDs of the servers on the host of the hypervisor with this UUID, in one list;
    /// `None` when nova lists none, as for a host that is not mapped to a cell.
    ///
    /// Nova reads them from the cell of the host alone: where that fails, the request does, unlike the
    /// lists of [`Compute::servers_on`].
    pub async fn servers_of_node(&self, id: &str) -> Result<Option<Held<String>>, Fault> {
        let path = format!("/os-hypervisors/{}?with_servers=true", self.0.id(id)?);
        let Some(ids) = self.0.find(&path, servers_of_node).await? else { return Ok(None) };
        let mut servers = self.0.held();
        self.0.add(&mut servers, ids)?;
        Ok(Some(servers))
    }

    /// Returns the UUIDs of the servers of all projects on a host, page by page. Nova needs no other
    /// service for this list. Servers that are deleted and may still be restored
    /// (`reclaim_instance_interval`) are among them: nova keeps the service of their host.
    ///
    /// Nova leaves out the servers of a cell whose database does not answer, or fails this query alone,
    /// without an error.
    pub async fn servers_on(&self, host: &str) -> Result<Held<String>, Fault> {
        let list = format!("/servers?{}", of_host(host));
        pages::read(&self.0, &list, server_ids_of).await
    }

    /// Returns the same servers with their states, page by page. Nova reads their security groups
    /// from neutron for this list.
    ///
    /// Nova leaves out the servers of a cell whose database does not answer, without an error.
    pub async fn server_states_on(&self, host: &str) -> Result<Held<Server>, Fault> {
        let list = format!("/servers/detail?{}", of_host(host));
        pages::read(&self.0, &list, servers_of).await
    }

    /// Returns the migrations from or to a host that are not at their end, page by page.
    ///
    /// Nova leaves out the migrations of a cell whose database does not answer, without an error.
    pub async fn migrations_on(&self, host: &str) -> Result<Held<Migration>, Fault> {
        let list = format!("/os-migrations?host={}&limit={PAGE}", query_value(host));
        pages::read(&self.0, &list, migrations_of).await
    }

    /// Begins the live migration of a server to a host that the scheduler chooses.
    pub async fn live_migrate(&self, server_id: &str) -> Result<(), Fault> {
        let path = format!("/servers/{}/action", self.0.id(server_id)?);
        let body = json!({"os-migrateLive": {"host": null, "block_migration": "auto"}});
        self.0.send(&Method::POST, &path, Some(&body)).await.map(|_| ())
    }

    /// Returns the names of the aggregates that list a host.
    pub async fn aggregates_with(&self, host: &str) -> Result<Held<String>, Fault> {
        self.0.list("/os-aggregates", |body| aggregates_with(body, host)).await
    }

    async fn change_service(&self, service_id: &str, body: &Value) -> Result<(), Fault> {
        let path = format!("/os-services/{}", self.0.id(service_id)?);
        self.0.send(&Method::PUT, &path, Some(body)).await.map(|_| ())
    }
}

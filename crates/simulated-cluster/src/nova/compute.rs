//! Nova's API: its version, services, hypervisors and aggregates.

use std::time::Duration;

use serde_json::{Value, json};

use super::paging::Page;
use super::rejection::{refused, unexpected};
use super::state::{Host, State};
use crate::answer::{Answer, Outcome, Query};
use crate::clock;

/// The newest microversion.
pub(crate) const NEWEST: u32 = 104;
/// How long a service is up after its last report: nova's default.
const SERVICE_DOWN_TIME: Duration = Duration::from_mins(1);

impl State {
    /// Answers a request to nova; `parts` are those of the path after `/v2.1`.
    pub(crate) fn compute(
        &mut self,
        (method, parts): (&str, &[&str]),
        query: &Query<'_>,
        body: &Value,
    ) -> Outcome {
        match (method, parts) {
            ("GET", []) => Ok(Answer::of(200, self.version())),
            ("GET", ["os-services"]) => Ok(Answer::of(200, self.services(query))),
            ("PUT", ["os-services", id]) => self.update_service(id, body),
            ("DELETE", ["os-services", id]) => self.delete_service(id),
            ("GET", ["os-hypervisors", "detail"]) => self.hypervisors(query),
            ("GET", ["os-hypervisors", id]) => self.show_hypervisor(id, query),
            ("GET", ["servers"]) => self.list_servers(query, false),
            ("GET", ["servers", "detail"]) => self.list_servers(query, true),
            ("POST", ["servers", id, "action"]) => self.act_on_server(id, body),
            ("GET", ["os-migrations"]) => self.list_migrations(query),
            ("GET", ["os-aggregates"]) => Ok(Answer::of(200, self.list_aggregates())),
            _ => Err(refused(404, "The resource could not be found.")),
        }
    }

    fn version(&self) -> Value {
        let link = json!({ "rel": "self", "href": format!("{}/v2.1/", self.endpoint) });
        json!({ "version": {
            "id": "v2.1", "status": "CURRENT", "version": format!("2.{NEWEST}"),
            "min_version": "2.1", "updated": "2013-07-23T11:33:21Z", "links": [link],
        } })
    }

    /// Lists the services; one of a cell that does not answer has three fields, because its host
    /// mapping is all that is known. Where nova waits for a cell as long as for reports, all are
    /// down: it compares the reports that it has read before with the time after that.
    fn services(&self, query: &Query<'_>) -> Value {
        let is_asked = query.get("binary").is_none_or(|it| it == "nova-compute");
        let (only, hosts) = (query.get("host"), self.hosts.iter().filter(|_| is_asked));
        let is_late = self.waits_for_cells() >= SERVICE_DOWN_TIME;
        let services: Vec<Value> = hosts
            .filter(|(name, _)| only.is_none_or(|it| it == *name))
            .filter_map(|(name, host)| {
                if self.answers(&host.cell) {
                    return Some(service(name, host, is_late));
                }
                let unknown =
                    json!({ "binary": "nova-compute", "host": name, "status": "UNKNOWN" });
                host.is_mapped.then_some(unknown)
            })
            .collect();
        json!({ "services": services })
    }

    /// Returns the host of a service; `missing` is what nova says where there is none.
    fn host_of(&self, id: &str, missing: &str) -> Result<String, Answer> {
        if !self.silent_cells.is_empty() {
            return Err(unexpected());
        }
        let found = self.hosts.iter().find(|(_, it)| it.service == id);
        found.map(|(name, _)| name.clone()).ok_or_else(|| refused(404, missing))
    }

    fn update_service(&mut self, id: &str, body: &Value) -> Outcome {
        let name = self.host_of(id, &format!("Service {id} could not be found."))?;
        let Some(host) = self.hosts.get_mut(&name) else { return Err(unexpected()) };
        let reason = body["disabled_reason"].as_str().filter(|it| !it.is_empty());
        match body["status"].as_str() {
            Some("enabled") if reason.is_some() => {
                let words = "Specifying 'disabled_reason' with status 'enabled' is invalid.";
                return Err(refused(400, words));
            }
            Some("enabled") => (host.is_disabled, host.disabled_reason) = (false, None),
            Some("disabled") => {
                (host.is_disabled, host.disabled_reason) = (true, reason.map(str::to_owned));
            }
            Some(_) => return Err(refused(400, "Invalid input for field/attribute status.")),
            None if body["forced_down"].is_boolean() => {}
            None => {
                let words = "No updates were requested. Fields 'status' or 'forced_down' should be \
                             specified.";
                return Err(refused(400, words));
            }
        }
        if let Some(forced) = body["forced_down"].as_bool() {
            host.is_forced_down = forced;
        }
        Ok(Answer::of(200, json!({ "service": service(&name, host, false) })))
    }

    /// Deletes a service with its compute node, its mapping and its places in aggregates. A provider
    /// with an allocation stays, and the answer does not show that.
    fn delete_service(&mut self, id: &str) -> Outcome {
        let name = self.host_of(id, &format!("Service {id} not found."))?;
        if self.fails_to_list(&name) {
            return Err(unexpected());
        }
        if self.servers.values().any(|it| it.host == name) {
            let words = "Unable to delete compute service that is hosting instances. Migrate or \
                         delete the instances first.";
            return Err(refused(409, words));
        }
        let mut open = self.migrations.iter().filter(|it| it.is_open());
        if open.any(|it| it.source == name || it.dest.as_ref() == Some(&name)) {
            let words = "Unable to delete compute service that has in-progress migrations. Complete \
                         the migrations or delete the instances first.";
            return Err(refused(409, words));
        }
        for hosts in self.aggregates.values_mut() {
            hosts.remove(&name);
        }
        if let Some(host) = self.hosts.remove(&name) {
            // An error means that the provider is in use.
            let _ = self.placement.delete(&host.node);
        }
        Ok(Answer::of(204, Value::Null))
    }

    /// Lists the compute nodes. Nova leaves those of hosts without a mapping out after it has cut
    /// the page.
    fn hypervisors(&self, query: &Query<'_>) -> Outcome {
        let mut nodes: Vec<(&String, &Host)> =
            self.hosts.iter().filter(|(_, it)| self.answers(&it.cell)).collect();
        nodes.sort_by_key(|(_, host)| &host.node);
        let shown = |(name, host): (&String, &Host)| {
            (host.node.clone(), host.is_mapped.then(|| hypervisor(name, host)))
        };
        let page = Page::of(nodes.into_iter().map(shown).collect(), query)?;
        let path = format!("{}/v2.1/os-hypervisors/detail", self.endpoint);
        Ok(Answer::of(200, page.listed("hypervisors", &path)))
    }

    /// Shows a compute node, and with `with_servers` the servers of its host, unless there are none: they
    /// are read from the cell of the host alone.
    fn show_hypervisor(&self, id: &str, query: &Query<'_>) -> Outcome {
        let is_it =
            |(_, it): &(&String, &Host)| it.node == id && it.is_mapped && self.answers(&it.cell);
        let missing = || refused(404, &format!("Hypervisor with ID '{id}' could not be found."));
        let (name, host) = self.hosts.iter().find(is_it).ok_or_else(missing)?;
        let mut shown = hypervisor(name, host);
        if query.get("with_servers") == Some("true") {
            if self.fails_to_list(name) {
                return Err(unexpected());
            }
            let servers = self.servers.iter().filter(|(_, it)| it.host == *name);
            let servers: Vec<Value> =
                servers.map(|(id, it)| json!({ "uuid": id, "name": it.name })).collect();
            if !servers.is_empty() {
                shown["servers"] = servers.into();
            }
        }
        Ok(Answer::of(200, json!({ "hypervisor": shown })))
    }

    fn list_aggregates(&self) -> Value {
        let aggregate = |(id, (name, hosts)): (usize, (&String, _))| {
            json!({
                "id": id + 1, "name": name, "hosts": hosts, "availability_zone": null,
                "metadata": {},
            })
        };
        let all: Vec<Value> = self.aggregates.iter().enumerate().map(aggregate).collect();
        json!({ "aggregates": all })
    }
}

/// Returns a compute node as nova shows it.
fn hypervisor(name: &str, host: &Host) -> Value {
    json!({
        "id": host.node, "hypervisor_hostname": name, "state": host.state(),
        "status": host.status(), "hypervisor_type": "QEMU", "hypervisor_version": 7_002_000,
        "host_ip": "192.0.2.1", "vcpus": 4, "vcpus_used": 0, "running_vms": 0,
        "service": { "id": host.service, "host": name, "disabled_reason": host.disabled_reason },
    })
}

/// Returns a service as nova shows it.
fn service(name: &str, host: &Host, is_late: bool) -> Value {
    let updated_at = if host.reports { clock::now() } else { host.updated_at };
    json!({
        "id": host.service, "binary": "nova-compute", "host": name, "zone": "nova",
        "status": host.status(), "state": if is_late { "down" } else { host.state() },
        "forced_down": host.is_forced_down,
        "disabled_reason": host.disabled_reason,
        "updated_at": updated_at.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string(),
    })
}

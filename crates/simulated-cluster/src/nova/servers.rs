//! Nova's API: servers and their live migrations.

use serde_json::{Value, json};

use super::paging::Page;
use super::rejection::{refused, unexpected};
use super::state::{COMPLETED, ERROR, Migration, RUNNING, Server, State};
use crate::answer::{Answer, Outcome, Query};

/// The project and the user of all servers.
pub(crate) const OWNER: &str = "00000000000040008000000000000001";
/// The state of a server that is deleted and may still be restored.
const SOFT_DELETED: &str = "soft-delete";

impl State {
    /// Lists the servers of all projects, the newest first; those of cells that do not answer, or fail
    /// this query, are left out silently, and without `all_tenants` there are none, because the
    /// caller's project has none. Deleted ones that may be restored are listed only with
    /// `soft_deleted`. Without `in_detail`, a server has only its id and its name. Nova takes `name` for a
    /// regular expression, and the fake for the whole name.
    pub(crate) fn list_servers(&self, query: &Query<'_>, in_detail: bool) -> Outcome {
        let is_of_all =
            query.get("all_tenants").is_some_and(|it| ["1", "True", "true"].contains(&it));
        let (host, name) = (query.get("host"), query.get("name"));
        let has_deleted = query.get("soft_deleted").is_some();
        let listed = self
            .servers
            .iter()
            .rev()
            .filter(|(_, it)| is_of_all && host.is_none_or(|host| it.host == host))
            .filter(|(_, it)| name.is_none_or(|name| it.name == name))
            .filter(|(_, it)| self.answers_for(&it.host) && !self.fails_to_list(&it.host))
            .filter(|(_, it)| has_deleted || it.vm_state != SOFT_DELETED)
            .map(|(id, it)| {
                let shown = || json!({ "id": id, "name": it.name });
                (id.clone(), Some(if in_detail { self.server(id, it) } else { shown() }))
            });
        let page = Page::of(listed.collect(), query)?;
        let path = if in_detail { "servers/detail" } else { "servers" };
        Ok(Answer::of(200, page.listed("servers", &format!("{}/v2.1/{path}", self.endpoint))))
    }

    fn server(&self, id: &str, server: &Server) -> Value {
        let status = match (&server.task_state, server.vm_state.as_str()) {
            (Some(_), _) => "MIGRATING",
            (None, "active") => "ACTIVE",
            (None, "stopped") => "SHUTOFF",
            (None, "paused") => "PAUSED",
            (None, "resized") => "VERIFY_RESIZE",
            (None, SOFT_DELETED) => "SOFT_DELETED",
            (None, _) => "ERROR",
        };
        json!({
            "id": id, "name": server.name, "status": status, "tenant_id": OWNER, "user_id": OWNER,
            "OS-EXT-STS:vm_state": server.vm_state, "OS-EXT-STS:task_state": server.task_state,
            "OS-EXT-SRV-ATTR:host": server.host, "config_drive": "",
            "OS-EXT-SRV-ATTR:hypervisor_hostname": server.host,
            "links": [{ "rel": "self", "href": format!("{}/v2.1/servers/{id}", self.endpoint) }],
        })
    }

    /// Performs an action on a server: only the live migration to a host that nova chooses.
    pub(crate) fn act_on_server(&mut self, id: &str, body: &Value) -> Outcome {
        let asked = &body["os-migrateLive"];
        if asked["host"] != Value::Null || asked["block_migration"] != "auto" {
            return Err(refused(400, "There is no such action."));
        }
        let missing = || refused(404, &format!("Instance {id} could not be found."));
        let server = self.servers.get(id).cloned().ok_or_else(missing)?;
        if !self.answers_for(&server.host) {
            return Err(unexpected());
        }
        let state = match &server.task_state {
            Some(task) => Some(("task_state", task.clone())),
            None if ["active", "paused"].contains(&server.vm_state.as_str()) => None,
            None => Some(("vm_state", server.vm_state.clone())),
        };
        if let Some((attribute, state)) = state {
            let words =
                format!("Cannot 'os-migrateLive' instance {id} while it is in {attribute} {state}");
            return Err(refused(409, &words));
        }
        self.migrate(id, &server.host);
        Ok(Answer::of(202, Value::Null))
    }

    /// Begins a live migration, and ends it at once unless migrations are held. Nova chooses the host
    /// after it has answered, so one without a host ends in error.
    fn migrate(&mut self, id: &str, source: &str) {
        let cell = self.hosts.get(source).map(|it| it.cell.clone());
        let fits = |(name, it): &(&String, &super::state::Host)| {
            let is_usable = it.state() == "up" && !it.is_disabled && it.is_mapped;
            is_usable && *name != source && Some(&it.cell) == cell.as_ref()
        };
        let dest = self.hosts.iter().find(fits).map(|(name, _)| name.clone());
        let status = if dest.is_some() { RUNNING } else { ERROR };
        let migration = Migration {
            uuid: self.new_id(),
            server: id.to_owned(),
            source: source.to_owned(),
            dest,
            status,
        };
        if let Some(server) = self.servers.get_mut(id).filter(|_| status == RUNNING) {
            server.task_state = Some("migrating".to_owned());
        }
        self.migrations.push(migration);
        if !self.holds_migrations {
            self.finish_migrations();
        }
    }

    /// Ends all live migrations in progress: each server is on its new host.
    pub(crate) fn finish_migrations(&mut self) {
        for migration in self.migrations.iter_mut().filter(|it| it.is_open()) {
            migration.status = COMPLETED;
            let (Some(server), Some(dest)) =
                (self.servers.get_mut(&migration.server), migration.dest.as_ref())
            else {
                continue;
            };
            server.task_state = None;
            server.host.clone_from(dest);
            let node = |name: &String| self.hosts.get(name).map(|it| it.node.clone());
            if let (Some(from), Some(to)) = (node(&migration.source), node(dest)) {
                self.placement.relocate(&migration.server, &from, &to);
            }
        }
    }

    /// Lists migrations, the newest first; `host` is that of source or destination.
    pub(crate) fn list_migrations(&self, query: &Query<'_>) -> Outcome {
        let (host, source) = (query.get("host"), query.get("source_compute"));
        let (status, server) = (query.get("status"), query.get("instance_uuid"));
        let is_asked = |it: &&Migration| {
            let is_there = |host| it.source == host || it.dest.as_deref() == Some(host);
            host.is_none_or(is_there)
                && source.is_none_or(|source| it.source == source)
                && status.is_none_or(|status| it.status == status)
                && server.is_none_or(|server| it.server == server)
                && self.answers_for(&it.source)
        };
        let listed = self.migrations.iter().rev().filter(is_asked);
        let listed = listed.map(|it| (it.uuid.clone(), Some(shown(it))));
        let page = Page::of(listed.collect(), query)?;
        let url = format!("{}/v2.1/os-migrations", self.endpoint);
        Ok(Answer::of(200, page.listed("migrations", &url)))
    }
}

fn shown(migration: &Migration) -> Value {
    json!({
        "uuid": migration.uuid, "instance_uuid": migration.server, "status": migration.status,
        "migration_type": "live-migration", "source_compute": migration.source,
        "source_node": migration.source, "dest_compute": migration.dest,
        "dest_node": migration.dest, "dest_host": null,
    })
}

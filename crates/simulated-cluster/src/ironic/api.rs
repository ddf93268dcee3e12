//! The API requests with Ironic's responses.

use serde_json::{Map, Value, json};

use super::machine::{CONDUCTOR, Machine};
use super::patch;
use super::state::State;
use crate::answer::{Answer, Outcome, Query};

/// Maximum number of machines in one response.
const PAGE: usize = 1000;

impl State {
    /// Handles a request; also returns the UUIDs of the machines whose transition it began.
    pub(crate) fn act(
        &mut self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> (Answer, Vec<String>) {
        let is_on_way = |it: &Machine| it.way.is_some();
        let ways = |it: &Self| -> Vec<String> {
            let busy = it.machines.iter().filter(|(_, it)| is_on_way(it));
            busy.map(|(uuid, _)| uuid.clone()).collect()
        };
        let before = ways(self);
        let answer = self.answer(method, path, &body.unwrap_or_default());
        let begun = ways(self).into_iter().filter(|it| !before.contains(it)).collect();
        (answer.unwrap_or_else(|it| it), begun)
    }

    fn answer(&mut self, method: &str, path: &str, body: &Value) -> Outcome {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let query = Query(query);
        let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
        match (method, &parts[..]) {
            ("GET", []) => Ok(Answer::of(200, self.root())),
            ("GET", ["v1", "nodes"]) => {
                self.n_lists += 1;
                Ok(Answer::of(200, self.list(&query)))
            }
            ("POST", ["v1", "nodes"]) => self.enroll(body),
            (_, ["v1", "nodes", machine, rest @ ..]) => {
                let words = || format!("Node {machine} could not be found.");
                let uuid = self.uuid(machine).ok_or_else(|| Answer::refused(404, &words()))?;
                self.of_machine((method, rest), &uuid, &query, body)
            }
            _ => Err(Answer::refused(404, "The resource could not be found.")),
        }
    }

    fn of_machine(
        &mut self,
        request: (&str, &[&str]),
        uuid: &str,
        query: &Query<'_>,
        body: &Value,
    ) -> Outcome {
        if request == ("PATCH", &[]) {
            return self.patch(uuid, body);
        }
        let has_store = self.has_store;
        let found = self.machines.get_mut(uuid);
        let machine = found.ok_or_else(|| Answer::refused(404, "The machine went away."))?;
        let target = body["target"].as_str().unwrap_or_default();
        match request {
            ("GET", []) => Ok(Answer::of(200, machine.shown(query.get("fields")))),
            ("GET", ["history"]) => Ok(Answer::of(200, machine.history())),
            ("GET", ["history", entry]) => {
                let words = || format!("Node history record {entry} could not be found.");
                let found = machine.history_entry(entry);
                found.map(|it| Answer::of(200, it)).ok_or_else(|| Answer::refused(404, &words()))
            }
            ("DELETE", []) => {
                machine.may_be_forgotten()?;
                machine.ends();
                self.machines.remove(uuid);
                Ok(Answer::of(204, Value::Null))
            }
            ("PUT", ["states", "provision"]) => machine.provision(target, body, has_store),
            ("PUT", ["states", "power"]) => machine.power(target),
            ("PUT" | "DELETE", ["maintenance"]) => {
                let is_on = request.0 == "PUT";
                machine.set("maintenance", json!(is_on));
                machine.set("maintenance_reason", body["reason"].clone());
                Ok(Answer::of(202, Value::Null))
            }
            ("PUT", ["traits"]) => {
                machine.set("traits", body["traits"].clone());
                Ok(Answer::of(204, Value::Null))
            }
            _ => Err(Answer::refused(404, "The resource could not be found.")),
        }
    }

    /// Returns the version document.
    fn root(&self) -> Value {
        let (min_version, version) = self.versions;
        let own = json!({
            "id": "v1", "status": "CURRENT", "min_version": min_version, "version": version,
            "links": [{ "rel": "self", "href": format!("{}/v1/", self.endpoint) }],
        });
        json!({ "name": "OpenStack Ironic API", "default_version": own, "versions": [own] })
    }

    fn list(&self, query: &Query<'_>) -> Value {
        let (marker, fields) = (query.get("marker"), query.get("fields"));
        let limit = query.get("limit").and_then(|it| it.parse().ok()).unwrap_or(PAGE);
        let later =
            self.machines.iter().filter(|(uuid, _)| marker.is_none_or(|it| uuid.as_str() > it));
        let page: Vec<(&String, &Machine)> = later.take(limit).collect();
        let nodes: Vec<Value> = page.iter().map(|(_, it)| it.shown(fields)).collect();
        let mut answer = json!({ "nodes": nodes });
        if let Some((last, _)) = page.last().filter(|_| page.len() == limit) {
            let fields = fields.map(|it| format!("&fields={it}")).unwrap_or_default();
            answer["next"] = json!(format!(
                "{}/v1/nodes?sort_key=uuid&sort_dir=asc{fields}&limit={limit}&marker={last}",
                self.endpoint
            ));
        }
        answer
    }

    fn enroll(&mut self, body: &Value) -> Outcome {
        let empty = Map::new();
        let machine = Machine::new(body.as_object().unwrap_or(&empty));
        let driver = body["driver"].as_str().unwrap_or_default();
        if driver != "fake-hardware" {
            let words = format!(
                "No valid host was found. Reason: No conductor service registered which supports \
                 driver {driver} for conductor group \"\". Ensure the driver is valid and enabled."
            );
            return Err(Answer::refused(400, &words));
        }
        let name = body["name"].as_str().unwrap_or_default();
        if !name.is_empty() && self.uuid(name).is_some() {
            let words = format!("A node with name {name} already exists.");
            return Err(Answer::refused(409, &words));
        }
        let shown = machine.shown(None);
        self.machines.insert(machine.uuid(), machine);
        Ok(Answer::of(201, shown))
    }

    fn patch(&mut self, uuid: &str, body: &Value) -> Outcome {
        let gone = || Answer::refused(404, "The machine went away.");
        let machine = self.machines.get(uuid).ok_or_else(gone)?;
        machine.accepts_commands()?;
        let fields = patch::applied(&machine.fields, body)?;
        let instance = fields.get("instance_uuid").filter(|it| !it.is_null());
        let others = self.machines.iter().filter(|(other, _)| *other != uuid);
        let is_elsewhere = |instance: &Value| {
            others.into_iter().any(|(_, it)| it.fields.get("instance_uuid") == Some(instance))
        };
        let before = machine.text("instance_uuid");
        match instance.and_then(Value::as_str) {
            Some(new) if !before.is_empty() && before != new => {
                return Err(machine.associated());
            }
            Some(new) if before != new && is_elsewhere(&json!(new)) => {
                let words = format!(
                    "Instance {new} is already associated with a node, it cannot be associated with \
                     this other node {uuid}"
                );
                return Err(Answer::refused(409, &words));
            }
            _ => {}
        }
        let machine = self.machines.get_mut(uuid).ok_or_else(gone)?;
        machine.fields = fields;
        let mut shown = machine.shown(None);
        // Ironic renders the response before the conductor releases the lock.
        shown["reservation"] = json!(CONDUCTOR);
        Ok(Answer::of(200, shown))
    }
}

//! A fake placement: providers, and what consumers have allocated of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::answer::{Answer, Outcome, Query};

/// The newest microversion.
pub(crate) const NEWEST: u32 = 39;

/// Provider → resources, of one consumer.
type Shares = BTreeMap<String, Value>;

/// Everything that the fake placement has in its database.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// By UUID.
    providers: BTreeMap<String, Provider>,
    /// By UUID; one without shares does not exist.
    consumers: BTreeMap<String, Consumer>,
}

#[derive(Debug)]
struct Provider {
    name: String,
    generation: u64,
}

#[derive(Debug)]
struct Consumer {
    generation: u64,
    project: Value,
    user: Value,
    shares: Shares,
}

/// Creates an error response in placement's format.
pub(crate) fn refused(status: u16, code: &str, detail: &str) -> Answer {
    let (title, words) = match status {
        400 => (
            "Bad Request",
            "The server could not comply with the request since it is either malformed or otherwise \
             incorrect.",
        ),
        403 => ("Forbidden", "Access was denied to this resource."),
        404 => ("Not Found", "The resource could not be found."),
        406 => (
            "Not Acceptable",
            "The resource could not be generated that was acceptable to your browser (content of type \
             application/json.",
        ),
        409 => ("Conflict", "There was a conflict when trying to complete your request."),
        _ => ("Error", ""),
    };
    let detail = format!("{words}\n\n {detail}  ");
    let error = json!({ "status": status, "title": title, "detail": detail, "code": code });
    Answer::of(status, json!({ "errors": [error] }))
}

/// Creates the response about something that does not exist.
fn not_found(detail: &str) -> Answer {
    refused(404, "placement.undefined_code", detail)
}

fn no_provider(uuid: &str) -> String {
    format!("No resource provider with uuid {uuid} found")
}

impl Placement {
    /// Adds a provider unless it exists.
    pub(crate) fn provide(&mut self, uuid: &str, name: &str) {
        let provider = Provider { name: name.to_owned(), generation: 1 };
        self.providers.entry(uuid.to_owned()).or_insert(provider);
    }

    /// Gives a consumer a share of a provider beside those that it has.
    pub(crate) fn allocate(&mut self, consumer: &str, provider: &str, owner: &str) {
        let new = || Consumer {
            generation: 0,
            project: json!(owner),
            user: json!(owner),
            shares: Shares::new(),
        };
        let consumer = self.consumers.entry(consumer.to_owned()).or_insert_with(new);
        consumer.generation += 1;
        consumer.shares.insert(provider.to_owned(), json!({ "VCPU": 1, "MEMORY_MB": 512 }));
    }

    /// Removes a consumer with its shares.
    pub(crate) fn free(&mut self, consumer: &str) {
        self.consumers.remove(consumer);
    }

    /// Replaces a consumer's share of one provider by the same share of another one.
    pub(crate) fn relocate(&mut self, consumer: &str, from: &str, to: &str) {
        let Some(consumer) = self.consumers.get_mut(consumer) else { return };
        if let Some(share) = consumer.shares.remove(from) {
            consumer.shares.insert(to.to_owned(), share);
            consumer.generation += 1;
        }
    }

    /// Answers a request; `parts` are those of the path after `/placement`.
    pub(crate) fn answer(
        &mut self,
        (method, parts): (&str, &[&str]),
        query: &Query<'_>,
        body: &Value,
    ) -> Outcome {
        match (method, parts) {
            ("GET", []) => {
                let max = format!("1.{NEWEST}");
                let version = json!({
                    "id": "v1.0", "max_version": max, "min_version": "1.0", "status": "CURRENT",
                    "links": [{ "rel": "self", "href": "" }],
                });
                Ok(Answer::of(200, json!({ "versions": [version] })))
            }
            ("GET", ["resource_providers"]) => Ok(Answer::of(200, self.list(query))),
            ("GET", ["resource_providers", uuid]) => {
                let provider = self.provider(uuid)?;
                Ok(Answer::of(200, provider.shown(uuid)))
            }
            ("DELETE", ["resource_providers", uuid]) => self.delete(uuid),
            ("GET", ["resource_providers", uuid, "allocations"]) => self.allocations_of(uuid),
            ("GET", ["allocations", consumer]) => Ok(Answer::of(200, self.shares(consumer))),
            ("PUT", ["allocations", consumer]) => self.replace(consumer, body),
            _ => Err(not_found("")),
        }
    }

    fn provider(&self, uuid: &str) -> Result<&Provider, Answer> {
        self.providers.get(uuid).ok_or_else(|| not_found(&no_provider(uuid)))
    }

    fn list(&self, query: &Query<'_>) -> Value {
        let (name, uuid) = (query.get("name"), query.get("uuid"));
        let found = self.providers.iter().filter(|(id, it)| {
            name.is_none_or(|name| it.name == name) && uuid.is_none_or(|uuid| *id == uuid)
        });
        let found: Vec<Value> = found.map(|(uuid, it)| it.shown(uuid)).collect();
        json!({ "resource_providers": found })
    }

    /// Deletes a provider that no consumer has a share of.
    pub(crate) fn delete(&mut self, uuid: &str) -> Outcome {
        if !self.providers.contains_key(uuid) {
            return Err(not_found(&format!("{} for delete", no_provider(uuid))));
        }
        if self.consumers.values().any(|it| it.shares.contains_key(uuid)) {
            let words = format!(
                "Unable to delete resource provider {uuid}: Resource provider has allocations."
            );
            return Err(refused(409, "placement.resource_provider.inuse", &words));
        }
        self.providers.remove(uuid);
        Ok(Answer::of(204, Value::Null))
    }

    fn allocations_of(&self, uuid: &str) -> Outcome {
        let missing = || {
            let words = format!("Resource provider '{uuid}' not found: {}", no_provider(uuid));
            not_found(&words)
        };
        let generation = self.providers.get(uuid).ok_or_else(missing)?.generation;
        let share = |(id, it): (&String, &Consumer)| {
            let resources = it.shares.get(uuid)?;
            let share = json!({ "resources": resources, "consumer_generation": it.generation });
            Some((id.clone(), share))
        };
        let shares: Map<String, Value> = self.consumers.iter().filter_map(share).collect();
        let body = json!({ "allocations": shares, "resource_provider_generation": generation });
        Ok(Answer::of(200, body))
    }

    fn shares(&self, consumer: &str) -> Value {
        let Some(found) = self.consumers.get(consumer) else { return json!({ "allocations": {} }) };
        let share = |(uuid, resources): (&String, &Value)| {
            let generation = self.providers.get(uuid).map(|it| it.generation);
            (uuid.clone(), json!({ "resources": resources, "generation": generation }))
        };
        let shares: Map<String, Value> = found.shares.iter().map(share).collect();
        json!({
            "allocations": shares, "project_id": found.project, "user_id": found.user,
            "consumer_generation": found.generation,
        })
    }

    /// Replaces all shares of a consumer; without any it does not exist any more.
    fn replace(&mut self, consumer: &str, body: &Value) -> Outcome {
        let current = self.consumers.get(consumer).map(|it| it.generation);
        let sent = &body["consumer_generation"];
        if json!(current) != *sent {
            let words = format!(
                "consumer generation conflict - expected {} but got {sent}",
                json!(current)
            );
            return Err(refused(409, "placement.concurrent_update", &words));
        }
        let allocations = body["allocations"].as_object();
        let (Some(allocations), true, true) =
            (allocations, body["project_id"].is_string(), body["user_id"].is_string())
        else {
            let words = "JSON does not validate: allocations, project_id and user_id are required";
            return Err(refused(400, "placement.undefined_code", words));
        };
        if let Some(unknown) = allocations.keys().find(|it| !self.providers.contains_key(*it)) {
            let words =
                format!("Allocation for resource provider '{unknown}' that does not exist.");
            return Err(refused(400, "placement.undefined_code", &words));
        }
        let shares: Shares =
            allocations.iter().map(|(uuid, it)| (uuid.clone(), it["resources"].clone())).collect();
        if shares.is_empty() {
            self.consumers.remove(consumer);
        } else {
            let (project, user) = (body["project_id"].clone(), body["user_id"].clone());
            let generation = current.unwrap_or_default() + 1;
            let replaced = Consumer { generation, project, user, shares };
            self.consumers.insert(consumer.to_owned(), replaced);
        }
        Ok(Answer::of(204, Value::Null))
    }
}

impl Provider {
    fn shown(&self, uuid: &str) -> Value {
        json!({
            "uuid": uuid, "name": self.name, "generation": self.generation,
            "parent_provider_uuid": null, "root_provider_uuid": uuid, "links": [],
        })
    }
}

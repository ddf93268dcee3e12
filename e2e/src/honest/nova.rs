//! Compares a nova with its placement and neutron to the recorded answers of the lab's real ones: those
//! themselves, and the fake of the simulated cluster.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use super::{ask, identity};

/// Requests in JSON, and the answers to them that were recorded.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    requests: &'static str,
    answers: &'static str,
    /// The file of the answers.
    file: &'static str,
    /// What the names of its hosts begin with.
    hosts: &'static str,
}

/// What nova and placement say of hosts on which nothing runs.
pub const RECORDS: Script = Script {
    requests: include_str!("nova_script.json"),
    answers: include_str!("nova_answers.json"),
    file: "nova_answers.json",
    hosts: "honest-",
};
/// What nova and neutron say of two hosts with a guest that moves.
pub const GUESTS: Script = Script {
    requests: include_str!("guests_script.json"),
    answers: include_str!("guests_answers.json"),
    file: "guests_answers.json",
    hosts: "edpm-compute-",
};
/// The program that sets the stage on a real nova, with the name of a cell and of a stage.
pub const STAGE_PROGRAM: &str = include_str!("nova_stage.py");
/// The consumer of the stage `share`, and a UUID that nothing has.
pub const CONSUMER: &str = "00000000-0000-4000-8000-00000000000a";
const NOBODY: &str = "00000000-0000-4000-8000-0000000000ff";

/// What a test does to a nova between two requests of a script.
pub trait NovaStage {
    /// Sets a stage, all in one cell.
    ///
    /// Of [`RECORDS`]: `hosts` (`honest-0`, which reports, and `honest-1`, which does not,
    /// with their providers), `unmapped` and `mapped` (of `honest-0`), `servers` (first `honest-a`, then
    /// `honest-b` on `honest-1`, with allocations), `lists-fail` and `lists-work` (the query of the cell's
    /// servers), `no-servers`, `share` (of [`CONSUMER`] in the provider of `honest-0`).
    ///
    /// Of [`GUESTS`]: `guest` (`t-honest` on `edpm-compute-0`, with agents on each host; the only other
    /// host of the cell is `edpm-compute-3`), `agents` (each that runs is listed), `moving` (its migration
    /// is at work), `moved` (it has ended), `stopped` and `started` (the guest), `refused` (the migration
    /// that found no host has ended).
    ///
    /// Of both: `nothing` (also after a failure).
    fn set(&mut self, stage: &str) -> impl Future<Output = Result<()>>;
}

/// A nova with its placement and Keystone.
#[derive(Debug)]
struct Cloud {
    /// Type of a service → its endpoint.
    endpoints: BTreeMap<String, String>,
    token: String,
    unscoped: String,
}

/// Asserts that what is in the catalog of a Keystone answers a script as recorded.
pub async fn nova(
    script: Script,
    keystone: &str,
    password: &str,
    stage: &mut impl NovaStage,
) -> Result<()> {
    let found = nova_answers(script, keystone, password, stage).await?;
    let recorded: BTreeMap<String, Value> = serde_json::from_str(script.answers)?;
    for (name, answer) in &found {
        let expected = recorded.get(name).with_context(|| format!("no answer to: {name}"))?;
        ensure!(answer == expected, "{name}: {answer} instead of {expected}");
    }
    ensure!(found.len() == recorded.len(), "answers are recorded to what is not asked");
    Ok(())
}

/// Records the answers to a script as those that are expected, in the source tree.
pub async fn write_nova_answers(
    script: Script,
    keystone: &str,
    password: &str,
    stage: &mut impl NovaStage,
) -> Result<()> {
    let found = nova_answers(script, keystone, password, stage).await?;
    let line = |(name, answer): (&String, &Value)| format!("{}: {answer}", json!(name));
    let lines: Vec<String> = found.iter().map(line).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/honest/").to_owned() + script.file;
    Ok(std::fs::write(path, format!("{{\n{}\n}}\n", lines.join(",\n")))?)
}

/// Returns the answers to a script, by the name of the step; ends with nothing left.
async fn nova_answers(
    script: Script,
    keystone: &str,
    password: &str,
    stage: &mut impl NovaStage,
) -> Result<BTreeMap<String, Value>> {
    let cloud = Cloud::of(keystone, password).await?;
    let answers = answers(script, &cloud, stage).await;
    if answers.is_err() {
        // The first error says more than one of the cleaning.
        drop(stage.set("nothing").await);
    }
    answers
}

async fn answers(
    Script { requests, hosts, .. }: Script,
    cloud: &Cloud,
    stage: &mut impl NovaStage,
) -> Result<BTreeMap<String, Value>> {
    let script: Value = serde_json::from_str(requests)?;
    let mut words = [("consumer", CONSUMER), ("nobody", NOBODY)]
        .map(|(word, meaning)| (format!("{{{word}}}"), meaning.to_owned()))
        .to_vec();
    let mut answers = BTreeMap::new();
    for step in script["steps"].as_array().context("no steps")? {
        let name = step["name"].as_str().context("no name")?;
        if let Some(set) = step["stage"].as_str() {
            stage.set(set).await.with_context(|| name.to_owned())?;
            continue;
        }
        let mut found = cloud.asked(step, &words).await.with_context(|| name.to_owned())?;
        // An error has no body.
        found.get_mut("body").into_iter().for_each(|it| without_others(it, hosts));
        for (word, pointer) in step["learn"].as_object().into_iter().flatten() {
            let found = found["body"].pointer(pointer.as_str().unwrap_or_default());
            let meaning = found.and_then(Value::as_str);
            let meaning = meaning.with_context(|| format!("{name}: no {word} in {found:?}"))?;
            words.push((format!("{{{word}}}"), meaning.to_owned()));
        }
        let fields = [&step["fields"], &script["fields"]].into_iter().find_map(Value::as_array);
        let fields: Vec<&str> = fields.into_iter().flatten().filter_map(Value::as_str).collect();
        let answer = normal(&found, &words, &fields);
        ensure!(answers.insert(name.to_owned(), answer).is_none(), "two steps have a name: {name}");
    }
    Ok(answers)
}

impl Cloud {
    async fn of(keystone: &str, password: &str) -> Result<Self> {
        let project = json!({ "project": { "name": "service", "domain": { "name": "Default" } } });
        let (token, body) = login(keystone, password, &project).await?;
        let (unscoped, _) = login(keystone, password, &json!("unscoped")).await?;
        let mut endpoints = BTreeMap::new();
        for service in body["token"]["catalog"].as_array().context("no catalog")? {
            let all = service["endpoints"].as_array().into_iter().flatten();
            let url =
                all.filter(|it| it["interface"] == "internal").find_map(|it| it["url"].as_str());
            if let (Some(type_), Some(url)) = (service["type"].as_str(), url) {
                endpoints.insert(type_.to_owned(), url.trim_end_matches('/').to_owned());
            }
        }
        Ok(Self { endpoints, token, unscoped })
    }

    /// Returns what is answered to the request of a step.
    async fn asked(&self, step: &Value, words: &[(String, String)]) -> Result<Value> {
        let request = filled(step["ask"].as_str().context("no request")?, words);
        let mut parts = request.splitn(3, ' ');
        let (Some(method), Some(service), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            anyhow::bail!("no request: {request}")
        };
        let endpoint = self.endpoints.get(service).context("it is not in the catalog")?;
        let host_and_path = endpoint.strip_prefix("http://").context("no http://")?;
        let (host, prefix) = host_and_path.split_once('/').unwrap_or((host_and_path, ""));
        let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
        let used = match service {
            "compute" => Some("2.69"),
            "placement" => Some("1.36"),
            _ => None,
        };
        let version = step["version"].as_str().or(used);
        let version = version.map(|it| format!("OpenStack-API-Version: {service} {it}\r\n"));
        let token = match step["login"].as_str() {
            Some("none") => "",
            Some("nobody") => "made up",
            Some("unscoped") => &self.unscoped,
            _ => &self.token,
        };
        let token =
            if token.is_empty() { String::new() } else { format!("X-Auth-Token: {token}\r\n") };
        let headers = version.unwrap_or_default() + &token;
        let body = step.get("body").map(|it| filled(&it.to_string(), words));
        let body = body.map(|it| serde_json::from_str(&it)).transpose()?;
        let line = format!("{method} {prefix}{path}");
        let (head, body) = ask(&format!("http://{host}"), (&line, &headers), body.as_ref()).await?;
        let status: u16 = head.split(' ').nth(1).context("no status")?.parse()?;
        if status >= 400 {
            return Ok(json!({ "status": status, "says": said(&body) }));
        }
        Ok(
            json!({ "status": status, "used": header(&head, "openstack-api-version"), "body": body }),
        )
    }
}

/// Returns a token and the body that comes with it.
async fn login(keystone: &str, password: &str, scope: &Value) -> Result<(String, Value)> {
    let mut body = identity("nova", password);
    body["auth"]["scope"] = scope.clone();
    let (head, body) = ask(keystone, ("POST /v3/auth/tokens", ""), Some(&body)).await?;
    let token = header(&head, "x-subject-token");
    Ok((token.with_context(|| format!("no token: {head}"))?, body))
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut all = head.lines().filter_map(|it| it.split_once(": "));
    all.find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}

/// Returns a server's own words, in one line, without the class of an error.
fn said(body: &Value) -> String {
    let of_kind = body.as_object().and_then(|it| it.values().next());
    let found = [of_kind.map(|it| &it["message"]), Some(&body["errors"][0]["detail"])];
    let text = found.into_iter().flatten().find_map(Value::as_str).unwrap_or_default();
    let text = text.split("<class ").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn filled(text: &str, words: &[(String, String)]) -> String {
    words.iter().fold(text.to_owned(), |text, (word, meaning)| text.replace(word, meaning))
}

/// Returns an answer without what is another in each run, and only with these fields and what is keyed by
/// UUIDs or by resource classes.
fn normal(value: &Value, words: &[(String, String)], fields: &[&str]) -> Value {
    let named = |text: &str| {
        words.iter().fold(text.to_owned(), |text, (word, meaning)| text.replace(meaning, word))
    };
    match value {
        Value::Object(all) => {
            let is_class = |it: &str| it.chars().all(|it| it.is_ascii_uppercase() || it == '_');
            let entries = all.iter().map(|(key, value)| (named(key), value));
            let kept = entries.filter(|(key, _)| {
                fields.contains(&key.as_str())
                    || key.starts_with('{')
                    || is_class(key)
                    || ["status", "body", "says", "used"].contains(&key.as_str())
            });
            let entry = |(key, value): (String, &Value)| {
                let value = match key.as_str() {
                    "generation" if value.is_u64() => json!("a number"),
                    "updated_at" if value.is_string() => json!("a time"),
                    _ => normal(value, words, fields),
                };
                (key, value)
            };
            Value::Object(kept.map(entry).collect::<Map<_, _>>())
        }
        Value::Array(all) => all.iter().map(|it| normal(it, words, fields)).collect(),
        Value::String(text) => json!(named(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Takes what is about other hosts than those of a script out of the lists of an answer.
fn without_others(body: &mut Value, hosts: &str) {
    let is_of_script = |entry: &Value| {
        let found = [&entry["host"], &entry["service"]["host"]].into_iter().find_map(Value::as_str);
        found.is_none_or(|it| it.starts_with(hosts))
    };
    for list in body.as_object_mut().into_iter().flat_map(Map::values_mut) {
        list.as_array_mut().into_iter().for_each(|it| it.retain(is_of_script));
    }
}

//! Checks the fake against the recorded answers of a real Ironic to the same script.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Ironic, PASSWORD, Trouble, USER};
use crate::Keystone;

const SCRIPT: &str = include_str!("../../../ironic-client/tests/ironic/script.json");
const ANSWERS: &str = include_str!("../../../ironic-client/tests/ironic/answers.json");

/// Returns the replacements of {m1} and the other placeholders.
fn words(script: &Value) -> Vec<(String, String)> {
    let machine =
        |it: u32| (format!("{{m{it}}}"), format!("00000000-0000-4000-8000-00000000000{it}"));
    let instance =
        |it: u32| (format!("{{i{it}}}"), format!("00000000-0000-4000-9000-00000000000{it}"));
    let fields = script["fields"].as_str().unwrap_or_default().to_owned();
    let fields = ("{fields}".to_owned(), fields);
    (1..5).map(machine).chain((1..3).map(instance)).chain([fields]).collect()
}

fn filled(text: &str, words: &[(String, String)]) -> String {
    words.iter().fold(text.to_owned(), |text, (word, meaning)| text.replace(word, meaning))
}

fn normal(value: &Value, ironic: &Ironic, words: &[(String, String)]) -> Result<Value> {
    let text = value.to_string().replace(&ironic.endpoint(), "ENDPOINT");
    let text = words.iter().fold(text, |text, (word, meaning)| text.replace(meaning, word));
    Ok(serde_json::from_str(&text)?)
}

/// Returns status and body of an answer; the body is empty when there is none.
async fn exchange(ironic: &Ironic, head: &str, body: &str) -> Result<(u16, String)> {
    let address = ironic.endpoint().replace("http://", "");
    let mut stream = TcpStream::connect(&address).await?;
    let length = body.len();
    let text = format!(
        "{head}Host: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, body.to_owned()))
}

fn login(password: &str) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{USER}:{password}")))
}

/// Returns the server's own error text.
fn said(body: &str) -> String {
    let packed: Value = serde_json::from_str(body).unwrap_or_default();
    let inner = packed["error_message"].as_str().and_then(|it| serde_json::from_str(it).ok());
    let inner: Value = inner.unwrap_or_else(|| packed.clone());
    let found = [&inner["faultstring"], &inner["description"], &inner["error"]["message"]];
    let found = found.into_iter().find_map(Value::as_str);
    found.unwrap_or(body).trim().to_owned()
}

async fn asked(
    ironic: &Ironic,
    step: &Value,
    all: &str,
    words: &[(String, String)],
) -> Result<Value> {
    let line = filled(step["ask"].as_str().context("no request")?, words);
    let version = step["version"].as_str().unwrap_or("1.78");
    let credentials = match step["login"].as_str() {
        Some("none") => String::new(),
        other => login(other.unwrap_or(PASSWORD)),
    };
    let head =
        format!("{line} HTTP/1.1\r\nX-OpenStack-Ironic-API-Version: {version}\r\n{credentials}");
    let body = step.get("body").map(|it| filled(&it.to_string(), words)).unwrap_or_default();
    let (status, body) = exchange(ironic, &head, &body).await?;
    if status >= 300 {
        return Ok(json!({ "status": status, "says": said(&body) }));
    }
    let mut found: Value = serde_json::from_str(&body).unwrap_or_default();
    if line.starts_with("GET / ") || line == "GET /" {
        let own = &found["default_version"];
        let own = json!({ "min_version": own["min_version"], "version": own["version"] });
        found = json!({ "default_version": own });
    }
    for entry in found.get_mut("history").and_then(Value::as_array_mut).into_iter().flatten() {
        *entry = json!({ "severity": entry["severity"], "event": entry["event"] });
    }
    if let Some(fields) = found.as_object_mut().filter(|it| it.contains_key("provision_state")) {
        let only = step["only"].as_str().unwrap_or(all);
        fields.retain(|key, _| only.split(',').any(|it| it == key));
    }
    Ok(json!({ "status": status, "body": found }))
}

/// Returns the moves of a machine since the last wait, and its state afterwards.
async fn waited(
    ironic: &Ironic,
    step: &Value,
    seen: &mut BTreeMap<String, usize>,
) -> Result<Value> {
    let (name, wanted) = (step["until"].as_str().context("no machine")?, &step["is"]);
    let wanted = wanted.as_object().context("no state")?;
    let is_there = |it: &Value| wanted.iter().all(|(key, value)| it[key] == *value);
    let node = ironic.wait(name, "as the script wants it", is_there).await?;
    let endpoint_and_name = format!("{} {name}", ironic.endpoint());
    let n_seen = seen.entry(endpoint_and_name).or_default();
    let all = ironic.moves(name)?;
    let end = |it: &Option<String>| it.clone().unwrap_or_else(|| "None".to_owned());
    let moves: Vec<Value> = all[*n_seen..].iter().map(|(it, to)| json!([it, end(to)])).collect();
    *n_seen = all.len();
    let tells = step["tells"].as_str().unwrap_or_default();
    let tells = tells.split(',').filter(|it| !it.is_empty());
    let tells: serde_json::Map<_, _> = tells.map(|it| (it.to_owned(), node[it].clone())).collect();
    Ok(json!({ "moves": moves, "tells": tells }))
}

#[tokio::test]
async fn the_fake_answers_as_a_real_ironic_did() -> Result<()> {
    let (script, answers): (Value, Value) =
        (serde_json::from_str(SCRIPT)?, serde_json::from_str(ANSWERS)?);
    let words = words(&script);
    let all = script["fields"].as_str().context("no fields")?;
    let (sound, storeless) = (Ironic::start().await?, Ironic::start().await?);
    let forgetful = Ironic::start().await?;
    storeless.lose_store();
    let mut seen = BTreeMap::new();
    for step in script["steps"].as_array().context("no steps")? {
        let name = step["name"].as_str().context("no name")?;
        let ironic = match step["ironic"].as_str() {
            Some("storeless") => &storeless,
            Some("forgetful") => &forgetful,
            _ => &sound,
        };
        if name.contains("power is looked at") {
            ironic.reaches("m4", "clean failed").await?;
            ironic.sync_power_state();
        }
        // A real Ironic takes seconds for a power change, the fake only its configured time: the next
        // two requests arrive meanwhile.
        let is_slow = name == "hold a machine";
        let takes = if is_slow { Duration::from_secs(3) } else { Duration::from_millis(5) };
        ironic.take(takes);
        let answer = if step.get("until").is_some() {
            waited(ironic, step, &mut seen).await
        } else {
            asked(ironic, step, all, &words).await
        };
        let answer = normal(&answer.with_context(|| name.to_owned())?, ironic, &words)?;
        ensure!(answer == answers[name], "{name}: {answer} instead of {}", answers[name]);
    }
    Ok(())
}

#[tokio::test]
async fn a_machine_fails_where_it_is_told_to_and_what_it_said_is_forgotten() -> Result<()> {
    let ironic = Ironic::start().await?;
    ironic.take(Duration::from_millis(5));
    ironic.enroll("m", json!({}))?;
    ironic.fail("m", "verifying", Some("no route to its controller"))?;
    ironic.provision("m", "manage")?;
    let failed = |it: &Value| it["last_error"] == "no route to its controller";
    let node = ironic.wait("m", "told to have failed", failed).await?;
    assert_eq!(node["provision_state"], "enroll");
    ironic.fail("m", "verifying", None)?;
    ironic.provision("m", "manage")?;
    ironic.reaches("m", "manageable").await?;
    for (state, end, left) in
        [("cleaning", "clean failed", json!("broken")), ("deploying", "deploy failed", Value::Null)]
    {
        ironic.fail("m", state, Some("broken"))?;
        let verb = if state == "cleaning" { "provide" } else { "active" };
        ironic.provision("m", verb)?;
        ironic.reaches("m", end).await?;
        assert_eq!(ironic.node("m")?["last_error"], left);
        let listed = ironic.ask("GET", "/v1/nodes/m/history", None)?["history"].clone();
        let last = listed.as_array().and_then(|it| it.last()).context("no history")?;
        assert_eq!((&last["severity"], &last["event"]), (&json!("ERROR"), &json!("broken")));
        ironic.sync_power_state();
        assert_eq!(ironic.node("m")?["last_error"], Value::Null);
        ironic.fail("m", state, None)?;
        if state == "cleaning" {
            ironic.provision("m", "manage")?;
            ironic.provision("m", "provide")?;
            ironic.reaches("m", "available").await?;
        }
    }
    ironic.hold("m", true)?;
    let refused = ironic.provision("m", "deleted").unwrap_err();
    assert!(refused.to_string().contains("409"), "{refused}");
    ironic.hold("m", false)?;
    ironic.provision("m", "deleted")
}

#[tokio::test]
async fn a_timeout_is_overwritten_and_a_list_of_the_history_cuts_its_events() -> Result<()> {
    let ironic = Ironic::start().await?;
    ironic.take(Duration::from_millis(5));
    ironic.enroll("m", json!({ "provision_state": "available" }))?;
    let words = format!("Timeout reached while waiting for callback for node {}", "m".repeat(300));
    ironic.fail("m", "deploying", Some(&words))?;
    ironic.provision("m", "active")?;
    ironic.reaches("m", "deploy failed").await?;
    let node = ironic.node("m")?;
    let left = node["last_error"].as_str().unwrap_or_default();
    assert!(left.starts_with("Async execution of cleanup_after_timeout failed"), "{left}");
    let entry = ironic.ask("GET", "/v1/nodes/m/history", None)?["history"][0].clone();
    assert_eq!(entry["event"], words[..251].to_owned() + "...");
    let uuid = entry["uuid"].as_str().context("no UUID")?;
    let whole = ironic.ask("GET", &format!("/v1/nodes/m/history/{uuid}"), None)?;
    assert_eq!(whole["event"], words);
    Ok(())
}

#[tokio::test]
async fn what_answers_in_its_place_is_what_a_test_says() -> Result<()> {
    let ironic = Ironic::start().await?;
    let ask = async || {
        exchange(&ironic, &format!("GET /v1/nodes HTTP/1.1\r\n{}", login(PASSWORD)), "").await
    };
    assert_eq!(ask().await?.0, 200);
    ironic.suffer(Some(Trouble::Refusal(503, "no worker is free".to_owned())));
    let (status, body) = ask().await?;
    assert_eq!((status, said(&body).as_str()), (503, "no worker is free"));
    ironic.suffer(Some(Trouble::Refusal(413, "Request body is too large.".to_owned())));
    let (status, body) = ask().await?;
    assert_eq!((status, said(&body).as_str()), (413, "Request body is too large."));
    assert!(!body.contains("error_message"), "{body}");
    ironic.suffer(Some(Trouble::Page("<html>".to_owned())));
    assert_eq!(ask().await?, (200, "<html>".to_owned()));
    ironic.suffer(Some(Trouble::Silence));
    assert!(tokio::time::timeout(Duration::from_millis(100), ask()).await.is_err());
    ironic.suffer(None);
    ironic.answer_after(Duration::from_millis(50));
    let begun = Instant::now();
    assert_eq!(ask().await?.0, 200);
    assert!(begun.elapsed() >= Duration::from_millis(50));
    ironic.stop();
    assert!(ask().await.is_err());
    ironic.listen().await?;
    assert_eq!(ask().await?.0, 200);
    Ok(())
}

#[tokio::test]
async fn one_that_believes_keystone_lets_in_who_has_its_token() -> Result<()> {
    let (ironic, keystone) = (Ironic::start().await?, Keystone::start().await?);
    ironic.believe(&keystone);
    keystone.admit("nova", "right");
    let token = async |password: &str| {
        let user = json!({ "name": "nova", "password": password });
        let body = json!({ "auth": { "identity": { "password": { "user": user } } } }).to_string();
        let address = keystone.url().replace("http://", "");
        let mut stream = TcpStream::connect(address).await?;
        let length = body.len();
        let text =
            format!("POST /v3/auth/tokens HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let found = answer.lines().find_map(|it| it.strip_prefix("X-Subject-Token: "));
        Ok::<_, anyhow::Error>((answer[9..12].to_owned(), found.map(str::to_owned)))
    };
    assert_eq!(token("wrong").await?, ("401".to_owned(), None));
    let (_, given) = token("right").await?;
    for (token, expected) in [("made up", 401), (given.as_deref().context("no token")?, 200)] {
        let head = format!("GET /v1/nodes HTTP/1.1\r\nX-Auth-Token: {token}\r\n");
        assert_eq!(exchange(&ironic, &head, "").await?.0, expected);
    }
    assert_eq!(exchange(&ironic, "GET / HTTP/1.1\r\n", "").await?.0, 200);
    Ok(())
}

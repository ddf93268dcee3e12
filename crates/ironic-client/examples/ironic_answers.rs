//! Brings machines of an Ironic into service and out of it, a line of JSON for each line of JSON:
//! `tests/ironic` looks at what a real Ironic made of it.
#![allow(clippy::print_stdout, reason = "its answers are its output")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, stdin};
use std::time::Duration;

use anyhow::{Result, bail};
use api::baremetal::{Authentication, ConfigDriveFormat, DeprovisionPolicy, Machine};
use api::secret::Secret;
use config_drive::{Drive, Fault, Host};
use http::Method;
use ironic::{
    DesiredMachine, Error, Next, Node, Request, RequestValues, Step, Terms, assign, instance_uuid,
};
use ironic_client::{Credentials, Session};
use operator_runtime::clock;
use operator_runtime::http_client::HttpClients;
use operator_runtime::tls_stream::CaTrust;
use serde::Deserialize;
use serde_json::{Value, json};

/// The limit of polls of a machine, after which the answer is an error.
const LOOKS: usize = 300;

/// What is asked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Question {
    endpoint: String,
    #[serde(default)]
    authentication: Authentication,
    #[serde(default)]
    secret: BTreeMap<String, Secret<String>>,
    task: Task,
}

/// What is to be done.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Task {
    /// Which version is spoken.
    Version,
    /// Which fields of machines are asked for in that version of the API.
    Fields(String),
    /// Makes a machine known.
    Enroll(Value),
    /// Makes a machine unknown.
    Forget(String),
    /// All machines, as we read them.
    List,
    /// Brings a machine into service.
    Bring(Box<Bring>),
    /// Gives it back.
    Release {
        set: String,
        host: String,
        #[serde(default)]
        retain: bool,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Bring {
    set: String,
    host: Host,
    #[serde(default)]
    machine: Machine,
    #[serde(default)]
    adopt: bool,
    #[serde(default)]
    provide: bool,
    #[serde(default)]
    format: ConfigDriveFormat,
    attempts: u32,
    /// How many seconds our clock is ahead: pauses are over at once.
    #[serde(default)]
    ahead: i64,
    /// After how many requests we die; those that are sent are acted upon.
    dies: Option<usize>,
}

#[tokio::main]
async fn main() -> Result<()> {
    for line in stdin().lock().lines() {
        let question: Question = serde_json::from_str(&line?)?;
        let answer = match answer(&question).await {
            Ok(answer) => answer,
            Err(error) => match error.downcast_ref::<Error>() {
                Some(it) => json!({"error": it.reason().word, "message": it.to_string()}),
                None => return Err(error),
            },
        };
        println!("{answer}");
    }
    Ok(())
}

async fn answer(question: &Question) -> Result<Value> {
    let Question { endpoint, authentication, secret, task } = question;
    let credentials = Credentials::of(*authentication, "ironic", secret)?;
    let http = HttpClients::with_loopback().of("", CaTrust::new(None).map_err(message)?);
    let session = Session::new(endpoint, credentials, http);
    match task {
        Task::Version => Ok(json!({"version": session.version().await?.to_string()})),
        Task::Fields(version) => {
            Ok(json!(ironic::node::fields(version.parse().map_err(|it: Fault| message(it))?)))
        }
        Task::Enroll(node) => {
            let body = Some(Secret::new(node.clone()));
            let enroll = Request { method: Method::POST, path: "/v1/nodes".into(), body };
            Ok(json!({"uuid": session.ask(&enroll).await?["uuid"]}))
        }
        Task::Forget(uuid) => {
            let path = format!("/v1/nodes/{uuid}");
            Ok(session.ask(&Request { method: Method::DELETE, path, body: None }).await?)
        }
        Task::List => {
            let nodes = session.nodes(Duration::ZERO).await?;
            Ok(nodes.iter().map(|it| json!({
                "name": it.title(), "state": it.provision_state.word(), "power": it.power_state,
                "instance": it.instance_uuid, "info": it.instance_info,
            })).collect())
        }
        Task::Bring(bring) => brought(&session, bring).await,
        Task::Release { set, host, retain } => {
            let policy =
                if *retain { DeprovisionPolicy::Retain } else { DeprovisionPolicy::Deprovision };
            released(&session, &instance_uuid(set, host), policy).await
        }
    }
}

fn message(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

async fn brought(session: &Session, bring: &Bring) -> Result<Value> {
    let name = bring.host.host_name.clone();
    let instance = instance_uuid(&bring.set, &name);
    let host = Host { instance_uuid: instance.clone(), ..bring.host.clone() };
    let drive = Drive::of(&host).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
    let configdrive = drive.configdrive(bring.format, session.version().await?).map_err(message)?;
    let given = RequestValues { drive: configdrive, ..RequestValues::default() };
    let (adopt, provide) = (bring.adopt, bring.provide);
    let merged = Terms::merged(&Machine::default(), &bring.machine);
    let terms = Terms { adopt, provide, ..merged };
    let desired = DesiredMachine {
        instance: instance.clone(),
        host: name.clone(),
        drive: drive.hash().into(),
        adopt: bring.adopt,
        provide: bring.provide,
        attempts: bring.attempts,
        ..DesiredMachine::default()
    };
    let mut steps = Vec::new();
    for _ in 0..LOOKS {
        let nodes = session.nodes(Duration::ZERO).await?;
        let mine = nodes.iter().find(|it| it.is_of(&instance));
        let node = match mine {
            Some(node) => node,
            None => {
                match &assign(
                    &BTreeMap::from([(name.clone(), terms.clone())]),
                    &nodes,
                    &BTreeSet::new(),
                )[&name]
                {
                    Ok(node) => *node,
                    Err(none) => {
                        return Ok(json!({"end": "NoMachine", "message": none.to_string()}));
                    }
                }
            }
        };
        let now = clock::now() + jiff::SignedDuration::from_secs(bring.ahead);
        if let Some(end) = carried_out(
            session,
            node,
            &instance,
            &given,
            ironic::next(node, &desired, now),
            &mut steps,
        )
        .await?
        {
            return Ok(end);
        }
        if bring.dies == Some(steps.len()) {
            return Ok(json!({"end": "Died", "steps": steps}));
        }
    }
    bail!("no end after {LOOKS} looks: {steps:?}")
}

async fn released(session: &Session, instance: &str, policy: DeprovisionPolicy) -> Result<Value> {
    let mut steps = Vec::new();
    for _ in 0..LOOKS {
        let nodes = session.nodes(Duration::ZERO).await?;
        let node = nodes.iter().find(|it| it.is_of(instance));
        let Some(node) = node else { return Ok(json!({"end": "Done", "steps": steps})) };
        let next = ironic::release(node, instance, policy);
        let given = RequestValues::default();
        if let Some(end) = carried_out(session, node, instance, &given, next, &mut steps).await? {
            return Ok(end);
        }
    }
    bail!("no end after {LOOKS} looks: {steps:?}")
}

/// Does what comes next; the answer where that is the end.
async fn carried_out(
    session: &Session,
    node: &Node,
    instance: &str,
    user_data: &RequestValues,
    next: Next,
    steps: &mut Vec<String>,
) -> Result<Option<Value>> {
    match next {
        Next::Done { is_current } => Ok(Some(json!({
            "end": "Done", "node": node.uuid, "instance": instance, "isCurrent": is_current,
            "steps": steps,
        }))),
        Next::Stop(cause) => Ok(Some(json!({
            "end": cause.reason().word, "message": cause.message(node), "steps": steps,
        }))),
        Next::Wait { .. } => {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(None)
        }
        Next::Do(step) => {
            match session.ask(&step.request(node, instance, user_data)).await {
                Ok(_) => steps.push(word(&step)),
                // Another look tells what it came to.
                Err(error) if error.heals() => steps.push(error.reason().word.to_owned()),
                // So does a refusal by a machine that somebody else brought further meanwhile.
                Err(Error::Refused(_))
                    if session.slot().await.node(&node.uuid).await?.provision_state
                        != node.provision_state =>
                {
                    steps.push("Outdated".to_owned());
                }
                Err(error) => return Err(error.into()),
            }
            Ok(None)
        }
    }
}

fn word(step: &Step) -> String {
    match step {
        Step::Reserve(_) => "reserve".into(),
        Step::Record(_) => "record".into(),
        Step::Tell(verb) => verb.word().into(),
        Step::Deploy => "deploy".into(),
        Step::PowerOn => "power on".into(),
        Step::Unreserve(_) => "unreserve".into(),
    }
}

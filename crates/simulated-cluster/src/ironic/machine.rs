//! One machine: its API representation and the requests it accepts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use super::door::Door;
use super::way::{self, Stop};
use crate::answer::{Answer, Outcome};
use crate::clock;
use crate::player::host::Host;

/// The conductor that holds the lock of a busy machine.
pub(crate) const CONDUCTOR: &str = "ironic";
/// What Ironic shows instead of a config drive.
const HIDDEN: &str = "******";
const DRIVE: &str = "configdrive";

/// Counter for the UUIDs of machines enrolled without one, and of what happened to them.
static NUMBER: AtomicU64 = AtomicU64::new(1);

/// The longest event in a list, in characters.
const EVENT: usize = 255;

/// Returns an entry of a history.
fn entry(event: &str, created_at: &str) -> Value {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    json!({
        "uuid": format!("5e7f0a1c-0000-4000-a000-{number:012x}"),
        "created_at": created_at, "severity": "ERROR", "event": event,
    })
}

/// A machine with fake hardware.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Its fields in the API.
    pub(crate) fields: Map<String, Value>,
    pub(crate) drive: Option<Value>,
    /// State → error with which leaving that state fails.
    pub(crate) failing: BTreeMap<String, String>,
    pub(crate) is_held: bool,
    /// The states it is going to, while it is in a transition.
    pub(crate) way: Option<VecDeque<Stop>>,
    pub(crate) moves: Vec<(String, Option<String>)>,
    /// Its errors, oldest first.
    history: Vec<Value>,
    /// The host that it runs while it is active and powered on.
    pub(crate) host: Option<Host>,
    /// The SSH server of its host, while the host runs.
    door: Option<Door>,
    /// Whether its host has run before, and whether its next start is a new installation.
    has_run: bool,
    is_anew: bool,
}

impl Machine {
    /// Creates a machine from the fields given at enrollment.
    pub(crate) fn new(given: &Map<String, Value>) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let fields = json!({
            "uuid": format!("5e7f0a1c-0000-4000-8000-{number:012x}"),
            "name": null, "driver": null, "resource_class": null, "instance_uuid": null,
            "instance_info": {}, "properties": {}, "extra": {}, "network_data": {},
            "driver_info": {}, "traits": [], "provision_state": "enroll",
            "target_provision_state": null, "provision_updated_at": null, "power_state": null,
            "target_power_state": null, "maintenance": false, "maintenance_reason": null,
            "last_error": null, "retired": false, "deploy_interface": "fake",
        });
        let mut fields = fields.as_object().cloned().unwrap_or_default();
        fields.extend(given.clone());
        Self {
            fields,
            drive: None,
            failing: BTreeMap::new(),
            is_held: false,
            way: None,
            moves: Vec::new(),
            history: Vec::new(),
            host: None,
            door: None,
            has_run: false,
            is_anew: false,
        }
    }

    /// Returns a field's text; empty when it has none.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.fields.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn uuid(&self) -> String {
        self.text("uuid").to_owned()
    }

    pub(crate) fn set(&mut self, field: &str, value: Value) {
        self.fields.insert(field.to_owned(), value);
    }

    /// Returns its API representation, complete or limited to the given fields.
    pub(crate) fn shown(&self, fields: Option<&str>) -> Value {
        let mut all = self.fields.clone();
        let conductor = if self.is_locked() { json!(CONDUCTOR) } else { Value::Null };
        all.insert("reservation".to_owned(), conductor);
        if let Some(fields) = fields {
            all.retain(|key, _| fields.split(',').any(|it| it == key));
        }
        Value::Object(all)
    }

    /// Returns its history, whose events a list cuts.
    pub(crate) fn history(&self) -> Value {
        let cut = |it: &Value| {
            let mut entry = it.clone();
            let event: Vec<char> = it["event"].as_str().unwrap_or_default().chars().collect();
            if event.len() > EVENT {
                entry["event"] = json!(event[..EVENT - 4].iter().collect::<String>() + "...");
            }
            entry
        };
        json!({ "history": self.history.iter().map(cut).collect::<Vec<_>>() })
    }

    /// Returns one entry of its history.
    pub(crate) fn history_entry(&self, uuid: &str) -> Option<Value> {
        self.history.iter().find(|it| it["uuid"] == uuid).cloned()
    }

    fn is_locked(&self) -> bool {
        self.is_held || self.way.is_some() || !self.text("target_power_state").is_empty()
    }

    /// Returns an error while a conductor holds the lock.
    pub(crate) fn accepts_commands(&self) -> Result<(), Answer> {
        let words = || {
            format!(
                "Node {} is locked by host {CONDUCTOR}, please retry after the current operation is \
                 completed.",
                self.uuid()
            )
        };
        if self.is_locked() { Err(Answer::refused(409, &words())) } else { Ok(()) }
    }

    /// Returns the error that the machine is associated with an instance.
    pub(crate) fn associated(&self) -> Answer {
        let instance = self.text("instance_uuid");
        let words = format!("Node {} is associated with instance {instance}.", self.uuid());
        Answer::refused(409, &words)
    }

    pub(crate) fn may_be_forgotten(&self) -> Result<(), Answer> {
        self.accepts_commands()?;
        let is_free = self.text("instance_uuid").is_empty();
        if is_free || self.is_in_maintenance() { Ok(()) } else { Err(self.associated()) }
    }

    fn is_in_maintenance(&self) -> bool {
        self.fields.get("maintenance") == Some(&json!(true))
    }

    fn rejected(&self, action: &str, state: &str) -> Answer {
        let words = format!(
            "The requested action \"{action}\" can not be performed on node \"{}\" while it is in \
             state \"{state}\".",
            self.uuid()
        );
        Answer::refused(400, &words)
    }

    /// Starts the requested provisioning.
    pub(crate) fn provision(&mut self, target: &str, body: &Value, has_store: bool) -> Outcome {
        let state = self.text("provision_state");
        let mut way = way::path(target, state).ok_or_else(|| self.rejected(target, state))?;
        self.accepts_commands()?;
        if target == "active" && self.is_in_maintenance() {
            let words = format!(
                "The provisioning operation can't be performed on node {} because it's in \
                 maintenance mode.",
                self.uuid()
            );
            return Err(Answer::refused(400, &words));
        }
        let drive = body.get(DRIVE).filter(|it| !it.is_null());
        if target == "active" && drive.is_some() && !has_store {
            way::fails_at(&mut way, "deploying", way::NO_STORE);
        } else if let Some(drive) = drive {
            self.drive = Some(drive.clone());
            if let Some(Value::Object(info)) = self.fields.get_mut("instance_info") {
                info.insert(DRIVE.to_owned(), json!(HIDDEN));
            }
        }
        if target == "active" {
            self.is_anew = self.has_run;
        }
        if self.text("deploy_interface") == "ramdisk" {
            way::fails_at(&mut way, "cleaning", &way::no_ramdisk(&self.uuid()));
        }
        for (state, words) in &self.failing {
            way::fails_at(&mut way, state, words);
        }
        let is_work = way.len() > 1;
        if is_work {
            self.set("last_error", Value::Null);
        }
        self.way = Some(way);
        self.go_on();
        Ok(Answer { status: 202, body: Value::Null })
    }

    /// Starts a power change; the machine is locked meanwhile, in a transition without states.
    pub(crate) fn power(&mut self, target: &str) -> Outcome {
        let state = self.text("power_state");
        if !["power on", "power off", "rebooting"].contains(&target) {
            let state = if state.is_empty() { "None" } else { state };
            return Err(self.rejected(target, state));
        }
        self.accepts_commands()?;
        let reached = if target == "power off" { target } else { "power on" };
        self.set("target_power_state", json!(reached));
        // The error of a failed state is kept until the power state is synced.
        if !self.text("provision_state").ends_with("failed") {
            self.set("last_error", Value::Null);
        }
        self.way = Some(VecDeque::new());
        Ok(Answer { status: 202, body: Value::Null })
    }

    /// Advances to the next state; returns whether the transition goes on.
    pub(crate) fn go_on(&mut self) -> bool {
        let Some(mut way) = self.way.take() else { return false };
        if let Some(stop) = way.pop_front() {
            self.leaves();
            self.moves.push((stop.state.to_owned(), stop.target.map(str::to_owned)));
            self.set("provision_state", json!(stop.state));
            self.set("target_provision_state", json!(stop.target));
            let now = clock::now().strftime("%FT%T%.6f+00:00").to_string();
            self.set("provision_updated_at", json!(&now));
            if let Some(words) = stop.error {
                self.history.push(entry(&words, &now));
                self.set("last_error", json!(stop.left));
            }
        } else {
            let power = self.fields.insert("target_power_state".to_owned(), Value::Null);
            self.set("power_state", power.unwrap_or_default());
        }
        let goes_on = !way.is_empty();
        self.way = goes_on.then_some(way);
        self.runs_or_not();
        goes_on
    }

    /// Clears what is lost on leaving the current state.
    fn leaves(&mut self) {
        if self.text("provision_state") == "deleting" {
            self.set("instance_uuid", Value::Null);
            self.set("instance_info", json!({}));
            self.drive = None;
        }
    }

    /// Syncs the power state, which clears the last error.
    pub(crate) fn sync_power_state(&mut self) {
        if self.is_locked() {
            return;
        }
        if self.text("power_state").is_empty() {
            self.set("power_state", json!("power off"));
        }
        self.set("last_error", Value::Null);
    }

    /// Starts or stops its host: it runs while the machine is active and powered on.
    fn runs_or_not(&mut self) {
        let is_on = self.text("power_state") == "power on";
        let runs = is_on && self.text("provision_state") == "active";
        let Some(host) = self.host.clone() else { return };
        match (runs, self.door.is_some()) {
            (true, false) => {
                if std::mem::take(&mut self.is_anew) {
                    host.rekey();
                }
                self.has_run = true;
                host.boot();
                self.door = Door::open(&host.address, host.port);
            }
            (false, true) => self.ends(),
            (true, true) | (false, false) => {}
        }
    }

    /// Stops its host.
    pub(crate) fn ends(&mut self) {
        self.door = None;
        if let Some(host) = &self.host {
            host.stop();
        }
    }
}

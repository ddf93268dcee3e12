//! Hosts as the player plays them: who they let in, and how plays end there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::ansibleee::HostFailure;
use operator_core::run_engine::host_key::{COMMON_PREFIX, HostKey, KEY_TYPE};
use serde_json::Value;
use tokio::sync::watch;

use super::ledger::{Ledger, Visit};

/// Whom hosts let in.
const USER: &str = "cloud-admin";

/// How a play ends on a host.
#[derive(Clone, Debug, PartialEq)]
pub enum Behaviour {
    /// All tasks are done, and something was changed.
    Done,
    /// All tasks are done, and nothing had to be changed.
    Unchanged,
    /// A task fails, with its words; the host's name is filled in.
    Failed(HostFailure),
    /// ssh gets no answer.
    Unreachable,
    /// The host refuses the key.
    KeyRefused,
    /// The host shows another key than is known.
    HostKeyMismatch,
    /// No play came to the host.
    NotReached,
    /// The callback does not know.
    Unknown,
}

impl Behaviour {
    /// A task that fails.
    pub fn failed(task: &str, message: &str) -> Self {
        Self::Failed(HostFailure {
            host: String::new(),
            play: "Leave a trace".to_owned(),
            task: task.to_owned(),
            path: "/runner/project/playbook.yaml:8".to_owned(),
            message: message.to_owned(),
        })
    }
}

/// A host of a test.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Where its sshd would listen.
    pub address: String,
    /// On which port.
    pub port: u16,
    state: Arc<State>,
    ledger: Arc<Ledger>,
}

/// What decides what a host does.
#[derive(Debug)]
pub(super) struct State {
    body: Mutex<Body>,
    /// The services whose plays wait on the host; one that is empty stands for all.
    blocked: watch::Sender<Vec<String>>,
}

#[derive(Clone, Debug)]
struct Body {
    is_up: bool,
    user_key: String,
    host_key: String,
    /// How many keys of its own it had before.
    n_keys: usize,
    /// How plays of a service end; those of other services end well.
    behaviours: BTreeMap<String, Behaviour>,
    takes: Duration,
}

/// What a run shows to a host.
pub(super) struct Approach<'a> {
    pub(super) service: &'a str,
    pub(super) address: &'a str,
    pub(super) variables: &'a BTreeMap<String, Value>,
    pub(super) files: &'a BTreeMap<String, String>,
}

impl Host {
    pub(super) fn new(name: &str, address: &str, ledger: &Arc<Ledger>) -> Self {
        let body = Body {
            is_up: true,
            user_key: format!("user key of {name}"),
            host_key: key_of(name, 0),
            n_keys: 0,
            behaviours: BTreeMap::new(),
            takes: Duration::ZERO,
        };
        let state = State { body: Mutex::new(body), blocked: watch::Sender::new(Vec::new()) };
        let (name, address) = (name.to_owned(), address.to_owned());
        Self { name, address, port: 22, state: Arc::new(state), ledger: Arc::clone(ledger) }
    }

    pub(super) fn state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// The content of an ssh Secret that reaches this host.
    pub fn ssh_secret(&self) -> Vec<(&'static str, String)> {
        let body = self.state.body().clone();
        let known_hosts = format!("{} {}\n", self.known_as(), body.host_key);
        vec![("ssh-privatekey", body.user_key), ("known_hosts", known_hosts)]
    }

    /// By what ssh knows it.
    fn known_as(&self) -> String {
        let Self { address, port, .. } = self;
        if *port == 22 { address.clone() } else { format!("[{address}]:{port}") }
    }

    /// Lets in who has that private key, as a host that shares it with others.
    pub fn accept(&self, user_key: &str) {
        user_key.clone_into(&mut self.state.body().user_key);
    }

    /// The host's own key, as `ssh-ed25519 AAAA…`.
    pub fn host_key(&self) -> String {
        self.state.body().host_key.clone()
    }

    /// The fingerprint of the host's own key, as `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        HostKey::parse(&self.host_key()).map(|it| it.fingerprint()).unwrap_or_default()
    }

    /// Known hosts with a key that is not the host's.
    pub fn wrong_known_hosts(&self) -> String {
        format!("{} {}\n", self.known_as(), key_of(&self.name, 99))
    }

    /// Gives the host another key of its own.
    pub fn rekey(&self) {
        let mut body = self.state.body();
        body.n_keys += 1;
        body.host_key = key_of(&self.name, body.n_keys);
    }

    /// The host does not answer any more.
    pub fn stop(&self) {
        self.state.body().is_up = false;
    }

    /// The host answers.
    pub fn boot(&self) {
        self.state.body().is_up = true;
    }

    /// Whether the host answers.
    pub fn is_up(&self) -> bool {
        self.state.body().is_up
    }

    /// From now on plays of a service end so.
    pub fn behave(&self, service: &str, behaviour: Behaviour) {
        self.state.body().behaviours.insert(service.to_owned(), behaviour);
    }

    /// Plays take that long.
    pub fn take(&self, time: Duration) {
        self.state.body().takes = time;
    }

    /// Plays of a service wait on the host until [`Host::release`]; the empty name stands for all.
    pub fn hold(&self, service: &str) {
        self.state.blocked.send_modify(|it| it.push(service.to_owned()));
    }

    /// All plays go on.
    pub fn release(&self) {
        self.state.blocked.send_modify(Vec::clear);
    }

    /// The visits of the host, in their order.
    pub fn visits(&self) -> Vec<Visit> {
        self.ledger.visits(&format!("{}:{}", self.address, self.port))
    }

    /// The value of a variable in each visit that was carried out; `default` where it was not set.
    pub fn trace(&self, variable: &str, default: &str) -> Vec<String> {
        let value = |it: &Visit| match it.variables.get(variable) {
            None => default.to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        self.visits().iter().filter(|it| it.is_done).map(value).collect()
    }

    /// The service of each visit that was carried out.
    pub fn services(&self) -> Vec<String> {
        self.visits().into_iter().filter(|it| it.is_done).map(|it| it.service).collect()
    }
}

impl State {
    fn body(&self) -> MutexGuard<'_, Body> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host's own key, where it answers.
    pub(super) fn shown_key(&self) -> Option<String> {
        let body = self.body();
        body.is_up.then(|| body.host_key.clone())
    }

    /// Why ssh does not get in, if so.
    pub(super) fn rejection(&self, approach: &Approach<'_>) -> Option<Behaviour> {
        let body = self.body();
        if !body.is_up {
            return Some(Behaviour::Unreachable);
        }
        if !knows(approach, &body.host_key) {
            return Some(Behaviour::HostKeyMismatch);
        }
        let file = approach.variables.get("ansible_ssh_private_key_file").and_then(Value::as_str);
        let key = file.and_then(|it| approach.files.get(it)).map(|it| it.trim());
        let user = approach.variables.get("ansible_user").and_then(Value::as_str);
        let is_let_in = user == Some(USER) && key == Some(body.user_key.trim());
        (!is_let_in).then_some(Behaviour::KeyRefused)
    }

    /// How a play of the service ends.
    pub(super) fn behaviour(&self, service: &str) -> Behaviour {
        self.body().behaviours.get(service).cloned().unwrap_or(Behaviour::Done)
    }

    /// Waits as long as plays of the service take, and until they may go on.
    pub(super) async fn work(&self, service: &str) {
        let takes = self.body().takes;
        tokio::time::sleep(takes).await;
        let mut held = self.blocked.subscribe();
        let is_free = |it: &Vec<String>| it.iter().all(|it| !it.is_empty() && it != service);
        // The sender is in the same object, so the channel stays open.
        let _ = held.wait_for(is_free).await;
    }
}

/// Whether one of the files that ssh is told to read has the host's key, as ssh itself looks.
fn knows(approach: &Approach<'_>, key: &str) -> bool {
    let args = approach.variables.get("ansible_ssh_common_args").and_then(Value::as_str);
    let (_, files) = args.and_then(|it| it.split_once("UserKnownHostsFile=")).unwrap_or_default();
    let files = files.split([' ', '\'', '"']).take_while(|it| it.starts_with('/'));
    let (name, port) = approach.address.rsplit_once(':').unwrap_or((approach.address, "22"));
    let known_as = if port == "22" { name.to_owned() } else { format!("[{name}]:{port}") };
    let lines = files.filter_map(|it| approach.files.get(it)).flat_map(|it| it.lines());
    lines.into_iter().any(|line| {
        let (names, rest) = line.split_once(' ').unwrap_or_default();
        names.split(',').any(|it| it == known_as) && rest.trim() == key
    })
}

/// An ed25519 key in ssh's form, which nobody has the private part of.
fn key_of(name: &str, number: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut seed = name.bytes().fold(number * 7919 + 17, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(usize::from(byte)) % 1_000_003
    });
    let mut letter = || {
        seed = (seed * 48_271 + 11) % 2_147_483_647;
        char::from(LETTERS[seed % LETTERS.len()])
    };
    // The first two bits of the tail belong to what is the same in all keys.
    let first = char::from(LETTERS[number % 16]);
    let tail: String = (0..42).map(|_| letter()).collect();
    format!("{KEY_TYPE} {COMMON_PREFIX}{first}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(host: &Host, user: &str, key: &str, known_hosts: &str) -> Option<Behaviour> {
        let files = BTreeMap::from([
            ("/k".to_owned(), key.to_owned()),
            ("/h".to_owned(), known_hosts.to_owned()),
        ]);
        let args = "-o 'UserKnownHostsFile=/none /h' -o GlobalKnownHostsFile=/dev/null";
        let variables = BTreeMap::from([
            ("ansible_user".to_owned(), user.into()),
            ("ansible_ssh_private_key_file".to_owned(), "/k".into()),
            ("ansible_ssh_common_args".to_owned(), args.into()),
        ]);
        let address = format!("{}:22", host.address);
        let approach =
            Approach { service: "a", address: &address, variables: &variables, files: &files };
        host.state.rejection(&approach)
    }

    #[test]
    fn a_host_lets_in_its_user_by_its_key_where_its_own_is_known() {
        let host = Host::new("n0", "192.0.2.1", &Arc::default());
        let [(_, key), (_, known)] = &host.ssh_secret()[..] else { panic!("another Secret") };
        assert_eq!(ends(&host, USER, key, known), None);
        assert_eq!(ends(&host, USER, "x", known), Some(Behaviour::KeyRefused));
        assert_eq!(ends(&host, "root", key, known), Some(Behaviour::KeyRefused));
        let wrong = host.wrong_known_hosts();
        assert_eq!(ends(&host, USER, key, &wrong), Some(Behaviour::HostKeyMismatch));
        host.rekey();
        assert_eq!(ends(&host, USER, key, known), Some(Behaviour::HostKeyMismatch));
        host.stop();
        assert_eq!(ends(&host, USER, key, known), Some(Behaviour::Unreachable));
    }

    #[test]
    fn a_made_up_key_has_the_form_of_a_real_one_and_each_is_another() {
        let keys = [key_of("n0", 0), key_of("n0", 1), key_of("n1", 0)];
        for key in &keys {
            assert_eq!(HostKey::parse(key).map(|it| it.to_string()).as_ref(), Some(key));
        }
        assert!(keys[0] != keys[1] && keys[0] != keys[2], "{keys:?}");
    }
}

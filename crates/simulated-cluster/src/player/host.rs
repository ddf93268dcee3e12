//! Hosts as the player simulates them: which logins they accept, and how plays end there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::ansibleee::HostFailure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use operator_core::run_engine::host_key::{COMMON_PREFIX, HostKey, KEY_TYPE};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;

use super::ledger::{Ledger, Visit};

/// A private key that no host accepts, in a form that ssh reads.
pub const PRIVATE_KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
    b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABbm8gb25lJ3M=\n\
    -----END OPENSSH PRIVATE KEY-----\n";
/// What a private key without a passphrase begins with.
const BEGIN: &[u8] = b"openssh-key-v1\0\0\0\0\x04none\0\0\0\x04none\0\0\0\0\0\0\0\x01";

/// Returns a private key of that name, in a form that ssh reads.
fn private_key(name: &str) -> String {
    let body = STANDARD.encode([BEGIN, name.as_bytes()].concat());
    format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n")
}

/// The user that hosts accept.
const USER: &str = "cloud-admin";

/// How a play ends on a host.
#[derive(Clone, Debug, PartialEq)]
pub enum Behaviour {
    /// All tasks succeed, and something was changed.
    Done,
    /// All tasks succeed, and nothing was changed.
    Unchanged,
    /// A task fails with this failure; the host's name is filled in.
    Failed(HostFailure),
    /// The SSH connection is not answered.
    Unreachable,
    /// The host rejects the SSH key.
    KeyRefused,
    /// The host presents another host key than the known one.
    HostKeyMismatch,
    /// No play reached the host.
    NotReached,
    /// The callback does not know the outcome.
    Unknown,
}

impl Behaviour {
    /// Creates the behaviour of a failing task.
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

/// A simulated host of a test.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The address of its SSH server.
    pub address: String,
    /// The port of its SSH server.
    pub port: u16,
    state: Arc<State>,
    ledger: Arc<Ledger>,
}

/// What determines the behaviour of a host.
#[derive(Debug)]
pub(super) struct State {
    body: Mutex<Body>,
    /// The services whose plays wait on the host; an empty name stands for all.
    blocked: watch::Sender<Vec<String>>,
}

#[derive(Clone, Debug)]
struct Body {
    is_up: bool,
    user_key: String,
    host_key: String,
    /// The number of host keys it had before.
    n_keys: usize,
    /// How plays of a service end; those of other services succeed.
    behaviours: BTreeMap<String, Behaviour>,
    takes: Duration,
}

/// What a run presents to a host.
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
            user_key: private_key(name),
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

    /// Returns the content of an SSH Secret with which this host is reached.
    pub fn ssh_secret(&self) -> Vec<(&'static str, String)> {
        let body = self.state.body().clone();
        let known_hosts = format!("{} {}\n", self.known_as(), body.host_key);
        vec![("ssh-privatekey", body.user_key), ("known_hosts", known_hosts)]
    }

    /// Returns the name under which SSH looks up its host key.
    fn known_as(&self) -> String {
        let Self { address, port, .. } = self;
        if *port == 22 { address.clone() } else { format!("[{address}]:{port}") }
    }

    /// Accepts that private key from now on, for hosts that share a user key.
    pub fn accept(&self, user_key: &str) {
        user_key.clone_into(&mut self.state.body().user_key);
    }

    /// Returns the host key, as `ssh-ed25519 AAAA…`.
    pub fn host_key(&self) -> String {
        self.state.body().host_key.clone()
    }

    /// Returns the fingerprint of the host key, as `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        HostKey::parse(&self.host_key()).map(|it| it.fingerprint()).unwrap_or_default()
    }

    /// Returns known hosts with a wrong key for this host.
    pub fn wrong_known_hosts(&self) -> String {
        format!("{} {}\n", self.known_as(), key_of(&self.name, 99))
    }

    /// Gives the host a new host key.
    pub fn rekey(&self) {
        let mut body = self.state.body();
        body.n_keys += 1;
        body.host_key = key_of(&self.name, body.n_keys);
    }

    /// Lets the host stop answering.
    pub fn stop(&self) {
        self.state.body().is_up = false;
    }

    /// Lets the host answer.
    pub fn boot(&self) {
        self.state.body().is_up = true;
    }

    /// Returns whether the host answers.
    pub fn is_up(&self) -> bool {
        self.state.body().is_up
    }

    /// Sets how plays of a service end from now on.
    pub fn behave(&self, service: &str, behaviour: Behaviour) {
        self.state.body().behaviours.insert(service.to_owned(), behaviour);
    }

    /// Sets how long plays take.
    pub fn take(&self, time: Duration) {
        self.state.body().takes = time;
    }

    /// Blocks plays of a service on the host until [`Host::release`]; the empty name stands for
    /// all.
    pub fn hold(&self, service: &str) {
        self.state.blocked.send_modify(|it| it.push(service.to_owned()));
    }

    /// Unblocks all plays.
    pub fn release(&self) {
        self.state.blocked.send_modify(Vec::clear);
    }

    /// Returns the visits of the host in order.
    pub fn visits(&self) -> Vec<Visit> {
        self.ledger.visits(&format!("{}:{}", self.address, self.port))
    }

    /// Returns the value of a variable in each successful visit; `default` when it was not set.
    pub fn trace(&self, variable: &str, default: &str) -> Vec<String> {
        let value = |it: &Visit| match it.variables.get(variable) {
            None => default.to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        self.visits().iter().filter(|it| it.is_done).map(value).collect()
    }

    /// Returns the service of each successful visit.
    pub fn services(&self) -> Vec<String> {
        self.visits().into_iter().filter(|it| it.is_done).map(|it| it.service).collect()
    }
}

impl State {
    fn body(&self) -> MutexGuard<'_, Body> {
        self.body.lock()
    }

    /// Returns the host key, or `None` when the host does not answer.
    pub(super) fn shown_key(&self) -> Option<String> {
        let body = self.body();
        body.is_up.then(|| body.host_key.clone())
    }

    /// Returns how SSH fails, or `None` when it succeeds.
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

    /// Returns how a play of the service ends.
    pub(super) fn behaviour(&self, service: &str) -> Behaviour {
        self.body().behaviours.get(service).cloned().unwrap_or(Behaviour::Done)
    }

    /// Waits as long as plays take, and until plays of the service are unblocked.
    pub(super) async fn work(&self, service: &str) {
        let takes = self.body().takes;
        tokio::time::sleep(takes).await;
        let mut held = self.blocked.subscribe();
        let is_free = |it: &Vec<String>| it.iter().all(|it| !it.is_empty() && it != service);
        // The sender is in the same object, so the channel stays open.
        let _ = held.wait_for(is_free).await;
    }
}

/// Returns whether one of the known hosts files has the host's key, by SSH's own lookup.
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

/// Returns an ed25519 public key in SSH's format without a private key.
pub(super) fn key_of(name: &str, number: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut seed = name.bytes().fold(number * 7919 + 17, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(usize::from(byte)) % 1_000_003
    });
    let mut letter = || {
        seed = (seed * 48_271 + 11) % 2_147_483_647;
        char::from(LETTERS[seed % LETTERS.len()])
    };
    // The first two bits of the tail belong to the prefix that all keys share.
    let first = char::from(LETTERS[number % 16]);
    let tail: String = (0..42).map(|_| letter()).collect();
    format!("{KEY_TYPE} {COMMON_PREFIX}{first}{tail}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
        // The bench has that many hosts, at such addresses.
        let address = |it: usize| format!("198.18.{}.{}:22", it / 250, it % 250 + 1);
        let many: BTreeSet<String> = (0..5000).map(|it| key_of(&address(it), 0)).collect();
        assert_eq!(many.len(), 5000);
    }
}

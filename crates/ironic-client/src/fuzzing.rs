//! Bodies of the fuzz targets of this crate; see `fuzz/` and docs/development.md.
//!
//! They are compiled only for tests, which run them on the committed corpus, and for the fuzzer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use api::baremetal::DeprovisionPolicy;
use api::conditions::printable;
use http::{HeaderValue, Response};
use hyper::body::Bytes;
use ironic::error::WORDS_LIMIT;
use ironic::{
    Cause, DesiredMachine, Next, Node, RequestValues, Terms, assign, next, policy, release, version,
};
use jiff::Timestamp;

use crate::answer::{content, read};
use openstack_client::Token;

use crate::keystone_error::of_keystone;
use crate::session::Page;

/// A fuzz target: its name, and the function that takes an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[("ironic", ironic_answer), ("keystone", keystone_answer)];

/// Maximum length of a message in bytes: the server's own, and its context.
const MESSAGE: usize = WORDS_LIMIT + 1024;

/// A response of Ironic: its status in the first line, then its body, parsed as each kind of
/// response.
pub fn ironic_answer(data: &[u8]) {
    let body = match content(answer(data, None)) {
        Ok(body) => body,
        Err(error) => return message(&error, "Ironic"),
    };
    if let Ok(document) = read(&body)
        && let Err(error) = version::negotiated(&document)
    {
        message(&error, "Ironic");
    }
    let listed = read::<Page>(&body).map(|it| it.nodes);
    let nodes = listed.or_else(|_| read::<Node>(&body).map(|it| vec![it])).unwrap_or_default();
    for node in &nodes {
        on_its_way(node);
    }
    let hosts = BTreeMap::from(
        [("a", true), ("b", false)]
            .map(|(name, provide)| (name.to_owned(), Terms { provide, ..Terms::default() })),
    );
    let given = assign(&hosts, &nodes, &BTreeSet::new());
    let mut taken: Vec<&str> = given.values().flatten().map(|it| it.uuid.as_str()).collect();
    taken.sort_unstable();
    let n_taken = taken.len();
    let is_one_each = nodes.iter().map(|it| &it.uuid).collect::<BTreeSet<_>>().len() < nodes.len();
    taken.dedup();
    assert!(is_one_each || taken.len() == n_taken, "one machine for two hosts");
    given.values().filter_map(|it| it.as_ref().err()).for_each(|it| message(it, "none"));
}

/// Checks everything that is derived from a machine, whatever it contains.
fn on_its_way(node: &Node) {
    let _ = (node.capabilities(), ironic::deployment(node));
    let instance = node.instance_uuid.clone().unwrap_or_else(|| "i".into());
    for (adopt, provide) in [(false, true), (true, false)] {
        let desired = DesiredMachine {
            instance: instance.clone(),
            adopt,
            provide,
            attempts: 3,
            ..DesiredMachine::default()
        };
        let wanted = policy(node, Some(DeprovisionPolicy::Deprovision));
        for step in [
            next(node, &desired, Timestamp::UNIX_EPOCH),
            release(node, &instance, wanted),
            release(node, &instance, policy(node, None)),
        ] {
            match step {
                Next::Do(step) => {
                    let request = step.request(node, &instance, &RequestValues::default());
                    assert!(request.path.starts_with("/v1/nodes/"), "{}", request.path);
                }
                Next::Wait { seconds, cause } => {
                    assert!(seconds <= 600, "a pause of {seconds} s");
                    about(node, &cause);
                }
                Next::Stop(cause) => about(node, &cause),
                Next::Done { .. } => {}
            }
        }
    }
}

fn about(node: &Node, cause: &Cause) {
    message(&cause.message(node), "machine");
}

/// A response of Keystone: its status and the token in the first line, then its body.
pub fn keystone_answer(data: &[u8]) {
    let line = data.split(|it| *it == b'\n').next().unwrap_or_default();
    let token = line.split(|it| *it == b' ').nth(1).and_then(|it| HeaderValue::from_bytes(it).ok());
    let text = token.as_ref().and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
    match Token::of(&answer(data, token)) {
        Ok(token) => {
            for now in [Timestamp::MIN, Timestamp::UNIX_EPOCH] {
                let _ = token.is_good(now);
            }
            // A shorter text may also occur in the time.
            assert!(text.len() < 40 || !format!("{token:?}").contains(&text), "a token is shown");
        }
        Err(error) => message(&of_keystone(error), "Keystone"),
    }
}

fn answer(data: &[u8], token: Option<HeaderValue>) -> Response<Bytes> {
    let at = data.iter().position(|it| *it == b'\n').unwrap_or(data.len());
    let (line, body) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let status = line.get(..3).and_then(|it| std::str::from_utf8(it).ok()?.parse().ok());
    let mut answer = Response::new(Bytes::copy_from_slice(body));
    *answer.status_mut() = status.unwrap_or_default();
    if let Some(token) = token {
        answer.headers_mut().insert("x-subject-token", token);
    }
    answer
}

/// Checks that a message fits a condition: it is short, and the same each time.
fn message(words: &impl Display, whose: &str) {
    let words = words.to_string();
    assert!(!words.is_empty() && words.len() <= MESSAGE, "{whose}: {} bytes", words.len());
    let message = printable(&words);
    assert!(!message.contains(|it: char| it != '\n' && it.is_control()), "{message:?}");
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

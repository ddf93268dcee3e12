//! Bodies of the fuzz targets of this crate; see `fuzz/` and docs/development.md.
//!
//! They are compiled only for tests, which run them on the committed corpus, and for the fuzzer.

use std::collections::{BTreeMap, BTreeSet};

use api::yaml::{self, Tree};
use api::{names, plays};
use serde_json::{Map, Value};

use crate::host_address;
use crate::run_engine::host_key::{self, HostKey};
use crate::run_engine::host_owner::{self, HostOwner};
use crate::run_engine::inventory::{HostEntry, inventory, run_inventory};
use crate::run_engine::{known_hosts, limit};

/// A fuzz target: its name, and the function that takes an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    ("addresses", addresses),
    ("host_keys", host_keys),
    ("inventory", inventories),
    ("yaml", yaml_texts),
];

/// Canonical addresses, derived names and limits: each line is one text.
pub fn addresses(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let (address, other) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let (host, endpoint) = (host_address::host(address), host_address::endpoint(address));
    assert_eq!(host_address::host(&host), host, "host is not its own canonical form");
    assert_eq!(host_address::endpoint(&endpoint), endpoint, "nor is endpoint");
    assert!(endpoint.len() <= address.len() + "[]".len() + "::ffff:".len(), "it grows: {endpoint}");
    for port in [1, host_address::SSH_PORT, 65_535] {
        let whole = host_address::with_port(address, port);
        assert_eq!(whole, host_address::with_port(&host, port), "two forms of one host");
    }
    let name = names::hashed(&[&host, other], names::LABEL_LIMIT);
    assert!(name.len() <= names::LABEL_LIMIT, "too long: {name}");
    let are_names = names::is_dns_subdomain(&host) && names::is_dns_subdomain(other);
    assert!(!are_names || names::is_dns_subdomain(&name), "no name: {name}");
    let terms = limit::terms(other);
    let joined = terms.join(",");
    assert!(terms.len() < 2 || limit::terms(&joined) == terms, "terms do not stay apart");
    let _ = limit::leaves_out(other, &host, &["compute"]);
    for word in host_owner::accepted(Some(&other.to_owned())) {
        let reported = host_owner::answer(&format!("(UID {word})"));
        assert!(word.starts_with("host:") || reported.as_ref() == Some(&word), "{word}");
    }
}

/// Known hosts and keys: host and port in the first line, then lines as a user writes them.
pub fn host_keys(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (first, lines) = text.split_once('\n').unwrap_or((&text, ""));
    let (host, port) = first.rsplit_once(' ').unwrap_or((first, "22"));
    let port = port.parse::<u16>().map_or(host_address::SSH_PORT, i32::from);
    let _ = known_hosts::covers(lines, host, port);
    let accepted = host_key::accepted(Some(&lines.to_owned()));
    assert!(
        accepted.is_none_or(|it| it.chars().count() <= 100 && !it.contains(char::is_whitespace))
    );
    for line in lines.lines() {
        let tail = HostKey::of_tail(line);
        for key in HostKey::parse(line).into_iter().chain(tail) {
            assert_eq!(HostKey::parse(&key.to_string()).as_ref(), Some(&key), "no round trip");
            assert_eq!(key.fingerprint().len(), 50, "no fingerprint");
            let Some(known) = known_hosts::line(host, port, &key) else { continue };
            assert_eq!(known.matches('\n').count(), 1, "no line: {known:?}");
            assert!(known_hosts::covers(&known, host, port), "no host is known by {known:?}");
        }
    }
}

/// Variables as JSON; some of them are also other inventory values, such as the host's name.
pub fn inventories(data: &[u8]) {
    let Ok(given) = serde_json::from_slice::<Map<String, Value>>(data) else { return };
    let vars: BTreeMap<String, Value> = given.into_iter().collect();
    let whole = Value::Object(vars.clone().into_iter().collect());
    let template = Tree::template(whole.clone()).render();
    assert_eq!(read(&template), whole, "{template}");
    assert_eq!(untagged(&Tree::data(whole).render()), template, "data has another form");
    let text = |name: &str| vars.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let host = HostEntry {
        name: text("name"),
        ansible_host: text("ansible_host"),
        ansible_port: 22,
        ansible_user: vars.get("ansible_user").and_then(Value::as_str).map(str::to_owned),
        host_name: text("host_name"),
        ssh_secret: text("secret"),
        is_learned: vars.contains_key("is_learned"),
        nic_template: None,
        management_network: Some(text("network")),
        vars: vars.clone(),
        owner: HostOwner { object: text("owner"), uid: text("uid"), accepted: vec![text("uid")] },
        elsewhere: BTreeSet::from([text("elsewhere")]),
    };
    let group = text("group");
    let written = inventory(&group, [host.lines().as_str()]);
    let read = read(&untagged(&written));
    let hosts = read.as_object().and_then(|it| it.get(&group)?.get("hosts")?.as_object());
    let of_host = hosts.and_then(|it| it.get(&host.name)?.as_object());
    let is_alone =
        hosts.is_some_and(|it| it.len() == 1) && read.as_object().is_some_and(|it| it.len() == 1);
    assert!(is_alone && of_host.is_some(), "more or less than one host:\n{written}");
    let owner = of_host.and_then(|it| it.get("edpm_owner")?.as_str());
    assert_eq!(owner, Some(host.owner.object.as_str()), "another owner");
    let run = yaml::from_str::<Value>(&run_inventory([&host.name]));
    assert!(run.is_ok_and(|it| it.pointer("/edpm_run/hosts").is_some_and(Value::is_object)));
}

/// Removes the tags, which are outside of quotes.
fn untagged(text: &str) -> String {
    const TAG: &str = "!unsafe ";
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    let (mut in_text, mut is_escaped) = (false, false);
    while let Some(it) = rest.chars().next() {
        if !in_text && let Some(after) = rest.strip_prefix(TAG) {
            rest = after;
            continue;
        }
        in_text ^= it == '"' && !is_escaped;
        is_escaped = it == '\\' && !is_escaped;
        plain.push(it);
        rest = &rest[it.len_utf8()..];
    }
    plain
}

fn read(text: &str) -> Value {
    match yaml::from_str(text) {
        Ok(value) => value,
        Err(error) => Value::from(format!("cannot be read: {error}")),
    }
}

/// YAML that a user wrote: playbooks, network data, cloud-configs.
pub fn yaml_texts(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let fault = plays::contents_fault(&text);
    assert_eq!(plays::contents_fault(&text), fault, "two answers to one question");
    let Ok(value) = yaml::from_str::<Value>(&text) else { return };
    let rendered = Tree::template(value.clone()).render();
    assert_eq!(read(&rendered), value, "{rendered}");
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

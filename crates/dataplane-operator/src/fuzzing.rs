//! The fuzz target of this crate; see `fuzz/` and docs/development.md.
//!
//! It is compiled only for tests, which run it on the committed corpus, and for the fuzzer.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::{Node, NodeSet, Role};
use operator_core::data_sources::SourceRef;
use operator_core::{host_address, node_set_host};
use operator_runtime::source_cache::Content;
use operator_runtime::source_cache::Values;
use serde::Deserialize;
use serde_json::Value;

use crate::host::conflicts::Claim;
use crate::host::effective_spec::EffectiveSpec;
use crate::host::vars::{self, Objects};

/// A fuzz target: its name, and the function that processes an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[("hosts", hosts)];

/// The fuzzer's input: hosts as users describe them, and `ConfigMaps` and Secrets with variables.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Input {
    role: Option<Role>,
    node: Option<Node>,
    set: Option<NodeSet>,
    /// The nodes of the node set's hosts.
    nodes: Vec<Node>,
    config_maps: BTreeMap<String, BTreeMap<String, String>>,
    secrets: BTreeMap<String, BTreeMap<String, String>>,
}

/// Checks the effective spec and the host claims of a node or of a node set's hosts.
pub fn hosts(data: &[u8]) {
    let Ok(input) = serde_json::from_slice::<Input>(data) else { return };
    let objects = objects(&input);
    if let Some(node) = &input.node {
        let effective = EffectiveSpec::of(None, input.role.as_ref(), node, &objects);
        let again = EffectiveSpec::of(None, input.role.as_ref(), node, &objects);
        assert_eq!(again, effective, "two answers to one question");
        let secret = effective.secret_names();
        assert!(effective.vars.keys().all(|it| !secret.contains(it)), "a secret is a variable");
        if let Some(address) = effective.address() {
            canonical(&host_address::endpoint(&address));
        }
        let claim = || Claim::of_node(node, input.role.as_ref());
        assert_eq!(claim(), claim());
        let _ = claim().keys();
    }
    if let Some(set) = &input.set {
        for it in node_set_host::hosts(set) {
            canonical(&host_address::with_port(&it.ansible_host, it.ansible_port));
            assert!(!it.name.contains('.'), "a domain in {}", it.name);
        }
        let nodes: Vec<Arc<Node>> = input.nodes.iter().cloned().map(Arc::new).collect();
        let claim = || Claim::of_node_set(set).with_nodes(&nodes);
        assert_eq!(claim(), claim());
        let _ = claim().keys();
    }
}

fn objects(input: &Input) -> Objects {
    let content = |texts: &BTreeMap<String, String>| {
        for text in texts.values() {
            typed(text);
        }
        let bytes = texts.iter().map(|(key, text)| (key.clone(), text.clone().into_bytes()));
        Content::from(Values::new("1", bytes.collect()))
    };
    let maps =
        input.config_maps.iter().map(|it| (SourceRef::config_map("ns", it.0), content(it.1)));
    let secrets = input.secrets.iter().map(|it| (SourceRef::secret("ns", it.0), content(it.1)));
    maps.chain(secrets).collect()
}

/// Checks that a value is either the text itself or the JSON that the text contains.
fn typed(text: &str) {
    let value = vars::value(text);
    let is_same = value.as_str() == Some(text);
    assert!(is_same || serde_json::from_str::<Value>(text).is_ok_and(|it| it == value), "{value}");
}

fn canonical(address: &str) {
    assert_eq!(host_address::endpoint(address), address, "not its own canonical form");
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

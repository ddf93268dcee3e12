//! The names under which the machines of a node set's hosts were requested: a host may be renamed,
//! while its machine keeps its name.

use std::collections::BTreeMap;

use api::dataplane::NodeSet;
use kube::ResourceExt;
use operator_core::node_set_host::{Host, machine_template};

use crate::baremetal_request::provisioning_state::knows;
use crate::fault::Fault;
use crate::node_set::observed::{Observed, own_set};

const KIND: &str = "OpenStackDataPlaneNodeSet";

/// Machine names by the host's key in `spec.nodes`.
#[derive(Clone, Debug, Default)]
pub struct Names<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Names<'a> {
    /// Returns the names of the hosts whose machines are chosen and still part of the baremetal
    /// set.
    pub fn of(seen: &'a Observed) -> Self {
        let (Some(own), Some(status)) = (own_set(seen), &seen.set.status) else {
            return Self::default();
        };
        let machines = status.machines.iter().filter(|(_, it)| it.is_chosen());
        let names = machines.filter_map(|(name, it)| Some((it.node.as_deref()?, name.as_str())));
        let is_known =
            |(key, name): &(&str, &str)| seen.set.spec.nodes.contains_key(*key) && knows(own, name);
        Self(names.filter(is_known).collect())
    }

    /// Returns all names.
    pub fn all(&self) -> impl Iterator<Item = &'a str> {
        self.0.values().copied()
    }

    /// Returns the fault of a host whose machine has another name, or whose name belongs to another
    /// host's machine.
    pub fn fault(&self, set: &NodeSet, host: &Host<'_>) -> Option<Fault> {
        let (key, called, title) = (host.key, &host.name, format!("{KIND} {}", set.name_any()));
        if let Some(known) = self.0.get(key).filter(|it| *it != called) {
            let template = machine_template(set).and_then(|it| it.template.domain_name.as_deref());
            let domain = template.filter(|it| !it.is_empty());
            // With a domain in the template, a host name without one would not count.
            let way = domain.map_or_else(|| (*known).to_owned(), |it| format!("{known}.{it}"));
            let text = format!(
                "Node {key} of {title} is called {called} now, and its machine was asked for as \
                 {known}, which it stays: under another name it would be given back, and another one \
                 deployed. Set spec.nodes[{key}].hostName to {way} again, or take the node out and put \
                 it in under another key."
            );
            return Some(Fault::wrong("HostNameChanged", text));
        }
        let other = self.0.iter().find(|(other, name)| **other != key && *name == called)?.0;
        let text = format!(
            "Node {key} of {title} has the host name {called}, by which the machine of node {other} is \
             known: correct spec.nodes[{key}].hostName."
        );
        Some(Fault::wrong("HostTwice", text))
    }
}

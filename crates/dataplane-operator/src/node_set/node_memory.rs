//! What the nodes of a node set remember of deployments, but for what is no longer so.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::{Disruption, HostMachine, HostState, Node, NodeDeployment, NodeStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use crate::node_set::machine_request::Machines;
use crate::node_set::observed::Observed;

/// The nodes by their names, with what they remember.
pub type Memories = BTreeMap<String, Node>;

/// Returns the nodes with what they remember, and with their present machines.
pub fn memories(seen: &Observed, machines: &Machines, now: Timestamp) -> Memories {
    let one = |(name, node): (&String, &Arc<Node>)| {
        let machine = machines.records.get(name).or_else(|| machines.of_terminating.get(name));
        let status = remembered(seen, node, machine.cloned(), now);
        (name.clone(), Node { status: Some(status), ..(**node).clone() })
    };
    seen.nodes.all().map(one).collect()
}

fn remembered(
    seen: &Observed,
    node: &Node,
    machine: Option<HostMachine>,
    now: Timestamp,
) -> NodeStatus {
    let mut status = node.status.clone().unwrap_or_default();
    if machine.as_ref().is_some_and(|it| is_another(&status, it)) {
        status = forgotten(status);
    }
    status.machine = machine.or(status.machine);
    let is_stuck =
        |it: &&mut NodeDeployment| it.state == HostState::Deploying && !is_open(seen, &it.uid);
    if let Some(last) = status.deployment.as_mut().filter(is_stuck) {
        (last.state, last.since) = (HostState::Failed, Time(now));
        status.deployed = None;
    }
    if node.is_leaving() {
        // What runs there may be stopped from now on. Where the host comes back, it is still in service,
        // so that a deployment disturbs no more such hosts at once than it may.
        status.deployed = None;
    }
    let is_staying = seen.nodes.own.contains_key(&node.name_any());
    if let Some(disruption) = &mut status.disruption {
        disruption.target.take_if(|it| !is_staying || !is_open(seen, &it.deployment));
    }
    status
}

/// Returns whether a node that was described before was described with another machine, or with
/// another system on it.
fn is_another(status: &NodeStatus, machine: &HostMachine) -> bool {
    let described = status.machine.as_ref().and_then(HostMachine::own_installation);
    let present = machine.own_installation();
    status.observed_node_set.is_some() && present.is_some() && described != present
}

/// Returns a status without what deployments did to the system before.
fn forgotten(status: NodeStatus) -> NodeStatus {
    NodeStatus {
        services: Vec::new(),
        deployment: None,
        deployed: None,
        deployed_config_hash: None,
        deployed_address: None,
        host_key: None,
        disruption: status.disruption.map(|it| Disruption { target: None, ..it }),
        ..status
    }
}

/// Returns whether a deployment may still run something. One that cannot be read may.
fn is_open(seen: &Observed, uid: &str) -> bool {
    let mut all = seen.deployments.iter();
    let mut unreadable = seen.unreadable_deployments.iter();
    all.any(|it| it.metadata.uid.as_deref() == Some(uid) && !it.has_run())
        || unreadable.any(|it| it.uid == uid && !it.has_ended)
}

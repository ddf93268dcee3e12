//! The deployments of a host of a node set.

use std::collections::BTreeMap;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Deployment, Node, NodeSet, RunState};
use kube::ResourceExt;
use operator_core::run_engine::limit::leaves_out;

use crate::host::Host;
use crate::kinds::DEPLOYMENT;
use crate::object_meta::{created, place};
use crate::run::{owner_of, service_of};
use crate::stage::Stage;

/// The deployments of each node set, oldest first, by its namespace and name.
pub type BySet<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a Deployment>>;

/// Returns the deployments by the node sets that they name.
pub fn by_set(all: &[Deployment]) -> BySet<'_> {
    let mut sorted: Vec<&Deployment> = all.iter().collect();
    sorted.sort_by_key(|it| (created(*it), it.name_any()));
    let mut found = BySet::new();
    for deployment in sorted {
        for set in &deployment.spec.node_sets {
            found.entry((place(deployment).0, set)).or_default().push(deployment);
        }
    }
    found
}

/// Returns the deployments that may target the host: those whose limit does not certainly exclude it.
pub fn of_node<'a>(node: &Node, all: &BySet<'a>) -> Vec<&'a Deployment> {
    let (namespace, name) = place(node);
    let Some(set) = node.node_set() else { return vec![] };
    let is_meant = |it: &&&Deployment| {
        let limit = it.spec.ansible_limit.as_deref().unwrap_or_default();
        !leaves_out(limit, name, &[set])
    };
    all.get(&(namespace, set)).into_iter().flatten().filter(is_meant).copied().collect()
}

/// Whether a deployment is at the host, or was last.
pub fn is_last(node: &Node, deployment: &Deployment) -> bool {
    let last = node.status.as_ref().and_then(|it| it.deployment.as_ref());
    last.is_some_and(|it| Some(&it.uid) == deployment.metadata.uid.as_ref())
}

/// Returns the newest deployment that targets the host, if it has neither begun there nor ended.
pub fn waiting<'a>(host: &Host<'a>) -> Option<&'a Deployment> {
    let newest = host.deployments.last().copied()?;
    (!is_last(host.node, newest) && !newest.has_ended()).then_some(newest)
}

/// Returns the services that a deployment brings to a node set; without one, those that the node set
/// lists.
pub fn services<'a>(
    deployment: Option<&'a Deployment>,
    node_set: Option<&'a NodeSet>,
) -> Vec<&'a str> {
    let chosen = deployment.map(|it| &it.spec.services_override).filter(|it| !it.is_empty());
    let listed = node_set.map(|it| &it.spec.services);
    chosen.or(listed).into_iter().flatten().map(String::as_str).collect()
}

/// Returns the first stage of the host with the newest deployment that has come to the service there.
/// One that ended before it is skipped.
pub fn stage_with<'a>(host: &Host<'a>, service: &str) -> Stage<'a> {
    let mut stage = host.stages[0].clone();
    let recorded = stage.services.iter().find(|it| it.name == service);
    let has_come = |it: &Deployment| {
        let is_begun = recorded.is_some_and(|it| it.state != RunState::Pending);
        stage.desired.contains(&service) && (is_begun || !it.has_ended())
    };
    if stage.deployment.is_some_and(has_come) {
        return stage;
    }
    let of_service = |it: &&&AnsibleEe| service_of(it) == Some(service);
    let owner = host.runs.iter().rfind(of_service).and_then(|it| owner_of(it));
    let is_owner = |it: &&Deployment| owner == Some((DEPLOYMENT, place(*it).1));
    stage.deployment = host.deployments.iter().copied().find(is_owner);
    stage.desired = services(stage.deployment, host.node_set);
    // What a deployment has brought stays until another one has come to the service.
    for record in stage.services.iter_mut().filter(|it| it.state == RunState::Pending) {
        if let Some(hash) = record.deployed_hash.clone() {
            (record.state, record.hash) = (RunState::Succeeded, hash);
        }
    }
    stage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn a_host_is_found_by_its_key_its_own_name_and_that_of_the_inventory() {
        let snapshot = testdata::node_set();
        let found = |name: &str| snapshot.host("openstack", name).map(|it| it.name);
        for name in ["compute-6", "edpm-compute-6"] {
            assert_eq!(found(name), Some("edpm-compute-6"), "{name}");
        }
        assert_eq!(found("edpm-compute-5.example.org"), Some("edpm-compute-5"));
        assert_eq!(found("edpm-compute-7"), None);
        assert!(snapshot.host("other", "edpm-compute-5").is_none());
    }

    #[test]
    fn a_deployment_waits_until_it_has_begun_on_the_host_unless_its_limit_leaves_the_host_out() {
        let mut snapshot = testdata::node_set();
        let mut later = Deployment::new("later", snapshot.deployments[0].spec.clone());
        later.metadata.namespace = Some("openstack".to_owned());
        later.metadata.uid = Some("d1".to_owned());
        later.metadata.creation_timestamp =
            Some(serde_json::from_value("2026-11-21T11:30:00Z".into()).unwrap());
        snapshot.deployments.insert(0, later);
        let waits = |snapshot: &_| {
            let snapshot: &crate::snapshot::Snapshot = snapshot;
            let host = snapshot.host("openstack", "edpm-compute-5").unwrap();
            waiting(&host).map(ResourceExt::name_any)
        };
        assert_eq!(waits(&snapshot).as_deref(), Some("later"));
        snapshot.deployments[0].spec.ansible_limit = Some("edpm-compute-6".to_owned());
        assert_eq!(waits(&snapshot), None);
        snapshot.deployments[0].spec.ansible_limit = None;
        let status = snapshot.nodes[0].status.as_mut().unwrap();
        status.deployment.as_mut().unwrap().uid = "d1".to_owned();
        assert_eq!(waits(&snapshot), None);
    }

    #[test]
    fn what_a_deployment_brought_stays_while_a_later_one_fails_before_it() {
        let mut snapshot = testdata::node_set();
        let mut later = snapshot.deployments[0].clone();
        later.metadata.name = Some("later".to_owned());
        later.metadata.uid = Some("d1".to_owned());
        snapshot.deployments.push(later);
        let status = snapshot.nodes[0].status.as_mut().unwrap();
        status.deployment.as_mut().unwrap().uid = "d1".to_owned();
        status.services[0].state = RunState::Failed;
        let brought = &mut status.services[1];
        (brought.state, brought.hash) = (RunState::Pending, "n1".to_owned());
        let host = snapshot.host("openstack", "edpm-compute-5").unwrap();
        let stage = stage_with(&host, "nova-custom");
        assert_eq!(
            stage.deployment.map(ResourceExt::name_any).as_deref(),
            Some("openstack-edpm-x7abc")
        );
        let steps: Vec<_> = host.progress(&stage).iter().map(|it| it.state).collect();
        assert_eq!(steps, [crate::host::Step::Failed, crate::host::Step::Succeeded]);
    }
}

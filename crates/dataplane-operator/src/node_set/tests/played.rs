//! Deployments, and what their controller records on the nodes, played by the tests.

use api::dataplane::{DeploymentNodeSet, DisruptionTarget, NodeDeployment, RunState, ServiceRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_core::node_set_host::prefix;
use testkit::set_nodes::merged;

use super::*;
use crate::host::node_conditions::with_deployment;
use crate::host::node_state::hash_of;

impl World {
    /// Adds a deployment that has begun, or lets one go on; `hosts` are name, number of finished
    /// services, and state of the next one.
    pub(super) fn deploy(
        &mut self,
        name: &str,
        spec: &Value,
        hosts: &[(&str, usize, &str)],
    ) -> &mut Self {
        let mut full = json!({ "nodeSets": [SET] });
        for (key, value) in spec.as_object().unwrap() {
            full[key] = value.clone();
        }
        let services = match full.get("servicesOverride") {
            Some(list) => list.clone(),
            None => json!(self.seen.set.spec.services),
        };
        let names: Vec<&str> = hosts.iter().map(|it| it.0).collect();
        let mut deployment: Deployment = object(name, &full);
        let status = json!({ "nodeSets": { SET: {
            "uid": self.seen.set.uid(), "since": Time(self.now), "services": services,
            "configHash": self.hash(), "hosts": names,
        } } });
        deployment.status = serde_json::from_value(status).unwrap();
        for (host, done, state) in hosts {
            self.record(&deployment, host, *done, state);
        }
        self.seen.deployments.retain(|it| it.name_any() != name);
        self.seen.deployments.push(Arc::new(deployment));
        self
    }

    /// A deployment has come so far on a host.
    fn record(&mut self, deployment: &Deployment, host: &str, done: usize, state: &str) {
        let part = deployment.part_of(&self.seen.set).unwrap().clone();
        let now = Time(self.now);
        self.write(host, |status| record(status, deployment, &part, (done, state), &now));
    }

    /// The controller of deployments writes the status of a node.
    fn write(&mut self, host: &str, change: impl FnOnce(&mut NodeStatus)) {
        let (set, now) = (Arc::clone(&self.seen.set), self.now);
        self.with_node(host, |node| {
            let mut status = node.status.clone().unwrap_or_default();
            change(&mut status);
            let written = with_deployment(node, &set, status, now);
            node.status = Some(merged(written, node.status.take()));
        });
    }

    /// Ends the deployment of that name; `sources` are the digests that it used of the service's
    /// objects.
    pub(super) fn end(&mut self, name: &str, is_good: bool, sources: [&str; 2]) -> &mut Self {
        let idx = self.seen.deployments.iter().position(|it| it.name_any() == name).unwrap();
        let mut deployment = (*self.seen.deployments[idx]).clone();
        let status = deployment.status.as_mut().unwrap();
        status.config_map_hashes.insert("web-config".into(), sources[0].into());
        status.secret_hashes.insert("web-secret".into(), sources[1].into());
        status.deployed = is_good.then_some(true);
        if !is_good {
            let failed = fault("DeploymentReady", Severity::Error, "BackoffLimitExceeded", "x");
            status.conditions = vec![failed];
        }
        let part = deployment.part_of(&self.seen.set).unwrap().clone();
        let hash = is_good.then(|| (SET.to_owned(), part.config_hash.clone()));
        deployment.status.as_mut().unwrap().node_set_hashes.extend(hash);
        let has_node = |it: &&String| self.seen.nodes.get(it).is_some();
        let hosts: Vec<&String> = part.hosts.iter().filter(has_node).collect();
        for host in hosts {
            if is_good {
                self.record(&deployment, host, part.services.len(), "Succeeded");
            } else {
                self.write(host, |status| give_up(status, name));
            }
        }
        self.seen.deployments[idx] = Arc::new(deployment);
        self
    }

    /// Adds a deployment of everything that has succeeded.
    pub(super) fn deployed(&mut self, name: &str) -> &mut Self {
        let n_services = self.seen.set.spec.services.len();
        let hosts = ["n0", "n1"].map(|it| (it, n_services, "Succeeded"));
        self.deploy(name, &json!({}), &hosts);
        self.end(name, true, ["c1", "s1"])
    }

    /// A deployment that cannot be read takes the place of one that can.
    pub(super) fn garble(&mut self, name: &str, has_ended: bool) {
        self.seen.deployments.retain(|it| it.name_any() != name);
        let why = "spec.ansibleExtraVars.a: is nested deeper than 64 levels".into();
        let (name, uid) = (name.to_owned(), name.to_owned());
        self.seen.unreadable_deployments.push(UnreadableDeployment { name, uid, why, has_ended });
    }
}

/// Records that so many services have succeeded, and how the next one is.
fn record(
    status: &mut NodeStatus,
    deployment: &Deployment,
    part: &DeploymentNodeSet,
    (done, state): (usize, &str),
    now: &Time,
) {
    let uid = deployment.uid().unwrap();
    if state == "Awaiting" {
        let disruption = status.disruption.get_or_insert_default();
        disruption.last += 1;
        let number = disruption.last;
        disruption.target = Some(DisruptionTarget { deployment: uid.clone(), number });
    } else if let Some(it) = &mut status.disruption {
        it.target = None;
    }
    if state == "Untouched" || state == "Awaiting" && done == 0 {
        return;
    }
    let (partial, is_done) = (deployment.spec.is_partial(), done == part.services.len());
    let last = status.deployment.as_ref();
    let begins = last.is_none_or(|it| it.uid != uid);
    status.deployment = Some(NodeDeployment {
        name: deployment.name_any(),
        uid: uid.clone(),
        state: if is_done { HostState::Deployed } else { HostState::Deploying },
        attempt: last.map_or(0, |it| it.attempt) + i64::from(begins),
        since: now.clone(),
        partial,
    });
    if !partial {
        status.deployed = is_done.then_some(true);
    }
    if is_done && !partial {
        status.deployed_address.clone_from(&status.address);
        if deployment.spec.services_override.is_empty() {
            status.deployed_config_hash = Some(prefix(&part.config_hash));
        }
    }
    let services = std::mem::take(&mut status.services);
    let (known, others): (Vec<ServiceRun>, _) =
        services.into_iter().partition(|it| part.services.contains(&it.name));
    let run = |(idx, name): (usize, &String)| {
        let is_next = idx == done;
        let is_failed = is_next && state == "Failed";
        let run_state = match state {
            _ if idx < done => RunState::Succeeded,
            "Running" if is_next => RunState::Running,
            "Failed" if is_next => RunState::Failed,
            _ => RunState::Pending,
        };
        let of_before = known.iter().find(|it| it.name == *name);
        let is_deployed = run_state == RunState::Succeeded && !partial;
        let deployed = is_deployed.then(|| hash_of(&uid, name));
        ServiceRun {
            name: name.clone(),
            state: run_state,
            hash: hash_of(&uid, name),
            attempt: 1,
            run: None,
            deployed_hash: deployed.or_else(|| of_before?.deployed_hash.clone()),
            failures: i64::from(is_failed),
            since: now.clone(),
            reason: is_failed.then(|| "TaskFailed".into()),
            message: is_failed.then(|| "no disk".into()),
        }
    };
    status.services = part.services.iter().enumerate().map(run).collect();
    status.services.extend(others);
}

/// Records that a deployment has ended without a success.
fn give_up(status: &mut NodeStatus, uid: &str) {
    if let Some(it) = &mut status.disruption {
        it.target = None;
    }
    let last = status.deployment.as_mut();
    if let Some(last) = last.filter(|it| it.uid == uid && it.state == HostState::Deploying) {
        let is_between =
            |it: &ServiceRun| matches!(it.state, RunState::Pending | RunState::Succeeded);
        let has_failed = !status.services.iter().all(is_between);
        last.state = if has_failed { HostState::Failed } else { HostState::Undeployed };
        status.deployed = None;
    }
}

//! The steps of a measurement, as a user of the simulated cluster carries them out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::manifests::{self, CELL, COMPUTES, DEPLOYMENTS, NAME, NODE_SETS, NODES, ROLES, name};
use super::step::Step;
use super::wait::{Attempts, Wait};
use super::{Fleet, Road, control};
use crate::lab;

/// The hosts that are drained at once, if there are so many.
const DRAINED: usize = 50;
const REDEPLOY: &str = "dataplane.openstack.org/redeploy";
const DRAIN: &str = "nova.openstack.org/drain";

/// The hosts, and what has happened to them.
pub(super) struct Operation<'a> {
    fleet: Fleet,
    wait: Wait<'a>,
    /// Where the simulated cluster takes orders.
    socket: PathBuf,
    n_hosts: usize,
    /// Resource → how often each host was deployed before the step.
    before: BTreeMap<&'static str, Attempts>,
    /// Grows with each edit, so that none repeats another one.
    edition: usize,
}

impl<'a> Operation<'a> {
    /// Prepares a cluster for the hosts.
    pub(super) fn new(fleet: Fleet, env: &'a lab::Env, socket: PathBuf) -> Result<Self> {
        let wait = Wait::new(env, fleet.nodes);
        let mut objects = manifests::prerequisites();
        if fleet.road == Road::Compute {
            let servers = serde_json::from_str(&control::order(&socket, "cell")?)?;
            objects.extend(manifests::cell(&servers));
        }
        wait.create(&objects)?;
        let (n_hosts, edition) = (fleet.nodes, 0);
        Ok(Self { fleet, wait, socket, n_hosts, before: BTreeMap::new(), edition })
    }

    /// Notes what the step is compared with; its time is not measured.
    pub(super) fn prepare(&mut self, step: Step) -> Result<()> {
        if step.is_for_all() && self.fleet.road != Road::NodeSet {
            for resource in self.fleet.road.hosts() {
                self.before.insert(resource, self.wait.attempts(resource)?);
            }
        }
        self.edition += 1;
        Ok(())
    }

    /// Carries out a step, until the API shows that it is done.
    pub(super) fn carry_out(&mut self, step: Step, idle: Duration) -> Result<()> {
        match step {
            Step::First => self.create(),
            Step::Redeploy => self.redeploy(),
            Step::Edit => self.edit(),
            Step::Change => self.change(),
            Step::Delete => self.delete(),
            Step::Add => self.add(),
            Step::Down => self.report("down"),
            Step::Up => self.report("up"),
            Step::Drain => self.drain(&format!("{DRAIN}=wait")),
            Step::Undrain => self.drain(&format!("{DRAIN}-")),
            Step::Restart => control::order(&self.socket, "restart").map(drop),
            Step::Idle => {
                // A fixed period is measured, so this sleeps instead of waiting for a condition.
                std::thread::sleep(idle);
                Ok(())
            }
        }
    }

    fn create(&self) -> Result<()> {
        self.wait.create(&manifests::hosts(self.fleet))?;
        match self.fleet.road {
            Road::Role | Road::Compute => self.sums(),
            Road::NodeSet => self.deploy(&manifests::deployments("first", self.n_sets())),
        }
    }

    fn redeploy(&self) -> Result<()> {
        if self.fleet.road == Road::NodeSet {
            return self.deploy(&manifests::deployments("redeploy", self.n_sets()));
        }
        let value = format!("{REDEPLOY}={}", self.edition);
        self.wait.kubectl(&["annotate", "--overwrite", &format!("{ROLES}/{NAME}"), &value])?;
        self.deployed_again(self.fleet.road.hosts())
    }

    fn edit(&self) -> Result<()> {
        let vars = self.vars();
        match self.fleet.road {
            Road::Role => {
                let change = json!({ "spec": { "nodeTemplate": { "ansibleVars": vars } } });
                self.wait.patch(ROLES, NAME, &change)?;
                self.deployed_again(self.fleet.road.hosts())
            }
            // Their nodes stay as they are: variables of hosts change no compute.
            Road::Compute => {
                let change = json!({ "data": manifests::default_config(self.edition) });
                self.wait.patch("configmaps", manifests::DEFAULT_CONFIG, &change)?;
                self.deployed_again(&[COMPUTES])
            }
            Road::NodeSet => {
                let vars = json!({ "ansibleVars": vars });
                let change = json!({ "spec": { "nodeTemplate": { "ansible": vars } } });
                for k in 0..self.n_sets() {
                    self.wait.patch(NODE_SETS, &manifests::set_name(k), &change)?;
                }
                self.deploy(&manifests::deployments("edit", self.n_sets()))
            }
        }
    }

    fn change(&self) -> Result<()> {
        let (host, vars) = (name(0), self.vars());
        match self.fleet.road {
            Road::Role => {
                let change = json!({ "spec": { "node": { "ansibleVars": vars } } });
                self.wait.patch(NODES, &host, &change)?;
            }
            Road::Compute => {
                let options = format!("[DEFAULT]\nreserved_host_disk_mb = {}\n", self.edition);
                let change = json!({ "spec": { "customServiceConfig": options } });
                self.wait.patch(COMPUTES, &host, &change)?;
            }
            Road::NodeSet => {
                let change = json!({ "ansible": { "ansibleVars": vars } });
                return self.with_entry(0, &change, Step::Change);
            }
        }
        self.up_to_date(0)
    }

    fn add(&mut self) -> Result<()> {
        let idx = self.n_hosts;
        self.n_hosts += 1;
        if self.fleet.road == Road::NodeSet {
            let is_full = idx.is_multiple_of(manifests::SET);
            ensure!(!is_full, "the last node set is full: delete a host before one is added");
            return self.with_entry(idx, &manifests::entry(idx), Step::Add);
        }
        self.wait.create(&[manifests::node(idx)])?;
        self.up_to_date(idx)
    }

    fn delete(&mut self) -> Result<()> {
        ensure!(self.n_hosts > 1, "the only host is not deleted");
        self.n_hosts -= 1;
        let host = name(self.n_hosts);
        if self.fleet.road == Road::NodeSet {
            let change = json!({ "spec": { "nodes": { host.as_str(): null } } });
            let set = manifests::set_name(self.n_hosts / manifests::SET);
            self.wait.patch(NODE_SETS, &set, &change)?;
        } else {
            self.wait.kubectl(&["delete", "--wait=false", &format!("{NODES}/{host}")])?;
        }
        self.wait.until(&format!("{NODES}/{host}"), "delete")?;
        self.sums()
    }

    /// Changes the entry of a host in its node set, and deploys it.
    fn with_entry(&self, idx: usize, change: &Value, step: Step) -> Result<()> {
        let change = json!({ "spec": { "nodes": { name(idx): change } } });
        self.wait.patch(NODE_SETS, &manifests::set_name(idx / manifests::SET), &change)?;
        self.deploy(&[manifests::deployment_to(&step.name(), idx)])
    }

    /// Creates deployments of node sets, and waits until they are over and nothing holds them.
    fn deploy(&self, deployments: &[Value]) -> Result<()> {
        self.wait.create(deployments)?;
        for deployment in deployments {
            let deployment = format!(
                "{DEPLOYMENTS}/{}",
                deployment["metadata"]["name"].as_str().unwrap_or_default()
            );
            self.wait.until(&deployment, "condition=Ready")?;
            self.wait.until_released(&deployment)?;
        }
        self.sums()
    }

    /// Lets nova-compute of the first host report no more, or again.
    fn report(&self, order: &str) -> Result<()> {
        control::order(&self.socket, &format!("{order} {}", name(0)))?;
        let is_up = order == "up";
        self.wait
            .until(&format!("{COMPUTES}/{}", name(0)), &format!("condition=ServiceUp={is_up}"))?;
        self.wait.until(
            &format!("{ROLES}/{NAME}"),
            &format!("condition=nova.openstack.org/ComputesUp={is_up}"),
        )
    }

    /// Sets the annotation of the hosts that are drained, or removes it.
    fn drain(&self, annotation: &str) -> Result<()> {
        let hosts: Vec<String> = (0..self.n_hosts.min(DRAINED)).map(name).collect();
        let mut words = vec!["annotate", "--overwrite", NODES];
        words.extend(hosts.iter().map(String::as_str));
        words.push(annotation);
        self.wait.kubectl(&words)?;
        let n_drained = if annotation.ends_with('-') { 0 } else { hosts.len() };
        self.wait.until_drained(n_drained)
    }

    /// Returns variables that no edit had before.
    fn vars(&self) -> Value {
        json!({ "bench_edition": self.edition })
    }

    fn n_sets(&self) -> usize {
        manifests::sets(self.n_hosts).len()
    }

    /// Waits until each host has been deployed once more than before the step.
    fn deployed_again(&self, resources: &[&'static str]) -> Result<()> {
        let noted = |it: &&'static str| {
            let before = self.before.get(it).with_context(|| format!("no {it} before the step"))?;
            anyhow::Ok((*it, before))
        };
        let before = resources.iter().map(noted).collect::<Result<Vec<_>>>()?;
        self.wait.until_again(&before, || self.sums())?;
        self.sums()
    }

    /// Waits until a host is ready with its present inputs, and until the sums say so.
    fn up_to_date(&self, idx: usize) -> Result<()> {
        for resource in self.fleet.road.hosts() {
            self.wait.until_up_to_date(resource, &name(idx))?;
        }
        self.sums()
    }

    /// Waits until what sums up the hosts has all of them as ready: the role with the cell, or the node
    /// sets.
    fn sums(&self) -> Result<()> {
        let n = self.n_hosts;
        if self.fleet.road == Road::NodeSet {
            for (k, hosts) in manifests::sets(n).iter().enumerate() {
                let set = format!("{NODE_SETS}/{}", manifests::set_name(k));
                self.wait.until_counted(&set, &["nodes", "readyNodes"], hosts.len())?;
                self.wait.until(&set, "condition=Ready")?;
            }
            return Ok(());
        }
        let role = format!("{ROLES}/{NAME}");
        self.wait.until_counted(&role, &["nodes", "readyNodes", "upToDateNodes"], n)?;
        self.wait.until(&role, "condition=Ready")?;
        if self.fleet.road == Road::Compute {
            let cell = format!("{}/{CELL}", manifests::CELLS);
            self.wait.until_counted(&cell, &["computes", "upToDateComputes"], n)?;
            self.wait.until(&cell, "condition=ComputesUp")?;
        }
        Ok(())
    }
}

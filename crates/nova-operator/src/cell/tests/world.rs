//! A cell whose hosts the operator discovers, with the Jobs that it makes, and their scripts with a
//! stand-in for nova-manage.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use api::conditions::{ConditionDraft, merge_conditions};
use api::nova::DiscoveryState;
use jiff::SignedDuration;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use parking_lot::Mutex;

use super::*;
use crate::cell::observed::discovery::{Seen, end};
use crate::cell::observed::mappings::MAPPINGS_LABEL;

/// The image of its Jobs.
pub(super) const IMAGE: &str = "registry.example/nova@sha256:1";

/// A cell whose hosts the operator discovers, and what the API server has of it.
pub(super) struct World {
    /// What is observed of it.
    pub(super) seen: Observed,
    /// The present time.
    pub(super) now: Timestamp,
    /// How many Jobs were created.
    pub(super) n_created: usize,
}

impl World {
    /// Hosts `n0` and `n1` are mapped.
    pub(super) fn new() -> Self {
        Self::of_cell("u")
    }

    /// The same of a cell with this UID.
    pub(super) fn of_cell(uid: &str) -> Self {
        let mut seen = seen();
        seen.discovery = Some(Seen { secret_version: Some("1".into()), ..Seen::default() });
        Arc::make_mut(&mut seen.cell).metadata.uid = Some(uid.into());
        let mut world = Self { seen, now: "2026-01-01T00:00:00Z".parse().unwrap(), n_created: 0 };
        world.annotate("host-discovery", Some("operator"));
        world.annotate("host-discovery-secret", Some("nova-manage"));
        world.annotate("host-discovery-image", Some(IMAGE));
        world.settle();
        world
    }

    /// Sets an annotation of the cell, or removes it.
    pub(super) fn annotate(&mut self, name: &str, value: Option<&str>) {
        let annotations = Arc::make_mut(&mut self.seen.cell).annotations_mut();
        let name = format!("nova.openstack.org/{name}");
        match value {
            Some(value) => annotations.insert(name, value.to_owned()),
            None => annotations.remove(&name),
        };
    }

    /// Nova's API says of a host whether it is mapped, as its compute reports it.
    pub(super) fn map(&mut self, name: &str, is_mapped: bool) -> &mut Self {
        let reason = if is_mapped {
            reasons::compute::MAPPED
        } else {
            reasons::compute::WAITING_FOR_DISCOVERY
        };
        self.report(name, reason.condition("HostMapped", "x"))
    }

    /// A compute reports a condition.
    pub(super) fn report(&mut self, name: &str, draft: ConditionDraft) -> &mut Self {
        let now = self.now;
        let status = self.compute(name).status.as_mut().unwrap();
        status.conditions = merge_conditions(&status.conditions, vec![draft], None, now);
        self
    }

    /// A compute of the cell.
    pub(super) fn compute(&mut self, name: &str) -> &mut ExternalCompute {
        let found = self.seen.computes.iter_mut().find(|it| it.name_any() == name);
        Arc::make_mut(found.unwrap())
    }

    /// What was seen of the Jobs.
    pub(super) fn found(&mut self) -> &mut Seen {
        self.seen.discovery.as_mut().unwrap()
    }

    /// All Jobs of the cell.
    pub(super) fn all_jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.seen.discovery.iter().flat_map(|it| it.jobs.iter().chain(&it.mapping_jobs))
    }

    /// Their names.
    pub(super) fn jobs(&self) -> Vec<String> {
        self.all_jobs().map(|it| it.name_any()).collect()
    }

    /// The only Job that has not ended.
    pub(super) fn running(&self) -> Option<String> {
        let jobs = self.all_jobs();
        let running: Vec<String> =
            jobs.filter(|it| end(it).is_none()).map(|it| it.name_any()).collect();
        assert!(running.len() <= 1, "one Job at a time: {running:?}");
        running.into_iter().next()
    }

    /// Ends the running Job that maps hosts; a failed one leaves the message.
    pub(super) fn end(&mut self, failure: Option<&str>) -> &mut Self {
        self.found().termination_message = failure.filter(|it| !it.is_empty()).map(str::to_owned);
        self.end_as(if failure.is_some() { "Failed" } else { "Complete" });
        self
    }

    /// Ends the running Job that reads mappings; its pod leaves the message.
    pub(super) fn end_reading(&mut self, type_: &str, message: Option<&str>) -> &mut Self {
        self.found().mapping_message = message.map(str::to_owned);
        self.end_as(type_);
        self
    }

    fn end_as(&mut self, type_: &str) {
        let name = self.running().unwrap();
        let status = json!({ "conditions": [
            { "type": type_, "status": "True", "message": "Job has reached the backoff limit" },
        ] });
        let found = self.found();
        let mut jobs = found.jobs.iter_mut().chain(&mut found.mapping_jobs);
        let job = jobs.find(|it| it.name_any() == name).unwrap();
        Arc::make_mut(job).status = Some(serde_json::from_value(status).unwrap());
    }

    /// Carries out the plan, or its first steps where the operator dies after them; returns the
    /// number of steps.
    pub(super) fn pass(&mut self, dies_after: usize) -> usize {
        let plan = recorded(decide(&self.seen, None, self.now));
        for step in plan.steps.iter().take(dies_after) {
            self.write(&step.target.name, &step.write);
        }
        plan.steps.len()
    }

    fn write(&mut self, name: &str, write: &Write) {
        match write {
            Write::Status { status, .. } => {
                assert_eq!(undeclared(KINDS, "NovaCell", status), [""; 0]);
                let status = serde_json::from_value(status.clone()).unwrap();
                Arc::make_mut(&mut self.seen.cell).status = Some(status);
            }
            Write::Apply { object, .. } => self.seen.rendered = Some(rendered(object)),
            Write::Create { object, .. } => {
                let job: Job = serde_json::from_value(object.clone()).unwrap();
                assert!(!self.jobs().contains(&job.name_any()));
                let status = self.seen.cell.status.as_ref().unwrap();
                let is_reading = job.labels().contains_key(MAPPINGS_LABEL);
                let (of_discovery, of_reading) = (&status.discovery, &status.mapping_reading);
                let recorded = if is_reading {
                    of_reading.as_ref().map(|it| it.job.as_str())
                } else {
                    of_discovery.as_ref().map(|it| it.job.as_str())
                };
                assert_eq!(recorded, Some(name), "it is recorded first");
                let found = self.found();
                let jobs = if is_reading { &mut found.mapping_jobs } else { &mut found.jobs };
                jobs.push(Arc::new(job));
                self.n_created += 1;
                self.running();
            }
            Write::Delete { .. } => {
                let job = self.all_jobs().find(|it| it.name_any() == name).unwrap();
                assert!(end(job).is_some(), "a Job that runs is not deleted");
                let found = self.found();
                found.jobs.retain(|it| it.name_any() != name);
                found.mapping_jobs.retain(|it| it.name_any() != name);
            }
            Write::AddFinalizer { .. } | Write::RemoveFinalizer { .. } => {}
        }
    }

    /// A pass whose Job the API server rejects for good.
    pub(super) fn reject(&mut self, words: &str) {
        let plan = recorded(decide(&self.seen, None, self.now));
        let job = plan.steps.iter().find(|it| matches!(it.write, Write::Create { .. })).unwrap();
        let rejected = RejectedWrite::of(job, &reasons::FORBIDDEN, words);
        let plan = recorded(decide(&self.seen, Some(&rejected), self.now).only_statuses());
        for step in &plan.steps {
            self.write(&step.target.name, &step.write);
        }
    }

    /// Carries out plans until there is nothing to write.
    pub(super) fn settle(&mut self) {
        let n_passes = (0..10).take_while(|_| self.pass(usize::MAX) > 0).count();
        assert!(n_passes < 10, "it comes to rest");
    }

    /// Time goes by.
    pub(super) fn later(&mut self, pause: SignedDuration) {
        self.now += pause;
        self.settle();
    }

    /// The condition on the discovery of hosts.
    pub(super) fn condition(&self) -> Option<Condition> {
        find(&self.seen.cell.status.as_ref()?.conditions, "HostDiscovery").cloned()
    }

    /// Its status and reason.
    pub(super) fn said(&self) -> (ConditionStatus, String) {
        let found = self.condition().unwrap();
        (found.status, found.reason)
    }

    /// The recorded attempt to discover hosts: its number and what became of it.
    pub(super) fn attempt(&self) -> (i64, DiscoveryState) {
        let status = self.seen.cell.status.as_ref().unwrap();
        let record = status.discovery.as_ref().unwrap();
        (record.attempt, record.state)
    }
}

/// Runs a container's script with a stand-in for nova-manage, which is a shell script too; returns
/// whether it succeeded, and what it printed.
pub(super) fn run_script(script: &str, nova_manage: &str, args: &[&str]) -> (bool, String) {
    // A program that is being written while another thread starts a process cannot be executed.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let folder = std::env::temp_dir().join(format!("nova-manage-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("nova-manage");
    std::fs::write(&program, format!("#!/bin/sh\n{nova_manage}")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
    let mut sh = Command::new("sh");
    let output = sh.args(["-ec", script, "program"]).args(args).env("PATH", path).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}

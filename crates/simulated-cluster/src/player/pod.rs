//! The life of one pod of a run, from its scheduling to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::join_all;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Binding, Container, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use operator_core::run_engine::run::SERVICE_LABEL;
use serde_json::{Value, json};

use super::fate::{Fate, Matching};
use super::host::{Approach, Behaviour, key_of};
use super::ledger::{RunPod, Visit};
use super::message::{self, Told};
use super::shared::{Shared, WORKER};
use super::state::{Ended, is_running, never_ran, running, status, terminated, waiting};
use super::{files, inventory, registration, state};

/// Interval at which the kubelet retries what a pod is missing.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The exit code of ansible-runner after a SIGTERM.
const STOPPED: i32 = 254;
/// Annotations of pods of runs, as written by ansibleee-operator.
const RUN: &str = "edpm.openstack.org/run";
const HOSTS: &str = "edpm.openstack.org/hosts";

/// A host of a run: its name and its address.
type Target = (String, String);

/// Plays a pod until its end. An error of the player itself is printed and leaves the pod as it is.
pub(super) async fn run(shared: Arc<Shared>, pod: Pod) {
    let is_over = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    if matches!(is_over, Some("Succeeded" | "Failed")) {
        return;
    }
    let name = pod.name_any();
    if let Err(error) = Life::new(shared, pod).whole().await {
        // A test that waits for the end of the run shows this with its output.
        report(&format!("player: pod {name}: {error:#}"));
    }
}

/// Ends a pod that is being deleted, as a kubelet does.
pub(super) async fn remove(shared: Arc<Shared>, pod: Pod) {
    let name = pod.name_any();
    let life = Life::new(shared, pod);
    if let Err(error) = life.leave().await {
        report(&format!("player: pod {name} does not go: {error:#}"));
    }
}

#[expect(clippy::print_stderr, reason = "tests show it where they fail")]
fn report(text: &str) {
    eprintln!("{text}");
}

/// Returns what the callback reports of a run whose plays are all for localhost: it counts for all
/// hosts, unless a limit leaves localhost out.
fn told_of_localhost(targets: &[Target], files: &BTreeMap<String, String>) -> String {
    let is_run = inventory::is_within_limit(files, "localhost");
    told_alike(targets, &if is_run { Behaviour::Unchanged } else { Behaviour::NotReached })
}

/// Returns what the callback reports of a run that ends alike at all of its hosts.
fn told_alike(targets: &[Target], behaviour: &Behaviour) -> String {
    let told: Vec<Told> =
        targets.iter().map(|(name, address)| Told::of(behaviour, name, address)).collect();
    message::of_run(&told)
}

struct Life {
    shared: Arc<Shared>,
    pod: Pod,
    namespace: String,
    run: String,
    service: String,
}

impl Life {
    fn new(shared: Arc<Shared>, pod: Pod) -> Self {
        let namespace = pod.namespace().unwrap_or_default();
        let run = pod.annotations().get(RUN).cloned().unwrap_or_default();
        let service = pod.labels().get(SERVICE_LABEL).cloned().unwrap_or_default();
        Self { shared, pod, namespace, run, service }
    }

    fn client(&self) -> Client {
        self.shared.client.clone()
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), &self.namespace)
    }

    fn fate(&self) -> Fate {
        let image = self.container().ok().and_then(|it| it.image.clone()).unwrap_or_default();
        let (namespace, run) = (self.namespace.clone(), self.run.clone());
        self.shared.fate(&Matching { namespace, run, service: self.service.clone(), image })
    }

    fn container(&self) -> Result<&Container> {
        let spec = self.pod.spec.as_ref();
        spec.and_then(|it| it.containers.first()).context("a pod without a container")
    }

    async fn whole(self) -> Result<()> {
        if let Fate::Unschedulable(words) = self.fate() {
            return self.unplaced(&words).await;
        }
        self.bind().await?;
        if let Fate::ImagePull(words) = self.fate() {
            return self.write("Pending", &waiting("ErrImagePull", &words), None).await;
        }
        if self.shared.is_at_once() {
            return self.at_once().await;
        }
        let files = self.files().await?;
        self.variables().await?;
        let targets = self.targets();
        self.note_start(&targets).await?;
        let first = self.learned(&targets);
        let first = first.map(|it| terminated(&it));
        self.write("Running", &running(), first.as_ref()).await?;
        let Some(ended) = self.outcome(&targets, &files).await? else { return Ok(()) };
        let phase = if ended.code == 0 { "Succeeded" } else { "Failed" };
        // The pod no longer works on its hosts, although the API does not show it yet.
        self.shared.ledger.leaves(&self.uid());
        self.write(phase, &terminated(&ended), first.as_ref()).await
    }

    /// Ends the pod well at all of its hosts.
    async fn at_once(&self) -> Result<()> {
        let targets = self.targets();
        let first = self.learned(&targets).map(|it| terminated(&it));
        self.write("Running", &running(), first.as_ref()).await?;
        self.register(&targets).await?;
        let ended = Ended::new(0, told_alike(&targets, &Behaviour::Done));
        self.write("Succeeded", &terminated(&ended), first.as_ref()).await
    }

    /// Notes in nova what the run has done to nova-compute, if that is its service.
    async fn register(&self, targets: &[Target]) -> Result<()> {
        if !registration::is_of(&self.service) {
            return Ok(());
        }
        let files = self.files().await?;
        for (_, address) in targets {
            self.shared.registrations().deployed(&self.service, address, &files);
        }
        Ok(())
    }

    /// Ends the pod as its kubelet, then deletes it.
    async fn leave(self) -> Result<()> {
        let current = self.pods().get_opt(&self.pod.name_any()).await?;
        let Some(current) = current.filter(|it| it.uid() == self.pod.uid()) else { return Ok(()) };
        let is_lost = self.fate() == Fate::WorkerLost;
        if is_lost {
            return Ok(());
        }
        let state = current.status.as_ref().and_then(|it| it.phase.clone()).unwrap_or_default();
        self.shared.ledger.leaves(&self.uid());
        if state != "Succeeded" && state != "Failed" {
            let ended = terminated(&Ended::new(STOPPED, String::new()));
            let ended = if is_running(&current) { ended } else { never_ran() };
            self.write("Failed", &ended, None).await?;
        }
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: self.pod.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        // Another client may have deleted it first.
        let _ = self.pods().delete(&self.pod.name_any(), &params).await;
        Ok(())
    }

    async fn bind(&self) -> Result<()> {
        let name = self.pod.name_any();
        let binding: Binding = serde_json::from_value(json!({
            "metadata": { "name": name },
            "target": { "apiVersion": "v1", "kind": "Node", "name": WORKER },
        }))?;
        let bound: Result<Value, kube::Error> = self
            .pods()
            .create_subresource("binding", &name, &PostParams::default(), &binding)
            .await;
        bound.with_context(|| format!("bind {name}")).map(drop)
    }

    /// Waits until all mounted objects exist and returns the files.
    async fn files(&self) -> Result<BTreeMap<String, String>> {
        let mut is_reported = false;
        loop {
            match files::mounted(&self.client(), &self.pod, self.container()?).await? {
                Ok(files) => return Ok(files),
                Err(_) if is_reported => {}
                Err(_) => {
                    self.condition("PodReadyToStartContainers", "", "").await?;
                    is_reported = true;
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until the sources of all environment variables exist.
    async fn variables(&self) -> Result<()> {
        let mut reported = None;
        let env = self.container()?.env.clone().unwrap_or_default();
        while let Some(missing) =
            files::missing_variable(&self.client(), &self.namespace, &env).await?
        {
            if reported.as_ref() != Some(&missing) {
                let state = waiting("CreateContainerConfigError", &missing);
                self.write("Pending", &state, None).await?;
                reported = Some(missing);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Returns the hosts of the run.
    fn targets(&self) -> Vec<Target> {
        let env = self.container().ok().and_then(|it| it.env.as_ref());
        let names = env.into_iter().flatten().find(|it| it.name == "EDPM_RUN_HOSTS");
        let names = names.and_then(|it| it.value.clone()).unwrap_or_default();
        let addresses = self.pod.annotations().get(HOSTS).map_or("[]", String::as_str);
        let addresses: Vec<String> = serde_json::from_str(addresses).unwrap_or_default();
        names.split(',').filter(|it| !it.is_empty()).map(str::to_owned).zip(addresses).collect()
    }

    /// Records that the runner starts: it must be the only start of its run, and alone on its
    /// hosts.
    async fn note_start(&self, targets: &[Target]) -> Result<()> {
        let (uid, namespace, run) = (self.uid(), self.namespace.clone(), self.run.clone());
        let pod = RunPod { uid, namespace, run };
        let ledger = &self.shared.ledger;
        ledger.enters(&pod, targets.iter().map(|(_, address)| address.clone()));
        if !self.service.is_empty()
            && let Some(run) = self.uid_of_run().await?
        {
            ledger.starts(&run, &pod);
        }
        Ok(())
    }

    /// Returns the UID of the run that owns the pod's Job, or `None` when the Job is gone.
    async fn uid_of_run(&self) -> Result<Option<String>> {
        let owner =
            |owners: &[OwnerReference], kind| owners.iter().find(|it| it.kind == kind).cloned();
        let job = owner(self.pod.owner_references(), "Job").context("a pod without a Job")?;
        let jobs: Api<Job> = Api::namespaced(self.client(), &self.namespace);
        let job = jobs.get_opt(&job.name).await?.filter(|it| it.uid().as_ref() == Some(&job.uid));
        Ok(job.and_then(|it| owner(it.owner_references(), "OpenStackAnsibleEE")).map(|it| it.uid))
    }

    fn uid(&self) -> String {
        self.pod.uid().unwrap_or_default()
    }

    /// Returns how the container that learns host keys ends, or `None` when the pod has none.
    fn learned(&self, targets: &[Target]) -> Option<Ended> {
        let spec = self.pod.spec.as_ref()?;
        let asking =
            spec.init_containers.iter().flatten().find(|it| it.name == "edpm-host-keys")?;
        let arguments = asking.command.iter().flatten().skip(4);
        let hosts = self.shared.hosts();
        let key = |argument: &String| {
            let address = argument.split(' ').next().unwrap_or_default();
            match hosts.get(address) {
                Some(host) => host.state().shown_key(),
                None => self.shared.is_everywhere().then(|| key_of(address, 0)),
            }
        };
        let keys: Vec<Option<String>> = arguments.map(key).collect();
        debug_assert!(keys.len() <= targets.len(), "more hosts are asked than there are");
        Some(Ended::new(0, message::of_host_keys(&keys)))
    }

    /// Returns how the runner ends, or `None` when its status is never updated.
    async fn outcome(
        &self,
        targets: &[Target],
        files: &BTreeMap<String, String>,
    ) -> Result<Option<Ended>> {
        match self.fate() {
            Fate::Hangs => std::future::pending().await,
            Fate::NoHostMatched => Ok(Some(Ended::new(1, message::unmatched(targets.len())))),
            Fate::WorkerLost => {
                self.condition("Ready", "NodeStatusUnknown", "").await?;
                Ok(None)
            }
            Fate::Evicted(words) => {
                self.play(targets, files).await;
                let patch = json!({ "status": { "reason": "Evicted", "message": words, "conditions": [{
                    "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
                    "message": words,
                }] } });
                self.patch(&patch).await?;
                Ok(Some(Ended::new(137, String::new())))
            }
            Fate::OutOfMemory => {
                self.play(targets, files).await;
                Ok(Some(Ended { reason: "OOMKilled", ..Ended::new(137, String::new()) }))
            }
            Fate::Ends { code, message } => {
                self.play(targets, files).await;
                Ok(Some(Ended::new(code, message)))
            }
            Fate::Play | Fate::ImagePull(_) | Fate::Unschedulable(_) => {
                if inventory::is_for_localhost(files) {
                    return Ok(Some(Ended::new(0, told_of_localhost(targets, files))));
                }
                if !targets.iter().any(|(name, _)| inventory::is_within_limit(files, name)) {
                    return Ok(Some(Ended::new(1, message::unmatched(targets.len()))));
                }
                let results = self.play(targets, files).await;
                let letters: Vec<char> = results.iter().map(|it| it.letter).collect();
                let code = if letters.iter().any(|it| "ukh".contains(*it)) {
                    4
                } else if letters.contains(&'f') {
                    2
                } else {
                    0
                };
                Ok(Some(Ended::new(code, message::of_run(&results))))
            }
        }
    }

    /// Plays all hosts concurrently, as Ansible's forks do.
    async fn play(&self, targets: &[Target], files: &BTreeMap<String, String>) -> Vec<Told> {
        join_all(targets.iter().map(|it| self.visit(it, targets, files))).await
    }

    async fn visit(
        &self,
        (name, address): &Target,
        targets: &[Target],
        files: &BTreeMap<String, String>,
    ) -> Told {
        let mut files = files.clone();
        files.extend(self.learned_file(targets));
        let variables = inventory::variables(&files, name);
        let host = self.shared.hosts().get(address).cloned();
        if !inventory::is_within_limit(&files, name) {
            return Told::of(&Behaviour::NotReached, name, address);
        }
        let is_local = variables.get("ansible_connection").is_some_and(|it| it == "local");
        let visit = Visit {
            namespace: self.namespace.clone(),
            run: self.run.clone(),
            service: self.service.clone(),
            host: name.clone(),
            address: address.clone(),
            variables: variables.clone(),
            files: files.clone(),
            is_complete: false,
            is_done: false,
        };
        let visit = self.shared.ledger.begins(visit);
        let approach =
            Approach { service: &self.service, address, variables: &variables, files: &files };
        let behaviour = match host.map(|it| it.state()) {
            None if is_local || self.shared.is_everywhere() => Behaviour::Done,
            None => Behaviour::Unreachable,
            Some(host) => {
                if let Some(refusal) = host.rejection(&approach).filter(|_| !is_local) {
                    refusal
                } else {
                    host.work(&self.service).await;
                    host.behaviour(approach.service)
                }
            }
        };
        let is_done = matches!(behaviour, Behaviour::Done | Behaviour::Unchanged);
        self.shared.ledger.ends(visit, is_done);
        if is_done {
            self.shared.registrations().deployed(&self.service, address, &files);
        }
        Told::of(&behaviour, name, address)
    }

    /// Returns the known hosts file with the keys that the run has learned itself, or `None` when
    /// it learns none.
    fn learned_file(&self, targets: &[Target]) -> Option<(String, String)> {
        self.learned(targets)?;
        let spec = self.pod.spec.as_ref()?;
        let asking =
            spec.init_containers.iter().flatten().find(|it| it.name == "edpm-host-keys")?;
        let hosts = self.shared.hosts();
        let line = |argument: &String| {
            let (address, only) = argument.split_once(' ').unwrap_or((argument, ""));
            let host = hosts.get(address)?;
            let key = host.state().shown_key()?;
            let is_trusted = only.is_empty() || host.fingerprint() == only;
            let name = address.strip_suffix(":22").unwrap_or(address);
            is_trusted.then(|| format!("{name} {key}\n"))
        };
        let lines = asking.command.iter().flatten().skip(4).filter_map(line);
        Some(("/runner/host_keys/known_hosts".to_owned(), lines.collect()))
    }

    async fn unplaced(&self, words: &str) -> Result<()> {
        self.condition("PodScheduled", "Unschedulable", words).await
    }

    /// Sets a condition of the pod to `False`.
    async fn condition(&self, type_: &str, reason: &str, message: &str) -> Result<()> {
        let now = state::now();
        let condition = json!({
            "type": type_, "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": now,
        });
        self.patch(&json!({ "status": { "conditions": [condition] } })).await
    }

    async fn write(&self, phase: &str, state: &Value, first: Option<&Value>) -> Result<()> {
        self.patch(&status(&self.pod, phase, state, first)).await
    }

    async fn patch(&self, change: &Value) -> Result<()> {
        let (name, params) = (self.pod.name_any(), PatchParams::default());
        let patched = self.pods().patch_status(&name, &params, &Patch::Strategic(change)).await;
        patched.with_context(|| format!("write the status of {name}")).map(drop)
    }
}

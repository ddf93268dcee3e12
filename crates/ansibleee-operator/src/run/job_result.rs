//! How a Job ended, and the failure reason if its run reported none.

use api::ansibleee::AnsibleEe;
use k8s_openapi::api::core::v1::ContainerStateTerminated;
use kube::ResourceExt;
use operator_core::run_engine::outcome::FailureReason;

use crate::objects::{HOST_KEYS_CONTAINER, Job, JobCondition, Pod};
use crate::run::settings::is_engines;

/// Everything that can be observed about a run's end.
#[derive(Clone, Copy)]
pub struct JobResult<'a> {
    /// The run.
    pub run: &'a AnsibleEe,
    /// Its Job.
    pub job: &'a Job,
    /// The pod that decides, if there is one.
    pub pod: Option<&'a Pod>,
    /// How that pod's runner container ended, if it did.
    pub ended: Option<&'a ContainerStateTerminated>,
    /// Whether Ansible had begun to work on hosts, as far as its unfinished message tells.
    pub has_begun: bool,
}

impl JobResult<'_> {
    /// Returns whether the Job succeeded, or would have without another container in its pod.
    pub fn is_complete(&self) -> bool {
        match self.job.end() {
            Some(end) => end.type_ == "Complete",
            None => self.ended.is_some_and(|it| it.exit_code == 0),
        }
    }

    /// Returns whether both the Job and Ansible in it succeeded.
    pub fn is_good(&self) -> bool {
        self.is_complete() && self.ended.is_some_and(|it| it.exit_code == 0)
    }

    /// Returns why a run without a report failed, by the messages of Kubernetes and ansible-runner.
    pub fn class(&self) -> (FailureReason, String) {
        let Self { run, job, pod, ended, has_begun } = *self;
        let end = job.end().cloned().unwrap_or_default();
        let name = job.name_any();
        if end.reason == "DeadlineExceeded" {
            // For a run of the engine, its parent reports what to do.
            let next_step = if is_engines(&run.spec) {
                ""
            } else {
                "; find out what took so long, or raise spec.activeDeadlineSeconds"
            };
            let message =
                format!("Job {name} was stopped at its deadline ({}){next_step}", end.message);
            return (FailureReason::DeadlineExceeded, message);
        }
        if let Some(cause) = eviction(&end.message, pod) {
            return (FailureReason::PodEvicted, format!("The runner pod was stopped: {cause}"));
        }
        let Some(pod) = pod else { return without_pod(run, &name, &end) };
        if let Some(first) = broken_init(pod) {
            return (FailureReason::ResultUnknown, first);
        }
        let Some(ended) = ended else {
            let message =
                format!("The runner container of pod {} reported no result", pod.name_any());
            return (FailureReason::ResultUnknown, message);
        };
        exit_class(run, pod, ended, has_begun)
    }
}

/// Returns the failure reason when the pod is gone, and its message with it.
fn without_pod(run: &AnsibleEe, job: &str, end: &JobCondition) -> (FailureReason, String) {
    match exit_code(&end.message) {
        // 254 is ansible-runner's own exit code for SIGTERM.
        Some(137 | 143 | 254) => {
            let message = "The runner pod was deleted while it ran";
            (FailureReason::PodEvicted, message.into())
        }
        // For a run of the engine the failure policy matches every exit code: its pod never had
        // one.
        None if is_engines(&run.spec) && end.reason == "BackoffLimitExceeded" => {
            (FailureReason::PodEvicted, "The runner pod was deleted before it started".into())
        }
        _ => {
            let message = format!(
                "Job {job} ended, but its pods were gone before they were read ({})",
                one_line(&end.message)
            );
            (FailureReason::ResultUnknown, message)
        }
    }
}

/// Returns the exit code in the message of a Job that its failure policy ended.
fn exit_code(words: &str) -> Option<i32> {
    let (_, after) = words.split_once("failed with exit code ")?;
    after.split(' ').next()?.parse().ok()
}

fn exit_class(
    run: &AnsibleEe,
    pod: &Pod,
    ended: &ContainerStateTerminated,
    has_begun: bool,
) -> (FailureReason, String) {
    let code = ended.exit_code;
    let image = run.spec.image.as_deref().unwrap_or("the default image");
    let is_deleted = pod.metadata.deletion_timestamp.is_some();
    let unknown = |message: String| (FailureReason::ResultUnknown, message);
    match (ended.reason.as_deref().unwrap_or_default(), code) {
        ("OOMKilled", _) => {
            unknown("The runner container ran out of memory: raise spec.resources".into())
        }
        ("StartError" | "ContainerCannotRun", _) => {
            let why = one_line(ended.message.as_deref().unwrap_or_default());
            unknown(format!("The runner container cannot start: {why}"))
        }
        (_, 0) => unknown(format!(
            "Ansible succeeded, but reported no result: {image} did not load the callback, or a \
             play ended it early"
        )),
        (_, 254) if !is_deleted => {
            let message = "ansible-runner stopped Ansible: RUNNER_JOB_TIMEOUT or \
                           RUNNER_IDLE_TIMEOUT expired";
            (FailureReason::DeadlineExceeded, message.into())
        }
        (_, 137 | 143 | 254) => {
            let how = if is_deleted { "it was deleted" } else { "its process was killed" };
            let message = format!("The runner pod was stopped: {how} (exit code {code})");
            (FailureReason::PodEvicted, message)
        }
        (_, 1 | 2 | 4 | 5 | 250) if has_begun => unknown(format!(
            "Ansible aborted midway (exit code {code}): it cannot read what comes next in \
             the playbook ({}), or its process was killed",
            playbook(run)
        )),
        (_, 1 | 4 | 5 | 250) => {
            let message = format!(
                "Ansible failed before reaching any host (exit code {code}): it cannot read the \
                 playbook ({}), the inventory or the options",
                playbook(run)
            );
            (FailureReason::InvalidPlaybook, message)
        }
        (_, 2) => unknown(format!(
            "Ansible ended with exit code 2 and reported no result: spec.cmdLine has an unknown \
             option, or {image} did not load the callback"
        )),
        _ => unknown(format!("Ansible ended with exit code {code} and reported no result")),
    }
}

/// Returns where a run's playbook comes from.
fn playbook(run: &AnsibleEe) -> String {
    let spec = &run.spec;
    match (&spec.playbook_contents, &spec.play, &spec.playbook) {
        (Some(_), ..) => "spec.playbookContents".into(),
        (None, Some(_), _) => "spec.play".into(),
        (None, None, Some(name)) => format!("spec.playbook {name}"),
        (None, None, None) => "that of spec.role".into(),
    }
}

/// Returns why the pod was evicted or killed from outside; `None` when it was not.
fn eviction(end: &str, pod: Option<&Pod>) -> Option<String> {
    if let Some(disrupted) = pod.and_then(|it| it.true_condition("DisruptionTarget")) {
        return Some(format!("{}: {}", disrupted.reason, one_line(&disrupted.message)));
    }
    let status = pod.map(|it| &it.status);
    let taken = ["Evicted", "Preempting", "NodeLost", "NodeShutdown", "Shutdown", "Terminated"];
    if let Some(status) = status.filter(|it| taken.contains(&it.reason.as_str())) {
        return Some(format!("{}: {}", status.reason, one_line(&status.message)));
    }
    end.contains("DisruptionTarget").then(|| one_line(end))
}

fn broken_init(pod: &Pod) -> Option<String> {
    let failed = pod.status.init_container_statuses.iter().find_map(|it| {
        let ended = it.state.terminated.as_ref().filter(|it| it.exit_code != 0)?;
        Some((&it.name, ended.exit_code))
    });
    failed.map(|(name, code)| {
        let what = format!("Init container {name} failed with exit code {code}");
        if name != HOST_KEYS_CONTAINER {
            return what;
        }
        format!(
            "{what}: the runner image cannot learn host keys, so put the hosts' lines into \
             known_hosts of the ssh Secret"
        )
    })
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
}

//! Reads everything about one run from the caches, and in two rare cases from the API server.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::conditions::{one_line, printable};
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache::{Cache, IndexName};
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::clock;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use super::decide::{self, LAG, Observed, Stage, current_job, recorded_uid, stage};
use crate::objects::{JOB_NAME, Job, JobCondition, Pod, RUN, annotation};
use crate::run::build::APP;
use crate::run::pod_problems::left;
use crate::run::settings::Settings;

/// Index of Jobs by the key of their run.
const BY_RUN: IndexName = "run";
/// Reason of the Events in which the Job controller reports that a pod cannot be made.
const POD_NOT_CREATED: &str = "FailedCreate";
/// Maximum length of what the API server says of a refused pod.
const WORDS_LIMIT: usize = 600;
/// Index of pods by the key of their Job.
const BY_JOB: IndexName = "job";

/// The operator's caches.
#[derive(Clone)]
pub struct Caches {
    /// All runs.
    pub runs: Arc<Cache<AnsibleEe>>,
    /// The runs' Jobs.
    pub jobs: Arc<Cache<Job>>,
    /// The runs' pods.
    pub pods: Arc<Cache<Pod>>,
}

impl Caches {
    /// Creates empty caches.
    pub fn new(registry: &mut CacheRegistry) -> Self {
        let by_run = |it: &Job| run_key(&it.metadata).into_iter().collect();
        let by_job = |it: &Pod| {
            let namespace = it.namespace().unwrap_or_default();
            it.job().map(|job| Key::new(namespace, job)).into_iter().collect()
        };
        let ours = format!("{}={}", APP.0, APP.1);
        Self {
            runs: registry.owned(vec![]),
            jobs: registry.labelled(&ours, vec![(BY_RUN, Box::new(by_run))]),
            pods: registry.labelled(&ours, vec![(BY_JOB, Box::new(by_job))]),
        }
    }

    /// Returns the Jobs that the run controls.
    pub fn jobs_of(&self, run: &AnsibleEe) -> Vec<Job> {
        let uid = run.uid().unwrap_or_default();
        let jobs = self.jobs.indexed(BY_RUN, &Key::of(run));
        jobs.iter().filter(|it| it.is_owned_by(&uid)).map(|it| Job::clone(it)).collect()
    }

    /// Returns the pods of a Job.
    pub(super) fn pods_of(&self, namespace: &str, job: &str) -> Vec<Pod> {
        let pods = self.pods.indexed(BY_JOB, &Key::new(namespace, job));
        pods.iter().map(|it| Pod::clone(it)).collect()
    }
}

/// Returns the key of the run that a Job or pod belongs to; `None` when it names none.
pub fn run_key(metadata: &ObjectMeta) -> Option<Key> {
    let run = Some(annotation(metadata, RUN)).filter(|it| !it.is_empty())?;
    Some(Key::new(metadata.namespace.clone()?, run))
}

/// The controller of single runs.
pub struct Runs {
    /// The operator's caches.
    pub caches: Caches,
    /// The API server, for reads that the caches cannot answer.
    pub api: Arc<Api>,
    /// The operator's options.
    pub settings: Settings,
}

impl Controller for Runs {
    type Observed = Observed;

    const NAME: &'static str = "OpenStackAnsibleEE";

    const DECIDE: Decide<Observed> = decide::decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let Some(run) = self.caches.runs.get(key) else { return Ok(None) };
        let mut jobs = self.caches.jobs_of(&run);
        jobs.extend(self.hidden_job(&run, &jobs).await?);
        let current = current_job(&run).unwrap_or_default();
        let mut names: Vec<String> = jobs.iter().map(ResourceExt::name_any).collect();
        if names.iter().all(|it| it != current) {
            names.push(current.into());
        }
        let pods_of = |name: &String| self.caches.pods_of(&key.namespace, name);
        let mut pods: Vec<Pod> = names.iter().flat_map(pods_of).collect();
        let has_pods = pods.iter().any(|it| it.job() == Some(current));
        let is_going = || stage(&run, true) == Stage::Admitted;
        let job = jobs.iter().find(|it| it.name_any() == current);
        let (mut hidden, mut refusal) = (None, None);
        if let Some(job) = job.filter(|_| !has_pods && is_going()) {
            match job.end() {
                Some(end) => hidden = self.hidden_pods(&key.namespace, job, end).await?,
                None => refusal = self.refusal(&key.namespace, job).await?,
            }
        }
        let pods_are_certain = hidden.is_some();
        pods.extend(hidden.into_iter().flatten());
        Ok(Some(Observed {
            run: AnsibleEe::clone(&run),
            jobs,
            pods,
            pods_are_certain,
            refusal,
            settings: self.settings.clone(),
        }))
    }
}

impl Runs {
    /// Reads a recorded Job that the cache lacks from the API server.
    ///
    /// An informer that is being restarted may lack existing objects, so this precedes treating the
    /// Job as deleted.
    async fn hidden_job(&self, run: &AnsibleEe, jobs: &[Job]) -> Result<Option<Job>> {
        let Some(name) = current_job(run) else { return Ok(None) };
        let is_expected = recorded_uid(run).is_some() && stage(run, true) == Stage::Admitted;
        if !is_expected || jobs.iter().any(|it| it.name_any() == name) {
            return Ok(None);
        }
        let key = Key::new(run.namespace().unwrap_or_default(), name);
        let found: Option<Job> = self.api.get(&key).await?;
        let uid = run.uid().unwrap_or_default();
        Ok(found.filter(|it| it.is_owned_by(&uid)))
    }

    /// Reads from the Events of a Job why it has no pod, once it should have one.
    async fn refusal(&self, namespace: &str, job: &Job) -> Result<Option<String>> {
        if !is_late(job.status.start_time.as_ref()) {
            return Ok(None);
        }
        let uid = job.uid().unwrap_or_default();
        let fields = format!("involvedObject.uid={uid},reason={POD_NOT_CREATED}");
        let events: Vec<Event> = self.api.list_by_fields(namespace, &fields).await?;
        let last = events.iter().max_by_key(|it| it.last_timestamp.as_ref().map(|it| it.0));
        Ok(last.and_then(|it| refusal_of(&job.name_any(), it.message.as_deref()?)))
    }

    /// Reads the pods of an ended Job, of which the cache has none, from the API server.
    ///
    /// That is done for Jobs that ended a while ago or at their deadline, before the result counts
    /// as lost.
    async fn hidden_pods(
        &self,
        namespace: &str,
        job: &Job,
        end: &JobCondition,
    ) -> Result<Option<Vec<Pod>>> {
        // At the deadline its pods were deleted before it ended: there is nothing to wait for.
        if end.reason != "DeadlineExceeded" && !is_late(end.last_transition_time.as_ref()) {
            return Ok(None);
        }
        self.api.list(namespace, &format!("{JOB_NAME}={}", job.name_any())).await.map(Some)
    }
}

/// Returns whether the cache should have what has followed since.
fn is_late(since: Option<&Time>) -> bool {
    since.is_some_and(|it| left(it.0, LAG, clock::now()).is_none())
}

/// Returns the API server's words in an Event about a pod of a Job that was refused.
///
/// The pod's name, which is another one at each try, is left out: the same cause has the same words.
fn refusal_of(job: &str, message: &str) -> Option<String> {
    let (_, words) = message.split_once("Error creating: ")?;
    let words = printable(words);
    let of_pod = words.strip_prefix(&format!("pods \"{job}-"));
    let words = of_pod.and_then(|it| it.split_once("\" is ")).map_or(&*words, |it| it.1);
    Some(one_line(words.trim_end_matches('.'), WORDS_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_server_says_of_a_refused_pod_is_the_same_at_each_try() {
        let said = |name: &str| {
            let message = format!(
                "(combined from similar events): Error creating: pods \"run-1-{name}\" is \
                 forbidden: failed quota: shares:\n must specify requests.cpu."
            );
            refusal_of("run-1", &message)
        };
        let expected = "forbidden: failed quota: shares: must specify requests.cpu";
        assert_eq!(said("x7k2p").as_deref(), Some(expected));
        assert_eq!(said("x7k2p"), said("bcdfg"));
        let webhook = "admission webhook \"w\" denied the request: no";
        let said = refusal_of("run-1", &format!("Error creating: {webhook}"));
        assert_eq!(said.as_deref(), Some(webhook));
        assert_eq!(refusal_of("run-1", "Created pod: run-1-x7k2p"), None);
        let long = refusal_of("run-1", &format!("Error creating: {}", "no ".repeat(9999)));
        assert!(long.unwrap().len() <= WORDS_LIMIT);
    }
}

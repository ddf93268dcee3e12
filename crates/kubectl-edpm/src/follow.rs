//! `logs`: streams the output of a run's pod, or prints what the run recorded when the pod is gone.

use std::process::ExitCode;

use api::ansibleee::{AnsibleEe, JobStatus};
use api::terminal::coloured;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use kube::api::LogParams;
use kube::runtime::wait::await_condition;

use crate::args::Logs;
use crate::cluster::{Cluster, Read};
use crate::error::{Error, Result};
use crate::fetch::pod_of;
use crate::host::Host;
use crate::logs::{chosen, heading, job_of, recorded};
use crate::run::job_status;
use crate::terminal::Terminal;

/// Prints the output of the requested run. It fails when no run or pod is left.
pub async fn logs(
    cluster: &Cluster,
    host: &Host<'_>,
    requested: &Logs,
    terminal: &mut Terminal<'_>,
) -> Result<ExitCode> {
    let run = chosen(host, requested.service.as_deref())?;
    let pod = match pod_of(cluster, run).await? {
        Read::Found(pod) => pod,
        Read::Missing => {
            write!(terminal.out, "{}", recorded(run, host.name))?;
            return Err(gone(run));
        }
        Read::Refused(message) => return Err(Error::message(message)),
    };
    let name = pod.name_any();
    writeln!(terminal.err, "{}", heading(run, host.name, &name))?;
    terminal.err.flush()?;
    if requested.follow && job_status(run) == JobStatus::Running {
        let container = run.spec.name.clone();
        let has_begun = move |it: Option<&Pod>| it.is_none_or(|pod| begun(pod, &container));
        let begun = await_condition(cluster.api::<Pod>(), &name, has_begun).await;
        begun.map_err(|it| Error::message(it.to_string()))?;
    }
    let params = LogParams {
        container: Some(run.spec.name.clone()),
        follow: requested.follow,
        ..LogParams::default()
    };
    let stream = cluster.api::<Pod>().log_stream(&name, &params).await;
    let mut lines = stream.map_err(|it| cluster.error(&it))?.lines();
    while let Some(line) = lines.try_next().await? {
        writeln!(terminal.out, "{}", coloured(&line))?;
        terminal.out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the error for a run whose pod is gone.
fn gone(run: &AnsibleEe) -> Error {
    let job = job_of(run).unwrap_or_default();
    Error::message(format!(
        "the pod of run {} (Job {job}) is gone, and its output with it; above is what the run \
         recorded",
        run.name_any()
    ))
}

/// Whether a container has started, or never will because the pod has ended.
fn begun(pod: &Pod, container: &str) -> bool {
    let Some(status) = &pod.status else { return false };
    let is_over = matches!(status.phase.as_deref(), Some("Failed" | "Succeeded"));
    let has_begun = |it: &ContainerStatus| {
        let state = it.state.as_ref();
        it.name == container
            && state.is_some_and(|it| it.running.is_some() || it.terminated.is_some())
    };
    is_over || status.container_statuses.iter().flatten().any(has_begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_that_waits_for_its_first_ones_has_not_begun() {
        let pod = |state: &str, phase: &str| -> Pod {
            let text = format!(
                r#"{{"status":{{"phase":"{phase}","containerStatuses":[{{"name":"runner","image":"i","imageID":"","ready":false,"restartCount":0,"state":{state}}}]}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        assert!(!begun(&pod(r#"{"waiting":{"reason":"PodInitializing"}}"#, "Pending"), "runner"));
        assert!(begun(&pod(r#"{"running":{}}"#, "Running"), "runner"));
        assert!(!begun(&pod(r#"{"running":{}}"#, "Running"), "other"));
        assert!(begun(&pod(r#"{"waiting":{}}"#, "Failed"), "runner"));
    }
}

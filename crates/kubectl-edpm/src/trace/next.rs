//! The advice for the user at the step at which an option stops.

use kube::ResourceExt as _;

use super::inputs::TraceInputs;
use super::trace_step::{Mark, TraceStep};
use crate::host::{Host, Step};
use crate::kinds::DEPLOYMENT;
use crate::option_sources::ConfigPath;

/// Returns the advice without a full stop, or `None` when the step itself says it.
pub(super) fn next_step(stop: &TraceStep, seen: &TraceInputs<'_>, service: &str) -> Option<String> {
    let host = seen.host.name;
    let again = format!("kubectl edpm retry {host} --force");
    Some(match stop.name {
        "snippet" => "write the option into that file".to_owned(),
        "generated" => {
            "generate the ConfigMap anew from the snippet, as kubectl apply -k does".to_owned()
        }
        "written" => written(seen),
        "rendered" => rendered(stop, host),
        "service" => format!(
            "have a service of type nova, as {service} is, that names the object in \
             spec.dataSources, under a key that nova-compute reads last"
        ),
        "listed" => format!(
            "list {service} in spec.services of {}, in the place of any other of type nova",
            lister(seen.host)
        ),
        "deployment" => {
            let set = seen.host.node.node_set()?;
            format!(
                "create an {DEPLOYMENT} with nodeSets: [{set}]; with servicesOverride: [{service}] \
                 it runs that service alone"
            )
        }
        "run" => run(seen, service),
        "job" | "pod" => format!("have it deployed once more: {again}"),
        "container" if seen.said().is_some_and(|it| it.not_running().is_some()) => format!(
            "on {host}, podman logs --tail 50 nova_compute shows why it ended; systemctl restart \
             edpm_nova_compute starts it, and where there is no such unit, {again} deploys it"
        ),
        "container" | "process" if has_read_older_files(seen) => restart(host),
        "host" | "container" => {
            format!("the file was written by others since; {again} brings it back")
        }
        "process" => match other_origin(seen) {
            Some(file) if stop.mark == Mark::Stale => {
                format!(
                    "take the option out of {file} in the container on {host}; {}",
                    restart(host)
                )
            }
            _ => restart(host),
        },
        _ => return None,
    })
}

fn restart(host: &str) -> String {
    format!("restart nova-compute on {host} (systemctl restart edpm_nova_compute), then ask again")
}

fn written(seen: &TraceInputs<'_>) -> String {
    match &seen.road {
        ConfigPath::Compute(options) => format!(
            "write the option into spec.customServiceConfig of NovaExternalCompute {}",
            options.compute.name_any()
        ),
        ConfigPath::Service(_) => "apply the generated ConfigMap: kubectl apply -k".to_owned(),
    }
}

/// A stale mark here means that all files are rendered and a later one overrides the option.
fn rendered(stop: &TraceStep, host: &str) -> String {
    if stop.mark == Mark::Stale {
        return "write the option where the file that is read last is made from, or take it out \
                there"
            .to_owned();
    }
    format!(
        "correct what kubectl edpm explain {host} names of the compute; then it is rendered \
         automatically"
    )
}

/// Returns the object whose service list applies to the host.
fn lister<'a>(host: &'a Host<'_>) -> &'a str {
    let own = host.stages.first().map(|it| it.name);
    host.group.as_ref().map(|it| it.name).or(own).unwrap_or_default()
}

fn run(seen: &TraceInputs<'_>, service: &str) -> String {
    let host = seen.host.name;
    let step = seen.host.service(seen.stage, service).map(|it| it.state);
    if matches!(step, Some(Step::Queued | Step::Running)) {
        return format!("wait; kubectl edpm explain {host} shows for what");
    }
    if step != Some(Step::Failed) && seen.stage.deploys == Some(false) {
        return "set deployStrategy.deploy: true, on the node or on its role".to_owned();
    }
    format!("correct what kubectl edpm explain {host} names, then kubectl edpm retry {host}")
}

fn has_read_older_files(seen: &TraceInputs<'_>) -> bool {
    seen.said().is_some_and(|it| !it.asked.newer.is_empty())
}

/// Returns the file that the process has its value from.
fn other_origin<'a>(seen: &'a TraceInputs<'_>) -> Option<&'a str> {
    let answer = seen.said()?;
    // A process whose values differ from its files has read older ones.
    let is_read = answer.asked.by_files.as_ref() == Some(&answer.said);
    let origin = answer.asked.origin.as_ref().filter(|it| is_read && it.kind == "user")?;
    Some(&origin.detail)
}

//! `trace`: reads the sources of an option and, with `--ask`, queries the host by a run.

use std::process::ExitCode;
use std::time::Duration;

use api::ansibleee::AnsibleEe;
use kube::ResourceExt;
use kube::api::{DeleteParams, Preconditions};
use kube::runtime::wait::await_condition;
use nova_config::oslo::Release;
use nova_config::release;

use crate::args::Trace;
use crate::cluster::Cluster;
use crate::deployments::stage_with;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::kinds::{NODE, NODE_SET};
use crate::option_names::{self, OptionNames};
use crate::option_sources::ConfigPath;
use crate::query_run::{pattern, question};
use crate::run::job_status;
use crate::stage::{Phase, Stage};
use crate::terminal::Terminal;
use crate::trace::answer::Answer;
use crate::trace::inputs::TraceInputs;
use crate::{fetch, trace};

/// How long to wait for an answer, including the time in the queue.
const PATIENCE: Duration = Duration::from_mins(10);

/// Prints the origin of an option, and exits with 1 when it is not in force or that is unknown.
pub async fn way(
    cluster: &Cluster,
    requested: &Trace,
    terminal: &mut Terminal<'_>,
) -> Result<ExitCode> {
    let file = option_names::asked_file(&requested.option)?;
    let (section, key) = option_names::asked(&requested.option)?;
    let snippet = requested.snippet.as_deref().map(fetch::snippet).transpose()?;
    let manifests = requested.generated.as_deref();
    let generated = manifests.map(|it| fetch::generated(it, &cluster.namespace)).transpose()?;
    let snapshot = cluster.snapshot(false).await?;
    let host = cluster.host_in(&snapshot, &requested.node)?;
    let named = OptionNames::new(&section, &key, of_release(&host));
    let road = match fetch::options(cluster, &host).await? {
        None => fetch::given(cluster, &host, &named, file.as_deref()).await?,
        // Such a node gets nova's configuration from that alone.
        compute => compute,
    };
    let road = road.ok_or_else(|| no_nova(&host))?;
    if let (ConfigPath::Compute(_), Some(generated)) = (&road, &generated) {
        return Err(Error::message(format!(
            "{}: no manifests bring options to {}, but its NovaExternalCompute does",
            generated.path, host.name
        )));
    }
    let (stage, service) = stage(&host, &road)?;
    let (job, pod) = fetch::job_of(cluster, &host, &stage, &service).await?;
    let answer = if requested.ask {
        let (section, key) = &named.names[0];
        Some(answer(cluster, &host, (section, key), terminal).await?)
    } else {
        None
    };
    let seen = TraceInputs {
        host: &host,
        stage: &stage,
        road,
        file,
        snippet,
        generated,
        job,
        pod,
        answer,
    };
    let trace = trace::render(&seen, (&section, &key), &named, terminal.paint);
    write!(terminal.out, "{}", trace.text)?;
    Ok(if trace.is_in_force { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Returns the stage that deploys nova's configuration to a host, and the service that does so.
fn stage<'a>(host: &Host<'a>, road: &ConfigPath<'_>) -> Result<(Stage<'a>, String)> {
    let (phase, service) = match road {
        ConfigPath::Compute(_) => (Phase::Nova, nova_config::services::NOVA.to_owned()),
        ConfigPath::Service(given) if host.node.node_set().is_some() => {
            let service = given.service.name_any();
            return Ok((stage_with(host, &service), service));
        }
        ConfigPath::Service(given) => (Phase::Prepare, given.service.name_any()),
    };
    let stage = host.stages.iter().find(|it| it.phase == phase);
    Ok((stage.cloned().ok_or_else(|| no_nova(host))?, service))
}

/// Returns the nova release whose options apply.
fn of_release(host: &Host<'_>) -> Release {
    // The default release for cells that name none is an option of the operator, unknown here.
    let release = release::release_of_cell(host.cell, Release::newest());
    release.release().unwrap_or_else(Release::newest)
}

fn no_nova(host: &Host<'_>) -> Error {
    let name = host.name;
    Error::message(match host.node.node_set() {
        Some(set) => format!(
            "{NODE_SET} {set} lists no service of type nova: nothing of nova is deployed to {name}"
        ),
        None => format!(
            "{NODE} {name} has no NovaExternalCompute, and no service of type nova: nothing of \
             nova is deployed to it"
        ),
    })
}

/// Runs a query on the host and returns its answer, or why there is none. The run is deleted in any
/// case.
async fn answer(
    cluster: &Cluster,
    host: &Host<'_>,
    option: (&str, &str),
    terminal: &mut Terminal<'_>,
) -> Result<std::result::Result<Answer, String>> {
    let made = pattern(host).and_then(|it| question(it, host.name, option));
    let Some(wanted) = made else {
        let text = "cannot be asked: no run of an operator that has reached it is kept";
        return Ok(Err(format!("{} {text}", host.name)));
    };
    let api = cluster.api::<AnsibleEe>();
    let run = cluster.create(&wanted).await?;
    let name = run.name_any();
    writeln!(
        terminal.err,
        "# run {name} asks nova-compute on {}, changes nothing and goes",
        host.name
    )?;
    terminal.err.flush()?;
    let ended =
        await_condition(api.clone(), &name, |it: Option<&AnsibleEe>| it.is_none_or(has_ended));
    let ended = tokio::select! {
        ended = tokio::time::timeout(PATIENCE, ended) => Some(ended),
        _ = tokio::signal::ctrl_c() => None,
    };
    let kept = match &ended {
        Some(Err(_)) => cluster.read::<AnsibleEe>(&name).await?.found().cloned(),
        _ => None,
    };
    let precondition = Preconditions { uid: run.uid(), resource_version: None };
    let gone = api.delete(&name, &DeleteParams::background().preconditions(precondition)).await;
    gone.map(drop).or_else(|it| match cluster.error(&it) {
        error if error.is_not_found() => Ok(()),
        error => Err(error),
    })?;
    match ended {
        None => Err(Error::message("interrupted")),
        Some(Ok(Ok(Some(run)))) => Ok(reported(&run)),
        Some(Ok(Ok(None))) => {
            Ok(Err(format!("run {name} was deleted before it reported anything")))
        }
        Some(Ok(Err(error))) => Err(Error::message(error.to_string())),
        Some(Err(_)) => Ok(Err(late(&name, kept.as_ref()))),
    }
}

fn has_ended(run: &AnsibleEe) -> bool {
    job_status(run).is_final()
}

/// Returns the answer of a run that has ended, or why it has none.
fn reported(run: &AnsibleEe) -> std::result::Result<Answer, String> {
    let status = run.status.clone().unwrap_or_default();
    if let Some(answer) = status.report.as_deref().and_then(Answer::of) {
        return Ok(answer);
    }
    let failed = status.failures.first().map(|it| format!(": task {}: {}", it.task, it.gist()));
    let reason = status.reason.unwrap_or_else(|| "it reported nothing".to_owned());
    Err(format!("nova-compute could not be asked: {reason}{}", failed.unwrap_or_default()))
}

/// Returns the message for a run that has not ended in time.
fn late(name: &str, run: Option<&AnsibleEe>) -> String {
    let waits = run.and_then(|it| it.status.as_ref()?.waiting_for.clone());
    let waits = waits.map(|it| format!(" and waited: {it}")).unwrap_or_default();
    format!("run {name} has not ended in {} minutes{waits}", PATIENCE.as_secs() / 60)
}

//! The commands: what each one reads and where its output goes.

use std::process::ExitCode;
use std::time::Duration;

use api::dataplane::node::REDEPLOY as NODE_REDEPLOY;
use api::dataplane::{Deployment, Node};
use api::nova::ExternalCompute;
use clap::CommandFactory as _;
use clap_complete::Shell;
use kube::ResourceExt;
use kube::api::ListParams;
use nova_config::annotations::REDEPLOY;
use serde_json::json;

use crate::args::{Args, Command, Output, Status};
use crate::clock::now;
use crate::cluster::{Cluster, Kind};
use crate::complete::{self, Next};
use crate::error::{Error, Result};
use crate::retry::order::{Order, Target};
use crate::status::{self, Row, View};
use crate::terminal::Terminal;
use crate::{diff, explain, fetch, follow, live_query, retry, watch};

/// How long shell completion waits for the cluster.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs a command and returns its exit code.
pub async fn run(args: &Args, terminal: &mut Terminal<'_>) -> Result<ExitCode> {
    // These two need no cluster.
    if let Command::Completion { shell } = &args.command {
        return completion(*shell, terminal);
    }
    if let Command::Complete { words } = &args.command {
        return following(words, terminal).await;
    }
    answer(&Cluster::connect(&args.access).await?, &args.command, terminal).await
}

/// Runs a command that needs a cluster.
async fn answer(
    cluster: &Cluster,
    command: &Command,
    terminal: &mut Terminal<'_>,
) -> Result<ExitCode> {
    match command {
        Command::Status(asked) => status(cluster, asked, terminal).await,
        Command::Explain { node, short } => {
            let snapshot = cluster.snapshot(false).await?;
            let host = cluster.host_in(&snapshot, node)?;
            let text = if *short { explain::summary } else { explain::text };
            write!(terminal.out, "{}", text(&host, terminal.paint))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Logs(asked) => {
            let snapshot = cluster.snapshot(false).await?;
            follow::logs(cluster, &cluster.host_in(&snapshot, &asked.node)?, asked, terminal).await
        }
        Command::Diff { node } => differences(cluster, node, terminal).await,
        Command::Trace(asked) => Box::pin(live_query::way(cluster, asked, terminal)).await,
        Command::Retry { name, force } => retry(cluster, name, *force, terminal).await,
        Command::Completion { .. } | Command::Complete { .. } => Ok(ExitCode::SUCCESS),
    }
}

fn completion(shell: Shell, terminal: &mut Terminal<'_>) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "kubectl-edpm", &mut text);
    terminal.out.write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Offers completions. A cluster that is slow or returns an error yields no words and no message,
/// because the user is in the middle of typing.
async fn following(words: &[String], terminal: &mut Terminal<'_>) -> Result<ExitCode> {
    let offered = match complete::next(&Args::command(), words) {
        Next::Words(words) => words,
        Next::Node => {
            let nodes = tokio::time::timeout(PATIENCE, nodes(words)).await;
            nodes.ok().and_then(Result::ok).unwrap_or_default()
        }
    };
    let last = words.last().map(String::as_str).unwrap_or_default();
    write!(terminal.out, "{}", complete::lines(&offered, last))?;
    Ok(ExitCode::SUCCESS)
}

async fn nodes(words: &[String]) -> Result<Vec<(String, String)>> {
    let cluster = Cluster::connect(&complete::access(Args::command(), words)).await?;
    let nodes = cluster.api::<Node>().list_metadata(&ListParams::default()).await;
    let nodes = nodes.map_err(|it| cluster.error(&it))?;
    Ok(nodes.items.iter().map(|it| (it.name_any(), String::new())).collect())
}

/// Returns exit code 1 when there are differences, as `kubectl diff` does.
async fn differences(
    cluster: &Cluster,
    node: &str,
    terminal: &mut Terminal<'_>,
) -> Result<ExitCode> {
    let snapshot = cluster.snapshot(false).await?;
    let host = cluster.host_in(&snapshot, node)?;
    let road = match fetch::options(cluster, &host).await? {
        None if host.node.node_set().is_some() => fetch::listed(cluster, &host).await?,
        road => road,
    };
    let text = diff::text(&host, road.as_ref(), terminal.paint);
    write!(terminal.out, "{text}")?;
    Ok(if text.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Requests another attempt: sets the annotation to the current time, as `kubectl annotate
/// --overwrite` does, or creates a deployment for hosts of node sets, as `kubectl create` does.
async fn retry(
    cluster: &Cluster,
    name: &str,
    is_forced: bool,
    terminal: &mut Terminal<'_>,
) -> Result<ExitCode> {
    let snapshot = cluster.snapshot(false).await?;
    for order in retry::orders(&snapshot, &cluster.namespace, name, is_forced)? {
        match order {
            Order::Deployment(wanted) => {
                let made = cluster.create::<Deployment>(&wanted).await?;
                writeln!(terminal.out, "{} created", printed::<Deployment>(&made.name_any()))?;
            }
            Order::Annotation { target, name, is_off } => {
                let object = match target {
                    Target::Node => annotate::<Node>(cluster, &name, NODE_REDEPLOY).await?,
                    Target::Compute => {
                        annotate::<ExternalCompute>(cluster, &name, REDEPLOY).await?
                    }
                };
                writeln!(terminal.out, "{object} annotated")?;
                if is_off {
                    writeln!(
                        terminal.err,
                        "{name} is not deployed until deployStrategy.deploy of the node, its role \
                         or the role's data plane is true."
                    )?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets an annotation to the current time, and returns the object as kubectl names it.
async fn annotate<K: Kind>(cluster: &Cluster, name: &str, annotation: &str) -> Result<String> {
    let annotations = json!({ annotation: now().as_second().to_string() });
    cluster.merge::<K>(name, &json!({ "metadata": { "annotations": annotations } })).await?;
    Ok(printed::<K>(name))
}

/// Returns an object as kubectl names it.
fn printed<K: Kind>(name: &str) -> String {
    format!("{}.{}/{name}", K::kind(&()).to_lowercase(), K::group(&()))
}

async fn status(
    cluster: &Cluster,
    asked: &Status,
    terminal: &mut Terminal<'_>,
) -> Result<ExitCode> {
    let snapshot = cluster.snapshot(asked.all_namespaces).await?;
    let rows = status::rows(&snapshot, &asked.nodes);
    let is_missing =
        |name: &&String| status::rows(&snapshot, std::slice::from_ref(*name)).is_empty();
    let missing = asked.nodes.iter().find(is_missing);
    if let Some(name) = missing {
        return Err(Error::no_such_node(name));
    }
    if asked.watch {
        return watch::statuses(cluster, asked, terminal, snapshot).await;
    }
    match asked.output {
        Some(output @ (Output::Json | Output::Yaml)) => {
            write!(terminal.out, "{}", status::document(&rows, output))?;
        }
        None | Some(Output::Wide) => table(cluster, asked, terminal, &rows)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(
    cluster: &Cluster,
    asked: &Status,
    terminal: &mut Terminal<'_>,
    rows: &[Row],
) -> Result<()> {
    if rows.is_empty() {
        let place = if asked.all_namespaces {
            String::new()
        } else {
            format!(" in {} namespace", cluster.namespace)
        };
        return Ok(writeln!(terminal.err, "No resources found{place}.")?);
    }
    let view = View { asked, paint: terminal.paint, now: now() };
    for line in status::lines(rows, view) {
        writeln!(terminal.out, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "app_tests.rs"]
mod tests;

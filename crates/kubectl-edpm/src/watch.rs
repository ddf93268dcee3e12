//! `status -w`: prints the table, then a line for each host that changes.

use std::collections::BTreeMap;
use std::pin::pin;
use std::process::ExitCode;

use futures::future::ready;
use futures::stream::{BoxStream, select_all};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Resource, ResourceExt};

use crate::args::{Output, Status};
use crate::clock::now;
use crate::cluster::{Cluster, Kind};
use crate::error::Result;
use crate::snapshot::Snapshot;
use crate::status::{self, Row, View};
use crate::terminal::Terminal;

/// The maximum number of changes that are applied before the rows are printed.
const MAX_CHANGES: usize = 1_000;

/// Applies one watch event to what is known, and to the lists of restarted watches until they are
/// complete.
type Change = Box<dyn FnOnce(&mut Snapshot, &mut Snapshot) + Send>;

/// Returns the objects of a kind.
type Of<K> = fn(&mut Snapshot) -> &mut Vec<K>;

type Changes = BoxStream<'static, std::result::Result<Change, watcher::Error>>;

/// Prints all rows, and then those that change, until interrupted.
pub async fn statuses(
    cluster: &Cluster,
    asked: &Status,
    terminal: &mut Terminal<'_>,
    mut snapshot: Snapshot,
) -> Result<ExitCode> {
    let streams = streams(cluster, asked.all_namespaces);
    let mut shown = Shown::default();
    show(&snapshot, asked, terminal, &mut shown)?;
    let mut fresh = Snapshot::default();
    // Changes that have arrived meanwhile are applied together.
    let mut all = pin!(select_all(streams).ready_chunks(MAX_CHANGES));
    while let Some(changes) = all.next().await {
        for change in changes {
            match change {
                Ok(change) => change(&mut snapshot, &mut fresh),
                // The watch restarts by itself, with backoff.
                Err(error) => writeln!(terminal.err, "the watch was cut off: {error}")?,
            }
        }
        show(&snapshot, asked, terminal, &mut shown)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The rows printed last, by namespace and name.
type Shown = BTreeMap<(String, String), Row>;

/// Prints the rows that differ from those printed last; column widths are those of all rows.
fn show(
    caches: &Snapshot,
    asked: &Status,
    terminal: &mut Terminal<'_>,
    shown: &mut Shown,
) -> Result<()> {
    let rows = status::rows(caches, &asked.nodes);
    let key = |it: &Row| (it.namespace.clone(), it.node.clone());
    let is_new = |it: &Row| shown.get(&key(it)) != Some(it);
    match asked.output {
        Some(output @ (Output::Json | Output::Yaml)) => {
            let changed: Vec<Row> = rows.iter().filter(|it| is_new(it)).cloned().collect();
            if !changed.is_empty() {
                write!(terminal.out, "{}", status::document(&changed, output))?;
            }
        }
        None | Some(Output::Wide) => {
            let view = View { asked, paint: terminal.paint, now: now() };
            let mut lines = status::lines(&rows, view).into_iter();
            if let Some(header) = lines.next().filter(|_| shown.is_empty() && !rows.is_empty()) {
                writeln!(terminal.out, "{header}")?;
            }
            for (_, line) in rows.iter().zip(lines).filter(|(row, _)| is_new(row)) {
                writeln!(terminal.out, "{line}")?;
            }
        }
    }
    terminal.out.flush()?;
    *shown = rows.into_iter().map(|it| (key(&it), it)).collect();
    Ok(())
}

/// Returns the watch streams of all kinds.
fn streams(cluster: &Cluster, is_all: bool) -> Vec<Changes> {
    vec![
        changes(cluster, is_all, |it| &mut it.roles),
        changes(cluster, is_all, |it| &mut it.nodes),
        changes(cluster, is_all, |it| &mut it.node_sets),
        changes(cluster, is_all, |it| &mut it.deployments),
        changes(cluster, is_all, |it| &mut it.computes),
        changes(cluster, is_all, |it| &mut it.runs),
    ]
}

fn changes<K: Kind + Send + Sync + 'static>(
    cluster: &Cluster,
    all_namespaces: bool,
    of: Of<K>,
) -> Changes {
    let stream = watch(cluster.api_of::<K>(all_namespaces), watcher::Config::default());
    let change = move |event: Event<K>| -> Change {
        Box::new(move |snapshot: &mut Snapshot, fresh: &mut Snapshot| {
            apply(of(snapshot), of(fresh), event);
        })
    };
    let stream = stream.default_backoff().filter(|it| ready(!it.as_ref().is_err_and(is_absent)));
    stream.map_ok(change).boxed()
}

/// Whether the cluster does not have the kind, since its operator may not be installed yet.
fn is_absent(error: &watcher::Error) -> bool {
    let watcher::Error::InitialListFailed(kube::Error::Api(status)) = error else { return false };
    status.code == 404
}

/// Applies an event. Until the list of a restarted watch is complete, it is in `fresh`; objects that
/// it lacks were deleted meanwhile.
fn apply<K: Resource>(objects: &mut Vec<K>, fresh: &mut Vec<K>, event: Event<K>) {
    let is_same = |a: &K, b: &K| (a.namespace(), a.name_any()) == (b.namespace(), b.name_any());
    match event {
        Event::Init => fresh.clear(),
        Event::InitApply(object) => fresh.push(object),
        Event::InitDone => *objects = std::mem::take(fresh),
        Event::Apply(object) => match objects.iter_mut().find(|it| is_same(it, &object)) {
            Some(old) => *old = object,
            None => objects.push(object),
        },
        Event::Delete(object) => objects.retain(|it| !is_same(it, &object)),
    }
}

#[cfg(test)]
mod tests {
    use api::dataplane::Node;

    use super::*;
    use crate::testdata;

    #[test]
    fn a_restarted_watch_forgets_what_has_gone_and_repeats_nothing() {
        let mut snapshot = testdata::snapshot();
        let (before, mut fresh) = (status::rows(&snapshot, &[]), vec![]);
        let kept: Vec<Node> = snapshot.nodes[1..].to_vec();
        apply(&mut snapshot.nodes, &mut fresh, Event::Init);
        for node in kept {
            apply(&mut snapshot.nodes, &mut fresh, Event::InitApply(node));
            assert_eq!(status::rows(&snapshot, &[]), before);
        }
        apply(&mut snapshot.nodes, &mut fresh, Event::InitDone);
        assert_eq!(status::rows(&snapshot, &[]), before[1..]);
    }

    #[test]
    fn a_change_takes_the_place_of_what_was_known() {
        let (mut nodes, mut fresh) = (testdata::snapshot().nodes, vec![]);
        let mut node = nodes[0].clone();
        node.spec.role = None;
        apply(&mut nodes, &mut fresh, Event::Apply(node.clone()));
        assert_eq!((nodes.len(), nodes[0].spec.role.as_ref()), (4, None));
        apply(&mut nodes, &mut fresh, Event::Delete(node));
        assert_eq!(nodes.len(), 3);
    }
}

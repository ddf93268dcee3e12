//! Many computes, and a cell whose database hangs, for which nova waits a minute.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::nova::{Cell, ExternalCompute};
use e2e::Namespace;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use simulated_cluster::{Nova, NovaFault};

use super::{HYPERVISORS, READ, SERVICES, start_reading};
use crate::computes::{self, CELL};
use crate::own::{Own, PATIENCE};

const COMPUTES: usize = 500;
const HALF: usize = COMPUTES / 2;
/// The seconds from one reading to the next.
const INTERVAL: u8 = 5;
const OTHER_CELL: &str = "nova-cell2";
/// A compute in the other cell.
const COMPUTE: &str = "n1";
/// How long nova waits for a cell, unless its configuration has another time.
const HANGS: Duration = Duration::from_mins(1);

/// Creates a compute that has registered before, as its status shows.
async fn add_compute(own: &Own, name: String, cell: &str) -> Result<()> {
    let spec = json!({ "dataplaneNodeName": name, "cellName": cell });
    own.create::<ExternalCompute>(&name, spec).await?;
    let run = |service: &str| {
        json!({
            "name": service, "state": "Succeeded", "attempt": 1, "hash": "a", "deployedHash": "a",
            "failures": 0, "since": "2026-11-26T00:00:00Z",
        })
    };
    let services = ["libvirt", "nova", "nova-registered"].map(run);
    let status = json!({ "status": { "hostName": name, "services": services } });
    let computes = own.api::<ExternalCompute>();
    computes.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

/// Adds half of the computes to each cell; all but one are up.
async fn add_computes(own: &Own) -> Result<()> {
    let nova = &own.sim.nova;
    for (cell, begin) in [(CELL, 0), (OTHER_CELL, 1)] {
        let names = || (begin..COMPUTES).step_by(2).map(|it| format!("n{it}"));
        names().for_each(|name| nova.register(&name, cell));
        let adding = names().map(|name| add_compute(own, name, cell));
        futures::stream::iter(adding).buffer_unordered(16).try_collect::<()>().await?;
    }
    nova.report(COMPUTE, false);
    Ok(())
}

/// Waits until `ServiceUp` of the compute in the other cell has this reason.
async fn reaches(ns: &Namespace, reason: &str, within: Duration) -> Result<()> {
    ns.reports::<ExternalCompute>(COMPUTE, "ServiceUp", reason, &[], within).await.map(drop)
}

/// Waits until `ComputesUp` of a cell has this reason and these words.
async fn says_of_cell(own: &Own, cell: &str, reason: &str, words: &str) -> Result<()> {
    // Hundreds of computes are written before it.
    own.reports::<Cell>(cell, "ComputesUp", reason, &[words], PATIENCE).await.map(drop)
}

/// Waits for the next reading, and keeps its answer and those of all later ones back.
async fn is_silent(nova: &Nova) -> Result<()> {
    let total = nova.count(SERVICES) + 1;
    nova.fail(SERVICES, NovaFault::Silence);
    nova.wait_for_total(SERVICES, total, PATIENCE).await
}

/// Lets the cell hang for the next reading, which is the first one that has the compute as up, and the
/// last one that is answered.
async fn hangs(nova: &Nova) -> Result<()> {
    is_silent(nova).await?;
    nova.hang_cell(CELL, HANGS);
    nova.report(COMPUTE, true);
    nova.heal();
    nova.fail(SERVICES, NovaFault::Silence);
    Ok(())
}

#[tokio::test]
async fn many_computes_cost_one_reading_and_a_cell_that_hangs_delays_no_deployment() -> Result<()> {
    let own = start_reading("api-scale", INTERVAL).await?;
    let nova = &own.sim.nova;
    let host = own.sim.player.host("new", "192.0.2.10");
    add_computes(&own).await?;
    let _broker = computes::cell(&own, &own.sim).await?;
    let _other = computes::cell_of(&own, &own.sim, OTHER_CELL, "nova-cell2-transport").await?;
    let all_up = format!("{HALF} of {HALF} computes are up");
    says_of_cell(&own, CELL, "ComputesUp", &all_up).await?;
    let one_down = format!("{} of {HALF} computes are up; down: {COMPUTE}", HALF - 1);
    says_of_cell(&own, OTHER_CELL, "ComputesDown", &one_down).await?;
    reaches(&own, "ServiceDown", READ).await?;

    // A nova that waits for a cell does not answer. However long the deployment takes, no reading ends
    // before it: one that waited for a reading would not come to its end.
    is_silent(nova).await?;
    computes::admit(&own, &[&host], OTHER_CELL).await?;
    computes::join(&own, &host, None).await?;
    computes::settled(&own, &host).await?;
    nova.heal();
    hangs(nova).await?;
    let begun = Instant::now();
    // Only that reading is answered, after a minute: it alone can show that the compute is up.
    reaches(&own, "ServiceUp", HANGS + READ).await?;
    ensure!(begun.elapsed() > HANGS / 2, "the reading did not hang");
    // What the next readings show need not wait as long.
    nova.hang_cell(CELL, Duration::from_secs(2));
    nova.heal();
    nova.report(COMPUTE, false);
    let unknown = format!("0 of {HALF} computes are up; {HALF} unknown");
    says_of_cell(&own, CELL, "ComputesUnknown", &unknown).await?;
    reaches(&own, "ServiceDown", READ).await?;
    let one_down = format!("{HALF} of {} computes are up; down: {COMPUTE}", HALF + 1);
    says_of_cell(&own, OTHER_CELL, "ComputesDown", &one_down).await?;
    assert_requests(nova);
    own.done()
}

/// Asserts that each reading requests the services once, and the hypervisors in a full page and an
/// empty one.
fn assert_requests(nova: &Nova) {
    let requests = nova.requests();
    let count = |line: &str| requests.iter().filter(|it| it.line.starts_with(line)).count();
    let (n_readings, n_pages) = (count(SERVICES), count(HYPERVISORS));
    assert!(n_readings >= 3, "{n_readings}");
    // The last reading may have begun just now, with either list first.
    let pages = 2 * (n_readings - 1)..=2 * n_readings + 2;
    assert!(pages.contains(&n_pages), "{n_pages} pages in {n_readings} readings");
    let versions = requests.len() - n_readings - n_pages;
    assert_eq!(versions, 1, "the microversion is negotiated once");
    let times: Vec<Timestamp> =
        requests.iter().filter(|it| it.line.starts_with(SERVICES)).map(|it| it.at).collect();
    // A busy machine delays single requests, so only the whole span is measured; a delay of the
    // first one makes it shorter by less than an interval.
    let span = times[times.len() - 1].duration_since(times[0]).unsigned_abs();
    let pauses = (1..n_readings - 1).map(|_| Duration::from_secs(INTERVAL.into()));
    let least: Duration = pauses.sum();
    assert!(span >= least, "{n_readings} readings within {span:?}");
}

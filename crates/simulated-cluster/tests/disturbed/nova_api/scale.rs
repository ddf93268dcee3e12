//! Many computes, and a cell that does not answer.

use std::time::Instant;

use anyhow::Result;
use api::nova::ExternalCompute;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{HYPERVISORS, SERVICES, cell_reaches, start_reading};
use crate::computes::{self, CELL};
use crate::own::Own;

const COMPUTES: usize = 500;
const OTHER_CELL: &str = "nova-cell2";

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

#[tokio::test]
async fn many_computes_cost_one_reading_and_a_silent_cell_holds_no_other_one_back() -> Result<()> {
    let own = start_reading("api-scale", 5).await?;
    let nova = &own.sim.nova;
    let names = |begin: usize| (begin..COMPUTES).step_by(2).map(|it| format!("n{it}"));
    for (cell, begin) in [(CELL, 0), (OTHER_CELL, 1)] {
        names(begin).for_each(|name| nova.register(&name, cell));
        let adding = names(begin).map(|name| add_compute(&own, name, cell));
        futures::stream::iter(adding).buffer_unordered(16).try_collect::<()>().await?;
    }
    let _broker = computes::cell(&own, &own.sim).await?;
    let _other = computes::cell_of(&own, &own.sim, OTHER_CELL, "nova-cell2-transport").await?;
    let half = COMPUTES / 2;
    let all_up = format!("{half} of {half} computes are up");
    for cell in [CELL, OTHER_CELL] {
        cell_reaches(&own, cell, "ComputesUp", "ComputesUp", &[&all_up]).await?;
    }

    nova.answer_for_cell(CELL, false);
    let unknown = [&*format!("0 of {half} computes are up; {half} unknown")];
    cell_reaches(&own, CELL, "ComputesUp", "ComputesUnknown", &unknown).await?;
    nova.report("n1", false);
    let down = [&*format!("{} of {half} computes are up; down: n1", half - 1)];
    cell_reaches(&own, OTHER_CELL, "ComputesUp", "ComputesDown", &down).await?;
    assert_requests(&own);
    own.done()
}

/// Asserts that each reading requests the services once, and the hypervisors in a full page and an
/// empty one.
fn assert_requests(own: &Own) {
    let requests = own.sim.nova.requests();
    let count = |line: &str| requests.iter().filter(|it| it.line.starts_with(line)).count();
    let (n_readings, n_pages) = (count(SERVICES), count(HYPERVISORS));
    assert!(n_readings >= 3, "{n_readings}");
    // The last reading may have begun just now.
    let pages = 2 * (n_readings - 1)..=2 * n_readings;
    assert!(pages.contains(&n_pages), "{n_pages} pages in {n_readings} readings");
    let versions = requests.len() - n_readings - n_pages;
    assert_eq!(versions, 1, "the microversion is negotiated once");
    let times: Vec<Instant> =
        requests.iter().filter(|it| it.line.starts_with(SERVICES)).map(|it| it.at).collect();
    for pair in times.windows(2) {
        let pause = (pair[1] - pair[0]).as_secs_f64();
        assert!(pause > 4.0, "two readings within {pause} s");
    }
}

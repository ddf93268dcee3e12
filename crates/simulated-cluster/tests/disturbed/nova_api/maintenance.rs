//! Hosts that are drained and removed, with an operator that is killed at its writes to nova.

use anyhow::Result;
use api::dataplane::Node;
use kube::api::PropagationPolicy;
use serde_json::{Value, json};
use simulated_cluster::{Host, Nova, NovaFault, Operator};

use super::health::deployed;
use super::{DRAINED, READ, drain, is_given_back, replace};
use crate::computes::CELL;
use crate::ends::{GOES, cleaned, delete, gone, leftovers};
use crate::own::{Own, PATIENCE};

const SERVICE: &str = "PUT /v2.1/os-services/";
/// The last write of a removal.
const AGENTS: &str = "DELETE /network/v2.0/agents/";
/// The writes of a removal, in nova's order.
const WRITES: [&str; 4] = [
    "DELETE /v2.1/os-services/",
    "PUT /placement/allocations/",
    "DELETE /placement/resource_providers/",
    AGENTS,
];

/// What nova, placement and neutron answer to a write before they carry it out.
const REFUSALS: [NovaFault; 7] = [
    NovaFault::Status(401),
    NovaFault::Status(403),
    NovaFault::Status(409),
    NovaFault::Status(429),
    NovaFault::Status(500),
    NovaFault::Status(503),
    NovaFault::Garbage,
];

/// Lets the next requests with such a line be refused in each way.
fn refuse(nova: &Nova, line: &str) {
    for refusal in REFUSALS {
        nova.fail_next(line, 1, refusal);
    }
}

async fn says_of_node(
    own: &Own,
    host: &Host,
    type_: &str,
    reason: &str,
    words: &[&str],
) -> Result<()> {
    own.reports::<Node>(&host.name, type_, reason, words, READ).await.map(drop)
}

#[tokio::test]
async fn a_host_is_drained_by_live_migration_and_given_back() -> Result<()> {
    let (own, host) = deployed("api-drain").await?;
    let nova = &own.sim.nova;
    nova.register("elsewhere.example.org", CELL);
    let names = ["one", "two"];
    for name in names {
        nova.boot(name, &host.name)?;
    }
    nova.hold_migrations(true);
    // Its answer is lost with the operator that has sent it.
    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    drain(&own, &host.name, json!("migrate")).await?;
    nova.wait_for_total(SERVICE, 1, PATIENCE).await?;
    replace(&own).await?;
    let words = ["2 servers and 2 open migrations", "at most 2 at a time"];
    says_of_node(&own, &host, DRAINED, "Migrating", &words).await?;
    nova.finish_migrations();
    own.good::<Node>(&host.name, &[DRAINED], READ).await?;
    assert_eq!((nova.count(SERVICE), nova.count("POST /v2.1/servers/")), (1, names.len()));
    nova.answer_for_cell(CELL, false);
    says_of_node(&own, &host, DRAINED, "CellNotAnswering", &["start that database"]).await?;
    nova.answer_for_cell(CELL, true);
    own.good::<Node>(&host.name, &[DRAINED], READ).await?;
    drain(&own, &host.name, Value::Null).await?;
    is_given_back(&own, &host.name).await?;
    assert_eq!(nova.count(SERVICE), 2, "disabled once and enabled once");
    own.done()
}

#[tokio::test]
async fn a_host_is_removed_in_novas_order_although_writes_fail_and_the_operator_dies() -> Result<()>
{
    let (own, host) = deployed("api-removal").await?;
    let nova = &own.sim.nova;
    let server = nova.boot("one", &host.name)?;
    nova.add_agent(&host.name, "neutron-ovn-metadata-agent");
    nova.agents_report(&host.name, true);
    nova.allocate("00000000-0000-4000-8000-00000000000a", &host.name)?;
    refuse(nova, SERVICE);
    delete(&own, &host.name, PropagationPolicy::Background).await?;
    nova.wait_for_total(SERVICE, REFUSALS.len() + 1, PATIENCE).await?;
    let compute = "nova.openstack.org/Compute";
    says_of_node(&own, &host, compute, "ServersOnHost", &["1 server and", "skip-cleanup"]).await?;
    assert_eq!(cleaned(&host), 0, "nothing is stopped under a server");
    // They happen in the opposite order.
    for line in WRITES {
        nova.fail_next(line, 1, NovaFault::LostAnswer);
        refuse(nova, line);
    }
    nova.delete_server(&server);
    let n_sent = REFUSALS.len() + 1;
    for line in WRITES {
        if line == AGENTS {
            let words = ["still report to neutron: neutron-ovn-metadata-agent.", "skip-cleanup"];
            says_of_node(&own, &host, compute, "AgentsReport", &words).await?;
            nova.agents_report(&host.name, false);
        }
        nova.wait_for_total(line, n_sent, PATIENCE).await?;
        own.replace(&[Operator::Nova]).await?;
    }
    gone(&own, &host.name, GOES).await?;
    assert_eq!(leftovers(&own).await?, []);
    assert_eq!((cleaned(&host), WRITES.map(|it| nova.count(it))), (1, [n_sent; 4]));
    let requests = nova.requests();
    let at = WRITES.map(|line| requests.iter().position(|it| it.line.starts_with(line)));
    assert!(at.is_sorted(), "{at:?}");
    own.done()
}

//! An operator that is killed before and after each of its requests to nova, placement and neutron:
//! all hosts come to the end at which they would be without it.

use anyhow::{Context as _, Result, ensure};
use api::dataplane::Node;
use e2e::holds;
use kube::api::PropagationPolicy;
use serde_json::{Value, json};
use simulated_cluster::{Host, Nova, NovaFault, Operator};

use super::failing_api::{add_region, cell};
use super::health::versions;
use super::{HYPERVISORS, READ, SERVICES, is_up, start};
use crate::computes;
use crate::ends::{GOES, delete, gone, held_in};
use crate::own::{Own, PATIENCE};

/// What a host is at when the operator is killed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Does {
    /// It is in service, and its nova is read.
    Read,
    /// It is drained by live migration.
    Drain,
    /// It is given back after a drain.
    Enable,
    /// It is removed.
    Remove,
}
use Does::{Drain, Enable, Read, Remove};

/// The request has no effect: the operator is killed before it.
const BEFORE: NovaFault = NovaFault::Silence;
/// The request has its effect: the operator is killed after it.
const AFTER: NovaFault = NovaFault::LostAnswer;

/// Region → what its host is at, and the request at which the operator is killed. Of what only
/// reads, before and after are the same.
const KILLS: [(&str, Does, &str, NovaFault); 22] = [
    ("read-services", Read, SERVICES, BEFORE),
    ("read-hypervisors", Read, HYPERVISORS, BEFORE),
    ("drain-disable", Drain, "PUT /v2.1/os-services/", BEFORE),
    ("drain-disabled", Drain, "PUT /v2.1/os-services/", AFTER),
    ("drain-servers", Drain, "GET /v2.1/servers/detail?", BEFORE),
    ("drain-migrations", Drain, "GET /v2.1/os-migrations?", BEFORE),
    ("drain-migrate", Drain, "POST /v2.1/servers/", BEFORE),
    ("drain-migrated", Drain, "POST /v2.1/servers/", AFTER),
    ("enable", Enable, "PUT /v2.1/os-services/", BEFORE),
    ("enabled", Enable, "PUT /v2.1/os-services/", AFTER),
    ("remove-servers", Remove, "GET /v2.1/servers?", BEFORE),
    ("remove-service", Remove, "DELETE /v2.1/os-services/", BEFORE),
    ("removed-service", Remove, "DELETE /v2.1/os-services/", AFTER),
    ("remove-read-provider", Remove, "GET /placement/resource_providers/", BEFORE),
    ("remove-read-share", Remove, "GET /placement/allocations/", BEFORE),
    ("remove-share", Remove, "PUT /placement/allocations/", BEFORE),
    ("removed-share", Remove, "PUT /placement/allocations/", AFTER),
    ("remove-provider", Remove, "DELETE /placement/resource_providers/", BEFORE),
    ("removed-provider", Remove, "DELETE /placement/resource_providers/", AFTER),
    ("remove-read-agents", Remove, "GET /network/v2.0/agents", BEFORE),
    ("remove-agent", Remove, "DELETE /network/v2.0/agents/", BEFORE),
    ("removed-agent", Remove, "DELETE /network/v2.0/agents/", AFTER),
];

const DRAINED: &str = "nova.openstack.org/Drained";

/// One host in a region of its own.
struct Case {
    does: Does,
    line: &'static str,
    fault: NovaFault,
    host: Host,
    nova: Nova,
}

#[tokio::test]
async fn an_operator_killed_at_any_request_repeats_none_that_had_its_effect() -> Result<()> {
    let own = start("api-killed-at").await?;
    let cases = cases(&own).await?;
    let mut versions_before = Vec::new();
    let mut totals = Vec::new();
    for case in &cases {
        case.prepare(&own).await?;
    }
    for case in &cases {
        versions_before.push(versions(&own, &case.host.name, &cell(&case.host.name)).await?);
        totals.push(case.nova.count(case.line) + 1);
        case.nova.fail_next(case.line, 1, case.fault);
    }
    for case in &cases {
        case.begin(&own).await?;
    }
    for (case, total) in cases.iter().zip(&totals) {
        let waited = case.nova.wait_for_total(case.line, *total, PATIENCE).await;
        waited.with_context(|| case.host.name.clone())?;
    }
    own.replace(&[Operator::Nova]).await?;
    for case in &cases {
        case.nova.heal();
    }
    for ((case, total), before) in cases.iter().zip(totals).zip(versions_before) {
        case.ends(&own, total, before).await.with_context(|| case.host.name.clone())?;
    }
    own.done()
}

/// Deploys the host of each case, until it is up in its nova.
async fn cases(own: &Own) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (idx, (region, does, line, fault)) in KILLS.into_iter().enumerate() {
        let nova = add_region(own, region).await?;
        let host = own.sim.player.host(region, &format!("192.0.2.{}", 10 + idx));
        cases.push(Case { does, line, fault, host, nova });
    }
    let key = cases.first().context("no case")?.host.ssh_secret()[0].1.clone();
    for case in &cases {
        case.host.accept(&key);
    }
    let hosts: Vec<&Host> = cases.iter().map(|it| &it.host).collect();
    computes::admit(own, &hosts, &cell(KILLS[0].0)).await?;
    for host in &hosts {
        computes::join(own, host, Some(&cell(&host.name))).await?;
    }
    for host in &hosts {
        computes::settled(own, host).await?;
        is_up(own, host).await?;
    }
    Ok(cases)
}

impl Case {
    /// Prepares what the requests are about.
    async fn prepare(&self, own: &Own) -> Result<()> {
        let name = &self.host.name;
        match self.does {
            Read => {}
            Drain => {
                self.nova.register("elsewhere.example.org", &cell(name));
                self.nova.boot("one", name)?;
            }
            Enable => {
                self.annotate(own, json!("wait")).await?;
                self.is_drained(own).await?;
            }
            Remove => {
                // A share that no server accounts for keeps the provider.
                self.nova.allocate("00000000-0000-4000-8000-00000000000a", name)?;
                self.nova.add_agent(name, "neutron-ovn-metadata-agent");
                held_in(own, name, &cell(name)).await?;
            }
        }
        Ok(())
    }

    async fn begin(&self, own: &Own) -> Result<()> {
        match self.does {
            Read => Ok(()),
            Drain => self.annotate(own, json!("migrate")).await,
            Enable => self.annotate(own, Value::Null).await,
            Remove => delete(own, &self.host.name, PropagationPolicy::Background).await,
        }
    }

    /// Waits for the end of the case; a write that had its effect is not sent again.
    async fn ends(&self, own: &Own, total: usize, before: [Option<String>; 3]) -> Result<()> {
        let name = &self.host.name;
        match self.does {
            Read => {
                self.nova.wait_for_requests(self.line, 3).await?;
                let after = versions(own, name, &cell(name)).await?;
                ensure!(after == before, "{after:?} where {before:?} was");
                return Ok(());
            }
            Drain => self.is_drained(own).await?,
            Enable => {
                let conditions = e2e::journey::conditions;
                let is_quiet = |it: &Node| conditions(it).iter().all(|it| it.type_ != DRAINED);
                own.wait::<Node>(name, "given back", READ, is_quiet).await?;
            }
            Remove => gone(own, name, GOES).await?,
        }
        let is_write = !self.line.starts_with("GET ");
        let n_repeated = usize::from(self.fault == BEFORE);
        let n_sent = self.nova.count(self.line);
        ensure!(!is_write || n_sent == total + n_repeated, "{} was sent {n_sent} times", self.line);
        Ok(())
    }

    async fn annotate(&self, own: &Own, drain: Value) -> Result<()> {
        let annotations = json!({ "nova.openstack.org/drain": drain });
        let change = json!({ "metadata": { "annotations": annotations } });
        own.merge::<Node>(&self.host.name, change).await.map(drop)
    }

    async fn is_drained(&self, own: &Own) -> Result<()> {
        let is_drained = |it: &Node| holds(e2e::journey::conditions(it), DRAINED);
        own.wait::<Node>(&self.host.name, "drained", READ, is_drained).await.map(drop)
    }
}

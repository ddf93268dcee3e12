//! An operator that is killed before and after each of its requests to Keystone, nova, placement and
//! neutron: all hosts come to the end at which they would be without it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use api::dataplane::Node;
use kube::api::PropagationPolicy;
use serde_json::{Value, json};
use simulated_cluster::{Host, Nova, NovaFault, Operator};

use super::failing_api::{add_cell, add_region, cell};
use super::health::versions;
use super::leftovers::{let_go_of, none_in};
use super::{
    DRAINED, HYPERVISORS, READ, SERVICES, cell_reaches, drain, is_given_back, is_up, reaches,
    share_key, start,
};
use crate::computes;
use crate::ends::{GOES, delete, gone, held_in};
use crate::own::{Own, PATIENCE};

/// What a host is at when the operator is killed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Does {
    /// Its cell is created, and its nova is read for the first time; there is no host.
    Begin,
    /// It is in service, and its nova is read.
    Read,
    /// It is drained by live migration.
    Drain,
    /// It is given back after a drain.
    Enable,
    /// It is removed.
    Remove,
    /// It was let go while its nova failed, and what it left is deleted.
    Leave,
}
use Does::{Begin, Drain, Enable, Leave, Read, Remove};

/// The request has no effect: the operator is killed before it.
pub(super) const BEFORE: NovaFault = NovaFault::Silence;
/// The request has its effect: the operator is killed after it.
pub(super) const AFTER: NovaFault = NovaFault::LostAnswer;

/// The login, which is sent to Keystone.
const LOGIN: &str = "POST /v3/auth/tokens";
const OF_HOST: &str = "GET /v2.1/os-services?binary=nova-compute&host=";
const CHANGES: &str = "PUT /v2.1/os-services/";
const MIGRATES: &str = "POST /v2.1/servers/";
const DELETES: &str = "DELETE /v2.1/os-services/";
const SHARES: &str = "PUT /placement/allocations/";
const PROVIDERS: &str = "DELETE /placement/resource_providers/";
/// The first request to a placement; those that follow begin so too.
const PLACEMENT: &str = "GET /placement/";
/// The hypervisor of one UUID, which is not that of the list.
const HYPERVISOR: &str = "GET /v2.1/os-hypervisors/00000000-";
const AGENTS: &str = "DELETE /network/v2.0/agents/";

/// The region whose hypervisors cannot be read, so that the UUID of the provider is not known.
const UNLISTED: &str = "unlisted";

/// The region in which the operator is killed at the second reading of a service within one pass.
const AGAIN: &str = "again";

/// Region with one host → what that is at, and the request at which the operator is killed. Of what
/// only reads, before and after are the same.
type Kill = (&'static str, Does, &'static str, NovaFault);

/// What happens when the operator is killed for the first time.
const FIRST: [Kill; 11] = [
    ("login", Begin, LOGIN, BEFORE),
    (AGAIN, Drain, OF_HOST, BEFORE),
    ("a", Read, SERVICES, BEFORE),
    ("b", Read, HYPERVISORS, BEFORE),
    ("c", Drain, OF_HOST, BEFORE),
    ("d", Drain, CHANGES, BEFORE),
    ("e", Drain, CHANGES, AFTER),
    ("f", Drain, "GET /v2.1/servers/detail?", BEFORE),
    ("g", Drain, "GET /v2.1/os-migrations?", BEFORE),
    ("h", Drain, MIGRATES, BEFORE),
    ("i", Drain, MIGRATES, AFTER),
];

/// The same for the second time. The first request to a nova, and to a placement, reads its version.
const SECOND: [Kill; 23] = [
    ("version", Begin, "GET /v2.1/", BEFORE),
    ("c", Enable, CHANGES, BEFORE),
    ("d", Enable, CHANGES, AFTER),
    ("a", Remove, "GET /v2.1/servers?", BEFORE),
    ("b", Remove, DELETES, BEFORE),
    ("e", Remove, DELETES, AFTER),
    ("f", Remove, "GET /placement/resource_providers/", BEFORE),
    (UNLISTED, Remove, "GET /placement/resource_providers?name=", BEFORE),
    ("g", Remove, "GET /placement/resource_providers/*/allocations", BEFORE),
    ("h", Remove, "GET /placement/allocations/", BEFORE),
    ("i", Remove, SHARES, BEFORE),
    ("j", Remove, SHARES, AFTER),
    ("k", Remove, PROVIDERS, BEFORE),
    ("l", Remove, PROVIDERS, AFTER),
    ("m", Remove, "GET /v2.1/os-aggregates", BEFORE),
    ("n", Remove, "GET /network/v2.0/agents", BEFORE),
    ("o", Remove, AGENTS, BEFORE),
    ("p", Remove, AGENTS, AFTER),
    ("q", Remove, CHANGES, BEFORE),
    ("r", Remove, CHANGES, AFTER),
    ("s", Remove, "GET /v2.1/os-migrations?", BEFORE),
    ("u", Remove, PLACEMENT, BEFORE),
    ("v", Remove, HYPERVISOR, BEFORE),
];

/// The same for the third time.
const THIRD: [Kill; 4] = [
    ("c", Leave, DELETES, BEFORE),
    ("d", Leave, DELETES, AFTER),
    (AGAIN, Leave, PROVIDERS, BEFORE),
    ("t", Leave, PROVIDERS, AFTER),
];

/// One kill.
struct Case {
    /// The region, and the name of the host in it.
    region: &'static str,
    does: Does,
    line: &'static str,
    fault: NovaFault,
    nova: Nova,
    /// How many such requests there are with the one at which the operator is killed.
    total: usize,
    /// The versions of the objects before that, where nothing is to be written.
    before: Option<[Option<String>; 3]>,
}

#[tokio::test]
async fn an_operator_killed_at_any_request_repeats_none_that_had_its_effect() -> Result<()> {
    let own = start("api-killed-at").await?;
    let novas = deployed(&own).await?;
    for kills in [&FIRST[..], &SECOND[..], &THIRD[..]] {
        let mut cases = Vec::new();
        for kill in kills {
            let nova = novas.get(kill.0).cloned().context("no nova")?;
            cases.push(Case::prepared(&own, *kill, nova).await?);
        }
        is_killed(&own, cases).await?;
    }
    own.done()
}

/// Kills the operator at the requests of all cases, and waits for their ends.
async fn is_killed(own: &Own, mut cases: Vec<Case>) -> Result<()> {
    for case in &mut cases {
        case.interrupt(own).await?;
    }
    for case in &cases {
        case.begin(own).await?;
    }
    for case in &cases {
        case.arrives(own).await.with_context(|| case.region)?;
    }
    own.replace(&[Operator::Nova]).await?;
    own.sim.keystone.hold_logins(false);
    for case in &cases {
        case.nova.heal();
    }
    for case in &cases {
        case.ends(own).await.with_context(|| case.region)?;
    }
    Ok(())
}

/// Starts the nova of each region, and deploys the hosts until these are up there.
async fn deployed(own: &Own) -> Result<BTreeMap<&'static str, Nova>> {
    let (mut novas, mut hosts) = (BTreeMap::new(), Vec::<Host>::new());
    for (region, does, ..) in FIRST.into_iter().chain(SECOND).chain(THIRD) {
        if novas.contains_key(region) {
            continue;
        }
        if does == Begin {
            novas.insert(region, own.sim.nova_of(region).await?);
            continue;
        }
        novas.insert(region, add_region(own, region).await?);
        hosts.push(own.sim.player.host(region, &format!("192.0.2.{}", 10 + hosts.len())));
    }
    novas[UNLISTED].fail(HYPERVISORS, NovaFault::Status(503));
    let first = hosts.first().context("no host")?;
    share_key(&hosts);
    computes::admit(own, &hosts.iter().collect::<Vec<_>>(), &cell(&first.name)).await?;
    for host in &hosts {
        computes::join(own, host, Some(&cell(&host.name))).await?;
    }
    for host in &hosts {
        computes::settled(own, host).await?;
        if host.name == UNLISTED {
            reaches(own, host, "ServiceUp", "ServiceUp").await?;
        } else {
            is_up(own, host).await?;
        }
    }
    Ok(novas)
}

impl Case {
    /// Prepares what the requests are about.
    async fn prepared(own: &Own, (region, does, line, fault): Kill, nova: Nova) -> Result<Self> {
        let case = Self { region, does, line, fault, nova, total: 0, before: None };
        let nova = &case.nova;
        match does {
            Begin | Read => {}
            Drain => {
                nova.register("elsewhere.example.org", &cell(region));
                nova.boot("one", region)?;
            }
            Enable => case.is_drained(own).await?,
            Leave => {
                let_go_of(own, nova, region).await?;
                if line == PROVIDERS {
                    // With a share the provider outlives its service.
                    nova.allocate("00000000-0000-4000-8000-00000000000a", region)?;
                }
                nova.report(region, false);
            }
            Remove => {
                // A share that no server accounts for keeps the provider.
                nova.allocate("00000000-0000-4000-8000-00000000000a", region)?;
                nova.add_agent(region, "neutron-ovn-metadata-agent");
                if line == HYPERVISOR {
                    nova.add_stale_provider(region);
                }
                held_in(own, region, &cell(region)).await?;
            }
        }
        Ok(case)
    }

    /// Lets the next such request wait for its effect or for its answer.
    async fn interrupt(&mut self, own: &Own) -> Result<()> {
        if self.does == Read {
            let cell = cell(self.region);
            // They say so after the compute does.
            let words = ["1 of 1 computes are up"];
            cell_reaches(own, &cell, "ComputesUp", "ComputesUp", &words).await?;
            own.good::<Node>(self.region, &["nova.openstack.org/ServiceUp"], READ).await?;
            self.before = Some(versions(own, self.region, &cell).await?);
        }
        if self.line == LOGIN {
            self.total = own.sim.keystone.n_logins() + 1;
            own.sim.keystone.hold_logins(true);
        } else {
            let nth = if (self.region, self.does) == (AGAIN, Drain) { 2 } else { 1 };
            self.total = self.nova.count(self.line) + nth;
            self.nova.fail_nth(self.line, nth, self.fault);
        }
        Ok(())
    }

    async fn begin(&self, own: &Own) -> Result<()> {
        match self.does {
            Begin => add_cell(own, self.region).await,
            Read => Ok(()),
            Drain => drain(own, self.region, json!("migrate")).await,
            Enable => drain(own, self.region, Value::Null).await,
            Remove => delete(own, self.region, PropagationPolicy::Background).await,
            Leave => {
                self.nova.answer("");
                Ok(())
            }
        }
    }

    async fn arrives(&self, own: &Own) -> Result<()> {
        if self.line == LOGIN {
            return own.sim.keystone.wait_for_logins(self.total, PATIENCE).await;
        }
        self.nova.wait_for_total(self.line, self.total, PATIENCE).await
    }

    /// Waits for the end of the case; a write that had its effect is not sent again.
    async fn ends(&self, own: &Own) -> Result<()> {
        let name = self.region;
        match self.does {
            Begin => {
                cell_reaches(own, &cell(name), "NovaAPIReady", "Answered", &[]).await?;
                return Ok(());
            }
            Read => {
                self.nova.wait_for_requests(self.line, 3).await?;
                let after = Some(versions(own, name, &cell(name)).await?);
                ensure!(after == self.before, "{after:?} where {:?} was", self.before);
                return Ok(());
            }
            Drain => self.is_drained(own).await?,
            Enable => is_given_back(own, name).await?,
            Remove => gone(own, name, GOES).await?,
            Leave => none_in(own, &cell(name)).await?,
        }
        let is_write = !self.line.starts_with("GET ");
        let n_expected = self.total + usize::from(self.fault == BEFORE);
        let n_sent = self.nova.count(self.line);
        ensure!(!is_write || n_sent == n_expected, "{} was sent {n_sent} times", self.line);
        Ok(())
    }

    async fn is_drained(&self, own: &Own) -> Result<()> {
        own.good::<Node>(self.region, &[DRAINED], READ).await.map(drop)
    }
}

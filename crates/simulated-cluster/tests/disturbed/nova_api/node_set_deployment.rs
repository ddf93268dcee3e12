//! A deployment of a node set that drains each host before it disturbs it, by both operators, which
//! are killed meanwhile.

use anyhow::Result;
use api::dataplane::{Deployment, HostState, Node, NodeSet};
use api::nova::ExternalCompute;
use e2e::journey::RUN;
use e2e::says;
use serde_json::json;
use simulated_cluster::{Behaviour, Operator};

use super::node_set_removal::{SERVICE, World};
use super::node_sets::{SET, reaches};
use super::rollout::assert_one_by_one;
use super::{READ, disabled, is_given_back};
use crate::own::PATIENCE;

const ROLLOUT: &str = "nova.openstack.org/drain: rollout";
/// The operators that work together.
const BOTH: [Operator; 2] = [Operator::DataPlane, Operator::Nova];

impl World {
    /// Lets deployments of the node set drain its hosts, and waits until that is reported.
    async fn drain_before(&self) -> Result<()> {
        self.own.annotate::<NodeSet>(SET, "nova.openstack.org/drain-before", "true").await?;
        let holds = |it: &Node| it.disruption_holders().iter().any(|it| it.holds);
        for host in [&self.host, &self.other] {
            self.own.wait::<Node>(&host.name, "restricted", READ, holds).await?;
        }
        Ok(())
    }

    async fn deploy(&self, name: &str) -> Result<()> {
        let spec = json!({ "nodeSets": [SET], "maxUnavailable": 1, "backoffLimit": 0 });
        self.own.create::<Deployment>(name, spec).await.map(drop)
    }

    async fn deployment_reaches(&self, name: &str, reason: &str, words: &[&str]) -> Result<()> {
        let is_there = |it: &Deployment| {
            let status = it.status.as_ref();
            let conditions = status.map(|it| it.conditions.as_slice()).unwrap_or_default();
            says(conditions, "Ready", reason, words)
        };
        self.own.wait::<Deployment>(name, reason, RUN, is_there).await.map(drop)
    }

    /// Waits until all hosts are deployed, no drain of them is reported, and nova has shown them since.
    async fn is_given_back(&self) -> Result<()> {
        for host in [&self.host, &self.other] {
            let is_there = |it: &Node| {
                state(it) == Some(HostState::Deployed) && it.disruption_target().is_none()
            };
            self.own.wait::<Node>(&host.name, "deployed", PATIENCE, is_there).await?;
            is_given_back(&self.own, &host.name).await?;
            self.own.good::<ExternalCompute>(&host.name, &["Ready"], PATIENCE).await?;
        }
        Ok(())
    }

    /// Returns how often a run came to each host.
    fn visits(&self) -> [usize; 2] {
        [&self.host, &self.other].map(|it| it.visits().len())
    }
}

/// Returns how far the deployment is that is at a host, or was last.
fn state(node: &Node) -> Option<HostState> {
    Some(node.status.as_ref()?.deployment.as_ref()?.state)
}

#[tokio::test]
async fn each_host_of_a_node_set_is_drained_deployed_and_given_back_before_the_next_one()
-> Result<()> {
    let world = World::new("api-set-deployment").await?;
    let (own, nova) = (&world.own, &world.own.sim.nova);
    let marks = || -> Result<_> {
        Ok([disabled(own, &world.host.name)?, disabled(own, &world.other.name)?])
    };
    let first_alone = [Some(ROLLOUT.to_owned()), None];
    world.deployment_reaches("first", "Ready", &[]).await?;
    // A host is in service once its node says so.
    world.is_given_back().await?;
    world.drain_before().await?;
    nova.boot("one", &world.host.name)?;
    nova.hold_migrations(true);

    world.deploy("second").await?;
    reaches(own, &world.host, "Migrating", &["1 server and"]).await?;
    let words = ["compute-0", "nova.openstack.org"];
    world.deployment_reaches("second", "AwaitingDisruption", &words).await?;
    own.replace(&BOTH).await?;
    nova.wait_for_requests("GET /v2.1/servers", 1).await?;
    assert_eq!((world.visits(), marks()?), ([1, 1], first_alone.clone()), "it is not empty yet");

    world.host.hold(SERVICE);
    nova.hold_migrations(false);
    nova.finish_migrations();
    let is_at_it =
        |it: &Node| state(it) == Some(HostState::Deploying) && it.disruption_target().is_none();
    own.wait::<Node>(&world.host.name, "at the first host", RUN, is_at_it).await?;
    own.replace(&BOTH).await?;
    nova.report(&world.host.name, false);
    world.host.release();
    reaches(own, &world.host, "WaitingForService", &[]).await?;
    assert_eq!((world.visits(), marks()?), ([2, 1], first_alone), "its service is not up yet");

    nova.report(&world.host.name, true);
    world.deployment_reaches("second", "Ready", &[]).await?;
    world.is_given_back().await?;
    assert_eq!((world.visits(), marks()?), ([2, 2], [None, None]));
    assert_one_by_one(own, &[&world.host, &world.other])?;
    for host in [&world.host, &world.other] {
        let variables = &host.visits()[1].files["/runner/env/extravars"];
        assert!(variables.contains(r#""edpm_reboot_drained":true"#), "{variables}");
    }
    fails(&world).await?;
    world.own.done()
}

/// A deployment that fails on the first host stops there, and leaves the host drained until a
/// correction has succeeded.
async fn fails(world: &World) -> Result<()> {
    let own = &world.own;
    world.host.behave(SERVICE, Behaviour::failed("Nothing forbids it", "non-zero return code"));
    world.deploy("third").await?;
    let words = ["compute-0", "Nothing forbids it"];
    world.deployment_reaches("third", "BackoffLimitExceeded", &words).await?;
    assert_eq!(world.visits(), [3, 2]);
    assert_eq!(disabled(own, &world.host.name)?.as_deref(), Some(ROLLOUT));
    assert_eq!(disabled(own, &world.other.name)?, None);
    world.host.behave(SERVICE, Behaviour::Done);
    world.deploy("fourth").await?;
    world.deployment_reaches("fourth", "Ready", &[]).await?;
    world.is_given_back().await?;
    assert_eq!(world.visits(), [4, 3]);
    assert_eq!(disabled(own, &world.host.name)?, None);
    Ok(())
}

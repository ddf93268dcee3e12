//! Who of a group counts for its limits, and what is told of a host that they hold back.

use common::engine::rollout::{Hold, Tally, named};
use kube::ResourceExt;

use crate::group::host::Judged;

/// Why a host waits, in words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Held {
    /// What it waits for.
    pub hold: Hold,
    /// The first hosts that hold places and fail, by name.
    pub failing: String,
}

impl Held {
    /// What a human reads of the host.
    pub fn text(&self) -> String {
        match self.hold {
            Hold::Turn => "It waits for its turn: as many hosts as maxUnavailable of the role \
                           allows are being deployed or fail."
                .to_owned(),
            Hold::Stuck => format!("It waits for its turn: {}", self.way_on()),
            Hold::Paused => "It waits: pauseOnFailure of the role is set, and a host of the role \
                             fails; see the role."
                .to_owned(),
        }
    }

    /// Who holds the places, and what frees them.
    pub fn way_on(&self) -> String {
        format!(
            "all places that maxUnavailable of the role allows are held by hosts that fail: {}. \
             Correct what their conditions name, and what is corrected is deployed to them first; or \
             raise deployStrategy.maxUnavailable of the role, or take them out of the count with \
             deployStrategy.deploy: false on their nodes.",
            self.failing
        )
    }
}

/// The hosts that count: those whose own `deploy` is not false.
fn counted(hosts: &[Judged]) -> impl Iterator<Item = &Judged> {
    let own = |it: &&Judged| it.node.spec.deploy_strategy.as_ref().and_then(|it| it.deploy);
    hosts.iter().filter(move |it| own(it) != Some(false))
}

/// The hosts of a group, counted.
pub fn tally(hosts: &[Judged]) -> Tally {
    let is_trying = |it: &&Judged| it.is_at_work() && it.standing().is_retry();
    let trying = counted(hosts).filter(is_trying).count();
    Tally::of(counted(hosts).map(Judged::standing)).with_trying(trying)
}

/// The first hosts that hold places and fail, by name.
pub fn failing(hosts: &[Judged]) -> String {
    let fails = |it: &&Judged| it.standing().holds_place() && it.standing().fails();
    let names: Vec<String> = counted(hosts).filter(fails).map(|it| it.node.name_any()).collect();
    named(&names)
}

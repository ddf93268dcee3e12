//! Nodes of a large role that are created one after the other: a batch that is not full waits a moment for
//! those that follow, so that as few runs as possible deploy them.

use api::dataplane::Node;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use operator_core::run_engine::host_key::SCAN_LIMIT;

use crate::role::observed::Observed;

/// How long after its creation a node may be followed by a further one.
const PAUSE: SignedDuration = SignedDuration::from_secs(3);
/// How long no host waits for its first service after the creation of its node, however many follow: in
/// this time some thousand nodes are created, whose runs would slow down the API server meanwhile.
const LONGEST: SignedDuration = SignedDuration::from_mins(2);
/// The same for a later service.
const LONGEST_BETWEEN: SignedDuration = SignedDuration::from_secs(30);

/// Whether nodes of a role still arrive.
pub struct Arrivals {
    /// The hosts of a full batch.
    full: usize,
    /// Until when further nodes are awaited; `None` where none came lately, or all share one run.
    pub until: Option<Timestamp>,
    now: Timestamp,
}

impl Arrivals {
    /// Returns whether nodes of a group still arrive.
    pub fn of(seen: &Observed, now: Timestamp) -> Self {
        let batch_size = seen.batch_size();
        // The clock of the API server may be ahead.
        let created = seen.nodes.iter().filter_map(|it| created(it)).filter(|it| *it <= now);
        let youngest = created.max().filter(|_| seen.nodes.len() > batch_size);
        let until = youngest.map(|it| it.saturating_add(PAUSE).unwrap_or(it));
        let until = until.filter(|it| *it > now);
        Self { full: batch_size.min(SCAN_LIMIT), until, now }
    }

    /// Returns whether a batch of hosts waits for further ones: it is not full, and none of its nodes has
    /// been there for long; `is_first` says whether their first service is to be deployed.
    pub fn are_awaited<'a>(&self, nodes: impl Iterator<Item = &'a Node>, is_first: bool) -> bool {
        let longest = if is_first { LONGEST } else { LONGEST_BETWEEN };
        let is_new = |it: Timestamp| it <= self.now && self.now.duration_since(it) < longest;
        let nodes: Vec<&Node> = nodes.collect();
        self.until.is_some()
            && nodes.len() < self.full
            && nodes.iter().all(|it| created(it).is_some_and(is_new))
    }
}

fn created(node: &Node) -> Option<Timestamp> {
    node.creation_timestamp().map(|it| it.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(created: Timestamp) -> Node {
        let mut node = Node::new("n", api::dataplane::NodeSpec::default());
        let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created);
        node.metadata.creation_timestamp = Some(time);
        node
    }

    #[test]
    fn a_batch_waits_that_is_not_full_and_has_new_hosts_alone() {
        let at = |it| Timestamp::from_second(it).unwrap();
        let arrivals = |until| Arrivals { full: 3, until, now: at(200) };
        let of = |until, seconds: &[i64], is_first| {
            let nodes: Vec<Node> = seconds.iter().map(|it| node(at(*it))).collect();
            arrivals(until).are_awaited(nodes.iter(), is_first)
        };
        let waits = |until, seconds| of(until, seconds, true);
        let until = Some(at(202));
        assert!(waits(until, &[199, 81]));
        assert!(!waits(until, &[199, 80]), "no host waits for longer");
        assert!(of(until, &[199, 171], false) && !of(until, &[199, 170], false));
        assert!(!waits(until, &[199, 199, 199]), "the batch is full");
        assert!(!waits(None, &[199]), "no node follows");
    }
}

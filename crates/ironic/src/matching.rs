//! Assigns machines to hosts, and reports why a host gets none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::baremetal::Machine;
use serde_json::Value;

use crate::node::Node;
use crate::state::State;

/// How many reasons are reported why machines do not match.
const TOLD: usize = 10;

/// The requirements of a host on its machine.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// The required properties.
    pub machine: Machine,
    /// Whether the machine already runs and is only adopted.
    pub adopt: bool,
    /// Whether the machine may be managed and cleaned first.
    pub provide: bool,
}

impl Terms {
    /// Merges the requirements of set and host; the host's take precedence.
    ///
    /// `adopt` and `provide` of the result are false.
    pub fn merged(set: &Machine, host: &Machine) -> Self {
        let mut machine = set.clone();
        machine.node = host.node.clone().or(machine.node);
        machine.resource_class = host.resource_class.clone().or(machine.resource_class);
        let more = host.traits.iter().filter(|it| !set.traits.contains(it));
        machine.traits.extend(more.cloned());
        machine.capabilities.extend(host.capabilities.clone());
        machine.extra.extend(host.extra.clone());
        Self { machine, ..Self::default() }
    }
}

/// Reasons and the number of machines that each excludes, in the order of checking.
pub type Excluded = Vec<(String, usize)>;

/// Why no machine matches a host: reasons with the number of machines that they exclude.
///
/// Each machine is counted at the first requirement that it fails.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NoMachine {
    /// How many machines Ironic has.
    pub total: usize,
    /// Why no machine matches.
    pub excluded: Excluded,
}

impl fmt::Display for NoMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, excluded } = self;
        if *total == 0 {
            return f.write_str("Ironic has no machine; enroll one");
        }
        let reasons: Vec<String> =
            excluded.iter().take(TOLD).map(|(lack, n)| format!("{n} {lack}")).collect();
        write!(f, "none of {total} machines is suitable: {}", reasons.join(", "))?;
        match excluded.get(TOLD..).map(|it| it.iter().map(|it| it.1).sum::<usize>()) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, ", {more} for other reasons"),
        }
    }
}

/// Assigns a machine to each host that can have one; the other hosts get the reason why not.
///
/// Machines that are busy and those that are `avoided`, by UUID, come last, and available machines
/// come before those that must be cleaned first. Otherwise the order is by name; see [`assigned`].
pub fn assign<'a>(
    hosts: &BTreeMap<String, Terms>,
    nodes: &'a [Node],
    avoided: &BTreeSet<&str>,
) -> BTreeMap<String, Result<&'a Node, NoMachine>> {
    let mut order: Vec<&Node> = nodes.iter().collect();
    let is_last = |it: &Node| it.is_busy() || avoided.contains(it.uuid.as_str());
    order.sort_by_key(|it| (is_last(it), rank(it), it.title(), &it.uuid));
    let none = |excluded| NoMachine { total: nodes.len(), excluded };
    let assigned = assigned(hosts, &order, lack).into_iter();
    assigned.map(|(host, it)| (host, it.map_err(none))).collect()
}

/// Assigns a machine to each host that can have one. The others get the reasons why not, by which each
/// machine is excluded first; `lack` returns that reason, with its place in the order of checking.
///
/// The number of hosts with a machine is maximal: a host that matches any machine leaves the only
/// matching one to another host. Otherwise the first host by name gets the first machine.
pub fn assigned<'a, T, M>(
    hosts: &BTreeMap<String, T>,
    machines: &[&'a M],
    lack: impl Fn(&M, &T) -> Option<(usize, String)>,
) -> BTreeMap<String, Result<&'a M, Excluded>> {
    let fits = |terms: &T| -> Vec<usize> {
        (0..machines.len()).filter(|it| lack(machines[*it], terms).is_none()).collect()
    };
    let given = matched(&hosts.values().map(fits).collect::<Vec<_>>(), machines.len());
    let excluded = |terms: &T| {
        // It is ordered: the author of a set chooses the server, and each machine may fail
        // differently.
        let mut excluded: BTreeMap<(usize, String), usize> = BTreeMap::new();
        for machine in machines {
            let lack = lack(machine, terms)
                .unwrap_or_else(|| (usize::MAX, "assigned to other hosts of the set".to_owned()));
            *excluded.entry(lack).or_default() += 1;
        }
        excluded.into_iter().map(|((_, lack), n)| (lack, n)).collect()
    };
    let judged = hosts.iter().zip(given).map(|((host, terms), given)| {
        (host.clone(), given.map(|it| machines[it]).ok_or_else(|| excluded(terms)))
    });
    judged.collect()
}

/// Assigns machines to as many hosts as possible, by index.
///
/// `fits` has for each host the machines that match, the best one first. Earlier hosts take
/// precedence.
fn matched(fits: &[Vec<usize>], n_machines: usize) -> Vec<Option<usize>> {
    let mut taken = vec![None; n_machines];
    for host_idx in 0..fits.len() {
        augment(host_idx, fits, &mut taken, &mut BTreeSet::new());
    }
    let given = |host_idx| taken.iter().position(|it| *it == Some(host_idx));
    (0..fits.len()).map(given).collect()
}

/// Assigns a machine to a host: the first free one, else one whose host can take another
/// (augmenting paths of bipartite matching).
fn augment(
    host_idx: usize,
    fits: &[Vec<usize>],
    taken: &mut [Option<usize>],
    tried: &mut BTreeSet<usize>,
) -> bool {
    if let Some(&free) = fits[host_idx].iter().find(|it| taken[**it].is_none()) {
        taken[free] = Some(host_idx);
        return true;
    }
    for &node_idx in &fits[host_idx] {
        if !tried.insert(node_idx) {
            continue;
        }
        let is_left = taken[node_idx].is_some_and(|other| augment(other, fits, taken, tried));
        if is_left {
            taken[node_idx] = Some(host_idx);
            return true;
        }
    }
    false
}

/// Returns how soon a machine could be deployed; lower is sooner.
fn rank(node: &Node) -> usize {
    let order = [State::Available, State::Manageable];
    order.iter().position(|it| *it == node.provision_state).unwrap_or(order.len())
}

/// Returns the first requirement that a machine fails, with its index in the order of checking.
///
/// The user's requirements come before what changes by itself.
fn lack(node: &Node, terms: &Terms) -> Option<(usize, String)> {
    let mut lacks = asked(node, &terms.machine);
    lacks.extend(ready(node, terms));
    lacks.into_iter().enumerate().find_map(|(idx, it)| Some((idx, it?)))
}

/// Checks what the user requires.
fn asked(node: &Node, machine: &Machine) -> Vec<Option<String>> {
    let Machine { node: name, resource_class, traits, capabilities, extra } = machine;
    let is_named = |it: &String| node.name.as_ref() == Some(it) || node.uuid == *it;
    let mut lacks = vec![
        name.as_ref().filter(|it| !is_named(it)).map(|it| format!("not named {it}")),
        resource_class
            .as_ref()
            .filter(|it| node.resource_class.as_ref() != Some(it))
            .map(|it| format!("not of resource class {it}")),
    ];
    let has = node.capabilities();
    lacks.extend(
        traits.iter().map(|it| (!node.traits.contains(it)).then(|| format!("without trait {it}"))),
    );
    lacks.extend(capabilities.iter().map(|(key, value)| {
        let same = has.get(key.as_str()) == Some(&value.as_str());
        (!same).then(|| format!("without capability {key}:{value}"))
    }));
    lacks.extend(extra.iter().map(|(key, value)| {
        let same = node.extra.get(key).and_then(Value::as_str) == Some(value);
        (!same).then(|| format!("without {key}={value} in extra"))
    }));
    lacks
}

/// Checks what changes by itself.
fn ready(node: &Node, terms: &Terms) -> Vec<Option<String>> {
    let lack = |is: bool, text: &str| is.then(|| text.to_owned());
    let state = &node.provision_state;
    let good: &[State] = match (terms.adopt, terms.provide) {
        (true, _) => &[State::Active, State::Manageable],
        (false, true) => &[State::Available, State::Manageable, State::Enroll],
        (false, false) => &[State::Available],
    };
    let is_good = good.contains(state);
    vec![
        lack(node.retired, "retired"),
        lack(node.instance_uuid.is_some(), "reserved by others"),
        lack(node.maintenance, "in maintenance"),
        (!is_good).then(|| format!("in state {state}")),
    ]
}

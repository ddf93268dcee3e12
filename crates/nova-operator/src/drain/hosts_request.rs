//! What the annotations of a node set request for the servers of its hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use api::dataplane::NodeSet;
use kube::ResourceExt;
use nova_config::annotations::{DRAIN_HOSTS, DRAIN_REASON, MAX_MIGRATIONS};
use operator_core::node_set_host::{Host, canonical_host_name};
use serde_json::Value;

use crate::drain::order::{Drain, DrainMode, ROLLOUT};
use crate::drain::request::most_migrations;
use crate::inherited_annotation::repeated;

/// Returns the drains that are requested, by the names of the hosts in the inventory.
///
/// An entry names a host by its key in `spec.nodes`, or by its name in the inventory, its own name
/// or the name under which it registers. `others` are hosts that leave the node set, and earlier names of
/// hosts that stay, by the names in the inventory, each with the other names. With any entry that is not
/// valid, nothing is requested, and the error is the message about it.
pub fn requested(
    set: &NodeSet,
    hosts: &[Host<'_>],
    others: &BTreeMap<String, Vec<String>>,
) -> Result<BTreeMap<String, Drain>, String> {
    let Some(text) = set.annotations().get(DRAIN_HOSTS) else { return Ok(BTreeMap::new()) };
    let of_set = of_set(set);
    let wrong = |what: &str, next_step: &str| {
        format!("Annotation {DRAIN_HOSTS} of {of_set} {what}, and nothing was changed: {next_step}")
    };
    let entries: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|_| {
        let what = format!("is \"{}\"", repeated(text));
        let form = r#"{"compute-0": "wait"}"#;
        wrong(&what, &format!("set it to a JSON object of hosts like {form}, or remove it."))
    })?;
    let reason = set.annotations().get(DRAIN_REASON).cloned().unwrap_or_default();
    let mut drains = BTreeMap::new();
    for (named, value) in &entries {
        let mode = match value.as_str() {
            Some("wait") => DrainMode::Wait,
            Some("migrate") => DrainMode::Migrate(most(set)?),
            _ => {
                let value = repeated(&value.to_string());
                let what = format!("has {value} for host {}", quoted(named));
                return Err(wrong(&what, "set it to \"wait\" or \"migrate\", or remove it."));
            }
        };
        let name = named_by(set, hosts, others, named).map_err(|it| {
            let what = format!("names host {}, which {it}", quoted(named));
            wrong(&what, "use the key of a host in spec.nodes, or remove it.")
        })?;
        if drains.insert(name.to_owned(), Drain { mode, reason: reason.clone() }).is_some() {
            let what = format!("names host {name} more than once");
            return Err(wrong(&what, "keep one of its entries."));
        }
    }
    Ok(drains)
}

/// Returns how the servers of hosts that leave the node set leave them, by the names of the hosts in
/// the inventory; see [`requested`]. Entries that are not valid count for nothing here: one may name
/// a host that has gone before the others.
pub fn modes_of_leaving(
    set: &NodeSet,
    leaving: &BTreeMap<String, Vec<String>>,
) -> BTreeMap<String, DrainMode> {
    let text = set.annotations().get(DRAIN_HOSTS).map(String::as_str).unwrap_or_default();
    let entries: BTreeMap<String, Value> = serde_json::from_str(text).unwrap_or_default();
    let mode = |(name, others): (&String, &Vec<String>)| {
        let value = [name].into_iter().chain(others).find_map(|it| entries.get(it))?;
        let migrates = value.as_str() == Some("migrate");
        let mode = migrates.then(|| most(set).ok().map(DrainMode::Migrate)).flatten();
        Some((name.clone(), mode.unwrap_or(DrainMode::Wait)))
    };
    leaving.iter().filter_map(mode).collect()
}

/// Returns the drain by which a deployment begins on a host that the user does not drain; an error
/// is the message about a number of migrations that is not legal.
pub fn of_rollout(set: &NodeSet) -> Result<Drain, String> {
    Ok(Drain { mode: DrainMode::Migrate(most(set)?), reason: ROLLOUT.to_owned() })
}

/// Returns how many servers of a host migrate at a time, or the message about the annotation.
fn most(set: &NodeSet) -> Result<NonZeroUsize, String> {
    let number = set.annotations().get(MAX_MIGRATIONS);
    most_migrations(number.map(|it| (it.as_str(), of_set(set))))
}

fn of_set(set: &NodeSet) -> String {
    format!("OpenStackDataPlaneNodeSet {}", set.name_any())
}

fn quoted(named: &str) -> String {
    format!("\"{}\"", repeated(named))
}

/// Returns the host that an entry names, by its name in the inventory; an error says what is wrong.
fn named_by<'a>(
    set: &NodeSet,
    hosts: &'a [Host<'_>],
    others: &'a BTreeMap<String, Vec<String>>,
    named: &str,
) -> Result<&'a str, &'static str> {
    let is_it = |host: &&Host<'_>| {
        [host.key, &host.name, &host.host_name].contains(&named)
            || canonical_host_name(set, host) == named
    };
    let is_other = |(name, names): &(&String, &Vec<String>)| {
        *name == named || names.iter().any(|it| it == named)
    };
    let others = others.iter().filter(is_other).map(|(name, _)| name);
    // A host may be in both.
    let found: BTreeSet<&String> =
        hosts.iter().filter(is_it).map(|it| &it.name).chain(others).collect();
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(host), None) => Ok(host),
        (Some(_), Some(_)) => Err("is a name of several hosts"),
        (None, _) => Err("the node set does not have"),
    }
}

#[cfg(test)]
mod tests {
    use operator_core::node_set_host::hosts;
    use serde_json::json;

    use super::*;

    fn set(annotations: &[(&str, &str)]) -> NodeSet {
        let annotations: BTreeMap<&str, &str> = annotations.iter().copied().collect();
        serde_json::from_value(json!({
            "metadata": {"name": "set", "annotations": annotations},
            "spec": {
                "nodes": {"c0": {"hostName": "compute-0.example.org"}, "c1": {}},
                "nodeTemplate": {"ansibleSSHPrivateKeySecret": "ssh"},
            },
            "status": {"allHostnames": {"c1": {"ctlplane": "c1.ctlplane.example.org"}}},
        }))
        .unwrap()
    }

    fn of(annotations: &[(&str, &str)]) -> Result<BTreeMap<String, Drain>, String> {
        let set = set(annotations);
        requested(&set, &hosts(&set), &BTreeMap::new())
    }

    fn drain(mode: DrainMode) -> Drain {
        Drain { mode, reason: String::new() }
    }

    #[test]
    fn hosts_that_leave_keep_their_mode_when_another_one_has_gone() {
        let leaving = [("compute-2".to_owned(), vec!["c2".to_owned()])].into();
        let text = r#"{"gone": "migrate", "c2": "migrate", "c1": "fly"}"#;
        let set = set(&[(DRAIN_HOSTS, text)]);
        assert!(requested(&set, &hosts(&set), &leaving).is_err());
        let DrainMode::Migrate(_) = modes_of_leaving(&set, &leaving)["compute-2"] else {
            panic!("it does not migrate")
        };
    }

    #[test]
    fn a_host_is_named_by_its_key_or_by_any_of_its_names() {
        for name in ["c0", "compute-0", "compute-0.example.org"] {
            let drains = of(&[(DRAIN_HOSTS, &format!(r#"{{"{name}": "wait"}}"#))]).unwrap();
            assert_eq!(drains, [("compute-0".to_owned(), drain(DrainMode::Wait))].into());
        }
        let drains = of(&[(DRAIN_HOSTS, r#"{"c1.ctlplane.example.org": "wait"}"#)]).unwrap();
        assert_eq!(drains, [("c1".to_owned(), drain(DrainMode::Wait))].into());
    }

    #[test]
    fn a_host_that_leaves_keeps_its_names() {
        let mut set = set(&[(DRAIN_HOSTS, r#"{"c0": "wait"}"#)]);
        set.spec.nodes.remove("c0");
        assert!(requested(&set, &hosts(&set), &BTreeMap::new()).is_err());
        let names = ["c0", "compute-0.example.org"].map(str::to_owned).to_vec();
        let leaving = BTreeMap::from([("compute-0".to_owned(), names)]);
        let drains = requested(&set, &hosts(&set), &leaving);
        assert_eq!(drains, Ok([("compute-0".to_owned(), drain(DrainMode::Wait))].into()));
        set.spec.nodes.insert("compute-0".to_owned(), <_>::default());
        assert!(requested(&set, &hosts(&set), &leaving).is_ok(), "one host by two names");
    }

    #[test]
    fn reason_and_number_of_migrations_are_those_of_the_node_set() {
        assert_eq!(of(&[(MAX_MIGRATIONS, "0")]), Ok(BTreeMap::new()));
        assert_eq!(of(&[(DRAIN_HOSTS, "{}")]), Ok(BTreeMap::new()));
        let drains = of(&[
            (DRAIN_HOSTS, r#"{"c0": "migrate", "c1": "wait"}"#),
            (MAX_MIGRATIONS, "5"),
            (DRAIN_REASON, "new kernel"),
        ]);
        let with = |mode| Drain { mode, reason: "new kernel".to_owned() };
        let migrate = DrainMode::Migrate(NonZeroUsize::new(5).unwrap());
        let expected = [("compute-0", with(migrate)), ("c1", with(DrainMode::Wait))];
        assert_eq!(drains, Ok(expected.map(|(name, it)| (name.to_owned(), it)).into()));
    }

    #[test]
    fn a_rollout_migrates_as_many_servers_as_the_node_set_says() {
        let drain = of_rollout(&set(&[(MAX_MIGRATIONS, "5"), (DRAIN_REASON, "new kernel")]));
        let mode = DrainMode::Migrate(NonZeroUsize::new(5).unwrap());
        assert_eq!(drain, Ok(Drain { mode, reason: "rollout".to_owned() }));
        assert!(of_rollout(&set(&[(MAX_MIGRATIONS, "0")])).is_err());
    }

    #[test]
    fn anything_else_is_refused_as_a_whole() {
        for (text, words) in [
            ("", r#"is """#),
            ("wait", "JSON object"),
            (r#"["c0"]"#, "JSON object"),
            (r#"{"c0": "wait", "c2": "wait"}"#, r#"names host "c2", which the node set does not"#),
            (r#"{"c0": "wait", "c1": "evacuate"}"#, r#"has "evacuate" for host "c1""#),
            (r#"{"c1": true}"#, r#"has true for host "c1""#),
            (r#"{"c1": ""}"#, r#"has "" for host "c1""#),
            (r#"{"c0": "wait", "compute-0": "wait"}"#, "names host compute-0 more than once"),
        ] {
            let message = of(&[(DRAIN_HOSTS, text)]).unwrap_err();
            assert!(
                message.contains(words) && message.contains("nothing was changed"),
                "{message}"
            );
        }
        let message = of(&[(DRAIN_HOSTS, r#"{"c0": "migrate"}"#), (MAX_MIGRATIONS, "0")]);
        assert!(message.unwrap_err().contains("OpenStackDataPlaneNodeSet set is \"0\""));
    }
}

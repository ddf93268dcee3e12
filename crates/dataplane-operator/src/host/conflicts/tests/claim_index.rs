//! Tests: the index of claims finds what a comparison of each host with each other one finds.

use std::cell::Cell;

use operator_core::run_engine::host_key::HostKey;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::host::conflicts::shared_keys::SharedKey;

const OTHER_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8/";

/// Compares each host with each other one; the index only looks up which of them to compare.
mod pairwise {
    use super::*;

    pub(super) fn taken(claim: &Claim, others: &[Claim]) -> Vec<AddressTaken> {
        let by = |other: &Claim, host: &HostClaim| {
            let is_here = claim.namespace == other.namespace;
            let is_older = other.age() < claim.age();
            let owns = |it: &&HostClaim| {
                if is_here { is_older } else { it.is_reached && !host.is_reached }
            };
            let same =
                |it: &HostClaim| Some((host.shared(it, is_here)?.clone(), it.is_terminating));
            let (mark, is_terminating) = other.hosts.iter().filter(owns).find_map(same)?;
            let (path, owner) = (host.path.clone(), is_here.then(|| other.title()));
            Some(AddressTaken { host: host.name.clone(), path, mark, owner, is_terminating })
        };
        let others = || others.iter().filter(|it| !it.is_of_same(claim));
        claim.hosts.iter().filter_map(|host| others().find_map(|it| by(it, host))).collect()
    }

    pub(super) fn shared_keys(claim: &Claim, others: &[Claim]) -> Vec<SharedKey> {
        let is_older = |it: &&Claim| {
            it.namespace == claim.namespace && !it.is_of_same(claim) && it.age() < claim.age()
        };
        let older = others.iter().filter(is_older);
        let older: Vec<_> =
            older.flat_map(|it| it.hosts.iter().map(move |own| (it, own))).collect();
        let mut found = Vec::new();
        for (idx, host) in claim.hosts.iter().enumerate() {
            let Some(key) = &host.key else { continue };
            let earlier = claim.hosts[..idx].iter().map(|it| (claim, it));
            let mut before = older.iter().copied().chain(earlier);
            let is_copy =
                |it: &HostClaim| it.key.as_ref() == Some(key) && host.shared(it, true).is_none();
            let Some((other, first)) = before.find(|it| is_copy(it.1)) else { continue };
            let fingerprint = key.fingerprint();
            if !host.shared.contains(&fingerprint) {
                let other = format!("host {} of {}", first.name, other.title());
                found.push(SharedKey { host: host.name.clone(), fingerprint, other });
            }
        }
        found
    }

    pub(super) fn contested<'a>(claim: &'a Claim, others: &'a [Claim]) -> Vec<Contested<'a>> {
        let is_younger = |it: &&Claim| {
            it.namespace == claim.namespace && !it.is_of_same(claim) && it.age() > claim.age()
        };
        let of_other = |other: &'a Claim| {
            let same = |host: &'a HostClaim| {
                let mark = other.hosts.iter().find_map(|it| host.shared(it, true))?.clone();
                Some(Contested { host, mark, other })
            };
            claim.hosts.iter().filter_map(same)
        };
        others.iter().filter(is_younger).flat_map(of_other).collect()
    }

    pub(super) fn twice(claim: &Claim) -> Vec<(&str, &str, String)> {
        let earlier = |(idx, host): (usize, &'_ HostClaim)| {
            let same = |it: &HostClaim| Some((it.path.clone(), it.shared(host, true)?.clone()));
            Some((idx, claim.hosts[..idx].iter().find_map(same)?))
        };
        let found = claim.hosts.iter().enumerate().filter_map(earlier);
        let found = found.map(|(idx, (path, mark))| {
            let before = claim.hosts.iter().find(|it| it.path == path).map(|it| it.path.as_str());
            (claim.hosts[idx].path.as_str(), before.unwrap_or_default(), mark)
        });
        found.collect()
    }

    pub(super) fn still_terminating(claim: &Claim) -> Vec<(&str, &str, String)> {
        let (going, own): (Vec<&HostClaim>, Vec<&HostClaim>) =
            claim.hosts.iter().partition(|it| it.is_terminating);
        let mut found = Vec::new();
        for host in own {
            let same = |it: &&HostClaim| Some((it.name.clone(), it.shared(host, true)?.clone()));
            if let Some((name, mark)) = going.iter().find_map(same) {
                let name = going.iter().find(|it| it.name == name).map(|it| it.name.as_str());
                found.push((host.name.as_str(), name.unwrap_or_default(), mark));
            }
        }
        found
    }
}

/// What is generated of one host: few values, so that hosts often have something in common.
type Drawn = (&'static str, &'static str, &'static str, Option<&'static str>, [bool; 3]);

fn drawn() -> impl Strategy<Value = Drawn> {
    let keys = prop::option::of(select(vec![KEY, OTHER_KEY]));
    let names = select(vec!["", "a", "b", "c", "A.example.org"]);
    let addresses = select(vec!["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"]);
    (addresses, names, select(vec!["", "rack-1"]), keys, any::<[bool; 3]>())
}

/// Returns an object's metadata, with what its user says of the network and of shared keys.
fn metadata(created: &str, scope: &str, accepts: bool) -> Value {
    let key = HostKey::parse(KEY).unwrap().fingerprint();
    let mut annotations = json!({ NETWORK_SCOPE: scope });
    if accepts {
        annotations[ACCEPT_SHARED] = json!(key);
    }
    json!({ "creationTimestamp": created, "annotations": annotations })
}

/// Returns what a node, or the node of a host of a node set, knows of its host.
fn known(address: &str, key: Option<&str>, is_reached: bool) -> Value {
    let mut status = json!({ "address": format!("{address}:22") });
    if let Some(key) = key {
        status["hostKey"] = json!(key);
    }
    if is_reached {
        status["deployedAddress"] = json!(format!("{address}:22"));
        status["deployedInputs"] = inputs_at(address);
    }
    status
}

fn node_claim(name: &str, namespace: &str, created: &str, drawn: &Drawn) -> Claim {
    let (address, host_name, scope, key, [is_reached, accepts, _]) = *drawn;
    let node = json!({
        "metadata": metadata(created, scope, accepts),
        "spec": { "ansibleHost": address, "hostName": host_name },
        "status": known(address, key, is_reached),
    });
    Claim::of_node(&named(namespace, name, node), None)
}

/// Returns the claim of a node set with the nodes of its hosts, some of which were taken out.
fn set_claim(name: &str, namespace: &str, created: &str, hosts: &[Drawn]) -> Claim {
    let (mut entries, mut nodes) = (json!({}), Vec::new());
    for (idx, (address, host_name, scope, key, [is_reached, accepts, is_out])) in
        hosts.iter().enumerate()
    {
        let name = ["n0", "n1", "n2", "n3"][idx % 4];
        if !is_out {
            entries[name] = json!({ "hostName": host_name, "ansible": { "ansibleHost": address } });
        }
        let node = json!({
            "metadata": metadata(created, scope, *accepts),
            "spec": { "nodeSet": "set" },
            "status": known(address, *key, *is_reached),
        });
        nodes.push(Arc::new(named::<Node>(namespace, name, node)));
    }
    let spec = json!({ "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" }, "nodes": entries });
    let set = json!({ "metadata": { "creationTimestamp": created }, "spec": spec });
    Claim::of_node_set(&named(namespace, name, set)).with_nodes(&nodes)
}

fn claims() -> impl Strategy<Value = Vec<Claim>> {
    let place = (select(vec!["ns", "theirs"]), select(vec![OLD, NEW]), any::<bool>());
    let claim = (place, prop::collection::vec(drawn(), 1..5));
    let claims = prop::collection::vec(claim, 1..12);
    claims.prop_map(|all| {
        let claim = |(idx, ((namespace, created, is_set), hosts)): (usize, (_, Vec<Drawn>))| {
            let name = format!("o{idx}");
            if is_set {
                set_claim(&name, namespace, created, &hosts)
            } else {
                node_claim(&name, namespace, created, &hosts[0])
            }
        };
        all.into_iter().enumerate().map(claim).collect()
    })
}

proptest! {
    #[test]
    fn the_index_finds_what_a_comparison_of_each_with_each_finds(all in claims()) {
        let index = ClaimIndex::of(&all);
        for claim in &all {
            prop_assert_eq!(claim.taken(&index), pairwise::taken(claim, &all));
            prop_assert_eq!(claim.shared_keys(&index), pairwise::shared_keys(claim, &all));
            prop_assert_eq!(claim.contested(&all), pairwise::contested(claim, &all));
            prop_assert_eq!(claim.twice(), pairwise::twice(claim));
            prop_assert_eq!(claim.still_terminating(), pairwise::still_terminating(claim));
        }
    }
}

#[test]
fn a_look_up_compares_a_host_with_those_that_have_something_in_common_and_with_no_others() {
    let address = |idx: usize| format!("198.51.{}.{}", idx / 200, idx % 200 + 1);
    let mut all: Vec<Claim> = (0..1000)
        .map(|it| node(&format!("n{it}"), OLD, &json!({ "ansibleHost": address(it) })))
        .collect();
    all.push(node("other", NEW, &json!({ "ansibleHost": address(7), "hostName": "n8" })));
    let index = ClaimIndex::of(&all);
    let n_compared = |claim: &Claim| {
        let count = Cell::new(0);
        index.first(&claim.hosts[0], |_| {
            count.set(count.get() + 1);
            None::<()>
        });
        count.get()
    };
    assert_eq!(n_compared(&all[0]), 2, "itself, by its address and by its name");
    assert_eq!(n_compared(&all[7]), 3);
    assert_eq!(n_compared(&all[8]), 3);
    // Its address, its own name, and its host's name.
    assert_eq!(n_compared(&all[1000]), 5);
    assert_eq!(all[1000].taken(&index)[0].owner, Some("OpenStackDataPlaneNode n7".into()));
    let key = HostKey::parse(KEY).unwrap();
    assert!(index.showing(&key).is_empty());
    let shown: Vec<Claim> = all
        .into_iter()
        .enumerate()
        .map(|(idx, it)| if idx == 3 { with_keys(it) } else { it })
        .collect();
    assert_eq!(ClaimIndex::of(&shown).showing(&key).len(), 1);
}

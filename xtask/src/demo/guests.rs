//! The guests of the demo: servers of nova that boot, talk to each other, and move.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value, json};

use crate::demo::facts::{self, ERROR};
use crate::demo::get;
use crate::demo::scene::{Placed, Scene};
use crate::hosts::{Host, ssh};
use crate::{controlplane, lab, sh};

/// The guest that is migrated, from the first host of the scene to the last one.
const MOVES: &str = "guest-a";
/// The guest on the last host, which pings the first one.
const PINGS: &str = "guest-b";
/// The guest in the other cell.
const ELSEWHERE: &str = "guest-c";
/// The timeout until a guest has read its user data, without KVM.
const BOOT: Duration = Duration::from_mins(15);
/// How many replies the migrated guest may owe.
const MISSING: u64 = 10;
/// How many replies are awaited before the migration, and after it.
const REPLIES: u64 = 10;
/// What QEMU calls a CPU of the model Nehalem, and one of the model Westmere, in a guest's console.
const NEHALEM: &str = "Intel Core i7 9xx (Nehalem Class Core i7)";
const WESTMERE: &str = "Westmere E56xx/L56xx/X56xx (Nehalem-C)";
/// The option in nova-compute's log that shows how guests are migrated.
const SCHEME: &str = "libvirt.live_migration_scheme";

/// Boots the guests, migrates one while it is pinged, and returns what was seen: guest → fact →
/// value, and the facts of the migration.
pub(super) fn show(env: &lab::Env, scene: &Scene) -> Result<Value> {
    let [first, other, last] = scene.hosts else { bail!("guests need three hosts") };
    let what = "nova knows which cell each host is in";
    sh::step(what, || sh::wait_for(what, BOOT, || mapped(env, scene)))?;
    sh::step("give nova an image, a flavor and a network for guests", || {
        guest(env, &["prepare"])?;
        // Those of an earlier demo.
        guest(env, &["delete", MOVES, PINGS, ELSEWHERE])
    })?;
    let address = sh::step("boot three guests", || {
        let booted = guest(env, &["boot", MOVES, first.host.name])?;
        let address = word(&booted, "address");
        ensure!(!address.is_empty(), "{MOVES} has no address: {booted}");
        guest(env, &["boot", PINGS, last.host.name, "ping", &address])?;
        guest(env, &["boot", ELSEWHERE, other.host.name])?;
        Ok(address)
    })?;
    let mut seen = Map::new();
    for name in [MOVES, PINGS, ELSEWHERE] {
        let what = format!("{name} is up");
        let look = sh::step(&what, || sh::wait_for(&what, BOOT, || up(env, name)))?;
        seen.insert(name.to_owned(), booted(&look)?);
    }
    let migration = sh::step("migrate a guest while it is pinged", || {
        migrated(env, (&first.host, &last.host), &seen[MOVES])
    })?;
    seen.insert("migration".to_owned(), migration);
    seen["migration"]["tunnel"] = json!(tunnel(&last.host, &first.host)?);
    seen["migration"]["pinged"] = json!(address);
    Ok(Value::Object(seen))
}

/// Returns name → fact → value of the guests as nova and their consoles have them now; an error of
/// one guest does not affect the others.
pub(super) fn collect(env: &lab::Env) -> Map<String, Value> {
    let of_guest = |name: &str| -> Result<Value> {
        let (shown, look) = (guest(env, &["show", name])?, guest(env, &["look", name])?);
        Ok(json!({
            "id": shown["id"], "status": shown["status"], "host": shown["host"],
            "address": shown["address"], "boot id": only_boot(&look)?,
        }))
    };
    let named = |name: &str| {
        let facts = of_guest(name);
        let facts = facts.unwrap_or_else(|error| json!({ ERROR: format!("{error:#}") }));
        (name.to_owned(), facts)
    };
    [MOVES, PINGS, ELSEWHERE].map(named).into_iter().collect()
}

/// Returns what is not as it should be of the guests that run: they are where the demo left them.
pub(super) fn wrong(found: &Value, scene: &Scene) -> Vec<String> {
    let [_, other, last] = scene.hosts else { return vec!["guests need three hosts".to_owned()] };
    let mut wrong = Vec::new();
    for (name, placed) in [(MOVES, last), (PINGS, last), (ELSEWHERE, other)] {
        let facts = &found[name];
        if let Some(error) = facts[ERROR].as_str() {
            wrong.push(format!("facts of {name}: {error}"));
            continue;
        }
        for (fact, expected) in [("status", "ACTIVE"), ("host", placed.host.name)] {
            if facts[fact] != expected {
                wrong.push(format!("{name}: {fact} is {}", facts[fact]));
            }
        }
    }
    wrong
}

/// Returns what the guests should have said and did not.
pub(super) fn unsaid(seen: &Value, scene: &Scene) -> Vec<String> {
    let [first, other, last] = scene.hosts else {
        return vec!["guests need three hosts".to_owned()];
    };
    let mut wrong = Vec::new();
    for (name, Placed { cpu_model, .. }) in [(MOVES, first), (PINGS, last), (ELSEWHERE, other)] {
        let facts = &seen[name];
        let claims = [
            ("cpu", shown(cpu_model)),
            ("lease", "ip=10.5.0."),
            ("metadata", name),
            ("user data", if name == PINGS { "ping 10.5.0." } else { "hello guest-" }),
        ];
        let is_wrong = claims.into_iter().filter(|(fact, it)| !word(facts, fact).contains(it));
        wrong.extend(is_wrong.map(|(fact, _)| format!("{name}: {fact} is {}", facts[fact])));
    }
    let migration = &seen["migration"];
    let claims = [
        ("status", migration["status"] == "completed"),
        ("dest", migration["dest"] == last.host.name),
        ("scheme", word(migration, "scheme").ends_with("= tls")),
        ("replies missing", migration["replies missing"].as_u64().is_some_and(|it| it <= MISSING)),
        ("boot id after", word(migration, "boot id after") == word(&seen[MOVES], "boot id")),
        ("tunnel", word(migration, "tunnel").contains("rx_packets=")),
    ];
    let is_wrong = claims.into_iter().filter(|(_, holds)| !holds);
    wrong.extend(is_wrong.map(|(fact, _)| format!("migration: {fact} is {}", migration[fact])));
    wrong
}

/// Returns what the console of a guest says of a CPU of a model.
fn shown(cpu_model: &str) -> &str {
    match cpu_model {
        "Nehalem" => NEHALEM,
        "Westmere" => WESTMERE,
        other => other,
    }
}

/// Checks that guests can be placed on each host.
fn mapped(env: &lab::Env, scene: &Scene) -> Result<()> {
    for Placed { host, .. } in scene.hosts {
        let compute = get(env, controlplane::NAMESPACE, "novaexternalcompute", host.name)?;
        let mapped = facts::condition(&compute, "HostMapped");
        ensure!(mapped["status"] == "True", "{}: {}", host.name, mapped["message"]);
    }
    Ok(())
}

/// Runs the program `guest` of the control plane, and returns what it prints.
fn guest(env: &lab::Env, arguments: &[&str]) -> Result<Value> {
    let mut exec = env.kubectl();
    exec.args(["-n", controlplane::NAMESPACE, "exec", "deployment/glance", "--", "guest"]);
    let text = sh::run(exec.args(arguments))?;
    serde_json::from_str(&text).with_context(|| format!("guest prints {text}"))
}

/// Returns what the console of a guest says once it counts, and answers its pings where it pings.
fn up(env: &lab::Env, name: &str) -> Result<Value> {
    let look = guest(env, &["look", name])?;
    ensure!(!look["counts"].is_null(), "it does not count yet: {look}");
    ensure!(name != PINGS || count(&look, "last")? >= REPLIES, "too few replies: {look}");
    Ok(look)
}

/// Returns what a guest said while it booted.
fn booted(look: &Value) -> Result<Value> {
    Ok(json!({
        "cpu": look["cpu"], "lease": look["lease"], "metadata": look["metadata"],
        "user data": look["user_data"], "boot id": only_boot(look)?,
    }))
}

/// Returns the id of the boot since which a guest counts.
fn only_boot(look: &Value) -> Result<&str> {
    match look["boot_ids"].as_array().map(Vec::as_slice) {
        Some([id]) => id.as_str().context("a boot id is a text"),
        _ => bail!("not one boot: {look}"),
    }
}

/// Migrates the guest, and returns what was seen meanwhile.
fn migrated(env: &lab::Env, (from, to): (&Host, &Host), before: &Value) -> Result<Value> {
    let container = facts::container(from)?;
    let scheme = facts::log_line(from, &container, SCHEME)?;
    let scheme = scheme.split_once(" = ").and_then(|(_, it)| it.split_once(" log_opt_values"));
    let counted = counts(&guest(env, &["look", MOVES])?, "last")?;
    let pinged = count(&guest(env, &["look", PINGS])?, "last")?;
    let mut facts = guest(env, &["migrate", MOVES, to.name])?;
    // Replies of the guest where it is now: those that were lost at the end do not count as missing.
    let since = pinged.to_string();
    let enough = count(&guest(env, &["look", PINGS, &since])?, "last")? + REPLIES;
    let look = sh::wait_for("replies after the migration", BOOT, || {
        let look = guest(env, &["look", PINGS, &since])?;
        ensure!(count(&look, "last")? > enough, "the replies end: {look}");
        Ok(look)
    })?;
    let (last, missing) = (count(&look, "last")?, &look["replies"]["missing"]);
    facts["replies missing"] = json!(missing.as_u64());
    facts["replies"] = json!(last - pinged + 1);
    // The console begins anew on the other host.
    let after = sh::wait_for("the guest counts on", BOOT, || {
        let look = guest(env, &["look", MOVES])?;
        counts(&look, "first").map(|_| look)
    })?;
    let reads = reads_of_metadata(&after)?;
    sh::wait_for("the guest reads its metadata where it is now", BOOT, || {
        let now = reads_of_metadata(&guest(env, &["look", MOVES])?)?;
        ensure!(now > reads, "it has read {now} times");
        Ok(())
    })?;
    let first = counts(&after, "first")?;
    ensure!(first > counted, "its counter went back from {counted} to {first}");
    ensure!(after["counts"]["goes_back"] == false, "its counter went back: {after}");
    facts["scheme"] = json!(format!("{SCHEME} = {}", scheme.map_or("", |it| it.0.trim())));
    facts["counter before"] = json!(counted);
    facts["counter after"] = json!(counts(&after, "last")?);
    facts["boot id before"] = before["boot id"].clone();
    facts["boot id after"] = json!(only_boot(&after)?);
    Ok(facts)
}

/// Returns the statistics of the tunnel of a host to another one, which carried the pings.
fn tunnel(host: &Host, peer: &Host) -> Result<String> {
    let address = ssh(peer, "sudo ovs-vsctl get open . external_ids:ovn-encap-ip")?;
    let address = address.trim().trim_matches('"');
    let find = format!(
        "sudo ovs-vsctl --bare --columns=statistics find interface type=geneve \
         options:remote_ip={address}"
    );
    let found = ssh(host, &find)?;
    let received = found.split_whitespace().find(|it| {
        let it = it.strip_prefix("rx_packets=");
        it.is_some_and(|it| it.parse::<u64>().is_ok_and(|it| it > 0))
    });
    let received = received.with_context(|| format!("nothing came from {address}: {found}"))?;
    Ok(format!("geneve to {address}, {received}"))
}

/// Returns a number of the replies to a guest's pings.
fn count(look: &Value, which: &str) -> Result<u64> {
    look["replies"][which].as_u64().with_context(|| format!("no replies: {look}"))
}

/// Returns a number of a guest's own counter.
fn counts(look: &Value, which: &str) -> Result<u64> {
    look["counts"][which].as_u64().with_context(|| format!("it does not count: {look}"))
}

/// Returns how often a guest has read its metadata since it knew them.
fn reads_of_metadata(look: &Value) -> Result<u64> {
    look["metadata_reads"].as_u64().with_context(|| format!("it does not count: {look}"))
}

fn word(facts: &Value, name: &str) -> String {
    facts[name].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::scene::GUESTS;

    fn seen() -> Value {
        let said = |name: &str, cpu: &str, user_data: &str| {
            json!({
                "cpu": cpu, "lease": "ip=10.5.0.7/24 mtu=1442", "user data": user_data,
                "metadata": format!("{{\"hostname\": \"{name}.novalocal\"}}"), "boot id": name,
            })
        };
        json!({
            "guest-a": said("guest-a", NEHALEM, "hello guest-a"),
            "guest-b": said("guest-b", NEHALEM, "ping 10.5.0.7"),
            "guest-c": said("guest-c", WESTMERE, "hello guest-c"),
            "migration": {
                "status": "completed", "dest": "edpm-compute-3", "replies missing": 10,
                "scheme": "libvirt.live_migration_scheme = tls", "boot id after": "guest-a",
                "tunnel": "geneve to 172.19.0.100, rx_packets=7",
            },
        })
    }

    #[test]
    fn guests_that_said_all_and_moved_leave_nothing_to_say() {
        assert_eq!(unsaid(&seen(), &GUESTS), [""; 0]);
    }

    #[test]
    fn each_fact_that_is_another_is_named() {
        for (guest, fact, other) in [
            ("guest-a", "cpu", json!("QEMU Virtual CPU")),
            ("guest-b", "cpu", json!(WESTMERE)),
            ("guest-a", "lease", json!(null)),
            ("guest-b", "metadata", json!("{}")),
            ("guest-c", "cpu", json!("Intel Core i7 9xx")),
            ("guest-c", "user data", json!("")),
            ("migration", "replies missing", json!(11)),
            ("migration", "scheme", json!("libvirt.live_migration_scheme = ssh")),
            ("migration", "boot id after", json!("another")),
            ("migration", "dest", json!("edpm-compute-0")),
            ("migration", "tunnel", json!("")),
        ] {
            let mut seen = seen();
            seen[guest][fact] = other.clone();
            assert_eq!(unsaid(&seen, &GUESTS), [format!("{guest}: {fact} is {other}")]);
        }
        assert_eq!(unsaid(&json!({}), &GUESTS).len(), 17);
    }

    #[test]
    fn guests_are_where_the_demo_left_them() {
        let at = |host: &str| json!({ "status": "ACTIVE", "host": host });
        let mut found = json!({
            "guest-a": at("edpm-compute-3"), "guest-b": at("edpm-compute-3"),
            "guest-c": at("edpm-compute-1"),
        });
        assert_eq!(wrong(&found, &GUESTS), [""; 0]);
        found["guest-a"] = at("edpm-compute-0");
        found["guest-b"] = json!({ ERROR: "no answer" });
        let expected = ["guest-a: host is \"edpm-compute-0\"", "facts of guest-b: no answer"];
        assert_eq!(wrong(&found, &GUESTS), expected);
    }

    #[test]
    fn a_guest_that_booted_twice_is_an_error() {
        assert_eq!(only_boot(&json!({ "boot_ids": ["a"] })).unwrap(), "a");
        assert!(only_boot(&json!({ "boot_ids": ["a", "b"] })).is_err());
        assert!(only_boot(&json!({ "boot_ids": [] })).is_err());
    }
}

//! The lab's bridge and the rules that keep its traffic on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{ADDRESS, BRIDGE};
use crate::sh;

/// The lab's own packet filter chain; kube-proxy makes the others.
const GUARD: &str = "EDPM-LAB";
/// Prefixes of chains that exist because of the lab.
const CHAINS: [&str; 2] = [GUARD, "KUBE-"];
const FORWARDING: &str = "net/ipv4/ip_forward";
/// The settings below `/proc/sys` that the lab, its kubelet and its hosts change.
const SETTINGS: [&str; 5] = [
    FORWARDING,
    "vm/overcommit_memory",
    "vm/unprivileged_userfaultfd",
    "kernel/panic",
    "kernel/panic_on_oops",
];

/// Creates the bridge with the gateway's address and isolates it from other networks.
///
/// The bridge exists before the first pod, because the registry listens on its address.
pub(super) fn up(state: &Path) -> Result<()> {
    if !exists() {
        // A fixed MAC address: otherwise it changes with the pods.
        sh::run(
            ip().args(["link", "add", BRIDGE, "address", "02:ed:00:00:00:01"])
                .args(["type", "bridge"]),
        )?;
    }
    sh::run(ip().args(["addr", "replace", &format!("{ADDRESS}/21"), "dev", BRIDGE]))?;
    sh::run(ip().args(["link", "set", BRIDGE, "up"]))?;
    let ipv6 = format!("/proc/sys/net/ipv6/conf/{BRIDGE}/disable_ipv6");
    if Path::new(&ipv6).exists() {
        fs::write(&ipv6, "1").context("keep IPv6 off the bridge")?;
    }
    remember_settings(&state.join("settings"))?;
    fs::write(setting(FORWARDING), "1").context("switch forwarding on")?;
    guard()
}

fn setting(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name)
}

/// Saves the machine's settings before the lab's first start.
fn remember_settings(folder: &Path) -> Result<()> {
    for name in SETTINGS {
        let saved = folder.join(name.replace('/', "."));
        if !saved.exists() && setting(name).exists() {
            sh::write_if_changed(&saved, &fs::read_to_string(setting(name))?)?;
        }
    }
    Ok(())
}

fn restore_settings(folder: &Path) -> Result<()> {
    for name in SETTINGS {
        if let Ok(value) = fs::read_to_string(folder.join(name.replace('/', "."))) {
            fs::write(setting(name), value).with_context(|| format!("put {name} back"))?;
        }
    }
    Ok(())
}

/// Installs the guard: pods can connect to each other and the node only.
///
/// It must be before kube-proxy's rules, which accept all endpoints of a Service.
pub(super) fn guard() -> Result<()> {
    let forward = sh::run(Command::new("iptables").args(["-w", "-S", "FORWARD"]))?;
    // A single transaction, so that the guard is never missing.
    let restore = ["-w", "--noflush"];
    let rules = guard_rules(&forward);
    sh::run_with_input(Command::new("iptables-restore").args(restore), rules.as_bytes()).map(drop)
}

/// Returns rules with the guard as the first rule of the FORWARD chain, and nowhere else in it.
fn guard_rules(forward: &str) -> String {
    let jump = format!("FORWARD -j {GUARD}");
    let n_present = forward.lines().filter(|it| it.strip_prefix("-A ") == Some(&jump)).count();
    let moved = format!("-D {jump}\n").repeat(n_present);
    format!(
        "*filter
:{GUARD} - [0:0]
{moved}-I FORWARD 1 -j {GUARD}
-A {GUARD} -i {BRIDGE} -o {BRIDGE} -j ACCEPT
-A {GUARD} -i {BRIDGE} -j REJECT
-A {GUARD} -o {BRIDGE} -j REJECT
COMMIT
"
    )
}

/// Removes everything that [`up`] and kube-proxy created.
pub(super) fn down(state: &Path) -> Result<()> {
    if let Ok(ports) = fs::read_dir(format!("/sys/class/net/{BRIDGE}/brif")) {
        for port in ports.flatten() {
            // The kernel may have removed it with its pod's network namespace.
            sh::succeeds(ip().args(["link", "del"]).arg(port.file_name()));
        }
    }
    if exists() {
        sh::run(ip().args(["link", "del", BRIDGE]))?;
    }
    for family in ["iptables", "ip6tables"] {
        for script in scripts(&rules(family)?) {
            let mut restore = Command::new(format!("{family}-restore"));
            sh::run_with_input(restore.args(["-w", "--noflush"]), script.as_bytes())?;
        }
    }
    restore_settings(&state.join("settings"))
}

/// Lists what is left of the lab's network.
pub(super) fn leftovers() -> Result<Vec<String>> {
    let mut found = Vec::new();
    if exists() {
        found.push(format!("bridge {BRIDGE}"));
    }
    for family in ["iptables", "ip6tables"] {
        let n_lines =
            rules(family)?.lines().filter(|it| CHAINS.iter().any(|c| it.contains(c))).count();
        if n_lines > 0 {
            found.push(format!("{n_lines} rules in {family}"));
        }
    }
    Ok(found)
}

fn ip() -> Command {
    Command::new("ip")
}

fn exists() -> bool {
    Path::new("/sys/class/net").join(BRIDGE).exists()
}

/// Returns all rules of a family; empty if the machine does not have it.
fn rules(family: &str) -> Result<String> {
    let mut save = Command::new(format!("{family}-save"));
    if save.arg("--version").output().is_err() {
        return Ok(String::new());
    }
    sh::run(&mut Command::new(format!("{family}-save")))
}

/// Returns two `iptables-restore` scripts per table: the first unhooks and empties the lab's
/// chains, the second deletes them.
///
/// A chain can only be deleted when nothing refers to it.
fn scripts(saved: &str) -> Vec<String> {
    let ours = |chain: &str| CHAINS.iter().any(|it| chain.starts_with(it));
    let mut scripts = Vec::new();
    for table in saved.split("\n*").map(|it| it.trim_start_matches('*')) {
        let Some(name) = table.lines().find(|it| !it.starts_with('#') && !it.is_empty()) else {
            continue;
        };
        let chains: Vec<&str> = table
            .lines()
            .filter_map(|it| it.strip_prefix(':')?.split(' ').next())
            .filter(|it| ours(it))
            .collect();
        if chains.is_empty() {
            continue;
        }
        let emptied = chains.iter().map(|it| format!(":{it} - [0:0]\n"));
        let unhooked = table.lines().filter_map(|it| it.strip_prefix("-A ")).filter_map(|rule| {
            let (chain, rest) = rule.split_once(' ')?;
            let (_, target) = rest.rsplit_once("-j ")?;
            (!ours(chain) && ours(target)).then(|| format!("-D {rule}\n"))
        });
        let deleted = chains.iter().map(|it| format!("-X {it}\n"));
        scripts.push(script(name, emptied.chain(unhooked)));
        scripts.push(script(name, deleted));
    }
    scripts
}

fn script(table: &str, lines: impl Iterator<Item = String>) -> String {
    format!("*{table}\n{}COMMIT\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: &str = "# Generated\n*nat\n:PREROUTING ACCEPT [1:2]\n:KUBE-SERVICES - [0:0]\n:MINE - [0:0]\n\
        -A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n\
        -A PREROUTING -j MINE\n-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-X\nCOMMIT\n# Done\n\
        # Generated\n*filter\n:FORWARD ACCEPT [0:0]\n:EDPM-LAB - [0:0]\n-A FORWARD -j EDPM-LAB\nCOMMIT\n";

    #[test]
    fn only_our_chains_and_the_rules_that_lead_to_them_go() {
        let scripts = scripts(SAVED);
        assert_eq!(
            scripts[0],
            "*nat\n:KUBE-SERVICES - [0:0]\n-D PREROUTING -m comment --comment \"kubernetes service \
             portals\" -j KUBE-SERVICES\nCOMMIT\n"
        );
        assert_eq!(scripts[1], "*nat\n-X KUBE-SERVICES\nCOMMIT\n");
        assert_eq!(scripts[2], "*filter\n:EDPM-LAB - [0:0]\n-D FORWARD -j EDPM-LAB\nCOMMIT\n");
        assert_eq!(scripts[3], "*filter\n-X EDPM-LAB\nCOMMIT\n");
    }

    #[test]
    fn the_guard_moves_to_the_front_and_stays_single() {
        let count = |forward: &str| guard_rules(forward).matches("-D FORWARD -j EDPM-LAB").count();
        assert_eq!(count("-P FORWARD ACCEPT\n-A FORWARD -j KUBE-FORWARD\n"), 0);
        assert_eq!(count("-P FORWARD ACCEPT\n-A FORWARD -j X\n-A FORWARD -j EDPM-LAB\n"), 1);
    }

    #[test]
    fn a_machine_without_our_chains_is_left_alone() {
        assert!(
            scripts("*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j MINE\nCOMMIT\n").is_empty()
        );
        assert!(scripts("").is_empty());
    }
}

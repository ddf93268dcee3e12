//! Preconditions of the lab, and the installation of missing packages.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{BRIDGE, NETWORK, SERVICES};
use crate::{packages, paths, sh};

/// Debian packages that the lab and the build of its images need.
pub(super) const PACKAGES: [&str; 14] = [
    "buildah",
    "ca-certificates",
    "gcc",
    "git",
    "iproute2",
    "iptables",
    "libc6-dev",
    "libseccomp-dev",
    "mmdebstrap",
    "openssh-client",
    "pkg-config",
    "procps",
    "python3-venv",
    "xz-utils",
];

const GIB: u64 = 1 << 30;
const DISK: u64 = 15 * GIB;
/// The oldest Go that builds all of `lab/go`.
const GO: (u32, u32) = (1, 26);

/// The lab's ports on this machine, and the part that uses each.
const PORTS: [(u16, &str); 9] = [
    (2379, "etcd"),
    (2380, "etcd"),
    (5000, "registry"),
    (6443, "kube-apiserver"),
    (10248, "kubelet"),
    (10250, "kubelet"),
    (10256, "kube-proxy"),
    (10257, "kube-controller-manager"),
    (10259, "kube-scheduler"),
];

/// Checks for root: the lab needs namespaces, mounts and packet filter rules.
pub(super) fn root() -> Result<()> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        bail!("the lab has to be run by root, for example through sudo");
    }
    Ok(())
}

/// Installs Debian packages, and fails with a list of everything else that is missing.
///
/// `running` lists the parts that already run, whose ports are in use.
pub(super) fn preconditions(running: &[&str]) -> Result<()> {
    let mut problems = Vec::new();
    problems.extend(go_problem());
    for folder in [paths::state(), paths::cache()] {
        problems.extend(disk_problem(&folder)?);
    }
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|it| fs::read_to_string(it).unwrap_or_default());
    let listening: Vec<u16> = tables.iter().flat_map(|it| listening_ports(it)).collect();
    problems.extend(port_problems(&listening, running));
    let kernel = fs::read_to_string("/proc/filesystems")?;
    if !kernel.contains("\toverlay") && !sh::succeeds(Command::new("modprobe").arg("overlay")) {
        problems
            .push("the kernel has no overlay file system: load the module `overlay`".to_owned());
    }
    if problems.is_empty() {
        if let Err(error) = install_packages() {
            problems.push(format!("{error:#}"));
        } else {
            problems.extend(route_problems(&sh::run(Command::new("ip").args(["-4", "route"]))?));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("the lab cannot start here:\n- {}", problems.join("\n- "))
}

/// Installs the Debian packages that are missing.
fn install_packages() -> Result<()> {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f", "${Package} ${db:Status-Status}\\n"]).args(PACKAGES);
    // It fails if a package is unknown, but prints the others.
    let known = query.output().context("no dpkg-query: the lab wants Debian 12 or a derivative")?;
    let missing = missing_packages(&String::from_utf8_lossy(&known.stdout));
    packages::install(&missing)
}

fn missing_packages(known: &str) -> Vec<&'static str> {
    let installed: Vec<&str> =
        known.lines().filter_map(|it| it.strip_suffix(" installed")).collect();
    PACKAGES.into_iter().filter(|it| !installed.contains(it)).collect()
}

fn go_problem() -> Option<String> {
    let how = format!("install Go {}.{} or newer (https://go.dev/dl)", GO.0, GO.1);
    match sh::run(Command::new("go").args(["env", "GOVERSION"])) {
        Ok(version) if go_version(&version) >= Some(GO) => None,
        Ok(version) => Some(format!("{} is too old: {how}", version.trim())),
        Err(_) => Some(format!("no go: {how}")),
    }
}

/// Parses `go1.26.8` as (1, 26).
fn go_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix("go")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Checks the free space, at the nearest existing parent directory.
fn disk_problem(folder: &Path) -> Result<Option<String>> {
    let existing = folder.ancestors().find(|it| it.exists()).context("no root folder")?;
    let text = sh::run(Command::new("df").args(["--output=avail", "-B1"]).arg(existing))?;
    let free: u64 = text.lines().last().unwrap_or_default().trim().parse().context("read df")?;
    // Only the first start needs all of it; a running lab has used its share.
    let needed = if paths::state().join("run").exists() { DISK / 5 } else { DISK };
    Ok((free < needed).then(|| {
        format!(
            "{} GiB free at {}, {} are needed: make room or set XDG_CACHE_HOME",
            free / GIB,
            folder.display(),
            needed / GIB
        )
    }))
}

fn port_problems(listening: &[u16], running: &[&str]) -> Vec<String> {
    let taken = |(port, part): &&(u16, &str)| listening.contains(port) && !running.contains(part);
    let problem = |(port, part): &(u16, &str)| {
        format!("port {port} ({part}) is in use: see who has it with `ss -ltnp 'sport = :{port}'`")
    };
    PORTS.iter().filter(taken).map(problem).collect()
}

/// Returns the ports in state LISTEN of `/proc/net/tcp`.
fn listening_ports(table: &str) -> Vec<u16> {
    table
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (_, port) = fields.get(1)?.rsplit_once(':')?;
            (*fields.get(3)? == "0A").then(|| u16::from_str_radix(port, 16).ok()).flatten()
        })
        .collect()
}

/// Returns the routes of this machine that overlap with the lab's addresses.
fn route_problems(routes: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for route in routes.lines() {
        let words: Vec<&str> = route.split_whitespace().collect();
        let device = words.iter().position(|it| *it == "dev").and_then(|it| words.get(it + 1));
        let Some(destination) = words.first().filter(|it| **it != "default") else { continue };
        for ours in [NETWORK, SERVICES] {
            if device != Some(&BRIDGE) && overlaps(destination, ours) {
                problems.push(format!(
                    "the lab's network {ours} is in use here ({route}): remove that network"
                ));
            }
        }
    }
    problems
}

fn overlaps(a: &str, b: &str) -> bool {
    let (Some((a, n_a)), Some((b, n_b))) = (network(a), network(b)) else { return false };
    let mask = u32::MAX.checked_shl(32 - n_a.min(n_b)).unwrap_or(0);
    a & mask == b & mask
}

fn network(text: &str) -> Option<(u32, u32)> {
    let (address, length) = text.split_once('/').unwrap_or((text, "32"));
    Some((u32::from(address.parse::<Ipv4Addr>().ok()?), length.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_ports_count() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:094B 00000000:0000 0A 0\n   \
            1: 0100007F:1F90 0100007F:1F91 01 0\n";
        assert_eq!(listening_ports(table), [2379]);
    }

    #[test]
    fn a_port_of_a_running_part_is_no_problem() {
        assert!(port_problems(&[2379, 80], &["etcd"]).is_empty());
        let problems = port_problems(&[2379], &["kubelet"]);
        assert!(problems[0].contains("2379 (etcd)"), "{problems:?}");
    }

    #[test]
    fn a_foreign_network_at_our_addresses_is_found() {
        let routes = "default via 10.96.0.9 dev eth0\n192.168.122.0/24 dev virbr0 scope link\n\
            192.168.120.0/21 dev edpm0 scope link\n10.0.0.0/16 dev eth0\n";
        let problems = route_problems(routes);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("virbr0"), "{problems:?}");
        assert!(overlaps("0.0.0.0/0", NETWORK) && overlaps("10.96.3.4", SERVICES));
    }

    #[test]
    fn packages_that_are_not_installed_are_missing() {
        let known = "gcc installed\niptables config-files\n";
        let missing = missing_packages(known);
        assert!(!missing.contains(&"gcc") && missing.contains(&"iptables"), "{missing:?}");
    }

    #[test]
    fn go_versions_compare_as_numbers() {
        assert!(go_version("go1.26.8\n") >= Some(GO) && go_version("go1.9") < Some(GO));
        assert_eq!(go_version("devel"), None);
    }
}

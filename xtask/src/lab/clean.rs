//! Removes the lab from the machine, and checks that nothing is left.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{components, network, process};
use crate::{paths, sh};

const CGROUPS: &str = "/sys/fs/cgroup";
/// The kubelet's cgroup below each hierarchy.
const PODS: &str = "kubepods";
const GONE_WITHIN: Duration = Duration::from_mins(10);

/// Stops everything, and removes all files but the logs.
pub(super) fn down() -> Result<()> {
    let state = paths::state();
    sh::step("stop the cluster", || {
        for part in components::all(&state).iter().rev() {
            part.stop(&state)?;
        }
        end_processes(&state)
    })?;
    sh::step("remove mounts, cgroups and network", || {
        unmount(&state)?;
        remove_cgroups()?;
        network::down(&state)
    })?;
    let left = leftovers(&state)?;
    if !left.is_empty() {
        bail!("this is left of the lab:\n- {}", left.join("\n- "));
    }
    // Only after all mounts in it are gone.
    sh::step("remove its files", || {
        remove_state(&state)?;
        remove_traces(&state)
    })?;
    println!("nothing is left of the lab: no process, mount, cgroup, bridge or packet filter rule");
    Ok(())
}

/// Lists everything of the lab that is still on the machine.
fn leftovers(state: &Path) -> Result<Vec<String>> {
    let mut found = network::leftovers()?;
    found.extend(processes(state)?.iter().map(|it| format!("process {it}")));
    found.extend(mounts(state)?.iter().map(|it| format!("mount {}", it.display())));
    found.extend(pod_cgroups().iter().map(|it| format!("cgroup {}", it.display())));
    Ok(found)
}

/// Returns the lab's daemons, with or without a record, and all processes in pods.
fn processes(state: &Path) -> Result<Vec<u32>> {
    let state = format!("{}/", state.display());
    let mut names: Vec<&str> =
        components::all(Path::new(&state)).iter().map(|it| it.name).collect();
    names.extend(["containerd-shim-runc-v2", "runc"]);
    let mut pids = process::matching(|line| is_daemon(line, &state, &names))?;
    for group in pod_cgroups() {
        for_each_group(&group, &mut |it| {
            let text = fs::read_to_string(it.join("cgroup.procs")).unwrap_or_default();
            pids.extend(text.lines().filter_map(|it| it.parse::<u32>().ok()));
            Ok(())
        })?;
    }
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// Whether a command line is one of the lab's daemons; a user's `kubectl` on the same state is not.
fn is_daemon(line: &str, state: &str, names: &[&str]) -> bool {
    let program = line.split(' ').next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    names.contains(&name) && line.contains(state)
}

/// Ends daemons without a record, which an interrupted start left: they occupy the ports.
pub(super) fn end_orphans(state: &Path) -> Result<()> {
    let parts = components::all(state);
    let names: Vec<&str> = parts.iter().map(|it| it.name).collect();
    let folder = format!("{}/", state.display());
    sh::wait_for("end of forgotten processes", GONE_WITHIN, || {
        let known: Vec<u32> = parts.iter().filter_map(|it| it.pid(state)).collect();
        let mut orphans = process::matching(|line| is_daemon(line, &folder, &names))?;
        orphans.retain(|it| !known.contains(it));
        process::signal("KILL", &orphans);
        if orphans.is_empty() { Ok(()) } else { bail!("{orphans:?} are left") }
    })
}

fn end_processes(state: &Path) -> Result<()> {
    sh::wait_for("end of all processes", GONE_WITHIN, || {
        let pids = processes(state)?;
        process::signal("KILL", &pids);
        if pids.is_empty() { Ok(()) } else { bail!("{} are left", pids.len()) }
    })
}

/// Returns the mounts at or below the state directory, innermost last.
fn mounts(state: &Path) -> Result<Vec<PathBuf>> {
    let text = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(mount_points(&text).into_iter().filter(|it| it.starts_with(state)).collect())
}

fn mount_points(mountinfo: &str) -> Vec<PathBuf> {
    let point = |line: &str| line.split(' ').nth(4).map(|it| it.replace("\\040", " ").into());
    mountinfo.lines().filter_map(point).collect()
}

fn unmount(state: &Path) -> Result<()> {
    sh::wait_for("unmounting", GONE_WITHIN, || {
        for mount in mounts(state)?.iter().rev() {
            sh::run(Command::new("umount").arg(mount))?;
        }
        Ok(())
    })
}

/// Returns the kubelet's top-level cgroup in each hierarchy, and in that of cgroup v2.
fn pod_cgroups() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from(CGROUPS)];
    places.extend(fs::read_dir(CGROUPS).into_iter().flatten().flatten().map(|it| it.path()));
    places.iter().map(|it| it.join(PODS)).filter(|it| it.is_dir()).collect()
}

/// Visits a cgroup after all cgroups below it.
fn for_each_group(group: &Path, visit: &mut impl FnMut(&Path) -> Result<()>) -> Result<()> {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            for_each_group(&entry.path(), visit)?;
        }
    }
    visit(group)
}

fn remove_cgroups() -> Result<()> {
    // The kernel releases a cgroup shortly after its last process has ended.
    sh::wait_for("removal of cgroups", GONE_WITHIN, || {
        for group in pod_cgroups() {
            for_each_group(&group, &mut |it| {
                fs::remove_dir(it).with_context(|| format!("remove {}", it.display()))
            })?;
        }
        Ok(())
    })
}

/// Removes all files but the logs, which help to find errors.
fn remove_state(state: &Path) -> Result<()> {
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name() == "log" {
            continue;
        }
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("remove {}", path.display()))?;
    }
    let links = paths::target().join("lab");
    if links.exists() {
        fs::remove_dir_all(links)?;
    }
    Ok(())
}

/// Removes what containerd, the network plugins and the kubelet left outside the state directory.
fn remove_traces(state: &Path) -> Result<()> {
    let entries = |folder| fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries("/var/log/containers").map(|it| it.path());
    let ours = links.filter(|it| fs::read_link(it).is_ok_and(|target| target.starts_with(state)));
    let inside = format!("{}/", state.display());
    let results = entries("/var/lib/cni/results")
        .map(|it| it.path())
        .filter(|it| fs::read_to_string(it).is_ok_and(|text| text.contains(&inside)));
    let deaf = entries("/run/containerd/s").map(|it| it.path()).filter(|it| {
        // Sockets of another containerd on this machine may still be in use.
        UnixStream::connect(it).is_err_and(|it| it.kind() == ErrorKind::ConnectionRefused)
    });
    for path in ours.chain(results).chain(deaf) {
        fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_human_with_kubectl_is_not_a_process_of_the_lab() {
        let names = ["kubelet", "containerd-shim-runc-v2"];
        let is = |line| is_daemon(line, "/s/", &names);
        assert!(is("/s/bin/kubelet --config=/s/x"));
        // The program is a symbolic link into the cache.
        assert!(is("/cache/containerd-shim-runc-v2 -id a -address /s/containerd.sock"));
        assert!(!is("/s/bin/kubectl get pods"));
        assert!(!is("/usr/bin/kubelet --config=/etc/x"));
        assert!(!is("tail /s/log/kubelet"));
    }

    #[test]
    fn mount_points_may_contain_spaces() {
        let line = "36 35 98:0 /a /s/x\\040y rw,noatime shared:1 - ext3 /dev/root rw\n";
        assert_eq!(mount_points(line), [PathBuf::from("/s/x y")]);
    }
}

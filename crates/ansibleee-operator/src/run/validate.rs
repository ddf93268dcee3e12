//! Validates a run's spec, for both the controller and a webhook.

use std::collections::BTreeSet;

use api::ansibleee::AnsibleEeSpec;
use api::fault::Fault;
use api::names::is_dns_subdomain;
use api::plays;
use operator_core::run_engine::host_key::SCAN_LIMIT;
use operator_core::run_engine::inventory::HOST_KEYS_DIR;

use super::build::{OWN_VOLUMES, files};
use super::host_keys;
use super::playbook::{FACTS, OWNER_CHECK};
use crate::callback;

/// How many bytes of a run may be in its pod's annotations.
///
/// Kubernetes allows 256 KiB for all annotations, and Ansible's plugins and the operator's own
/// plays are among them.
const TEXT_LIMIT: usize = 188 * 1024;
const _: () = {
    let plugins = callback::RESULT.text.len() + callback::BOUNDS.text.len();
    let plugins = plugins + callback::KEY_CHECKS.text.len() + OWNER_CHECK.len() + FACTS.len();
    assert!(TEXT_LIMIT + plugins + 8 * 1024 <= 256 * 1024);
};
/// Bytes of a network's annotation entry in addition to its name: the namespace, the interface and
/// the separators.
const NETWORK: usize = 128;

/// Returns all faults of a spec, in the order of its fields.
pub fn faults(spec: &AnsibleEeSpec) -> Vec<Fault> {
    let mut faults = Vec::new();
    playbook(spec, &mut faults);
    hosts(spec, &mut faults);
    mounts(spec, &mut faults);
    networks(spec, &mut faults);
    size(spec, &mut faults);
    faults
}

/// Checks that the pod's annotations can hold the run's texts.
fn size(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    let text: usize = files(spec).iter().map(|it| it.text.len()).sum();
    let addresses: Vec<&str> = spec.hosts.iter().map(|it| it.address.as_str()).collect();
    let hosts = serde_json::to_string(&addresses).map_or(0, |it| it.len());
    let networks: usize = spec.network_attachments.iter().map(|it| it.len() + NETWORK).sum();
    let whole = text + hosts + networks;
    if whole <= TEXT_LIMIT {
        return;
    }
    let next_step = if text > hosts {
        "mount the largest text from a ConfigMap below /runner/project or /runner/inventory with \
         extraMounts"
    } else {
        "split it into several runs with fewer hosts each"
    };
    let message = format!(
        "playbookContents, inventory, cmdLine, extraVars, networkAttachments and the addresses of \
         hosts total {whole} bytes, more than {TEXT_LIMIT}: {next_step}"
    );
    faults.push(Fault::new("spec", message));
}

fn playbook(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    for (field, text) in [("playbookContents", &spec.playbook_contents), ("play", &spec.play)] {
        let message = text.as_deref().and_then(plays::contents_fault);
        faults.extend(message.map(|it| Fault::new(format!("spec.{field}"), it)));
    }
    let message = spec.playbook.as_deref().and_then(plays::playbook_fault);
    faults.extend(message.map(|it| Fault::new("spec.playbook", it)));
}

fn hosts(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    let mut seen = BTreeSet::new();
    for (idx, host) in spec.hosts.iter().enumerate() {
        if !is_dns_subdomain(&host.name) {
            let message = format!("{:?} is not a host name (lower case, RFC 1123)", host.name);
            faults.push(Fault::new(format!("spec.hosts[{idx}].name"), message));
        } else if !seen.insert(&host.name) {
            let message = format!("{} is listed twice: keep one", host.name);
            faults.push(Fault::new(format!("spec.hosts[{idx}].name"), message));
        }
        if !is_address(&host.address) {
            let message = format!("{:?} is not an address; write host:port", host.address);
            faults.push(Fault::new(format!("spec.hosts[{idx}].address"), message));
        }
        let scan = host.scan_host_key.as_ref();
        let fingerprint = scan.and_then(|it| it.fingerprint.as_deref()).unwrap_or_default();
        if fingerprint.contains(char::is_whitespace) {
            let message = format!("{fingerprint:?} is not a fingerprint; write SHA256:…");
            let path = format!("spec.hosts[{idx}].scanHostKey.fingerprint");
            faults.push(Fault::new(path, message));
        }
    }
    let n_asked = host_keys::asked(&spec.hosts).count();
    if n_asked > SCAN_LIMIT {
        let message = format!(
            "{n_asked} hosts have scanHostKey, but the keys of only {SCAN_LIMIT} fit into a pod's \
             message: split it into several runs, or list the keys in known_hosts"
        );
        faults.push(Fault::new("spec.hosts", message));
    }
}

/// Whether a text is `host:port`. As it keeps two runs from using one host, it may be written in only
/// one way.
fn is_address(text: &str) -> bool {
    let is_port = |it: &str| {
        it.bytes().all(|it| it.is_ascii_digit()) && it.parse::<u16>().is_ok_and(|it| it > 0)
    };
    let is_whole =
        |(name, port): (&str, &str)| !name.is_empty() && !name.starts_with('-') && is_port(port);
    !text.contains(char::is_whitespace) && text.rsplit_once(':').is_some_and(is_whole)
}

fn mounts(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    let mut taken: BTreeSet<String> =
        files(spec).into_iter().map(|it| it.path.into_owned()).collect();
    let mut volumes = BTreeSet::new();
    for (idx, extra) in spec.extra_mounts.iter().enumerate().filter(|(_, it)| it.reaches_runs()) {
        for (volume_idx, volume) in extra.volumes.iter().enumerate() {
            let path = format!("spec.extraMounts[{idx}].volumes[{volume_idx}].name");
            if OWN_VOLUMES.contains(&volume.name.as_str()) {
                let message =
                    format!("{} is reserved for the operator: choose another name", volume.name);
                faults.push(Fault::new(path, message));
            } else if !volumes.insert(volume.name.as_str()) {
                let message = format!("{} names two volumes: rename one", volume.name);
                faults.push(Fault::new(path, message));
            }
        }
    }
    for (idx, extra) in spec.extra_mounts.iter().enumerate().filter(|(_, it)| it.reaches_runs()) {
        for (mount_idx, mount) in extra.mounts.iter().enumerate() {
            let at = format!("spec.extraMounts[{idx}].mounts[{mount_idx}]");
            if !volumes.contains(mount.name.as_str()) {
                let message = format!("no volume of extraMounts is called {}", mount.name);
                faults.push(Fault::new(format!("{at}.name"), message));
            }
            match place(&mount.mount_path) {
                Err(message) => faults.push(Fault::new(format!("{at}.mountPath"), message)),
                Ok(path) => {
                    if !taken.insert(path) {
                        let message = format!("{} is mounted twice: keep one", mount.mount_path);
                        faults.push(Fault::new(format!("{at}.mountPath"), message));
                    }
                }
            }
        }
    }
}

/// The directory of the runner's contract, which mounts may not cover.
const RUNNER: &str = "/runner";

/// Returns the path that a mount covers, or why it may not.
fn place(path: &str) -> Result<String, String> {
    let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
    if !path.starts_with('/') || parts.is_empty() || parts.contains(&"..") {
        return Err(format!("{path} must be an absolute path without .."));
    }
    let whole = format!("/{}", parts.join("/"));
    let is_below = |folder: &str| {
        whole.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let covers = |folder: &str| {
        folder.strip_prefix(whole.as_str()).is_some_and(|it| it.is_empty() || it.starts_with('/'))
    };
    if is_below(HOST_KEYS_DIR) {
        return Err(format!("{path} would hide the host keys that a run has learned"));
    }
    if is_below(callback::DIR) || covers(callback::DIR) || whole == "/dev/termination-log" {
        return Err(format!("{path} would hide how the operator learns each host's result"));
    }
    let is_refused = match parts.as_slice() {
        ["runner"] | ["runner", "env" | "inventory" | "project"] => true,
        ["runner", "env", name, ..] => {
            !name.starts_with("ssh_key") && !name.starts_with("known_hosts")
        }
        _ => false,
    };
    if is_refused {
        return Err(format!(
            "{path} would hide the runner's own files; below {RUNNER}, mount to artifacts, \
             env/ssh_key*, env/known_hosts*, inventory/* or project/*"
        ));
    }
    Ok(whole)
}

fn networks(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    let mut seen = BTreeSet::new();
    for (idx, name) in spec.network_attachments.iter().enumerate() {
        let path = format!("spec.networkAttachments[{idx}]");
        if !is_dns_subdomain(name) {
            let message = format!("{name:?} is not a valid NetworkAttachmentDefinition name");
            faults.push(Fault::new(path, message));
        } else if !seen.insert(name) {
            let message = format!("two networks would use interface {name}: keep one");
            faults.push(Fault::new(path, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use api::ansibleee::RunHost;
    use api::yaml;

    use super::*;

    #[track_caller]
    fn check(spec: &str, expected: &[&str]) {
        let spec: AnsibleEeSpec = yaml::from_str(spec).unwrap();
        let found: Vec<String> = faults(&spec).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}\nlacks {expected}");
        }
    }

    fn mount(path: &str) -> String {
        format!(
            "extraMounts: [{{volumes: [{{name: a}}], mounts: [{{name: a, mountPath: {path}}}]}}]"
        )
    }

    #[test]
    fn the_playbooks_of_collections_and_projects_are_fine() {
        check("playbook: osp.edpm.nova", &[]);
        check("playbook: plays/site.yml", &[]);
        check("args: [sleep, 1d]", &[]);
        check("playbookContents: '[{hosts: all}]'", &[]);
    }

    #[test]
    fn a_playbook_outside_of_the_project_is_refused() {
        check("playbook: ../x.yml", &["spec.playbook: \"../x.yml\" is neither"]);
        check("playbook: /etc/passwd", &["spec.playbook"]);
        check("playbook: -vvv", &["spec.playbook"]);
    }

    #[test]
    fn inline_plays_must_be_a_list_of_plays() {
        check("playbookContents: 'hosts: all'", &["spec.playbookContents: not a list of plays"]);
        check("playbookContents: '[a'", &["spec.playbookContents"]);
        check("play: 'hosts: all'", &["spec.play: not a list of plays"]);
    }

    #[test]
    fn hosts_have_names_and_addresses() {
        check("hosts: [{name: a, address: '10.0.0.1:22'}]", &[]);
        check("hosts: [{name: A_b, address: 'x:22'}]", &["spec.hosts[0].name"]);
        for address in [" ", "10.0.0.1", ":22", "a:", "a:0", "a:65536", "a:x", "a:+22", "-a:22"] {
            let spec = format!("hosts: [{{name: a, address: '{address}'}}]");
            check(&spec, &["spec.hosts[0].address"]);
        }
        check("networkAttachments: [a, b, a]", &["spec.networkAttachments[2]: two networks"]);
        check("networkAttachments: [internal-api-vlan-1, internal-api-vlan-2]", &[]);
        check(
            "hosts: [{name: a, address: 'x:22'}, {name: a, address: 'y:22'}]",
            &["spec.hosts[1].name: a is listed twice"],
        );
    }

    #[test]
    fn no_more_hosts_are_asked_for_their_keys_than_a_pod_can_tell_of() {
        let spec = |n_hosts: usize, asks: &str| {
            let host = |it| format!("{{name: n{it}, address: 'n{it}:22'{asks}}}");
            format!("hosts: [{}]", (0..n_hosts).map(host).collect::<Vec<_>>().join(", "))
        };
        check(&spec(80, ", scanHostKey: {}"), &[]);
        check(&spec(81, ""), &[]);
        check(&spec(81, ", scanHostKey: {}"), &["spec.hosts: 81 hosts have scanHostKey"]);
        let odd = spec(1, ", scanHostKey: {fingerprint: 'a b'}");
        check(&odd, &["spec.hosts[0].scanHostKey.fingerprint: \"a b\" is not a fingerprint"]);
    }

    #[test]
    fn mounts_below_the_runners_folders_are_fine_where_they_hide_nothing() {
        for path in [
            "/runner/env/ssh_key/a",
            "/runner/env/ssh_key",
            "/runner/env/known_hosts/a",
            "/runner/inventory/hosts",
            "/runner/project/roles",
            "/runner/artifacts",
            "/runner/network/a",
            "/runner/environment",
            "/var/lib/openstack/configs/nova/x.conf",
        ] {
            check(&mount(path), &[]);
        }
    }

    #[test]
    fn mounts_that_hide_the_runners_own_files_are_refused() {
        for path in [
            "/runner",
            "/runner/",
            "/runner/env",
            "/runner//env/",
            "/runner/env/./cmdline",
            "/runner/env/extravars",
            "/runner/env/envvars",
            "/runner/env/passwords",
            "/runner/env/settings",
            "/runner/inventory",
            "/runner/project/",
            "/runner/x/../env",
            "/opt",
            "/opt/edpm/callback",
            "/opt/edpm/callback/edpm_result.py",
            "/opt/edpm/bounds",
            "/opt/edpm/key_checks/edpm_key_checks.py",
            "/opt/edpm/plays/owner-check.yaml",
            "/dev/termination-log",
            "/runner/host_keys",
            "/runner/host_keys/known_hosts",
            "runner/env",
        ] {
            check(&mount(path), &["spec.extraMounts[0].mounts[0].mountPath"]);
        }
        let path = "/runner/project/playbook.yaml";
        check(&mount(path), &[]);
        check(&format!("playbookContents: '[]'\n{}", mount(path)), &["is mounted twice"]);
    }

    #[test]
    fn mounts_of_other_pods_are_not_looked_at() {
        let other = mount("/runner/env").replace("[{volumes", "[{propagation: [Other], volumes");
        check(&other, &[]);
    }

    #[test]
    fn volumes_and_mounts_fit_together() {
        check("extraMounts: [{volumes: [], mounts: [{name: a, mountPath: /a}]}]", &["no volume"]);
        check("extraMounts: [{volumes: [{name: a}, {name: a}], mounts: []}]", &["two volumes"]);
        check("extraMounts: [{volumes: [{name: edpm-run-files}], mounts: []}]", &["reserved"]);
    }

    #[test]
    fn texts_that_do_not_fit_into_annotations_are_refused_with_the_way_out() {
        let spec = AnsibleEeSpec {
            inventory: Some("x".repeat(TEXT_LIMIT + 1)),
            ..AnsibleEeSpec::default()
        };
        assert!(faults(&spec)[0].message.contains("mount the largest"));
    }

    #[test]
    fn the_addresses_of_hosts_count_among_what_annotations_hold() {
        let spec = |n_hosts: usize, text: usize| {
            let address = |it: usize| format!("{it:03}{}:22", "a".repeat(294));
            let host =
                |it| RunHost { name: format!("n{it}"), address: address(it), ..RunHost::default() };
            AnsibleEeSpec {
                inventory: Some("x".repeat(text)),
                hosts: (0..n_hosts).map(host).collect(),
                ..AnsibleEeSpec::default()
            }
        };
        // 500 addresses of the maximum length take 148 KiB including separators.
        assert_eq!(faults(&spec(500, 40 * 1024)), []);
        let found = faults(&spec(500, 80 * 1024));
        assert!(found[0].message.contains("with fewer hosts each"), "{found:?}");
        assert!(faults(&spec(300, 140 * 1024))[0].message.contains("mount the largest"));
    }
}

//! Rules for a run's pod: what the API server, ansible-runner or the operator's options reject.
//!
//! Faults are reported before the Job is created, with the field and a valid alternative.

use std::collections::BTreeSet;
use std::net::IpAddr;

use api::ansibleee::{AnsibleEeSpec, MAX_DEADLINE};
use api::fault::Fault;
use api::names::{is_dns_label, is_dns_subdomain};
use api::shared::HOST_PATH;
use api::{facts, plays};
use k8s_openapi::api::core::v1::{Container, Toleration, Volume};
use operator_core::run_engine::host_owner::{self, TAKE_OVER};

use super::build::{OWN_VOLUMES, files};
use super::environment;
use crate::objects::HOST_KEYS_CONTAINER;
use crate::run::settings::{Settings, is_engines};

/// Maximum length of one environment variable: Linux' own limit of a string.
const VARIABLE_LIMIT: usize = 128 * 1024;
/// Capabilities that a container of a run may add: those of Pod Security's baseline, and those that
/// reach no further than the network of its pod. The chart's policy for Jobs has the same.
pub const CAPABILITIES: [&str; 15] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Maximum deadline of a Job in seconds, a signed 32-bit number.
const LONGEST: i64 = i32::MAX as i64;

/// Returns all faults of the fields beside the playbook, in the order of the spec's fields.
pub fn faults(spec: &AnsibleEeSpec, settings: &Settings) -> Vec<Fault> {
    let mut faults = Vec::new();
    role(spec, &mut faults);
    image(spec, &mut faults);
    env(spec, &mut faults);
    volumes(spec, &mut faults);
    cmd_line(spec, &mut faults);
    owner_check(spec, &mut faults);
    fact_variables(spec, &mut faults);
    containers(spec, &mut faults);
    service_account(spec, settings, &mut faults);
    dns(spec, &mut faults);
    placement(spec, &mut faults);
    faults
}

fn add(faults: &mut Vec<Fault>, path: impl Into<String>, message: impl Into<String>) {
    faults.push(Fault { path: path.into(), message: message.into() });
}

fn role(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    let Some(role) = &spec.role else { return };
    if spec.playbook.is_some() || spec.contents().is_some() {
        add(faults, "spec.role", "role and a playbook are mutually exclusive: keep one");
    }
    if let Some(message) = plays::role_fault(role) {
        add(faults, "spec.role", message);
    }
}

fn image(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    let image = spec.image.as_deref().unwrap_or_default();
    if image.contains(char::is_whitespace) {
        add(faults, "spec.image", format!("{image:?} contains white space"));
    }
    if spec.active_deadline_seconds.is_some_and(|it| it > LONGEST) {
        add(faults, "spec.activeDeadlineSeconds", format!("at most {MAX_DEADLINE} seconds"));
    }
}

/// The variables by which upstream's contract passes texts to the image's entry point, with the
/// fields whose files the entry point would overwrite; it cannot, and exits.
const CONTRACT: [(&str, &str, &str); 4] = [
    ("RUNNER_CMDLINE", "/runner/env/cmdline", "cmdLine"),
    ("RUNNER_EXTRA_VARS", "/runner/env/extravars", "extraVars"),
    ("RUNNER_INVENTORY", "/runner/inventory/inventory.yaml", "inventory"),
    ("RUNNER_PLAYBOOK", "/runner/project/playbook.yaml", "playbookContents"),
];

fn env(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    let files = files(spec);
    let field = |name: &str| {
        let (_, path, field) = CONTRACT.into_iter().find(|it| it.0 == name)?;
        files.iter().any(|it| it.path == path).then_some(field)
    };
    if !is_dns_subdomain(&spec.env_config_map_name) {
        let message = format!("{:?} is not a valid ConfigMap name", spec.env_config_map_name);
        add(faults, "spec.envConfigMapName", message);
    }
    let mut seen = BTreeSet::new();
    for (idx, variable) in spec.env.iter().enumerate() {
        let name = variable.name.as_str();
        let value = variable.value.as_deref().unwrap_or_default();
        let path = format!("spec.env[{idx}].name");
        if name == "ANSIBLE_ENABLE_TASK_DEBUGGER" {
            let message =
                "ansible-runner has no terminal for ANSIBLE_ENABLE_TASK_DEBUGGER: remove it";
            add(faults, &path, message);
        } else if name.is_empty() || name.contains(|it: char| it == '=' || it.is_control()) {
            add(faults, &path, format!("{name:?} is not a valid variable name"));
        } else if !seen.insert(name) {
            add(faults, &path, format!("{name} is set twice: keep one"));
        }
        if let Some(field) = field(name) {
            add(faults, &path, format!("{name} duplicates spec.{field}: keep spec.{field}"));
        }
        if environment::is_ssh(name) {
            let message = format!(
                "{name} has no effect, because the operator configures ssh: remove it, and set a \
                 host's own arguments as variable ansible_ssh_common_args (in ansibleVars, or in \
                 the inventory)"
            );
            add(faults, &path, message);
        }
        if !value.is_empty() && variable.value_from.is_some() {
            add(faults, format!("spec.env[{idx}]"), "value and valueFrom are both set: keep one");
        }
        if name.len() + value.len() + 2 > VARIABLE_LIMIT {
            let message = format!("a variable holds at most {VARIABLE_LIMIT} bytes: mount a file");
            add(faults, format!("spec.env[{idx}].value"), message);
        }
    }
}

fn volumes(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    for (idx, extra) in spec.extra_mounts.iter().enumerate().filter(|(_, it)| it.reaches_runs()) {
        for (volume_idx, volume) in extra.volumes.iter().enumerate() {
            let at = format!("spec.extraMounts[{idx}].volumes[{volume_idx}]");
            if !is_dns_label(&volume.name) {
                let message = format!("{:?} is not a valid volume name", volume.name);
                add(faults, format!("{at}.name"), message);
            }
            if volume.host_path.is_some() {
                add(faults, format!("{at}.hostPath"), HOST_PATH);
            }
            token(spec, volume, &at, faults);
        }
        for (mount_idx, mount) in extra.mounts.iter().enumerate() {
            let sub_path = mount.sub_path.as_deref().unwrap_or_default();
            let leaves = sub_path.starts_with('/') || sub_path.split('/').any(|it| it == "..");
            if leaves {
                let path = format!("spec.extraMounts[{idx}].mounts[{mount_idx}].subPath");
                add(faults, path, format!("{sub_path} points outside its volume"));
            }
        }
    }
}

/// A pod uses a service account's token only if a hand-made run names the account.
fn token(spec: &AnsibleEeSpec, volume: &Volume, at: &str, faults: &mut Vec<Fault>) {
    if spec.service_account_name.is_some() && !is_engines(spec) {
        return;
    }
    let sources = volume.projected.as_ref().and_then(|it| it.sources.as_ref());
    for (idx, source) in sources.into_iter().flatten().enumerate() {
        if source.service_account_token.is_some() {
            let message = "it gives the pod the rights of a ServiceAccount: remove it; a run \
                           created by a user may name one in spec.serviceAccountName, if it is \
                           allowed (ansibleee.allowedServiceAccounts)";
            add(faults, format!("{at}.projected.sources[{idx}].serviceAccountToken"), message);
        }
    }
}

fn cmd_line(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    if let Some(message) = spec.cmd_line.as_deref().and_then(unclosed) {
        add(faults, "spec.cmdLine", message);
    }
}

fn fact_variables(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    for (idx, name) in spec.fact_variables.iter().enumerate() {
        if let Some(message) = facts::fault(name) {
            add(faults, format!("spec.factVariables[{idx}]"), message);
        }
    }
    if !spec.fact_variables.is_empty() && !is_engines(spec) {
        let message = "only runs of the operators may set facts as variables: remove it, and read \
                       ansible_facts[…] in the playbook";
        add(faults, "spec.factVariables", message);
    }
}

/// Rejects what would keep a run of the engine from checking the owner of its hosts.
///
/// The callback plugin keeps tags and extra variables away from that play.
fn owner_check(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    if !is_engines(spec) {
        return;
    }
    for name in spec.extra_vars.keys().filter(|it| host_owner::is_variable(it)) {
        let message = format!(
            "only the operator sets the owner of a host: remove it; a host is taken over by \
             annotation {TAKE_OVER} of the object that describes it"
        );
        add(faults, format!("spec.extraVars.{name}"), message);
    }
    let cmd_line = spec.cmd_line.as_deref().unwrap_or_default();
    let words = cmd_line.split_whitespace().map(|it| it.replace(['\'', '"', '\\'], ""));
    // ansible-playbook accepts a unique prefix of an option.
    let skips = |it: &String| it.starts_with("--st");
    if let Some(word) = words.into_iter().find(skips) {
        let message = format!(
            "{word} would skip the tasks that check the owner of a host: remove it, and \
             select tasks with --tags"
        );
        add(faults, "spec.cmdLine", message);
    }
}

/// Returns why ansible-runner cannot split a command line, which it does as a shell does.
fn unclosed(text: &str) -> Option<&'static str> {
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            // It escapes the next character, except within single quotes.
            (None | Some('"'), '\\') => {
                if letters.next().is_none() {
                    return Some("a trailing backslash escapes nothing");
                }
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (_, _) => {}
        }
    }
    quote.map(|_| "a quotation mark is not closed")
}

fn containers(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    if !is_dns_label(&spec.name) {
        add(faults, "spec.name", format!("{:?} is not a valid container name", spec.name));
    }
    let extra = spec.extra_mounts.iter().filter(|it| it.reaches_runs());
    let volumes: BTreeSet<&str> =
        extra.flat_map(|it| &it.volumes).map(|it| it.name.as_str()).chain(OWN_VOLUMES).collect();
    let mut seen = BTreeSet::from([spec.name.as_str(), HOST_KEYS_CONTAINER]);
    for (idx, container) in spec.init_containers.iter().enumerate() {
        let at = format!("spec.initContainers[{idx}]");
        if !is_dns_label(&container.name) {
            let message = format!("{:?} is not a valid container name", container.name);
            add(faults, format!("{at}.name"), message);
        } else if !seen.insert(&container.name) {
            let message = format!("{} names two containers: rename one", container.name);
            add(faults, format!("{at}.name"), message);
        }
        if container.image.as_deref().unwrap_or_default().trim().is_empty() {
            add(faults, format!("{at}.image"), "a container needs an image");
        }
        rights(container, &format!("{at}.securityContext"), faults);
        for (mount_idx, mount) in container.volume_mounts.iter().flatten().enumerate() {
            if !volumes.contains(mount.name.as_str()) {
                let message = format!("no volume of extraMounts is called {}", mount.name);
                add(faults, format!("{at}.volumeMounts[{mount_idx}].name"), message);
            }
        }
    }
    for (idx, secret) in spec.image_pull_secrets.iter().enumerate() {
        if !is_dns_subdomain(&secret.name) {
            let message = format!("{:?} is not a valid Secret name", secret.name);
            add(faults, format!("spec.imagePullSecrets[{idx}].name"), message);
        }
    }
}

/// Rejects what gives a container rights on its Kubernetes node.
fn rights(container: &Container, at: &str, faults: &mut Vec<Fault>) {
    let Some(context) = &container.security_context else { return };
    if context.privileged.unwrap_or_default() {
        let message = "a run has no rights on the Kubernetes node: remove it";
        add(faults, format!("{at}.privileged"), message);
    }
    let added = context.capabilities.iter().filter_map(|it| it.add.as_ref()).flatten();
    for name in added.filter(|it| !CAPABILITIES.contains(&it.as_str())) {
        let message = format!("{name} is none of {}: remove it", CAPABILITIES.join(", "));
        add(faults, format!("{at}.capabilities.add"), message);
    }
}

/// Without this rule, a user who may write a run could use the rights of any account of the namespace.
fn service_account(spec: &AnsibleEeSpec, settings: &Settings, faults: &mut Vec<Fault>) {
    let Some(name) = &spec.service_account_name else { return };
    let allowed = &settings.service_accounts;
    if !is_dns_subdomain(name) {
        let message = format!("{name:?} is not a valid ServiceAccount name");
        add(faults, "spec.serviceAccountName", message);
    } else if !allowed.iter().any(|it| it == name || it == "*") {
        let which = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
        let message = format!(
            "runs may not use ServiceAccount {name}: remove the field, or have the account \
             allowed where the operator is installed (ansibleee.allowedServiceAccounts, now {which})"
        );
        add(faults, "spec.serviceAccountName", message);
    }
}

fn dns(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    let Some(dns) = &spec.dns_config else { return };
    let servers: &[String] = dns.nameservers.as_deref().unwrap_or_default();
    if !(1..=3).contains(&servers.len()) {
        let message = "give one to three servers, because the cluster's own DNS is not used";
        add(faults, "spec.dnsConfig.nameservers", message);
    }
    for (idx, server) in servers.iter().enumerate() {
        if server.parse::<IpAddr>().is_err() {
            let message = format!("{server:?} is not an IP address");
            add(faults, format!("spec.dnsConfig.nameservers[{idx}]"), message);
        }
    }
    let searches: &[String] = dns.searches.as_deref().unwrap_or_default();
    if searches.len() > 32 {
        add(faults, "spec.dnsConfig.searches", "at most 32 domains");
    }
    for (idx, domain) in searches.iter().enumerate() {
        if !is_dns_subdomain(domain.trim_end_matches('.')) {
            let message = format!("{domain:?} is not a domain");
            add(faults, format!("spec.dnsConfig.searches[{idx}]"), message);
        }
    }
}

fn placement(spec: &AnsibleEeSpec, faults: &mut Vec<Fault>) {
    for (key, value) in &spec.node_selector {
        if !is_label_key(key) {
            let message = format!("{key:?} is not a valid label key");
            add(faults, "spec.nodeSelector", message);
        }
        if !value.is_empty() && !is_label_word(value) {
            let message = format!("{value:?} is not a valid label value");
            add(faults, format!("spec.nodeSelector.{key}"), message);
        }
    }
    for (idx, toleration) in spec.tolerations.iter().enumerate() {
        if let Some(message) = toleration_fault(toleration) {
            add(faults, format!("spec.tolerations[{idx}]"), message);
        }
    }
}

fn toleration_fault(it: &Toleration) -> Option<&'static str> {
    let key = it.key.as_deref().unwrap_or_default();
    let operator = it.operator.as_deref().unwrap_or_default();
    let effect = it.effect.as_deref().unwrap_or_default();
    let is_exists = operator == "Exists";
    if !["", "Equal", "Exists", "Gt", "Lt"].contains(&operator) {
        Some("operator must be Equal or Exists")
    } else if key.is_empty() && !is_exists {
        Some("without a key, operator must be Exists")
    } else if !key.is_empty() && !is_label_key(key) {
        Some("key is not a valid taint key")
    } else if is_exists && it.value.as_deref().is_some_and(|it| !it.is_empty()) {
        Some("operator Exists takes no value")
    } else if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        Some("effect must be NoSchedule, PreferNoSchedule or NoExecute")
    } else if it.toleration_seconds.is_some() && effect != "NoExecute" {
        Some("tolerationSeconds requires effect NoExecute")
    } else {
        None
    }
}

fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_label_word(name),
        None => is_label_word(key),
    }
}

/// Returns whether a text can be the last part of a label's key, or a non-empty label value.
fn is_label_word(text: &str) -> bool {
    let is_edge = |it: char| it.is_ascii_alphanumeric();
    let is_inner = |it: char| is_edge(it) || "-_.".contains(it);
    text.len() <= 63
        && text.starts_with(is_edge)
        && text.ends_with(is_edge)
        && text.chars().all(is_inner)
}

#[cfg(test)]
#[path = "pod_spec_rules_tests.rs"]
mod tests;

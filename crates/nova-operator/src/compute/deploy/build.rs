//! The services of a compute, and the run template of each.

use std::collections::BTreeMap;

use api::dataplane::Node;
use api::nova::{ConfigFile, ExternalCompute};
use api::shared::SourceKind;
use kube::ResourceExt;
use nova_config::rendered_secret::compute_secret_name;
use nova_config::services::{LIBVIRT, NOVA, NOVA_TYPE};
use operator_core::plan::Target;
use operator_core::run_engine::host_key::{self, HostKeyTrust};
use operator_core::run_engine::layout::Layout;
use operator_core::run_engine::run_template::{HostConnection, MountedSource, Play, RunTemplate};
use operator_runtime::source_cache::Digests;
use serde_json::{Value, json};

use crate::compute::deploy::drain::HostDrain;
use crate::compute::deploy::host_facts::HostFacts;
use crate::compute::deploy::resolve::Resolved;
use crate::compute::deploy::{identity, migration_key};
use crate::compute::host_layout::layout;

/// The operator's own play that checks the registration, so that it works with any collection.
const REGISTERED_PLAY: &str = include_str!("../../../plays/nova-registered.yaml");
/// Reboots the host where that is needed. It comes before the check of the registration, which then
/// shows that nova-compute reports after the reboot.
const REBOOT_PLAY: &str = "- import_playbook: osp.edpm.reboot\n";

/// An attempt of one service.
#[derive(Clone, Copy)]
pub struct Attempt<'a> {
    /// The service.
    pub service: &'a str,
    /// The files of nova's configuration.
    pub files: &'a [ConfigFile],
    /// What is requested for the servers of the host.
    pub drain: &'a HostDrain<'a>,
    /// Whether nova-compute is restarted even when none of its files and images has changed.
    pub restarts: bool,
}

/// Returns the run template of an attempt.
pub fn run_template(resolved: &Resolved<'_>, attempt: Attempt<'_>) -> RunTemplate {
    let Attempt { service, drain, .. } = attempt;
    let (play, service_type) = match service {
        LIBVIRT => (Play::Playbook("osp.edpm.libvirt".to_owned()), LIBVIRT),
        NOVA => (Play::Playbook("osp.edpm.nova".to_owned()), NOVA_TYPE),
        _ if drain.drains_before => {
            (Play::Contents(format!("{REBOOT_PLAY}{REGISTERED_PLAY}")), NOVA_TYPE)
        }
        _ => (Play::Contents(REGISTERED_PLAY.to_owned()), NOVA_TYPE),
    };
    let HostFacts { compute, node, .. } = resolved.host;
    let mounts = &resolved.certificate.mounts;
    let tls = if service == LIBVIRT { mounts.clone() } else { vec![] };
    RunTemplate {
        sources: sources(resolved, attempt),
        extra_vars: extra_vars(resolved, attempt),
        ..plain_run_template(compute, layout(compute, node, tls), play, service_type)
    }
}

/// Returns the run template for hosts with the pods of this compute's spec, which owns the runs; without
/// files or variables.
pub fn plain_run_template(
    compute: &ExternalCompute,
    layout: Layout,
    play: Play,
    service_type: &str,
) -> RunTemplate {
    let spec = &compute.spec;
    RunTemplate {
        image: spec.ansible_ee_container_image.clone().filter(|it| !it.is_empty()),
        env: spec.env.clone(),
        extra_mounts: spec.extra_mounts.clone(),
        network_attachments: spec.network_attachments.clone(),
        dns_config: spec.dns_config.clone(),
        ..RunTemplate::of(Target::of(compute), play, service_type, layout)
    }
}

/// Only the play that copies the files to the host gets them mounted.
fn sources(resolved: &Resolved<'_>, attempt: Attempt<'_>) -> Vec<MountedSource> {
    if attempt.service != NOVA {
        return vec![];
    }
    let rendered = MountedSource {
        kind: SourceKind::Secret,
        name: compute_secret_name(&resolved.host.compute.name_any()),
        keys: attempt.files.iter().map(|it| it.name.clone()).collect(),
    };
    let inputs = resolved.inputs.as_ref();
    let has_key = inputs.is_some_and(|it| it.all.contains_key(migration_key::SECRET));
    std::iter::once(rendered).chain(has_key.then(migration_key::source)).collect()
}

fn extra_vars(resolved: &Resolved<'_>, attempt: Attempt<'_>) -> BTreeMap<String, Value> {
    let Attempt { service, drain, restarts, .. } = attempt;
    let spec = &resolved.host.compute.spec;
    let vars = match service {
        LIBVIRT => vec![("edpm_nova_libvirt_image", json!(spec.nova_libvirt_container_image))],
        NOVA => vec![
            ("edpm_nova_compute_image", json!(spec.nova_compute_container_image)),
            ("edpm_nova_config_src", json!(format!("/var/lib/openstack/configs/{NOVA_TYPE}"))),
            ("edpm_nova_restart", json!(restarts)),
        ]
        .into_iter()
        .chain(identity_vars(&resolved.host, drain))
        .collect(),
        // Without it, the playbook leaves a deployed host as it is.
        _ if drain.drains_before => vec![("edpm_reboot_drained", json!(true))],
        _ => vec![],
    };
    vars.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// They are in no hash: an identity that is recorded later deploys nothing.
fn identity_vars(host: &HostFacts<'_>, drain: &HostDrain<'_>) -> Vec<(&'static str, Value)> {
    let Some(id) = host.missed.recorded else { return vec![] };
    let restores = json!(host.missed.restores(drain.progress));
    vec![(identity::COMPUTE_ID, json!(id)), (identity::RESTORES, restores)]
}

/// Returns the connection to the host of a compute, with the digests of its ssh Secret;
/// `was_key_refused` says whether the last attempt failed because of the host key.
pub fn connection(
    compute: &ExternalCompute,
    node: Option<&Node>,
    digests: Option<&Digests>,
    was_key_refused: bool,
) -> HostConnection {
    let address = node.and_then(|it| it.status.as_ref()?.address.clone()).unwrap_or_default();
    let (name, _) = ssh(compute, digests);
    let secret = Digests::ssh_secret(&name, digests);
    HostConnection::new(address, secret, &trust(node), was_key_refused)
}

/// Returns the trusted host key of a node's host, as the node's status records it.
///
/// No key is learned here: a host that is Ready was reached before. A scan runs only for a new key
/// that the user accepts, and the operator of the node then records it.
pub fn trust(node: Option<&Node>) -> HostKeyTrust {
    node.map(host_key::recorded_trust).unwrap_or_default()
}

/// Returns the name of the ssh Secret, of which these are the digests, and its resource version.
pub fn ssh(compute: &ExternalCompute, digests: Option<&Digests>) -> (String, String) {
    let name = compute.spec.ssh_key_secret_name.clone().unwrap_or_default();
    (name, digests.map(|it| it.version.clone()).unwrap_or_default())
}

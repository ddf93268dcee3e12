//! The services of a compute, and the run template of each.

use std::collections::BTreeMap;

use api::dataplane::Node;
use api::nova::ExternalCompute;
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

use crate::compute::deploy::evaluation::Evaluation;
use crate::compute::deploy::observed::Observed;
use crate::compute::deploy::{identity, libvirt_tls, migration_key};
use crate::compute::host_layout::layout;

/// The operator's own play that checks the registration, so that it works with any collection.
const REGISTERED_PLAY: &str = include_str!("../../../plays/nova-registered.yaml");
/// Reboots the host where that is needed. It comes before the check of the registration, which then
/// shows that nova-compute reports after the reboot.
const REBOOT_PLAY: &str = "- import_playbook: osp.edpm.reboot\n";

/// Returns the run template of a service. With `restarts`, nova-compute is restarted even when none
/// of its files and images has changed.
pub fn run_template(
    seen: &Observed,
    service: &str,
    evaluated: &Evaluation,
    restarts: bool,
) -> RunTemplate {
    let (play, service_type) = match service {
        LIBVIRT => (Play::Playbook("osp.edpm.libvirt".to_owned()), LIBVIRT),
        NOVA => (Play::Playbook("osp.edpm.nova".to_owned()), NOVA_TYPE),
        _ if evaluated.drain.drains_before => {
            (Play::Contents(format!("{REBOOT_PLAY}{REGISTERED_PLAY}")), NOVA_TYPE)
        }
        _ => (Play::Contents(REGISTERED_PLAY.to_owned()), NOVA_TYPE),
    };
    let tls = if service == LIBVIRT { libvirt_tls::mounts(seen) } else { vec![] };
    let layout = layout(&seen.compute, seen.node.as_deref(), tls);
    RunTemplate {
        sources: sources(seen, service, evaluated),
        extra_vars: extra_vars(seen, service, evaluated, restarts),
        ..plain_run_template(&seen.compute, layout, play, service_type)
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
fn sources(seen: &Observed, service: &str, evaluated: &Evaluation) -> Vec<MountedSource> {
    if service != NOVA {
        return vec![];
    }
    let rendered = MountedSource {
        kind: SourceKind::Secret,
        name: compute_secret_name(&seen.compute.name_any()),
        keys: evaluated.files.iter().map(|it| it.name.clone()).collect(),
    };
    let has_key =
        evaluated.inputs.as_ref().is_some_and(|it| it.contains_key(migration_key::SECRET));
    std::iter::once(rendered).chain(has_key.then(migration_key::source)).collect()
}

fn extra_vars(
    seen: &Observed,
    service: &str,
    evaluated: &Evaluation,
    restarts: bool,
) -> BTreeMap<String, Value> {
    let spec = &seen.compute.spec;
    let vars = match service {
        LIBVIRT => vec![("edpm_nova_libvirt_image", json!(spec.nova_libvirt_container_image))],
        NOVA => vec![
            ("edpm_nova_compute_image", json!(spec.nova_compute_container_image)),
            ("edpm_nova_config_src", json!(format!("/var/lib/openstack/configs/{NOVA_TYPE}"))),
            ("edpm_nova_restart", json!(restarts)),
        ]
        .into_iter()
        .chain(identity_vars(seen))
        .collect(),
        // Without it, the playbook leaves a deployed host as it is.
        _ if evaluated.drain.drains_before => vec![("edpm_reboot_drained", json!(true))],
        _ => vec![],
    };
    vars.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// They are in no hash: an identity that is recorded later deploys nothing.
fn identity_vars(seen: &Observed) -> Vec<(&'static str, Value)> {
    let Some(id) = identity::recorded(seen) else { return vec![] };
    let restores = json!(identity::restores(seen));
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

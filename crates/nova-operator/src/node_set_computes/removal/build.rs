//! Builds the run that stops nova-compute on a host that leaves a node set.

use std::collections::BTreeMap;

use api::dataplane::{HostReadiness, NodeSet};
use kube::{Resource, ResourceExt};
use nova_config::services::NOVA_TYPE;
use operator_core::node_set_host::{connection, dns_config, recorded_trust};
use operator_core::plan::{Step, Target, Write};
use operator_core::run_engine::last_run;
use operator_core::run_engine::layout::{Layout, NodeSets};
use operator_core::run_engine::run_template::{AnsibleOptions, DeploymentOptions, RunTemplate};
use operator_core::run_engine::service_sequence::NeededRun;
use operator_core::run_engine::ssh_secret::SshSecret;
use serde_json::json;

use crate::cleanup::build::{Extent, play};
use crate::node_set_computes::removal::labels::{CLEANUP_OF_NODE_SET, NODE_SET_NAME};

/// A host that is cleaned up, as a run reaches it.
pub struct Reached<'a> {
    /// Its name in the inventory.
    pub name: &'a str,
    /// Where ssh connects to, as `host:port`.
    pub address: &'a str,
    /// The ssh Secret of its node set.
    pub ssh: SshSecret<'a>,
    /// What is taken away from it.
    pub extent: Extent,
    /// Whether the last attempt failed because of its own key.
    pub was_key_refused: bool,
}

/// Returns the step that creates the run of an attempt.
///
/// The run belongs to the report with the host finalizer, which has it deleted when it goes; the
/// node set may go before.
pub fn cleanup(
    set: &NodeSet,
    report: &HostReadiness,
    need: NeededRun,
    reached: &Reached<'_>,
) -> Option<Step> {
    let name = reached.name;
    let trust = recorded_trust(set, name);
    let at = (name, reached.address);
    let connection = connection(set, at, reached.ssh, &trust, reached.was_key_refused);
    let mut step = last_run::step(&template(set, report, reached.extent), name, need, connection)?;
    if let Write::Create { object, .. } = &mut step.write {
        let metadata = &mut object["metadata"];
        metadata["labels"][CLEANUP_OF_NODE_SET] = json!(set.uid());
        metadata["annotations"][NODE_SET_NAME] = json!(set.name_any());
        // It blocks no deletion, for which no further right is needed.
        metadata["ownerReferences"] = json!([{
            "apiVersion": HostReadiness::api_version(&()),
            "kind": HostReadiness::kind(&()),
            "name": report.name_any(),
            "uid": report.uid(),
        }]);
    }
    Some(step)
}

fn template(set: &NodeSet, report: &HostReadiness, extent: Extent) -> RunTemplate {
    let secret = set.spec.node_template.ansible_ssh_private_key_secret.clone();
    RunTemplate {
        parent: Target::of(report),
        play: play(),
        service_type: NOVA_TYPE.to_owned(),
        image: None,
        env: set.spec.env.clone(),
        extra_mounts: set.spec.node_template.extra_mounts.clone(),
        network_attachments: set.spec.network_attachments.clone(),
        dns_config: dns_config(set),
        layout: Layout::NodeSets(NodeSets {
            ssh_secrets: BTreeMap::from([(set.name_any(), secret)]),
            is_global: false,
            tls: vec![],
        }),
        sources: vec![],
        options: AnsibleOptions::default(),
        fact_variables: Vec::new(),
        extra_vars: extent.variables(),
        template_vars: BTreeMap::new(),
        deployed: DeploymentOptions::default(),
    }
}

//! The objects of a group: its inventories and the run templates of its services.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::Role;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use operator_core::data_sources::service_type;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::layout::{Layout, Tls};
use operator_core::run_engine::run_template::{HostConnection, RunTemplate};
use operator_runtime::source_cache::Digests;
use serde_json::json;

use crate::finalizers::is_used;
use crate::host::effective_spec::EffectiveSpec;
use crate::host::inventory_metadata::{INVENTORY_HASH, Inventory};
use crate::host::services::{play, sources};
use crate::role::evaluate::EvaluatedHost;
use crate::role::inventory_part::{ContentMark, InventoryPart, node_content, role_content};
use crate::role::inventory_shards::node_inventory_name;
use crate::role::observed::{NodeGroup, Observed};
use crate::role::resolved::{ResolvedHost, is_first_deployment};
use crate::role::summary::HostSummary;
use crate::role::{inventory_shards, secret_vars};

/// Returns the steps that write those inventory objects that differ from the desired ones; `evaluated` are
/// the hosts that were evaluated in this pass, and `hosts` all of them. While further nodes arrive, the
/// role's objects that are not `mounted` by new runs are written later where no host in service lacks them.
pub fn inventories<'a>(
    seen: &Observed,
    evaluated: impl Iterator<Item = (&'a ResolvedHost<'a>, &'a Arc<HostSummary>)>,
    hosts: &[Arc<HostSummary>],
    mounted: Option<&BTreeSet<usize>>,
) -> Vec<Step> {
    let (mut reachable, mut steps) = (Vec::new(), Vec::new());
    for (host, summary) in evaluated {
        // The object of a host whose variables are unknown at present stays as it was written.
        let Some(part) = &summary.part else { continue };
        reachable.push(host);
        if has_own_inventory(seen, host) && !awaits_key(seen, host) {
            steps.extend(own_inventory(seen, host, part));
        }
    }
    let has_inventory =
        hosts.iter().any(|it| it.is_set_up()) || hosts.iter().all(|it| !it.has_unknown_vars);
    if let Some(role) = seen.role.as_deref().filter(|_| has_inventory) {
        steps.extend(shared_inventories(seen, role, &reachable, hosts, mounted));
        let left_over = inventory_shards::left_over(seen, hosts);
        steps.extend(left_over.iter().flat_map(|it| removal(seen, it)));
    }
    steps
}

/// Returns the steps that write the own inventories of hosts whose nodes go, where they lack one: an operator
/// may hold a node only a moment before its deletion, and its last work on the host needs the inventory.
pub fn inventories_of_leaving(seen: &Observed, hosts: &[ResolvedHost<'_>]) -> Vec<Step> {
    let role = seen.role.as_deref();
    let lacks = |it: &&ResolvedHost<'_>| {
        is_terminating(it.node) && is_used(it.node) && it.is_set_up() && !is_written(seen, it)
    };
    let lacking = hosts.iter().filter(lacks);
    lacking.flat_map(|it| own_inventory(seen, it, &InventoryPart::of(role, it))).collect()
}

/// Returns the steps that write a host's own inventory, the Secret beside it first: who finds the
/// inventory finds both.
fn own_inventory(seen: &Observed, host: &ResolvedHost<'_>, part: &InventoryPart) -> Vec<Step> {
    let name = node_inventory_name(&host.effective.name);
    let content = node_content(host, part);
    let secret = secret_vars::secret(seen, &name, &[&host.effective]);
    let inventory = config_map(seen, &name, &ContentMark::of(&content), || content);
    secret.into_iter().chain(inventory).collect()
}

/// Returns the steps that write the inventory objects of a role; `reachable` are its evaluated hosts.
fn shared_inventories(
    seen: &Observed,
    role: &Role,
    reachable: &[&ResolvedHost<'_>],
    hosts: &[Arc<HostSummary>],
    mounted: Option<&BTreeSet<usize>>,
) -> Vec<Step> {
    // A role without hosts has an inventory, too.
    let mut members = BTreeMap::from([(0, Vec::new())]);
    let mut in_service = BTreeSet::new();
    for host in hosts {
        members.entry(host.shard).or_default().extend(&host.part);
        in_service.extend((!host.turn.state.is_new()).then_some(host.shard));
    }
    // A known host has no variables from Secrets.
    let mut effective: BTreeMap<usize, Vec<&EffectiveSpec>> = BTreeMap::new();
    for host in reachable {
        effective.entry(host.shard).or_default().push(&host.effective);
    }
    let mut steps = Vec::new();
    for (shard, parts) in members {
        let name = inventory_shards::name(&role.name_any(), shard);
        // Each node that arrives would write it anew, with all of its hosts.
        let is_lacked = in_service.contains(&shard) && !seen.inventories.contains_key(&name);
        if mounted.is_some_and(|it| !it.contains(&shard)) && !is_lacked {
            continue;
        }
        let effective = effective.get(&shard).map(Vec::as_slice).unwrap_or_default();
        let content = || role_content(role, parts.iter().map(|it| &***it));
        let mark = seen.recalled.content(shard, &parts, || ContentMark::of(&content()));
        steps.extend(secret_vars::secret(seen, &name, effective));
        steps.extend(config_map(seen, &name, &mark, content));
    }
    steps
}

/// Returns whether a host has an inventory object of its own beside the one that it shares: operators that
/// hold its node by a finalizer, and the last look before its machine is given back, use it until the node
/// is gone. One that exists is kept up to date.
fn has_own_inventory(seen: &Observed, host: &ResolvedHost<'_>) -> bool {
    let is_alone = matches!(seen.group, NodeGroup::Node(_));
    is_alone || host.machine.is_some() || is_used(host.node) || is_written(seen, host)
}

fn is_written(seen: &Observed, host: &ResolvedHost<'_>) -> bool {
    seen.inventories.contains_key(&node_inventory_name(&host.effective.name))
}

/// Returns whether the host's own inventory object waits for its ssh host key, which the first run of its
/// role reports: only what follows that deployment uses the object, so that it is written once. It waits
/// no longer than that deployment, for the run may end without a key.
fn awaits_key(seen: &Observed, host: &ResolvedHost<'_>) -> bool {
    let is_unknown = host.trust.is_learned && host.trust.key.is_none();
    let is_run = host.may_run && !host.desired.is_empty() && is_first_deployment(host.node);
    seen.role.is_some() && is_unknown && is_run && !is_written(seen, host)
}

/// Returns the step that writes an inventory object; `None` when it is intact.
///
/// It has no ownerReference: the last work of phase 1 on a host needs the inventory while the node
/// is being deleted.
fn config_map(
    seen: &Observed,
    name: &str,
    ContentMark { hash, keys }: &ContentMark,
    content: impl FnOnce() -> BTreeMap<String, String>,
) -> Option<Step> {
    let is_intact = |it: &Inventory| {
        it.hash == *hash
            && !it.has_owner
            && it.managed_fields.has([INVENTORY_HASH], keys.iter().map(String::as_str))
    };
    if seen.inventories.get(name).is_some_and(is_intact) {
        return None;
    }
    let target = Target::named::<ConfigMap>(&seen.namespace, name);
    let object = json!({
        "metadata": {
            "annotations": { INVENTORY_HASH: hash },
            "labels": { "edpm.openstack.org/inventory": "true" },
        },
        "data": content(),
    });
    Some(Step::apply(target, object, "the inventory differs from what holds for its hosts"))
}

/// Returns the steps that delete an inventory object and the Secret beside it, where they exist.
pub fn removal(seen: &Observed, name: &str) -> Vec<Step> {
    let because = "what it describes is being deleted, and has no other finalizer";
    let has = |all: &BTreeMap<String, Inventory>| all.contains_key(name);
    let beside =
        has(&seen.inventory_secrets).then(|| Target::named::<Secret>(&seen.namespace, name));
    let inventory =
        has(&seen.inventories).then(|| Target::named::<ConfigMap>(&seen.namespace, name));
    beside.into_iter().chain(inventory).map(|it| Step::delete(it, because)).collect()
}

/// Returns the name of the inventory object that the group's runs on the hosts of a shard mount.
pub fn inventory_name(seen: &Observed, shard: usize) -> String {
    match &seen.group {
        NodeGroup::Role(name) => inventory_shards::name(name, shard),
        NodeGroup::Node(name) => node_inventory_name(name),
    }
}

/// Returns the run template of a service; `host` is any host of the run, which mounts `tls`, and
/// `shards_with_secret` are the parts of the role's inventory with variables from Secrets.
///
/// Returns `None` when the service does not exist or the runs have no parent.
pub fn run_template(
    seen: &Observed,
    name: &str,
    host: &ResolvedHost<'_>,
    shards_with_secret: &BTreeSet<usize>,
    tls: Vec<Tls>,
) -> Option<RunTemplate> {
    let service = seen.services.get(name)?;
    let effective = &host.effective;
    let inventory = inventory_name(seen, host.shard);
    let layout = Layout::Parent {
        beside: shards_with_secret.contains(&host.shard).then(|| inventory.clone()),
        inventory,
        tls,
    };
    let type_ = service_type(&service.spec, name);
    Some(RunTemplate {
        image: service.spec.open_stack_ansible_ee_runner_image.clone(),
        env: effective.env.clone(),
        extra_mounts: effective.extra_mounts.clone(),
        network_attachments: effective.network_attachments.clone(),
        sources: sources(&seen.sources, &seen.namespace, service),
        options: effective.options.clone(),
        fact_variables: service.spec.fact_variables.clone(),
        ..RunTemplate::of(seen.parent()?, play(service), &type_, layout)
    })
}

/// Returns how a run connects to a host.
pub fn connection(evaluated: &EvaluatedHost<'_>) -> HostConnection {
    let ResolvedHost { effective, ssh, trust, .. } = evaluated.host;
    let address = effective.address().unwrap_or_default();
    let secret = Digests::ssh_secret(effective.ssh_secret.as_deref().unwrap_or_default(), *ssh);
    HostConnection::new(address, secret, trust, evaluated.sequence.was_key_refused())
}

//! The preconditions of a compute, each with its own condition: inputs, node and cell.

use std::net::IpAddr;

use api::conditions::{self, ConditionDraft, READY, Severity, find};
use api::dataplane::Node;
use api::nova::Cell;
use api::problem::Problem;
use kube::ResourceExt;
use nova_config::annotations::{CELL, DEFAULT_CONFIG};
use nova_config::conditions::{CELL_MATCHES, INPUT_READY, NODE_READY, NOVA_CELL_READY};
use nova_config::conf::{CellFault, CellView, HostView, SERVICE_PASSWORD, TRANSPORT_URL};
use nova_config::oslo::{Value, nearest};
use operator_core::keyed::{Inputs, short};
use operator_core::run_engine::inventory::INVENTORY_KEY;
use operator_core::run_engine::ssh_secret::PRIVATE_KEY;

use crate::cell_inputs::{CREDENTIALS, view};
use crate::compute::deploy::config_inputs;
use crate::compute::deploy::config_inputs::Complete;
use crate::compute::deploy::observed::{Inventory, Observed};
use crate::compute::host_layout::inventory_source;
use crate::group::Group;
use crate::group::conflicting_service::listed;
use crate::reasons;
use crate::requested::cell_immutability::{CellBinding, binding_of, owns};
use crate::requested::desired_compute::{DesiredCompute, annotated};

/// A precondition, and whether a run may rely on what it is about.
#[derive(Debug)]
pub struct Precondition {
    /// What is reported of it.
    pub condition: ConditionDraft,
    /// Whether a run may rely on it: for its current generation, and that of its role (D1).
    pub is_usable: bool,
}

/// Whether every input is present and valid.
#[derive(Debug)]
pub struct InputState {
    /// What is reported of them.
    pub condition: ConditionDraft,
    /// The inputs of the configuration: known even when only the ssh key is missing, so that a change of
    /// them is reported as a change and not as unknown.
    pub complete: Option<Complete>,
}

/// Returns whether every input is present. `of_key` is what is wrong with the key for migrations, and
/// `of_runs` what else keeps the host from runs.
pub fn input(
    seen: &Observed,
    of_key: Option<Problem>,
    of_runs: impl IntoIterator<Item = Problem>,
) -> InputState {
    let mut faults = Vec::new();
    let cell = cell_view(seen, &mut faults);
    let host = host(seen, &mut faults);
    let default_config = default_config(seen, &mut faults);
    faults.extend(role_fault(seen));
    faults.extend(conflict_fault(seen));
    faults.extend(image_faults(seen));
    faults.extend(of_key);
    let complete = match (cell, host, faults.is_empty()) {
        (Some(cell), Some(host), true) => Some(Complete { cell, host, default_config }),
        _ => None,
    };
    faults.extend(ssh_faults(seen));
    faults.extend(of_runs);
    let condition = if complete.is_some() && faults.is_empty() {
        reasons::compute::INPUT_COMPLETE.condition(INPUT_READY, "Every input is there.")
    } else {
        incomplete(&faults)
    };
    InputState { condition, complete }
}

fn incomplete(faults: &[Problem]) -> ConditionDraft {
    let texts: Vec<&str> = faults.iter().map(|it| it.message.as_str()).collect();
    // A fault that the user can correct determines the reason.
    let is_ordinary = |it: &Problem| it.reason.severity == Some(Severity::Info);
    match faults.iter().find(|it| !is_ordinary(it)).or_else(|| faults.first()) {
        Some(first) if is_ordinary(first) => first.condition(INPUT_READY),
        Some(first) => first.reason.condition(INPUT_READY, texts.join(" ")),
        None => {
            let text = "The inputs are known once the node and the NovaCell exist.";
            reasons::compute::INPUTS_WAITING.condition(INPUT_READY, text)
        }
    }
}

/// Returns the cell as computes use it; a cell that does not exist has a condition of its own.
fn cell_view(seen: &Observed, faults: &mut Vec<Problem>) -> Option<CellView> {
    let cell = seen.cell.as_deref()?;
    let spec = &cell.spec;
    let secrets = [
        (&spec.secret, "spec.secret", SERVICE_PASSWORD, &seen.cell_secret),
        (
            &spec.cell_message_bus_secret_name,
            "spec.cellMessageBusSecretName",
            TRANSPORT_URL,
            &seen.message_bus,
        ),
    ];
    for (name, field, key, content) in secrets {
        if content.is_none() {
            let text = format!(
                "Secret {name}, named in {field} of NovaCell {}, does not exist: create it with \
                 the key {key}.",
                cell.name_any()
            );
            faults.push(Problem::new(&reasons::compute::SECRET_NOT_FOUND, text));
        }
    }
    let report = |found: Vec<CellFault>| {
        let problem = |it: CellFault| {
            Problem::new(&reasons::compute::SECRET_INCOMPLETE, format!("{}.", it.message))
        };
        faults.extend(found.into_iter().map(problem));
    };
    let view = view(cell, seen.cell_secret.as_ref(), seen.message_bus.as_ref())?;
    view.map_err(report).ok()
}

/// Returns the host's name and address. The name must not change: nova's records depend on it.
fn host(seen: &Observed, faults: &mut Vec<Problem>) -> Option<HostView> {
    let status = seen.node.as_ref()?.status.as_ref()?;
    let host_name = status.host_name.clone()?;
    if let Some(recorded) = seen.compute.host_name().filter(|it| *it != host_name) {
        let text = format!(
            "spec.hostName of OpenStackDataPlaneNode {} is now {host_name}, but the compute is \
             registered as {recorded}: set it back, or delete NovaExternalCompute {}.",
            seen.compute.spec.dataplane_node_name,
            seen.compute.name_any()
        );
        faults.push(Problem::new(&reasons::compute::HOST_NAME_CHANGED, text));
        return None;
    }
    let ip = status.address.as_deref().and_then(ip_of);
    let my_ip = ip.and_then(|it| Value::new(&it.to_string()).ok());
    Some(HostView { host_name: Value::new(&host_name).ok()?, my_ip })
}

/// Returns the IP address in `host:port`, or `None` when the host is a name.
fn ip_of(address: &str) -> Option<IpAddr> {
    let (host, _) = address.rsplit_once(':')?;
    host.trim_matches(['[', ']']).parse().ok()
}

/// Two writers of one directory would overwrite each other's files forever.
fn conflict_fault(seen: &Observed) -> Option<Problem> {
    let reported = seen.nova.listed.as_ref()?.message(&seen.compute.spec.dataplane_node_name);
    Some(Problem::new(&reasons::NOVA_SERVICE_LISTED, reported))
}

/// The values that a missing role gave to its computes are unknown, so nothing changes until it
/// exists again. The same holds for what the node published without the role.
fn role_fault(seen: &Observed) -> Option<Problem> {
    let node = seen.node.as_deref()?;
    let (role, name) = (node.spec.role.as_ref()?, node.name_any());
    if seen.group.is_none() {
        let text = format!(
            "OpenStackDataPlaneRole {role}, named in spec.role of OpenStackDataPlaneNode {name}, \
             does not exist: create it or correct spec.role."
        );
        return Some(Problem::new(&reasons::compute::ROLE_NOT_FOUND, text));
    }
    let is_without = node.status.as_ref().is_some_and(|it| it.observed_role.is_none());
    is_without.then(|| {
        let text = format!(
            "OpenStackDataPlaneNode {name} has not been reconciled with OpenStackDataPlaneRole \
             {role} yet."
        );
        Problem::new(&reasons::compute::INVENTORY_NOT_PUBLISHED, text)
    })
}

fn default_config(seen: &Observed, faults: &mut Vec<Problem>) -> Option<config_inputs::Default> {
    let named = seen.default_config.as_ref()?;
    let name = &named.name;
    let Some(content) = &named.content else {
        let text = format!(
            "ConfigMap {name}, named by annotation {DEFAULT_CONFIG} of the {}, does not exist: create \
             it, or remove the annotation.",
            what_names_defaults(seen)
        );
        faults.push(Problem::new(&reasons::compute::DEFAULT_CONFIG_NOT_FOUND, text));
        return None;
    };
    match config_inputs::default_text(content) {
        Ok(text) => Some(config_inputs::Default { name: name.clone(), text: text.to_owned() }),
        Err(why) => {
            faults.push(Problem::new(
                &reasons::compute::DEFAULT_CONFIG_INVALID,
                format!("ConfigMap {name} {why}."),
            ));
            None
        }
    }
}

/// Returns what has the annotation with the default configuration.
fn what_names_defaults(seen: &Observed) -> &'static str {
    let is_own = |it: &Node| it.annotations().contains_key(DEFAULT_CONFIG);
    match &seen.group {
        _ if seen.node.as_deref().is_some_and(is_own) => "node",
        Some(Group::NodeSet(_)) => "node set",
        Some(Group::Role(_)) | None => "role",
    }
}

fn ssh_faults(seen: &Observed) -> Vec<Problem> {
    let spec = &seen.compute.spec;
    let mut faults = Vec::new();
    let source = inventory_source(&seen.compute, seen.node.as_deref());
    let (Some(source), Some(secret)) = (source, &spec.ssh_key_secret_name) else {
        faults.extend(seen.node.as_deref().map(|it| without_inventory(seen, it)));
        return faults;
    };
    let inventory = source.key.name;
    let of_user = |reason, what| {
        let text = format!(
            "ConfigMap {inventory}, named in spec.inventoryConfigMapName for an inventory in the \
             key {INVENTORY_KEY}, {what}, or name the one that the node publishes."
        );
        Problem::new(reason, text)
    };
    faults.extend(match seen.inventory {
        Inventory::Found => None,
        Inventory::NotWritten => seen.node.as_deref().map(|it| not_written(&inventory, it)),
        Inventory::Absent => {
            Some(of_user(&reasons::compute::INVENTORY_NOT_FOUND, "does not exist: create it"))
        }
        Inventory::WithoutKey => {
            Some(of_user(&reasons::compute::INVENTORY_INCOMPLETE, "lacks that key: add it"))
        }
    });
    let Some(digests) = &seen.ssh else {
        let text = format!("Secret {secret} with the ssh key does not exist: create it.");
        faults.push(Problem::new(&reasons::compute::SSH_SECRET_NOT_FOUND, text));
        return faults;
    };
    if !digests.keys.contains_key(PRIVATE_KEY) {
        let text = format!("Secret {secret} has no key {PRIVATE_KEY}: add it.");
        faults.push(Problem::new(&reasons::SSH_SECRET_INCOMPLETE, text));
    }
    faults.extend(digests.ssh_key_fault.map(|it| {
        let text = format!("{PRIVATE_KEY} of Secret {secret} {}.", it.text());
        Problem::new(&reasons::SSH_SECRET_INVALID, text)
    }));
    faults
}

/// Returns the fault of a node's own inventory that is not written yet; a host of a role has one only while
/// another operator holds its node, as this one does for a compute that follows the node.
fn not_written(inventory: &str, node: &Node) -> Problem {
    let shared = node.status.as_ref().and_then(|it| it.shared_inventory_config_map_name.as_ref());
    let instead = shared.map(|it| {
        format!(
            " A compute that does not follow its node names {it} in spec.inventoryConfigMapName."
        )
    });
    let text = format!(
        "ConfigMap {inventory} of OpenStackDataPlaneNode {} is not written yet; see the node's \
         conditions.{}",
        node.name_any(),
        instead.unwrap_or_default()
    );
    Problem::new(&reasons::compute::INVENTORY_NOT_PUBLISHED, text)
}

/// Returns the fault of a compute without inventory or ssh key. For a compute that does not follow
/// its node, only the user can name them; the message has those that the node published.
fn without_inventory(seen: &Observed, node: &Node) -> Problem {
    let (compute, name) = (&*seen.compute, node.name_any());
    let (inventory, secret) = node.status.as_ref().map_or((None, None), |it| {
        // Nothing holds the node for this compute, so that it may have no inventory of its own.
        let shared = it.shared_inventory_config_map_name.as_ref();
        (shared.or(it.inventory_config_map_name.as_ref()), it.ssh_key_secret_name.as_ref())
    });
    let follows = owns(node, compute)
        || matches!(annotated(seen.group.as_ref(), node), DesiredCompute::Managed(_));
    if let (Some(inventory), Some(secret), false) = (inventory, secret, follows) {
        let text = format!(
            "NovaExternalCompute {} does not follow its node, for OpenStackDataPlaneNode {name} and \
             its role have no annotation {CELL}: set spec.inventoryConfigMapName to {inventory} and \
             spec.sshKeySecretName to {secret}, or annotate the node with {CELL}={}.",
            compute.name_any(),
            compute.spec.cell_name
        );
        return Problem::new(&reasons::compute::INVENTORY_NOT_NAMED, text);
    }
    let text = format!(
        "OpenStackDataPlaneNode {name} has not published its inventory and ssh key yet; see its \
         conditions."
    );
    Problem::new(&reasons::compute::INVENTORY_NOT_PUBLISHED, text)
}

fn image_faults(seen: &Observed) -> Option<Problem> {
    let (spec, defaults) = (&seen.compute.spec, &seen.default_images);
    let fields = [
        (
            "spec.novaComputeContainerImage",
            &spec.nova_compute_container_image,
            &defaults.nova_compute,
        ),
        (
            "spec.novaLibvirtContainerImage",
            &spec.nova_libvirt_container_image,
            &defaults.nova_libvirt,
        ),
    ];
    let is_unset = |it: &Option<String>| it.as_deref().unwrap_or_default().is_empty();
    let unset: Vec<_> = fields.into_iter().filter(|(_, image, _)| is_unset(image)).collect();
    let names: Vec<&str> =
        unset.iter().filter(|it| it.2.is_empty()).map(|(name, ..)| *name).collect();
    if !names.is_empty() {
        let text =
            format!("{} is unset and the operator has no default: set it.", names.join(", "));
        return Some(Problem::new(&reasons::compute::IMAGE_NOT_SET, text));
    }
    (!unset.is_empty()).then(|| {
        let all: Vec<String> = unset.iter().map(|(name, _, it)| format!("{name}: {it}")).collect();
        let text = format!(
            "Default images are being filled in where the compute has the name of its node; where \
             it has another one, set {}.",
            all.join(", ")
        );
        Problem::new(&reasons::compute::IMAGES_NOT_FILLED, text)
    })
}

/// Returns whether the node can be used, according to a status of its current generation;
/// `is_registered` is whether the compute is known to have registered.
pub fn node(seen: &Observed, is_registered: bool) -> Precondition {
    let node = seen.node.as_deref();
    let is_current = node.is_some_and(|it| !is_node_lagging(seen, it));
    let condition = node_condition(seen, is_current, is_registered);
    Precondition { is_usable: is_current && condition.holds(), condition }
}

fn node_condition(seen: &Observed, is_current: bool, is_registered: bool) -> ConditionDraft {
    let name = &seen.compute.spec.dataplane_node_name;
    let Some(node) = seen.node.as_deref() else {
        let text = format!("OpenStackDataPlaneNode {name} does not exist: create it.");
        return reasons::compute::NODE_NOT_FOUND.condition(NODE_READY, text);
    };
    if node.metadata.deletion_timestamp.is_some() {
        let text = format!("OpenStackDataPlaneNode {name} is being deleted.");
        return reasons::compute::NODE_TERMINATING.condition(NODE_READY, text);
    }
    let not_ready = || {
        let text = format!("OpenStackDataPlaneNode {name} is not Ready yet; see its conditions.");
        reasons::compute::NODE_NOT_READY.condition(NODE_READY, text)
    };
    if !is_current {
        // The status is outdated: the previous condition stays until the node's controller has
        // caught up.
        let before = find(seen.compute.conditions(), NODE_READY);
        return before.map_or_else(not_ready, ConditionDraft::repeated);
    }
    if let Some(service) = awaited_service(seen, node).filter(|_| !is_registered) {
        let text = format!(
            "OpenStackDataPlaneService {service} has not succeeded yet on the host of \
             OpenStackDataPlaneNode {name}, which lists it: nova-compute first runs there after it. The \
             conditions of the node say what it waits for."
        );
        return reasons::compute::NODE_NOT_READY.condition(NODE_READY, text);
    }
    if conditions::is_true(node.conditions(), READY) {
        let text = format!("OpenStackDataPlaneNode {name} is Ready.");
        return reasons::compute::NODE_READY.condition(NODE_READY, text);
    }
    not_ready()
}

/// Returns a service that the host has yet to get before the compute registers for the first time: a node
/// stays Ready while it awaits its turn in a rollout of new services, and without a network guests would
/// fail on a compute that nova knows.
fn awaited_service<'a>(seen: &'a Observed, node: &'a Node) -> Option<&'a String> {
    let runs = node.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default();
    let has = |name: &str| runs.iter().any(|it| it.name == name && it.deployed_hash.is_some());
    listed(seen.group.as_ref(), node).iter().find(|it| !has(it))
}

/// Whether the node's controller has not observed the last change of the node or its role yet.
fn is_node_lagging(seen: &Observed, node: &Node) -> bool {
    let Some(status) = &node.status else { return true };
    let is_role_current = match (seen.group.as_ref().and_then(Group::role), &status.observed_role) {
        (Some(role), Some(observed)) => {
            Some(&observed.uid) == role.metadata.uid.as_ref()
                && Some(observed.generation) == role.metadata.generation
        }
        (None, None) => true,
        // The node's controller has not observed yet that its role was created or deleted.
        _ => false,
    };
    status.observed_generation != node.metadata.generation || !is_role_current
}

/// Returns whether the cell can be used.
pub fn cell(seen: &Observed) -> Precondition {
    let is_current = seen.cell.as_deref().is_some_and(|it| !is_cell_lagging(it));
    let condition = cell_condition(seen, is_current);
    Precondition { is_usable: is_current && condition.holds(), condition }
}

fn cell_condition(seen: &Observed, is_current: bool) -> ConditionDraft {
    let name = &seen.compute.spec.cell_name;
    if name.is_empty() {
        let text = seen.nova.cell().message(&seen.compute.name_any());
        return reasons::compute::CELL_UNKNOWN.condition(NOVA_CELL_READY, text);
    }
    let Some(cell) = seen.cell.as_deref() else {
        let near = nearest(name, seen.other_cells.iter().cloned());
        let near = Some(near.join(" or ")).filter(|it| !it.is_empty());
        let meant = near.map(|it| format!(" (did you mean {it}?)")).unwrap_or_default();
        let text = format!(
            "NovaCell {name} does not exist{meant}: create it, or correct annotation {CELL} of the \
             node or its role."
        );
        return reasons::compute::NOVA_CELL_NOT_FOUND.condition(NOVA_CELL_READY, text);
    };
    if !is_current {
        let waiting = || {
            let text = format!("NovaCell {name} has not been reconciled yet.");
            reasons::compute::NOVA_CELL_UNKNOWN.condition(NOVA_CELL_READY, text)
        };
        let before = find(seen.compute.conditions(), NOVA_CELL_READY);
        return before.map_or_else(waiting, ConditionDraft::repeated);
    }
    match find(cell.conditions(), READY) {
        Some(ready) if ready.status == conditions::ConditionStatus::True => {
            reasons::compute::NOVA_CELL_READY
                .condition(NOVA_CELL_READY, format!("NovaCell {name} is Ready."))
        }
        Some(ready) => {
            let text = format!("NovaCell {name} is not Ready: {}", ready.message);
            reasons::compute::NOVA_CELL_NOT_READY.condition(NOVA_CELL_READY, text)
        }
        None => {
            let text = format!("NovaCell {name} has no condition Ready yet.");
            reasons::compute::NOVA_CELL_UNKNOWN.condition(NOVA_CELL_READY, text)
        }
    }
}

/// An external control plane may not set `observedGeneration`; then its status is trusted.
fn is_cell_lagging(cell: &Cell) -> bool {
    let observed = cell.status.as_ref().and_then(|it| it.observed_generation);
    observed.is_some() && observed != cell.metadata.generation
}

/// Reports a mismatch that the webhook did not prevent. It blocks nothing: the compute stays in its
/// cell, and its other fields keep following the node.
pub fn cell_matches(seen: &Observed) -> ConditionDraft {
    let own = seen.node.as_deref().filter(|it| owns(it, &seen.compute));
    let has_runs = !seen.runs.is_empty();
    let found =
        own.map(|it| binding_of(seen.group.as_ref(), it, &seen.compute, &seen.nova, has_runs));
    match found {
        Some(CellBinding::Bound(mismatch)) => {
            reasons::compute::CELL_MISMATCH.condition(CELL_MATCHES, mismatch.message())
        }
        Some(CellBinding::Unknown { group }) => {
            let text = format!(
                "{group}, which would name the cell, does not exist: create \
                 it, or correct spec.role of the node."
            );
            reasons::compute::CELL_ROLE_NOT_FOUND.condition(CELL_MATCHES, text)
        }
        Some(CellBinding::CellUnknown(cell)) => {
            let text = cell.message(&seen.compute.name_any());
            reasons::compute::CELL_UNKNOWN.condition(CELL_MATCHES, text)
        }
        // A compute that is about to be deleted needs no message.
        Some(CellBinding::Agrees | CellBinding::Replaceable | CellBinding::MayGo) | None => {
            let text = "The node asks for no other cell.";
            reasons::compute::CELL_MATCHES.condition(CELL_MATCHES, text)
        }
    }
}

/// Whether the inputs that a cell has now are newer than those of its controller's last login to the
/// message bus: until that login, a mistyped `transport_url` is not deployed. Nova's own password is not
/// tested. For an external control plane this is unknown, and so false.
pub fn is_untried(seen: &Observed, of_cell: &Inputs) -> bool {
    let cell = seen.cell.as_deref().filter(|_| seen.cells_are_ours);
    let tried = cell.and_then(|it| it.status.as_ref()?.hash.get(CREDENTIALS));
    tried.is_some_and(|it| !short(of_cell).is(it))
}

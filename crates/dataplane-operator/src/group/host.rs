//! The judgement on one host of a group: what holds for it, what is wrong, what comes next.

use std::collections::BTreeMap;
use std::sync::Arc;

use common::api::dataplane::{Node, ServiceRun};
use common::engine::build::Options;
use common::engine::chain::{self, Chain};
use common::engine::rollout::{Hold, Standing};
use common::engine::{Host, Run, Wanted, limit};
use common::hash;
use jiff::Timestamp;
use kube::ResourceExt;

use crate::effective::Effective;
use crate::group::faults::{self, Fault, sources_of};
use crate::group::instance;
use crate::group::observe::Observed;
use crate::inputs::{self, Inputs};

/// One host, judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The object.
    pub node: Arc<Node>,
    /// The values that hold for it.
    pub effective: Effective,
    /// Whether its role exists.
    pub has_role: bool,
    /// Whether `ansibleLimit` leaves it out: it keeps the state that it has.
    pub is_left_out: bool,
    /// Which instance of the host it is.
    pub instance: Option<String>,
    /// What keeps it from being deployed.
    pub faults: Vec<Fault>,
    /// All inputs of all its services.
    pub inputs: Inputs,
    /// Where it stands.
    pub chain: Chain,
    /// Why its deployment does not begin yet, where the role's limits hold it back.
    pub hold: Option<Hold>,
}

impl Judged {
    /// What beginning or going on with it means for a rollout.
    pub fn standing(&self) -> Standing {
        let status = self.node.status.as_ref();
        let recorded = status.map(|it| it.services.as_slice()).unwrap_or_default();
        Standing::of(recorded, status.is_some_and(|it| !it.deployed_inputs.is_empty()))
    }
}

/// Judges one host; `group_faults` concern all hosts alike, and `hold` keeps it from beginning.
pub fn judge(
    seen: &Observed,
    node: &Arc<Node>,
    group_faults: &[Fault],
    runs: &[Run<'_>],
    hold: Option<Hold>,
    now: Timestamp,
) -> Judged {
    let mut effective = Effective::of(seen.plane.as_deref(), seen.role.as_deref(), node);
    let is_left_out = is_left_out(seen, &effective);
    if is_left_out {
        // No run will reach it, so nothing narrows what it is compared with.
        effective.options = Options::default();
    }
    let instance = instance::of(seen.role.as_deref(), node);
    let mut faults = faults::of_node(seen, node, &effective);
    faults.extend_from_slice(group_faults);
    let recorded = node.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default();
    let (wanted, inputs) = wanted(seen, &effective, instance.as_deref(), recorded);
    let ssh_secret = effective.ssh_secret.clone().unwrap_or_default();
    let ssh_version = ssh_version(seen, &ssh_secret);
    let redeploy = instance::redeploy_command(node);
    let mut chain = chain::judge(
        &Host {
            name: &effective.name,
            wanted: &wanted,
            recorded,
            may_run: effective.deploy && !is_left_out && faults.is_empty() && hold.is_none(),
            ssh_key: (&ssh_secret, &ssh_version),
            redeploy: &redeploy,
        },
        runs,
        now,
    );
    let has_role = seen.role.is_some();
    if !has_role {
        // A role that is gone undoes nothing: what was recorded stays for when it is back.
        chain.services = recorded.to_vec();
    }
    Judged {
        node: Arc::clone(node),
        effective,
        has_role,
        is_left_out,
        instance,
        faults,
        inputs,
        chain,
        hold,
    }
}

fn is_left_out(seen: &Observed, effective: &Effective) -> bool {
    let group = seen.role.as_ref().map(|it| it.name_any());
    let groups: Vec<&str> = group.iter().map(String::as_str).collect();
    let limit = effective.options.limit.as_deref();
    limit.is_some_and(|it| limit::leaves_out(it, &effective.name, &groups))
}

/// The resource version of the ssh Secret; empty where it does not exist.
pub fn ssh_version(seen: &Observed, secret: &str) -> String {
    let source = shell::sources::SourceRef::secret(&seen.namespace, secret);
    seen.sources.get(&source).map(|it| it.version.clone()).unwrap_or_default()
}

/// The services of a host in order, and the union of their inputs.
fn wanted(
    seen: &Observed,
    effective: &Effective,
    instance: Option<&str>,
    recorded: &[ServiceRun],
) -> (Vec<Wanted>, Inputs) {
    let of_host = inputs::of_host(effective, instance);
    let mut union = of_host.clone();
    let mut wanted = Vec::new();
    let names = seen.role.as_ref().map(|it| it.spec.services.as_slice()).unwrap_or_default();
    for name in names {
        let Some(service) = seen.services.get(name) else {
            wanted.push(as_recorded(recorded, name));
            continue;
        };
        let sources = source_digests(seen, name);
        let of_service = inputs::of_service(service, name, &sources);
        let hash = inputs::hash([&of_host, &of_service]);
        let run_hash = inputs::run_hash(&hash, &effective.options);
        let group = group(effective, service, &of_service);
        union.extend(of_service);
        wanted.push(Wanted { service: name.clone(), hash, run_hash, group });
    }
    (wanted, union)
}

/// A service that is listed and does not exist: what was deployed of it stays deployed.
fn as_recorded(recorded: &[ServiceRun], name: &str) -> Wanted {
    let record = recorded.iter().find(|it| it.name == name);
    let hash = record.map_or_else(|| "unknown".to_owned(), |it| it.hash.clone());
    Wanted { service: name.to_owned(), run_hash: hash.clone(), hash, group: String::new() }
}

/// What hosts must agree in to share a run; variables may differ, they are in each host's hash.
fn group(
    effective: &Effective,
    service: &common::api::dataplane::Service,
    of_service: &Inputs,
) -> String {
    let options = &effective.options;
    hash::digest(&(
        of_service,
        &effective.env,
        &effective.extra_mounts,
        &effective.network_attachments,
        (&options.tags, &options.skip_tags, &options.limit),
        &service.spec.open_stack_ansible_ee_runner_image,
    ))
}

/// `ConfigMap x` → digest of its content, for each object that a service names and that exists.
fn source_digests(seen: &Observed, service: &str) -> BTreeMap<String, String> {
    let Some(service) = seen.services.get(service) else { return BTreeMap::new() };
    sources_of(&service.spec)
        .into_iter()
        .filter_map(|it| {
            let digests = seen.sources.get(&it.source(&seen.namespace))?;
            Some((it.title(), hash::short(&digests.keys)))
        })
        .collect()
}

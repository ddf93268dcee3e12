//! `retry`: which object gets the annotation that requests another attempt, or which deployment is
//! created.

use api::ansibleee::{AnsibleEe, HostOutcome};
use api::conditions::READY;
use kube::ResourceExt;

use crate::conditions::said;
use crate::error::{Error, Result};
use crate::host::{Host, Step};
use crate::kinds::DEPLOYMENT;
use crate::object_meta::place;
use crate::run::owner_of;
use crate::snapshot::Snapshot;
use crate::stage::{Phase, Stage};

pub mod order;
mod retry_plan;

use order::{Order, Target};

/// Returns what to write to retry a node or the hosts of a run.
///
/// `is_forced` also retries what succeeded. Returns an error when nothing failed, or when neither a
/// host nor a run has the name.
pub fn orders(
    snapshot: &Snapshot,
    namespace: &str,
    name: &str,
    is_forced: bool,
) -> Result<Vec<Order>> {
    let run = snapshot.runs.iter().find(|it| place(*it) == (namespace, name));
    match (snapshot.host(namespace, name), run) {
        (Some(host), _) => Ok(vec![of_host(&host, is_forced)?]),
        (None, Some(run)) => of_run(snapshot, namespace, run, is_forced),
        (None, None) => Err(Error::no_such_node(name)),
    }
}

/// Retries the first stage with a failed service; the later ones follow by themselves.
fn of_host(host: &Host<'_>, is_forced: bool) -> Result<Order> {
    let has_failed = |it: &&Stage<'_>| host.progress(it).iter().any(|it| it.state == Step::Failed);
    let forced =
        || host.open_stage().filter(|it| !it.name.is_empty()).or_else(|| host.stages.first());
    let failed = host.stages.iter().find(has_failed);
    if host.node.node_set().is_some() && failed.is_none_or(|it| it.phase == Phase::Deploy) {
        return retry_plan::of_host(host, is_forced);
    }
    let stage = failed.or_else(|| forced().filter(|_| is_forced));
    let stage = stage.ok_or_else(|| nothing_failed(host))?;
    let target = if stage.phase == Phase::Nova { Target::Compute } else { Target::Node };
    let is_off = stage.deploys == Some(false);
    Ok(Order::Annotation { target, name: stage.name.to_owned(), is_off })
}

/// Returns the error for a host on which nothing failed.
fn nothing_failed(host: &Host<'_>) -> Error {
    if let Some(current) = host.stages.iter().find_map(|it| host.at_work(it)) {
        return Error::message(format!(
            "service {} of {} is {} already; --force asks for one more attempt after it",
            current.service, host.name, current.state
        ));
    }
    let ready = host.open_stage().and_then(|it| it.condition(READY));
    let waits = ready.map(|it| format!(", which waits: {}", said(it))).unwrap_or_default();
    Error::message(format!(
        "nothing has failed on {}{waits}; --force runs every service again",
        host.name
    ))
}

/// Retries the hosts of a run. A run is never reused, so its hosts get another one.
fn of_run(
    snapshot: &Snapshot,
    namespace: &str,
    run: &AnsibleEe,
    is_forced: bool,
) -> Result<Vec<Order>> {
    let name = run.name_any();
    let Some((kind, owner)) = owner_of(run) else {
        return Err(Error::message(format!(
            "OpenStackAnsibleEE {name} was made by hand, and no operator makes another one: change \
             its spec, or delete it and create it again"
        )));
    };
    let hosts = hosts(run, is_forced)?;
    if kind == "NovaExternalCompute" {
        let compute = snapshot.computes.iter().find(|it| place(*it) == (namespace, owner));
        let is_off = compute.is_some_and(|it| it.spec.deploy == Some(false));
        let (target, name) = (Target::Compute, owner.to_owned());
        return Ok(vec![Order::Annotation { target, name, is_off }]);
    }
    if kind == DEPLOYMENT {
        return retry_plan::of_run(snapshot, namespace, run, owner, hosts);
    }
    let order = |name: String| {
        let host = snapshot.host(namespace, &name);
        let is_off = host.is_some_and(|it| it.stages[0].deploys == Some(false));
        Order::Annotation { target: Target::Node, name, is_off }
    };
    Ok(hosts.into_iter().map(order).collect())
}

/// Returns the hosts that failed in a run; with `is_forced` all of its hosts if none did.
fn hosts(run: &AnsibleEe, is_forced: bool) -> Result<Vec<String>> {
    let hosts = run.status.iter().flat_map(|it| &it.hosts);
    let failed = hosts.filter(|it| it.result != HostOutcome::Ok).map(|it| it.name.clone());
    let failed: Vec<String> = failed.collect();
    match (failed.is_empty(), is_forced) {
        (false, _) => Ok(failed),
        (true, true) => Ok(run.spec.hosts.iter().map(|it| it.name.clone()).collect()),
        (true, false) => Err(Error::message(format!(
            "no host of OpenStackAnsibleEE {} has failed; --force runs their services again",
            run.name_any()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use api::dataplane::{Deployment, RunState};

    use super::*;
    use crate::testdata;

    fn order(target: Target, name: &str) -> Order {
        Order::Annotation { target, name: name.to_owned(), is_off: false }
    }

    fn asked(name: &str, is_forced: bool) -> Result<Vec<Order>> {
        orders(&testdata::snapshot(), "openstack", name, is_forced)
    }

    #[test]
    fn the_first_phase_that_is_not_done_is_tried_again() {
        assert_eq!(
            asked("edpm-compute-2", false).unwrap(),
            [order(Target::Node, "edpm-compute-2")]
        );
        let mut snapshot = testdata::snapshot();
        snapshot.runs.clear();
        let nova = [order(Target::Compute, "edpm-compute-1")];
        snapshot.computes[1].status.as_mut().unwrap().services[0].state = RunState::Failed;
        assert_eq!(orders(&snapshot, "openstack", "edpm-compute-1", false).unwrap(), nova);
    }

    #[test]
    fn what_waits_for_something_else_says_so() {
        let mut snapshot = testdata::snapshot();
        snapshot.runs.clear();
        snapshot.nodes[2].status.as_mut().unwrap().services.clear();
        let error = orders(&snapshot, "openstack", "edpm-compute-2", false).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("nothing has failed on edpm-compute-2, which waits: TaskFailed: "),
            "{text}"
        );
    }

    #[test]
    fn what_is_under_way_is_not_asked_for_again() {
        let text = asked("edpm-compute-1", false).unwrap_err().to_string();
        assert!(text.contains("service nova of edpm-compute-1 is Running already"), "{text}");
        let nova = [order(Target::Compute, "edpm-compute-1")];
        assert_eq!(asked("edpm-compute-1", true).unwrap(), nova);
    }

    #[test]
    fn what_has_not_failed_is_left_alone_unless_it_is_forced() {
        let text = asked("edpm-compute-0", false).unwrap_err().to_string();
        assert!(text.contains("nothing has failed on edpm-compute-0"), "{text}");
        assert_eq!(asked("edpm-compute-0", true).unwrap(), [order(Target::Node, "edpm-compute-0")]);
    }

    #[test]
    fn a_run_stands_for_those_of_its_hosts_that_failed() {
        let orders = asked("install-os-edpm-compute-3333333333", false).unwrap();
        assert_eq!(orders, [order(Target::Node, "edpm-compute-2")]);
        let good = "nova-edpm-compute-0-5555555555";
        assert!(asked(good, false).unwrap_err().to_string().contains("no host of"));
        assert_eq!(asked(good, true).unwrap(), [order(Target::Compute, "edpm-compute-0")]);
    }

    fn of_node_set(name: &str, is_forced: bool) -> Result<Vec<Deployment>> {
        let orders = orders(&testdata::node_set(), "openstack", name, is_forced)?;
        let deployment = |it| match it {
            Order::Deployment(it) => *it,
            Order::Annotation { .. } => panic!("no node: {it:?}"),
        };
        Ok(orders.into_iter().map(deployment).collect())
    }

    #[test]
    fn a_host_of_a_node_set_gets_a_deployment_like_the_one_that_failed_there() {
        let run = "install-os-openstack-edpm-x7abc-openstack-edpm-8888888888";
        for name in ["edpm-compute-6", "compute-6", run] {
            let deployments = of_node_set(name, false).unwrap();
            let [it] = deployments.as_slice() else { panic!("{deployments:?}") };
            assert_eq!(it.metadata.generate_name.as_deref(), Some("openstack-edpm-x7abc-"));
            assert_eq!(it.spec.node_sets, ["openstack-edpm"]);
            assert_eq!(it.spec.ansible_limit.as_deref(), Some("edpm-compute-6"));
            assert_eq!(it.spec.ansible_extra_vars["edpm_x"], 1, "all of the last one's spec");
        }
    }

    #[test]
    fn a_host_of_a_node_set_that_has_not_failed_is_left_alone_unless_it_is_forced() {
        let text = of_node_set("edpm-compute-5", false).unwrap_err().to_string();
        assert!(text.contains("no deployment has failed on edpm-compute-5"), "{text}");
        let forced = of_node_set("edpm-compute-5", true).unwrap();
        assert_eq!(forced[0].spec.ansible_limit.as_deref(), Some("edpm-compute-5"));
        assert!(forced[0].spec.ansible_extra_vars.is_empty() && forced.len() == 1);
        let mut snapshot = testdata::node_set();
        snapshot.deployments[0].status.as_mut().unwrap().conditions.clear();
        let text = orders(&snapshot, "openstack", "edpm-compute-6", false).unwrap_err().to_string();
        assert!(text.contains("openstack-edpm-x7abc automatically retries what failed"), "{text}");
    }

    #[test]
    fn a_run_made_by_hand_is_its_makers() {
        let text = asked("by-hand", true).unwrap_err().to_string();
        assert!(text.contains("was made by hand"), "{text}");
        let text = asked("nobody", false).unwrap_err().to_string();
        assert!(text.starts_with("Error from server (NotFound)"), "{text}");
    }
}

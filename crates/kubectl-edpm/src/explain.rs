//! `explain`: the chain of dependencies of a host down to its cause, then each object with its
//! conditions.

use api::ansibleee::{AnsibleEe, JobStatus};
use api::conditions::{Condition, ConditionStatus, READY, RECONCILING, STALLED, Severity, find};
use api::dataplane::Deployment;
use api::dataplane::condition_types::{DEPLOYMENT_READY, UP_TO_DATE};
use kube::ResourceExt;

use crate::color::{Paint, Tone, table};
use crate::conditions::{said, said_so_far};
use crate::deployments::waiting;
use crate::host::{Host, Progress, Step};
use crate::kinds::DEPLOYMENT;
use crate::object_meta::place;
use crate::run::{job_status, service_of};
use crate::stage::{Group, Phase, Stage, heading};
use crate::status::truth;

/// One element of the chain; it waits for the next one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Link {
    /// Kind and name of the object, or the name of the service.
    pub what: String,
    /// The reason and message of its state.
    pub why: String,
}

/// Returns the full text of `explain` for a host.
pub fn text(host: &Host<'_>, paint: Paint) -> String {
    let mut out = summary(host, paint);
    for stage in &host.stages {
        out += &section(&heading(stage.kind, stage.name), &stage.conditions, paint);
        if let (Phase::Prepare | Phase::Deploy, Some(group)) = (stage.phase, &host.group) {
            out += &of_group(group, paint);
        }
        for deployment in deployments(host, stage) {
            out += &of_group(&deployment, paint);
        }
        out += &services(host, stage, paint);
        out += &runs(host, stage, paint);
        if let Some(below) = &stage.below {
            out += &of_group(below, paint);
        }
    }
    out += &by_hand(host, paint);
    out
}

/// Returns the chain from the last stage that is not ready down to the cause, or an empty list when
/// all stages are ready.
pub fn links(host: &Host<'_>) -> Vec<Link> {
    let mut open: Vec<&Stage<'_>> =
        host.stages.iter().filter(|it| it.truth(READY) != ConditionStatus::True).collect();
    open.drain(..decisive(&open));
    let Some(first) = open.first() else { return vec![] };
    // A later stage waits for the first one that is not ready.
    let mut links: Vec<Link> = open.iter().rev().map(|it| of_stage(it)).collect();
    if let Some(group) = missing(host, first) {
        links.push(of_absent(group));
        return links;
    }
    if let Some(below) = first.below.as_ref().filter(|it| !is_ready(it)) {
        links.push(of_object(below));
        return links;
    }
    let deployments = deployments(host, first);
    let open = deployments.iter().rfind(|it| !is_ready(it));
    if let Some(open) = open.filter(|_| waits_for_services(first)) {
        links.push(of_object(open));
        if first.deployment.is_none_or(|it| place(it).1 != open.name) {
            // It has not begun, so the state of its services is unknown.
            return links;
        }
    }
    match host.current(first).filter(|it| is_cause(it, first)) {
        Some(current) => {
            links.push(of_service(&current));
            links.extend(current.run.map(|it| of_run(it, host.name)));
        }
        None => links.extend(referred(first)),
    }
    links
}

/// Returns the index of the stage that the others wait for: the first one, unless it goes on or
/// waits while a later one has an error that only the user can correct.
fn decisive(open: &[&Stage<'_>]) -> usize {
    let has_error = |it: &&Stage<'_>| {
        let severity = it.condition(READY).and_then(|it| it.severity);
        matches!(severity, Some(Severity::Error | Severity::Warning))
    };
    open.iter().position(has_error).unwrap_or_default()
}

/// Whether a stage is not ready because of a service, and not because of an input or a wait before
/// its services.
fn is_cause(service: &Progress<'_>, stage: &Stage<'_>) -> bool {
    service.state != Step::Pending && waits_for_services(stage)
}

fn waits_for_services(stage: &Stage<'_>) -> bool {
    let deployment = stage.condition(DEPLOYMENT_READY).map(said);
    deployment.is_none() || deployment == stage.condition(READY).map(said)
}

/// Returns the condition that the message of a stage refers to.
fn referred(stage: &Stage<'_>) -> Option<Link> {
    let message = &stage.condition(READY)?.message;
    let is_meant = |it: &&Condition| {
        it.status != ConditionStatus::True && message.contains(&format!("see {}", it.type_))
    };
    let found = stage.conditions.iter().find(is_meant)?;
    Some(Link { what: format!("condition {}", found.type_), why: said(found) })
}

/// Returns the deployment that last ran on a host of a node set, and a newer one that has not
/// begun.
fn deployments<'a>(host: &Host<'a>, stage: &Stage<'a>) -> Vec<Group<'a>> {
    let waiting = Some(host).filter(|_| stage.phase == Phase::Deploy).and_then(waiting);
    let group = |it: &'a Deployment| Group {
        kind: DEPLOYMENT,
        name: place(it).1,
        conditions: Some(it.conditions()),
    };
    stage.deployment.into_iter().chain(waiting).map(group).collect()
}

/// Returns the text of `explain --short`: the chain down to the cause. For a host that is ready it
/// says whether the host is up to date.
pub fn summary(host: &Host<'_>, paint: Paint) -> String {
    let chain = links(host);
    let name = paint.text(Tone::Bold, host.name);
    if chain.is_empty() {
        let behind = host.stages.iter().filter_map(|it| it.condition(UP_TO_DATE));
        let behind: Vec<&Condition> =
            behind.filter(|it| it.status != ConditionStatus::True).collect();
        let mut out = format!("{name} is {}.\n", paint.text(Tone::Good, "ready"));
        for it in behind {
            out += &format!("It is not up to date: {}\n", said(it));
        }
        return out;
    }
    let mut out =
        format!("{name} is {}. What waits for what:\n", paint.text(Tone::Bad, "not ready"));
    let lines: Vec<Vec<String>> = chain
        .iter()
        .enumerate()
        .map(|(depth, link)| {
            let arrow = if depth == 0 { String::new() } else { "  ".repeat(depth - 1) + "└ " };
            vec![format!("  {arrow}{}", link.what), link.why.clone()]
        })
        .collect();
    out += &table(&lines);
    out
}

fn of_stage(stage: &Stage<'_>) -> Link {
    Link { what: heading(stage.kind, stage.name), why: said_so_far(stage.condition(READY)) }
}

fn of_object(group: &Group<'_>) -> Link {
    let Some(conditions) = group.conditions else { return of_absent(group) };
    Link { what: heading(group.kind, group.name), why: said_so_far(find(conditions, READY)) }
}

fn of_absent(group: &Group<'_>) -> Link {
    Link { what: heading(group.kind, group.name), why: "it does not exist".to_owned() }
}

fn of_service(progress: &Progress<'_>) -> Link {
    let reason = progress.recorded.and_then(|it| it.reason.as_deref());
    let attempt = progress.recorded.map(|it| it.attempt).unwrap_or_default();
    let mut why = progress.state.to_string();
    if progress.state == Step::Failed {
        why += &reason.map(|it| format!(": {it}")).unwrap_or_default();
    }
    if attempt > 1 {
        why += &format!(" (attempt {attempt})");
    }
    Link { what: format!("service {}", progress.service), why }
}

fn of_run(run: &AnsibleEe, host: &str) -> Link {
    Link { what: heading("OpenStackAnsibleEE", &run.name_any()), why: message(run, host) }
}

/// Returns the state of a run: what it waits for, or which task failed on this host.
fn message(run: &AnsibleEe, host: &str) -> String {
    let status = run.status.clone().unwrap_or_default();
    match job_status(run) {
        JobStatus::Pending => match status.waiting_for {
            Some(what) => format!("waits: {what}"),
            None => "waits for its turn".to_owned(),
        },
        JobStatus::Running => "runs".to_owned(),
        JobStatus::Succeeded => "succeeded".to_owned(),
        JobStatus::Failed => {
            let failure = status.failures.iter().find(|it| it.host == host);
            let reason = status.reason.unwrap_or_else(|| "Failed".to_owned());
            match failure {
                Some(it) => format!("{reason}: task {} ({}): {}", it.task, it.path, it.gist()),
                None => reason,
            }
        }
    }
}

/// Returns the host's group when the host waits for it and it does not exist.
fn missing<'a, 'b>(host: &'b Host<'a>, first: &Stage<'_>) -> Option<&'b Group<'a>> {
    host.group.as_ref().filter(|it| first.phase != Phase::Nova && it.conditions.is_none())
}

fn is_ready(group: &Group<'_>) -> bool {
    group.conditions.is_some_and(|it| api::conditions::is_true(it, READY))
}

fn of_group(group: &Group<'_>, paint: Paint) -> String {
    let heading = heading(group.kind, group.name);
    match group.conditions {
        Some(conditions) => section(&heading, conditions, paint),
        None => format!("\n{heading}\n  {}\n", paint.text(Tone::Bad, "does not exist")),
    }
}

/// Renders an object with its conditions, without kstatus' two, which repeat `Ready`.
fn section(heading: &str, conditions: &[Condition], paint: Paint) -> String {
    if conditions.is_empty() {
        let heading = paint.text(Tone::Bold, heading);
        return format!("\n{heading}\n  {}\n", said_so_far(None));
    }
    let is_own = |it: &&Condition| ![RECONCILING, STALLED].contains(&it.type_.as_str());
    let line = |it: &Condition| {
        let tone = Tone::of(it);
        vec![
            format!("  {}", it.type_),
            paint.text(tone, truth(it.status)),
            paint.text(tone, &it.reason),
            it.message.clone(),
        ]
    };
    let lines: Vec<Vec<String>> = conditions.iter().filter(is_own).map(line).collect();
    block(heading, &lines, paint)
}

fn services(host: &Host<'_>, stage: &Stage<'_>, paint: Paint) -> String {
    let line = |it: &Progress<'_>| {
        let recorded = it.recorded;
        // A deployment keeps no attempt number of services that are done.
        let attempt = recorded.filter(|it| it.attempt > 0);
        let attempt = attempt.map(|it| format!("attempt {}", it.attempt));
        let message = recorded.filter(|_| it.state == Step::Failed);
        let message = message
            .and_then(|it| Some(format!("{}: {}", it.reason.as_deref()?, it.message.as_deref()?)));
        vec![
            format!("  {}", it.service),
            paint.text(tone(it.state), &it.state.to_string()),
            attempt.unwrap_or_else(|| "-".to_owned()),
            message.unwrap_or_default(),
        ]
    };
    let lines: Vec<Vec<String>> = host.progress(stage).iter().map(line).collect();
    block(&format!("Services of phase {}", stage.phase), &lines, paint)
}

/// Renders lines below a heading; empty without lines.
fn block(heading: &str, lines: &[Vec<String>], paint: Paint) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}", paint.text(Tone::Bold, heading), table(lines))
}

fn tone(step: Step) -> Tone {
    match step {
        Step::Pending => Tone::Dim,
        Step::Queued | Step::Running => Tone::Busy,
        Step::Succeeded => Tone::Good,
        Step::Failed => Tone::Bad,
    }
}

/// Renders the newest run of each service of a stage, as far as runs are kept.
fn runs(host: &Host<'_>, stage: &Stage<'_>, paint: Paint) -> String {
    let progress = host.progress(stage);
    let lines = lines(progress.iter().filter_map(|it| it.run), host.name, paint);
    block(&format!("Runs of phase {}", stage.phase), &lines, paint)
}

/// Renders open runs that no operator created; the operators' runs wait for them too.
fn by_hand(host: &Host<'_>, paint: Paint) -> String {
    let is_open = |it: &&AnsibleEe| {
        service_of(it).is_none()
            && matches!(job_status(it), JobStatus::Pending | JobStatus::Running)
    };
    let lines = lines(host.runs.iter().copied().filter(is_open), host.name, paint);
    block("Runs made by hand", &lines, paint)
}

fn lines<'a>(
    runs: impl Iterator<Item = &'a AnsibleEe>,
    host: &str,
    paint: Paint,
) -> Vec<Vec<String>> {
    let line = |it: &AnsibleEe| {
        let (word, tone) = match job_status(it) {
            JobStatus::Pending => ("Pending", Tone::Busy),
            JobStatus::Running => ("Running", Tone::Busy),
            JobStatus::Succeeded => ("Succeeded", Tone::Good),
            JobStatus::Failed => ("Failed", Tone::Bad),
        };
        vec![format!("  {}", it.name_any()), paint.text(tone, word), message(it, host)]
    };
    runs.map(line).collect()
}

#[cfg(test)]
mod tests {
    use api::dataplane::Node;

    use super::*;
    use crate::snapshot::Snapshot;
    use crate::testdata;

    fn explained(snapshot: &Snapshot, name: &str) -> String {
        text(&snapshot.host("openstack", name).unwrap(), Paint::default())
    }

    #[test]
    fn a_failed_task_is_found_at_the_end_of_the_chain() {
        let snapshot = testdata::snapshot();
        let text = explained(&snapshot, "edpm-compute-2");
        assert_eq!(text, include_str!("../testdata/explain-failed.txt"));
    }

    #[test]
    fn a_host_of_a_node_set_is_explained_by_its_deployment_and_its_run() {
        let snapshot = testdata::node_set();
        let text = explained(&snapshot, "edpm-compute-6");
        assert_eq!(text, include_str!("../testdata/explain-node-set.txt"));
        let ready = explained(&snapshot, "edpm-compute-5");
        assert!(ready.starts_with("edpm-compute-5 is ready.\n"), "{ready}");
        assert!(ready.contains("nova-custom   Succeeded   attempt 1"), "{ready}");
    }

    #[test]
    fn a_host_of_a_node_set_without_a_deployment_is_told_to_need_one() {
        let mut snapshot = testdata::node_set();
        let deployment = snapshot.deployments.remove(0);
        undeploy(&mut snapshot.nodes[0]);
        let links = super::links(&snapshot.host("openstack", "edpm-compute-5").unwrap());
        let why: Vec<&str> = links.iter().map(|it| it.why.as_str()).collect();
        assert_eq!(why, ["NotDeployed: Create an OpenStackDataPlaneDeployment."]);
        // One that waits itself says for what.
        snapshot.deployments.push(deployment);
        let status = snapshot.deployments[0].status.as_mut().unwrap();
        status.conditions = vec![condition(READY, "SourceNotFound", "ConfigMap x is missing.")];
        let what = "OpenStackDataPlaneDeployment openstack-edpm-x7abc";
        ends(&snapshot, "edpm-compute-5", what, "SourceNotFound: ConfigMap x is missing.");
    }

    /// Nothing was deployed to the host yet.
    fn undeploy(node: &mut Node) {
        let status = node.status.as_mut().unwrap();
        (status.deployment, status.deployed_config_hash) = (None, None);
        status.services.clear();
        let text = "Create an OpenStackDataPlaneDeployment.";
        let types = [READY, "DeploymentReady"];
        status.conditions = types.map(|it| condition(it, "NotDeployed", text)).into();
    }

    #[test]
    fn a_queued_run_names_what_it_waits_for() {
        let snapshot = testdata::snapshot();
        let what = "OpenStackAnsibleEE configure-network-edpm-compute-9999999999";
        let why = "waits: OpenStackAnsibleEE by-hand touches edpm-compute-3";
        ends(&snapshot, "edpm-compute-3", what, why);
        assert!(explained(&snapshot, "edpm-compute-3").contains("Runs made by hand\n  by-hand"));
    }

    #[test]
    fn a_role_or_a_cell_that_is_not_there_ends_the_chain() {
        let mut snapshot = testdata::snapshot();
        snapshot.roles.clear();
        let role = "OpenStackDataPlaneRole edpm-compute";
        ends(&snapshot, "edpm-compute-2", role, "it does not exist");
        snapshot.cells.clear();
        ends(&snapshot, "edpm-compute-1", "NovaCell nova-cell1", "it does not exist");
    }

    /// Checks the last line of the chain of a host.
    #[track_caller]
    fn ends(snapshot: &Snapshot, name: &str, what: &str, why: &str) {
        let links = links(&snapshot.host("openstack", name).unwrap());
        let last = links.last().unwrap();
        assert_eq!((last.what.as_str(), last.why.as_str()), (what, why));
    }

    /// Sets two conditions to one reason.
    fn set(conditions: &mut Vec<Condition>, types: [&str; 2], reason: &str, message: &str) {
        conditions.retain(|it| !types.contains(&it.type_.as_str()));
        conditions.extend(types.map(|it| condition(it, reason, message)));
    }

    fn condition(type_: &str, reason: &str, message: &str) -> Condition {
        let yaml = format!(
            "{{type: {type_}, status: 'False', severity: Info, reason: {reason}, message: \"{message}\", \
             lastTransitionTime: '2026-11-21T11:00:00Z'}}"
        );
        api::yaml::from_str(&yaml).unwrap()
    }

    #[test]
    fn a_host_of_another_owner_is_the_cause_and_no_service_that_waits() {
        let mut snapshot = testdata::snapshot();
        let node = snapshot.nodes[2].status.as_mut().unwrap();
        let text = "Host 192.168.122.102:22 belongs to OpenStackDataPlaneNode e2e-mine.";
        set(&mut node.conditions, [READY, "InputReady"], "HostTaken", text);
        let (what, why) = ("OpenStackDataPlaneNode edpm-compute-2", format!("HostTaken: {text}"));
        ends(&snapshot, "edpm-compute-2", what, &why);
    }

    #[test]
    fn a_node_set_with_a_host_of_another_owner_is_the_cause_and_no_deployment_that_waits() {
        let mut snapshot = testdata::node_set();
        undeploy(&mut snapshot.nodes[0]);
        let conditions = &mut snapshot.nodes[0].status.as_mut().unwrap().conditions;
        set(conditions, [READY, "InputReady"], "HostTaken", "The host is another's.");
        snapshot.deployments[0].status.as_mut().unwrap().deployed = None;
        snapshot.deployments[0].status.as_mut().unwrap().conditions.clear();
        let (node, why) =
            ("OpenStackDataPlaneNode edpm-compute-5", "HostTaken: The host is another's.");
        ends(&snapshot, "edpm-compute-5", node, why);
    }

    #[test]
    fn a_drain_that_waits_for_a_server_is_the_cause_of_a_change_that_waits_for_it() {
        let mut snapshot = testdata::snapshot();
        let compute = snapshot.computes[0].status.as_mut().unwrap();
        let text = "The change is deployed once the host is drained; see Drained.";
        set(&mut compute.conditions, [READY, DEPLOYMENT_READY], "WaitingForDrain", text);
        compute.services[1].deployed_hash = None;
        compute.services[1].state = api::dataplane::RunState::Pending;
        compute.conditions.push(condition("Drained", "ServersRemain", "1 server is on the host."));
        let why = "ServersRemain: 1 server is on the host.";
        ends(&snapshot, "edpm-compute-0", "condition Drained", why);
    }

    #[test]
    fn a_cell_that_does_not_exist_is_the_cause_of_a_host_to_which_nothing_is_deployed() {
        let mut snapshot = testdata::snapshot();
        snapshot.cells.clear();
        let node = snapshot.nodes[1].status.as_mut().unwrap();
        node.conditions = vec![condition(READY, "NotRequested", "Nothing is deployed.")];
        let compute = snapshot.computes[1].status.as_mut().unwrap();
        let mut ready = condition(READY, "NovaCellNotFound", "NovaCell nova-cell1 does not exist.");
        ready.severity = Some(Severity::Warning);
        compute.conditions = vec![ready];
        ends(&snapshot, "edpm-compute-1", "NovaCell nova-cell1", "it does not exist");
    }
}

//! The single steps of an option's way: what is there, and whether the option has come that far.

use common::api::dataplane::RunState;
use common::conditions::Truth;
use kube::ResourceExt;
use nova_operator::compute::build::NOVA;
use nova_operator::compute::config::{SERVICE_CONFIG_READY, secret_name};
use nova_operator::conf::{DEFAULT_FILE, OVERRIDE_FILE};
use nova_operator::oslo::{Entry, parse};

use super::{Mark, Seen, Stop};
use crate::cluster::Read;
use crate::diff;
use crate::host::{Progress, Step};
use crate::logs::job_of;
use crate::named::Named;
use crate::options::{File, shown};
use crate::status::UP_TO_DATE;

/// The folder of nova's files in the pod of a run.
const IN_POD: &str = "/var/lib/openstack/configs/nova";
/// The same on the host.
const ON_HOST: &str = "/var/lib/openstack/config/nova";
/// The same in the container of nova-compute.
const IN_CONTAINER: &str = "/etc/nova/nova.conf.d";

pub(super) fn written(seen: &Seen<'_>, named: &Named) -> Stop {
    let compute = seen.options.compute;
    let custom = compute.spec.custom_service_config.as_deref().unwrap_or_default();
    let (namespace, name) = (seen.host.namespace, compute.name_any());
    let mut mark = Mark::Ok;
    let mut lines = Vec::new();
    if let Some(default) = &seen.options.default_config {
        let object = format!("ConfigMap {namespace}/{}", default.name);
        match &default.text {
            Read::Found((key, text)) => {
                let place = format!("{object}, key {key}");
                lines.extend(places(&place, &parse(text).0, named));
            }
            Read::Missing => {
                lines.push(format!("{object}, which the role names, has no such text"));
            }
            Read::Refused(why) => {
                mark = Mark::Unknown;
                lines.push(format!("{object} cannot be read: {why}"));
            }
        }
    }
    let place = format!("NovaExternalCompute {namespace}/{name}, spec.customServiceConfig");
    lines.extend(places(&place, &parse(custom).0, named));
    if lines.is_empty() {
        lines.push(
            "nobody has written it: neither spec.customServiceConfig nor a default".to_owned(),
        );
    }
    Stop { name: "written", mark, lines }
}

fn places(place: &str, entries: &[Entry], named: &Named) -> Vec<String> {
    let found = named.entries(entries);
    found.into_iter().map(|it| format!("{place}, line {}: {}", it.line, shown(it))).collect()
}

pub(super) fn in_secret(seen: &Seen<'_>, named: &Named, rendered: &[File]) -> Stop {
    let name = secret_name(&seen.options.compute.name_any());
    let object = format!("Secret {}/{name}", seen.host.namespace);
    let stop = |mark, lines| Stop { name: "rendered", mark, lines };
    match &seen.options.secret {
        Read::Missing => {
            let why = seen.stage.condition(SERVICE_CONFIG_READY);
            let why = why.map(|it| format!(": {}: {}", it.reason, it.message)).unwrap_or_default();
            return stop(Mark::NotYet, vec![format!("{object} does not exist{why}")]);
        }
        Read::Refused(why) => {
            return stop(Mark::Unknown, vec![format!("{object} cannot be read: {why}")]);
        }
        Read::Found(_) => {}
    }
    let mut lines = vec![object];
    let winner = named.winner(rendered);
    for file in rendered {
        for entry in named.entries(&file.entries) {
            let is_winner = winner.is_some_and(|(it, last)| it.name == file.name && last == entry);
            let why = match (named.is_multi, is_winner) {
                (true, _) => "  <- counts: every value of this option does",
                (false, true) => "  <- wins: the last one, by name of file, that sets it",
                (false, false) => "",
            };
            lines.push(format!("{}, line {}: {}{why}", file.name, entry.line, shown(entry)));
        }
    }
    if winner.is_none() {
        lines.push(format!("none of {} sets it", names(rendered)));
    }
    let behind = behind(seen, rendered, named);
    let mark = if behind.is_empty() { Mark::Ok } else { Mark::NotYet };
    lines.extend(behind);
    stop(mark, lines)
}

fn names(rendered: &[File]) -> String {
    rendered.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The files that were not rendered from what stands there now, as far as this option goes.
fn behind(seen: &Seen<'_>, rendered: &[File], named: &Named) -> Vec<String> {
    let custom = seen.options.compute.spec.custom_service_config.as_deref();
    let default = seen.options.default_config.as_ref().and_then(|it| it.text.found());
    let texts = [
        Some((OVERRIDE_FILE, custom.unwrap_or_default())),
        default.map(|(_, text)| (DEFAULT_FILE, text.as_str())),
    ];
    let values = |entries: &[Entry]| -> Vec<String> {
        named.entries(entries).into_iter().map(|it| it.value.clone()).collect()
    };
    let is_behind = |(file, text): &(&str, &str)| {
        let of_file = rendered.iter().find(|it| it.name == *file);
        values(of_file.map(|it| it.entries.as_slice()).unwrap_or_default())
            != values(&parse(text).0)
    };
    let why = seen.stage.condition(SERVICE_CONFIG_READY).filter(|it| it.status != Truth::True);
    let why = why.map(|it| format!(": {}: {}", it.reason, it.message)).unwrap_or_default();
    let told =
        |(file, _): (&str, &str)| format!("{file} is not rendered from what was written{why}");
    texts.into_iter().flatten().filter(is_behind).map(told).collect()
}

/// Whether the texts that decide are those of the last deployment, or of the one that goes on.
pub(super) fn is_deployed(seen: &Seen<'_>, winner: Option<&str>) -> bool {
    let is_succeeded = |it: &Progress<'_>| it.state == Step::Succeeded;
    let progress = seen.host.progress(seen.stage);
    let nova_is_done = progress.iter().any(|it| it.service == NOVA && is_succeeded(it));
    let goes_on = progress.iter().any(|it| !is_succeeded(it));
    if goes_on {
        // A change that concerned nova would have made it due again.
        return nova_is_done && seen.stage.deploys == Some(true);
    }
    if !nova_is_done {
        return false;
    }
    let differing = diff::differing(seen.stage, seen.options);
    let of_texts = |it: &String| it == "customServiceConfig" || it.starts_with("ConfigMap ");
    match winner {
        Some(OVERRIDE_FILE) => !differing.iter().any(|it| it == "customServiceConfig"),
        Some(DEFAULT_FILE) => !differing.iter().any(of_texts),
        _ => {
            let up_to_date = seen.stage.truth(UP_TO_DATE) == Truth::True;
            up_to_date && differing.is_empty()
        }
    }
}

pub(super) fn run(
    seen: &Seen<'_>,
    current: Option<&Progress<'_>>,
    winner: Option<&File>,
    is_deployed: bool,
) -> Stop {
    let stop = |mark, lines| Stop { name: "run", mark, lines };
    let Some(current) = current.filter(|it| it.recorded.is_some() || it.run.is_some()) else {
        let ready = seen.stage.condition("DeploymentReady");
        let why = ready.map(|it| format!(": {}: {}", it.reason, it.message)).unwrap_or_default();
        return stop(Mark::NotYet, vec![format!("service nova has not run{why}")]);
    };
    let recorded = current.recorded.and_then(|it| it.run.clone());
    let name = current.run.map(ResourceExt::name_any).or(recorded);
    let mut lines = vec![match (&name, current.run) {
        (Some(name), Some(_)) => {
            format!("OpenStackAnsibleEE {name}, service nova: {}", current.state)
        }
        (Some(name), None) => {
            format!("OpenStackAnsibleEE {name}, service nova: {}, not kept any more", current.state)
        }
        (None, _) => format!("service nova: {}", current.state),
    }];
    if let Some(waiting) = current.run.and_then(|it| it.status.as_ref()?.waiting_for.as_ref()) {
        lines.push(format!("it waits: {waiting}"));
    }
    if let Some(failed) = current.recorded.filter(|it| it.state == RunState::Failed) {
        lines.push(format!(
            "{}: {}",
            failed.reason.as_deref().unwrap_or_default(),
            failed.message.as_deref().unwrap_or_default()
        ));
    }
    if !is_deployed {
        if current.state == Step::Succeeded {
            lines.push(other_inputs(seen));
        }
        return stop(Mark::NotYet, lines);
    }
    if let (Some(file), Some(run)) = (winner, current.run) {
        let mounts = run.spec.extra_mounts.iter().flat_map(|it| &it.mounts);
        let path = format!("{IN_POD}/{}", file.name);
        if !mounts.into_iter().any(|it| it.mount_path == path) {
            lines.push(format!("it does not mount {}", file.name));
            return stop(Mark::NotYet, lines);
        }
        lines.push(format!("it mounts {} at {path}", file.name));
    }
    stop(Mark::Ok, lines)
}

/// Why a success does not count for what is written now.
fn other_inputs(seen: &Seen<'_>) -> String {
    let told = seen.stage.condition(UP_TO_DATE).filter(|it| it.status != Truth::True);
    match told {
        Some(it) => format!("that was with other inputs: {}", it.message),
        None => {
            "that was with other inputs: the operator has not looked at the change yet".to_owned()
        }
    }
}

pub(super) fn job(seen: &Seen<'_>, current: Option<&Progress<'_>>, is_deployed: bool) -> Stop {
    let stop = |mark, line: String| Stop { name: "job", mark, lines: vec![line] };
    let open = if is_deployed { Mark::Unknown } else { Mark::NotYet };
    let Some(job) = current.and_then(|it| it.run).and_then(job_of) else {
        let line =
            if is_deployed { "the run's Job is not kept any more" } else { "there is none yet" };
        return stop(open, line.to_owned());
    };
    let pod = match &seen.pod {
        Some(Read::Found(pod)) => format!("pod {}", pod.name_any()),
        Some(Read::Refused(_)) => "a pod that cannot be read".to_owned(),
        Some(Read::Missing) | None => "its pod is gone".to_owned(),
    };
    let mark = if is_deployed { Mark::Ok } else { Mark::NotYet };
    match &seen.job {
        Some(Read::Found(_)) => stop(mark, format!("Job {job}, {pod}")),
        Some(Read::Refused(why)) => stop(open, format!("Job {job} cannot be read: {why}")),
        Some(Read::Missing) | None => stop(open, format!("Job {job} is gone")),
    }
}

pub(super) fn on_host(
    seen: &Seen<'_>,
    winner: Option<(&File, &Entry)>,
    current: Option<&Progress<'_>>,
    is_deployed: bool,
) -> Stop {
    let stop = |mark, lines| Stop { name: "host", mark, lines };
    if !is_deployed {
        let was_deployed =
            current.and_then(|it| it.recorded).is_some_and(|it| it.deployed_hash.is_some());
        let line = if was_deployed {
            "the host has the files of an earlier deployment; an earlier text may have had the \
             option already"
        } else {
            "no deployment has reached the host yet"
        };
        return stop(Mark::NotYet, vec![line.to_owned()]);
    }
    let lines = match winner {
        Some((file, _)) => vec![
            format!("{}: {ON_HOST}/{}", seen.host.name, file.name),
            format!("container nova_compute: {IN_CONTAINER}/{}, checked by the run", file.name),
        ],
        None => vec![format!("{}: no file in {ON_HOST} sets it", seen.host.name)],
    };
    stop(Mark::Ok, lines)
}

/// What only the host knows.
pub(super) fn process(named: &Named) -> Stop {
    let logged = match named.names.first() {
        Some((section, key)) if section == "DEFAULT" => key.clone(),
        Some((section, key)) => format!("{section}.{key}"),
        None => String::new(),
    };
    Stop {
        name: "process",
        mark: Mark::Unknown,
        lines: vec![
            "nova-compute itself was not asked: that needs a run on the host, which this command \
             does not start"
                .to_owned(),
            format!(
                "on the host: podman logs nova_compute 2>&1 | grep -F '{logged} ' tells what it \
                 loaded at its start, where its debug is on"
            ),
        ],
    }
}

//! The steps from the cluster into a pod: the run that copies the files, its Job, and the pod's
//! files.

use std::collections::BTreeMap;

use api::ansibleee::AnsibleEe;
use api::conditions::ConditionStatus;
use api::dataplane::RunState;
use api::dataplane::condition_types::{DEPLOYMENT_READY, UP_TO_DATE};
use api::shared::SourceKind;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{KeyToPath, Volume, VolumeMount};
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use serde::Deserialize;

use super::file_steps::EffectiveEntry;
use super::inputs::TraceInputs;
use super::trace_step::{Mark, TraceStep};
use crate::cluster::Read;
use crate::conditions::because;
use crate::config_files::{File, title};
use crate::host::Step;
use crate::logs::job_of;

/// The directory of nova's files in the pod of a run.
const IN_POD: &str = "/var/lib/openstack/configs/nova";

pub(super) fn run(seen: &TraceInputs<'_>, effective: &EffectiveEntry<'_>) -> TraceStep {
    let service = &effective.file_steps.service;
    let step = |mark, lines| TraceStep { name: "run", mark, lines };
    let current = effective.progress.as_ref();
    let Some(current) = current.filter(|it| it.recorded.is_some() || it.run.is_some()) else {
        let why = because(seen.stage.condition(DEPLOYMENT_READY));
        return step(Mark::NotYet, vec![format!("service {service} has not run{why}")]);
    };
    let recorded = current.recorded.and_then(|it| it.run.clone());
    let name = current.run.map(ResourceExt::name_any).or(recorded);
    let state = current.state;
    let kept = if current.run.is_some() { "" } else { ", not kept any more" };
    let mut lines = vec![match &name {
        Some(name) => format!("OpenStackAnsibleEE {name}, service {service}: {state}{kept}"),
        None => format!("service {service}: {state}"),
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
    if !effective.file_steps.is_deployed {
        if current.state == Step::Succeeded {
            lines.push(other_inputs(seen));
        }
        return step(Mark::NotYet, lines);
    }
    if let (Some(file), Some(run)) = (effective.file(), current.run) {
        let title = title(&file.object);
        let Some(path) = mounted(run, file) else {
            lines.push(format!("its extraMounts lack {} of {title}", file.name));
            return step(Mark::NotYet, lines);
        };
        lines.push(format!("its extraMounts put {} of {title} at {path}", file.name));
    }
    step(Mark::Ok, lines)
}

/// Says why a successful run does not count for the current inputs.
fn other_inputs(seen: &TraceInputs<'_>) -> String {
    let outdated = seen.stage.condition(UP_TO_DATE).filter(|it| it.status != ConditionStatus::True);
    match outdated {
        Some(it) => format!("that was with other inputs: {}", it.message),
        None => {
            "that was with other inputs: the operator has not reconciled the change yet".to_owned()
        }
    }
}

pub(super) fn job(seen: &TraceInputs<'_>, effective: &EffectiveEntry<'_>) -> TraceStep {
    let step = |mark, line: String| TraceStep { name: "job", mark, lines: vec![line] };
    let is_deployed = effective.file_steps.is_deployed;
    let open = if is_deployed { Mark::Unknown } else { Mark::NotYet };
    let Some((run, name)) = effective.run().and_then(|it| Some((it, job_of(it)?))) else {
        let line =
            if is_deployed { "the run's Job is not kept any more" } else { "there is none yet" };
        return step(open, line.to_owned());
    };
    let pod = match &seen.pod {
        Read::Found(pod) => format!("pod {}", pod.name_any()),
        Read::Refused(_) => "a pod that cannot be read".to_owned(),
        Read::Missing => "its pod is gone".to_owned(),
    };
    let job = match &seen.job {
        Read::Found(job) => job,
        Read::Refused(why) => return step(open, format!("Job {name} cannot be read: {why}")),
        Read::Missing => return step(open, format!("Job {name} is gone")),
    };
    let Some(file) = effective.file().filter(|_| is_deployed) else {
        return step(
            if is_deployed { Mark::Ok } else { Mark::NotYet },
            format!("Job {name}, {pod}"),
        );
    };
    let file_name = format!("{} of {}", file.name, title(&file.object));
    let path = mounted_by_job(job, run, file);
    if path.is_none() || path != mounted(run, file) {
        return step(Mark::NotYet, format!("Job {name}: its volumes lack {file_name}"));
    }
    let mut step = step(Mark::Ok, format!("Job {name}, {pod}"));
    step.lines.push(format!("its volumes put {file_name} there too"));
    step
}

pub(super) fn in_pod(effective: &EffectiveEntry<'_>) -> TraceStep {
    let step = |mark, line: String| TraceStep { name: "pod", mark, lines: vec![line] };
    if !effective.file_steps.is_deployed {
        return step(Mark::NotYet, "no pod was given it yet".to_owned());
    }
    let Some(file) = effective.file() else {
        return step(Mark::Ok, format!("no file in {IN_POD} sets it"));
    };
    let Some(run) = effective.run() else {
        let line = "the run is not kept any more, and with it what its play said of the files";
        return step(Mark::Unknown, line.to_owned());
    };
    let path = format!("{IN_POD}/{}", file.name);
    match reported(run).as_ref().map(|it| it.get(&file.name)) {
        None => step(Mark::Unknown, format!("the play did not report what {path} was")),
        Some(None) => step(Mark::NotYet, format!("the play found no {path}")),
        // Runs of an earlier release reported the digest of the whole file.
        Some(Some(digest)) if *digest == file.digest => {
            step(Mark::Ok, format!("{path} had SHA-256 {digest}…, says the play, as it has now"))
        }
        Some(Some(digest)) if *digest == file.open_digest => step(
            Mark::Ok,
            format!("{path} had SHA-256 {digest}… without secrets, says the play, as it has now"),
        ),
        Some(Some(digest)) => step(
            Mark::Stale,
            format!("{path} had SHA-256 {digest}…, says the play; now it is {}…", file.open_digest),
        ),
    }
}

/// Returns the digest prefixes of nova's files in the pod, or `None` when the play did not report
/// them.
pub(super) fn reported(run: &AnsibleEe) -> Option<BTreeMap<String, String>> {
    #[derive(Deserialize)]
    struct Report {
        files: BTreeMap<String, String>,
    }
    let report = run.status.as_ref()?.report.as_deref()?;
    serde_json::from_str::<Report>(report).ok().map(|it| it.files)
}

/// Returns the mount path of a file according to the spec of the run.
fn mounted(run: &AnsibleEe, file: &File) -> Option<String> {
    let all = || run.spec.extra_mounts.iter().filter(|it| it.reaches_runs());
    let volumes: Vec<&Volume> = all().flat_map(|it| &it.volumes).collect();
    let mounts: Vec<&VolumeMount> = all().flat_map(|it| &it.mounts).collect();
    path(&volumes, &mounts, &file.object, &file.name)
}

/// Returns the path of a file in the Job's runner container.
fn mounted_by_job(job: &Job, run: &AnsibleEe, file: &File) -> Option<String> {
    let pod = job.spec.as_ref()?.template.spec.as_ref()?;
    let container = pod.containers.iter().find(|it| it.name == run.spec.name)?;
    let volumes: Vec<&Volume> = pod.volumes.iter().flatten().collect();
    let mounts: Vec<&VolumeMount> = container.volume_mounts.iter().flatten().collect();
    path(&volumes, &mounts, &file.object, &file.name)
}

/// Returns the path at which volumes and mounts place a key of an object.
fn path(
    volumes: &[&Volume],
    mounts: &[&VolumeMount],
    object: &SourceRef,
    key: &str,
) -> Option<String> {
    mounts.iter().find_map(|mount| {
        let volume = volumes.iter().find(|it| it.name == mount.name)?;
        let inside = file_of(volume, object, key)?;
        match mount.sub_path.as_deref().filter(|it| !it.is_empty()) {
            Some(sub_path) => (sub_path == inside).then(|| mount.mount_path.clone()),
            None => Some(format!("{}/{inside}", mount.mount_path.trim_end_matches('/'))),
        }
    })
}

/// Returns the file name of an object's key in a volume, or `None` when the volume lacks it.
fn file_of(volume: &Volume, object: &SourceRef, key: &str) -> Option<String> {
    let name = object.key.name.as_str();
    let items: Option<&Vec<KeyToPath>> = if object.kind == SourceKind::Secret {
        let secret = volume.secret.as_ref()?;
        (secret.secret_name.as_deref() == Some(name)).then_some(secret.items.as_ref())?
    } else {
        let config_map = volume.config_map.as_ref()?;
        (config_map.name == name).then_some(config_map.items.as_ref())?
    };
    match items {
        None => Some(key.to_owned()),
        Some(items) => items.iter().find(|it| it.key == key).map(|it| it.path.clone()),
    }
}

#[cfg(test)]
mod tests {
    use api::yaml;
    use operator_core::object_key::Key;

    use super::*;

    fn path_of(volume: &str, mount: &str, kind: SourceKind) -> Option<String> {
        let volume: Volume = yaml::from_str(volume).unwrap();
        let mount: VolumeMount = yaml::from_str(mount).unwrap();
        let object = SourceRef { kind, key: Key::new("ns", "o") };
        path(&[&volume], &[&mount], &object, "k.conf")
    }

    #[test]
    fn a_key_is_found_however_it_is_mounted() {
        let whole = "{name: v, configMap: {name: o}}";
        let file = "{name: v, mountPath: /d/k.conf, subPath: k.conf}";
        let found = Some("/d/k.conf".to_owned());
        assert_eq!(path_of(whole, file, SourceKind::ConfigMap), found);
        assert_eq!(path_of(whole, "{name: v, mountPath: /d/}", SourceKind::ConfigMap), found);
        let item = "{name: v, secret: {secretName: o, items: [{key: k.conf, path: x}]}}";
        assert_eq!(
            path_of(item, "{name: v, mountPath: /d/k.conf, subPath: x}", SourceKind::Secret),
            found
        );
        assert_eq!(
            path_of(item, "{name: v, mountPath: /d}", SourceKind::Secret),
            Some("/d/x".to_owned())
        );
    }

    #[test]
    fn another_object_another_key_and_another_kind_are_not_it() {
        let file = "{name: v, mountPath: /d/k.conf, subPath: k.conf}";
        for volume in [
            "{name: v, configMap: {name: other}}",
            "{name: w, configMap: {name: o}}",
            "{name: v, secret: {secretName: o}}",
            "{name: v, configMap: {name: o, items: [{key: other, path: k.conf}]}}",
        ] {
            assert_eq!(path_of(volume, file, SourceKind::ConfigMap), None, "{volume}");
        }
        let other = "{name: v, mountPath: /d/k.conf, subPath: other}";
        assert_eq!(path_of("{name: v, configMap: {name: o}}", other, SourceKind::ConfigMap), None);
    }
}

//! Chooses the run for `logs`, and renders what is left of it when its pod is gone.

use api::ansibleee::{AnsibleEe, JobStatus};
use api::conditions::first_names;
use kube::ResourceExt;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::run::{job_status, service_of};

/// Returns the run of a host, or of one of its services, that is running, else the one that started
/// last. Returns an error when no such run has a Job.
pub fn chosen<'a>(host: &Host<'a>, service: Option<&str>) -> Result<&'a AnsibleEe> {
    let is_asked = |it: &&AnsibleEe| service.is_none_or(|asked| service_of(it) == Some(asked));
    let asked: Vec<&AnsibleEe> = host.runs.iter().copied().filter(is_asked).collect();
    let started = |it: &&&AnsibleEe| job_of(it).is_some();
    let running = asked.iter().rfind(|it| job_status(it) == JobStatus::Running);
    let last = || asked.iter().filter(started).max_by_key(|it| begin(it));
    if let Some(run) = running.or_else(last) {
        return Ok(run);
    }
    let of = service.map(|it| format!("of service {it} ")).unwrap_or_default();
    let waiting = asked.iter().rfind(|it| job_status(it) == JobStatus::Pending);
    Err(Error::message(match waiting {
        Some(run) => {
            let status = run.status.as_ref();
            let what = status.and_then(|it| it.waiting_for.clone());
            let what = what.unwrap_or_else(|| "its turn".to_owned());
            format!("run {} has no output yet; it waits: {what}", run.name_any())
        }
        None => format!(
            "no run {of}is kept that was about {}: its services have {}",
            host.name,
            kept(host)
        ),
    }))
}

/// Lists the services that have a run.
fn kept(host: &Host<'_>) -> String {
    let mut services: Vec<&str> = host.runs.iter().filter_map(|it| service_of(it)).collect();
    services.sort_unstable();
    services.dedup();
    if services.is_empty() {
        "no run".to_owned()
    } else {
        format!("runs of {}", services.join(", "))
    }
}

/// Returns the header line of a run's output.
pub fn heading(run: &AnsibleEe, host: &str, pod: &str) -> String {
    let service =
        service_of(run).map_or_else(|| "made by hand".to_owned(), |it| format!("service {it}"));
    let others: Vec<&str> =
        run.spec.hosts.iter().map(|it| it.name.as_str()).filter(|it| *it != host).collect();
    let shared = if others.is_empty() {
        String::new()
    } else {
        format!("; it is about {} too", first_names(&others, 3))
    };
    format!("# run {}, {service}, pod {pod}{shared}", run.name_any())
}

/// Returns what the status of the run records about a host; it outlives the pod.
pub fn recorded(run: &AnsibleEe, host: &str) -> String {
    let status = run.status.clone().unwrap_or_default();
    let mut out = String::new();
    match status.hosts.iter().find(|it| it.name == host) {
        Some(it) => {
            let changed = it.changed.map(|n| format!(", {n} tasks changed something"));
            out += &format!("{host}: {:?}{}\n", it.result, changed.unwrap_or_default());
        }
        None => out += &format!("{host}: nothing is recorded\n"),
    }
    for it in status.failures.iter().filter(|it| it.host == host) {
        out += &format!("failed: play {}, task {} ({})\n", it.play, it.task, it.path);
        out += &it.message.lines().map(|line| format!("  {line}\n")).collect::<Vec<_>>().concat();
    }
    out
}

/// Returns the name of the run's Job, or `None` before it is created.
pub fn job_of(run: &AnsibleEe) -> Option<&str> {
    run.status.as_ref()?.job.as_ref().map(|it| it.name.as_str())
}

fn begin(run: &AnsibleEe) -> (Option<jiff::Timestamp>, Option<jiff::Timestamp>) {
    let status = run.status.as_ref();
    let started = status.and_then(|it| it.start_time.as_ref()).map(|it| it.0);
    (started, run.creation_timestamp().map(|it| it.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn name(host: &str, service: Option<&str>) -> Result<String> {
        let snapshot = testdata::snapshot();
        let host = snapshot.host("openstack", host).unwrap();
        chosen(&host, service).map(ResourceExt::name_any)
    }

    #[test]
    fn the_run_that_is_under_way_comes_before_those_that_ended() {
        assert_eq!(name("edpm-compute-1", None).unwrap(), "nova-edpm-compute-1-7777777777");
        let libvirt = name("edpm-compute-1", Some("libvirt")).unwrap();
        assert_eq!(libvirt, "libvirt-edpm-compute-1-6666666666");
        // Runs that users create count for the host as well.
        assert_eq!(name("edpm-compute-3", None).unwrap(), "by-hand");
    }

    #[test]
    fn a_run_that_waits_has_no_output() {
        let text = name("edpm-compute-3", Some("configure-network")).unwrap_err().to_string();
        assert!(
            text.ends_with("it waits: OpenStackAnsibleEE by-hand touches edpm-compute-3"),
            "{text}"
        );
        let text = name("edpm-compute-0", Some("libvirt")).unwrap_err().to_string();
        assert!(
            text.contains("no run of service libvirt") && text.ends_with("runs of nova"),
            "{text}"
        );
    }

    #[test]
    fn the_record_of_a_run_names_task_and_place() {
        let snapshot = testdata::snapshot();
        let host = snapshot.host("openstack", "edpm-compute-2").unwrap();
        let run = chosen(&host, None).unwrap();
        let text = recorded(run, host.name);
        assert!(text.starts_with("edpm-compute-2: Failed, 1 tasks changed something\n"), "{text}");
        assert!(text.contains("task Install packages (/a/install.yml:3)"), "{text}");
        assert!(text.contains("  No package matching 'podmann' is available\n"), "{text}");
        assert_eq!(
            heading(run, host.name, "p-1"),
            "# run install-os-edpm-compute-3333333333, service install-os, pod p-1"
        );
    }
}

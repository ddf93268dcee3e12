//! Bodies of the fuzz targets of this crate; see `fuzz/` and docs/development.md.
//!
//! They are compiled only for tests, which run them on the committed corpus, and for the fuzzer.

use std::collections::BTreeMap;

use api::ansibleee::{AnsibleEe, AnsibleEeSpec, HostKeyScan, HostOutcome, RunHost};
use api::conditions::printable;
use kube::core::ObjectMeta;
use operator_core::hash;
use operator_core::plan::Write;
use serde_json::{Value, json};

use crate::objects::{HOST_KEYS_CONTAINER, Job, Pod};
use crate::run::decide::faults_of;
use crate::run::settings::Settings;
use crate::run::{build, content_digest, environment, key_checks, result, variables};

/// A fuzz target: its name, and the function that takes an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[("summary", summary), ("run", run)];

/// Maximum length of a container's termination message in bytes; kubelet cuts it there.
const LAST_WORDS: usize = 4096;
/// Maximum length of a condition's message, the same as for Kubernetes' own conditions.
const MESSAGE: usize = 32 * 1024;

/// The termination messages of a run's pod: the callback's, a line with a dash, and that of the
/// container that scans host keys. There are two hosts, and the key of the second one is scanned.
pub fn summary(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (said, keys) = text.split_once("\n-\n").unwrap_or((&text, ""));
    let host = |name: &str, scan| RunHost {
        name: name.into(),
        address: format!("{name}:22"),
        scan_host_key: scan,
    };
    let hosts = [host("a", None), host("b", Some(HostKeyScan { fingerprint: None }))];
    for (code, type_) in [(0, "Complete"), (2, "Failed"), (1, "Failed")] {
        for hosts in [&hosts[..], &[]] {
            concluded(said, keys, hosts, code, type_);
        }
    }
}

fn concluded(said: &str, keys: &str, hosts: &[RunHost], code: i32, type_: &str) {
    let spec = AnsibleEeSpec { hosts: hosts.to_vec(), ..AnsibleEeSpec::default() };
    let run = of_spec(spec);
    let ended = |message: &str| json!({ "terminated": { "exitCode": code, "message": message } });
    let (name, first) = (&run.spec.name, HOST_KEYS_CONTAINER);
    let pod = read::<Pod>(json!({ "metadata": { "name": "p" }, "status": {
        "phase": "Failed",
        "initContainerStatuses": [{ "name": first, "state": ended(keys) }],
        "containerStatuses": [{ "name": name, "state": ended(said) }],
    } }));
    let job = read::<Job>(json!({ "metadata": { "name": "j" }, "status": { "conditions": [
        { "type": type_, "status": "True", "reason": "x", "message": said },
    ] } }));
    let (status, condition) = result::of_job(&run, &job, std::slice::from_ref(&pod));
    let again = result::of_job(&run, &job, std::slice::from_ref(&pod));
    assert_eq!(again, (status.clone(), condition.clone()), "two ends");
    let names = status.hosts.iter().map(|it| &it.name);
    assert!(names.eq(hosts.iter().map(|it| &it.name)), "not each host once: {:?}", status.hosts);
    assert!(status.host_keys.iter().all(|it| it.name == "b"), "a key of a host that was not asked");
    let unchecked = result::unchecked(&run, &job, std::slice::from_ref(&pod));
    let checking = key_checks::condition(&run.spec, unchecked.as_ref());
    if let Some(it) = &checking {
        plain(&it.message);
        assert!(it.message.len() <= LAST_WORDS, "a long message");
    }
    let in_trouble = |it: HostOutcome| !matches!(it, HostOutcome::Ok | HostOutcome::NotReached);
    let is_success = status.reason.as_deref() == Some(result::SUCCEEDED);
    assert!(!is_success || !status.hosts.iter().any(|it| in_trouble(it.result)), "{status:?}");
    let reported = status
        .failures
        .iter()
        .map(|it| it.host.len() + it.play.len() + it.task.len() + it.path.len() + it.message.len());
    assert!(reported.sum::<usize>() <= said.len(), "more is reported than was said");
    assert!(condition.message.len() <= said.len().min(LAST_WORDS) * 4 + MESSAGE, "a long message");
    let shown = [&condition.message].into_iter().chain(&status.report);
    let shown =
        shown.chain(status.failures.iter().flat_map(|it| [&it.host, &it.task, &it.message]));
    shown.for_each(plain);
    let text = serde_json::to_string(&status).unwrap_or_default();
    assert!(serde_json::from_str(&text).is_ok_and(|it| status == it), "no round trip: {text}");
}

fn plain(text: &String) {
    assert_eq!(printable(text), *text, "a terminal would obey it");
}

/// The spec of a run as JSON: it is validated, and if valid its Job, files and environment are
/// built.
pub fn run(data: &[u8]) {
    let Ok(spec) = serde_json::from_slice::<AnsibleEeSpec>(data) else { return };
    let run = of_spec(spec);
    let settings = Settings::sample();
    let faults = faults_of(&run, &settings);
    assert_eq!(faults_of(&run, &settings), faults, "two answers to one question");
    let identity = content_digest::run_digest(&run);
    assert_eq!(content_digest::run_digest(&run), identity, "two identities of one run");
    if !faults.is_empty() {
        return;
    }
    let Write::Create { object, .. } = build::creation(&run, &identity, &settings).write else {
        return assert!(identity.is_empty(), "no Job is made");
    };
    let annotations = object.pointer("/spec/template/metadata/annotations");
    let n_bytes = annotations.and_then(Value::as_object).map_or(0, |it| {
        it.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
    });
    assert!(n_bytes <= 256 * 1024, "{n_bytes} bytes of annotations, which Kubernetes refuses");
    let env = variables::env(&run.spec, &settings);
    for forced in environment::forced(&run.spec, &settings) {
        let found: Vec<_> = env.iter().filter(|it| it.name == forced.name).collect();
        assert_eq!(found, [&forced], "it is not forced");
    }
    let timeout = env.iter().find(|it| it.name == environment::TASK_TIMEOUT);
    let seconds = timeout.and_then(|it| it.value.as_deref()?.parse::<i64>().ok());
    assert!(seconds.is_some_and(|it| it <= i64::from(i32::MAX)), "{timeout:?}");
    let by_name: BTreeMap<&str, &Value> =
        env.iter().map(|it| (it.name.as_str(), &Value::Null)).collect();
    assert_eq!(by_name.len(), env.len(), "a variable is set twice");
    assert!(hash::short(&object).len() < 64);
}

fn of_spec(spec: AnsibleEeSpec) -> AnsibleEe {
    let name = |it: &str| Some(it.to_owned());
    let metadata = ObjectMeta {
        name: name("r"),
        namespace: name("ns"),
        uid: name("u"),
        ..ObjectMeta::default()
    };
    AnsibleEe { metadata, spec, status: None }
}

fn read<T: serde::de::DeserializeOwned + Default>(object: Value) -> T {
    let read = serde_json::from_value(object);
    assert!(read.is_ok(), "the frame around the input");
    read.unwrap_or_default()
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

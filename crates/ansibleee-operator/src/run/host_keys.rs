//! The init container that scans hosts' own ssh keys, and its report.

use api::ansibleee::{AnsibleEeSpec, HostKeyProblem, HostKeyReport, RunHost};
use operator_core::run_engine::host_key::HostKey;
use operator_core::run_engine::inventory::HOST_KEYS_DIR;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::objects::{HOST_KEYS_CONTAINER, Pod};

/// The volume through which Ansible gets the scanned keys.
pub const VOLUME: &str = "edpm-host-keys";

/// The container's script, in Python because every image that runs Ansible has it.
const SCRIPT: &str = include_str!("../../../../ansible/host_keys/edpm_host_keys.py");

/// The container's termination message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    v: u32,
    keys: Vec<String>,
}

/// Returns the hosts whose key is scanned, in the order of the container's report.
pub fn asked(hosts: &[RunHost]) -> impl Iterator<Item = &RunHost> {
    hosts.iter().filter(|it| it.scan_host_key.is_some())
}

/// Returns whether a run scans any key.
pub fn is_asking(spec: &AnsibleEeSpec) -> bool {
    asked(&spec.hosts).next().is_some()
}

/// Returns the container; it uses the run's own image, and so the same network view as Ansible.
pub fn container(spec: &AnsibleEeSpec, image: &str, security: &Value) -> Value {
    let mut command: Vec<String> = ["python3", "-I", "-c", SCRIPT].map(Into::into).into();
    command.extend(asked(&spec.hosts).map(argument));
    json!({
        "name": HOST_KEYS_CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "volumeMounts": [{ "name": VOLUME, "mountPath": HOST_KEYS_DIR }],
        "terminationMessagePolicy": "File",
        "securityContext": security,
    })
}

/// Returns a host's argument. Dollar signs are doubled, because kubelet expands `$(NAME)`.
fn argument(host: &RunHost) -> String {
    let fingerprint = host.scan_host_key.as_ref().and_then(|it| it.fingerprint.as_deref());
    let text = match fingerprint {
        Some(fingerprint) => format!("{} {fingerprint}", host.address),
        None => host.address.clone(),
    };
    text.replace('$', "$$")
}

/// Returns the volume, which is deleted with the pod.
pub fn volume() -> Value {
    json!({ "name": VOLUME, "emptyDir": { "sizeLimit": "1Mi" } })
}

/// Returns the mount for the runner container.
pub fn mount() -> Value {
    json!({ "name": VOLUME, "mountPath": HOST_KEYS_DIR, "readOnly": true })
}

/// Returns what the pod's container reported about the hosts that it scanned; empty without a
/// report.
pub fn reports(pod: &Pod, hosts: &[RunHost]) -> Vec<HostKeyReport> {
    let statuses = &pod.status.init_container_statuses;
    let container = statuses.iter().find(|it| it.name == HOST_KEYS_CONTAINER);
    let ended = container.and_then(|it| it.state.terminated.as_ref());
    ended.and_then(|it| parse(it.message.as_deref()?, hosts)).unwrap_or_default()
}

/// Parses the container's message strictly; `None` for anything else.
fn parse(text: &str, hosts: &[RunHost]) -> Option<Vec<HostKeyReport>> {
    let message: Message = serde_json::from_str(text).ok()?;
    if message.v != 1 || message.keys.len() != asked(hosts).count() {
        return None;
    }
    asked(hosts).zip(&message.keys).map(|(host, reported)| report(host, reported)).collect()
}

fn report(host: &RunHost, reported: &str) -> Option<HostKeyReport> {
    let (key, problem) = match reported {
        "?" => (None, Some(HostKeyProblem::NoAnswer)),
        "-" => (None, Some(HostKeyProblem::NoEd25519Key)),
        "!" => (None, Some(HostKeyProblem::NoScanner)),
        tail => (Some(HostKey::of_tail(tail)?.to_string()), None),
    };
    Some(HostKeyReport { name: host.name.clone(), key, problem })
}

#[cfg(test)]
mod tests {
    use api::yaml;
    use operator_core::run_engine::host_key::COMMON_PREFIX;
    use operator_core::run_engine::inventory::KNOWN_HOSTS_KEY;

    use super::*;

    const TAIL: &str = "IWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+";
    const HOSTS: &str = "[{name: a, address: 'x:22', scanHostKey: {}}, {name: b, address: 'y:22'}, \
                         {name: c, address: 'z:2022', scanHostKey: {fingerprint: 'SHA256:f'}}]";

    fn spec(hosts: &str) -> AnsibleEeSpec {
        yaml::from_str(&format!("{{hosts: {hosts}}}")).unwrap()
    }

    #[test]
    fn the_command_names_each_asked_host_and_the_only_key_that_is_trusted() {
        let spec = spec(HOSTS);
        let container = container(&spec, "runner:1", &json!({ "privileged": false }));
        let command: Vec<&str> = container["command"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap())
            .collect();
        assert_eq!(command[..3], ["python3", "-I", "-c"]);
        assert_eq!(command[4..], ["x:22", "z:2022 SHA256:f"]);
        assert_eq!(container["image"], "runner:1");
        assert_eq!(container["securityContext"]["privileged"], false);
        assert_eq!(container.get("env"), None);
        // kubelet would expand it.
        assert!(!SCRIPT.contains("$("));
    }

    #[test]
    fn the_script_writes_where_ssh_reads_and_leaves_out_what_is_put_back() {
        for text in
            [&format!("\"{HOST_KEYS_DIR}/{KNOWN_HOSTS_KEY}\""), &format!("\"{COMMON_PREFIX}\"")]
        {
            assert!(SCRIPT.contains(text), "{text}");
        }
    }

    #[test]
    fn what_kubelet_would_replace_is_kept_from_it() {
        let hosts = "[{name: a, address: '$(PATH):22', scanHostKey: {}}]";
        assert_eq!(argument(&spec(hosts).hosts[0]), "$$(PATH):22");
    }

    #[test]
    fn a_message_tells_of_each_asked_host() {
        let text = format!(r#"{{"v":1,"keys":["{TAIL}","-"]}}"#);
        let reported = parse(&text, &spec(HOSTS).hosts).unwrap();
        let key = format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{TAIL}");
        assert_eq!(
            serde_json::to_value(reported).unwrap(),
            json!([{ "name": "a", "key": key }, { "name": "c", "problem": "NoEd25519Key" }])
        );
        let problems = parse(r#"{"v":1,"keys":["?","!"]}"#, &spec(HOSTS).hosts).unwrap();
        let problems: Vec<_> = problems.into_iter().map(|it| it.problem.unwrap()).collect();
        assert_eq!(problems, [HostKeyProblem::NoAnswer, HostKeyProblem::NoScanner]);
    }

    #[test]
    fn anything_else_tells_of_nobody() {
        let of = |keys: &str| format!(r#"{{"v":1,"keys":{keys}}}"#);
        for text in [
            "",
            "x",
            "null",
            "[]",
            "{}",
            r#"{"v":1}"#,
            r#"{"v":2,"keys":["?","?"]}"#,
            r#"{"v":1,"keys":["?","?"],"more":1}"#,
            &of("[]"),
            &of(r#"["?"]"#),
            &of(r#"["?","?","?"]"#),
            &of(r#"["?",1]"#),
            &of(r#"["?",""]"#),
            &of(r#"["?","x"]"#),
            &of(&format!(r#"["?","{}"]"#, "Z".repeat(43))),
            &of(&format!(r#"["?","{TAIL}A"]"#)),
            &of(&format!(r#"["?","{}"]"#, &TAIL[..42])),
            &of(&format!(r#"["?","{TAIL}\nb ssh-ed25519 x"]"#)),
            &of(&format!(r#"["?","{TAIL}"#)),
        ] {
            assert_eq!(parse(text, &spec(HOSTS).hosts), None, "{text}");
        }
    }

    #[test]
    fn it_is_read_from_the_first_container_alone() {
        let message = json!(format!(r#"{{"v":1,"keys":["{TAIL}","?"]}}"#));
        let pod = |name: &str, list: &str| -> Pod {
            let ended = format!("{{terminated: {{exitCode: 0, message: {message}}}}}");
            let text = format!("{{status: {{{list}: [{{name: {name}, state: {ended}}}]}}}}");
            yaml::from_str(&text).unwrap()
        };
        let count = |name: &str, list: &str| reports(&pod(name, list), &spec(HOSTS).hosts).len();
        assert_eq!(count("edpm-host-keys", "initContainerStatuses"), 2);
        assert_eq!(count("other", "initContainerStatuses"), 0);
        assert_eq!(count("edpm-host-keys", "containerStatuses"), 0);
    }

    #[test]
    fn as_many_keys_as_a_run_may_ask_for_fit_into_the_message() {
        let keys = vec![TAIL; operator_core::run_engine::host_key::SCAN_LIMIT];
        assert!(json!({ "v": 1, "keys": keys }).to_string().len() <= 4096);
    }
}

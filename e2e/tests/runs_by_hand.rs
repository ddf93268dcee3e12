//! Runs that a user creates: what real Ansible does with upstream's fields, and how each run ends.
//! Their host is the runner pod itself, so no host is needed.

use std::time::Duration;

use anyhow::Result;
use api::ansibleee::{AnsibleEe, HostOutcome};
use e2e::Namespace;
use serde_json::{Value, json};

/// The timeout for a run, from its creation to its result, on a busy machine.
const RUN: Duration = Duration::from_mins(10);

const INVENTORY: &str =
    "all: {hosts: {a: {ansible_connection: local}, b: {ansible_connection: local}}}";

/// Asserts the types of the variables in [`variables`].
const TYPES: &str = r#"
- ansible.builtin.assert:
    that:
      - n is integer and n is not boolean and n == 1
      - big is integer and big == 9007199254740993
      - f is float
      - b is boolean and b
      - t is string and t == "1"
      - d.x[0] is integer and d.x[1] is string
"#;

fn variables() -> Value {
    json!({ "n": 1, "big": 9_007_199_254_740_993_i64, "f": 1.5, "b": true, "t": "1",
            "d": { "x": [1, "1"] } })
}

/// Returns a play for all hosts with the given tasks.
fn play(tasks: &str) -> String {
    let tasks: Vec<String> = tasks.trim().lines().map(|it| format!("    {it}")).collect();
    let tasks = tasks.join("\n");
    format!("- name: By hand\n  hosts: all\n  gather_facts: false\n  tasks:\n{tasks}\n")
}

/// Returns a spec for hosts `a` and `b` with one attempt; `address` keeps the tests apart.
fn spec(address: &str, more: &Value) -> Value {
    let host = |name: &str| json!({ "name": name, "address": format!("{address}-{name}:22") });
    let mut spec = json!({
        "inventory": INVENTORY,
        "backoffLimit": 0,
        "hosts": [host("a"), host("b")],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    spec
}

/// Waits until the run's `Ready` has this reason and words.
async fn told(ns: &Namespace, run: &str, reason: &str, words: &[&str]) -> Result<AnsibleEe> {
    ns.reports(run, "Ready", reason, words, RUN).await
}

fn outcomes(run: &AnsibleEe) -> Vec<HostOutcome> {
    run.status.iter().flat_map(|it| &it.hosts).map(|it| it.result).collect()
}

#[tokio::test]
async fn variables_keep_their_types_in_a_play_and_in_a_role() -> Result<()> {
    let ns = Namespace::new("by-hand-types").await?;
    ns.config_map("judge", &[("main.yml", TYPES)]).await?;
    let mounts = json!([{
        "volumes": [{ "name": "judge", "configMap": { "name": "judge" } }],
        "mounts": [{ "name": "judge", "mountPath": "/usr/share/ansible/roles/judge/tasks" }],
    }]);
    for (name, more) in [
        ("play", json!({ "playbookContents": play(TYPES) })),
        ("old-play", json!({ "play": play(TYPES) })),
        ("role", json!({ "role": "judge", "extraMounts": mounts })),
    ] {
        let mut spec = spec(&format!("types-{name}"), &more);
        spec["extraVars"] = variables();
        spec["cmdLine"] = json!("--limit 'a,b'");
        ns.create::<AnsibleEe>(name, spec).await?;
    }
    for name in ["play", "old-play", "role"] {
        let run = told(&ns, name, "Ready", &["2 of 2 hosts done"]).await?;
        assert_eq!(outcomes(&run), [HostOutcome::Ok; 2], "{name}");
    }
    ns.done().await
}

#[tokio::test]
async fn each_way_to_fail_has_its_own_reason() -> Result<()> {
    let ns = Namespace::new("by-hand-failures").await?;
    let fail =
        "- name: Break\n  ansible.builtin.fail: {msg: broken}\n  when: inventory_hostname == 'b'";
    let fail = play(fail);
    let fine = play("- ansible.builtin.debug:");
    let missing = json!({ "configMapKeyRef": { "name": "settings", "key": "colour" } });
    let missing = json!({ "name": "COLOUR", "valueFrom": missing });
    let cases = [
        ("task", json!({ "playbookContents": fail }), "TaskFailed", "b, task 'Break'"),
        (
            "limit",
            json!({ "playbookContents": fine, "cmdLine": "--limit elsewhere" }),
            "NoHostMatched",
            "--limit in spec.cmdLine matches no host",
        ),
        (
            "pattern",
            json!({ "playbookContents": fine.replace("hosts: all", "hosts: elsewhere") }),
            "NoHostMatched",
            "No play reached any of the hosts",
        ),
        (
            "syntax",
            json!({ "playbookContents": fine.replace("tasks:", "taskz:") }),
            "InvalidPlaybook",
            "cannot read the playbook",
        ),
        ("nowhere", json!({ "playbook": "nowhere.yml" }), "InvalidPlaybook", "exit code 1"),
        (
            "deadline",
            json!({ "playbookContents": play("- ansible.builtin.command: sleep 300"),
                    "activeDeadlineSeconds": 20 }),
            "DeadlineExceeded",
            "stopped at its deadline",
        ),
        (
            "account",
            json!({ "playbookContents": fine, "serviceAccountName": "default" }),
            "InvalidSpec",
            "ansibleee.allowedServiceAccounts",
        ),
        (
            "quotes",
            json!({ "playbookContents": fine, "cmdLine": "--limit 'a" }),
            "InvalidSpec",
            "spec.cmdLine: a quotation mark is not closed",
        ),
        // kubelet's message for what keeps a pod from starting.
        (
            "image",
            json!({ "playbookContents": fine, "image": "localhost:1/edpm/no-such-image:1" }),
            "ImagePullFailed",
            "no-such-image",
        ),
        (
            "environment",
            json!({ "playbookContents": fine, "env": [missing] }),
            "InputMissing",
            "configmap \"settings\" not found",
        ),
    ];
    for (name, more, _, _) in &cases {
        ns.create::<AnsibleEe>(name, spec(&format!("failures-{name}"), more)).await?;
    }
    for (name, _, reason, words) in &cases {
        told(&ns, name, reason, &[words]).await?;
    }
    let run = told(&ns, "task", "TaskFailed", &[]).await?;
    assert_eq!(outcomes(&run), [HostOutcome::Ok, HostOutcome::Failed]);
    ns.done().await
}

//! A table of what is rejected in a run's pod, and of what is not.

use api::yaml;

use super::*;

fn settings(accounts: &[&str]) -> Settings {
    let service_accounts = accounts.iter().map(|it| (*it).to_owned()).collect();
    Settings { service_accounts, ..Settings::sample() }
}

/// Returns all faults of a spec as one text.
fn told(spec: &str, accounts: &[&str]) -> String {
    let spec: AnsibleEeSpec = yaml::from_str(spec).unwrap();
    let faults = faults(&spec, &settings(accounts));
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (spec, expected) in cases {
        let told = told(spec, &["runner"]);
        if expected.is_empty() {
            assert_eq!(told, "", "{spec}");
        } else {
            assert!(told.starts_with("spec.") && told.contains(expected), "{spec}: {told:?}");
            assert_eq!(told.lines().count(), 1, "{spec}: {told}");
        }
    }
}

#[test]
fn what_upstream_accepts_is_accepted() {
    check(&[
        ("{}", ""),
        ("{playbook: osp.edpm.nova}", ""),
        ("{role: osp.edpm.edpm_nova}", ""),
        ("{debug: true}", ""),
        (
            "{playbook: a.yml, image: 'r/runner:latest', name: run, cmdLine: '--tags \"a b\"', \
             env: [{name: ANSIBLE_FORCE_COLOR, value: '1'}], serviceAccountName: runner, \
             dnsConfig: {nameservers: [192.168.122.80, '::1'], searches: [a.example.com, b.]}, \
             initContainers: [{name: i, image: x, volumeMounts: [{name: v, mountPath: /v}]}], \
             extraMounts: [{volumes: [{name: v, emptyDir: {}}], mounts: []}], \
             nodeSelector: {kubernetes.io/hostname: w1, disk: '', zone: eu_1.a}, \
             tolerations: [{operator: Exists}, {key: a.b/c, value: d, effect: NoSchedule}, \
                           {key: e, operator: Exists, effect: NoExecute, tolerationSeconds: 5}], \
             resources: {limits: {cpu: 1}}, imagePullSecrets: [{name: registry}], \
             activeDeadlineSeconds: 2147483647, \
             hosts: [{name: a, address: '10.0.0.1:22'}, {name: b, address: 'b.example.com:2022'}, \
                     {name: c, address: 'fd00::1:22'}, {name: d, address: '[fd00::1]:22'}]}",
            "",
        ),
    ]);
}

#[test]
fn what_is_executed_is_named_once_and_stays_in_its_place() {
    check(&[
        ("{role: a, playbook: b}", "spec.role: role and a playbook are mutually exclusive"),
        ("{role: a, playbookContents: '[]'}", "are mutually exclusive"),
        ("{role: a, play: '[]'}", "are mutually exclusive"),
        ("{role: ''}", "spec.role: \"\" is neither"),
        ("{role: ../a}", "spec.role: \"../a\" is neither"),
        ("{role: /a}", "is neither"),
        ("{role: --hosts=x}", "is neither"),
        ("{role: 'a b'}", ""),
        ("{role: ' a'}", "is neither"),
        ("{image: 'a b'}", "spec.image: \"a b\" contains white space"),
        ("{activeDeadlineSeconds: 2147483648}", "spec.activeDeadlineSeconds: at most 604800"),
    ]);
}

#[test]
fn variables_do_not_write_over_the_files_of_the_spec() {
    check(&[
        (
            "{cmdLine: a, env: [{name: RUNNER_CMDLINE, value: b}]}",
            "spec.env[0].name: RUNNER_CMDLINE duplicates spec.cmdLine: keep spec.cmdLine",
        ),
        ("{extraVars: {a: 1}, env: [{name: RUNNER_EXTRA_VARS}]}", "keep spec.extraVars"),
        ("{inventory: a, env: [{name: RUNNER_INVENTORY}]}", "keep spec.inventory"),
        ("{playbookContents: a, env: [{name: RUNNER_PLAYBOOK}]}", "keep spec.playbookContents"),
        ("{play: a, env: [{name: RUNNER_PLAYBOOK}]}", "keep spec.playbookContents"),
        // Without the others they are upstream's contract.
        ("{playbook: a, env: [{name: RUNNER_PLAYBOOK}, {name: RUNNER_CMDLINE}]}", ""),
        (
            "{env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}",
            "spec.env[0]: value and valueFrom",
        ),
        ("{env: [{name: A}, {name: A}]}", "spec.env[1].name: A is set twice"),
        ("{env: [{name: ANSIBLE_ENABLE_TASK_DEBUGGER, value: 'True'}]}", "no terminal"),
        ("{envConfigMapName: A_b}", "spec.envConfigMapName: \"A_b\" is not a valid ConfigMap name"),
    ]);
    let long = format!("{{env: [{{name: A, value: {}}}]}}", "x".repeat(VARIABLE_LIMIT));
    assert!(told(&long, &[]).contains("spec.env[0].value: a variable holds at most 131072 bytes"));
}

#[test]
fn what_decides_about_ssh_is_no_runs_environment() {
    for name in ["ANSIBLE_SSH_ARGS", "ANSIBLE_SSH_COMMON_ARGS", "ANSIBLE_SSH_EXECUTABLE"] {
        let told = told(&format!("{{env: [{{name: A}}, {{name: {name}, value: x}}]}}"), &[]);
        assert!(told.contains("spec.env[1].name") && told.contains("ansible_ssh_common_args"));
    }
    check(&[("{env: [{name: ANSIBLE_HOST_KEY_CHECKING, value: 'False'}]}", "")]);
}

#[test]
fn no_volume_brings_the_token_of_a_service_account() {
    let mount = |source: &str, rest: &str| {
        format!(
            "{{extraMounts: [{{volumes: [{{name: v, projected: {{sources: [{{configMap: {{name: \
             a}}}}, {{{source}}}]}}}}], mounts: [{{name: v, mountPath: /v}}]}}]{rest}}}"
        )
    };
    let token = "serviceAccountToken: {path: token}";
    let path = "spec.extraMounts[0].volumes[0].projected.sources[1].serviceAccountToken: it gives";
    check(&[
        (&mount(token, ""), path),
        (&mount(token, ", inputHash: x"), path),
        (&mount("secret: {name: a}", ""), ""),
    ]);
    // A user who may name an account may have its token; a run of the engine needs none.
    assert_eq!(told(&mount(token, ", serviceAccountName: a"), &["a"]), "");
    let of_engine = told(&mount(token, ", serviceAccountName: a, inputHash: x"), &["a"]);
    assert!(of_engine.contains(path), "{of_engine}");
}

#[test]
fn a_run_reaches_neither_files_nor_rights_of_the_kubernetes_node() {
    let volume = |source: &str| {
        format!("{{extraMounts: [{{volumes: [{{name: v, {source}: {{path: /}}}}], mounts: []}}]}}")
    };
    let container = |rights: &str| {
        format!("{{initContainers: [{{name: i, image: x, securityContext: {{{rights}}}}}]}}")
    };
    let at = "spec.initContainers[0].securityContext";
    check(&[
        (&volume("hostPath"), "spec.extraMounts[0].volumes[0].hostPath: a run gets no path of the"),
        (&volume("emptyDir"), ""),
        (&container("privileged: true"), &format!("{at}.privileged: a run has no rights")),
        (&container("privileged: false"), ""),
        (
            &container("capabilities: {add: [NET_ADMIN, SYS_MODULE]}"),
            &format!("{at}.capabilities.add: SYS_MODULE is none of AUDIT_WRITE, CHOWN"),
        ),
        (&container("capabilities: {add: [NET_ADMIN, NET_RAW], drop: [ALL]}"), ""),
    ]);
}

#[test]
fn a_command_line_can_be_split_into_words() {
    let words =
        ["--tags a,b", "--limit 'a b'", "-e \"it's\"", r#"-e "a\"b""#, r"a\'b", r"'a\'", ""];
    for text in words {
        assert_eq!(unclosed(text), None, "{text}");
    }
    for (text, expected) in [
        ("--tags 'a", "a quotation mark is not closed"),
        ("it's", "a quotation mark is not closed"),
        (r#""a\""#, "a quotation mark is not closed"),
        (r"'a\''", "a quotation mark is not closed"),
        (r"a\", "a trailing backslash"),
        (r#""a\"#, "a trailing backslash"),
    ] {
        assert!(unclosed(text).unwrap().contains(expected), "{text}");
        let spec = AnsibleEeSpec { cmd_line: Some(text.into()), ..AnsibleEeSpec::default() };
        let faults = faults(&spec, &settings(&[]));
        assert_eq!((faults.len(), faults[0].path.as_str()), (1, "spec.cmdLine"));
    }
}

#[test]
fn containers_and_volumes_have_names_that_kubernetes_takes() {
    check(&[
        ("{name: A}", "spec.name: \"A\" is not a valid container name"),
        ("{initContainers: [{name: a_b, image: x}]}", "spec.initContainers[0].name"),
        ("{initContainers: [{name: edpm-host-keys, image: x}]}", "names two containers: rename"),
        ("{initContainers: [{name: a}]}", "spec.initContainers[0].image: a container needs"),
        (
            "{initContainers: [{name: a, image: x, volumeMounts: [{name: v, mountPath: /v}]}]}",
            "spec.initContainers[0].volumeMounts[0].name: no volume of extraMounts is called v",
        ),
        (
            "{extraMounts: [{volumes: [{name: A.b}], mounts: []}]}",
            "spec.extraMounts[0].volumes[0].name",
        ),
        (
            "{extraMounts: [{volumes: [{name: v}], mounts: [{name: v, mountPath: /v, subPath: /a}]}]}",
            "spec.extraMounts[0].mounts[0].subPath: /a points outside its volume",
        ),
        (
            "{extraMounts: [{volumes: [{name: v}], mounts: [{name: v, mountPath: /v, subPath: a/..}]}]}",
            "points outside its volume",
        ),
        ("{imagePullSecrets: [{name: ''}]}", "spec.imagePullSecrets[0].name"),
    ]);
}

#[test]
fn a_service_account_must_be_allowed() {
    let spec = "{serviceAccountName: admin}";
    let path = "spec.serviceAccountName: runs may not use ServiceAccount admin";
    assert!(told(spec, &[]).starts_with(path), "{}", told(spec, &[]));
    assert!(told(spec, &[]).ends_with("(ansibleee.allowedServiceAccounts, now none)"));
    assert!(told(spec, &["runner", "other"]).ends_with("now runner, other)"));
    assert_eq!(told(spec, &["runner", "admin"]), "");
    assert_eq!(told(spec, &["*"]), "");
    assert!(
        told("{serviceAccountName: 'a/b'}", &["*"]).contains("is not a valid ServiceAccount name")
    );
    assert_eq!(told("{}", &[]), "");
}

#[test]
fn dns_is_complete_for_nothing_of_the_clusters_is_used() {
    check(&[
        ("{dnsConfig: {}}", "spec.dnsConfig.nameservers: give one to three servers"),
        ("{dnsConfig: {searches: [a]}}", "one to three servers"),
        ("{dnsConfig: {nameservers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4]}}", "one to three"),
        (
            "{dnsConfig: {nameservers: [a]}}",
            "spec.dnsConfig.nameservers[0]: \"a\" is not an IP address",
        ),
        ("{dnsConfig: {nameservers: [1.1.1.1], searches: [a_b]}}", "spec.dnsConfig.searches[0]"),
    ]);
}

#[test]
fn a_pod_is_placed_by_labels_and_taints_that_exist() {
    check(&[
        ("{nodeSelector: {'a b': c}}", "spec.nodeSelector: \"a b\" is not a valid label key"),
        ("{nodeSelector: {A_B/c: d}}", "is not a valid label key"),
        ("{nodeSelector: {a/b/c: d}}", "is not a valid label key"),
        ("{nodeSelector: {a: 'b c'}}", "spec.nodeSelector.a: \"b c\" is not a valid label value"),
        ("{nodeSelector: {a: -b}}", "is not a valid label value"),
        (
            "{tolerations: [{operator: In}]}",
            "spec.tolerations[0]: operator must be Equal or Exists",
        ),
        ("{tolerations: [{value: a}]}", "without a key"),
        ("{tolerations: [{key: 'a b'}]}", "key is not a valid taint key"),
        ("{tolerations: [{key: a, operator: Exists, value: b}]}", "takes no value"),
        ("{tolerations: [{key: a, effect: Never}]}", "effect must be NoSchedule"),
        (
            "{tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 1}]}",
            "requires effect NoExecute",
        ),
    ]);
}

#[test]
fn only_facts_of_the_setup_module_are_variables_and_only_in_runs_of_the_engine() {
    check(&[
        ("{inputHash: x, factVariables: [ansible_interfaces, ansible_default_ipv4]}", ""),
        (
            "{inputHash: x, factVariables: [ansible_interfaces, ansible_host]}",
            "factVariables[1]: \"ans",
        ),
        ("{factVariables: [ansible_interfaces]}", "spec.factVariables: only runs of the operators"),
    ]);
}

#[test]
fn a_run_of_the_engine_says_nothing_of_the_owner_of_its_hosts() {
    check(&[
        (
            "{inputHash: x, extraVars: {edpm_owner: a/b/c}}",
            "spec.extraVars.edpm_owner: only the operator",
        ),
        ("{inputHash: x, extraVars: {edpm_owner_accepted: [u]}}", "take-over"),
        ("{inputHash: x, extraVars: {edpm_own: a, the_edpm_owner: b}}", ""),
        ("{inputHash: x, cmdLine: \"--tags a --start-at-task 'x y'\"}", "spec.cmdLine: --start-at"),
        ("{inputHash: x, cmdLine: '--\"st\"ep'}", "--step would skip"),
        ("{inputHash: x, cmdLine: --start=x}", "--start=x would"),
        ("{inputHash: x, cmdLine: '--skip-tags always --check --limit a'}", ""),
        // Runs by hand are not checked.
        ("{playbook: a.yml, extraVars: {edpm_owner: a}, cmdLine: --step}", ""),
    ]);
}

//! Checks of the chart as Helm renders it: lint, rendering with all switches, and invariants of the
//! result.

mod annotation_warnings;
mod invariants;
mod monitoring;
mod network_policies;
mod nova_api;
mod operator_policies;
mod webhooks;

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use invariants::{of_kind, text};
use serde_json::{Value, json};

use crate::{lab, paths, sh, yaml};

/// The chart, from the root of the repository.
const CHART: &str = "charts/edpm-operators";
const IMAGE: &str = "image.repository=registry.example/operators";
/// The largest Secret of a release, in bytes: 0.4 MiB, so that a second version of each kind has room.
const MAX_RELEASE: u64 = 419_430;
const KINDS: [&str; 10] = [
    "OpenStackAnsibleEE",
    "OpenStackBaremetalSet",
    "OpenStackDataPlane",
    "OpenStackDataPlaneDeployment",
    "OpenStackDataPlaneNode",
    "OpenStackDataPlaneNodeSet",
    "OpenStackDataPlaneRole",
    "OpenStackDataPlaneService",
    "NovaCell",
    "NovaExternalCompute",
];

/// A check with its name.
type Check = (&'static str, fn() -> Result<()>);

const CHECKS: [Check; 27] = [
    ("helm lint is content", lint),
    ("the defaults render, restricted and without a wildcard", defaults),
    ("a webhook blocks nothing but a change of cell or role", webhooks::blocking),
    ("with watchNamespaces nothing is granted beyond them", watched_namespaces),
    ("without webhooks nothing of them is left", webhooks::none),
    (
        "cert-manager makes the certificate where it is told to, and the operator only reads",
        webhooks::cert_manager,
    ),
    ("the webhooks know their client where a ConfigMap is named", webhooks::client_authorities),
    ("Helm keeps the release in less than 0.4 MiB", release_size),
    ("each definition can be left out alone, and is kept when the release goes", definitions),
    (
        "network policies leave the webhook open, and the rest to the values",
        network_policies::of_operators,
    ),
    (
        "policies bound what operators create that work in all namespaces",
        operator_policies::of_operators,
    ),
    ("the policies have the accounts and namespaces of the values", operator_policies::of_values),
    (
        "annotations that no operator reads, and deletions of nodes, are warned of and never refused",
        annotation_warnings::of_users,
    ),
    ("rights about nova's API are granted only where it is read", nova_api::rights),
    ("the readiness gate of nova is listed where it is switched on", nova_api::readiness),
    ("nothing of the monitoring is rendered without its switches", monitoring::off),
    ("the PodMonitor selects the pods of the operators, and their port", monitoring::pods),
    ("no alert fires where nothing is scraped", monitoring::unscraped),
    (
        "a Prometheus parses the alerts, and evaluates each on what operators publish",
        monitoring::alerts,
    ),
    ("an alert names the namespace of its cell", monitoring::namespaces),
    ("no alert fires while all is well", monitoring::quiet),
    ("a reading of nova that fails now and then raises no alert", monitoring::blips),
    ("a Prometheus evaluates each query of the dashboard", monitoring::dashboard),
    ("OpenShift chooses the users where they are left empty", platform_users),
    ("values reach the operators", values),
    ("typos and wrong types are refused by name", typos),
    ("the image must be named", image),
];

/// Runs all checks with the lab's Helm, and returns the name and result of each.
pub(crate) fn checks() -> Vec<(&'static str, bool)> {
    let mut outcomes = Vec::new();
    for (name, check) in CHECKS {
        let outcome = check();
        println!("chart: {name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
        if let Err(error) = &outcome {
            println!("{error:#}");
        }
        outcomes.push((name, outcome.is_ok()));
    }
    outcomes
}

fn helm(verb: &[&str], values: &[&str]) -> Result<Command> {
    let mut helm = Command::new(lab::simulation_programs()?.join("helm"));
    helm.args(verb).arg(paths::repo().join(CHART));
    for value in values {
        helm.args(["--set", value]);
    }
    Ok(helm)
}

/// Renders the objects of a release `edpm` in `edpm-system` with these values.
fn rendered(values: &[&str]) -> Result<Vec<Value>> {
    let values = [&[IMAGE], values].concat();
    let verb = ["template", "edpm", "--namespace", "edpm-system"];
    let text = sh::run(&mut helm(&verb, &values)?)?;
    let objects: Vec<Value> = yaml::documents(&text).context("what Helm rendered")?;
    let objects: Vec<Value> = objects.into_iter().filter(|it| !it.is_null()).collect();
    invariants::check(&objects).with_context(|| format!("with {values:?}"))?;
    Ok(objects)
}

fn lint() -> Result<()> {
    sh::run(&mut helm(&["lint", "--strict"], &[IMAGE])?).map(drop)
}

fn defaults() -> Result<()> {
    let objects = rendered(&[])?;
    for (kind, n_expected) in [
        ("Deployment", 3),
        ("ServiceAccount", 3),
        ("ClusterRole", 8),
        ("Role", 3),
        ("CustomResourceDefinition", KINDS.len()),
        ("MutatingWebhookConfiguration", 1),
        ("ValidatingWebhookConfiguration", 2),
        ("ValidatingAdmissionPolicy", 6),
    ] {
        let n = of_kind(&objects, kind).count();
        ensure!(n == n_expected, "{n} objects {kind}, not {n_expected}");
    }
    for configuration in invariants::webhooks(&objects) {
        let named = text(configuration, "/metadata/name");
        ensure!(named.starts_with("edpm.edpm-system."), "{named}");
        for hook in webhooks::hooks(configuration) {
            ensure!(hook["namespaceSelector"].is_null(), "{hook}");
            ensure!(hook["clientConfig"]["caBundle"].is_null(), "an upgrade would wipe caBundle");
        }
    }
    Ok(())
}

fn watched_namespaces() -> Result<()> {
    let objects = rendered(&["watchNamespaces={a,b}"])?;
    let cluster: Vec<&str> =
        of_kind(&objects, "ClusterRole").map(|it| text(it, "/metadata/name")).collect();
    let expected = [
        "edpm.edpm-system.ansibleee-operator-definitions",
        "edpm.edpm-system.dataplane-operator-definitions",
        "edpm.edpm-system.dataplane-operator-webhook",
        "edpm.edpm-system.nova-operator-definitions",
        "edpm.edpm-system.nova-operator-webhook",
    ];
    ensure!(cluster == expected, "{cluster:?}");
    let claimed = env_of(
        &rendered(&["claimKinds={NovaCell,NovaExternalCompute}"])?,
        "nova-operator",
        "CLAIM_KINDS",
    )?;
    ensure!(claimed == "NovaCell,NovaExternalCompute", "{claimed}");
    for namespace in ["a", "b"] {
        let n =
            of_kind(&objects, "Role").filter(|it| it["metadata"]["namespace"] == namespace).count();
        ensure!(n == 3, "{n} Roles in {namespace}");
    }
    for configuration in invariants::webhooks(&objects) {
        for hook in webhooks::hooks(configuration) {
            let selected = &hook["namespaceSelector"]["matchExpressions"][0];
            ensure!(selected["values"] == json!(["a", "b"]), "{selected}");
        }
    }
    let watched = env_of(&objects, "nova-operator", "WATCH_NAMESPACES")?;
    ensure!(watched == "a,b", "{watched}");
    Ok(())
}

/// Checks the size of the Secret in which Helm keeps a release: its JSON, as gzip and base64. The API
/// server takes no Secret of more than 1 MiB.
fn release_size() -> Result<()> {
    let verb = ["install", "edpm", "--namespace", "edpm-system", "--dry-run=client", "-o", "json"];
    let release = sh::run(&mut helm(&verb, &[IMAGE])?)?;
    ensure!(release.contains("\"templates\""), "the release has no chart");
    let path = paths::repo().join("target/release.json");
    fs::write(&path, release)?;
    sh::run(Command::new("gzip").args(["--best", "--force"]).arg(&path))?;
    let n = fs::metadata(path.with_extension("json.gz"))?.len().div_ceil(3) * 4;
    ensure!(n < MAX_RELEASE, "{n} bytes, which is not less than {MAX_RELEASE}");
    Ok(())
}

fn definitions() -> Result<()> {
    let installed = |values: &[&str]| -> Result<Vec<String>> {
        let objects = rendered(values)?;
        let definitions = of_kind(&objects, "CustomResourceDefinition");
        let mut kinds = Vec::new();
        for it in definitions {
            let policy = &it["metadata"]["annotations"]["helm.sh/resource-policy"];
            let label = &it["metadata"]["labels"]["edpm.openstack.org/managed-by"];
            ensure!(policy == "keep" && label == "edpm-operators", "{}", it["metadata"]);
            kinds.push(text(it, "/spec/names/kind").to_owned());
        }
        Ok(kinds)
    };
    for off in KINDS {
        let kinds = installed(&[&format!("crds.{off}=false")])?;
        ensure!(kinds.len() == KINDS.len() - 1 && !kinds.iter().any(|it| it == off), "{kinds:?}");
    }
    let off: Vec<String> = KINDS.iter().map(|it| format!("crds.{it}=false")).collect();
    let none = installed(&off.iter().map(String::as_str).collect::<Vec<_>>())?;
    ensure!(none.is_empty(), "{none:?}");
    Ok(())
}

fn platform_users() -> Result<()> {
    let objects = rendered(&["runAsUser=", "runner.uid="])?;
    for deployment in of_kind(&objects, "Deployment") {
        let user = deployment.pointer("/spec/template/spec/securityContext/runAsUser");
        ensure!(user.is_none(), "a user is set: {user:?}");
    }
    let uid = env_of(&objects, "ansibleee-operator", "RUNNER_UID")?;
    ensure!(uid.is_empty(), "{uid}");
    Ok(())
}

/// The expected environment of each operator with the values of [`values`].
const EXPECTED_ENV: [(&str, &str, &str); 23] = [
    ("dataplane-operator", "RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT", "r/runner:1"),
    ("ansibleee-operator", "RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT", "r/runner:1"),
    ("ansibleee-operator", "MAX_ACTIVE_RUNS", "1000"),
    ("ansibleee-operator", "TASK_TIMEOUT", "1800"),
    (
        "ansibleee-operator",
        "RUNNER_RESOURCES",
        r#"{"limits":{"memory":"1Gi"},"requests":{"memory":"64Mi"}}"#,
    ),
    ("ansibleee-operator", "MAX_ACTIVE_RUNS_PER_NAMESPACE", "10"),
    ("dataplane-operator", "SERVICE_NETWORKS", "192.0.2.0/24,fd00::/64"),
    ("dataplane-operator", "ALLOWED_ENDPOINT_NETWORKS", "169.254.1.0/24,::1/128"),
    ("nova-operator", "ALLOWED_ENDPOINT_NETWORKS", "169.254.1.0/24,::1/128"),
    ("ansibleee-operator", "RUN_DEADLINE_SECONDS", "31536000"),
    ("ansibleee-operator", "ALLOWED_SERVICE_ACCOUNTS", "runner,other"),
    ("ansibleee-operator", "RUNNER_UID", "1001"),
    ("nova-operator", "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT", "r/runner:1"),
    ("nova-operator", "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT", "r/compute:1"),
    ("nova-operator", "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT", "r/libvirt:1"),
    ("nova-operator", "RECONCILE_NOVACELL", "false"),
    ("nova-operator", "REWRITE_UNKEYED_DIGESTS", "false"),
    ("dataplane-operator", "REWRITE_UNKEYED_DIGESTS", "false"),
    ("nova-operator", "NOVA_RELEASE", "2025.2"),
    ("nova-operator", "WEBHOOK_CONFIGURATION", "edpm.edpm-system.nova-operator"),
    ("dataplane-operator", "WEBHOOK_CONFIGURATION", "edpm.edpm-system.dataplane-operator"),
    ("dataplane-operator", "LOG_FORMAT", "json"),
    ("dataplane-operator", "LOG_LEVEL", "warn,operator_runtime::api=debug,kube_client=off"),
];

fn values() -> Result<()> {
    let digest = "sha256:".to_owned() + &"a".repeat(64);
    let set = [
        &format!("image.digest={digest}"),
        "relatedImages.ansibleEERunner=r/runner:1",
        "relatedImages.novaCompute=r/compute:1",
        "relatedImages.novaLibvirt=r/libvirt:1",
        "ansibleee.maxActiveRuns=1000",
        "ansibleee.maxActiveRunsPerNamespace=10",
        "dataplane.serviceNetworks={192.0.2.0/24,fd00::/64}",
        "allowedEndpointNetworks={169.254.1.0/24,::1/128}",
        "ansibleee.runDeadlineSeconds=31536000",
        "ansibleee.allowedServiceAccounts={runner,other}",
        "ansibleee.taskTimeout=1800",
        "runner.resources.limits.memory=1Gi",
        "nova.reconcileNovaCell=false",
        "secretDigests.rewriteUnkeyed=false",
        "nova.release=2025.2",
        "logLevel=warn\\,operator_runtime::api=debug\\,kube_client=off",
        "dnsPolicy=Default",
        "priorityClassName=high",
        "nodeSelector.disk=ssd",
        "tolerations[0].operator=Exists",
        "imagePullSecrets[0].name=registry",
    ];
    let objects = rendered(&set)?;
    for (operator, name, expected) in EXPECTED_ENV {
        let found = env_of(&objects, operator, name)?;
        ensure!(found == expected, "{operator} has {name}={found}, not {expected}");
    }
    for deployment in of_kind(&objects, "Deployment") {
        let pod = &deployment["spec"]["template"]["spec"];
        let expected = format!("registry.example/operators@{digest}");
        ensure!(pod["containers"][0]["image"] == expected.as_str(), "{pod}");
        ensure!(pod["dnsPolicy"] == "Default" && pod["priorityClassName"] == "high", "{pod}");
        ensure!(pod["nodeSelector"]["disk"] == "ssd", "{pod}");
        ensure!(pod["tolerations"][0]["operator"] == "Exists", "{pod}");
        ensure!(pod["imagePullSecrets"][0]["name"] == "registry", "{pod}");
    }
    Ok(())
}

/// Returns the value of an operator's environment variable.
fn env_of(objects: &[Value], operator: &str, name: &str) -> Result<String> {
    let deployment = of_kind(objects, "Deployment").find(|it| it["metadata"]["name"] == operator);
    let deployment = deployment.with_context(|| format!("no Deployment {operator}"))?;
    let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
    let mut variables = env.as_array().into_iter().flatten();
    let variable = variables.find(|it| it["name"] == name);
    let variable = variable.with_context(|| format!("{operator} has no {name}"))?;
    Ok(text(variable, "/value").to_owned())
}

fn typos() -> Result<()> {
    for (wrong, named) in [
        ("replica=2", "replica"),
        ("image.repo=x", "repo"),
        ("crds.NovaCel=false", "NovaCel"),
        ("nova.resources.limit.memory=1Mi", "limit"),
        ("replicas=two", "replicas"),
        ("logFormat=xml", "logFormat"),
        ("logLevel=verbose", "logLevel"),
        ("logLevel=info\\,operator_runtime=all", "logLevel"),
        ("networkPolicy.metricFrom[0].podSelector.matchLabels.a=b", "metricFrom"),
        ("watchNamespaces={Not_A_Name}", "watchNamespaces"),
        ("ansibleee.maxActiveRuns=0", "maxActiveRuns"),
        ("ansibleee.runDeadlineSeconds=0", "runDeadlineSeconds"),
        ("ansibleee.allowedServiceAccounts={a b}", "allowedServiceAccounts"),
        ("image.repository=r.example.org/operators:1", "repository"),
        ("image.repository=https://r.example.org/operators", "repository"),
        ("relatedImages.novaCompute=docker://r.example.org/nova:1", "novaCompute"),
        ("relatedImages.ansibleEERunner=r.example.org/runner:1 ", "ansibleEERunner"),
        ("runner.uid=root", "uid"),
        ("webhooks.enabled=yes", "enabled"),
        ("operatorPolicies.enabled=yes", "enabled"),
        ("annotationWarnings.enable=true", "enable"),
        ("operatorPolicies.excludedNamespaces={Not_A_Name}", "excludedNamespaces"),
        ("secretDigests.rewriteUnkeyed=no", "rewriteUnkeyed"),
        ("nova.nodeSetReadiness=yes", "nodeSetReadiness"),
        ("metrics.podMonitor.label=a", "label"),
        ("metrics.prometheusRule.enable=true", "enable"),
        ("metrics.dashboard.enabled=on", "enabled"),
        ("webhooks.certificates=me", "certificates"),
        ("dataplane.serviceNetworks={10.0.0.0/33}", "serviceNetworks"),
        ("dataplane.serviceNetworks={fd00::/129}", "serviceNetworks"),
        ("dataplane.serviceNetworks={192.0.2.1}", "serviceNetworks"),
        ("allowedEndpointNetworks={127.0.0.1}", "allowedEndpointNetworks"),
    ] {
        refused(&[IMAGE, wrong], named).with_context(|| wrong.to_owned())?;
    }
    Ok(())
}

fn image() -> Result<()> {
    refused(&[], "image.repository is not set")
}

/// Fails unless Helm rejects these values with a message that contains `named`.
fn refused(values: &[&str], named: &str) -> Result<()> {
    // Only Helm's output: the error of a command that failed for another reason would contain the
    // values.
    let output = helm(&["template", "edpm"], values)?.output().context("Helm does not start")?;
    ensure!(!output.status.success(), "accepted");
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains(named), "refused without {named}: {said}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    #[ignore = "needs Helm, which the lab builds: `cargo xtask test chart`"]
    fn the_chart_holds() {
        assert!(checks().iter().all(|(_, holds)| *holds));
    }

    #[test]
    fn all_kinds_are_checked() {
        let kinds: BTreeSet<String> =
            api::definitions::all().into_iter().map(|it| it.spec.names.kind).collect();
        assert_eq!(kinds, KINDS.map(str::to_owned).into());
    }
}

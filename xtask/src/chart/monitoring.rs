//! Checks of the alerts and the dashboard with a real Prometheus, on series as operators publish
//! them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::invariants::{of_kind, text};
use super::rendered;
use crate::{packages, paths, sh};

const RULE: &str = "metrics.prometheusRule.enabled=true";
const PODS: &str = "metrics.podMonitor.enabled=true";
const DASHBOARD: &str = "metrics.dashboard.enabled=true";
/// Every metric as text: of all operators, and of one alone; a test of each crate compares its own with the
/// code.
const EXAMPLES: [&str; 3] = [
    "crates/baremetal/src/metrics/example.txt",
    "crates/nova-operator/src/nova/metrics/example.txt",
    "crates/operator-runtime/src/metrics/example.txt",
];
/// When all is evaluated: each alert has waited for its time by then.
const AT: &str = "1h";
const OPERATORS: [&str; 3] = ["ansibleee-operator", "dataplane-operator", "nova-operator"];

/// Checks that no object is there unless its value is true, and then with its labels.
pub(super) fn off() -> Result<()> {
    let is_ours = |it: &&Value| {
        it["kind"] == "PrometheusRule"
            || it["kind"] == "PodMonitor"
            || !it["metadata"]["labels"]["grafana_dashboard"].is_null()
    };
    let n = |values: &[&str]| Ok(rendered(values)?.iter().filter(is_ours).count());
    let counts: [Result<usize>; 4] =
        [n(&[]), n(&[RULE]), n(&[RULE, DASHBOARD]), n(&[RULE, DASHBOARD, PODS])];
    for (found, expected) in counts.into_iter().zip(0..) {
        let found = found?;
        ensure!(found == expected, "{found} objects, not {expected}");
    }
    for (on, value, kind) in
        [(RULE, "prometheusRule", "PrometheusRule"), (PODS, "podMonitor", "PodMonitor")]
    {
        let labelled = rendered(&[on, &format!("metrics.{value}.labels.release=kube")])?;
        let labels = of_kind(&labelled, kind).map(|it| &it["metadata"]["labels"]["release"]);
        ensure!(labels.collect::<Vec<_>>() == ["kube"], "the label of {kind} is missing");
    }
    Ok(())
}

/// Checks that the `PodMonitor` finds each operator's pods, and a port that they have.
pub(super) fn pods() -> Result<()> {
    let objects = rendered(&[PODS])?;
    let monitor = of_kind(&objects, "PodMonitor").next().context("no PodMonitor")?;
    let selected = monitor.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let selected = selected.filter(|it| !it.is_empty()).context("it selects by no label")?;
    let port = &monitor["spec"]["podMetricsEndpoints"][0]["port"];
    let mut found = BTreeSet::new();
    for deployment in of_kind(&objects, "Deployment") {
        let pod = &deployment["spec"]["template"];
        let labels = &pod["metadata"]["labels"];
        ensure!(selected.iter().all(|(name, value)| labels[name] == *value), "{labels}");
        let ports = pod["spec"]["containers"][0]["ports"].as_array().into_iter().flatten();
        ensure!(ports.into_iter().any(|it| it["name"] == *port), "no port {port}");
        found.insert(text(deployment, "/metadata/name"));
    }
    ensure!(found == BTreeSet::from(OPERATORS), "{found:?}");
    Ok(())
}

/// Checks that the rules alone raise nothing: no Prometheus scrapes the operators yet.
pub(super) fn unscraped() -> Result<()> {
    written("rules.json", &rules()?)?;
    let other = json!({ "series": "up{job=\"other\"}", "values": "1+0x90" });
    evaluated("unscraped", &[other], &["ALERTS".to_owned()], false)
}

/// Checks that the alerts are valid, and that each fires where everything is as bad as in the
/// example.
pub(super) fn alerts() -> Result<()> {
    let rules = rules()?;
    let path = written("rules.json", &rules)?;
    sh::run(promtool()?.args(["check", "rules"]).arg(&path))?;
    let fires = |name: &str| format!("ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}}");
    let (mut names, mut queries) = (BTreeSet::new(), Vec::new());
    for rule in rules.pointer("/groups/0/rules").and_then(Value::as_array).into_iter().flatten() {
        queries.extend([text(rule, "/expr").to_owned(), fires(text(rule, "/alert"))]);
        names.insert(text(rule, "/alert"));
    }
    ensure!(names.len() == queries.len() / 2 && names.len() > 5, "the alerts are {names:?}");
    evaluated("alerts", &series(true)?, &queries, true)
}

/// Checks that an alert names the namespace of its cell, also where a scrape has put another one in
/// place of it.
pub(super) fn namespaces() -> Result<()> {
    written("rules.json", &rules()?)?;
    let own = json!({ "namespace": "openstack" });
    for labels in [own, json!({ "namespace": "edpm", "exported_namespace": "openstack" })] {
        let mut expected = labels.clone();
        expected["cell"] = json!("cell1");
        expected["severity"] = json!("warning");
        let given = labels.as_object().into_iter().flatten();
        let given: Vec<String> = given.map(|(name, value)| format!("{name}={value}")).collect();
        let series =
            format!("edpm_nova_computes{{{},cell=\"cell1\",state=\"down\"}}", given.join(","));
        let annotations = json!({
            "summary": "2 computes of NovaCell cell1 are down.",
            "description": "Condition ComputesUp has the first ones: kubectl -n openstack describe \
                            novacell cell1",
        });
        let alert = json!({ "exp_labels": expected, "exp_annotations": annotations });
        let test =
            json!({ "alertname": "EdpmComputesDown", "eval_time": AT, "exp_alerts": [alert] });
        let series = json!({ "series": series, "values": "2+0x90" });
        tested("namespaces", &json!([series]), "alert_rule_test", &json!([test]))?;
    }
    Ok(())
}

/// Checks that no alert is even pending where nothing fails, and all operators lead.
pub(super) fn quiet() -> Result<()> {
    written("rules.json", &rules()?)?;
    evaluated("quiet", &series(false)?, &["ALERTS".to_owned()], false)
}

/// Checks that its alert is never pending where one reading of nova fails, or two in a row.
pub(super) fn blips() -> Result<()> {
    written("rules.json", &rules()?)?;
    let labels = "namespace=\"openstack\",cell=\"cell1\",result=\"Unreachable\"";
    let series = json!({
        "series": format!("edpm_nova_failed_readings{{{labels}}}"),
        "values": "0 1 0 1 2 0 ".repeat(10),
    });
    let alerts = format!("count_over_time(ALERTS{{alertname=\"EdpmNovaApiFails\"}}[{AT}])");
    evaluated("blips", &[series], &[alerts], false)
}

/// Checks that each query of the dashboard has a result.
pub(super) fn dashboard() -> Result<()> {
    written("rules.json", &rules()?)?;
    let objects = rendered(&[DASHBOARD])?;
    let map =
        of_kind(&objects, "ConfigMap").find(|it| it["data"]["edpm-operators.json"].is_string());
    let map = map.context("no ConfigMap with the dashboard")?;
    ensure!(map["metadata"]["labels"]["grafana_dashboard"] == "1", "its label is missing");
    let found: Value = serde_json::from_str(text(map, "/data/edpm-operators.json"))?;
    let mut queries = Vec::new();
    for panel in found["panels"].as_array().into_iter().flatten() {
        let targets = panel["targets"].as_array().into_iter().flatten();
        let before = queries.len();
        queries.extend(targets.map(|it| text(it, "/expr").to_owned()));
        ensure!(queries.len() > before, "{} has no query", panel["title"]);
    }
    ensure!(queries.len() > 10, "{} queries", queries.len());
    evaluated("dashboard", &series(true)?, &queries, true)
}

/// Returns the rules as Prometheus reads them.
fn rules() -> Result<Value> {
    let objects = rendered(&[RULE])?;
    let rule = of_kind(&objects, "PrometheusRule").next().context("no PrometheusRule")?;
    Ok(rule["spec"].clone())
}

/// Has Prometheus evaluate queries, each of which must have a result or, without `has_result`, none.
fn evaluated(name: &str, series: &[Value], queries: &[String], has_result: bool) -> Result<()> {
    let expected = if has_result { json!([{ "labels": "{}", "value": 1 }]) } else { json!([]) };
    let test = |it: &String| {
        json!({
            "expr": format!("count({it}) > bool 0"), "eval_time": AT, "exp_samples": expected,
        })
    };
    let tests: Vec<Value> = queries.iter().map(test).collect();
    tested(name, &json!(series), "promql_expr_test", &json!(tests))
}

/// Has Prometheus run tests of one kind on series.
fn tested(name: &str, series: &Value, kind: &str, tests: &Value) -> Result<()> {
    let tests = json!({
        "rule_files": ["rules.json"],
        "evaluation_interval": "1m",
        "tests": [{ "interval": "1m", "input_series": series, kind: tests }],
    });
    let path = written(&format!("{name}.json"), &tests)?;
    sh::run(promtool()?.args(["test", "rules"]).arg(path)).map(drop)
}

/// Returns the series of the examples, as a Prometheus scrapes them of one operator: with what fails
/// there or, without `is_bad`, with three operators that lead and nothing that fails.
fn series(is_bad: bool) -> Result<Vec<Value>> {
    let examples: Result<Vec<String>, _> =
        EXAMPLES.iter().map(|it| fs::read_to_string(paths::repo().join(it))).collect();
    let examples = examples?.concat();
    let samples: Vec<&str> = examples.lines().filter(|it| !it.starts_with('#')).collect();
    ensure!(samples.len() > 10, "{} samples", samples.len());
    let mut all = Vec::new();
    for operator in OPERATORS.iter().filter(|it| !is_bad || **it == "nova-operator") {
        for sample in &samples {
            let (series, value) = sample.rsplit_once(' ').context("a sample without a value")?;
            let values = if is_bad { growing(series, value) } else { healthy(series) };
            let series = scraped(&series.replace("nova-operator", operator), operator);
            all.push(json!({ "series": series, "values": values }));
        }
    }
    Ok(all)
}

/// Adds the labels of a scrape.
fn scraped(series: &str, operator: &str) -> String {
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let comma = if labels == "}" { "" } else { "," };
    format!("{name}{{instance=\"{operator}:8080\",job=\"edpm\"{comma}{labels}")
}

/// Returns the values of a series in which something fails all the time.
fn growing(series: &str, value: &str) -> String {
    if is_counter(series) { "0+1x90".to_owned() } else { format!("{value}+0x90") }
}

/// Returns the values of a series in which nothing fails.
fn healthy(series: &str) -> String {
    let is_good = series.contains("result=\"Ok\"") || series.contains("reconcile_seconds");
    let is_one = ["edpm_build_info", "edpm_leader"].iter().any(|it| series.starts_with(it));
    match (is_counter(series), is_good, is_one) {
        (true, true, _) => "0+1x90".to_owned(),
        (false, _, true) => "1+0x90".to_owned(),
        (..) => "0+0x90".to_owned(),
    }
}

fn is_counter(series: &str) -> bool {
    let name = series.split('{').next().unwrap_or_default();
    ["_total", "_count", "_sum", "_bucket"].iter().any(|it| name.ends_with(it))
}

/// Writes a file for Prometheus, which reads JSON as the YAML that it is.
fn written(name: &str, content: &Value) -> Result<PathBuf> {
    let folder = paths::repo().join("target/monitoring");
    fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    fs::write(&path, serde_json::to_string_pretty(content)?)?;
    Ok(path)
}

/// Returns a call of Prometheus' tool, which Debian has in its package.
fn promtool() -> Result<Command> {
    let is_there = Command::new("promtool").arg("--version").output().is_ok();
    packages::install(if is_there { &[] } else { &["prometheus"] })?;
    Ok(Command::new("promtool"))
}

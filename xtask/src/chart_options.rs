//! Tests that the chart sets options that its operators have, and that both have the same defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use clap::{Command, CommandFactory as _};
use serde_json::Value;

use crate::paths;

const CHART: &str = "charts/edpm-operators";

/// Options whose default the chart changes on purpose.
const OTHERWISE: [(&str, &str); 1] =
    [("LOG_FORMAT", "who starts an operator by hand reads text; a cluster collects JSON")];

fn operators() -> [(&'static str, Command); 3] {
    [
        ("ansibleee-operator", ansibleee_operator::args::Args::command()),
        ("dataplane-operator", dataplane_operator::args::Args::command()),
        ("nova-operator", nova_operator::args::Args::command()),
    ]
}

fn template(name: &str) -> String {
    fs::read_to_string(paths::repo().join(CHART).join("templates").join(name)).unwrap()
}

#[test]
fn every_variable_of_the_chart_is_an_option_of_its_operator() {
    for (operator, command) in operators() {
        let options: BTreeSet<String> = command
            .get_arguments()
            .filter_map(|it| Some(it.get_env()?.to_string_lossy().into_owned()))
            .collect();
        let variables = variables(operator);
        let unknown: Vec<&String> = variables.difference(&options).collect();
        assert!(variables.len() >= 5 && unknown.is_empty(), "{operator}: {unknown:?}");
    }
}

/// Returns the variables that an operator's template and the common one set.
fn variables(operator: &str) -> BTreeSet<String> {
    let (own, all) = (template(&format!("{operator}.yaml")), template("_operator.tpl"));
    let has_webhooks = own.contains("\"hasWebhooks\" true");
    let is_used = |it: &&str| has_webhooks || !it.contains("WEBHOOK");
    let own = own.split("(dict \"name\" \"").skip(1).filter_map(|it| it.split('"').next());
    let all = all.lines().filter_map(|it| it.strip_prefix("- name: ")).filter(is_used);
    let is_variable = |it: &&str| it.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    own.chain(all).filter(is_variable).map(str::to_owned).collect()
}

/// Returns the variables that the templates set whatever the values are, each with the expression that
/// it is made by.
fn always_set(operator: &str) -> BTreeMap<String, String> {
    let own = template(&format!("{operator}.yaml"));
    // What is appended under a condition begins otherwise.
    let own = own.lines().filter_map(|it| it.strip_prefix("  (dict \"name\" \""));
    let own = own.map(|it| it.split_once("\" \"value\" ").unwrap());
    let all = template("_operator.tpl");
    let (_, all) = all.split_once("define \"edpm.env\"").unwrap();
    let (all, _) = all.split_once("range .env").unwrap();
    let all = all.split("- name: ").skip(1).filter_map(|it| it.split_once("\n  value: "));
    own.chain(all).map(|(name, made)| (name.to_owned(), made.to_owned())).collect()
}

/// Returns what an operator gets by an expression with the chart's defaults.
fn default_of(expression: &str, values: &Value) -> String {
    let (_, path) = expression.split_once(".Values.").unwrap();
    let is_of_path = |it: char| it.is_alphanumeric() || it == '.';
    let path: String = path.chars().take_while(|it| is_of_path(*it)).collect();
    let value = values.pointer(&format!("/{}", path.replace('.', "/"))).unwrap();
    if expression.contains("div ") {
        assert!(expression.contains(" 2 | min 4 | max 1 "), "{expression}");
        return (value.as_u64().unwrap() / 2).clamp(1, 4).to_string();
    }
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(entries) => {
            entries.iter().map(|it| it.as_str().unwrap()).collect::<Vec<_>>().join(",")
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Where the chart always sets an option, its value is what counts: another default of the option would
/// mislead who reads the code.
#[test]
fn the_chart_and_the_options_have_the_same_defaults() {
    let values = fs::read_to_string(paths::repo().join(CHART).join("values.yaml")).unwrap();
    let values: Value = api::yaml::from_str(&values).unwrap();
    let mut n_compared = 0;
    for (operator, command) in operators() {
        let set = always_set(operator);
        for option in command.get_arguments() {
            let variable = option.get_env().map(|it| it.to_string_lossy()).unwrap_or_default();
            let Some(expression) = set.get(&*variable) else { continue };
            let own = option.get_default_values().iter().map(|it| it.to_string_lossy());
            let own = own.collect::<Vec<_>>().join(",");
            if own.is_empty() {
                continue;
            }
            n_compared += 1;
            let of_chart = default_of(expression, &values);
            let differs = OTHERWISE.iter().any(|it| it.0 == variable);
            assert_eq!(
                own != of_chart,
                differs,
                "{operator}: the default of option {} is {own}, and {variable} of the chart is \
                 {of_chart} by values.yaml",
                option.get_id()
            );
        }
    }
    assert!(n_compared > 12, "only {n_compared} options are compared");
}

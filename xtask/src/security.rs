//! Tests: SECURITY.md describes for every kind what its author can do, names each field that gives
//! power, and each right to write that an operator has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use api::definitions;
use operator_core::rbac::Rule;
use serde_json::Value;

use crate::paths;

/// The start of the heading of the table.
const HEADING: &str = "| Kind | Its author |";

/// Parts of the names of fields that select code, credentials or hosts, or their source or target.
/// It is better to match too many names than too few.
const POWERS: &[&str] = &[
    "adopt",
    "annotation",
    "argument",
    "attachments",
    "authentication",
    "baremetalset",
    "bmh",
    "capabilities",
    "cellname",
    "cert",
    "cmdline",
    "command",
    "config",
    "container",
    "datasources",
    "dns",
    "endpoint",
    "env",
    "extravars",
    "host",
    "image",
    "inventory",
    "issuer",
    "mount",
    "namespace",
    "networkdata",
    "password",
    "play",
    "privilege",
    "role",
    "secret",
    "selector",
    "serviceaccount",
    "services",
    "ssh",
    "token",
    "toleration",
    "url",
    "user",
    "vars",
    "vendordata",
    "volume",
];

/// Returns the fields of each kind's spec that give power; the fields below one of them belong to
/// it.
fn powers() -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for (kind, spec) in specs() {
        let mut names = BTreeSet::new();
        visit(&spec, &mut |name| {
            let lower = name.to_lowercase();
            let gives = POWERS.iter().any(|it| lower.contains(it));
            if gives {
                names.insert(name.to_owned());
            }
            !gives
        });
        found.insert(kind, names);
    }
    found
}

/// Returns the schema of each kind's spec.
fn specs() -> Vec<(String, Value)> {
    let all = definitions::all().into_iter();
    let schema = |it: &Value| {
        let versions = it["spec"]["versions"].as_array().unwrap();
        versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
    };
    all.map(|it| (it.spec.names.kind.clone(), schema(&serde_json::to_value(it).unwrap()))).collect()
}

/// Visits every field of a schema; `goes_on` returns whether to visit those below it.
fn visit(schema: &Value, goes_on: &mut impl FnMut(&str) -> bool) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if goes_on(name) {
            visit(field, goes_on);
        }
    }
    for part in ["items", "additionalProperties"] {
        if schema[part].is_object() {
            visit(&schema[part], goes_on);
        }
    }
}

/// Returns kind → the fields that its row names.
fn rows(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let table = text.lines().skip_while(|it| !it.starts_with(HEADING)).skip(2);
    let rows = table.take_while(|it| it.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 3 && cells[1].len() > 20, "a row without words: {row}");
        let names = cells[2].split('`').skip(1).step_by(2);
        (cells[0].trim_matches('`').to_owned(), names.map(str::to_owned).collect())
    })
    .collect()
}

/// Returns what a text lacks.
fn gaps(text: &str) -> Vec<String> {
    let (powers, rows) = (powers(), rows(text));
    let mut gaps = Vec::new();
    for (kind, wanted) in &powers {
        let Some(named) = rows.get(kind) else {
            gaps.push(format!("{kind} has no row"));
            continue;
        };
        gaps.extend(wanted.difference(named).map(|it| format!("{kind}: `{it}` is not named")));
    }
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (kind, spec) in specs() {
        let names = known.entry(kind).or_default();
        visit(&spec, &mut |name| {
            names.insert(name.to_owned());
            true
        });
    }
    for (kind, named) in &rows {
        let Some(known) = known.get(kind) else {
            gaps.push(format!("there is no kind {kind}"));
            continue;
        };
        gaps.extend(named.difference(known).map(|it| format!("{kind} has no field `{it}`")));
    }
    gaps
}

/// The start of the heading of the table of rights.
const RIGHTS: &str = "| Right | What it is for |";

/// The rules of each operator.
const OPERATORS: [(&str, &[&[Rule]]); 3] = [
    ("ansibleee-operator", &[ansibleee_operator::RULES]),
    ("dataplane-operator", &[dataplane_operator::operator::RULES]),
    ("nova-operator", &[nova_operator::operator::RULES, nova_operator::operator::NOVA_API_RULES]),
];

/// Returns how the table names a resource.
fn title(resource: &str) -> &str {
    match resource.split_once('/').map_or(resource, |it| it.1) {
        "status" => "tatuses",
        "finalizers" => "Finalizers",
        "baremetalhosts" => "BareMetalHost",
        "certificates" => "Certificate",
        "configmaps" => "ConfigMaps",
        "dnsdata" => "DNSData",
        "endpointslices" => "EndpointSlices",
        "events" => "Events",
        "ipsets" => "IPSet",
        "jobs" => "Jobs",
        "novacells" => "NovaCell",
        "novaexternalcomputes" => "NovaExternalCompute",
        "openstackansibleees" => "OpenStackAnsibleEE",
        "openstackbaremetalsets" => "OpenStackBaremetalSet",
        "openstackdataplanedeployments" => "OpenStackDataPlaneDeployment",
        "openstackdataplanehostreadinesses" => "OpenStackDataPlaneHostReadiness",
        "openstackdataplanenodes" => "OpenStackDataPlaneNode",
        "openstackdataplanenodesets" => "OpenStackDataPlaneNodeSet",
        "openstackdataplaneroles" => "OpenStackDataPlaneRole",
        "openstackdataplaneservices" => "OpenStackDataPlaneService",
        "rabbitmqusers" => "RabbitMQUser",
        "secrets" => "Secrets",
        "services" => "Services",
        other => other,
    }
}

/// Returns the rights to write that no row of the table names together with their operator.
fn missing_rights(text: &str) -> Vec<String> {
    let table = text.lines().skip_while(|it| !it.starts_with(RIGHTS)).skip(2);
    let rows = table.take_while(|it| it.starts_with('|'));
    let rights: Vec<&str> = rows.filter_map(|it| it.split('|').nth(1)).collect();
    let is_named = |operator: &str, resource: &str, verb: &str| {
        let verb = format!("`{verb}`");
        let is_it = |it: &str| it.contains(title(resource)) && it.contains(&verb);
        rights.iter().any(|it| {
            is_it(it)
                && (it.contains(operator)
                    || it.contains("all three")
                    || it.contains("each operator"))
        })
    };
    let mut missing = Vec::new();
    for (operator, tables) in OPERATORS {
        for rule in tables.iter().copied().flatten() {
            let writes = rule.verbs.iter().filter(|it| !["get", "list", "watch"].contains(it));
            let rights = writes.flat_map(|verb| rule.resources.iter().map(move |it| (*it, *verb)));
            let lacks = rights.filter(|(resource, verb)| !is_named(operator, resource, verb));
            missing.extend(lacks.map(|(resource, verb)| format!("{operator}: {verb} {resource}")));
        }
    }
    missing
}

#[test]
fn security_names_every_right_to_write_that_an_operator_has() {
    let text = fs::read_to_string(paths::repo().join("SECURITY.md")).unwrap();
    assert_eq!(missing_rights(&text), [""; 0]);
    let without: String =
        text.split_inclusive('\n').filter(|it| !it.contains("(ansibleee-operator)")).collect();
    let jobs = ["create", "delete"].map(|it| format!("ansibleee-operator: {it} jobs"));
    assert_eq!(missing_rights(&without), jobs);
}

#[test]
fn security_tells_of_every_kind_what_its_author_can_do_and_names_each_field_that_gives_power() {
    let text = fs::read_to_string(paths::repo().join("SECURITY.md")).unwrap();
    assert_eq!(gaps(&text), [""; 0]);
}

#[test]
fn a_missing_kind_a_field_that_is_not_named_and_one_that_is_gone_are_found() {
    let text = fs::read_to_string(paths::repo().join("SECURITY.md")).unwrap();
    let row = text.lines().find(|it| it.starts_with("| `NovaExternalCompute` |")).unwrap();
    let without = gaps(&text.replace(&format!("{row}\n"), ""));
    assert_eq!(without, ["NovaExternalCompute has no row"]);
    let other = row.replace("`sshKeySecretName`", "`gone`");
    let found = gaps(&text.replace(row, &other));
    assert_eq!(
        found,
        [
            "NovaExternalCompute: `sshKeySecretName` is not named",
            "NovaExternalCompute has no field `gone`"
        ]
    );
}

//! Tests: SECURITY.md describes for every kind what its author can do, and names each right to write
//! that an operator has.

use std::collections::BTreeSet;
use std::fs;

use api::definitions;
use operator_core::rbac::Rule;

use crate::paths;

/// The start of the heading of the table.
const HEADING: &str = "| Kind | Its author |";

/// Returns the kinds that have a row with words.
fn rows(text: &str) -> BTreeSet<String> {
    let table = text.lines().skip_while(|it| !it.starts_with(HEADING)).skip(2);
    let rows = table.take_while(|it| it.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 2 && cells[1].len() > 20, "a row without words: {row}");
        cells[0].trim_matches('`').to_owned()
    })
    .collect()
}

/// Returns what a text lacks or has too much.
fn gaps(text: &str) -> Vec<String> {
    let kinds: BTreeSet<String> =
        definitions::all().into_iter().map(|it| it.spec.names.kind).collect();
    let rows = rows(text);
    let missing = kinds.difference(&rows).map(|it| format!("{it} has no row"));
    let gone = rows.difference(&kinds).map(|it| format!("there is no kind {it}"));
    missing.chain(gone).collect()
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
fn security_says_of_every_kind_what_its_author_can_do_and_leads_to_the_fields_that_give_it() {
    let text = fs::read_to_string(paths::repo().join("SECURITY.md")).unwrap();
    assert_eq!(gaps(&text), [""; 0]);
    assert!(text.contains("](docs/powers.md)"), "no link to the fields");
}

#[test]
fn a_missing_kind_and_one_that_is_gone_are_found() {
    let text = fs::read_to_string(paths::repo().join("SECURITY.md")).unwrap();
    let other = text.replace("| `NovaExternalCompute` |", "| `Gone` |");
    assert_eq!(gaps(&other), ["NovaExternalCompute has no row", "there is no kind Gone"]);
}

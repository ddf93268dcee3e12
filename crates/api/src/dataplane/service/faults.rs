//! What is wrong with a service as a user wrote it, and what of it is without effect.
//!
//! The rules of the definition refuse the same faults on a write. The controller reports those that
//! were accepted nevertheless, or were written before the rules existed.

use kube::ResourceExt;

use super::{KEY_USAGES, Service, ServiceSpec, TlsCert};
use crate::fault::Fault;
use crate::names::{LABEL_LIMIT, is_dns_subdomain};
use crate::shared::DataSource;
use crate::{facts, plays};

/// What a name of a ConfigMap or Secret is made of.
const NAME: &str = "lower-case letters, digits, - and ., at most 253 characters";
/// What a certificate may name.
const CONTENTS: [&str; 2] = ["dnsnames", "ips"];

/// Everything for which a service cannot be deployed, in the order of its fields.
pub fn faults(service: &Service) -> Vec<Fault> {
    let (name, spec) = (service.name_any(), &service.spec);
    let mut faults = Vec::new();
    if name.len() > LABEL_LIMIT {
        let message = format!(
            "it is a label of the service's runs: create the service under a name of at most \
             {LABEL_LIMIT} characters"
        );
        faults.push(Fault::new("metadata.name", message));
    }
    // A run would refuse what has its effect.
    match set_plays(spec).next() {
        None => {
            let message = "nothing to run: set playbook, playbookContents or role";
            faults.push(Fault::new("spec", message));
        }
        Some((field, text, rule)) => {
            faults.extend(rule(text).map(|it| Fault::new(format!("spec.{field}"), it)));
        }
    }
    for (idx, source) in spec.data_sources.iter().enumerate() {
        data_source(&format!("spec.dataSources[{idx}]"), source, &mut faults);
    }
    let ca = spec.ca_certs.iter().filter(|it| !it.is_empty());
    faults.extend(ca.filter_map(|it| bad_name("spec.caCerts".into(), it)));
    for (field, names) in [("configMaps", &spec.config_maps), ("secrets", &spec.secrets)] {
        let names = names.iter().enumerate();
        faults.extend(names.filter_map(|(idx, it)| bad_name(format!("spec.{field}[{idx}]"), it)));
    }
    let names = spec.fact_variables.iter().enumerate();
    faults.extend(names.filter_map(|(idx, it)| {
        Some(Fault::new(format!("spec.factVariables[{idx}]"), facts::fault(it)?))
    }));
    for (name, cert) in &spec.tls_certs {
        certificate(&format!("spec.tlsCerts.{name}"), cert, &mut faults);
    }
    faults
}

/// Why a text cannot be run.
type Rule = fn(&str) -> Option<String>;

/// What is set of the fields that say what is run, with its rule: the first one has its effect.
fn set_plays(spec: &ServiceSpec) -> impl Iterator<Item = (&'static str, &str, Rule)> {
    let fields: [(&str, &Option<String>, Rule); 4] = [
        ("playbookContents", &spec.playbook_contents, plays::contents_fault),
        ("play", &spec.play, plays::contents_fault),
        ("playbook", &spec.playbook, plays::playbook_fault),
        ("role", &spec.role, plays::role_fault),
    ];
    fields.into_iter().filter_map(|(field, text, rule)| {
        Some((field, text.as_deref().filter(|it| !it.is_empty())?, rule))
    })
}

fn data_source(path: &str, source: &DataSource, faults: &mut Vec<Fault>) {
    if source.object().is_none_or(|(_, it)| it.name.is_empty()) {
        let message =
            "no object: name a ConfigMap in configMapRef.name or a Secret in secretRef.name";
        faults.push(Fault::new(path, message));
    }
    let refs = [("configMapRef", &source.config_map_ref), ("secretRef", &source.secret_ref)];
    for (field, found) in refs {
        let name = found.as_ref().map(|it| it.name.as_str()).filter(|it| !it.is_empty());
        faults.extend(name.and_then(|it| bad_name(format!("{path}.{field}.name"), it)));
    }
}

fn bad_name(path: String, name: &str) -> Option<Fault> {
    let message = || format!("{name:?} cannot be the name of an object: {NAME}");
    (!is_dns_subdomain(name)).then(|| Fault::new(path, message()))
}

fn certificate(path: &str, cert: &TlsCert, faults: &mut Vec<Fault>) {
    if cert.contents.is_empty() {
        faults.push(Fault::new(
            format!("{path}.contents"),
            "must not be empty: list dnsnames, ips or both",
        ));
    }
    for (idx, found) in cert.contents.iter().enumerate() {
        if !CONTENTS.contains(&found.as_str()) {
            let message = format!("{found:?} is neither dnsnames nor ips");
            faults.push(Fault::new(format!("{path}.contents[{idx}]"), message));
        }
    }
    for (idx, found) in cert.key_usages.iter().enumerate() {
        if !KEY_USAGES.contains(&found.as_str()) {
            let message =
                format!("{found:?} is not a key usage of cert-manager, such as \"server auth\"");
            faults.push(Fault::new(format!("{path}.keyUsages[{idx}]"), message));
        }
    }
}

/// What a service says without effect, or in a way that is to go, in the order of its fields.
pub fn warnings(service: &Service) -> Vec<Fault> {
    let spec = &service.spec;
    let mut found = Vec::new();
    overruled_plays(spec, &mut found);
    for (idx, source) in spec.data_sources.iter().enumerate() {
        let path = format!("spec.dataSources[{idx}]");
        if source.prefix.as_ref().is_some_and(|it| !it.is_empty()) {
            let message = "files are named after their keys only: remove it and rename the keys; \
                           prefix is for ansibleVarsFrom";
            found.push(Fault::new(format!("{path}.prefix"), message));
        }
        if let (Some(map), Some(secret)) = (&source.config_map_ref, &source.secret_ref) {
            let message = format!(
                "Secret {} is not mounted, because the entry also names ConfigMap {}: give each an \
                 entry of its own",
                secret.name, map.name
            );
            found.push(Fault::new(format!("{path}.secretRef"), message));
        }
    }
    deprecated(spec, &mut found);
    found
}

/// Of several things to run, one is run.
fn overruled_plays(spec: &ServiceSpec, found: &mut Vec<Fault>) {
    let mut set = set_plays(spec);
    let Some((run, ..)) = set.next() else { return };
    for (field, ..) in set {
        let message = format!("not run, because {run} is also set: remove one of them");
        found.push(Fault::new(format!("spec.{field}"), message));
    }
}

fn deprecated(spec: &ServiceSpec, found: &mut Vec<Fault>) {
    let fields = [
        ("play", spec.play.is_some(), "use playbookContents"),
        ("label", spec.label.is_some(), "it has no effect"),
        ("certsFrom", spec.certs_from.is_some(), "it has no effect"),
        ("configMaps", !spec.config_maps.is_empty(), "use dataSources"),
        ("secrets", !spec.secrets.is_empty(), "use dataSources"),
    ];
    for (field, is_set, instead) in fields {
        if is_set {
            found.push(Fault::new(format!("spec.{field}"), format!("deprecated: {instead}")));
        }
    }
}

//! The condition of a service of type nova on the keys of its data sources.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{READY, Severity, merge_conditions};
use api::dataplane::Service;
use jiff::Timestamp;
use nova_config::conditions::CONFIG_CONDITION;
use operator_core::condition_catalog::undeclared;
use operator_core::data_sources::SourceRef;
use operator_core::plan::{EventDraft, Write};
use serde_json::{Value, json};
use testkit::golden::recorded;
use testkit::objects::named;

use super::decide::decide;
use super::observed::{Observed, own_condition};
use crate::condition_catalog::KINDS;
use crate::reasons;

fn seen(has_cell: bool, sources: &[(SourceRef, &[&str])]) -> Observed {
    let object = json!({
        "metadata": { "uid": "u", "generation": 1 },
        "spec": { "playbook": "osp.edpm.nova", "edpmServiceType": "nova" },
    });
    let keys = |keys: &[&str]| keys.iter().map(|it| (*it).to_owned()).collect();
    let sources: BTreeMap<_, _> =
        sources.iter().map(|(source, it)| (source.clone(), keys(it))).collect();
    Observed {
        service: Arc::new(named("ns", "nova-custom", object)),
        is_nova: true,
        has_cell,
        sources,
    }
}

fn map(name: &str) -> SourceRef {
    SourceRef::config_map("ns", name)
}

/// One reconciliation: the status that is written, and its Events.
fn pass(seen: &mut Observed) -> Option<(Value, Vec<EventDraft>)> {
    let plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
    assert!(plan.steps.len() < 2, "{plan:?}");
    let Write::Status { status, notices, .. } = plan.steps.into_iter().next()?.write else {
        panic!("no status")
    };
    assert_eq!(undeclared(KINDS, "OpenStackDataPlaneService", &status), [""; 0]);
    let service = Arc::make_mut(&mut seen.service);
    service.status = Some(serde_json::from_value(status.clone()).unwrap());
    Some((status, notices))
}

fn told(has_cell: bool, sources: &[(SourceRef, &[&str])]) -> (String, String) {
    let mut seen = seen(has_cell, sources);
    pass(&mut seen).unwrap();
    let found = own_condition(&seen.service).unwrap();
    (found.reason.clone(), found.message.clone())
}

#[test]
fn a_key_that_nova_never_reads_is_told_once_with_a_name_that_works() {
    let mut seen = seen(true, &[(map("nova-extra-config"), &["my.conf"])]);
    let (status, notices) = pass(&mut seen).unwrap();
    assert_eq!(status["conditions"].as_array().unwrap().len(), 1, "this condition alone is ours");
    let found = own_condition(&seen.service).unwrap();
    assert_eq!((found.reason.as_str(), found.severity), ("KeyIgnored", Some(Severity::Warning)));
    for words in [
        "OpenStackDataPlaneService nova-custom: Key my.conf of ConfigMap nova-extra-config",
        "reads *nova*.conf alone",
        "name it 25-nova-my.conf.",
    ] {
        assert!(found.message.contains(words), "{}", found.message);
    }
    assert_eq!(notices.len(), 1);
    assert!(pass(&mut seen).is_none(), "told once");
    seen.sources = BTreeMap::from([(map("nova-extra-config"), vec!["25-nova-my.conf".into()])]);
    let (_, notices) = pass(&mut seen).unwrap();
    assert_eq!(own_condition(&seen.service).unwrap().reason, "KeysUsed");
    assert_eq!(notices, []);
}

#[test]
fn a_key_before_the_generated_files_is_told_where_there_are_such() {
    let (reason, message) = told(true, &[(map("m"), &["00-nova.conf"])]);
    assert_eq!(reason, "KeyOverruled");
    assert!(message.contains("read before 01-nova.conf, whose values win"), "{message}");
    assert!(message.contains("name it 25-nova.conf."), "{message}");
    assert_eq!(told(false, &[(map("m"), &["01-nova.conf", "25-nova-x.conf"])]).0, "KeysUsed");
}

#[test]
fn keys_of_migration_and_of_providers_are_used() {
    let keys: [(SourceRef, &[&str]); 2] = [
        (SourceRef::secret("ns", "nova-migration-ssh-key"), &["ssh-privatekey", "ssh-publickey"]),
        (map("providers"), &["provider_gpu.yaml"]),
    ];
    assert_eq!(told(true, &keys).0, "KeysUsed");
}

#[test]
fn many_keys_are_told_as_a_number_and_no_name_is_proposed_twice() {
    let keys = ["25-nova-a.conf", "a.cfg", "a.conf", "b", "c", "d", "e"];
    let (_, message) = told(true, &[(map("m"), &keys)]);
    for name in ["name it 26-nova-a.conf.", "name it 27-nova-a.conf.", "name it 25-nova-b.conf."] {
        assert!(message.contains(name), "{name}: {message}");
    }
    assert!(message.ends_with("So it is with 1 more."), "{message}");
}

#[test]
fn a_service_that_is_nova_s_no_more_loses_the_condition_and_no_other() {
    let mut seen = seen(true, &[(map("m"), &["my.conf"])]);
    pass(&mut seen);
    let service: &mut Service = Arc::make_mut(&mut seen.service);
    let conditions = &mut service.status.as_mut().unwrap().conditions;
    let other = reasons::cell::READY.condition(READY, "");
    conditions.extend(merge_conditions(&[], vec![other], None, Timestamp::UNIX_EPOCH));
    seen.is_nova = false;
    let (status, _) = pass(&mut seen).unwrap();
    assert_eq!(status, json!({ "conditions": [] }));
    assert_eq!(own_condition(&seen.service), None);
    assert_eq!(CONFIG_CONDITION, "nova.openstack.org/Config");
    assert!(pass(&mut seen).is_none());
}

//! Tests: the writes and the status of a service, case by case.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Condition, ConditionStatus, find};
use api::dataplane::Service;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use operator_core::condition_catalog::undeclared;
use operator_core::data_sources::SourceRef;
use operator_core::plan::{EventDraft, Step, Write};
use operator_core::rejected_write::RejectedWrite;
use serde_json::{Value, json};
use testkit::golden::recorded;
use testkit::objects::named;
use testkit::passes::to_rest;

use super::decide::decide;
use super::observed::Observed;
use crate::condition_catalog::KINDS;
use crate::default_services::DefaultServices;
use crate::reasons;

/// A service as the API server would hold it, and the writes to it.
struct World {
    seen: Observed,
    writes: Vec<String>,
    notices: Vec<EventDraft>,
}

fn secret(name: &str) -> SourceRef {
    SourceRef::secret("ns", name)
}

fn config_map(name: &str) -> SourceRef {
    SourceRef::config_map("ns", name)
}

impl World {
    fn without(name: &str) -> Self {
        let seen = Observed {
            namespace: "ns".into(),
            name: name.into(),
            service: None,
            defaults: DefaultServices::default(),
            sources: BTreeMap::new(),
            is_listed: true,
            ports: None,
        };
        Self { seen, writes: Vec::new(), notices: Vec::new() }
    }

    fn of(spec: &Value) -> Self {
        let mut world = Self::without("own");
        let fields = json!({ "metadata": { "uid": "u", "generation": 1 }, "spec": spec });
        world.seen.service = Some(Arc::new(named("ns", "own", fields)));
        world
    }

    /// Adds existing data sources.
    fn with(mut self, sources: &[(SourceRef, &[&str])]) -> Self {
        for (source, keys) in sources {
            let keys = keys.iter().map(|it| (*it).to_owned()).collect();
            self.seen.sources.insert(source.clone(), keys);
        }
        self
    }

    fn service(&mut self) -> &mut Service {
        Arc::make_mut(self.seen.service.as_mut().unwrap())
    }

    /// Runs passes until nothing is written any more.
    fn settle(&mut self) -> Vec<String> {
        let pass = |it: &mut Self| {
            let plan = recorded(decide(&it.seen, None, Timestamp::UNIX_EPOCH));
            plan.steps.iter().for_each(|step| it.take(step));
        };
        to_rest(self, |it| it.writes.clone(), pass);
        std::mem::take(&mut self.writes)
    }

    fn take(&mut self, step: &Step) {
        match &step.write {
            Write::Apply { object, force, .. } => {
                assert!(force);
                let mut applied: Service = serde_json::from_value(object.clone()).unwrap();
                let before = self.seen.service.take();
                applied.metadata.uid = Some("u".into());
                let generation = before.as_ref().and_then(|it| it.metadata.generation);
                applied.metadata.generation = Some(generation.unwrap_or_default() + 1);
                if let Some(before) = before {
                    applied.status.clone_from(&before.status);
                    applied.labels_mut().extend(before.labels().clone());
                }
                self.seen.service = Some(Arc::new(applied));
                self.writes.push(format!("apply {}", step.target.name));
            }
            Write::Status { status, notices, .. } => {
                assert_eq!(undeclared(KINDS, "OpenStackDataPlaneService", status), [""; 0]);
                self.service().status = Some(serde_json::from_value(status.clone()).unwrap());
                self.notices.extend(notices.clone());
                self.writes.push("status".into());
            }
            write @ (Write::Create { .. }
            | Write::Delete { .. }
            | Write::AddFinalizer { .. }
            | Write::RemoveFinalizer { .. }) => panic!("{write:?}"),
        }
    }

    fn condition(&self, type_: &str) -> &Condition {
        let status = self.seen.service.as_ref().unwrap().status.as_ref().unwrap();
        find(&status.conditions, type_).unwrap()
    }

    /// Settles, and returns status, reason and message of a condition.
    fn told(mut self, type_: &str) -> (ConditionStatus, String, String) {
        self.settle();
        let found = self.condition(type_);
        (found.status, found.reason.clone(), found.message.clone())
    }
}

#[test]
fn a_missing_default_service_is_made_and_judged_and_then_left_alone() {
    let mut world = World::without("run-os");
    assert_eq!(world.settle(), ["apply run-os", "status"]);
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    assert_eq!(world.condition("PlaybookIncluded").reason, "Included");
    let status = world.seen.service.as_ref().unwrap().status.as_ref().unwrap();
    assert_eq!(status.conditions[0].type_, "Ready", "it stands first");
    assert_eq!(world.notices.len(), 1, "only that it is ready: {:?}", world.notices);
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn a_default_service_that_needs_what_is_not_there_says_so_once_something_lists_it() {
    let mut world = World::without("telemetry");
    world.seen.is_listed = false;
    world.settle();
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    let sources = world.condition("DataSourcesUsed");
    assert_eq!((sources.status, sources.reason.as_str()), (ConditionStatus::Unknown, "NotUsed"));
    for part in
        ["No role, node or node set lists", "telemetry", "Secret ceilometer-compute-config-data"]
    {
        assert!(sources.message.contains(part), "{}", sources.message);
    }
    world.notices.clear();
    world.seen.is_listed = true;
    assert_eq!(world.settle(), ["status"]);
    let included = world.condition("PlaybookIncluded");
    assert_eq!(
        (included.status, included.reason.as_str()),
        (ConditionStatus::False, "NotIncluded")
    );
    assert!(
        included.message.contains("Playbook osp.edpm.telemetry is not in"),
        "{}",
        included.message
    );
    let ready = world.condition("Ready");
    assert_eq!(
        (ready.status, ready.reason.as_str()),
        (ConditionStatus::False, "DataSourceNotFound")
    );
    for part in ["What lists", "Secret ceilometer-compute-config-data", "Nothing else needs them"] {
        assert!(ready.message.contains(part), "{}", ready.message);
    }
    assert_eq!(world.notices, [], "what lists it reports it");
    world.seen.sources.insert(secret("ceilometer-compute-config-data"), Vec::new());
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(
        world.condition("Ready").status,
        ConditionStatus::True,
        "another runner image may have it"
    );
}

#[test]
fn an_edited_default_service_is_restored_with_one_event_and_keeps_the_humans_labels() {
    let mut world = World::without("run-os");
    world.settle();
    world.notices.clear();
    let service = world.service();
    service.metadata.generation = Some(2);
    service.spec.playbook = Some("a.b.c".into());
    service.spec.label = Some("mine".into());
    service.labels_mut().insert("mine".into(), "x".into());
    assert_eq!(world.settle(), ["apply run-os", "status", "status"]);
    let reasons: Vec<&str> = world.notices.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(reasons, ["DefaultServiceRestored"]);
    let service = world.service();
    assert_eq!(service.spec, DefaultServices::default().find("run-os").unwrap().spec);
    assert_eq!(service.labels()["mine"], "x");
    let status = service.status.as_ref().unwrap();
    assert_eq!(status.observed_generation, Some(3));
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
}

#[test]
fn a_service_that_is_being_deleted_is_left_alone() {
    let mut world = World::without("run-os");
    world.settle();
    let service = world.service();
    service.spec.playbook = Some("a.b.c".into());
    service.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn data_sources_are_found_optional_or_missed_by_name() {
    let sources = json!([
        { "secretRef": { "name": "a" } },
        { "configMapRef": { "name": "b", "optional": true } },
    ]);
    let spec = json!({ "playbook": "a.b.c", "dataSources": sources, "configMaps": ["c"] });
    let (status, reason, message) =
        World::of(&spec).with(&[(secret("a"), &[])]).told("DataSourcesUsed");
    assert_eq!((status, reason.as_str()), (ConditionStatus::False, "DataSourceNotFound"));
    assert!(message.contains("exist: ConfigMap c."), "{message}");
    let there: [(SourceRef, &[&str]); 2] = [(secret("a"), &["x"]), (config_map("c"), &["y"])];
    let (status, _, message) = World::of(&spec).with(&there).told("DataSourcesUsed");
    assert_eq!(status, ConditionStatus::True);
    assert_eq!(message, "Mounted: Secret a, ConfigMap c. Optional, and not there: ConfigMap b.");
}

#[test]
fn one_key_in_two_sources_is_told_with_whose_is_mounted() {
    let sources = json!([
        { "secretRef": { "name": "generated" } },
        { "configMapRef": { "name": "mine" } },
    ]);
    let spec = json!({ "playbook": "a.b.c", "dataSources": sources });
    let there: [(SourceRef, &[&str]); 2] =
        [(secret("generated"), &["01.conf", "x"]), (config_map("mine"), &["01.conf"])];
    let mut world = World::of(&spec).with(&there);
    world.settle();
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    let (status, reason, message) = world.told("DataSourceKeysClash");
    assert_eq!((status, reason.as_str()), (ConditionStatus::True, "KeysClash"));
    let expected =
        "Key 01.conf of ConfigMap mine is mounted, the same key of Secret generated is not.";
    assert!(message.starts_with(expected), "{message}");
    let one = [there[0].clone()];
    let (status, ..) = World::of(&spec).with(&one).told("DataSourceKeysClash");
    assert_eq!(status, ConditionStatus::False);
}

#[test]
fn whether_a_playbook_is_included_is_told_only_where_it_is_known() {
    let cases = [
        (json!({ "playbook": "osp.edpm.install_os" }), ConditionStatus::True, "Included"),
        (json!({ "role": "osp.edpm.edpm_podman" }), ConditionStatus::True, "Included"),
        (
            json!({ "playbookContents": "[]", "playbook": "osp.edpm.no" }),
            ConditionStatus::True,
            "InService",
        ),
        (json!({ "playbook": "osp.edpm.no" }), ConditionStatus::False, "NotIncluded"),
        (json!({ "playbook": "site.yaml" }), ConditionStatus::Unknown, "NotKnown"),
        (
            json!({ "playbook": "osp.edpm.no", "openStackAnsibleEERunnerImage": "mine" }),
            ConditionStatus::Unknown,
            "NotKnown",
        ),
    ];
    for (spec, status, reason) in cases {
        let found = World::of(&spec).told("PlaybookIncluded");
        assert_eq!((found.0, found.1.as_str()), (status, reason), "{spec}");
        assert_eq!(World::of(&spec).told("Ready").0, ConditionStatus::True, "{spec}");
    }
}

#[test]
fn what_the_definition_let_pass_is_told_with_field_and_legal_way() {
    let mut world = World::of(&json!({ "dataSources": [{ "prefix": "a_" }] }));
    world.settle();
    let ready = world.condition("Ready");
    assert_eq!((ready.status, ready.reason.as_str()), (ConditionStatus::False, "InvalidSpec"));
    for words in ["spec: nothing to run: set playbook", "spec.dataSources[0]: no object: name"] {
        assert!(ready.message.contains(words), "{}", ready.message);
    }
    assert_eq!(world.notices[0].reason, "InvalidSpec");
    let (status, reason, message) = world.told("SpecWarnings");
    assert_eq!((status, reason.as_str()), (ConditionStatus::True, "WithoutEffect"));
    assert!(
        message.contains("spec.dataSources[0].prefix: files are named after their keys"),
        "{message}"
    );
}

#[test]
fn images_that_are_read_from_nowhere_are_named_on_a_service_of_a_users_own() {
    let mut spec = json!({ "playbook": "a.b.c", "containerImageFields": ["WebImage"] });
    let (status, reason, message) = World::of(&spec).told("SpecWarnings");
    assert_eq!((status, reason.as_str()), (ConditionStatus::True, "WithoutEffect"));
    let words = "spec.containerImageFields: no OpenStackVersion is read";
    assert!(message.contains(words), "{message}");
    spec["containerImageFields"] = json!([]);
    let (status, _, message) = World::of(&spec).told("SpecWarnings");
    let good = "Nothing in the spec is to be corrected.";
    assert_eq!((status, message.as_str()), (ConditionStatus::False, good));
    let mut shipped = World::without("run-os");
    shipped.settle();
    assert_eq!(shipped.condition("SpecWarnings").reason, "NoWarnings");
}

#[test]
fn a_refused_restoration_is_told_on_the_service() {
    let mut world = World::without("run-os");
    world.settle();
    world.service().spec.playbook = Some("a.b.c".into());
    let step = recorded(decide(&world.seen, None, Timestamp::UNIX_EPOCH)).steps[0].clone();
    let refusal = RejectedWrite::of(&step, &reasons::FORBIDDEN, "a policy says no");
    for writes in [1, 0] {
        let telling =
            recorded(decide(&world.seen, Some(&refusal), Timestamp::UNIX_EPOCH).only_statuses());
        assert_eq!(telling.steps.len(), writes);
        telling.steps.iter().for_each(|it| world.take(it));
    }
    assert_eq!(world.condition("Ready").reason, "Forbidden");
    world.writes.clear();
    assert_eq!(world.settle(), ["apply run-os", "status", "status"]);
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
}

#[test]
fn a_client_that_keeps_changing_a_default_service_is_answered_less_often_and_reported() {
    let mut world = World::without("run-os");
    world.settle();
    let edit = |world: &mut World| world.service().spec.playbook = Some("a.b.c".into());
    for _ in 0..3 {
        edit(&mut world);
        assert!(world.settle().contains(&"apply run-os".to_owned()));
    }
    world.notices.clear();
    edit(&mut world);
    assert_eq!(world.settle(), ["status"]);
    let found = world.condition("AsShipped");
    assert_eq!((found.status, found.reason.as_str()), (ConditionStatus::False, "Contested"));
    for words in ["another client changes its spec", "the shipped spec", "edpmServiceType: run-os"]
    {
        assert!(found.message.contains(words), "{}", found.message);
    }
    let reasons: Vec<&str> = world.notices.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(reasons, ["Contested"], "nothing was restored");
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    let waits = recorded(decide(&world.seen, None, Timestamp::UNIX_EPOCH)).requeue_after.unwrap();
    let (least, most) = (Duration::from_mins(10), Duration::from_secs(601));
    assert!((least..most).contains(&waits), "{waits:?}");
    let later = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(10);
    let plan = recorded(decide(&world.seen, None, later));
    plan.steps.iter().for_each(|it| world.take(it));
    assert_eq!(world.writes, ["apply run-os", "status"]);
    let status = world.seen.service.as_ref().unwrap().status.as_ref().unwrap();
    assert_eq!(find(&status.conditions, "AsShipped"), None);
}

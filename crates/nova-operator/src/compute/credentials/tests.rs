//! Tests of what computes hold, and when it is released.

use std::sync::Arc;

use api::nova::{Cell, Credential, CredentialKind, ExternalCompute};
use api::rabbitmq::{RabbitMqUser, RabbitMqUserSpec, RabbitMqUserStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt;
use nova_config::transport_url::TransportUrl;
use operator_core::object_key::Key;
use operator_core::plan::Write;
use testkit::golden::recorded;

use super::decide::{Stage, used};
use super::lookup::{candidates, users_of};
use super::observed::HeldObject;
use super::{Observed, decide};
use crate::shared_caches::credential_keys::{credential_of, key};

fn user(name: &str) -> Credential {
    Credential { kind: CredentialKind::RabbitMqUser, name: name.to_owned() }
}

fn names(used: &[Credential]) -> Vec<&str> {
    used.iter().map(|it| it.name.as_str()).collect()
}

fn object(kind: CredentialKind, finalizers: &[&str]) -> HeldObject {
    let metadata = ObjectMeta {
        name: Some("a".into()),
        namespace: Some("ns".into()),
        uid: Some("u".into()),
        resource_version: Some("7".into()),
        finalizers: Some(finalizers.iter().map(|it| (*it).to_owned()).collect()),
        ..ObjectMeta::default()
    };
    HeldObject { credential: Credential { kind, name: "a".into() }, metadata }
}

fn cell(annotation: Option<&str>) -> Cell {
    let mut cell = Cell::default();
    (cell.metadata.name, cell.metadata.namespace) = (Some("cell1".into()), Some("ns".into()));
    let annotation =
        annotation.map(|it| ("nova.openstack.org/release-credentials".into(), it.to_owned()));
    cell.metadata.annotations = Some(annotation.into_iter().collect());
    cell
}

#[test]
fn a_host_keeps_what_it_had_until_a_deployment_with_something_newer_is_done() {
    let (a, b, c) = (user("a"), user("b"), user("c"));
    let begun = used(std::slice::from_ref(&a), std::slice::from_ref(&b), Stage::Begins, None);
    assert_eq!(names(&begun), ["a", "b"]);
    assert_eq!(used(&begun, std::slice::from_ref(&c), Stage::Between, None), begun, "nothing ran");
    let again = used(&begun, std::slice::from_ref(&c), Stage::Begins, None);
    assert_eq!(names(&again), ["a", "b", "c"], "a second rotation before the first was through");
    assert_eq!(used(&again, std::slice::from_ref(&c), Stage::Begins, None), again);
    assert_eq!(names(&used(&again, &[c], Stage::Done, None)), ["c"]);
    assert_eq!(names(&used(&[], &[a], Stage::Done, None)), ["a"], "deployed by a release before");
}

#[test]
fn what_the_user_releases_is_used_by_no_compute_of_the_cell() {
    let all = [user("a"), user("b"), user("c")];
    let cell = cell(Some("a, c"));
    for stage in [Stage::Begins, Stage::Between, Stage::Done] {
        assert_eq!(names(&used(&all, &all, stage, Some(&cell))), ["b"], "{stage:?}");
    }
}

#[test]
fn a_host_on_which_nothing_succeeds_records_the_newest_and_no_more_than_the_definition_allows() {
    let mut recorded = Vec::new();
    for idx in 0..40 {
        recorded = used(&recorded, &[user(&format!("u{idx}"))], Stage::Begins, None);
    }
    assert_eq!(recorded.len(), 16);
    assert_eq!(recorded[15].name, "u39");
}

#[test]
fn an_object_is_released_when_no_compute_uses_it_and_not_before() {
    for (kind, finalizer) in [
        (CredentialKind::RabbitMqUser, "nova.openstack.org/computes"),
        (CredentialKind::TransportSecret, "openstack.org/edpm-transport-consumer"),
        (CredentialKind::ApplicationCredential, "openstack.org/edpm-ac-consumer"),
    ] {
        let object = object(kind, &["x/y", finalizer]);
        let compute = Arc::new(ExternalCompute::default());
        let mut seen = Observed { object, computes: vec![compute], cells: vec![] };
        assert_eq!(recorded(decide(&seen, Timestamp::UNIX_EPOCH)).steps, []);
        seen.computes.clear();
        let plan = recorded(decide(&seen, Timestamp::UNIX_EPOCH));
        let [step] = plan.steps.as_slice() else { panic!("{plan:?}") };
        let expected =
            Write::RemoveFinalizer { rest: vec!["x/y".into()], resource_version: Some("7".into()) };
        assert_eq!((step.target.uid.as_deref(), &step.write), (Some("u"), &expected));
        assert_eq!(step.target.kind.kind == "RabbitMQUser", kind == CredentialKind::RabbitMqUser);
    }
}

#[test]
fn a_user_that_is_held_for_a_day_names_its_hosts_on_their_cell() {
    let deleted: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut object = object(CredentialKind::RabbitMqUser, &["nova.openstack.org/computes"]);
    object.metadata.deletion_timestamp = Some(Time(deleted));
    let mut compute = ExternalCompute::default();
    compute.metadata.name = Some("n0".into());
    let seen =
        Observed { object, computes: vec![Arc::new(compute)], cells: vec![Arc::new(cell(None))] };
    let after = |hours| decide(&seen, deleted + SignedDuration::from_hours(hours));
    assert_eq!(after(23).events, []);
    assert!(after(23).requeue_after.is_some());
    let plan = recorded(after(24));
    let [(target, event)] = plan.events.as_slice() else { panic!("{plan:?}") };
    assert_eq!((target.name.as_str(), event.reason.as_str()), ("cell1", "CredentialsHeld"));
    let command = "kubectl annotate --overwrite -n ns novacell/cell1 \
                   nova.openstack.org/release-credentials=NAME";
    for words in ["RabbitMQUser a is", "newer one: n0.", command] {
        assert!(event.note.contains(words), "{}", event.note);
    }
}

fn object_of_user(name: &str, username: &str, vhost: &str) -> Arc<RabbitMqUser> {
    Arc::new(RabbitMqUser {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        spec: RabbitMqUserSpec { username: username.into() },
        status: Some(RabbitMqUserStatus { username: String::new(), vhost: vhost.into() }),
    })
}

#[test]
fn the_users_of_a_url_are_those_that_it_names_and_a_name_in_the_cells_secret_only_chooses_of_them()
{
    let users = [
        object_of_user("nova-1", "nova", "v"),
        object_of_user("nova-2", "nova", "v"),
        object_of_user("nova-3", "nova", "other"),
        object_of_user("newer", "", "v"),
    ];
    let of = |url: &str, named| {
        let found = users_of(&users, &TransportUrl::parse(url).unwrap(), named);
        found.into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    let url = "rabbit://nova:p@192.0.2.2/v";
    assert_eq!(of(url, None), ["nova-1", "nova-2"]);
    assert_eq!(of(url, Some("nova-2")), ["nova-2"]);
    assert_eq!(of(url, Some("newer")), ["nova-1", "nova-2"], "the URL has not changed yet");
    assert_eq!(of("rabbit://newer:p@192.0.2.2/v", Some("nova-1")), ["newer"]);
    assert_eq!(of("rabbit://admin:p@192.0.2.2/v", Some("nova-1")), [""; 0]);
}

#[test]
fn of_many_secrets_with_credentials_the_one_that_is_named_by_the_id_is_read_first() {
    let mut all: Vec<String> = (0..500).map(|it| format!("a{it}")).collect();
    all.push("ac-nova-01234-secret".into());
    let read = candidates(all, "0123456789abcdef");
    assert_eq!((read.len(), read[0].as_str()), (64, "ac-nova-01234-secret"));
}

#[test]
fn a_key_has_kind_and_name_of_an_object() {
    for kind in CredentialKind::ALL {
        let credential = Credential { kind, name: "a.b".into() };
        assert_eq!(credential_of(&key("ns", &credential)), Some(credential));
    }
    assert_eq!(credential_of(&Key::new("ns", "Other/a")), None);
    assert_eq!(ExternalCompute::default().name_any(), "");
}

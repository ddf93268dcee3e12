//! What is recorded of a host's identity after each reading.

use super::*;

const RECORDED: (&str, &str) = ("s1", "c1");

fn nova(region: &str) -> RegisteredNova {
    RegisteredNova { keystone_auth_url: "http://k".to_owned(), region: region.to_owned() }
}

fn identity(region: &str, service: &str, compute: &str) -> Identity {
    let id = |it: &str| (!it.is_empty()).then(|| it.to_owned());
    let nova = (!region.is_empty()).then(|| nova(region));
    Identity { nova, service_id: id(service), compute_id: id(compute) }
}

fn recorded() -> Identity {
    identity("one", RECORDED.0, RECORDED.1)
}

/// A reading of a nova with these UUIDs, which misses the host where there are none.
fn read(region: &str, service: &str, compute: &str) -> HostHealth {
    let Identity { nova, service_id, compute_id } = identity(region, service, compute);
    let service = match &service_id {
        Some(_) => ServiceHealth::Up { disabled: None },
        None => ServiceHealth::NotFound,
    };
    HostHealth { service, service_id, compute_id, nova, ..HostHealth::default() }
}

#[test]
fn another_uuid_or_another_nova_without_the_host_never_replaces_what_is_recorded() {
    for (region, service, compute) in [
        ("two", "s2", "c2"),
        ("two", "s1", "c2"),
        ("two", "s2", "c1"),
        ("two", "s2", ""),
        ("two", "", ""),
        ("one", "s2", "c1"),
        ("one", "s1", "c2"),
    ] {
        let read = read(region, service, compute);
        assert_eq!(recorded().compare(&read), Agreement::Other, "{read:?}");
        assert_eq!(recorded().after(&read, Consent::None), recorded(), "{read:?}");
    }
}

#[test]
fn the_same_uuids_in_another_place_are_the_same_nova() {
    for compute in ["c1", ""] {
        let read = read("two", "s1", compute);
        assert_eq!(recorded().compare(&read), Agreement::Moved);
        assert_eq!(recorded().after(&read, Consent::None), identity("two", "s1", "c1"));
    }
}

#[test]
fn a_nova_that_has_not_said_what_it_has_is_neither() {
    for service in
        [ServiceHealth::Pending, ServiceHealth::ApiFails, ServiceHealth::CellNotAnswering]
    {
        let elsewhere = HostHealth { service: service.clone(), ..read("two", "", "") };
        assert_eq!(recorded().compare(&elsewhere), Agreement::Unread);
        assert_eq!(recorded().after(&elsewhere, Consent::User), recorded());
        let here = HostHealth { service, ..read("one", "", "") };
        assert_eq!(recorded().compare(&here), Agreement::Same);
    }
}

#[test]
fn what_is_not_recorded_yet_is_completed_from_readings_that_agree() {
    let none = Identity::default();
    assert_eq!(none.after(&read("one", "", ""), Consent::None), none);
    let unmapped = none.after(&read("one", "s1", ""), Consent::None);
    assert_eq!(unmapped, identity("one", "s1", ""));
    assert_eq!(unmapped.after(&read("one", "s1", "c1"), Consent::None), recorded());
    // A release before has recorded no nova.
    let before = identity("", "s1", "c1");
    assert_eq!(before.after(&read("two", "", ""), Consent::None), before);
    assert_eq!(before.after(&read("two", "s2", "c2"), Consent::Registration), before);
    assert_eq!(before.after(&read("one", "s1", "c1"), Consent::None), recorded());
    // One that has registered in a nova without ever being listed there.
    let unlisted = identity("one", "", "");
    assert_eq!(unlisted.compare(&read("two", "s2", "c2")), Agreement::Other);
}

#[test]
fn a_registration_gives_other_uuids_in_the_same_nova_alone_and_the_user_in_any() {
    let registered = |read: &HostHealth| recorded().after(read, Consent::Registration);
    assert_eq!(registered(&read("one", "s3", "c1")), identity("one", "s3", "c1"));
    assert_eq!(registered(&read("one", "s3", "")), identity("one", "s3", "c1"), "not mapped yet");
    assert_eq!(registered(&read("two", "s2", "c2")), recorded());
    let accepted = |read: &HostHealth| recorded().after(read, Consent::User);
    for (region, service, compute) in
        [("one", "s3", "c1"), ("two", "s2", "c2"), ("two", "s2", ""), ("two", "", "")]
    {
        let expected = identity(region, service, compute);
        assert_eq!(accepted(&read(region, service, compute)), expected);
    }
    assert_eq!(accepted(&read("one", "", "")), recorded(), "its service may come back");
}

#[test]
fn the_annotation_counts_for_the_nova_that_was_read_in_any_spelling_of_its_url() {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut cell = Cell::default();
    let mut said = |text: &str| {
        cell.annotations_mut().insert(ACCEPT_NOVA.to_owned(), text.to_owned());
        let of = IdentitySources {
            compute: &ExternalCompute::default(),
            node: None,
            cell: Some(&cell),
            runs: &[],
            health: None,
            read_since_deployment: None,
        };
        consent(of, &[], &read("two", "s2", "c2"), now)
    };
    for text in ["http://k two", "http://k/v3/ two", " http://k/  two "] {
        assert_eq!(said(text), Consent::User, "{text}");
    }
    for text in ["", "true", "two", "http://k", "http://k one", "https://k two", "http://k two x"] {
        assert_eq!(said(text), Consent::None, "{text}");
    }
}

#[test]
fn the_command_has_the_annotation_as_one_word() {
    assert_eq!(annotation(&nova("two")), "'nova.openstack.org/accept-nova=http://k two'");
    assert!(annotation(&nova("a'b")).ends_with(r"http://k a'\''b'"));
}

//! Tests of the client of placement.

use std::sync::Arc;

use testkit::http_server::Asked;

use super::{Answer, after_negotiation, http, keystone_and, login, paths, requests};
use crate::{Compute, Error, Fault, Placement, Provider, Service};

const VERSIONS: &str =
    r#"{"versions": [{"id": "v1.0", "max_version": "1.39", "min_version": "1.0"}]}"#;

fn answer(status: u16, body: &str) -> Answer {
    (status, "OpenStack-API-Version: placement 1.36\r\n".to_owned(), body.to_owned())
}

async fn cloud(answers: impl Fn(&str) -> Answer + Send + 'static) -> (Placement, Asked) {
    let (address, asked) = keystone_and(move |text| {
        if text.starts_with("get /placement/ ") { answer(200, VERSIONS) } else { answers(text) }
    })
    .await;
    (Placement::new(login(address), http(), "one"), asked)
}

fn of_placement(error: Error) -> Fault {
    Fault::of(Service::Placement, error)
}

fn conflict() -> (Answer, Fault) {
    let body = r#"{"errors": [{"status": 409, "title": "Conflict", "detail": "in\n\n use",
        "code": "placement.resource_provider.inuse"}]}"#;
    (answer(409, body), of_placement(Error::Conflict("in use".into())))
}

#[tokio::test]
async fn a_provider_is_found_by_uuid_and_by_name() {
    let (placement, asked) = cloud(|text| {
        let provider = r#"{"uuid": "b0", "name": "one", "generation": 7, "links": []}"#;
        if text.contains("?name=") {
            answer(200, &format!(r#"{{"resource_providers": [{provider}]}}"#))
        } else {
            answer(200, provider)
        }
    })
    .await;
    let one = Some(Provider { uuid: "b0".into(), name: "one".into(), generation: 7 });
    assert_eq!(placement.provider("b0").await.unwrap(), one);
    assert_eq!(placement.provider_named("one&two").await.unwrap(), one);
    let expected = [
        "get /placement/resource_providers/b0",
        "get /placement/resource_providers?name=one%26two",
    ];
    assert_eq!(after_negotiation(&asked), expected);
    let last = asked.lock().last().unwrap().clone();
    assert!(last.contains("openstack-api-version: placement 1.36\r\n"), "{last}");
    assert!(last.contains("x-auth-token: secret-token\r\n"), "{last}");
}

#[tokio::test]
async fn a_provider_that_is_gone_is_none() {
    let (placement, _) = cloud(|text| {
        if text.contains("?name=") {
            answer(200, r#"{"resource_providers": []}"#)
        } else {
            answer(404, r#"{"errors": [{"status": 404, "detail": "x"}]}"#)
        }
    })
    .await;
    assert_eq!(placement.provider("b0").await, Ok(None));
    assert_eq!(placement.provider_named("one").await, Ok(None));
    assert_eq!(placement.delete_provider("b0").await, Ok(()));
    assert_eq!(placement.allocations_of("b0").await, Err(of_placement(Error::NotFound)));
}

#[tokio::test]
async fn a_provider_is_deleted_unless_it_is_in_use() {
    let (placement, asked) = cloud(|_| answer(204, "")).await;
    placement.delete_provider("b0").await.unwrap();
    assert_eq!(after_negotiation(&asked), ["delete /placement/resource_providers/b0"]);
    let (placement, _) = cloud(|_| conflict().0).await;
    assert_eq!(placement.delete_provider("b0").await, Err(conflict().1));
}

#[tokio::test]
async fn the_consumers_of_a_provider_are_read() {
    let (placement, asked) = cloud(|_| {
        let share = r#"{"resources": {"VCPU": 1}, "consumer_generation": 1}"#;
        let body = format!(
            r#"{{"allocations": {{"c0": {share}, "c1": {share}}},
                "resource_provider_generation": 7}}"#
        );
        answer(200, &body)
    })
    .await;
    assert_eq!(placement.allocations_of("b0").await.unwrap(), ["c0", "c1"]);
    let expected = ["get /placement/resource_providers/b0/allocations"];
    assert_eq!(after_negotiation(&asked), expected);
}

/// A placement in which the consumer c0 has these shares.
async fn with_shares(shares: &str) -> (Placement, Asked) {
    let shares = shares.to_owned();
    cloud(move |text| {
        if text.starts_with("put ") {
            return answer(204, "");
        }
        let body = format!(
            r#"{{"allocations": {{{shares}}}, "project_id": "p0", "user_id": "u0",
                "consumer_generation": 4}}"#
        );
        answer(200, &body)
    })
    .await
}

#[tokio::test]
async fn a_share_elsewhere_stays_as_it_is() {
    let (placement, asked) = with_shares(
        r#""b0": {"generation": 7, "resources": {"VCPU": 1}},
           "b1": {"generation": 2, "resources": {"MEMORY_MB": 512, "VCPU": 2}}"#,
    )
    .await;
    placement.drop_share("c0", "b0").await.unwrap();
    let body = concat!(
        r#"{"allocations":{"b1":{"resources":{"memory_mb":512,"vcpu":2}}},"#,
        r#""consumer_generation":4,"project_id":"p0","user_id":"u0"}"#,
    );
    let put = format!("put /placement/allocations/c0 {body}");
    assert_eq!(after_negotiation(&asked), ["get /placement/allocations/c0".to_owned(), put]);
}

#[tokio::test]
async fn a_consumer_without_other_shares_is_left_with_none() {
    let (placement, asked) = with_shares(r#""b0": {"resources": {"VCPU": 1}}"#).await;
    placement.drop_share("c0", "b0").await.unwrap();
    let body = r#"{"allocations":{},"consumer_generation":4,"project_id":"p0","user_id":"u0"}"#;
    assert_eq!(after_negotiation(&asked)[1], format!("put /placement/allocations/c0 {body}"));
}

#[tokio::test]
async fn nothing_is_written_for_a_consumer_without_the_share() {
    let (placement, asked) = with_shares(r#""b1": {"resources": {"VCPU": 1}}"#).await;
    placement.drop_share("c0", "b0").await.unwrap();
    assert_eq!(after_negotiation(&asked), ["get /placement/allocations/c0"]);
    let (placement, asked) = cloud(|_| answer(200, r#"{"allocations": {}}"#)).await;
    placement.drop_share("c0", "b0").await.unwrap();
    assert_eq!(after_negotiation(&asked), ["get /placement/allocations/c0"]);
}

#[tokio::test]
async fn allocations_beyond_what_a_server_can_have_are_not_placements() {
    let listed =
        |n: usize, entry: &dyn Fn(usize) -> String| (0..n).map(entry).collect::<Vec<_>>().join(",");
    let provider =
        |name: &str, classes: &str| format!(r#""{name}": {{"resources": {{{classes}}}}}"#);
    let classes = |n, name: &str| listed(n, &|it| format!(r#""{name}{it}": 1"#));
    let own = provider("b0", &classes(64, "C"));
    let others = |n| listed(n, &|it| provider(&format!("c{it}"), r#""VCPU": 1"#));
    let long = "n".repeat(256);
    for (shares, expected) in [
        (format!("{own},{}", others(127)), Ok(())),
        (format!("{own},{}", others(128)), Err(Error::NotTheService)),
        (provider("b0", &classes(65, "C")), Err(Error::NotTheService)),
        (format!("{own},{}", provider("c0", &classes(1, &long))), Err(Error::NotTheService)),
        (format!("{own},{}", provider(&long, "")), Err(Error::NotTheService)),
    ] {
        let (placement, asked) = with_shares(&shares).await;
        let is_written = expected.is_ok();
        assert_eq!(placement.drop_share("c0", "b0").await, expected.map_err(of_placement));
        assert_eq!(asked.lock().iter().any(|it| it.starts_with("put ")), is_written);
    }
    let name = "n".repeat(250);
    let large = listed(20, &|it| provider(&format!("c{it}"), &classes(60, &name)));
    let (placement, asked) = with_shares(&format!("{own},{large}")).await;
    let refused = Error::Refused("a request of more than 256 KiB is not sent".to_owned());
    assert_eq!(placement.drop_share("c0", "b0").await, Err(of_placement(refused)));
    assert!(asked.lock().iter().all(|it| !it.starts_with("put ")));
}

#[tokio::test]
async fn a_share_that_changes_at_the_same_time_conflicts() {
    let (placement, asked) = cloud(|text| {
        if text.starts_with("put ") {
            return conflict().0;
        }
        answer(
            200,
            r#"{"allocations": {"b0": {"resources": {"VCPU": 1}}}, "project_id": "p0",
                "user_id": "u0", "consumer_generation": 4}"#,
        )
    })
    .await;
    assert_eq!(placement.drop_share("c0", "b0").await, Err(conflict().1));
    assert_eq!(after_negotiation(&asked).len(), 2);
}

#[tokio::test]
async fn allocations_without_an_owner_are_not_written() {
    for owner in [
        r#""project_id": "p0", "user_id": "u0", "consumer_generation": null"#,
        r#""project_id": "p0", "consumer_generation": 4"#,
    ] {
        let (placement, asked) = cloud(move |_| {
            let share = r#"{"b0": {"resources": {"VCPU": 1}}}"#;
            answer(200, &format!(r#"{{"allocations": {share}, {owner}}}"#))
        })
        .await;
        let found = placement.drop_share("c0", "b0").await;
        assert_eq!(found, Err(of_placement(Error::NotTheService)));
        assert_eq!(after_negotiation(&asked).len(), 1);
    }
}

#[tokio::test]
async fn garbage_is_not_placements() {
    let not_it = || of_placement(Error::NotTheService);
    for body in ["<html>", "{}", r#"{"uuid": "../x", "name": "one", "generation": 1}"#] {
        let (placement, _) = cloud(move |_| answer(200, body)).await;
        assert_eq!(placement.provider("b0").await, Err(not_it()), "{body}");
        assert_eq!(placement.provider_named("one").await, Err(not_it()), "{body}");
        assert_eq!(placement.allocations_of("b0").await, Err(not_it()), "{body}");
        assert_eq!(placement.drop_share("c0", "b0").await, Err(not_it()), "{body}");
    }
    let two = r#"{"resource_providers": [{"uuid": "b0", "name": "one", "generation": 1},
        {"uuid": "b1", "name": "two", "generation": 1}]}"#;
    let (placement, _) = cloud(move |_| answer(200, two)).await;
    assert_eq!(placement.provider_named("one").await, Err(not_it()));
    let other = r#"{"allocations": {"../x": {"resources": {}}}}"#;
    let (placement, _) = cloud(move |_| answer(200, other)).await;
    assert_eq!(placement.allocations_of("b0").await, Err(not_it()));
}

#[tokio::test]
async fn no_request_is_sent_for_what_is_no_id() {
    let (placement, asked) = cloud(|_| answer(204, "")).await;
    let refused = || of_placement(Error::Refused("../x is not an id".into()));
    assert_eq!(placement.provider("../x").await, Err(refused()));
    assert_eq!(placement.allocations_of("../x").await, Err(refused()));
    assert_eq!(placement.drop_share("../x", "b0").await, Err(refused()));
    assert_eq!(placement.delete_provider("../x").await, Err(refused()));
    assert_eq!(requests(&asked), Vec::<String>::new());
}

#[tokio::test]
async fn a_placement_of_another_microversion_is_not_used() {
    let (address, asked) = keystone_and(|_| {
        answer(200, r#"{"versions": [{"max_version": "1.30", "min_version": "1.0"}]}"#)
    })
    .await;
    let placement = Placement::new(login(address), http(), "one");
    let error = Error::Version { needed: "1.36", supported: "1.0 to 1.30".into() };
    assert_eq!(placement.delete_provider("b0").await, Err(of_placement(error)));
    assert_eq!(requests(&asked).len(), 2);
}

#[tokio::test]
async fn clients_of_two_services_share_a_login() {
    let (address, asked) = keystone_and(|text| {
        if text.starts_with("get /placement/ ") {
            answer(200, VERSIONS)
        } else if text.starts_with("get /v2.1/ ") {
            super::nova(super::VERSIONS)
        } else if text.contains("/v2.1/") {
            super::nova(r#"{"services": []}"#)
        } else {
            answer(200, r#"{"resource_providers": []}"#)
        }
    })
    .await;
    let (login, http) = (Arc::new(login(address)), http());
    let compute = Compute::new(Arc::clone(&login), http.clone(), "one");
    let placement = Placement::new(login, http, "one");
    compute.services().await.unwrap();
    placement.provider_named("one").await.unwrap();
    assert_eq!(paths(&asked).iter().filter(|it| it.contains("tokens")).count(), 1);
}

#[tokio::test]
async fn a_server_that_knows_no_path_is_no_placement_without_the_provider() {
    let (address, _) = keystone_and(|_| answer(404, "{}")).await;
    let placement = Placement::new(login(address), http(), "one");
    assert_eq!(placement.provider("b0").await, Err(of_placement(Error::NotTheService)));
    assert_eq!(placement.delete_provider("b0").await, Err(of_placement(Error::NotTheService)));
}

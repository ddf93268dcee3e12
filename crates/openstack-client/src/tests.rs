//! Tests of the client against a local server: what is sent, how often, and what responses mean.

mod bounds;
mod drain;
mod network;
mod placement;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use operator_runtime::http_client::{HttpClient, HttpClients};
use operator_runtime::tls_stream::CaTrust;
use testkit::http_server::{Asked, ok, server, token};

use crate::compute::Liveness;
use crate::keystone::{UserInProject, tokens_url};
use crate::{
    Compute, ComputeService, Error, Fault, Hypervisor, Login, Placement, Service, ServiceState,
};

const VERSIONS: &str = r#"{"version": {"id": "v2.1", "version": "2.100", "min_version": "2.1"}}"#;
const MICROVERSION: &str = "OpenStack-API-Version: compute 2.69\r\n";

/// The services of the catalog, by type and path.
const LISTED: &[(&str, &str)] =
    &[("compute", "/v2.1/0123"), ("placement", "/placement"), ("network", "/network/")];

type Answer = (u16, String, String);

fn nova(body: &str) -> Answer {
    (200, MICROVERSION.to_owned(), body.to_owned())
}

/// A Keystone, whose catalog names the server itself as nova's API, and that nova.
async fn cloud(nova: impl Fn(&str) -> Answer + Send + 'static) -> (Compute, Asked) {
    let (address, asked) = keystone_and(move |text| {
        if text.starts_with("get /v2.1/ ") { self::nova(VERSIONS) } else { nova(text) }
    })
    .await;
    (compute(address, "one"), asked)
}

/// A Keystone, whose catalog names the server itself as each service, and these.
async fn keystone_and(services: impl Fn(&str) -> Answer + Send + 'static) -> (SocketAddr, Asked) {
    server(move |text| {
        let is_login = text.starts_with("post /v3/auth/tokens ");
        if is_login { token(text, "one", LISTED) } else { services(text) }
    })
    .await
}

fn compute(address: SocketAddr, region: &str) -> Compute {
    Compute::new(login(address), http(), region)
}

fn http() -> HttpClient {
    HttpClients::with_loopback().of("ns", CaTrust::new(None).unwrap())
}

fn login(address: SocketAddr) -> Login {
    let user = UserInProject {
        user: "nova",
        user_domain: "Default",
        project: "service",
        project_domain: "Default",
    };
    let url = tokens_url(&format!("http://{address}")).unwrap();
    Login::new(url, user.identity("password"))
}

/// Method and path of each request, and the body if there is one.
fn requests(asked: &Asked) -> Vec<String> {
    let asked = asked.lock();
    let of = |text: &String| {
        let (line, _) = text.split_once(" http/1.1").unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        format!("{line} {body}").trim_end().to_owned()
    };
    asked.iter().map(of).collect()
}

/// The requests after login and negotiation.
fn after_negotiation(asked: &Asked) -> Vec<String> {
    requests(asked).split_off(2)
}

fn paths(asked: &Asked) -> Vec<String> {
    let asked = asked.lock();
    asked.iter().map(|it| it.split(' ').nth(1).unwrap().to_owned()).collect()
}

#[tokio::test]
async fn services_are_read_in_one_request_after_one_login_and_one_negotiation() {
    let services = r#"{"services": [
        {"id": "a0", "host": "one", "binary": "nova-compute", "status": "enabled", "state": "up",
         "forced_down": false, "disabled_reason": null, "zone": "nova",
         "updated_at": "2026-11-26T02:00:00.000000"},
        {"id": "a1", "host": "two", "status": "disabled", "state": "down", "forced_down": true,
         "disabled_reason": "broken", "updated_at": null},
        {"host": "three", "binary": "nova-compute", "status": "UNKNOWN"}]}"#;
    let (compute, asked) = cloud(move |_| nova(services)).await;
    for _ in 0..2 {
        let found = compute.services().await.unwrap();
        let hosts: Vec<&str> = found.iter().map(|it| it.host.as_str()).collect();
        assert_eq!(hosts, ["one", "two", "three"]);
        let ServiceState::Known(one) = &found[0].state else { panic!("{found:?}") };
        assert!(one.liveness == Liveness::Up && !one.is_disabled && !one.is_forced_down);
        assert_eq!(one.updated_at.unwrap().to_string(), "2026-11-26T02:00:00");
        let ServiceState::Known(two) = &found[1].state else { panic!("{found:?}") };
        assert!(two.liveness == Liveness::Down && two.is_disabled && two.is_forced_down);
        assert_eq!(two.disabled_reason.as_deref(), Some("broken"));
        assert_eq!(found[2].state, ServiceState::Unknown);
        // One that is forced down is so however late the answer is.
        let mut late = found.into_parts().0;
        late.iter_mut().for_each(ComputeService::late);
        let ServiceState::Known(two) = &late[1].state else { panic!("{late:?}") };
        assert_eq!(two.liveness, Liveness::Down);
    }
    let negotiation = asked.lock()[1].clone();
    assert!(!negotiation.contains("openstack-api-version"), "{negotiation}");
    let services = "/v2.1/os-services?binary=nova-compute";
    assert_eq!(paths(&asked), ["/v3/auth/tokens", "/v2.1/", services, services]);
    let last = asked.lock().last().unwrap().clone();
    assert!(last.contains("x-auth-token: secret-token\r\n"), "{last}");
    assert!(last.contains("openstack-api-version: compute 2.69\r\n"), "{last}");
}

#[tokio::test]
async fn hypervisors_are_read_until_a_page_is_empty() {
    let (compute, asked) = cloud(|text| {
        nova(if text.contains("marker=b1") {
            r#"{"hypervisors": []}"#
        } else if text.contains("marker=b0") {
            r#"{"hypervisors": [{"id": "b1", "service": {"host": "two", "id": "a1"}}]}"#
        } else {
            r#"{"hypervisors": [{"id": "b0", "service": {"host": "one", "id": "a0"}}],
                "hypervisors_links": []}"#
        })
    })
    .await;
    let found = compute.hypervisors().await.unwrap();
    let pairs: Vec<(&str, &str)> =
        found.iter().map(|it: &Hypervisor| (it.id.as_str(), it.service.host.as_str())).collect();
    assert_eq!(pairs, [("b0", "one"), ("b1", "two")]);
    assert_eq!(paths(&asked).len(), 2 + 3);
}

#[tokio::test]
async fn a_hypervisor_is_found_by_its_uuid_or_is_none() {
    let (compute, asked) = cloud(|text| {
        if text.contains("/b0 ") {
            nova(r#"{"hypervisor": {"id": "b0", "service": {"host": "one", "id": "a0"}}}"#)
        } else {
            (404, String::new(), String::new())
        }
    })
    .await;
    let found = compute.hypervisor("b0").await.unwrap().map(|it| it.service.host);
    assert_eq!(found.as_deref(), Some("one"));
    assert_eq!(compute.hypervisor("b1").await.unwrap(), None);
    assert_eq!(paths(&asked)[2..], ["/v2.1/os-hypervisors/b0", "/v2.1/os-hypervisors/b1"]);
    compute.hypervisor("../b0").await.unwrap_err();
}

#[tokio::test]
async fn a_rejected_token_is_renewed_once() {
    let (compute, asked) = cloud(|_| (401, String::new(), String::new())).await;
    let fault = compute.services().await.unwrap_err();
    assert_eq!(fault, Fault::of(Service::Compute, Error::Unauthorized));
    let logins = paths(&asked).iter().filter(|it| it.contains("tokens")).count();
    assert_eq!(logins, 2);
}

#[tokio::test]
async fn each_refusal_has_its_own_error() {
    let said = |status: u16| {
        (status, String::new(), format!(r#"{{"error": {{"code": {status}, "message": "why"}}}}"#))
    };
    for (status, expected) in [
        (403, Error::Forbidden("why".into())),
        (404, Error::NotFound),
        (409, Error::Conflict("why".into())),
        (400, Error::Refused("why".into())),
        (429, Error::Busy("why".into())),
        (503, Error::Busy("why".into())),
        (500, Error::Failed(500, "why".into())),
    ] {
        let (compute, _) = cloud(move |_| said(status)).await;
        assert_eq!(compute.services().await.unwrap_err().error, expected, "{status}");
    }
}

#[tokio::test]
async fn garbage_and_unknown_words_are_not_novas() {
    for body in [
        "<html>",
        "{}",
        r#"{"services": [{"host": "a", "status": "enabled", "state": "sideways", "id": "a0"}]}"#,
        r#"{"services": [{"host": "a", "status": "enabled", "state": "up", "id": "../x"}]}"#,
        r#"{"services": [{"host": "a", "status": "on", "state": "up", "id": "a0"}]}"#,
    ] {
        let (compute, _) = cloud(move |_| nova(body)).await;
        assert_eq!(compute.services().await.unwrap_err().error, Error::NotTheService, "{body}");
    }
}

#[tokio::test]
async fn an_answer_of_another_microversion_or_of_none_is_not_read() {
    let header = "OpenStack-API-Version: compute 2.1\r\n";
    let body = r#"{"services": []}"#;
    let (compute, _) = cloud(move |_| (200, header.to_owned(), body.to_owned())).await;
    let error = compute.services().await.unwrap_err().error;
    assert_eq!(error, Error::Version { needed: "2.69", supported: "compute 2.1".into() });
    let (compute, _) = cloud(move |_| ok(body)).await;
    let error = compute.services().await.unwrap_err().error;
    assert_eq!(error, Error::NotTheService, "no nova omits the header");
}

#[tokio::test]
async fn a_region_without_an_endpoint_is_named() {
    let (address, _) = server(|_| token("host: nowhere", "one", LISTED)).await;
    let fault = compute(address, "two").services().await.unwrap_err();
    let expected =
        "Keystone's catalog has no internal or public endpoint of type compute in region two";
    assert_eq!(fault.to_string(), expected);
}

#[tokio::test]
async fn a_refused_login_is_keystones_and_shows_no_password() {
    let (address, _) = server(|_| {
        (
            401,
            String::new(),
            r#"{"error": {"code": 401, "title": "Unauthorized", "message": "x"}}"#.into(),
        )
    })
    .await;
    let compute = compute(address, "one");
    let fault = compute.services().await.unwrap_err();
    assert_eq!(fault.to_string(), "Keystone refuses the credentials");
    assert!(!format!("{compute:?}").contains("password"));
}

#[tokio::test]
async fn a_refused_login_is_tried_again_after_its_pause_by_whichever_service() {
    for (pause, n_logins) in [(Duration::from_hours(1), 1), (Duration::ZERO, 4)] {
        let (address, asked) = server(|_| (401, String::new(), String::new())).await;
        let login = Arc::new(login(address).pausing(pause));
        let compute = Compute::new(Arc::clone(&login), http(), "one");
        let placement = Placement::new(login, http(), "one");
        for _ in 0..2 {
            let expected = Fault::of(Service::Identity, Error::Unauthorized);
            assert_eq!(compute.services().await.unwrap_err(), expected);
            assert_eq!(placement.provider("a0").await.unwrap_err(), expected);
        }
        assert_eq!(asked.lock().len(), n_logins);
    }
}

/// A Keystone whose tokens differ, and the services of `services`.
async fn renewing(services: impl Fn(&str) -> Answer + Send + 'static) -> (SocketAddr, Asked) {
    let n_tokens = AtomicUsize::new(0);
    server(move |text| {
        if !text.starts_with("post /v3/auth/tokens ") {
            return services(text);
        }
        let (status, _, body) = token(text, "one", LISTED);
        let n = n_tokens.fetch_add(1, Relaxed);
        (status, format!("x-subject-token: token-{n}\r\n"), body)
    })
    .await
}

#[tokio::test]
async fn a_late_refusal_of_an_old_token_leaves_the_renewed_one() {
    let (address, asked) = renewing(|_| nova("")).await;
    let (login, http) = (login(address), http());
    let old = login.token(&http).await.unwrap();
    login.forget(&old);
    let renewed = login.token(&http).await.unwrap();
    assert_ne!(old.text(), renewed.text());
    login.forget(&old);
    assert_eq!(login.token(&http).await.unwrap().text(), renewed.text());
    assert_eq!(asked.lock().len(), 2);
}

#[tokio::test]
async fn two_refusals_of_one_token_cost_one_login() {
    let (address, asked) = renewing(|text| {
        if text.starts_with("get /v2.1/ ") {
            return nova(VERSIONS);
        }
        let is_old = text.contains("x-auth-token: token-0\r\n");
        if is_old { (401, String::new(), String::new()) } else { nova("{\"services\": []}") }
    })
    .await;
    let compute = compute(address, "one");
    let (first, second) = tokio::join!(compute.services(), compute.services());
    assert!(first.is_ok() && second.is_ok());
    let logins = paths(&asked).iter().filter(|it| *it == "/v3/auth/tokens").count();
    assert_eq!(logins, 2, "the first one, and one that renews the token");
}

#[tokio::test]
async fn all_who_wait_for_a_login_get_what_came_of_it_and_the_next_one_asks_again() {
    let (address, asked) = server(|_| (503, String::new(), String::new())).await;
    let (login, http) = (login(address), http());
    let token = || login.token(&http);
    let (first, second, third) = tokio::join!(token(), token(), token());
    for answer in [first, second, third] {
        assert!(matches!(answer, Err(Error::Busy(_))), "{answer:?}");
    }
    assert_eq!(asked.lock().len(), 1);
    assert!(login.token(&http).await.is_err());
    assert_eq!(asked.lock().len(), 2);
}

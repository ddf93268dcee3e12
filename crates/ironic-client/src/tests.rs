//! Tests of sessions against a local server: what is sent, how often, and what responses mean.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::baremetal::Authentication;
use api::secret::Secret;
use ironic::{Error, Request, Verb};
use operator_runtime::http_client::{HttpClient, HttpClients};
use operator_runtime::metrics::Metrics;
use operator_runtime::request_times::RequestTimes;
use operator_runtime::tls_stream::CaTrust;
use testkit::http_server::{Asked, ok, request, server};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::session::Most;
use crate::{Credentials, Pool, Session};

const VERSIONS: &str = r#"{"default_version": {"min_version": "1.1", "version": "1.115"}}"#;

fn http() -> HttpClient {
    HttpClients::with_loopback().of("ns", CaTrust::new(None).unwrap())
}

fn secret(entries: &[(&str, &str)]) -> BTreeMap<String, Secret<String>> {
    entries.iter().map(|(key, text)| ((*key).to_owned(), Secret::new((*text).to_owned()))).collect()
}

#[tokio::test]
async fn those_who_look_together_share_one_list_of_all_pages() {
    let (address, asked) = server(|text| {
        if text.starts_with("get / ") {
            ok(VERSIONS)
        } else if text.contains("marker=b") {
            ok(r#"{"nodes": [{"uuid": "c", "provision_state": "active"}]}"#)
        } else {
            ok(r#"{"nodes": [{"uuid": "a"}, {"uuid": "b"}], "next": "http://elsewhere/v1/nodes"}"#)
        }
    })
    .await;
    let session = Session::new(&format!("http://{address}/v1/"), Credentials::None, http());
    let minute = Duration::from_mins(1);
    let (first, second) = tokio::join!(session.nodes(minute), session.nodes(minute));
    let uuids: Vec<_> = first.unwrap().iter().map(|it| it.uuid.clone()).collect();
    assert_eq!(uuids, ["a", "b", "c"]);
    assert_eq!(second.unwrap().len(), 3);
    let asked = asked.lock().clone();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked[1].contains("x-openstack-ironic-api-version: 1.78"), "{}", asked[1]);
    assert!(asked[1].contains("connection: close"), "{}", asked[1]);
}

#[tokio::test]
async fn a_list_without_an_end_ends_at_a_bound_and_says_so() {
    let (address, asked) = server(|text| {
        let page = r#"{"nodes": [{"uuid": "a"}, {"uuid": "b"}], "next": "x"}"#;
        ok(if text.starts_with("get / ") { VERSIONS } else { page })
    })
    .await;
    let most = Most { pages: 9, machines: 9, bytes: 900, memory: 1 << 20 };
    for (most, words, n_pages) in [
        (Most { pages: 3, ..most }, "a list of more than 3 pages", 3),
        (Most { machines: 3, ..most }, "a list of more than 3 machines", 2),
        (Most { bytes: 60, ..most }, "a list of more than 0 MiB", 2),
    ] {
        let session = Session::new(&format!("http://{address}"), Credentials::None, http());
        let error = session.reading(most).nodes(Duration::ZERO).await.unwrap_err();
        assert_eq!(error.to_string(), format!("Ironic returns more than the limit: {words}"));
        let mut asked = asked.lock();
        assert_eq!(asked.iter().filter(|it| it.contains("/v1/nodes?")).count(), n_pages, "{words}");
        asked.clear();
    }
}

#[tokio::test]
async fn pages_that_cost_little_each_are_not_read_once_all_of_them_take_too_much_memory() {
    // 170 KB of text, and 15 MB of trees.
    let trees = "{\"\":0},".repeat(24_000);
    let page =
        format!(r#"{{"nodes": [{{"uuid": "a", "extra": {{"a": [{trees}0]}}}}], "next": "x"}}"#);
    let (address, asked) =
        server(move |text: &str| ok(if text.starts_with("get / ") { VERSIONS } else { &page }))
            .await;
    let session = Session::new(&format!("http://{address}"), Credentials::None, http());
    let error = session.nodes(Duration::ZERO).await.unwrap_err();
    let words = "Ironic returns more than the limit: a list that takes more than 48 MiB in memory";
    assert_eq!(error.to_string(), words);
    assert_eq!(asked.lock().iter().filter(|it| it.contains("/v1/nodes?")).count(), 3);
    let honest: ironic::Node = serde_json::from_value(serde_json::json!({
        "uuid": "a", "traits": ["CUSTOM_A"], "instance_info": { "image_source": "x".repeat(100) },
        "properties": { "cpus": 8, "memory_mb": 1, "local_gb": 1, "capabilities": "a:b" },
        "extra": { "rack": "r1" },
    }))
    .unwrap();
    assert!(honest.footprint() * 10_000 < 48 << 20, "{}", honest.footprint());
}

/// Answers to a list of one machine, whose text takes some 7 MiB.
fn large(text: &str) -> (u16, String, String) {
    let error = "x".repeat(7 << 20);
    let page = || format!(r#"{{"nodes": [{{"uuid": "a", "last_error": "{error}"}}]}}"#);
    ok(&if text.starts_with("get / ") { VERSIONS.to_owned() } else { page() })
}

#[tokio::test]
async fn lists_that_are_in_use_are_bounded_in_sum_and_an_old_one_leaves_before_the_new_one_comes() {
    let (address, _) = server(large).await;
    let clients = HttpClients::with_loopback();
    let trust = || CaTrust::new(None).unwrap();
    let of = |namespace: &str| {
        let http = clients.of(namespace, trust());
        Session::new(&format!("http://{address}"), Credentials::None, http)
    };
    let mut lists = Vec::new();
    let words = "Ironic returns more than the limit: more than is left of the operator's memory \
                 for answers";
    let full = loop {
        let session = of("a");
        match session.nodes(Duration::ZERO).await {
            Ok(list) => lists.push((session, list)),
            Err(error) => break error,
        }
    };
    assert_eq!(full.to_string(), words);
    assert_eq!(lists.len(), 9, "half of the memory");
    assert!(of("b").nodes(Duration::ZERO).await.is_ok(), "another namespace has its share");
    // The session's own list is dropped, and the caller's counts on.
    let (session, list) = lists.pop().unwrap();
    assert_eq!(session.nodes(Duration::ZERO).await.unwrap_err().to_string(), words);
    drop(list);
    assert!(session.nodes(Duration::ZERO).await.is_ok());
}

#[tokio::test]
async fn a_list_that_is_read_again_in_part_counts_twice_where_a_caller_has_it() {
    let (address, _) = server(|text| {
        if text.starts_with("put ") { (202, String::new(), String::new()) } else { large(text) }
    })
    .await;
    let session = Session::new(&format!("http://{address}"), Credentials::None, http());
    let minute = Duration::from_mins(1);
    let first = session.nodes(minute).await.unwrap();
    session.ask(&Request::power_on("b")).await.unwrap();
    let _ = session.nodes(minute).await.unwrap();
    assert_eq!(first.n_bytes() >> 20, 7);
    let second = session.nodes(minute).await.unwrap();
    assert!(!Arc::ptr_eq(&first, &second) && second.n_bytes() > first.n_bytes());
}

#[tokio::test]
async fn an_answer_that_is_long_or_costs_much_is_not_read() {
    let long = format!(r#"{{"nodes": [], "x": "{}"}}"#, "x".repeat(9 << 20));
    let dense =
        format!(r#"{{"nodes": [{{"extra": {{"a": [{}0]}}}}]}}"#, "{\"\":0},".repeat(100_000));
    for (page, words) in [(long, "more than 8 MiB"), (dense, "takes more than 32 MiB in memory")] {
        let answer =
            move |text: &str| ok(if text.starts_with("get / ") { VERSIONS } else { &page });
        let (address, _) = server(answer).await;
        let session = Session::new(&format!("http://{address}"), Credentials::None, http());
        let error = session.nodes(Duration::ZERO).await.unwrap_err();
        assert_eq!(error.reason().word, "AnswerTooLarge");
        assert!(error.to_string().ends_with(words), "{error}");
    }
}

#[tokio::test]
async fn a_list_is_not_given_to_anybody_after_a_change_and_neither_is_an_error_after_its_time() {
    let (address, asked) = server(|text| {
        if text.starts_with("get / ") {
            ok(VERSIONS)
        } else if text.starts_with("put ") {
            (202, String::new(), String::new())
        } else {
            (503, String::new(), "{}".into())
        }
    })
    .await;
    let session = Session::new(&format!("http://{address}"), Credentials::None, http());
    let minute = Duration::from_mins(1);
    let lists = || asked.lock().iter().filter(|it| it.contains("/v1/nodes?")).count();
    assert_eq!(session.nodes(minute).await.unwrap_err().reason().word, "IronicBusy");
    assert_eq!(session.nodes(minute).await.unwrap_err().reason().word, "IronicBusy");
    assert_eq!(lists(), 1);
    session.ask(&Request::power_on("a")).await.unwrap();
    let _ = session.nodes(minute).await;
    let _ = session.nodes(minute).await;
    assert_eq!(lists(), 2);
    let _ = session.nodes(Duration::ZERO).await;
    assert_eq!(lists(), 3);
}

/// Answers to a list of the machines `a` and `b`, to each of them alone, and to changes.
fn two_machines(text: &str) -> (u16, String, String) {
    if text.starts_with("get / ") {
        ok(VERSIONS)
    } else if text.contains("/v1/nodes?") {
        ok(r#"{"nodes": [{"uuid": "a"}, {"uuid": "b"}]}"#)
    } else if text.starts_with("get /v1/nodes/b") {
        (404, String::new(), "{}".into())
    } else if text.starts_with("get ") {
        ok(r#"{"uuid": "a", "power_state": "power on"}"#)
    } else {
        (202, String::new(), String::new())
    }
}

/// Returns method and path without query of each request.
fn first_lines(asked: &Asked) -> Vec<String> {
    let first =
        |it: &String| it.split(['?', '\r']).next().unwrap().trim_end_matches(" http/1.1").into();
    asked.lock().iter().map(first).collect()
}

#[tokio::test]
async fn who_changes_a_machine_has_that_one_read_anew_and_not_the_list_of_all() {
    let (address, asked) = server(two_machines).await;
    let session = Session::new(&format!("http://{address}"), Credentials::None, http());
    let minute = Duration::from_mins(1);
    let before = session.nodes(minute).await.unwrap();
    session.ask(&Request::power_on("a")).await.unwrap();
    session.ask(&Request::provision("b", Verb::Deleted)).await.unwrap();
    let after = session.nodes(minute).await.unwrap();
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].power_state.as_deref(), Some("power on"));
    session.nodes(minute).await.unwrap();
    // A caller that has the list from before keeps it unchanged.
    assert_eq!((before.len(), &before[0].power_state), (2, &None));
    let (list, a, b) = ("get /v1/nodes", "get /v1/nodes/a", "get /v1/nodes/b");
    let (power, undeploy) = ("put /v1/nodes/a/states/power", "put /v1/nodes/b/states/provision");
    assert_eq!(first_lines(&asked), ["get /", list, power, undeploy, a, b]);
}

#[tokio::test]
async fn a_change_that_is_given_up_is_not_forgotten() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Asked::default());
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut kept = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let text = request(&mut stream).await;
            let (status, _, body) = two_machines(&text);
            seen.lock().push(text.clone());
            let answer =
                format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            if text.starts_with("put ") {
                // It is executed, and never answered.
                kept.push(stream);
            } else {
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    let session = Session::new(&format!("http://{address}"), Credentials::None, http());
    let minute = Duration::from_mins(1);
    session.nodes(minute).await.unwrap();
    let power_on = Request::power_on("a");
    let was_sent = || first_lines(&asked).iter().any(|it| it.starts_with("put "));
    tokio::select! {
        answer = session.ask(&power_on) => panic!("{answer:?}"),
        () = async { while !was_sent() { tokio::task::yield_now().await } } => {}
    }
    let after = session.nodes(minute).await.unwrap();
    assert_eq!(after[0].power_state.as_deref(), Some("power on"));
}

/// A server that supports only this version.
async fn speaking(newest: &Arc<Mutex<&'static str>>) -> (SocketAddr, Asked) {
    let newest = Arc::clone(newest);
    server(move |text| {
        let newest = *newest.lock().unwrap();
        if text.starts_with("get / ") {
            ok(&VERSIONS.replace("1.115", newest))
        } else if text.contains(&format!("x-openstack-ironic-api-version: {newest}\r")) {
            ok(r#"{"nodes": [{"uuid": "a"}], "uuid": "a"}"#)
        } else {
            (406, String::new(), r#"{"error_message": "version not acceptable"}"#.into())
        }
    })
    .await
}

#[tokio::test]
async fn a_version_that_is_not_spoken_any_more_is_asked_for_anew() {
    let newest = Arc::new(Mutex::new("1.61"));
    let (address, asked) = speaking(&newest).await;
    let session = Session::new(&format!("http://{address}"), Credentials::None, http());
    assert_eq!(session.nodes(Duration::ZERO).await.unwrap().len(), 1);
    assert_eq!(session.version().await.unwrap().to_string(), "1.61");
    *newest.lock().unwrap() = "1.58";
    assert_eq!(session.nodes(Duration::ZERO).await.unwrap().len(), 1);
    assert_eq!(session.version().await.unwrap().to_string(), "1.58");
    let list = asked.lock().last().unwrap().clone();
    assert!(!list.contains("retired"), "{list}");
    *newest.lock().unwrap() = "1.61";
    session.ask(&Request::power_on("a")).await.unwrap();
    assert_eq!(session.version().await.unwrap().to_string(), "1.61");
}

#[tokio::test]
async fn an_ironic_that_was_upgraded_is_found_to_speak_a_newer_version() {
    let newest = Arc::new(Mutex::new("1.58"));
    let (address, asked) = speaking(&newest).await;
    let session = || Session::new(&format!("http://{address}"), Credentials::None, http());
    let (fresh, old) = (session(), session().knowing_for(Duration::ZERO));
    for it in [&fresh, &old] {
        assert_eq!(it.version().await.unwrap().to_string(), "1.58");
    }
    *newest.lock().unwrap() = "1.61";
    assert_eq!(fresh.version().await.unwrap().to_string(), "1.58");
    assert_eq!(asked.lock().len(), 2);
    assert_eq!(old.version().await.unwrap().to_string(), "1.61");
}

#[tokio::test]
async fn lists_wait_for_nobodys_turn() {
    let (address, _) = server(two_machines).await;
    let session = Session::new(&format!("http://{address}"), Credentials::None, http());
    let mut turns = Vec::new();
    for _ in 0..8 {
        turns.push(session.slot().await);
    }
    assert_eq!(session.nodes(Duration::ZERO).await.unwrap().len(), 2);
    assert!(tokio::time::timeout(Duration::from_millis(50), session.slot()).await.is_err());
    turns.pop();
    session.slot().await.node("a").await.unwrap();
}

#[tokio::test]
async fn a_token_is_kept_and_asked_for_anew_when_it_is_refused() {
    let (address, asked) = server(|text| {
        if text.starts_with("post /v3/auth/tokens") {
            let header = "X-Subject-Token: t-1\r\n".to_owned();
            (201, header, r#"{"token": {"expires_at": "2999-01-01T00:00:00.000000Z"}}"#.into())
        } else if text.starts_with("get / ") {
            ok(VERSIONS)
        } else if text.contains("/v1/nodes/gone") {
            (401, String::new(), "{}".into())
        } else {
            ok(r#"{"uuid": "a"}"#)
        }
    })
    .await;
    let data = secret(&[
        ("authURL", &format!("http://{address}/v3")),
        ("username", "u"),
        ("password", "hunter2\n"),
        ("projectName", "p"),
    ]);
    let credentials = Credentials::of(Authentication::Keystone, "ironic", &data).unwrap();
    assert!(!format!("{credentials:?}").contains("hunter2"));
    let session = Session::new(&format!("http://{address}"), credentials, http());
    let slot = session.slot().await;
    slot.node("a").await.unwrap();
    slot.node("b").await.unwrap();
    assert_eq!(slot.node("gone").await.unwrap_err(), Error::Unauthorized);
    let asked = asked.lock().clone();
    let lines: Vec<&str> =
        asked.iter().map(|it| it.split(['?', ' ']).nth(1).unwrap_or_default()).collect();
    let (tokens, gone) = ("/v3/auth/tokens", "/v1/nodes/gone");
    assert_eq!(lines, ["/", tokens, "/v1/nodes/a", "/v1/nodes/b", gone, tokens, gone]);
    assert!(asked[2].contains("x-auth-token: t-1"));
    assert!(asked[1].contains(r#""password":"hunter2""#), "{}", asked[1]);
}

#[tokio::test]
async fn user_and_password_go_with_each_request_but_the_first() {
    let (address, asked) = server(|text| {
        if text.starts_with("get / ") { ok(VERSIONS) } else { (202, String::new(), String::new()) }
    })
    .await;
    let data = secret(&[("username", "u"), ("password", "p")]);
    let credentials = Credentials::of(Authentication::HttpBasic, "ironic", &data).unwrap();
    let session = Session::new(&format!("http://{address}"), credentials, http());
    assert!(session.ask(&Request::power_on("a")).await.unwrap().is_null());
    let asked = asked.lock().clone();
    assert!(!asked[0].contains("authorization") && asked[1].contains("authorization: basic dtpw"));
}

#[test]
fn a_secret_that_lacks_something_says_which_key() {
    let check = |authentication, entries: &[(&str, &str)], expected: &str| {
        let error = Credentials::of(authentication, "ironic", &secret(entries)).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.reason().word),
            (expected, "CredentialsIncomplete")
        );
    };
    let (basic, keystone) = (Authentication::HttpBasic, Authentication::Keystone);
    check(basic, &[("username", "u")], "key password of Secret ironic is missing or empty");
    let colon = [("username", "u:v"), ("password", "p")];
    check(basic, &colon, "key username of Secret ironic has a colon, which http_basic cannot send");
    let lines = [("username", "u"), ("password", "p\nq")];
    check(basic, &lines, "key password of Secret ironic has more than one line");
    let long = "p".repeat(4097);
    let password = [("username", "u"), ("password", &long[1..])];
    assert!(Credentials::of(basic, "ironic", &secret(&password)).is_ok());
    let password = [("username", "u"), ("password", &*long)];
    check(basic, &password, "key password of Secret ironic is longer than 4 KiB");
    let id = [("authURL", "http://k"), ("applicationCredentialID", &*long)];
    let too_long = "key applicationCredentialID of Secret ironic is longer than 4 KiB";
    check(keystone, &id, too_long);
    check(keystone, &[], "key authURL of Secret ironic is missing or empty");
    let url = [("authURL", "keystone")];
    check(keystone, &url, "key authURL of Secret ironic is no http or https URL");
    let no_secret = [("authURL", "http://k"), ("applicationCredentialID", "a")];
    let lacks = "key applicationCredentialSecret of Secret ironic is missing or empty";
    check(keystone, &no_secret, lacks);
    let no_project = [("authURL", "http://k"), ("username", "u"), ("password", "p")];
    check(keystone, &no_project, "key projectName of Secret ironic is missing or empty");
}

#[tokio::test]
async fn what_is_no_ironic_or_nobody_says_so() {
    let session = |url: &str| Session::new(url, Credentials::None, http());
    let (page, _) = server(|_| ok("<html>hello</html>")).await;
    let error = session(&format!("http://{page}")).version().await.unwrap_err();
    assert_eq!(error, Error::NotIronic);
    assert_eq!(session("ironic:6385").version().await.unwrap_err(), Error::NotUrl);
    for url in ["http://u:p@127.0.0.1", "http://127.0.0.1/?a=", "http://127.0.0.1/#"] {
        assert_eq!(session(url).version().await.unwrap_err(), Error::NotUrl, "{url}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let error = session(&format!("http://{closed}")).version().await.unwrap_err();
    assert_eq!(error.reason().word, "Unreachable");
    assert!(error.heals());
    let error = session(&format!("https://{page}")).version().await.unwrap_err();
    assert_eq!(error.reason().word, "CertificateNotTrusted");
}

#[tokio::test]
async fn each_request_is_counted_with_what_came_of_it() {
    let (address, _) = server(|text| {
        if text.starts_with("get / ") {
            ok(VERSIONS)
        } else if text.starts_with("put ") {
            (409, String::new(), "{}".into())
        } else {
            ok(r#"{"nodes": []}"#)
        }
    })
    .await;
    let metrics = Metrics::new("test");
    let make = || Ok(Session::new(&format!("http://{address}"), Credentials::None, http()));
    let times = RequestTimes::register(&metrics, "request_seconds", "", |method, result| {
        vec![("method", method.to_owned()), ("result", result.to_owned())]
    });
    let pool = Pool::new(HttpClients::default()).counted(times);
    let session = pool.session("a", "1".into(), make).unwrap();
    session.nodes(Duration::ZERO).await.unwrap();
    session.ask(&Request::power_on("a")).await.unwrap_err();
    let asked = Request::power_on("b");
    let asking = session.ask(&asked);
    // It begins, and the caller does not wait for the response.
    tokio::select! {
        biased;
        answer = asking => panic!("answered at once: {answer:?}"),
        () = std::future::ready(()) => {}
    }
    let text = metrics.encode();
    for expected in [
        r#"edpm_request_seconds_count{method="GET",result="Ok"} 2"#,
        r#"edpm_request_seconds_count{method="PUT",result="MachineBusy"} 1"#,
        r#"edpm_request_seconds_count{method="PUT",result="GivenUp"} 1"#,
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

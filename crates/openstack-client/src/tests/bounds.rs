//! Tests of the bounds of what a hostile server answers.

use testkit::http_server::{server, token};

use super::{MICROVERSION, after_negotiation, cloud, compute, nova, paths};
use crate::{Compute, Error, Fault, Service};

/// Returns entries, each made of its number.
fn entries(n: usize, entry: impl Fn(usize) -> String) -> String {
    (0..n).map(entry).collect::<Vec<_>>().join(",")
}

/// Asserts that a list whose pages never end is read up to so many pages, and what is said then.
async fn check<T>(
    page: String,
    list: impl AsyncFn(&Compute) -> Result<T, Fault>,
    (n_pages, what): (usize, &str),
) {
    let (compute, asked) = cloud(move |_| nova(&page)).await;
    let fault = list(&compute).await.err().unwrap();
    assert_eq!(fault, Fault::of(Service::Compute, Error::TooLarge(what.to_owned())));
    assert_eq!(after_negotiation(&asked).len(), n_pages, "{what}");
}

#[tokio::test]
async fn a_list_of_hypervisors_without_an_end_ends_at_a_bound() {
    let list = async |it: &Compute| it.hypervisors().await;
    let one = |name: &str| format!(r#"{{"id": "b0", "service": {{"host": "{name}"}}}}"#);
    let page = |n, name: &str| format!(r#"{{"hypervisors": [{}]}}"#, entries(n, |_| one(name)));
    check(page(1, "n"), list, (50, "more than 50 pages of hypervisors")).await;
    let name = "n".repeat(255);
    let what = "hypervisors that take more than 16 MiB of memory";
    check(page(4000, &name), list, (10, what)).await;
    let filler = "x".repeat(7 << 20);
    let page = format!(r#"{{"hypervisors": [{}], "x": "{filler}"}}"#, one("n"));
    check(page, list, (10, "more than 64 MiB of hypervisors")).await;
}

#[tokio::test]
async fn a_list_of_servers_without_an_end_ends_at_a_bound() {
    let one = |n| {
        let name = "n".repeat(255);
        format!(
            r#"{{"id": "{n}", "name": "{name}", "status": "ACTIVE", "OS-EXT-STS:vm_state": "x"}}"#
        )
    };
    let page = format!(
        r#"{{"servers": [{}], "servers_links": [{{"rel": "next", "href": ""}}]}}"#,
        entries(1000, one)
    );
    let list = async |it: &Compute| it.server_states_on("one").await;
    let what = "servers that take more than 1 MiB of memory";
    check(page.clone(), list, (3, what)).await;
    let list = async |it: &Compute| it.servers_on("one").await;
    check(page, list, (18, "ids that take more than 1 MiB of memory")).await;
}

#[tokio::test]
async fn the_servers_of_a_node_take_no_more_memory_than_other_lists_about_a_host() {
    for (n, is_read) in [(10_000, true), (70_000, false)] {
        let servers = entries(n, |it| format!(r#"{{"uuid": "{it:036}"}}"#));
        let body = format!(r#"{{"hypervisor": {{"id": "b0", "servers": [{servers}]}}}}"#);
        let (compute, _) = cloud(move |_| nova(&body)).await;
        let found = compute.servers_of_node("b0").await;
        let too_large = Error::TooLarge("ids that take more than 1 MiB of memory".to_owned());
        let expected = if is_read { Ok(n) } else { Err(Fault::of(Service::Compute, too_large)) };
        let counted = found.map(|it| it.unwrap());
        assert!(counted.as_ref().is_ok_and(|it| it.n_bytes() > 0) == is_read);
        assert_eq!(counted.map(|it| it.len()), expected);
    }
}

#[tokio::test]
async fn a_list_of_migrations_without_an_end_ends_at_a_bound() {
    let page = |status: &str| {
        let one = |n| {
            let host = "n".repeat(255);
            format!(
                r#"{{"uuid": "{n}", "instance_uuid": "{n}", "status": "{status}",
                    "migration_type": "resize", "source_compute": "{host}"}}"#
            )
        };
        format!(r#"{{"migrations": [{}]}}"#, entries(1000, one))
    };
    let list = async |it: &Compute| it.migrations_on("one").await;
    let what = "migrations that take more than 1 MiB of memory";
    check(page("running"), list, (2, what)).await;
    // Those at their end are not kept.
    check(page("done"), list, (50, "more than 50 pages of migrations")).await;
}

#[tokio::test]
async fn names_and_reasons_are_no_longer_than_novas_own() {
    let service = |host: &str, reason: &str| {
        let service = format!(
            r#"{{"id": "a0", "host": "{host}", "status": "disabled", "state": "up",
                "disabled_reason": "{reason}"}}"#
        );
        format!(r#"{{"services": [{service}]}}"#)
    };
    let (fits, long) = ("n".repeat(255), "n".repeat(256));
    for (body, is_of_nova) in [
        (service(&fits, &"\u{fc}".repeat(255)), true),
        (service(&long, ""), false),
        (service("n", &"\u{fc}".repeat(256)), false),
    ] {
        let (compute, _) = cloud(move |_| nova(&body)).await;
        let found = compute.services().await;
        let expected = Fault::of(Service::Compute, Error::NotTheService);
        assert!(found.as_ref().is_ok_and(|it| it.n_bytes() > 0) || found == Err(expected));
        assert_eq!(found.is_ok(), is_of_nova);
    }
    for (name, host, is_of_nova) in
        [(&fits, &fits, true), (&long, &fits, false), (&fits, &long, false)]
    {
        let body = format!(
            r#"{{"hypervisor": {{"id": "b0", "hypervisor_hostname": "{name}",
                "service": {{"host": "{host}"}}}}}}"#
        );
        let (compute, _) = cloud(move |_| nova(&body)).await;
        assert_eq!(compute.hypervisor("b0").await.is_ok(), is_of_nova);
    }
}

#[tokio::test]
async fn an_endpoint_with_user_query_or_fragment_gets_no_request() {
    for path in ["/v2.1?x=", "/v2.1#", "/v2.1/?"] {
        let (address, asked) = server(move |text| token(text, "one", &[("compute", path)])).await;
        let fault = compute(address, "one").services().await.unwrap_err();
        assert_eq!(fault, Fault::of(Service::Compute, Error::NotUrl), "{path}");
        assert_eq!(paths(&asked), ["/v3/auth/tokens"]);
    }
}

#[tokio::test]
async fn what_another_server_says_of_its_microversion_is_cut() {
    let header = format!("{}{}\r\n", MICROVERSION.trim_end(), "x".repeat(9000));
    let (compute, _) = cloud(move |_| (200, header.clone(), "{}".to_owned())).await;
    let error = compute.services().await.unwrap_err().error;
    let Error::Version { supported, .. } = error else { panic!("{error:?}") };
    assert!(supported.len() <= 255, "{}", supported.len());
}

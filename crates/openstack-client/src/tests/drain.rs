//! Tests of what drain and removal need of nova.

use operator_runtime::answer_memory::Held;

use super::{Answer, MICROVERSION, after_negotiation, cloud, nova, paths, requests};
use crate::{Compute, Error, Fault, Migration, Server, Service, ServiceState};

fn answer(status: u16, body: &str) -> Answer {
    (status, MICROVERSION.to_owned(), body.to_owned())
}

fn of_nova(error: Error) -> Fault {
    Fault::of(Service::Compute, error)
}

#[tokio::test]
async fn the_services_of_one_host_are_requested_by_its_name() {
    let (compute, asked) = cloud(|_| {
        nova(r#"{"services": [{"host": "a&b", "binary": "nova-compute", "status": "UNKNOWN"}]}"#)
    })
    .await;
    let found = compute.services_on("a&b").await.unwrap();
    assert_eq!((found[0].host.as_str(), &found[0].state), ("a&b", &ServiceState::Unknown));
    let expected = ["get /v2.1/os-services?binary=nova-compute&host=a%26b"];
    assert_eq!(after_negotiation(&asked), expected);
}

#[tokio::test]
async fn a_service_is_disabled_with_a_reason_and_enabled_again() {
    let (compute, asked) = cloud(|_| nova(r#"{"service": {"id": "a0"}}"#)).await;
    compute.disable("a0", "drain: \"new disk\"").await.unwrap();
    compute.disable("a0", "").await.unwrap();
    compute.enable("a0").await.unwrap();
    assert_eq!(
        after_negotiation(&asked),
        [
            r#"put /v2.1/os-services/a0 {"disabled_reason":"drain: \"new disk\"","status":"disabled"}"#,
            r#"put /v2.1/os-services/a0 {"status":"disabled"}"#,
            r#"put /v2.1/os-services/a0 {"status":"enabled"}"#,
        ]
    );
    let last = asked.lock().last().unwrap().clone();
    assert!(last.contains("content-type: application/json\r\n"), "{last}");
    assert!(last.contains("openstack-api-version: compute 2.69\r\n"), "{last}");
}

#[tokio::test]
async fn the_servers_of_a_node_are_those_that_nova_reads_from_its_cell() {
    let servers = r#"{"hypervisor": {"id": "b0", "servers": [{"uuid": "c0", "name": "x"}]}}"#;
    let failed = r#"{"computeFault": {"code": 500, "message": "DBError"}}"#;
    for (status, body, expected) in [
        (200, servers, Ok(Some(vec!["c0".to_owned()]))),
        (200, r#"{"hypervisor": {"id": "b0"}}"#, Ok(Some(vec![]))),
        (200, r#"{"hypervisor": {"servers": [{"uuid": "../x"}]}}"#, Err(Error::NotTheService)),
        (404, "", Ok(None)),
        (500, failed, Err(Error::Failed(500, "DBError".into()))),
    ] {
        let (compute, asked) = cloud(move |_| answer(status, body)).await;
        let found = compute.servers_of_node("b0").await;
        let expected = expected.map(|it| it.map(Held::from)).map_err(of_nova);
        assert_eq!(found, expected, "{body}");
        let expected = ["get /v2.1/os-hypervisors/b0?with_servers=true"];
        assert_eq!(after_negotiation(&asked), expected);
    }
}

#[tokio::test]
async fn a_service_that_is_gone_is_deleted_and_one_with_servers_conflicts() {
    let hosting = r#"{"conflictingRequest": {"code": 409, "message": "hosting instances"}}"#;
    for (status, body, expected) in [
        (204, "", Ok(())),
        (404, r#"{"itemNotFound": {"code": 404, "message": "x"}}"#, Ok(())),
        (409, hosting, Err(Error::Conflict("hosting instances".into()))),
        (200, "", Err(Error::NotTheService)),
    ] {
        let (compute, asked) = cloud(move |_| answer(status, body)).await;
        let found = compute.delete_service("a0").await;
        assert_eq!(found, expected.map_err(of_nova), "{status}");
        assert_eq!(after_negotiation(&asked), ["delete /v2.1/os-services/a0"]);
    }
}

#[tokio::test]
async fn servers_are_read_until_no_page_is_linked() {
    let (compute, asked) = cloud(|text| {
        nova(if text.contains("marker=c0") {
            r#"{"servers": [{"id": "c1", "name": "two\r\n\u001b[2Jx", "status": "ERROR",
                "OS-EXT-STS:task_state": null, "OS-EXT-STS:vm_state": "error",
                "config_drive": ""}]}"#
        } else {
            r#"{"servers": [{"id": "c0", "name": "one", "status": "MIGRATING",
                "OS-EXT-STS:task_state": "migrating", "OS-EXT-STS:vm_state": "active",
                "config_drive": "True"}],
                "servers_links": [{"rel": "next", "href": "http://elsewhere/?marker=x"}]}"#
        })
    })
    .await;
    let server = |id: &str, name: &str, status: &str, task: Option<&str>, vm: &str| Server {
        id: id.into(),
        name: name.into(),
        status: status.into(),
        task_state: task.map(Into::into),
        vm_state: vm.into(),
        has_config_drive: id == "c0",
    };
    assert_eq!(
        compute.server_states_on("one.example").await.unwrap(),
        [
            server("c0", "one", "MIGRATING", Some("migrating"), "active"),
            server("c1", "two [2Jx", "ERROR", None, "error"),
        ]
    );
    let first = "get /v2.1/servers/detail?all_tenants=1&host=one.example&limit=1000\
                 &soft_deleted=true";
    assert_eq!(after_negotiation(&asked), [first.to_owned(), format!("{first}&marker=c0")]);
}

#[tokio::test]
async fn a_config_drive_is_any_word_and_nothing_is_none() {
    for (said, expected) in [
        (r#", "config_drive": "True""#, Some(true)),
        (r#", "config_drive": """#, Some(false)),
        (r#", "config_drive": null"#, Some(false)),
        ("", Some(false)),
        (r#", "config_drive": 1"#, None),
    ] {
        let (compute, _) = cloud(move |_| {
            nova(&format!(
                r#"{{"servers": [{{"id": "c0", "name": "one", "status": "ACTIVE",
                    "OS-EXT-STS:vm_state": "active"{said}}}]}}"#
            ))
        })
        .await;
        let found = compute.server_states_on("one").await.ok();
        assert_eq!(found.map(|it| it[0].has_config_drive), expected, "{said}");
    }
}

#[tokio::test]
async fn an_empty_page_of_servers_is_the_last_one() {
    let (compute, asked) =
        cloud(|_| nova(r#"{"servers": [], "servers_links": [{"rel": "next", "href": ""}]}"#)).await;
    assert_eq!(compute.server_states_on("one").await.unwrap().len(), 0);
    assert_eq!(after_negotiation(&asked).len(), 1);
}

fn migration(number: usize, status: &str) -> String {
    format!(
        r#"{{"id": {number}, "uuid": "d{number}", "instance_uuid": "c{number}",
            "status": {status}, "migration_type": "resize", "source_compute": "one",
            "dest_compute": null, "created_at": "2026-11-26T02:00:00.000000"}}"#
    )
}

#[tokio::test]
async fn only_open_migrations_are_returned_and_an_empty_page_is_the_last_one() {
    let statuses = [
        "completed",
        "done",
        "cancelled",
        "error",
        "failed",
        "reverted",
        "confirmed",
        "finished",
        "running",
        "of a later release",
    ];
    let (compute, asked) = cloud(move |text| {
        let page: Vec<String> = if text.contains("marker=d10") {
            Vec::new()
        } else if text.contains("marker=d9") {
            vec![migration(10, "null")]
        } else {
            let listed = statuses.iter().enumerate();
            listed.map(|(number, it)| migration(number, &format!("\"{it}\""))).collect()
        };
        nova(&format!(r#"{{"migrations": [{}]}}"#, page.join(", ")))
    })
    .await;
    let found = compute.migrations_on("one").await.unwrap();
    let pairs: Vec<(&str, &str)> =
        found.iter().map(|it| (it.id.as_str(), it.status.as_str())).collect();
    let expected =
        [("d7", "finished"), ("d8", "running"), ("d9", "of a later release"), ("d10", "")];
    assert_eq!(pairs, expected);
    let first = Migration {
        id: "d7".into(),
        server_id: "c7".into(),
        status: "finished".into(),
        type_: "resize".into(),
        source: Some("one".into()),
        dest: None,
    };
    assert_eq!(found[0], first);
    let list = "get /v2.1/os-migrations?host=one&limit=1000";
    let page = |marker: &str| format!("{list}{marker}");
    let expected = [page(""), page("&marker=d9"), page("&marker=d10")];
    assert_eq!(after_negotiation(&asked), expected);
}

#[tokio::test]
async fn a_server_is_migrated_to_a_host_that_the_scheduler_chooses() {
    let (compute, asked) = cloud(|_| answer(202, "")).await;
    compute.live_migrate("c0").await.unwrap();
    let body = r#"{"os-migratelive":{"block_migration":"auto","host":null}}"#;
    assert_eq!(after_negotiation(&asked), [format!("post /v2.1/servers/c0/action {body}")]);
}

#[tokio::test]
async fn a_write_with_a_rejected_token_is_sent_once_more() {
    let (compute, asked) = cloud(|_| answer(401, "")).await;
    let fault = compute.live_migrate("c0").await.unwrap_err();
    assert_eq!(fault, of_nova(Error::Unauthorized));
    let all = paths(&asked);
    let count = |part: &str| all.iter().filter(|it| it.contains(part)).count();
    assert_eq!((count("/auth/tokens"), count("/action")), (2, 2));
}

#[tokio::test]
async fn a_write_is_sent_once_whatever_else_fails() {
    for status in [403, 404, 409, 429, 500, 503] {
        let (compute, asked) = cloud(move |_| answer(status, "")).await;
        compute.disable("a0", "drain").await.unwrap_err();
        assert_eq!(after_negotiation(&asked).len(), 1, "{status}");
    }
}

#[tokio::test]
async fn no_request_is_sent_for_what_is_no_id() {
    let (compute, asked) = cloud(|_| answer(204, "")).await;
    let refused = |id: &str| Err(of_nova(Error::Refused(format!("{id} is not an id"))));
    assert_eq!(compute.delete_service("../x").await, refused("../x"));
    assert_eq!(compute.enable("a0?x=y").await, refused("a0?x=y"));
    assert_eq!(compute.disable("a 0", "drain").await, refused("a 0"));
    assert_eq!(compute.live_migrate("a0/b").await, refused("a0/b"));
    assert_eq!(requests(&asked), Vec::<String>::new());
}

#[tokio::test]
async fn aggregates_are_those_that_list_the_host() {
    let (compute, asked) = cloud(|_| {
        nova(
            r#"{"aggregates": [{"id": 1, "name": "ssd\n", "hosts": ["one", "two"]},
            {"id": 2, "name": "gpu", "hosts": ["one.example"]}, {"name": "x", "hosts": []}]}"#,
        )
    })
    .await;
    assert_eq!(compute.aggregates_with("one").await.unwrap(), ["ssd"]);
    assert_eq!(after_negotiation(&asked), ["get /v2.1/os-aggregates"]);
}

#[tokio::test]
async fn garbage_in_lists_is_not_novas() {
    async fn check(body: &'static str, read: impl AsyncFn(&Compute) -> Option<Fault>) {
        let (compute, _) = cloud(move |_| nova(body)).await;
        assert_eq!(read(&compute).await, Some(of_nova(Error::NotTheService)), "{body}");
    }
    for body in [
        "<html>",
        "{}",
        r#"{"servers": [{"id": "c0"}]}"#,
        r#"{"servers": [{"id": "c0", "status": "UNKNOWN", "links": []}]}"#,
        r#"{"servers": [{"id": "../x", "name": "n", "status": "s", "OS-EXT-STS:vm_state": "v"}]}"#,
    ] {
        check(body, async |it| it.server_states_on("one").await.err()).await;
    }
    for body in [
        r#"{"servers": []}"#,
        r#"{"migrations": [{"uuid": "d0", "status": "running", "migration_type": "resize"}]}"#,
        r#"{"migrations": [{"uuid": "d0&limit=1", "instance_uuid": "c0", "status": "done",
            "migration_type": "resize"}]}"#,
    ] {
        check(body, async |it| it.migrations_on("one").await.err()).await;
    }
    for body in [r#"{"aggregates": [{"name": "x"}]}"#, r#"{"aggregates": {}}"#] {
        check(body, async |it| it.aggregates_with("one").await.err()).await;
    }
}

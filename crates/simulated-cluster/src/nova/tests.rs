//! Checks the fake: what `openstack-client` reads of it, and the answers to the requests that change
//! something.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use openstack_client::compute::{KnownService, Liveness};
use openstack_client::keystone::{UserInProject, tokens_url};
use openstack_client::{Compute, ComputeService, Error, Login, Network, Placement, ServiceState};
use operator_runtime::http_client::{HttpClient, HttpClients};
use operator_runtime::tls_stream::CaTrust;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Nova, NovaFault};
use crate::Keystone;

const CELL: &str = "nova-cell1";

async fn cloud() -> Result<(Nova, Compute, Keystone)> {
    let keystone = Keystone::start().await?;
    keystone.admit("nova", "right");
    let nova = Nova::start(&keystone, "one").await?;
    let user = UserInProject {
        user: "nova",
        user_domain: "Default",
        project: "service",
        project_domain: "Default",
    };
    let login = Login::new(tokens_url(&keystone.url()).context("no URL")?, user.identity("right"));
    let compute = Compute::new(login, http()?, "one");
    Ok((nova, compute, keystone))
}

fn http() -> Result<HttpClient> {
    let trust = CaTrust::new(None).ok().context("no trust")?;
    Ok(HttpClients::with_loopback().of("ns", trust))
}

async fn known(compute: &Compute, host: &str) -> Result<KnownService> {
    let services = compute.services().await?;
    let found = services.into_iter().find(|it| it.host == host).context("no such service")?;
    match found.state {
        ServiceState::Known(known) => Ok(known),
        ServiceState::Unknown => anyhow::bail!("the service is UNKNOWN"),
    }
}

async fn mapped(compute: &Compute) -> Result<Vec<String>> {
    let all = compute.hypervisors().await?;
    Ok(all.into_iter().map(|it| it.service.host).collect())
}

#[tokio::test]
async fn the_client_reads_services_and_hypervisors_as_they_are() -> Result<()> {
    let (nova, compute, _keystone) = cloud().await?;
    for host in ["one", "two", "three"] {
        nova.register(host, if host == "three" { "nova-cell2" } else { CELL });
    }
    let one = known(&compute, "one").await?;
    assert!(
        one.liveness == Liveness::Up
            && !one.is_disabled
            && !one.is_forced_down
            && one.updated_at.is_some()
    );
    assert_eq!(mapped(&compute).await?, ["one", "two", "three"]);
    nova.report("one", false);
    assert_eq!(known(&compute, "one").await?.liveness, Liveness::Down);
    nova.map("two", false)?;
    assert_eq!(mapped(&compute).await?, ["one", "three"]);
    nova.answer_for_cell(CELL, false);
    nova.map("two", true)?;
    let services = compute.services().await?;
    let unknown = services.iter().filter(|it| it.state == ServiceState::Unknown);
    assert_eq!(unknown.map(|it| it.host.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(known(&compute, "three").await?.liveness, Liveness::Up);
    assert_eq!(mapped(&compute).await?, ["three"]);
    Ok(())
}

#[tokio::test]
async fn a_cell_that_hangs_delays_what_is_listed_of_all_cells() -> Result<()> {
    let (nova, compute, _keystone) = cloud().await?;
    nova.register("one", CELL);
    nova.register("two", "nova-cell2");
    compute.services().await?;
    // Hypervisors are listed cell by cell: nobody waits for this one.
    nova.hang_cell(CELL, Duration::from_hours(1));
    assert_eq!(mapped(&compute).await?, ["two"]);
    let (wait, begun) = (Duration::from_millis(300), Instant::now());
    nova.hang_cell(CELL, wait);
    let services = compute.services();
    let later = async {
        nova.wait_for_requests("GET /v2.1/os-services", 1).await?;
        tokio::time::sleep(wait / 3).await;
        nova.report("two", false);
        anyhow::Ok(())
    };
    let (services, later) = tokio::join!(services, later);
    later?;
    ensure!(begun.elapsed() >= wait, "it was not waited for");
    let is_up = |it: &ComputeService| matches!(&it.state, ServiceState::Known(it) if it.liveness == Liveness::Up);
    let states = services?;
    let states: Vec<bool> = states.iter().map(is_up).collect();
    assert_eq!(states, [false, true], "the one is unknown, the other as it was at the request");
    nova.answer_for_cell(CELL, true);
    assert_eq!(known(&compute, "one").await?.liveness, Liveness::Up);
    assert_eq!(known(&compute, "two").await?.liveness, Liveness::Down);
    Ok(())
}

#[tokio::test]
async fn a_login_that_is_held_gets_its_token_later() -> Result<()> {
    let (nova, compute, keystone) = cloud().await?;
    nova.register("one", CELL);
    keystone.hold_logins(true);
    let later = async {
        keystone.wait_for_logins(1, Duration::from_mins(1)).await?;
        ensure!(nova.requests().is_empty(), "it has no token yet");
        keystone.hold_logins(false);
        Ok(())
    };
    let (services, later) = tokio::join!(compute.services(), later);
    later?;
    assert_eq!((services?.len(), keystone.n_logins()), (1, 1));
    Ok(())
}

#[tokio::test]
async fn two_thousand_hypervisors_are_three_pages() -> Result<()> {
    let (nova, compute, _keystone) = cloud().await?;
    (0..2000).for_each(|it| nova.register(&format!("n{it}"), CELL));
    assert_eq!(mapped(&compute).await?.len(), 2000);
    assert_eq!(nova.count("GET /v2.1/os-hypervisors/detail"), 3);
    let first = nova.ask("GET", "/v2.1/os-hypervisors/detail?limit=2", None)?;
    let next = first["hypervisors_links"][0]["href"].as_str().context("no next page")?;
    let (_, path) = next.split_once("/v2.1").context("another URL")?;
    let second = nova.ask("GET", &format!("/v2.1{path}"), None)?;
    assert_eq!(second["hypervisors"][0]["service"]["host"], "n2");
    let refused = nova.ask("GET", "/v2.1/os-hypervisors/detail?marker=none", None).unwrap_err();
    assert!(refused.to_string().contains("400"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn each_fault_is_what_the_client_reports() -> Result<()> {
    let (nova, compute, keystone) = cloud().await?;
    nova.register("one", CELL);
    let words = || "This is what the test has set.".to_owned();
    for (status, expected) in [
        (401, Error::Unauthorized),
        (403, Error::Forbidden(words())),
        (409, Error::Conflict(words())),
        (429, Error::Busy(words())),
        (500, Error::Failed(500, words())),
        (503, Error::Busy(words())),
    ] {
        nova.fail("GET /v2.1/os-services", NovaFault::Status(status));
        assert_eq!(compute.services().await.unwrap_err().error, expected, "{status}");
        assert_eq!(mapped(&compute).await?, ["one"], "{status}");
        nova.heal();
    }
    nova.fail("GET /v2.1/os-services", NovaFault::Garbage);
    assert_eq!(compute.services().await.unwrap_err().error, Error::NotTheService);
    nova.heal();
    let before = nova.count("GET /v2.1/os-services");
    nova.fail_next("GET", 1, NovaFault::Status(401));
    assert_eq!(known(&compute, "one").await?.liveness, Liveness::Up, "the token is renewed once");
    assert_eq!(nova.count("GET /v2.1/os-services"), before + 2);
    nova.stop();
    assert!(matches!(compute.services().await.unwrap_err().error, Error::Unreachable(_)));
    nova.listen().await?;
    assert_eq!(known(&compute, "one").await?.liveness, Liveness::Up);
    keystone.admit("nova", "another");
    nova.fail_next("GET", 1, NovaFault::Status(401));
    assert_eq!(compute.services().await.unwrap_err().error, Error::Unauthorized);
    Ok(())
}

#[tokio::test]
async fn a_silent_request_has_its_answer_and_its_effect_when_the_fault_is_removed() -> Result<()> {
    let (nova, compute, _keystone) = cloud().await?;
    nova.register("one", CELL);
    let id = known(&compute, "one").await?.id;
    let (path, is_disabled) = (format!("/v2.1/os-services/{id}"), async || {
        Ok::<_, anyhow::Error>(known(&compute, "one").await?.is_disabled)
    });
    let token = token(&compute, &nova).await?;
    for (fault, is_done) in [(NovaFault::Silence, false), (NovaFault::LostAnswer, true)] {
        nova.ask("PUT", &path, Some(json!({ "status": "enabled" })))?;
        nova.fail("PUT", fault);
        let request = nova.wait_for_requests("PUT", 1);
        let body = json!({ "status": "disabled", "disabled_reason": "why" });
        let mut change = std::pin::pin!(send(&nova, "PUT", &path, ("compute 2.69", &token), &body));
        let waiting = timeout(Duration::from_mins(1), async {
            tokio::select! {
                arrived = request => arrived,
                _ = &mut change => anyhow::bail!("{fault:?}: it is answered"),
            }
        });
        waiting.await??;
        tokio::select! {
            disabled = is_disabled() => assert_eq!(disabled?, is_done, "{fault:?}"),
            _ = &mut change => anyhow::bail!("{fault:?}: it is answered"),
        }
        nova.heal();
        assert_eq!(change.await?.0, 200, "{fault:?}");
        assert!(is_disabled().await?, "{fault:?}");
    }
    Ok(())
}

/// Returns the token that the client sends, which this nova sees.
async fn token(compute: &Compute, nova: &Nova) -> Result<String> {
    compute.services().await?;
    let user = json!({ "name": "nova", "password": "right" });
    let body = json!({ "auth": { "identity": { "password": { "user": user } } } });
    let address = nova.shared.keystone.url().replace("http://", "");
    let answer = exchange(&address, "POST /v3/auth/tokens HTTP/1.1\r\n", &body.to_string()).await?;
    let found = answer.lines().find_map(|it| it.strip_prefix("X-Subject-Token: "));
    Ok(found.context("no token")?.to_owned())
}

async fn exchange(address: &str, head: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    let text = format!(
        "{head}Host: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Sends a request with a microversion and a token; returns status, head and body.
async fn send(
    nova: &Nova,
    method: &str,
    path: &str,
    (version, token): (&str, &str),
    body: &Value,
) -> Result<(u16, String, Value)> {
    let address = nova.shared.address.to_string();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nOpenStack-API-Version: {version}\r\nX-Auth-Token: {token}\r\n"
    );
    let answer = exchange(&address, &head, &body.to_string()).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, head.to_lowercase(), serde_json::from_str(body).unwrap_or_default()))
}

#[tokio::test]
async fn token_and_microversion_are_checked_and_the_microversion_is_echoed() -> Result<()> {
    let (nova, compute, _keystone) = cloud().await?;
    let token = token(&compute, &nova).await?;
    let ask = async |path: &str, version: &str, token: &str| {
        let (status, head, _) = send(&nova, "GET", path, (version, token), &Value::Null).await?;
        Ok::<_, anyhow::Error>((status, head))
    };
    assert_eq!(ask("/v2.1/", "compute 2.1", "none").await?.0, 200);
    assert_eq!(ask("/v2.1/os-services", "compute 2.69", "none").await?.0, 401);
    for (path, version, expected) in [
        ("/v2.1/os-services", "compute 2.104", 200),
        ("/v2.1/os-services", "compute 2.105", 406),
        ("/v2.1/os-services", "compute 2.68", 406),
        ("/placement/resource_providers", "placement 1.36", 200),
        ("/placement/resource_providers", "placement 1.27", 406),
        ("/placement/resource_providers", "compute 2.69", 406),
        ("/network/", "", 200),
        ("/network/v2.0/agents", "", 200),
        ("/volume/v3", "", 404),
    ] {
        let (status, head) = ask(path, version, &token).await?;
        assert_eq!(status, expected, "{path} {version}");
        let is_echoed = head.contains(&format!("openstack-api-version: {version}"));
        assert!(status != 200 || version.is_empty() || is_echoed, "{head}");
    }
    Ok(())
}

/// Returns the status of a rejection.
#[track_caller]
fn rejected(answer: Result<Value>) -> String {
    let text = answer.unwrap_err().to_string();
    text.split(": ").nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_service_is_disabled_enabled_and_deleted_once_its_host_is_empty() -> Result<()> {
    let (nova, compute, _keystone) = cloud().await?;
    nova.register("one", CELL);
    nova.aggregate("fast", "one");
    let id = known(&compute, "one").await?.id;
    let path = format!("/v2.1/os-services/{id}");
    let put = |body: Value| nova.ask("PUT", &path, Some(body));
    put(json!({ "status": "disabled", "disabled_reason": "repair" }))?;
    let service = known(&compute, "one").await?;
    assert_eq!((service.is_disabled, service.disabled_reason.as_deref()), (true, Some("repair")));
    assert_eq!(rejected(put(json!({}))), "400");
    assert_eq!(rejected(put(json!({ "status": "enabled", "disabled_reason": "x" }))), "400");
    put(json!({ "status": "enabled", "forced_down": true }))?;
    let service = known(&compute, "one").await?;
    assert!(!service.is_disabled && service.disabled_reason.is_none() && service.is_forced_down);
    assert_eq!(service.liveness, Liveness::Down);

    let server = nova.boot("guest", "one")?;
    assert_eq!(rejected(nova.ask("DELETE", &path, None)), "409");
    nova.delete_server(&server);
    nova.answer_for_cell(CELL, false);
    assert_eq!(rejected(nova.ask("DELETE", &path, None)), "500");
    nova.answer_for_cell(CELL, true);
    let node = compute.hypervisors().await?.remove(0).id;
    assert_eq!(compute.hypervisor(&node).await?.map(|it| it.service.host).as_deref(), Some("one"));
    nova.ask("DELETE", &path, None)?;
    assert_eq!(compute.hypervisor(&node).await?, None);
    assert_eq!(rejected(nova.ask("DELETE", &path, None)), "404");
    assert_eq!(rejected(put(json!({ "status": "enabled" }))), "404");
    assert!(mapped(&compute).await?.is_empty() && compute.services().await?.is_empty());
    let provider = format!("/placement/resource_providers/{node}");
    assert_eq!(rejected(nova.ask("GET", &provider, None)), "404");
    let aggregates = nova.ask("GET", "/v2.1/os-aggregates", None)?;
    assert_eq!(aggregates["aggregates"][0]["hosts"], json!([]));

    nova.register("one", CELL);
    assert_ne!(known(&compute, "one").await?.id, id, "the service is another one");
    assert_eq!(compute.hypervisors().await?.remove(0).id, node, "the host kept its identity");
    Ok(())
}

#[tokio::test]
async fn servers_move_by_live_migration_when_they_can() -> Result<()> {
    let (nova, _compute, _keystone) = cloud().await?;
    for host in ["one", "two"] {
        nova.register(host, CELL);
    }
    nova.register("elsewhere", "nova-cell2");
    let (server, stopped) = (nova.boot("guest", "one")?, nova.boot("off", "one")?);
    nova.set_vm_state(&stopped, "stopped")?;
    let on = |host: &str| -> Result<Vec<Value>> {
        let path = format!("/v2.1/servers/detail?all_tenants=1&host={host}");
        let servers = nova.ask("GET", &path, None)?["servers"].take();
        Ok(servers.as_array().cloned().unwrap_or_default())
    };
    let migrate = |server: &str| {
        let body = json!({ "os-migrateLive": { "host": null, "block_migration": "auto" } });
        nova.ask("POST", &format!("/v2.1/servers/{server}/action"), Some(body))
    };
    assert_eq!(on("one")?.len(), 2);
    assert_eq!(rejected(migrate(&stopped)), "409");
    nova.hold_migrations(true);
    migrate(&server)?;
    assert_eq!(on("one")?[1]["OS-EXT-STS:task_state"], "migrating", "the newest is the first");
    assert_eq!(rejected(migrate(&server)), "409");
    let open = |host: &str| -> Result<Value> {
        let path = format!("/v2.1/os-migrations?host={host}");
        Ok(nova.ask("GET", &path, None)?["migrations"].take())
    };
    for host in ["one", "two"] {
        assert_eq!(open(host)?[0]["status"], "running", "{host}");
    }
    assert_eq!(open("elsewhere")?, json!([]));
    nova.finish_migrations();
    assert_eq!(open("one")?[0]["status"], "completed");
    assert_eq!((on("one")?.len(), on("two")?.len()), (1, 1));
    let page = nova.ask("GET", "/v2.1/servers/detail?all_tenants=1&limit=1", None)?;
    assert!(page["servers_links"][0]["href"].as_str().is_some_and(|it| it.contains("marker=")));
    nova.hold_migrations(false);
    nova.report("one", false);
    migrate(&server)?;
    assert_eq!((on("two")?.len(), open("two")?[0]["status"].as_str()), (1, Some("error")));
    nova.answer_for_cell(CELL, false);
    assert_eq!((on("one")?.len(), open("one")?), (0, json!([])));
    Ok(())
}

#[tokio::test]
async fn a_deleted_server_that_may_be_restored_is_on_its_host() -> Result<()> {
    let (nova, compute, _keystone) = cloud().await?;
    nova.register("one", CELL);
    let server = nova.boot("guest", "one")?;
    nova.set_vm_state(&server, "soft-delete")?;
    let page = nova.ask("GET", "/v2.1/servers?all_tenants=1&host=one", None)?;
    assert_eq!(page["servers"], json!([]), "nova leaves it out unless it is asked for");
    assert_eq!(compute.servers_on("one").await?, [server.as_str()]);
    let states = compute.server_states_on("one").await?;
    assert_eq!((&states[0].id, states[0].vm_state.as_str()), (&server, "soft-delete"));
    Ok(())
}

#[tokio::test]
async fn a_share_is_dropped_with_the_consumers_generation_and_others_stay() -> Result<()> {
    let (nova, compute, _keystone) = cloud().await?;
    for host in ["one", "two"] {
        nova.register(host, CELL);
        nova.allocate("consumer", host)?;
    }
    let nodes: Vec<String> = compute.hypervisors().await?.into_iter().map(|it| it.id).collect();
    let id = known(&compute, "one").await?.id;
    nova.ask("DELETE", &format!("/v2.1/os-services/{id}"), None)?;
    let named = nova.ask("GET", "/placement/resource_providers?name=one", None)?;
    assert_eq!(named["resource_providers"][0]["uuid"], json!(nodes[0]), "the provider stayed");
    let provider = format!("/placement/resource_providers/{}", nodes[0]);
    assert_eq!(rejected(nova.ask("DELETE", &provider, None)), "409");
    let shares = nova.ask("GET", &format!("{provider}/allocations"), None)?;
    ensure!(shares["allocations"]["consumer"]["resources"]["VCPU"] == 1, "{shares}");
    let mut all = nova.ask("GET", "/placement/allocations/consumer", None)?;
    let generation = all["consumer_generation"].take();
    all["allocations"].as_object_mut().context("no allocations")?.remove(&nodes[0]);
    let put = |all: &Value| nova.ask("PUT", "/placement/allocations/consumer", Some(all.clone()));
    assert_eq!(rejected(put(&all)), "409", "without the generation");
    all["consumer_generation"] = generation;
    put(&all)?;
    nova.ask("DELETE", &provider, None)?;
    assert_eq!(rejected(nova.ask("GET", &provider, None)), "404");
    let left = nova.ask("GET", "/placement/allocations/consumer", None)?;
    assert_eq!(left["allocations"].as_object().map(serde_json::Map::len), Some(1), "{left}");
    Ok(())
}

#[tokio::test]
async fn agents_are_listed_by_host_and_deleted_once() -> Result<()> {
    let (nova, _compute, _keystone) = cloud().await?;
    let agent = nova.add_agent("one", "neutron-openvswitch-agent");
    nova.add_agent("two", "neutron-openvswitch-agent");
    let found = nova.ask("GET", "/network/v2.0/agents?host=one", None)?;
    assert_eq!(found["agents"][0]["id"], json!(agent));
    assert_eq!(found["agents"].as_array().map(Vec::len), Some(1));
    let path = format!("/network/v2.0/agents/{agent}");
    nova.ask("DELETE", &path, None)?;
    assert_eq!(rejected(nova.ask("DELETE", &path, None)), "404");
    // One that runs comes back.
    nova.register("three", CELL);
    let agent = nova.add_agent("three", "ovn-controller");
    nova.ask("DELETE", &format!("/network/v2.0/agents/{agent}"), None)?;
    let found = nova.ask("GET", "/network/v2.0/agents?host=three&binary=ovn-controller", None)?;
    assert_eq!(found["agents"][0]["agent_type"], "OVN Controller agent");
    Ok(())
}

#[tokio::test]
async fn the_clients_remove_a_host_with_a_share_that_is_left_and_its_agents() -> Result<()> {
    let (nova, compute, keystone) = cloud().await?;
    let user = UserInProject {
        user: "nova",
        user_domain: "Default",
        project: "service",
        project_domain: "Default",
    };
    let url = tokens_url(&keystone.url()).context("no URL")?;
    let login = Arc::new(Login::new(url, user.identity("right")));
    let placement = Placement::new(Arc::clone(&login), http()?, "one");
    let network = Network::new(login, http()?, "one");
    nova.register("one", CELL);
    let server = nova.boot("server", "one")?;
    assert_eq!(compute.servers_on("one").await?, [server.as_str()]);
    nova.delete_server(&server);
    nova.allocate("00000000-0000-4000-8000-00000000000a", "one")?;
    nova.add_agent("one", "neutron-ovn-metadata-agent");
    nova.report("one", false);
    compute.delete_service(&known(&compute, "one").await?.id).await?;
    let provider = placement.provider_named("one").await?.context("its provider is kept")?;
    for consumer in placement.allocations_of(&provider.uuid).await? {
        placement.drop_share(&consumer, &provider.uuid).await?;
    }
    placement.delete_provider(&provider.uuid).await?;
    ensure!(placement.provider(&provider.uuid).await?.is_none(), "it is deleted");
    for agent in network.agents_on("one").await? {
        ensure!(!agent.is_alive, "its host is down");
        network.delete_agent(&agent.id).await?;
    }
    ensure!(network.agents_on("one").await?.is_empty(), "they are deleted");
    Ok(())
}

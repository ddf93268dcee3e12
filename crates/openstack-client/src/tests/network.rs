//! Tests of the client of neutron.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use testkit::http_server::{Asked, ok, server, token};

use super::{Answer, after_negotiation, http, keystone_and, login, paths, requests};
use crate::{Agent, Error, Fault, Network, Service};

/// Neutron's description of itself.
const VERSIONS: &str = r#"{"versions": [{"id": "v2.0", "status": "CURRENT", "links": []}]}"#;

async fn cloud(neutron: impl Fn(&str) -> Answer + Send + 'static) -> (Network, Asked) {
    let (address, asked) =
        keystone_and(
            move |text| {
                if text.starts_with("get /network/ ") { ok(VERSIONS) } else { neutron(text) }
            },
        )
        .await;
    (Network::new(login(address), http(), "one"), asked)
}

fn of_neutron(error: Error) -> Fault {
    Fault::of(Service::Network, error)
}

#[tokio::test]
async fn the_agents_of_a_host_are_read_and_deleted_without_a_microversion() {
    let (network, asked) = cloud(|text| {
        if text.starts_with("delete ") {
            return (204, String::new(), String::new());
        }
        ok(r#"{"agents": [{"id": "chassis-1", "agent_type": "OVN Controller agent",
            "binary": "ovn-controller", "alive": false, "host": "a&b"}]}"#)
    })
    .await;
    let agent = Agent {
        id: "chassis-1".into(),
        agent_type: "OVN Controller agent".into(),
        binary: "ovn-controller".into(),
        is_alive: false,
    };
    assert_eq!(network.agents_on("a&b").await.unwrap(), [agent]);
    network.delete_agent("chassis-1").await.unwrap();
    let expected = ["get /network/v2.0/agents?host=a%26b", "delete /network/v2.0/agents/chassis-1"];
    assert_eq!(after_negotiation(&asked), expected);
    let last = asked.lock().last().unwrap().clone();
    assert!(last.contains("x-auth-token: secret-token\r\n"), "{last}");
    assert!(!last.contains("openstack-api-version"), "{last}");
}

#[tokio::test]
async fn an_agent_that_is_gone_is_deleted_and_one_in_use_conflicts() {
    let error = |status: u16| {
        let body = r#"{"NeutronError": {"type": "Any", "message": "the\ncause", "detail": ""}}"#;
        (status, String::new(), body.to_owned())
    };
    let (network, _) = cloud(move |_| error(404)).await;
    assert_eq!(network.delete_agent("a0").await, Ok(()));
    let (network, _) = cloud(move |_| error(409)).await;
    let fault = network.delete_agent("a0").await.unwrap_err();
    assert_eq!(fault, of_neutron(Error::Conflict("the cause".into())));
    assert_eq!(fault.to_string(), "neutron reports a conflict: the cause");
}

#[tokio::test]
async fn what_does_not_describe_itself_as_neutron_gets_no_other_request() {
    for document in ["{}", r#"{"versions": [{"id": "v3"}]}"#, "<html>"] {
        let (address, asked) = keystone_and(move |_| ok(document)).await;
        let network = Network::new(login(address), http(), "one");
        let fault = network.delete_agent("a0").await.unwrap_err();
        assert_eq!(fault, of_neutron(Error::NotTheService), "{document}");
        assert_eq!(paths(&asked), ["/v3/auth/tokens", "/network/"]);
    }
}

#[tokio::test]
async fn a_change_that_is_repeated_with_a_new_token_stays_at_its_endpoint() {
    let n_tokens = AtomicUsize::new(0);
    let (address, asked) = server(move |text| {
        if text.starts_with("post /v3/auth/tokens ") {
            let path = ["/network", "/elsewhere"][n_tokens.fetch_add(1, Relaxed)];
            token(text, "one", &[("network", path)])
        } else if text.starts_with("get ") {
            ok(VERSIONS)
        } else {
            (401, String::new(), String::new())
        }
    })
    .await;
    let network = Network::new(login(address), http(), "one");
    assert_eq!(network.delete_agent("a0").await, Err(of_neutron(Error::Unauthorized)));
    let (tokens, agent) = ("/v3/auth/tokens", "/network/v2.0/agents/a0");
    assert_eq!(paths(&asked), [tokens, "/network/", agent, tokens]);
}

#[tokio::test]
async fn garbage_and_ids_that_lead_elsewhere_are_not_neutrons() {
    for body in [
        "<html>",
        "{}",
        r#"{"agents": [{"id": "..", "agent_type": "t", "binary": "b", "alive": true}]}"#,
        r#"{"agents": [{"id": "a/b", "agent_type": "t", "binary": "b", "alive": true}]}"#,
        r#"{"agents": [{"id": "a0", "agent_type": "t", "binary": "b", "alive": ":-)"}]}"#,
    ] {
        let (network, _) = cloud(move |_| ok(body)).await;
        assert_eq!(network.agents_on("one").await, Err(of_neutron(Error::NotTheService)), "{body}");
    }
    let (network, asked) = cloud(|_| (204, String::new(), String::new())).await;
    let refused = of_neutron(Error::Refused("../x is not an id".into()));
    assert_eq!(network.delete_agent("../x").await, Err(refused));
    assert_eq!(requests(&asked), Vec::<String>::new());
}

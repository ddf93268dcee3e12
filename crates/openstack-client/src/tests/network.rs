//! Tests of the client of neutron.

use operator_runtime::tls_stream::CaTrust;
use testkit::http_server::{Asked, ok};

use super::{Answer, keystone_and, login, paths, requests};
use crate::{Agent, Error, Fault, Network, Service};

async fn cloud(neutron: impl Fn(&str) -> Answer + Send + 'static) -> (Network, Asked) {
    let (address, asked) = keystone_and(neutron).await;
    (Network::new(login(address), CaTrust::new(None).unwrap(), "one"), asked)
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
    assert_eq!(requests(&asked)[1..], expected);
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
async fn a_cloud_without_neutron_has_no_endpoint() {
    let (address, _) = keystone_and(|_| ok("{}")).await;
    let network = Network::new(login(address), CaTrust::new(None).unwrap(), "two");
    let expected = of_neutron(Error::NoEndpoint { region: "two".into() });
    assert_eq!(network.agents_on("one").await, Err(expected));
}

#[tokio::test]
async fn a_rejected_token_is_renewed_once_for_a_write_too() {
    let (network, asked) = cloud(|_| (401, String::new(), String::new())).await;
    assert_eq!(network.delete_agent("a0").await, Err(of_neutron(Error::Unauthorized)));
    let all = paths(&asked);
    let count = |part: &str| all.iter().filter(|it| it.contains(part)).count();
    assert_eq!((count("/auth/tokens"), count("/agents/a0")), (2, 2));
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

//! For tests: how a Keystone, nova, placement and neutron at one local address are used.

use std::net::SocketAddr;
use std::sync::Arc;

use nova_config::conf::{CellInput, CellView, SecretView};
use openstack_client::keystone::{UserInProject, tokens_url};
use openstack_client::{Compute, Login, Network, Placement};
use operator_runtime::http_client::HttpClients;
use operator_runtime::lease::{Leadership, LeadershipWatch};
use operator_runtime::metrics::Metrics;
use operator_runtime::tls_stream::CaTrust;
use serde_json::{Map, Value, json};
use testkit::http_server;
use tokio::sync::watch;

use crate::nova::drain::remove::Apis;
use crate::nova::metrics::NovaMetrics;
use crate::nova::monitor::ClientSettings;

/// The region of cells that name none.
const REGION: &str = "regionOne";

/// Returns the response to a login, with a catalog of these services by type and path.
pub(crate) fn token(request: &str, services: &[(&str, &str)]) -> (u16, String, String) {
    http_server::token(request, REGION, services)
}

/// Returns the leadership of a process that leads for good.
pub(crate) fn leads() -> LeadershipWatch {
    watch::channel(Leadership::Leading { term: "me/0".to_owned(), until: None }).1
}

/// Returns how clients of local servers are made.
pub(crate) fn settings(metrics: &Metrics, leadership: LeadershipWatch) -> ClientSettings {
    ClientSettings {
        metrics: NovaMetrics::register(metrics),
        leadership,
        http: HttpClients::with_loopback(),
    }
}

/// Returns the clients of the services at an address.
pub(crate) fn apis(address: SocketAddr) -> Apis {
    let user = UserInProject {
        user: "nova",
        user_domain: "Default",
        project: "service",
        project_domain: "Default",
    };
    let url = tokens_url(&format!("http://{address}")).unwrap();
    let login = Arc::new(Login::new(url, user.identity("password")));
    let http = HttpClients::with_loopback().of("ns", CaTrust::new(None).unwrap());
    Apis {
        compute: Compute::new(Arc::clone(&login), http.clone(), REGION),
        placement: Placement::new(Arc::clone(&login), http.clone(), REGION),
        network: Network::new(login, http, REGION),
    }
}

/// Returns a `NovaCell` of the namespace `ns` whose Keystone is at an address.
pub(crate) fn nova_cell(name: &str, address: SocketAddr) -> Value {
    json!({
        "apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaCell",
        "metadata": {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": "1"},
        "spec": {
            "cellName": name, "secret": "nova-cell1", "cellMessageBusSecretName": "bus",
            "keystoneAuthURL": format!("http://{address}"), "cellDatabaseHostname": "db",
            "conductorServiceTemplate": {}, "noVNCProxyServiceTemplate": {},
            "serviceAccount": "nova",
        },
    })
}

/// Returns the inputs of a cell whose Keystone is at an address.
pub(crate) fn view(address: SocketAddr, password: &str) -> CellView {
    CellView::read(&CellInput {
        keystone_auth_url: &format!("http://{address}"),
        service_user: "nova",
        secret: SecretView {
            namespace: "ns",
            name: "nova-cell1",
            data: [("ServicePassword", password.as_bytes())].into(),
        },
        message_bus: SecretView {
            namespace: "ns",
            name: "bus",
            data: [("transport_url", &b"rabbit://nova:bus@192.0.2.2/v"[..])].into(),
        },
        is_ca_bundle: CaTrust::is_bundle,
    })
    .unwrap()
}

/// The response of a service: status, headers and body.
pub(crate) type Answer = (u16, String, String);

/// Returns a response with a body, or without one for `null`.
pub(crate) fn said(status: u16, body: &Value) -> Answer {
    (status, String::new(), if body.is_null() { String::new() } else { body.to_string() })
}

/// Splits a request into its line and its body.
pub(crate) fn line_and_body(request: &str) -> (&str, &str) {
    let line = request.lines().next().unwrap_or_default().trim_end_matches(" http/1.1");
    (line, request.split_once("\r\n\r\n").map(|it| it.1).unwrap_or_default())
}

/// Returns a response with the microversion that nova or placement has used for the request.
pub(crate) fn with_version(line: &str, (status, _, body): Answer) -> Answer {
    let version = if line.contains(" /placement/") { "placement 1.36" } else { "compute 2.69" };
    (status, format!("OpenStack-API-Version: {version}\r\n"), body)
}

/// Returns the versions that nova, placement or neutron describes itself with; `None` for another
/// request.
pub(crate) fn versions(line: &str) -> Option<Answer> {
    let body = match line {
        "get /v2.1/" => json!({"version": {"version": "2.100", "min_version": "2.1"}}),
        "get /placement/" => json!({"versions": [
            {"id": "v1.0", "max_version": "1.39", "min_version": "1.0"},
        ]}),
        "get /network/" => json!({"versions": [{"id": "v2.0", "status": "CURRENT"}]}),
        _ => return None,
    };
    Some(said(200, &body))
}

/// Returns a page of active servers: the first one has all, and any further one none.
pub(crate) fn servers(ids: &[&str], query: &str) -> Answer {
    let server = |id: &&str| {
        json!({
            "id": id, "name": id, "status": "ACTIVE", "OS-EXT-STS:task_state": null,
            "OS-EXT-STS:vm_state": "active", "config_drive": "",
        })
    };
    let page = ids.iter().filter(|_| !query.contains("marker=")).map(server);
    said(200, &json!({"servers": page.collect::<Vec<_>>()}))
}

/// Returns the shares that consumers have of a provider.
pub(crate) fn shares(consumers: &[&str]) -> Answer {
    let share = json!({"resources": {"VCPU": 1}});
    let shares = consumers.iter().map(|it| ((*it).to_owned(), share.clone()));
    let shares = shares.collect::<Map<_, _>>();
    said(200, &json!({"allocations": shares, "resource_provider_generation": 3}))
}

/// Returns the shares of a consumer: one of a provider, and one of provider `c9`.
pub(crate) fn consumer(provider: &str) -> Answer {
    let share = json!({"resources": {"VCPU": 1}});
    let body = json!({
        "allocations": {provider: share, "c9": share}, "project_id": "p", "user_id": "u",
        "consumer_generation": 7,
    });
    said(200, &body)
}

/// Asserts that a write leaves such a consumer its share of provider `c9` alone.
#[track_caller]
pub(crate) fn assert_other_share_stays(body: &str) {
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["consumer_generation"], 7, "{body}");
    let kept: Vec<&String> = body["allocations"].as_object().unwrap().keys().collect();
    assert_eq!(kept, ["c9"], "the share of the other provider stays");
}

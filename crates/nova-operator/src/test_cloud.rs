//! For tests: how a Keystone, nova, placement and neutron at one local address are used.

use std::net::SocketAddr;
use std::sync::Arc;

use nova_config::conf::{CellInput, CellView, SecretView};
use openstack_client::keystone::{UserInProject, tokens_url};
use openstack_client::{Compute, Login, Network, Placement};
use operator_runtime::tls_stream::CaTrust;
use testkit::http_server;

use crate::drain::remove::Apis;

/// The region of cells that name none.
const REGION: &str = "regionOne";

/// Returns the response to a login, with a catalog of these services by type and path.
pub(crate) fn token(request: &str, services: &[(&str, &str)]) -> (u16, String, String) {
    http_server::token(request, REGION, services)
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
    let trust = || CaTrust::new(None).unwrap();
    Apis {
        compute: Compute::new(Arc::clone(&login), trust(), REGION),
        placement: Placement::new(Arc::clone(&login), trust(), REGION),
        network: Network::new(login, trust(), REGION),
    }
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

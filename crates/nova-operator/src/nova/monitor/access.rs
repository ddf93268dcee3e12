//! How a cell reaches nova's API: what cells have in common that share a reader.

use std::sync::Arc;
use std::time::Duration;

use api::nova::RegisteredNova;
use nova_config::conf::CellView;
use openstack_client::keystone::{UserInProject, application_credential, root_url, tokens_url};
use openstack_client::{Compute, Login, Network, Placement};
use operator_core::hash;
use operator_runtime::http_client::HttpClients;
use operator_runtime::lease::LeadershipWatch;
use operator_runtime::tls_stream::CaTrust;

use crate::nova::drain::remove::Apis;
use crate::nova::metrics::NovaMetrics;

/// Pause after a refused login, for all that use the API.
const REFUSED: Duration = Duration::from_mins(5);

/// What all clients of nova, placement and neutron are made with.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The metrics of nova, which count their requests.
    pub metrics: NovaMetrics,
    /// Whether the process leads: they change something only while it does.
    pub leadership: LeadershipWatch,
    /// How their requests are sent.
    pub http: HttpClients,
}

/// What of a cell decides which reader it uses.
#[derive(Clone, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Access {
    /// See [`root_url`]: two spellings of one Keystone are one.
    auth_url: String,
    user: [String; 4],
    password: String,
    /// Id and secret of the application credential that logs in in place of user and password.
    application_credential: Option<[String; 2]>,
    region: String,
    /// A digest of the CA certificates, which are long.
    ca_bundle: Option<String>,
}

impl Access {
    /// Returns the access of a cell with these inputs.
    pub(crate) fn of(view: &CellView) -> Self {
        let text = |it: &nova_config::oslo::Value| it.text().to_owned();
        Self {
            auth_url: root_url(view.keystone_auth_url.text()).to_owned(),
            user: [&view.service_user, &view.user_domain, &view.project, &view.project_domain]
                .map(text),
            password: text(&view.service_password),
            application_credential: view
                .application_credential
                .as_ref()
                .map(|it| [&it.id, &it.secret].map(text)),
            region: text(&view.region),
            ca_bundle: view.ca_bundle.as_ref().map(hash::of_bytes),
        }
    }

    /// Whether both use the same API, as any users.
    pub(crate) fn has_api_of(&self, other: &Self) -> bool {
        (&self.auth_url, &self.region) == (&other.auth_url, &other.region)
    }

    /// Returns the nova, as computes record it.
    pub(crate) fn registered_nova(&self) -> RegisteredNova {
        RegisteredNova { keystone_auth_url: self.auth_url.clone(), region: self.region.clone() }
    }

    /// Returns clients for cells that trust these CA certificates, to the memory of whose namespace their
    /// answers count; `None` where URL or certificates cannot be used.
    pub(crate) fn apis(
        &self,
        ca_bundle: Option<&str>,
        settings: &ClientSettings,
        namespace: &str,
    ) -> Option<Apis> {
        let [user, user_domain, project, project_domain] = &self.user;
        let identity = match &self.application_credential {
            Some([id, secret]) => application_credential(id, secret),
            None => UserInProject { user, user_domain, project, project_domain }
                .identity(&self.password),
        };
        let trust = CaTrust::new(ca_bundle).ok()?;
        let login = Login::new(tokens_url(&self.auth_url)?, identity).pausing(REFUSED);
        let login = Arc::new(login.leading(settings.leadership.clone()));
        let http = settings.http.of(namespace, trust);
        let compute = Compute::new(Arc::clone(&login), http.clone(), &self.region);
        Some(Apis {
            compute: compute.counted(settings.metrics.requests()),
            placement: Placement::new(Arc::clone(&login), http.clone(), &self.region),
            network: Network::new(login, http, &self.region),
        })
    }
}

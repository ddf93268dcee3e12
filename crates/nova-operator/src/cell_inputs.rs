//! The inputs that a cell gives to each of its computes: as a view, and each with its digest.

use std::collections::BTreeMap;

use api::nova::Cell;
use kube::ResourceExt;
use nova_config::conf::{
    AC_ID, AC_SECRET, CA_BUNDLE, CellFault, CellInput, CellView, NO_VNC_PROXY_URL,
    NOTIFICATION_TRANSPORT_URL, PROJECT_DOMAIN, PROJECT_NAME, QUORUM_QUEUES, REGION_NAME,
    SERVICE_PASSWORD, SecretView, TRANSPORT_URL, USER_DOMAIN, is_set,
};
use operator_core::hash;
use operator_core::keyed::Inputs;
use operator_runtime::source_cache::Content;
use operator_runtime::tls_stream::CaTrust;

/// Key in `status.hash` of a cell: the digest of the inputs of the last probes.
pub const CREDENTIALS: &str = "credentials";

/// Prefix of the names of inputs that are fields of a cell.
const OF_CELL: &str = "NovaCell ";
/// Prefix of the names of inputs that are keys of a cell's Secrets; no other Secret is an input.
const OF_SECRET: &str = "Secret ";

/// The keys of a cell's Secret that the files of a compute are made from.
const CELL_KEYS: [&str; 8] = [
    SERVICE_PASSWORD,
    REGION_NAME,
    PROJECT_DOMAIN,
    USER_DOMAIN,
    PROJECT_NAME,
    CA_BUNDLE,
    NO_VNC_PROXY_URL,
    QUORUM_QUEUES,
];

/// The keys that are inputs only where they are set: operators of cells write them empty too.
const OPTIONAL_KEYS: [&str; 3] = [AC_ID, AC_SECRET, NOTIFICATION_TRANSPORT_URL];

/// Returns the cell as computes use it; `None` while a Secret is missing.
pub fn view(
    cell: &Cell,
    secret: Option<&Content>,
    message_bus: Option<&Content>,
) -> Option<Result<CellView, Vec<CellFault>>> {
    let spec = &cell.spec;
    let namespace = cell.metadata.namespace.as_deref().unwrap_or_default();
    Some(CellView::read(&CellInput {
        is_ca_bundle: CaTrust::is_bundle,
        keystone_auth_url: &spec.keystone_auth_url,
        service_user: &spec.service_user,
        secret: secret_view(namespace, &spec.secret, secret?),
        message_bus: secret_view(namespace, &spec.cell_message_bus_secret_name, message_bus?),
    }))
}

fn secret_view<'a>(namespace: &'a str, name: &'a str, content: &'a Content) -> SecretView<'a> {
    SecretView { namespace, name, data: content.entries().collect() }
}

/// Returns the inputs of a cell: the addresses of its services and the credentials for them.
pub fn of_cell(cell: &Cell, secret: Option<&Content>, message_bus: Option<&Content>) -> Inputs {
    let name = cell.name_any();
    let fields = [
        ("keystoneAuthURL", &cell.spec.keystone_auth_url),
        ("serviceUser", &cell.spec.service_user),
    ];
    let mut inputs = Inputs::new();
    for (field, value) in fields.into_iter().filter(|(_, it)| !it.is_empty()) {
        inputs.insert(format!("{OF_CELL}{name} {field}"), hash::short(value).into());
    }
    add_keys(&mut inputs, &cell.spec.secret, secret, &CELL_KEYS);
    let has = |key: &&str| secret.and_then(|it| it.bytes(key)).is_some_and(is_set);
    let set: Vec<&str> = OPTIONAL_KEYS.into_iter().filter(has).collect();
    add_keys(&mut inputs, &cell.spec.secret, secret, &set);
    let bus = &cell.spec.cell_message_bus_secret_name;
    add_keys(&mut inputs, bus, message_bus, &[TRANSPORT_URL]);
    inputs
}

/// Returns the text of a key without the line breaks at its end; `None` where nothing is left.
pub fn line<'a>(secret: &'a Content, key: &str) -> Option<&'a str> {
    secret.text(key).map(|it| it.trim_end_matches(['\r', '\n'])).filter(|it| !it.is_empty())
}

/// Returns those of the recorded inputs that came from a cell.
pub fn of_cell_among(recorded: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_of_cell = |it: &str| it.starts_with(OF_CELL) || it.starts_with(OF_SECRET);
    let of_cell = recorded.iter().filter(|(name, _)| is_of_cell(name));
    of_cell.map(|(name, digest)| (name.clone(), digest.clone())).collect()
}

fn add_keys(inputs: &mut Inputs, secret: &str, content: Option<&Content>, keys: &[&str]) {
    let Some(content) = content else { return };
    for key in keys {
        if let Some(digest) = content.digest(key) {
            let name = format!("{OF_SECRET}{secret} {key}");
            inputs.insert(name, digest.map(hash::short::<str>));
        }
    }
}

//! The annotations of a cell that say who maps its hosts.

use api::names;
use api::nova::Cell;
use kube::ResourceExt;
use nova_config::annotations::{HOST_DISCOVERY, HOST_DISCOVERY_IMAGE, HOST_DISCOVERY_SECRET};

/// Maximum length of an image's reference, in bytes.
const IMAGE_LIMIT: usize = 512;

/// Who maps the hosts of a cell.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Discovery {
    /// Nova's administrator, or nova's scheduler.
    External,
    /// This operator.
    Operator(Settings),
    /// The annotations cannot be used, for this reason with the next step.
    Invalid(String),
}

/// What the operator discovers hosts with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Name of the Secret with nova's configuration.
    pub secret: String,
    /// The image with `nova-manage`.
    pub image: String,
}

/// Returns who maps the hosts of a cell.
pub fn discovery(cell: &Cell) -> Discovery {
    let annotations = cell.annotations();
    let value = |name: &str| annotations.get(name).map(String::as_str);
    match value(HOST_DISCOVERY) {
        None | Some("external") => return Discovery::External,
        Some("operator") => {}
        Some(_) => {
            let text = "it is external, which is the default, or operator";
            return Discovery::Invalid(invalid(cell, HOST_DISCOVERY, text));
        }
    }
    let secret = value(HOST_DISCOVERY_SECRET).unwrap_or_default();
    if !names::is_dns_subdomain(secret) {
        let text = "it is the name of a Secret in the namespace of the cell, whose keys ending in \
                    .conf are files of nova's configuration";
        return Discovery::Invalid(invalid(cell, HOST_DISCOVERY_SECRET, text));
    }
    let image = value(HOST_DISCOVERY_IMAGE).unwrap_or_default();
    if !is_image(image) {
        let text = "it is the reference of an image with nova-manage";
        return Discovery::Invalid(invalid(cell, HOST_DISCOVERY_IMAGE, text));
    }
    Discovery::Operator(Settings { secret: secret.to_owned(), image: image.to_owned() })
}

fn invalid(cell: &Cell, annotation: &str, legal: &str) -> String {
    format!(
        "Annotation {annotation} of NovaCell {} is missing or invalid, so its hosts are not \
         discovered: {legal}.",
        cell.name_any()
    )
}

fn is_image(text: &str) -> bool {
    let is_visible = text.bytes().all(|it| it.is_ascii_graphic());
    !text.is_empty() && text.len() <= IMAGE_LIMIT && is_visible
}

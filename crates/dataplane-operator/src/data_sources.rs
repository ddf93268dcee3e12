//! The ConfigMaps and Secrets that services name.

use common::api::dataplane::ServiceSpec;
use common::api::shared::DataSource;
use shell::cache::Key;
use shell::sources::SourceRef;

/// A ConfigMap or Secret that a service names.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Named {
    /// Whether it is a Secret; else a ConfigMap.
    pub is_secret: bool,
    /// Its name.
    pub name: String,
    /// Whether the service works without it.
    pub is_optional: bool,
}

impl Named {
    /// What an entry names, if anything.
    pub fn of(entry: &DataSource) -> Option<Self> {
        let (is_secret, source) = entry.object()?;
        let (name, is_optional) = (source.name.clone(), source.optional.unwrap_or(false));
        Some(Self { is_secret, name, is_optional })
    }

    /// Whether it is the object that another one names.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.is_secret, &self.name) == (other.is_secret, &other.name)
    }

    /// A Secret that must be there.
    pub fn secret(name: &str) -> Self {
        Self { is_secret: true, name: name.to_owned(), is_optional: false }
    }

    /// Its address.
    pub fn source(&self, namespace: &str) -> SourceRef {
        SourceRef { is_secret: self.is_secret, key: Key::new(namespace, &self.name) }
    }

    /// Its [`title`].
    pub fn title(&self) -> String {
        title(self.is_secret, &self.name)
    }
}

/// `Secret x` or `ConfigMap x`.
pub fn title(is_secret: bool, name: &str) -> String {
    format!("{} {name}", if is_secret { "Secret" } else { "ConfigMap" })
}

/// The objects that a service names: `dataSources`, and the deprecated lists.
///
/// Where both references of an entry are set, the ConfigMap is taken.
pub fn sources_of(spec: &ServiceSpec) -> Vec<Named> {
    let sources = spec.data_sources.iter().filter_map(Named::of);
    let config_map = |it: &String| Named { is_secret: false, name: it.clone(), is_optional: false };
    let config_maps = spec.config_maps.iter().map(config_map);
    let secrets = spec.secrets.iter().map(|it| Named::secret(it));
    sources.chain(config_maps).chain(secrets).collect()
}

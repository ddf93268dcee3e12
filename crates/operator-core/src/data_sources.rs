//! The ConfigMaps and Secrets that services name.

use api::dataplane::ServiceSpec;
use api::shared::DataSource;

use crate::object_key::Key;

/// A ConfigMap or Secret by name.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SourceRef {
    /// Whether it is a Secret; else a ConfigMap.
    pub is_secret: bool,
    /// Where it is.
    pub key: Key,
}

impl SourceRef {
    /// A Secret.
    pub fn secret(namespace: &str, name: &str) -> Self {
        Self { is_secret: true, key: Key::new(namespace, name) }
    }

    /// A ConfigMap.
    pub fn config_map(namespace: &str, name: &str) -> Self {
        Self { is_secret: false, key: Key::new(namespace, name) }
    }
}

/// A ConfigMap or Secret that a service names.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NamedSource {
    /// Whether it is a Secret; else a ConfigMap.
    pub is_secret: bool,
    /// Its name.
    pub name: String,
    /// Whether the service works without it.
    pub is_optional: bool,
}

impl NamedSource {
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
pub fn sources_of(spec: &ServiceSpec) -> Vec<NamedSource> {
    let sources = spec.data_sources.iter().filter_map(NamedSource::of);
    let config_map =
        |it: &String| NamedSource { is_secret: false, name: it.clone(), is_optional: false };
    let config_maps = spec.config_maps.iter().map(config_map);
    let secrets = spec.secrets.iter().map(|it| NamedSource::secret(it));
    sources.chain(config_maps).chain(secrets).collect()
}

/// The logical type of a service: the folder of its data sources in the pod.
pub fn service_type(spec: &ServiceSpec, name: &str) -> String {
    spec.edpm_service_type.clone().unwrap_or_else(|| name.to_owned())
}

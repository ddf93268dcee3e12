//! The ConfigMaps and Secrets that services name.

use api::dataplane::ServiceSpec;
use api::shared::{DataSource, SourceKind};

use crate::object_key::Key;

/// A ConfigMap or Secret, by namespace and name.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SourceRef {
    /// Its kind.
    pub kind: SourceKind,
    /// Namespace and name.
    pub key: Key,
}

impl SourceRef {
    /// References a Secret.
    pub fn secret(namespace: &str, name: &str) -> Self {
        Self { kind: SourceKind::Secret, key: Key::new(namespace, name) }
    }

    /// References a ConfigMap.
    pub fn config_map(namespace: &str, name: &str) -> Self {
        Self { kind: SourceKind::ConfigMap, key: Key::new(namespace, name) }
    }
}

/// A ConfigMap or Secret that a service names.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NamedSource {
    /// Its kind.
    pub kind: SourceKind,
    /// Its name, in the namespace of the service.
    pub name: String,
    /// Whether the service works without it.
    pub is_optional: bool,
}

impl NamedSource {
    /// Returns the object that an entry names; `None` when it names none.
    pub fn of(entry: &DataSource) -> Option<Self> {
        let (kind, source) = entry.object()?;
        let (name, is_optional) = (source.name.clone(), source.optional.unwrap_or(false));
        Some(Self { kind, name, is_optional })
    }

    /// Returns whether both name the same object.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.name) == (other.kind, &other.name)
    }

    /// Names a required Secret.
    pub fn secret(name: &str) -> Self {
        Self { kind: SourceKind::Secret, name: name.to_owned(), is_optional: false }
    }

    /// Returns the object's reference in `namespace`.
    pub fn source(&self, namespace: &str) -> SourceRef {
        SourceRef { kind: self.kind, key: Key::new(namespace, &self.name) }
    }

    /// Returns `Secret x` or `ConfigMap x`.
    pub fn title(&self) -> String {
        self.kind.title(&self.name)
    }
}

/// Returns the objects that a service names, in `dataSources` and in the deprecated lists.
///
/// If both references of an entry are set, the ConfigMap is used.
pub fn sources_of(spec: &ServiceSpec) -> Vec<NamedSource> {
    let sources = spec.data_sources.iter().filter_map(NamedSource::of);
    let config_map = |it: &String| NamedSource {
        kind: SourceKind::ConfigMap,
        name: it.clone(),
        is_optional: false,
    };
    let config_maps = spec.config_maps.iter().map(config_map);
    let secrets = spec.secrets.iter().map(|it| NamedSource::secret(it));
    sources.chain(config_maps).chain(secrets).collect()
}

/// Returns the logical type of a service, which is the folder of its data sources in the pod.
///
/// Defaults to the service's name.
pub fn service_type(spec: &ServiceSpec, name: &str) -> String {
    spec.edpm_service_type.clone().unwrap_or_else(|| name.to_owned())
}

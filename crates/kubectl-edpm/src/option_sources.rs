//! The sources of a host's nova configuration: a `NovaExternalCompute`, or a service of type nova.

use api::dataplane::Service;
use api::nova::ExternalCompute;
use k8s_openapi::api::core::v1::Secret;
use nova_config::conf::{DEFAULT_FILE, OVERRIDE_FILE};
use operator_core::data_sources::NamedSource as Source;

use crate::cluster::Read;
use crate::config_files::{Content, File, is_read};
use crate::option_names::OptionNames;

/// The source of a host's nova configuration.
pub enum ConfigPath<'a> {
    /// A `NovaExternalCompute`, which the operator deploys.
    Compute(Box<Options<'a>>),
    /// A service of type nova.
    Service(Box<ServiceSources>),
}

/// The default configuration that a node or its role names.
#[derive(Clone, Debug)]
pub struct DefaultConfig {
    /// The name of the ConfigMap.
    pub name: String,
    /// Its key and text, if they could be read.
    pub text: Read<(String, String)>,
}

/// The sources of a compute's configuration.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The compute.
    pub compute: &'a ExternalCompute,
    /// The default configuration that its node or role names, if any.
    pub default_config: Option<DefaultConfig>,
    /// The Secret with the rendered files.
    pub secret: Read<Secret>,
}

impl Options<'_> {
    /// Returns the texts that users have written, as far as they can be read, each with the file that
    /// is rendered from it.
    pub fn written(&self) -> Vec<(&'static str, &str)> {
        let custom = self.compute.spec.custom_service_config.as_deref().unwrap_or_default();
        let default = self.default_config.as_ref().and_then(|it| it.text.found());
        let default = default.map(|(_, text)| (DEFAULT_FILE, text.as_str()));
        [(OVERRIDE_FILE, custom)].into_iter().chain(default).collect()
    }
}

/// A service of type nova, with its sources.
#[derive(Clone, Debug)]
pub struct ServiceSources {
    /// The service.
    pub service: Service,
    /// Its ConfigMaps and Secrets in order, each with all keys.
    pub sources: Vec<(Source, Read<Content>)>,
    /// Keys of other ConfigMaps in the namespace that set the option, filled only when no source
    /// sets it.
    pub beside: Vec<File>,
    /// Whether the host lists it.
    pub is_listed: bool,
    /// The service of type nova that the host lists before it, if any.
    pub conflicting_service: Option<String>,
    /// The services that the host lists and that do not exist.
    pub absent: Vec<String>,
}

impl ServiceSources {
    /// Returns the files of all sources that could be read.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.sources.iter().filter_map(|(_, it)| it.found()).flat_map(|it| &it.files)
    }

    /// Whether a source sets the option, in this file if one is named.
    pub fn sets(&self, named: &OptionNames, file: Option<&str>) -> bool {
        let is_asked = |it: &&File| file.is_none_or(|file| it.name == file);
        self.files().filter(is_asked).any(|it| named.is_in(it))
    }

    /// Returns the files that nova-compute would read, in its order, or `None` when the user may
    /// not read a source.
    pub fn read(&self) -> Option<Vec<File>> {
        if self.sources.iter().any(|(_, it)| matches!(it, Read::Refused(_))) {
            return None;
        }
        let mut files: Vec<File> = self.files().filter(|it| is_read(&it.name)).cloned().collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Some(files)
    }
}

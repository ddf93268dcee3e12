//! What nova's files of a host are made from: a `NovaExternalCompute`, or a service of type nova.

use api::dataplane::Service;
use api::nova::ExternalCompute;
use k8s_openapi::api::core::v1::Secret;
use operator_core::data_sources::NamedSource as Source;

use crate::cluster::Read;
use crate::named::Named;
use crate::options::{Content, File, is_read};

/// What nova's files of a host are made from.
pub enum Road<'a> {
    /// A `NovaExternalCompute`.
    Compute(&'a Options<'a>),
    /// A service of type nova.
    Service(&'a Given),
}

/// A role's default configuration.
#[derive(Clone, Debug)]
pub struct DefaultConfig {
    /// The ConfigMap.
    pub name: String,
    /// Its key and text, where they could be read.
    pub text: Read<(String, String)>,
}

/// What the options of a compute are made from.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The compute.
    pub compute: &'a ExternalCompute,
    /// What its role names, if anything.
    pub default_config: Option<DefaultConfig>,
    /// The Secret with its files.
    pub secret: Read<Secret>,
}

/// A service of type nova, and what it is given.
#[derive(Clone, Debug)]
pub struct Given {
    /// The service.
    pub service: Service,
    /// Its ConfigMaps and Secrets in their order, each with all its keys.
    pub sources: Vec<(Source, Read<Content>)>,
    /// Keys of other ConfigMaps of the namespace that set the option, where no source does.
    pub beside: Vec<File>,
    /// Whether it is listed for the host.
    pub is_listed: bool,
    /// The service of type nova that is listed before it.
    pub conflicting_service: Option<String>,
    /// The services that are listed for the host and do not exist.
    pub absent: Vec<String>,
}

impl Given {
    /// The files that are known to be given to it.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.sources.iter().filter_map(|(_, it)| it.found()).flat_map(|it| &it.files)
    }

    /// Whether it is given the option, in a certain file where one is named.
    pub fn sets(&self, named: &Named, file: Option<&str>) -> bool {
        let is_asked = |it: &&File| file.is_none_or(|file| it.name == file);
        self.files().filter(is_asked).any(|it| !named.entries(&it.entries).is_empty())
    }

    /// What nova-compute would read, in its order; nothing where a source is not known.
    pub fn read(&self) -> Option<Vec<File>> {
        if self.sources.iter().any(|(_, it)| matches!(it, Read::Refused(_))) {
            return None;
        }
        let mut files: Vec<File> = self.files().filter(|it| is_read(&it.name)).cloned().collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Some(files)
    }
}

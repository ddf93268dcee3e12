//! The files of a compute, rendered from typed values, each with the source of its content.
//!
//! oslo.config reads the folder in the order of the names, and the last value counts:
//! `01-nova.conf` (from the cell) < `02-nova-default.conf` (from the role's annotation) <
//! `02-nova-override.conf` (from `spec.customServiceConfig`). `nova-blank.conf` replaces
//! `/etc/nova/nova.conf`, so that no options of the image are read before them. The text of a file
//! depends only on its content, so an unchanged file stays unchanged on the host.

mod cell;
mod host;
mod nova;

#[cfg(test)]
mod tests;

pub use cell::{
    AC_ID, AC_SECRET, ApplicationCredential, CA_BUNDLE, CellFault, CellFaultReason, CellInput,
    CellView, NO_VNC_PROXY_URL, NOTIFICATION_TRANSPORT_URL, PROJECT_DOMAIN, PROJECT_NAME,
    QUORUM_QUEUES, REGION_NAME, SERVICE_PASSWORD, SecretView, TRANSPORT_URL, USER_DOMAIN, is_set,
};
pub use host::HostView;
pub use nova::{fixed_options, says_how_to_stop};

use std::{collections::BTreeMap, fmt};

use crate::oslo::Release;

/// The options from the cell and the host.
pub const GENERATED_FILE: &str = "01-nova.conf";
/// The options from the role's default configuration.
pub const DEFAULT_FILE: &str = "02-nova-default.conf";
/// The options from `spec.customServiceConfig`.
pub const OVERRIDE_FILE: &str = "02-nova-override.conf";
/// Replaces the image's own `nova.conf`.
pub const BLANK_FILE: &str = "nova-blank.conf";
/// The certificate authorities of the cell's services.
pub const CA_BUNDLE_FILE: &str = "tls-ca-bundle.pem";

/// The object that a file's content comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The kind of the object.
    pub kind: String,
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

impl Source {
    /// Returns the source for an object.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name } = self;
        write!(f, "{kind} {namespace}/{name}")
    }
}

/// One file and its source. The content may hold secrets, so `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct File {
    /// The object that determines the content.
    pub source: Source,
    /// The whole text.
    pub content: String,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File(from {}, {} bytes)", self.source, self.content.len())
    }
}

/// A text that a user wrote, and the object that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The object that holds the text.
    pub source: Source,
    /// The text, unchanged.
    pub text: &'a str,
}

/// Everything that a compute's files are made from.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The cell.
    pub cell: &'a CellView,
    /// The `NovaCell`.
    pub cell_source: Source,
    /// The host.
    pub host: &'a HostView,
    /// The release of nova on the host, or `None` when unknown: unknown options are left out for
    /// it.
    pub release: Option<Release>,
    /// The role's default configuration, or `None` when no annotation names one.
    pub role_default: Option<Text<'a>>,
    /// `spec.customServiceConfig` of the `NovaExternalCompute`, empty if unset.
    pub custom: Text<'a>,
    /// `spec.defaultConfigOverwrite` of the same, by name.
    pub further: &'a BTreeMap<String, String>,
}

/// Returns the files of a compute by name.
pub fn files(input: &Input<'_>) -> BTreeMap<String, File> {
    let Input { cell, cell_source, host, release, role_default, custom, further } = input;
    let mut files = BTreeMap::new();
    let mut add = |name: &str, source: &Source, content: String| {
        files.insert(name.to_owned(), File { source: source.clone(), content });
    };
    let generated = format!(
        "{}# It is overridden by spec.customServiceConfig of {}.\n\n{}",
        header(cell_source),
        custom.source,
        nova::options(cell, Some((host, *release)))
    );
    add(GENERATED_FILE, cell_source, generated);
    if let Some(Text { source, text }) = role_default {
        add(DEFAULT_FILE, source, format!("{}{text}", header(source)));
    }
    let Text { source, text } = custom;
    add(OVERRIDE_FILE, source, format!("{}{text}", header(source)));
    add(BLANK_FILE, source, format!("{}# It is blank on purpose.\n", header(source)));
    if let Some(bundle) = &cell.ca_bundle {
        add(CA_BUNDLE_FILE, cell_source, format!("{}{bundle}", header(cell_source)));
    }
    for (name, text) in further.iter().filter(|(name, _)| further_fault(name).is_none()) {
        // Without a header: the format of the file is unknown and may not allow comments.
        add(name, source, text.clone());
    }
    files
}

/// Returns why a file of `spec.defaultConfigOverwrite` cannot have that name; `None` if it can.
pub fn further_fault(name: &str) -> Option<&'static str> {
    let is_options = name.contains("nova")
        && std::path::Path::new(name).extension().is_some_and(|it| it == "conf");
    if is_options {
        return Some("nova-compute would read it as options: write them into customServiceConfig");
    }
    let is_inner = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    if name.is_empty() || name.len() > 253 || name.starts_with('.') || !name.chars().all(is_inner) {
        return Some("a name has at most 253 letters, digits, -, _ and ., and begins with no dot");
    }
    let taken = [CA_BUNDLE_FILE, "ssh-privatekey", "ssh-publickey"];
    taken.contains(&name).then_some("the operator's own file has this name: take another one")
}

/// Whether nova-compute reads a file of `spec.defaultConfigOverwrite`: its container gets the
/// descriptions of resource providers.
pub fn is_read(name: &str) -> bool {
    name.starts_with("provider")
        && std::path::Path::new(name).extension().is_some_and(|it| it == "yaml")
}

/// Returns the files that all computes of a cell share, for deployments that add those of a host
/// themselves.
///
/// Their text is an input of those deployments: it must not change while the cell does not.
pub fn cell_files(cell: &CellView, source: &Source) -> BTreeMap<String, File> {
    let header = header(source);
    let file = |content: String| File { source: source.clone(), content };
    let generated = format!(
        "{header}# It is overridden by files whose names sort after its own, as 25-nova-extra.conf.\n\n{}",
        nova::options(cell, None)
    );
    let blank = format!("{header}# It is blank on purpose.\n");
    let mut files = BTreeMap::from([
        (GENERATED_FILE.to_owned(), file(generated)),
        (BLANK_FILE.to_owned(), file(blank)),
    ]);
    if let Some(bundle) = &cell.ca_bundle {
        files.insert(CA_BUNDLE_FILE.to_owned(), file(format!("{header}{bundle}")));
    }
    files
}

/// Returns the first comment of every file, without a time or a generation, which would change it.
fn header(source: &Source) -> String {
    format!("# From {source}, written by nova-operator: changes made here are lost.\n")
}

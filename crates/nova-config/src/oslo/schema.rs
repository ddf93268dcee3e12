//! The options that a release of nova knows: stored compressed, one line per section; a section is
//! parsed only when a file contains it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use serde::Deserialize;

use super::value::Type;

/// The releases, oldest first, as `cargo xtask codegen options` packed them.
const PACKED: [(&str, &[u8]); 4] = [
    ("2023.1", include_bytes!("../../data/nova-options-2023.1.json.gz")),
    ("2025.2", include_bytes!("../../data/nova-options-2025.2.json.gz")),
    ("2026.1", include_bytes!("../../data/nova-options-2026.1.json.gz")),
    ("2026.2", include_bytes!("../../data/nova-options-2026.2.json.gz")),
];

static OPENED: [OnceLock<Schema>; PACKED.len()] = [const { OnceLock::new() }; PACKED.len()];

/// A release of OpenStack whose nova options are known.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Release(usize);

impl Release {
    /// Returns all releases, oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PACKED.len()).map(Self)
    }

    /// Returns the release of that name, or `None` when it is unknown.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|it| it.name() == name)
    }

    /// Returns the newest release, which the lab runs.
    pub fn newest() -> Self {
        Self(PACKED.len() - 1)
    }

    /// Returns the name, such as `2026.2`.
    pub fn name(self) -> &'static str {
        PACKED[self.0].0
    }

    /// Whether its nova has an option of that section and name.
    pub fn knows(self, section: &str, name: &str) -> bool {
        let schema = self.schema();
        schema.section(section).is_some_and(|it| schema.known(&it, name).is_some())
    }

    /// Returns the options; unpacked once, to some 50 KiB, when the first file is checked.
    pub fn schema(self) -> &'static Schema {
        OPENED[self.0].get_or_init(|| Schema::open(PACKED[self.0].1))
    }
}

impl fmt::Debug for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The options of one release.
pub struct Schema {
    /// One line for each section.
    lines: String,
    head: Head,
}

/// The first line of a release's data.
#[derive(Deserialize)]
struct Head {
    /// The version of nova.
    nova: String,
    /// The values of `auth_type`.
    plugins: Vec<String>,
    /// The options of all these plugins.
    auth: Options,
    /// The options of sections whose names end with a text that users choose.
    prefixes: BTreeMap<String, Options>,
}

/// Options by name, including old names.
pub(super) type Options = BTreeMap<String, Known>;

/// A section and the name of an option.
pub(super) type Place = (String, String);

/// One section of nova's configuration.
#[derive(Clone, Debug, Deserialize)]
pub struct Section {
    /// The name of the section.
    #[serde(rename = "section")]
    pub name: String,
    /// Whether the options of keystoneauth's plugins belong to it.
    #[serde(default)]
    auth: bool,
    options: Options,
}

/// The properties of an option.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Known {
    /// The type of its values, or `None` when it cannot be checked.
    #[serde(default, rename = "type")]
    pub values: Option<Type>,
    /// Whether each occurrence in a file counts, not only the last one.
    #[serde(default)]
    pub multi: bool,
    /// For a deprecated option without a new name: the options that nova names as replacements.
    #[serde(default)]
    pub removal: Option<Vec<Place>>,
    /// For an old name: the current one.
    #[serde(default)]
    pub now: Option<Place>,
}

impl Section {
    /// Returns the same section, with the options of keystoneauth's plugins.
    #[must_use]
    pub fn with_auth(self) -> Self {
        Self { auth: true, ..self }
    }
}

impl Schema {
    /// # Assumptions
    /// The data is what `cargo xtask codegen options` wrote; a test reads all of it.
    fn open(packed: &[u8]) -> Self {
        let mut text = String::new();
        GzDecoder::new(packed).read_to_string(&mut text).expect("the data is gzip of UTF-8");
        let (head, lines) = text.split_once('\n').expect("the first line has the release");
        let head = serde_json::from_str(head).expect("the first line is a head");
        Self { lines: lines.to_owned(), head }
    }

    /// Returns the version of nova, such as `34.0.0`.
    pub fn nova(&self) -> &str {
        &self.head.nova
    }

    /// Whether keystoneauth has a plugin of that name.
    pub fn has_plugin(&self, name: &str) -> bool {
        self.head.plugins.iter().any(|it| it == name)
    }

    /// Returns the section of that name, compared as oslo.config does; `None` when it is unknown.
    pub fn section(&self, name: &str) -> Option<Section> {
        let name = normalized(name);
        let begin = format!("{{\"section\":{},", serde_json::Value::from(name.as_str()));
        let line = self.lines.lines().find(|it| it.starts_with(&begin));
        line.map(section).or_else(|| self.chosen(&name))
    }

    /// Returns a section whose name ends with a text that users choose.
    fn chosen(&self, name: &str) -> Option<Section> {
        let (suffix, options) = self.head.prefixes.iter().find_map(|(prefix, options)| {
            let suffix = name.strip_prefix(prefix.as_str()).filter(|it| !it.is_empty())?;
            Some((suffix, options))
        })?;
        let mut options = options.clone();
        for now in options.values_mut().filter_map(|it| it.now.as_mut()) {
            now.0.push_str(suffix);
        }
        Some(Section { name: name.to_owned(), auth: false, options })
    }

    /// Returns all sections with fixed names.
    pub fn sections(&self) -> impl Iterator<Item = Section> {
        self.lines.lines().map(section)
    }

    /// Returns a section without options of its own.
    pub fn empty(name: &str) -> Section {
        Section { name: normalized(name), auth: false, options: Options::new() }
    }

    /// Returns the properties of an option, or `None` when it is unknown; the current names of old
    /// plugin options are in the same section.
    pub fn known(&self, section: &Section, name: &str) -> Option<Known> {
        let own = section.options.get(name).cloned();
        own.or_else(|| self.shared(section)?.get(name).map(|it| of_section(it, section)))
    }

    /// Returns the options of a section and their properties.
    pub fn options(&self, section: &Section) -> Vec<(String, Known)> {
        let own = section.options.iter().map(|(name, it)| (name.clone(), it.clone()));
        let shared = self.shared(section).into_iter().flatten();
        own.chain(shared.map(|(name, it)| (name.clone(), of_section(it, section)))).collect()
    }

    fn shared(&self, section: &Section) -> Option<&Options> {
        section.auth.then_some(&self.head.auth)
    }
}

fn of_section(known: &Known, section: &Section) -> Known {
    let now = known.now.as_ref().map(|(_, name)| (section.name.clone(), name.clone()));
    Known { now, ..known.clone() }
}

fn section(line: &str) -> Section {
    serde_json::from_str(line).expect("each line but the first is a section")
}

/// Returns a section's name as oslo.config compares it.
pub(super) fn normalized(section: &str) -> String {
    if section == "DEFAULT" { section.to_owned() } else { section.to_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_every_release_is_whole() {
        for release in Release::all() {
            let schema = release.schema();
            let head = PACKED[release.0].1;
            let mut text = String::new();
            GzDecoder::new(head).read_to_string(&mut text).unwrap();
            let start = format!("{{\"release\":\"{}\",\"nova\":\"", release.name());
            assert!(text.starts_with(&start), "{release:?}");
            let mut n_options = 0;
            for section in schema.sections() {
                for (name, known) in schema.options(&section) {
                    n_options += 1;
                    let places = known.now.iter().chain(known.removal.iter().flatten());
                    for (other, present) in places {
                        let other = schema.section(other).unwrap();
                        let present = schema.known(&other, present);
                        let is_present = present.is_some_and(|it| it.now.is_none());
                        assert!(is_present, "{release:?}: [{}] {name}", section.name);
                    }
                }
            }
            assert!(n_options > 1_000, "{release:?}: {n_options}");
            assert!(schema.section("DEFAULT").is_some() && schema.section("default").is_none());
        }
        assert!(Release::named("2026.2").is_some() && Release::named("zed").is_none());
    }

    #[test]
    fn sections_of_chosen_names_are_known_by_their_beginning() {
        let schema = Release::newest().schema();
        let section = schema.section("VGPU_nvidia-35").unwrap();
        let known = schema.known(&section, "device_addresses").unwrap();
        assert_eq!(known.now, Some(("mdev_nvidia-35".into(), "device_addresses".into())));
        assert!(schema.section("mdev_").is_none());
    }

    #[test]
    fn options_of_every_plugin_belong_to_sections_with_credentials_and_to_no_others() {
        let schema = Release::newest().schema();
        let known = |section, name| schema.known(&schema.section(section).unwrap(), name);
        let old = known("neutron", "user_name").and_then(|it| it.now);
        assert_eq!(old, Some(("neutron".into(), "username".into())));
        assert!(known("cinder", "application_credential_id").is_some());
        assert!(known("libvirt", "application_credential_id").is_none());
    }
}

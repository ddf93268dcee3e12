//! The names of an option: its current one and the deprecated ones in the data of the nova release.

use nova_config::oslo::{Entry, Release};

use crate::config_files::{File, is_read, is_section, normalized};
use crate::error::{Error, Result};

/// An option to look for.
#[derive(Clone, Debug)]
pub struct OptionNames {
    /// Pairs of section and name, the current one first.
    pub names: Vec<(String, String)>,
    /// Whether it is a multi-value option, where every entry counts and not only the last.
    pub is_multi: bool,
    /// A note for the user about the name: unknown or deprecated.
    pub note: Option<String>,
}

impl OptionNames {
    /// Looks the option up in the schema of a release; an unknown option keeps its name.
    pub fn new(section: &str, key: &str, release: Release) -> Self {
        let schema = release.schema();
        let asked = (normalized(section), key.to_owned());
        let known = schema.section(section).and_then(|it| schema.known(&it, key));
        let Some(known) = known else {
            let note = format!(
                "nova {} has no option [{section}] {key}, so nova-compute ignores it, unless a \
                 plugin of yours reads it",
                schema.nova()
            );
            return Self { names: vec![asked], is_multi: false, note: Some(note) };
        };
        let present = known.now.clone().unwrap_or_else(|| asked.clone());
        let note = known.now.as_ref().map(|(section, name)| {
            format!("{key} is an old name of [{section}] {name} in nova {}", schema.nova())
        });
        let mut names = vec![present.clone()];
        for section in schema.sections() {
            let old = schema.options(&section).into_iter();
            let of_present = old.filter(|(_, it)| it.now.as_ref() == Some(&present));
            names.extend(of_present.map(|(name, _)| (section.name.clone(), name)));
        }
        if !names.contains(&asked) {
            names.push(asked);
        }
        Self { names, is_multi: known.multi, note }
    }

    /// Returns all entries that set the option, the effective one last.
    pub fn entries<'a>(&self, entries: &'a [Entry]) -> Vec<&'a Entry> {
        let of = |(section, key): &(String, String)| {
            let is_it = |it: &&Entry| is_section(&it.section, section) && it.key == *key;
            entries.iter().filter(is_it).collect::<Vec<_>>()
        };
        // In one file the current name wins over deprecated ones, wherever they stand.
        self.names.iter().rev().flat_map(of).collect()
    }

    /// Returns the values that the entries set the option to, the effective one last.
    pub fn values(&self, entries: &[Entry]) -> Vec<String> {
        self.entries(entries).into_iter().map(|it| it.value.clone()).collect()
    }

    /// Whether a file sets the option.
    pub fn is_in(&self, file: &File) -> bool {
        !self.entries(&file.entries).is_empty()
    }

    /// Returns the file and entry that take effect, or `None` when no file sets the option.
    pub fn winner<'a>(&self, files: &'a [File]) -> Option<(&'a File, &'a Entry)> {
        let last = |it: &'a File| Some((it, *self.entries(&it.entries).last()?));
        files.iter().rev().find_map(last)
    }
}

/// Returns the file that the user expects the option in, or `None` for `nova.conf`, which stands
/// for all files. Other files are an error.
pub fn asked_file(words: &[String]) -> Result<Option<String>> {
    let [path, ..] = words else { return Err(Error::message("name a file and an option")) };
    match path.rsplit('/').next().unwrap_or_default() {
        "nova.conf" => Ok(None),
        name if is_read(name) => Ok(Some(name.to_owned())),
        _ => Err(Error::message(format!(
            "{path} cannot be traced: only options of nova.conf can, and of the files *nova*.conf \
             that it stands for"
        ))),
    }
}

/// Parses section and option of `nova.conf [libvirt] cpu_models`; the section defaults to
/// `DEFAULT`.
pub fn asked(words: &[String]) -> Result<(String, String)> {
    let rest = words.get(1..).unwrap_or_default();
    let section = |it: &str| it.trim_start_matches('[').trim_end_matches(']').to_owned();
    match rest {
        [option] => match option.strip_prefix('[').and_then(|it| it.split_once(']')) {
            Some((section, option)) if !option.trim().is_empty() => {
                Ok((section.to_owned(), option.trim().to_owned()))
            }
            Some(_) => Err(Error::message(format!("name an option of {option}"))),
            None => Ok(("DEFAULT".to_owned(), option.clone())),
        },
        [of, option] => Ok((section(of), option.clone())),
        _ => Err(Error::message("name one option, as in: trace nova.conf [libvirt] cpu_models")),
    }
}

#[cfg(test)]
mod tests {
    use nova_config::oslo::parse;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_section_may_be_written_with_and_without_brackets() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let libvirt = pair("libvirt", "cpu_models");
        assert_eq!(asked(&words("nova.conf [libvirt] cpu_models")).unwrap(), libvirt);
        assert_eq!(asked(&words("nova.conf libvirt cpu_models")).unwrap(), libvirt);
        assert_eq!(asked(&["nova.conf".into(), "[libvirt] cpu_models".into()]).unwrap(), libvirt);
        assert_eq!(asked(&words("nova.conf debug")).unwrap(), pair("DEFAULT", "debug"));
        for bad in ["nova.conf", "nova.conf a b c", "nova.conf [libvirt]"] {
            assert!(asked(&words(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_may_be_named_that_nova_compute_reads() {
        let file = |it: &str| asked_file(&words(it)).map_err(|it| it.to_string());
        assert_eq!(file("/etc/nova/nova.conf debug"), Ok(None));
        let extra = Some("25-nova-extra.conf".to_owned());
        assert_eq!(file("/etc/nova/nova.conf.d/25-nova-extra.conf debug"), Ok(extra));
        for bad in ["neutron.conf debug", "my.conf debug"] {
            assert!(file(bad).unwrap_err().contains("cannot be traced"), "{bad}");
        }
    }

    #[test]
    fn the_present_name_wins_over_the_old_one_in_the_same_file() {
        let named = OptionNames::new("libvirt", "cpu_model", Release::newest());
        assert_eq!(named.names[0], ("libvirt".to_owned(), "cpu_models".to_owned()));
        assert!(named.note.as_ref().unwrap().contains("old name of [libvirt] cpu_models"));
        let entries = parse("[LibVirt]\ncpu_models = a\ncpu_model = b\n").0;
        let found: Vec<usize> = named.entries(&entries).iter().map(|it| it.line).collect();
        assert_eq!(found, [3, 2]);
    }

    #[test]
    fn an_option_that_nova_does_not_know_is_looked_for_all_the_same() {
        let named = OptionNames::new("libvirt", "cpu_modls", Release::newest());
        assert!(named.note.as_ref().unwrap().contains("has no option [libvirt] cpu_modls"));
        let entries = parse("[libvirt]\ncpu_modls = a\n").0;
        assert_eq!(named.entries(&entries).len(), 1);
    }
}

//! Checks options against a release of nova: unknown names, rejected values, old names. nova
//! ignores misspelt options silently, so they get a warning.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::faults::{Finding, finding, surprise};
use super::parse::Entry;
use super::schema::{Known, Place, Schema, Section, normalized};
use super::suggestion::nearest;
use super::text::Text;

/// The number of unknown options that are compared with all others; further ones are only named.
const COMPARED: usize = 50;
/// The number of sections that a message names as having an option.
const NAMED: usize = 3;

/// Prefixes of sections that may belong to a plugin.
const OPEN_ENDED: &[&str] = &["os_vif_", "oslo_", "profiler_", "vif_plug_"];

/// Prefixes of nova's own drivers; another driver may read options of its own.
const DRIVERS: &[&str] = &["fake.", "ironic.", "libvirt.", "nova.virt.", "vmwareapi.", "zvm."];

fn place(entry: &Entry) -> (String, &str) {
    (normalized(&entry.section), &entry.key)
}

/// The line in which each option is set last.
type LastLines<'a> = BTreeMap<(String, &'a str), usize>;

/// Checks the entries of some texts against a release.
pub(super) struct OptionCheck<'a> {
    schema: &'a Schema,
    /// By index of the text.
    last: Vec<LastLines<'a>>,
    /// The sections that were looked up; `None` when the release has no such section.
    sections: BTreeMap<String, Option<Rc<Section>>>,
    /// Sections in which options that we do not know may be read.
    open: BTreeSet<String>,
    /// Whether the driver is not one of nova's, so that it may read any option.
    is_all_open: bool,
    n_compared: usize,
}

impl<'a> OptionCheck<'a> {
    pub(super) fn new(texts: &'a [(Text<'_>, Vec<Entry>)], schema: &'a Schema) -> Self {
        let last_lines = |entries: &'a [Entry]| entries.iter().map(|it| (place(it), it.line));
        let mut check = Self {
            schema,
            last: texts.iter().map(|(_, entries)| last_lines(entries).collect()).collect(),
            sections: BTreeMap::new(),
            open: BTreeSet::new(),
            is_all_open: false,
            n_compared: 0,
        };
        for entry in texts.iter().flat_map(|(_, entries)| entries) {
            check.learn(entry);
        }
        check
    }

    /// Returns the warnings on an entry of the text at that index.
    pub(super) fn warnings(
        &mut self,
        text_idx: usize,
        source: &str,
        entry: &Entry,
    ) -> Vec<Finding> {
        let last = self.last[text_idx].get(&place(entry)).copied();
        let found = self.findings(entry, last.filter(|it| *it != entry.line));
        found.iter().map(|it| finding(source, entry, it)).collect()
    }

    /// Learns from options that determine which other options exist.
    fn learn(&mut self, entry: &Entry) {
        let value = entry.value.as_str();
        match entry.key.as_str() {
            "auth_type" | "auth_plugin" if !self.schema.has_plugin(value) => {
                self.open.insert(normalized(&entry.section));
            }
            "auth_section" => {
                let schema = self.schema;
                let lent = || schema.section(value).unwrap_or_else(|| Schema::empty(value));
                // A text may name one section in thousands of lines.
                let known = self.sections.entry(normalized(value));
                known.or_insert_with(|| Some(Rc::new(lent().with_auth())));
            }
            "config_source" => {
                self.open.extend(value.split([',', '\n']).map(|it| normalized(it.trim())));
            }
            "compute_driver" => {
                self.is_all_open |= !DRIVERS.iter().any(|it| value.starts_with(it));
            }
            _ => {}
        }
    }

    fn section(&mut self, name: &str) -> Option<Rc<Section>> {
        let schema = self.schema;
        let read = || schema.section(name).map(Rc::new);
        self.sections.entry(normalized(name)).or_insert_with(read).clone()
    }

    fn findings(&mut self, entry: &Entry, again: Option<usize>) -> Vec<String> {
        if surprise(entry).is_some() {
            return vec![];
        }
        let Some(section) = self.section(&entry.section) else {
            return self.unknown_section(entry).into_iter().collect();
        };
        match self.schema.known(&section, &entry.key) {
            Some(known) => self.of_known(entry, &known, again),
            None => self.unknown_option(entry, &section).into_iter().collect(),
        }
    }

    fn of_known(&mut self, entry: &Entry, known: &Known, again: Option<usize>) -> Vec<String> {
        let nova = self.schema.nova();
        let mut findings = Vec::new();
        let mut present = known.clone();
        if let Some((section, name)) = &known.now {
            let named = option_in(entry, section, name);
            findings.push(format!("is an old name of {named} in nova {nova}: write that"));
            let of_section = self.section(section);
            let found = of_section.and_then(|it| self.schema.known(&it, name));
            present = found.unwrap_or_default();
        }
        if let Some(instead) = &present.removal {
            let suggestion = match instead.as_slice() {
                [] => "nova is to do without it".to_owned(),
                _ => format!("nova names {} in its stead", joined(entry, instead)),
            };
            findings
                .push(format!("is deprecated in nova {nova} and will be removed: {suggestion}"));
        }
        // A value that refers to another option is substituted later, so it cannot be checked.
        let is_whole = !entry.value.contains('$');
        if let Some(values) = present.values.filter(|it| is_whole && !it.takes(&entry.value)) {
            findings.push(format!(
                "has a value that nova {nova} refuses, and nova-compute fails when it reads it: it \
                 must be {}",
                values.expected()
            ));
        }
        if let Some(line) = again.filter(|_| !present.multi) {
            findings.push(format!("is set again in line {line}, and only the last value counts"));
        }
        findings
    }

    fn unknown_section(&mut self, entry: &Entry) -> Option<String> {
        let name = normalized(&entry.section);
        if self.is_all_open || self.open.contains(&name) {
            return None;
        }
        let sections = || self.schema.sections().map(|it| it.name);
        let near = if self.may_compare() { nearest(&name, sections()) } else { vec![] };
        let is_open_ended =
            OPEN_ENDED.iter().any(|it| name.starts_with(it)) || name.contains("priv");
        if is_open_ended && near.is_empty() {
            return None;
        }
        let near: Vec<String> = near.iter().map(|it| format!("[{it}]")).collect();
        Some(format!(
            "is in a section that is not known to nova {} and therefore ignored: {}",
            self.schema.nova(),
            meant(&near)
        ))
    }

    fn unknown_option(&mut self, entry: &Entry, section: &Section) -> Option<String> {
        if self.is_all_open || self.open.contains(&normalized(&entry.section)) {
            return None;
        }
        Some(format!(
            "is not known to nova {} and therefore ignored: {}",
            self.schema.nova(),
            self.suggestion(entry, section)
        ))
    }

    fn suggestion(&mut self, entry: &Entry, section: &Section) -> String {
        if !self.may_compare() {
            return meant(&[]);
        }
        let options = self.schema.options(section);
        let plain = entry.key.to_lowercase().replace('-', "_");
        if options.iter().any(|(name, _)| *name == plain) {
            return format!("write {plain}");
        }
        let elsewhere = self.sections_with(&plain);
        if !elsewhere.is_empty() {
            return format!("an option of this name exists in {}", elsewhere.join(", "));
        }
        let near = nearest(&plain, options.iter().map(|(name, _)| name.clone()));
        // For an old name, suggests the current one.
        let present = near.iter().map(|name| {
            let known = options.iter().find(|(it, _)| it == name);
            match known.and_then(|(_, it)| it.now.as_ref()) {
                Some((section, name)) => option_in(entry, section, name),
                None => name.clone(),
            }
        });
        let present: BTreeSet<String> = present.collect();
        meant(&present.into_iter().collect::<Vec<_>>())
    }

    /// Returns the sections that have an option of that name.
    fn sections_with(&self, name: &str) -> Vec<String> {
        let all = self.schema.sections();
        let having =
            all.filter(|it| self.schema.known(it, name).is_some_and(|known| known.now.is_none()));
        having.take(NAMED).map(|it| format!("[{}]", it.name)).collect()
    }

    fn may_compare(&mut self) -> bool {
        self.n_compared += 1;
        self.n_compared <= COMPARED
    }
}

fn meant(near: &[String]) -> String {
    match near {
        [] => "check its spelling".to_owned(),
        _ => format!("did you mean {}?", near.join(" or ")),
    }
}

/// Returns the name of an option, with its section when that differs from the entry's.
fn option_in(entry: &Entry, section: &str, name: &str) -> String {
    if normalized(&entry.section) == section {
        name.to_owned()
    } else {
        format!("[{section}] {name}")
    }
}

fn joined(entry: &Entry, places: &[Place]) -> String {
    let named = places.iter().map(|(section, name)| option_in(entry, section, name));
    named.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests;

//! Checks options against a release of nova: unknown names, rejected values, old names. nova
//! ignores misspelt options silently, so they get a warning.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::faults::{Finding, finding, surprise};
use super::looks::indented_options;
use super::parse::Entry;
use super::rules::{self, At, Effective};
use super::schema::{Known, Place, Schema, Section, normalized};
use super::substitution::references;
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
    /// Where each text comes from, with its last lines.
    last: Vec<(&'a str, LastLines<'a>)>,
    /// The rules about several options that the values together break.
    broken: Vec<(At, &'static str)>,
    /// The sections that were looked up; `None` when the release has no such section.
    sections: BTreeMap<String, Option<Rc<Section>>>,
    /// Sections in which options that we do not know may be read.
    open: BTreeSet<String>,
    /// Whether the driver is not one of nova's, so that it may read any option.
    is_all_open: bool,
    n_compared: usize,
}

impl<'a> OptionCheck<'a> {
    /// Checks texts, the one that overrides the others first, and options of the operator that they
    /// override.
    pub(super) fn new(
        texts: &'a [(Text<'a>, Vec<Entry>)],
        generated: &[Entry],
        schema: &'a Schema,
    ) -> Self {
        let last_lines = |entries: &'a [Entry]| entries.iter().map(|it| (place(it), it.line));
        let last = |(text, entries): &'a (Text<'a>, Vec<Entry>)| {
            (text.source, last_lines(entries).collect())
        };
        let mut check = Self {
            schema,
            last: texts.iter().map(last).collect(),
            broken: vec![],
            sections: BTreeMap::new(),
            open: BTreeSet::new(),
            is_all_open: false,
            n_compared: 0,
        };
        for entry in texts.iter().flat_map(|(_, entries)| entries) {
            check.learn(entry);
        }
        check.broken = check.broken(texts, generated);
        check
    }

    /// Returns the rules about several options that the values which count break.
    fn broken(
        &mut self,
        texts: &[(Text<'_>, Vec<Entry>)],
        generated: &[Entry],
    ) -> Vec<(At, &'static str)> {
        let of_users = texts.iter().enumerate().rev().flat_map(|(text_idx, (_, entries))| {
            entries.iter().map(move |it| (it, Some((text_idx, it.line))))
        });
        let mut effective = Effective::default();
        for (entry, at) in generated.iter().map(|it| (it, None)).chain(of_users) {
            let Some((section, name)) = self.present(entry) else { continue };
            let takes = |value: &str| {
                let known = self.section(&section).and_then(|it| self.schema.known(&it, &name));
                known.and_then(|it| it.values).is_none_or(|it| it.takes(value))
            };
            effective.set((&section, &name), (&entry.value, at), takes);
        }
        let schema = self.schema;
        let is_known = |section: &str, name: &str| {
            schema.section(section).is_some_and(|it| schema.known(&it, name).is_some())
        };
        effective.broken(schema.nova(), is_known)
    }

    /// Returns the section and the present name of an option, or `None` when it is not known.
    fn present(&mut self, entry: &Entry) -> Option<Place> {
        let section = self.section(&entry.section)?;
        let known = self.schema.known(&section, &entry.key)?;
        Some(known.now.unwrap_or_else(|| (section.name.clone(), entry.key.clone())))
    }

    /// Returns the warnings on an entry of the text at that index.
    pub(super) fn warnings(
        &mut self,
        text_idx: usize,
        source: &str,
        entry: &Entry,
    ) -> Vec<Finding> {
        let mut found = self.findings(text_idx, entry);
        let of_entry = |(at, _): &&(At, &str)| *at == (text_idx, entry.line);
        let broken = self.broken.iter().filter(of_entry).map(|(_, text)| self.ends(text));
        found.extend(broken);
        found.iter().map(|it| finding(source, entry, it)).collect()
    }

    fn ends(&self, why: &str) -> String {
        format!("ends nova-compute {} at its start: {why}", self.schema.nova())
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

    fn findings(&mut self, text_idx: usize, entry: &Entry) -> Vec<String> {
        if surprise(entry).is_some() {
            return vec![];
        }
        let Some(section) = self.section(&entry.section) else {
            return self.unknown_section(entry).into_iter().collect();
        };
        match self.schema.known(&section, &entry.key) {
            Some(known) => {
                let mut found = self.of_known(entry, &known);
                found.extend(self.of_value(entry, &section));
                found.extend(self.set_again(text_idx, entry, &known));
                found
            }
            None => self.unknown_option(entry, &section).into_iter().collect(),
        }
    }

    fn of_known(&mut self, entry: &Entry, known: &Known) -> Vec<String> {
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
        let (section, name) = self.present(entry).unwrap_or_default();
        let expected = rules::expected(&section, &name, &entry.value).filter(|_| is_whole);
        findings.extend(expected.map(|it| self.ends(&format!("it must be {it}"))));
        findings
    }

    /// Returns what a value refers to in vain, and which of its lines look like options.
    fn of_value(&mut self, entry: &Entry, section: &Section) -> Vec<String> {
        let mut findings = Vec::new();
        let is_open = self.is_all_open || self.open.contains(&normalized(&entry.section));
        if !is_open && references(&entry.value).iter().any(|it| !self.refers(section, it)) {
            findings.push(format!(
                "has a $ with the name of no option of nova {} behind it, and nova-compute fails \
                 when it reads the value: write $$ for a dollar sign",
                self.schema.nova()
            ));
        }
        let is_option = |name: &str| self.schema.known(section, name).is_some();
        let mut indented = indented_options(entry).filter(|(_, name)| is_option(name));
        findings.extend(indented.next().map(|(line, name)| {
            format!(
                "has line {line} as a part of its value, because that is indented: remove the spaces \
                 at its beginning if {name} is to be an option"
            )
        }));
        findings
    }

    /// Whether oslo.config finds the option that a value refers to: in the value's own section or in
    /// `[DEFAULT]`, or in the section that is named, in the very letters of both.
    fn refers(&mut self, section: &Section, reference: &str) -> bool {
        let schema = self.schema;
        let has = |it: &Section, name| schema.known(it, name).is_some_and(|it| it.now.is_none());
        let mut has_in = |name: &str, option| self.section(name).is_some_and(|it| has(&it, option));
        match reference.split_once('.') {
            Some((named, option)) => named == named.to_lowercase() && has_in(named, option),
            None => has(section, reference) || has_in("DEFAULT", reference),
        }
    }

    /// Returns where else an option is set, and which values count.
    fn set_again(&mut self, text_idx: usize, entry: &Entry, known: &Known) -> Option<String> {
        let place = place(entry);
        let last = *self.last[text_idx].1.get(&place)?;
        let is_multi = match &known.now {
            Some((section, name)) => {
                let section = self.section(section)?;
                self.schema.known(&section, name)?.multi
            }
            None => known.multi,
        };
        if !is_multi {
            let is_last = last == entry.line;
            let text = || format!("is set again in line {last}, and only the last value counts");
            return (!is_last).then(text);
        }
        // Reported once, of the text that was to override the other one.
        let mut weaker = self.last[text_idx + 1..].iter();
        let (source, _) = weaker.find(|(_, lines)| lines.contains_key(&place))?;
        (last == entry.line).then(|| {
            format!(
                "may be set several times, so this does not replace its values in {source}: all of \
                 them count"
            )
        })
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

//! Options that nova does not know: misspelt ones are ignored in silence, so they are worth a word.

use super::{Entry, Finding, faults::finding};

/// The options of nova and its libraries, one section per line.
const KNOWN: &str = include_str!("known_options.txt");

/// Entries whose section or name nova does not know, and what may have been meant.
pub fn unknown_options(entries: &[Entry]) -> Vec<Finding> {
    entries.iter().filter_map(|entry| Some(finding(entry, &unknown(entry)?))).collect()
}

fn unknown(entry: &Entry) -> Option<String> {
    if is_open_ended(entry) {
        return None;
    }
    let Some(keys) = keys(&entry.section) else {
        return Some(format!(
            "is in a section that {} does not know and therefore ignores: check its spelling",
            version()
        ));
    };
    let is_known = |key: &str| keys.split(' ').any(|it| it == key);
    if is_known(&entry.key) {
        return None;
    }
    let meant = entry.key.to_lowercase().replace('-', "_");
    let advice = if is_known(&meant) {
        format!("write {meant}")
    } else if let Some(section) = section_of(&meant) {
        format!("an option of this name exists in [{section}]")
    } else {
        "check its spelling".to_owned()
    };
    Some(format!("is not known to {} and therefore ignored: {advice}", version()))
}

/// Whether section or option are named by the human, a library or a plugin at run time.
fn is_open_ended(entry: &Entry) -> bool {
    let section = entry.section.to_lowercase();
    section.starts_with("mdev_")
        || section.starts_with("vgpu_")
        || section.starts_with("oslo_")
        || section.contains("priv")
        || entry.key.starts_with("application_credential_")
}

fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    KNOWN.lines().filter_map(|line| line.split_once(": "))
}

/// The options of a section, whose name oslo.config compares without regard to capitals.
fn keys(section: &str) -> Option<&'static str> {
    let wanted = if section == "DEFAULT" { section.to_owned() } else { section.to_lowercase() };
    sections().find(|(name, _)| *name == wanted).map(|(_, keys)| keys)
}

fn section_of(key: &str) -> Option<&'static str> {
    sections().find(|(_, keys)| keys.split(' ').any(|it| it == key)).map(|(name, _)| name)
}

/// Whose options the list holds, from its first line.
fn version() -> &'static str {
    let line = KNOWN.lines().next().unwrap_or_default();
    line.split_once("from ").and_then(|(_, rest)| rest.split_once(';')).map_or("nova", |it| it.0)
}

#[cfg(test)]
mod tests {
    use super::unknown_options;
    use crate::oslo::parse;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let (entries, errors) = parse(text);
        assert_eq!(errors, []);
        let found = unknown_options(&entries);
        let found: Vec<_> = found.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_nova_knows_is_no_finding() {
        check("[libvirt]\ncpu_mode = custom\ncpu_models = Nehalem\nvirt_type = qemu\n", &[]);
        check("[DEFAULT]\ndebug = True\n[Libvirt]\ncpu_mode = none\n", &[]);
        check("[mdev_nvidia-35]\ndevice_addresses = 0000:84:00.0\n", &[]);
        check("[placement]\napplication_credential_id = a\n", &[]);
        check("[vif_plug_ovs_privileged]\nhelper_command = sudo\n", &[]);
    }

    #[test]
    fn a_misspelt_option_is_named() {
        check(
            "[libvirt]\ncpu_modle = custom\n",
            &[
                "spec.customServiceConfig, line 2, column 1: [libvirt] cpu_modle is not known to nova \
               34.0.0 and therefore ignored: check its spelling",
            ],
        );
    }

    #[test]
    fn the_right_name_and_section_are_told_where_they_are_known() {
        check(
            "[libvirt]\ncpu-mode = custom\n[DEFAULT]\ncpu_mode = custom\n",
            &[
                "spec.customServiceConfig, line 2, column 1: [libvirt] cpu-mode is not known to \
                 nova 34.0.0 and therefore ignored: write cpu_mode",
                "spec.customServiceConfig, line 4, column 1: [DEFAULT] cpu_mode is not known to \
                 nova 34.0.0 and therefore ignored: an option of this name exists in [libvirt]",
            ],
        );
    }

    #[test]
    fn an_unknown_section_is_named() {
        check(
            "[libvrit]\ncpu_mode = custom\n",
            &[
                "spec.customServiceConfig, line 2, column 1: [libvrit] cpu_mode is in a section that \
               nova 34.0.0 does not know and therefore ignores: check its spelling",
            ],
        );
    }
}

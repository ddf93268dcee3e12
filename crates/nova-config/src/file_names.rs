//! What happens to a file of a service of type nova, determined by its name.
//!
//! Both our role `edpm_nova` and the upstream one copy the files into one folder and add their own
//! [`HOST_FILE`]. Kolla copies `*nova*.conf` to nova-compute's `nova.conf.d`, where oslo.config
//! reads them in the order of their names, and the last value counts.

use std::collections::BTreeSet;

use crate::conf::{CA_BUNDLE_FILE, GENERATED_FILE};

/// The file that the plays write themselves, which replaces a given file of that name.
pub const HOST_FILE: &str = "02-nova-host-specific.conf";
/// Prefix of a name that sorts after all generated files.
const LATE: u32 = 25;

/// What happens to a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// nova-compute reads it after the generated files, or something else on the host uses it.
    Used,
    /// nova-compute reads it before the named file, whose values win.
    Before(&'static str),
    /// Another file of that name replaces it.
    Replaced,
    /// Nothing reads it.
    Ignored,
}

/// Returns what happens to a user's file; `has_cell` says whether the service also gets the
/// generated files of a cell.
///
/// Without those, the user's files are the whole configuration, whatever their order.
pub fn effect(name: &str, has_cell: bool) -> Effect {
    if !is_loaded(name) {
        return if is_used(name) { Effect::Used } else { Effect::Ignored };
    }
    if name == HOST_FILE {
        return Effect::Replaced;
    }
    let mut generated = [GENERATED_FILE, HOST_FILE].into_iter().filter(|_| has_cell);
    generated.find(|it| name < *it).map_or(Effect::Used, Effect::Before)
}

/// Whether Kolla copies the file to nova-compute's `nova.conf.d`: its glob is `*nova*.conf`, which
/// does not match a leading dot.
pub fn is_loaded(name: &str) -> bool {
    !name.starts_with('.') && name.strip_suffix(".conf").is_some_and(|it| it.contains("nova"))
}

/// Whether the plays or the container use a file that is not a configuration file.
fn is_used(name: &str) -> bool {
    let is_provider =
        name.strip_prefix("provider").is_some_and(|it| it.strip_suffix(".yaml").is_some());
    is_provider || ["ssh-privatekey", "ssh-publickey", CA_BUNDLE_FILE].contains(&name)
}

/// Returns an unused name that sorts after all generated files, derived from `name`.
pub fn working_name(name: &str, taken: &BTreeSet<String>) -> String {
    let stem = name.trim_start_matches(|it: char| it.is_ascii_digit() || ".-_".contains(it));
    let stem = [".conf", ".cfg", ".ini", ".txt"]
        .iter()
        .find_map(|it| stem.strip_suffix(it))
        .unwrap_or(stem);
    let stem = match stem {
        "" => "nova-extra".to_owned(),
        stem if stem.contains("nova") => stem.to_owned(),
        stem => format!("nova-{stem}"),
    };
    let names = (LATE..).map(|it| format!("{it}-{stem}.conf"));
    let mut free = names.filter(|it| !taken.contains(it));
    free.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_nova_conf_files_are_loaded() {
        for name in ["25-nova-extra.conf", "nova.conf", "01-nova.conf", "xnovax.conf"] {
            assert!(is_loaded(name), "{name}");
        }
        for name in
            ["my.conf", "nova", "nova.cfg", "25-nova.conf.bak", ".nova.conf", "25-Nova.conf"]
        {
            assert!(!is_loaded(name), "{name}");
        }
    }

    #[test]
    fn a_file_counts_by_its_name_and_its_place_among_the_generated_ones() {
        let cases = [
            ("25-nova-extra.conf", Effect::Used, Effect::Used),
            ("02-nova-override.conf", Effect::Used, Effect::Used),
            ("nova-cpu.conf", Effect::Used, Effect::Used),
            ("00-nova.conf", Effect::Before(GENERATED_FILE), Effect::Used),
            ("02-nova-default.conf", Effect::Before(HOST_FILE), Effect::Used),
            ("02-nova-host-specific.conf", Effect::Replaced, Effect::Replaced),
            ("my.conf", Effect::Ignored, Effect::Ignored),
            ("ssh-config", Effect::Ignored, Effect::Ignored),
            ("policy.yaml", Effect::Ignored, Effect::Ignored),
            ("provider_gpu.yaml", Effect::Used, Effect::Used),
            ("ssh-publickey", Effect::Used, Effect::Used),
            ("tls-ca-bundle.pem", Effect::Used, Effect::Used),
        ];
        for (name, with_cell, alone) in cases {
            assert_eq!(effect(name, true), with_cell, "{name}");
            assert_eq!(effect(name, false), alone, "{name}");
        }
    }

    /// Checks these rules against our own role: its globs, and the file that it adds.
    #[test]
    fn our_own_collection_does_with_files_what_is_said_here() {
        let role = "../../ansible/osp/edpm/roles/edpm_nova";
        let read = |file: &str| std::fs::read_to_string(format!("{role}/{file}")).unwrap();
        let kolla: serde_json::Value = serde_json::from_str(&read("files/kolla.json")).unwrap();
        let given = "/var/lib/kolla/config_files/src/";
        let taken: Vec<&str> = kolla["config_files"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["source"].as_str()?.strip_prefix(given))
            .collect();
        assert_eq!(taken, ["*nova*.conf", "provider*.yaml", "tls-ca-bundle.pem", "ssh-privatekey"]);
        assert!(
            read("tasks/files.yml")
                .contains(&format!("dest: \"{{{{ edpm_nova_config_dest }}}}/{HOST_FILE}\""))
        );
        assert!(read("tasks/host.yml").contains("edpm_nova_config_src ~ '/ssh-publickey'"));
    }

    #[test]
    fn a_name_that_works_keeps_what_the_human_chose() {
        let taken = BTreeSet::from(["25-nova-taken.conf".to_owned()]);
        let cases = [
            ("my.conf", "25-nova-my.conf"),
            ("00-nova.conf", "25-nova.conf"),
            ("nova-cpu.cfg", "25-nova-cpu.conf"),
            (".nova.conf", "25-nova.conf"),
            ("NOVA.conf", "25-nova-NOVA.conf"),
            ("10-.conf", "25-nova-conf.conf"),
            ("7", "25-nova-extra.conf"),
            ("taken.ini", "26-nova-taken.conf"),
        ];
        for (name, expected) in cases {
            assert_eq!(working_name(name, &taken), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_is_proposed_works(name in "[-._a-zA-Z0-9]{1,40}", has_cell: bool) {
            let taken = BTreeSet::from([name.clone()]);
            let proposed = working_name(&name, &taken);
            prop_assert_eq!(effect(&proposed, has_cell), Effect::Used);
            prop_assert_ne!(&proposed, &name);
            prop_assert!(proposed.chars().all(|it| it.is_ascii_alphanumeric() || "-._".contains(it)));
        }
    }
}

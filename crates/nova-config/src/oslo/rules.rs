//! What nova-compute refuses at its start although each option takes its own value: formats that nova
//! reads itself, and options that exclude or need each other.

use std::collections::BTreeMap;

use super::ranges::Cpus;
use super::value::boolean;

/// A section and the name of an option.
type Place = (&'static str, &'static str);

/// Where a user sets an option: the index of the text, and the line.
pub(super) type At = (usize, usize);

const COMPUTE_DRIVER: Place = ("DEFAULT", "compute_driver");
const CPU_DEDICATED_SET: Place = ("compute", "cpu_dedicated_set");
const CPU_MODE: Place = ("libvirt", "cpu_mode");
const CPU_MODELS: Place = ("libvirt", "cpu_models");
const CPU_SHARED_SET: Place = ("compute", "cpu_shared_set");
const DEFAULT_LOG_LEVELS: Place = ("DEFAULT", "default_log_levels");
const DEVICE_SPEC: Place = ("pci", "device_spec");
const ENFORCE_MULTIPATH: Place = ("libvirt", "volume_enforce_multipath");
const FILE_BACKED_MEMORY: Place = ("libvirt", "file_backed_memory");
const FORCE_RAW_IMAGES: Place = ("DEFAULT", "force_raw_images");
const IMAGES_TYPE: Place = ("libvirt", "images_type");
const MAX_DISK_DEVICES: Place = ("compute", "max_disk_devices_to_attach");
const NATIVE_TLS: Place = ("libvirt", "live_migration_with_native_tls");
const PMEM_NAMESPACES: Place = ("libvirt", "pmem_namespaces");
const RAM_ALLOCATION_RATIO: Place = ("DEFAULT", "ram_allocation_ratio");
const RESERVED_HOST_CPUS: Place = ("DEFAULT", "reserved_host_cpus");
const SWTPM_ENABLED: Place = ("libvirt", "swtpm_enabled");
const TUNNELLED: Place = ("libvirt", "live_migration_tunnelled");
const USE_MULTIPATH: Place = ("libvirt", "volume_use_multipath");
const VCPU_PIN_SET: Place = ("DEFAULT", "vcpu_pin_set");
const VIRT_TYPE: Place = ("libvirt", "virt_type");

/// An option, whether its value can be read, and what it must be.
type Format = (Place, fn(&str) -> bool, &'static str);

/// The formats of values that nova itself reads at its start.
const FORMATS: &[Format] = &[
    // nova/virt/driver.py, load_compute_driver
    (COMPUTE_DRIVER, is_driver, "libvirt.LibvirtDriver"),
    // nova/virt/hardware.py, parse_cpu_spec
    (CPU_DEDICATED_SET, is_cpu_set, "a list of processors such as 4-7,^5,8"),
    (CPU_SHARED_SET, is_cpu_set, "a list of processors such as 4-7,^5,8"),
    (VCPU_PIN_SET, is_cpu_set, "a list of processors such as 4-7,^5,8"),
    // nova/virt/libvirt/driver.py, _get_cpu_model_mapping
    (CPU_MODELS, is_models, "names of libvirt's processors separated by commas"),
    // oslo_log/log.py, _setup_logging_from_conf
    (
        DEFAULT_LOG_LEVELS,
        has_levels,
        "a list such as nova=DEBUG,amqp=WARN, with levels in capitals",
    ),
    // nova/pci/whitelist.py, _parse_white_list_from_config, called by ComputeManager.init_host
    (
        DEVICE_SPEC,
        is_device_spec,
        "an object of JSON, or a list of such objects, in which vendor_id and product_id are texts",
    ),
    // nova/compute/manager.py, init_host
    (MAX_DISK_DEVICES, |it| it.trim() != "0", "-1 for no limit, or at least 1"),
    // nova/virt/libvirt/driver.py, _discover_vpmems
    (PMEM_NAMESPACES, is_pmem, "a list of LABEL:NAMESPACE separated by commas"),
];

/// Options that exclude or need each other.
struct Rule {
    /// The options that the rule reads.
    options: &'static [Place],
    /// Whether the values break the rule.
    is_broken: fn(&Effective<'_>) -> bool,
    /// The rule, and what to write instead.
    text: &'static str,
}

/// The rules of nova 27.5.1 (2023.1) to 34.0.0 (2026.2).
const RULES: &[Rule] = &[
    // nova/virt/libvirt/driver.py, _check_cpu_compatibility
    Rule {
        options: &[CPU_MODELS, CPU_MODE],
        is_broken: |it| it.is_set(CPU_MODELS) && it.text(CPU_MODE) != "custom",
        text: "[libvirt] cpu_models counts only with cpu_mode = custom: set both, or neither",
    },
    Rule {
        options: &[CPU_MODE, CPU_MODELS],
        is_broken: |it| it.text(CPU_MODE) == "custom" && !it.is_set(CPU_MODELS),
        text: "[libvirt] cpu_mode = custom needs cpu_models: set both, or neither",
    },
    Rule {
        options: &[VIRT_TYPE, CPU_MODE],
        is_broken: |it| !it.is_qemu() && !["", "none"].contains(&it.text(CPU_MODE)),
        text: "[libvirt] cpu_mode must be none where virt_type is neither kvm nor qemu",
    },
    // nova/virt/libvirt/driver.py, _check_vtpm_support
    Rule {
        options: &[VIRT_TYPE, SWTPM_ENABLED],
        is_broken: |it| !it.is_qemu() && it.is_true(SWTPM_ENABLED, false),
        text: "[libvirt] swtpm_enabled must be False where virt_type is neither kvm nor qemu",
    },
    // nova/virt/libvirt/driver.py, init_host
    Rule {
        options: &[TUNNELLED, NATIVE_TLS],
        is_broken: |it| it.is_true(TUNNELLED, false) && it.is_true(NATIVE_TLS, false),
        text: "[libvirt] live_migration_tunnelled and live_migration_with_native_tls exclude each \
               other: remove the first",
    },
    Rule {
        options: &[IMAGES_TYPE, FORCE_RAW_IMAGES],
        is_broken: |it| it.text(IMAGES_TYPE) == "rbd" && !it.is_true(FORCE_RAW_IMAGES, true),
        text: "[libvirt] images_type = rbd needs [DEFAULT] force_raw_images = True",
    },
    // nova/virt/libvirt/driver.py, _check_multipath
    Rule {
        options: &[ENFORCE_MULTIPATH, USE_MULTIPATH],
        is_broken: |it| it.is_true(ENFORCE_MULTIPATH, false) && !it.is_true(USE_MULTIPATH, false),
        text: "[libvirt] volume_enforce_multipath needs volume_use_multipath = True",
    },
    // nova/virt/libvirt/driver.py, _check_cpu_set_configuration
    Rule {
        options: &[CPU_DEDICATED_SET, CPU_SHARED_SET, VCPU_PIN_SET],
        is_broken: |it| {
            let both = it.cpus(CPU_DEDICATED_SET).zip(it.cpus(CPU_SHARED_SET));
            !it.is_set(VCPU_PIN_SET) && both.is_some_and(|(one, other)| one.meets(&other))
        },
        text: "[compute] cpu_dedicated_set and cpu_shared_set must have no processor in common",
    },
    Rule {
        options: &[RESERVED_HOST_CPUS, CPU_DEDICATED_SET, CPU_SHARED_SET, VCPU_PIN_SET],
        is_broken: |it| {
            let has_set = it.is_set(CPU_DEDICATED_SET) || it.is_set(CPU_SHARED_SET);
            has_set && !it.is_set(VCPU_PIN_SET) && it.number(RESERVED_HOST_CPUS) > 0.0
        },
        text: "[DEFAULT] reserved_host_cpus goes with neither [compute] cpu_dedicated_set nor \
               cpu_shared_set: remove it",
    },
    Rule {
        options: &[VCPU_PIN_SET, CPU_DEDICATED_SET],
        is_broken: |it| it.is_set(VCPU_PIN_SET) && it.is_set(CPU_DEDICATED_SET),
        text: "[DEFAULT] vcpu_pin_set does not go with [compute] cpu_dedicated_set: remove it",
    },
];

/// The rule that only nova 27 (2023.1) has: nova/virt/libvirt/driver.py,
/// `_check_file_backed_memory_support`.
const OF_27: Rule = Rule {
    options: &[FILE_BACKED_MEMORY, RAM_ALLOCATION_RATIO],
    is_broken: |it| {
        let overcommit = it.number(RAM_ALLOCATION_RATIO) - 1.0;
        it.number(FILE_BACKED_MEMORY) > 0.0 && overcommit.abs() > f64::EPSILON
    },
    text: "[libvirt] file_backed_memory needs [DEFAULT] ram_allocation_ratio = 1.0",
};

/// Returns what nova itself expects of an option, if it refuses the value at its start.
pub(super) fn expected(section: &str, name: &str, value: &str) -> Option<&'static str> {
    let of_place = FORMATS.iter().find(|(place, ..)| *place == (section, name));
    of_place.filter(|(_, takes, _)| !takes(value)).map(|(.., expected)| *expected)
}

/// The value of an option that counts, and where a user sets it; `None` where no user does.
struct Setting<'a> {
    value: &'a str,
    at: Option<At>,
    /// Whether the value is what nova reads: its type takes it, and nothing is substituted in it.
    is_plain: bool,
}

/// The values of a compute's options that count: later ones replace earlier ones.
#[derive(Default)]
pub(super) struct Effective<'a>(BTreeMap<Place, Setting<'a>>);

impl<'a> Effective<'a> {
    /// Sets an option, if a rule reads it; `takes` says whether its type takes a value.
    pub(super) fn set(
        &mut self,
        (section, name): (&str, &str),
        (value, at): (&'a str, Option<At>),
        takes: impl FnOnce(&str) -> bool,
    ) {
        let mut places = RULES.iter().chain([&OF_27]).flat_map(|it| it.options);
        if let Some(place) = places.find(|it| **it == (section, name)) {
            let is_plain = !value.contains('$') && takes(value);
            self.0.insert(*place, Setting { value, at, is_plain });
        }
    }

    /// Returns the rules that are broken, each where a user sets the option that counts first.
    ///
    /// A rule about options that the release does not have is none.
    pub(super) fn broken(
        &self,
        nova: &str,
        is_known: impl Fn(&str, &str) -> bool,
    ) -> Vec<(At, &'static str)> {
        let applies = |it: &&Rule| {
            let mut values = it.options.iter().filter_map(|place| self.0.get(place));
            values.all(|it| it.is_plain)
                && (it.is_broken)(self)
                && it.options.iter().all(|(section, name)| is_known(section, name))
        };
        let at = |it: &Rule| it.options.iter().filter_map(|it| self.0.get(it)?.at).min();
        let rules = RULES.iter().chain(nova.starts_with("27.").then_some(&OF_27));
        rules.filter(applies).filter_map(|it| Some((at(it)?, it.text))).collect()
    }

    fn text(&self, place: Place) -> &'a str {
        self.0.get(&place).map_or("", |it| it.value)
    }

    /// Whether a text or list is not empty.
    fn is_set(&self, place: Place) -> bool {
        self.text(place).contains(|it: char| it != ',' && !it.is_whitespace())
    }

    fn is_true(&self, place: Place, default: bool) -> bool {
        boolean(self.text(place)).unwrap_or(default)
    }

    /// Returns a number, or 0 where none is set.
    fn number(&self, place: Place) -> f64 {
        self.text(place).trim().parse().unwrap_or_default()
    }

    fn cpus(&self, place: Place) -> Option<Cpus> {
        Cpus::read(self.text(place))
    }

    /// Whether guests are of QEMU; the default is kvm.
    fn is_qemu(&self) -> bool {
        ["", "kvm", "qemu"].contains(&self.text(VIRT_TYPE))
    }
}

fn is_driver(value: &str) -> bool {
    let own = ["libvirt.LibvirtDriver", "libvirt.driver.LibvirtDriver"];
    // nova puts nova.virt before the name itself.
    let first = value.split('.').next().unwrap_or_default().to_ascii_lowercase();
    !["libvirt", "libvirtdriver", "nova"].contains(&first.as_str()) || own.contains(&value)
}

/// Returns the items of a list that are not empty.
fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|it| !it.is_empty())
}

fn is_models(value: &str) -> bool {
    items(value).all(|it| it.chars().all(|it| it.is_ascii_alphanumeric() || "._-".contains(it)))
}

/// Whether each item has a level that Python's logging knows, or a number.
fn has_levels(value: &str) -> bool {
    const LEVELS: [&str; 10] = [
        "AUDIT", "CRITICAL", "DEBUG", "ERROR", "FATAL", "INFO", "NOTSET", "TRACE", "WARN",
        "WARNING",
    ];
    items(value).all(|it| {
        let level = it.split_once('=').map_or("", |(_, level)| level);
        LEVELS.contains(&level) || level.trim().parse::<i64>().is_ok()
    })
}

/// Whether a value is a set of processors; an empty value is none, and what only Python reads as a
/// number counts as accepted.
fn is_cpu_set(value: &str) -> bool {
    let is_python = |it: char| it == '_' || it == '+' || !it.is_ascii();
    let is_read = || Cpus::read(value).is_some_and(|it| !it.is_empty());
    value.is_empty() || value.contains(is_python) || is_read()
}

fn is_device_spec(value: &str) -> bool {
    use serde_json::Value;
    let is_id = |it: Option<&Value>| it.is_none_or(Value::is_string);
    let is_device = |it: &Value| {
        it.is_object() && ["vendor_id", "product_id"].iter().all(|key| is_id(it.get(key)))
    };
    match serde_json::from_str(value) {
        Ok(Value::Array(items)) => items.iter().all(is_device),
        Ok(it) => is_device(&it),
        Err(_) => false,
    }
}

fn is_pmem(value: &str) -> bool {
    items(value).all(|it| it.contains(':'))
}

#[cfg(test)]
mod tests;

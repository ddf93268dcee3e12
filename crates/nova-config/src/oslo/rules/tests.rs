//! Rules about several options and nova's own formats, case by case.

use crate::oslo::{Finding, Release, Text, parse, warnings};

const GENERATED: &str =
    "[libvirt]\ncpu_mode = host-model\nimages_type = qcow2\nvolume_use_multipath = True\n";

fn found(release: &str, texts: &[&str]) -> Vec<Finding> {
    let generated = parse(GENERATED).0;
    let texts: Vec<Text<'_>> = texts.iter().map(|text| Text { source: "f", text }).collect();
    warnings(&texts, &generated, Release::named(release), usize::MAX).first
}

/// Whether nova ends at its start with these texts, and at which option that is reported.
#[track_caller]
fn check(texts: &[&str], at: &str, words: &str) {
    let found = found("2026.2", texts);
    let ends: Vec<_> = found.iter().filter(|it| it.message.contains("at its start")).collect();
    assert_eq!(ends.len(), 1, "{found:?}");
    assert_eq!(ends[0].option, at);
    assert!(ends[0].message.contains(words), "{ends:?}");
}

#[track_caller]
fn check_fine(release: &str, text: &str) {
    let found = found(release, &[text]);
    assert!(found.iter().all(|it| !it.message.contains("at its start")), "{text}: {found:?}");
}

#[test]
fn options_that_end_nova_together_are_reported_where_the_user_sets_the_first() {
    let models = "counts only with cpu_mode = custom";
    check(&["[libvirt]\ncpu_models = Nehalem\n"], "[libvirt] cpu_models", models);
    check(&["[Libvirt]\ncpu_model = Nehalem\n"], "[Libvirt] cpu_model", models);
    let custom = "[libvirt]\ncpu_mode = custom\n";
    check(&[custom], "[libvirt] cpu_mode", "needs cpu_models");
    check_fine("2026.2", &format!("{custom}cpu_models = Nehalem\n"));
    // A stronger text decides, and a weaker one may have the other half.
    let weaker = "[libvirt]\ncpu_mode = custom\ncpu_models = Nehalem\n";
    check(&["[libvirt]\ncpu_mode = none\n", weaker], "[libvirt] cpu_mode", models);
    assert_eq!(found("2026.2", &[custom, "[libvirt]\ncpu_models = Nehalem\n"]), []);
}

#[test]
fn every_rule_has_values_that_break_it_and_values_that_do_not() {
    for (text, at, words) in [
        ("[libvirt]\nvirt_type = lxc\n", "[libvirt] virt_type", "cpu_mode must be none"),
        (
            "[libvirt]\nvirt_type = lxc\ncpu_mode = none\nswtpm_enabled = 1\n",
            "[libvirt] virt_type",
            "swtpm_enabled must be False",
        ),
        (
            "[libvirt]\nlive_migration_with_native_tls = yes\nlive_migration_tunnelled = on\n",
            "[libvirt] live_migration_with_native_tls",
            "exclude each other",
        ),
        (
            "[libvirt]\nimages_type = rbd\n[DEFAULT]\nforce_raw_images = no\n",
            "[libvirt] images_type",
            "force_raw_images = True",
        ),
        (
            "[libvirt]\nvolume_enforce_multipath = True\nvolume_use_multipath = False\n",
            "[libvirt] volume_enforce_multipath",
            "needs volume_use_multipath",
        ),
        (
            "[compute]\ncpu_dedicated_set = 2-7\ncpu_shared_set = 0-2\n",
            "[compute] cpu_dedicated_set",
            "no processor in common",
        ),
        (
            "[DEFAULT]\nreserved_host_cpus = 2\n[compute]\ncpu_shared_set = 0-2\n",
            "[DEFAULT] reserved_host_cpus",
            "goes with neither",
        ),
        (
            "[DEFAULT]\nvcpu_pin_set = 1\n[compute]\ncpu_dedicated_set = 2\n",
            "[DEFAULT] vcpu_pin_set",
            "does not go with",
        ),
    ] {
        check(&[text], at, words);
    }
    for text in [
        "[libvirt]\nvirt_type = lxc\ncpu_mode = none\n",
        "[libvirt]\nlive_migration_with_native_tls = yes\n",
        "[libvirt]\nimages_type = rbd\n",
        "[libvirt]\nvolume_enforce_multipath = True\n",
        "[compute]\ncpu_dedicated_set = 2-7\ncpu_shared_set = 0-2,^2\n",
        "[DEFAULT]\nreserved_host_cpus = 0\n[compute]\ncpu_shared_set = 0-2\n",
        "[libvirt]\ncpu_mode = $virt_type\n",
        // Another warning says that the value itself is refused.
        "[libvirt]\nvirt_type = qemv\n",
    ] {
        check_fine("2026.2", text);
    }
}

#[test]
fn a_rule_holds_for_the_releases_that_have_it() {
    let text = "[libvirt]\nfile_backed_memory = 4096\n";
    check_fine("2026.2", text);
    let found = found("2023.1", &[text]);
    let words = "needs [DEFAULT] ram_allocation_ratio = 1.0";
    assert!(found.iter().any(|it| it.message.contains(words)), "{found:?}");
    check_fine("2023.1", &format!("{text}[DEFAULT]\nram_allocation_ratio = 1.0\n"));
    // Its nova has no such option.
    let text = "[libvirt]\nvolume_enforce_multipath = True\nvolume_use_multipath = False\n";
    check_fine("2023.1", text);
}

#[test]
fn formats_that_nova_itself_reads_are_judged() {
    for (text, at) in [
        ("[compute]\ncpu_dedicated_set = 4-\n", "[compute] cpu_dedicated_set"),
        ("[compute]\ncpu_shared_set = 1,^1\n", "[compute] cpu_shared_set"),
        ("[pci]\ndevice_spec = {'vendor_id': '15b3'}\n", "[pci] device_spec"),
        ("[pci]\npassthrough_whitelist = [1]\n", "[pci] passthrough_whitelist"),
        ("[compute]\nmax_disk_devices_to_attach = 0\n", "[compute] max_disk_devices_to_attach"),
        ("[libvirt]\npmem_namespaces = a\n", "[libvirt] pmem_namespaces"),
        ("[pci]\ndevice_spec = {\"vendor_id\": 8086}\n", "[pci] device_spec"),
        ("[DEFAULT]\ncompute_driver = libvirt.LibvirtDrive\n", "[DEFAULT] compute_driver"),
        ("[DEFAULT]\ncompute_driver = libvirt\n", "[DEFAULT] compute_driver"),
        (
            "[DEFAULT]\ncompute_driver = nova.virt.libvirt.LibvirtDriver\n",
            "[DEFAULT] compute_driver",
        ),
        ("[DEFAULT]\ndefault_log_levels = nova=debug\n", "[DEFAULT] default_log_levels"),
        ("[DEFAULT]\ndefault_log_levels = a=INFO,nova:DEBUG\n", "[DEFAULT] default_log_levels"),
        ("[libvirt]\ncpu_mode = custom\ncpu_models = Nehalem Haswell\n", "[libvirt] cpu_models"),
        ("[libvirt]\ncpu_mode = custom\ncpu_models = [Nehalem]\n", "[libvirt] cpu_models"),
    ] {
        check(&[text], at, "it must be");
    }
    for text in [
        "[compute]\ncpu_dedicated_set = 4-7,^5\ncpu_shared_set =\nmax_disk_devices_to_attach = 1\n",
        "[pci]\ndevice_spec = {\"a\": \"1\"}\ndevice_spec = [{\"a\": \"1\"},\n  {\"b\": \"2\"}]\n",
        "[libvirt]\npmem_namespaces = a:x|y,b:z\n[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\n",
        "[compute]\ncpu_dedicated_set = $x$$\n",
        "[DEFAULT]\ndefault_log_levels = nova=DEBUG, amqp=10,\ncompute_driver = my.Driver\n",
        "[libvirt]\ncpu_mode = custom\ncpu_models = Skylake-Client-noTSX-IBRS,\n  qemu64_v1.0\n",
    ] {
        check_fine("2026.2", text);
    }
}

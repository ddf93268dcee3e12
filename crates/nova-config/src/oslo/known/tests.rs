//! The warnings on options by a release of nova, case by case.

use proptest::prelude::*;

use crate::oslo::{Finding, Release, Text, warnings};

fn found(release: &str, text: &str) -> Vec<Finding> {
    let release = Release::named(release).unwrap();
    warnings(&[Text { source: "f", text }], &[], Some(release), usize::MAX).first
}

/// The line, option and rest of each message.
#[track_caller]
fn check(text: &str, expected: &[(usize, &str, &str)]) {
    let found = found("2026.2", text);
    let told: Vec<(usize, &str, &str)> = found
        .iter()
        .map(|it| {
            let begin = format!("f, line {}, column {}: {} ", it.line, it.column, it.option);
            let rest = it.message.strip_prefix(&begin).unwrap();
            (it.line, it.option.as_str(), rest)
        })
        .collect();
    assert_eq!(told, expected);
}

#[track_caller]
fn check_unknown(text: &str, option: &str, advice: &str) {
    let unknown = format!("is not known to nova 34.0.0 and therefore ignored: {advice}");
    check(text, &[(2, option, &unknown)]);
}

#[test]
fn what_every_release_knows_is_no_finding() {
    for release in Release::all() {
        let text = "[DEFAULT]\ndebug = True\nreserved_huge_pages = node:0,size:2048,count:64\n\
             [Libvirt]\ncpu_mode = custom\ncpu_models = Nehalem\nvirt_type = qemu\n\
             [pci]\ndevice_spec = { \"a\": \"1\" }\ndevice_spec = { \"a\": \"2\" }\n\
             [mdev_nvidia-35]\ndevice_addresses = 0000:84:00.0\n\
             [neutron]\nphysnets = a,b\n[neutron_physnet_a]\nnuma_nodes = 0,1\n\
             [neutron_tunnel]\nnuma_nodes = 0\n\
             [placement]\napplication_credential_id = a\ninsecure = true\n\
             [nova_sys_admin]\nhelper_command = sudo\n[privsep_osbrick]\nuser = root\n\
             [vif_plug_ovs_privileged]\nthread_pool_size = 4\n\
             [oslo_messaging_rabbit]\nheartbeat_timeout_threshold = 60\n\
             [oslo_messaging_notifications]\ndriver = messagingv2\ndriver = log\n\
             [workarounds]\nenable_qemu_monitor_announce_self = yes\n\
             [vendordata_dynamic_auth]\nauth_type = password\nusername = x\n\
             [key_manager]\nbackend = barbican\n[barbican]\nauth_endpoint = http://k\n";
        let told: Vec<String> =
            found(release.name(), text).into_iter().map(|it| it.message).collect();
        assert_eq!(told, Vec::<String>::new(), "{release:?}");
    }
}

#[test]
fn a_misspelt_option_is_told_with_what_may_have_been_meant() {
    check_unknown("[libvirt]\ncpu_modls = a\n", "[libvirt] cpu_modls", "did you mean cpu_models?");
    check_unknown(
        "[libvirt]\ncpu_modle = custom\n",
        "[libvirt] cpu_modle",
        "did you mean cpu_mode or cpu_models?",
    );
    check_unknown("[libvirt]\ncpu-mode = custom\n", "[libvirt] cpu-mode", "write cpu_mode");
    check_unknown("[libvirt]\nCPU_Mode = custom\n", "[libvirt] CPU_Mode", "write cpu_mode");
    check_unknown("[libvirt]\nquota_left = 1\n", "[libvirt] quota_left", "check its spelling");
    check_unknown(
        "[DEFAULT]\ncpu_mode = custom\n",
        "[DEFAULT] cpu_mode",
        "an option of this name exists in [libvirt]",
    );
    check_unknown("[neutron]\nusernme = x\n", "[neutron] usernme", "did you mean username?");
    check_unknown(
        "[oslo_messaging_rabbit]\nrabbit_durable_queues = True\n",
        "[oslo_messaging_rabbit] rabbit_durable_queues",
        "check its spelling",
    );
}

#[test]
fn a_misspelt_section_is_told_with_what_may_have_been_meant() {
    let unknown = "is in a section that is not known to nova 34.0.0 and therefore ignored:";
    let meant = format!("{unknown} did you mean [libvirt]?");
    check("[libvrit]\ncpu_mode = none\n", &[(2, "[libvrit] cpu_mode", &meant)]);
    let meant = format!("{unknown} did you mean [oslo_messaging_rabbit]?");
    check("[oslo_messaging_rabit]\nssl = 1\n", &[(2, "[oslo_messaging_rabit] ssl", &meant)]);
    let none = format!("{unknown} check its spelling");
    check("[frobnicate]\na = 1\n", &[(2, "[frobnicate] a", &none)]);
}

#[test]
fn a_value_outside_its_type_range_or_choices_is_told() {
    let refused = |wanted: &str| {
        format!(
            "has a value that nova 34.0.0 refuses, and nova-compute fails when it reads it: it must \
             be {wanted}"
        )
    };
    let cases = [
        ("debug = maybe", "true or false"),
        ("reserved_host_memory_mb = 4G", "an integer of at least 0"),
        ("cpu_allocation_ratio = -1", "a number of at least 0"),
        ("reserved_huge_pages = 2048", "a list of NAME:VALUE separated by commas"),
        ("host = not_a host", "an IP address or a host name"),
    ];
    for (line, wanted) in cases {
        let found = found("2026.2", &format!("[DEFAULT]\n{line}\n"));
        let told: Vec<_> = found.iter().filter(|it| it.message.contains("a value that")).collect();
        assert_eq!(told.len(), 1, "{found:?}");
        assert!(told[0].message.ends_with(&refused(wanted)), "{told:?}");
        let value = line.split_once(" = ").unwrap().1;
        assert!(!told[0].message.contains(&format!(" {value}")), "{told:?}");
    }
    check(
        "[spice]\nhtml5proxy_port = 70000\n[libvirt]\ncpu_mode = Custom\n",
        &[
            (2, "[spice] html5proxy_port", &refused("an integer from 0 to 65535")),
            (
                4,
                "[libvirt] cpu_mode",
                &refused("one of host-model, host-passthrough, custom, none"),
            ),
        ],
    );
}

#[test]
fn a_value_that_names_another_option_is_not_judged() {
    check("[libvirt]\ncpu_mode = $virt_type\n[spice]\nhtml5proxy_port = ${my_ip}\n", &[]);
    check("[vnc]\nserver_listen = $libvirt.virt_type\nnovncproxy_base_url = http://a/$$x\n", &[]);
}

#[test]
fn a_value_that_names_no_option_is_told_without_itself() {
    let fails = "has a $ with the name of no option of nova 34.0.0 behind it, and nova-compute fails \
                 when it reads the value: write $$ for a dollar sign";
    check(
        "[vnc]\nserver_proxyclient_address = $my_ipv6\n\
         [serial_console]\nbase_url = ws://proxy.example.com/$token\n\
         proxyclient_address = $my_ip.example.com\n[spice]\nserver_listen = $Libvirt.virt_type\n",
        &[
            (2, "[vnc] server_proxyclient_address", fails),
            (4, "[serial_console] base_url", fails),
            (5, "[serial_console] proxyclient_address", fails),
            (7, "[spice] server_listen", fails),
        ],
    );
    // A plugin may have any option.
    check(
        "[DEFAULT]\ncompute_driver = mine.Driver\n[mine]\na = 1\n[vnc]\nserver_listen = $x\n",
        &[],
    );
}

#[test]
fn an_indented_option_is_told_as_a_part_of_the_value_above() {
    check(
        "[libvirt]\ncpu_mode = host-model\n  virt_type = qemu\n",
        &[
            (
                2,
                "[libvirt] cpu_mode",
                "has a value that nova 34.0.0 refuses, and nova-compute fails when it reads it: it \
                 must be one of host-model, host-passthrough, custom, none",
            ),
            (
                2,
                "[libvirt] cpu_mode",
                "has line 3 as a part of its value, because that is indented: remove the spaces at \
                 its beginning if virt_type is to be an option",
            ),
        ],
    );
    check("[libvirt]\nhw_machine_type = x86_64=q35,\n  aarch64=virt\n", &[]);
}

#[test]
fn values_of_several_texts_that_add_up_are_told_once_and_where() {
    let release = Some(Release::newest());
    let custom = "[pci]\ndevice_spec = {\"a\": \"1\"}\ndevice_spec = {\"a\": \"2\"}\n[libvirt]\ncpu_mode = none\n";
    let default = "[pci]\ndevice_spec = {\"a\": \"3\"}\n[libvirt]\ncpu_mode = host-model\n";
    let texts = [Text { source: "f", text: custom }, Text { source: "ConfigMap d", text: default }];
    let found = warnings(&texts, &[], release, 9).first;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0].message,
        "f, line 3, column 1: [pci] device_spec may be set several times, so this does not replace \
         its values in ConfigMap d: all of them count"
    );
    assert_eq!(warnings(&texts[..1], &[], release, 9).first, []);
}

#[test]
fn an_old_name_is_told_with_the_present_one_and_its_value_is_judged_by_it() {
    check(
        "[libvirt]\ncpu_model = Nehalem\ncpu_mode = custom\n[DEFAULT]\nvnc_enabled = perhaps\n",
        &[
            (2, "[libvirt] cpu_model", "is an old name of cpu_models in nova 34.0.0: write that"),
            (
                5,
                "[DEFAULT] vnc_enabled",
                "is an old name of [vnc] enabled in nova 34.0.0: write that",
            ),
            (
                5,
                "[DEFAULT] vnc_enabled",
                "has a value that nova 34.0.0 refuses, and nova-compute fails when it reads it: it \
                 must be true or false",
            ),
        ],
    );
}

#[test]
fn an_option_that_will_be_removed_is_told_with_what_nova_names_in_its_stead() {
    let removed = "is deprecated in nova 34.0.0 and will be removed:";
    let instead = format!(
        "{removed} nova names [compute] cpu_dedicated_set and [compute] cpu_shared_set in its stead"
    );
    let nothing = format!("{removed} nova is to do without it");
    check(
        "[DEFAULT]\nvcpu_pin_set = 1\nconfig_drive_format = vfat\n",
        &[(2, "[DEFAULT] vcpu_pin_set", &instead), (3, "[DEFAULT] config_drive_format", &nothing)],
    );
}

#[test]
fn a_single_value_that_is_set_twice_is_told_where_it_has_no_effect() {
    check(
        "[libvirt]\ncpu_mode = custom\n[DEFAULT]\ndebug = 1\n[Libvirt]\ncpu_mode = none\n",
        &[(2, "[libvirt] cpu_mode", "is set again in line 6, and only the last value counts")],
    );
}

#[test]
fn what_a_plugin_may_read_is_not_judged() {
    check("[ironic]\nauth_type = v3mine\nmy_token = x\n", &[]);
    check("[ironic]\nauth_section = common\n[common]\nauth_type = password\nuser_id = x\n", &[]);
    check("[DEFAULT]\nconfig_source = remote\n[remote]\ndriver = mine\nuri = x\n", &[]);
    check("[DEFAULT]\ncompute_driver = mine.Driver\n[mine]\na = 1\n[libvirt]\nb = 1\n", &[]);
    check(
        "[os_vif_mine]\na = 1\n[vif_plug_mine_privileged]\nuser = x\n[oslo_messaging_mine]\na = 1\n",
        &[],
    );
    let found = found("2026.2", "[ironic]\nauth_section = common\n[common]\nusr_id = x\n");
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn one_texts_choice_counts_for_the_others() {
    let release = Some(Release::newest());
    let custom = Text { source: "a", text: "[neutron]\nmy_token = x\n" };
    let default = Text { source: "b", text: "[neutron]\nauth_type = v3mine\n" };
    assert_eq!(warnings(&[custom], &[], release, 9).first.len(), 1);
    let both = warnings(&[custom, default], &[], release, 9).first;
    // The plugin is the operator's choice, which is reported.
    assert_eq!(
        both.iter().map(|it| it.option.as_str()).collect::<Vec<_>>(),
        ["[neutron] auth_type"]
    );
}

#[test]
fn what_holds_depends_on_the_release() {
    let text = "[quota]\nunified_limits_resource_list = VCPU\n";
    assert_eq!(found("2026.2", text), []);
    let told = found("2023.1", text);
    assert!(told[0].message.contains("is not known to nova 27.5.1"), "{told:?}");
}

#[test]
fn any_number_of_unknown_options_is_answered_soon() {
    let many: Vec<String> = (0..5_000).map(|it| format!("cpu_mod{it} = 1\n")).collect();
    let found = found("2026.2", &format!("[libvirt]\n{}", many.concat()));
    assert_eq!(found.len(), 5_000);
    assert!(found.last().unwrap().message.ends_with("check its spelling"));
}

fn any_option() -> impl Strategy<Value = String> {
    let sections = "\\[(DEFAULT|libvirt|Neutron|pci|mdev_a|vnc|x|oslo_x)\\]\n";
    let options = "(debug|cpu_model|cpu_mode|auth_type|auth_section|alias|enabled|[a-z_]{1,9}) = \
                   ([ -~]{0,8}|1|true|libvirt)\n";
    prop_oneof![1 => sections.prop_map(|it: String| it), 3 => options.prop_map(|it: String| it)]
}

proptest! {
    #[test]
    fn whatever_is_read_is_judged_at_its_place(
        lines in prop::collection::vec(any_option(), 0..12),
        nth in 0..Release::all().count(),
    ) {
        let text = format!("[DEFAULT]\n{}", lines.concat());
        let n_lines = text.lines().count();
        let text = Text { source: "f", text: &text };
        for it in warnings(&[text], &[], Release::all().nth(nth), usize::MAX).first {
            prop_assert!((2..=n_lines).contains(&it.line), "{it:?}");
            prop_assert!(it.message.contains(&it.option), "{it:?}");
        }
    }
}

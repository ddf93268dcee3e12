//! The files of a compute, read back by the parser of `oslo`.

use std::collections::BTreeMap;

use super::{
    CellFaultReason, CellInput, CellView, HostView, Input, SecretView, Source, Text, cell_files,
    files,
};
use crate::oslo::{self, Release, Value, parse};

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
static NO_FILES: BTreeMap<String, String> = BTreeMap::new();

/// A cell with these keys in its two Secrets.
fn cell<'a>(
    secret: &[(&'a str, &'a str)],
    message_bus: &[(&'a str, &'a str)],
) -> Result<CellView, Vec<super::CellFault>> {
    let view = |name, data: &[(&'a str, &'a str)]| SecretView {
        namespace: "openstack",
        name,
        data: data.iter().map(|(key, value)| (*key, value.as_bytes())).collect(),
    };
    CellView::read(&CellInput {
        is_ca_bundle: |it| it.contains(CERTIFICATE),
        keystone_auth_url: "http://10.96.10.10:5000",
        service_user: "nova",
        secret: view("nova-cell1", secret),
        message_bus: view("nova-cell1-transport", message_bus),
    })
}

const BUS: &[(&str, &str)] = &[("transport_url", "rabbit://nova:bus-pw@10.96.10.21:5672/cell1")];
const PASSWORD: (&str, &str) = ("ServicePassword", "keystone-pw");

fn host() -> HostView {
    HostView {
        host_name: Value::new("edpm-compute-0").unwrap(),
        my_ip: Some(Value::new("192.168.122.100").unwrap()),
    }
}

fn rendered(cell: &CellView, custom: &str) -> BTreeMap<String, String> {
    rendered_for(Some(Release::newest()), cell, custom)
}

fn rendered_for(
    release: Option<Release>,
    cell: &CellView,
    custom: &str,
) -> BTreeMap<String, String> {
    let host = host();
    let input = Input {
        cell,
        cell_source: Source::new("NovaCell", "openstack", "nova-cell1"),
        host: &host,
        release,
        role_default: None,
        custom: Text {
            source: Source::new("NovaExternalCompute", "openstack", "edpm-compute-0"),
            text: custom,
        },
        further: &NO_FILES,
    };
    files(&input).into_iter().map(|(name, file)| (name, file.content)).collect()
}

/// The values of an option in `01-nova.conf`, by section.
fn option(cell: &CellView, name: &str) -> BTreeMap<String, String> {
    let (entries, errors) = parse(&rendered(cell, "")["01-nova.conf"]);
    assert_eq!(errors, []);
    entries.into_iter().filter(|it| it.key == name).map(|it| (it.section, it.value)).collect()
}

#[test]
fn a_plain_cell_gives_the_golden_file() {
    let files = rendered(&cell(&[PASSWORD], BUS).unwrap(), "");
    assert_eq!(files["01-nova.conf"], include_str!("testdata/01-nova.conf"));
}

#[test]
fn the_name_of_a_region_is_as_long_as_keystone_takes() {
    let of_length = |n| cell(&[PASSWORD, ("RegionName", &"r".repeat(n))], BUS);
    assert!(of_length(255).is_ok());
    let faults = of_length(256).unwrap_err();
    assert_eq!((faults.len(), faults[0].key.as_str()), (1, "RegionName"));
}

#[test]
fn a_value_beyond_its_limit_is_a_fault() {
    for (key, limit, words) in [
        ("CABundle", 256 << 10, "the value of key CABundle is longer than 256 KiB"),
        ("ServicePassword", 4 << 10, "the value of key ServicePassword is longer than 4 KiB"),
        ("NoVNCProxyURL", 4 << 10, "the value of key NoVNCProxyURL is longer than 4 KiB"),
    ] {
        let of_length = |n| {
            let long = "x".repeat(n);
            let others = [PASSWORD].into_iter().filter(|it| it.0 != key);
            cell(&others.chain([(key, &*long)]).collect::<Vec<_>>(), BUS)
        };
        let faults = of_length(limit + 1).unwrap_err();
        assert_eq!((faults.len(), faults[0].key.as_str()), (1, key));
        assert!(faults[0].message.ends_with(words), "{faults:?}");
        let found = of_length(limit).err().unwrap_or_default();
        assert!(found.iter().all(|it| !it.message.contains("longer")), "{found:?}");
    }
}

#[test]
fn a_cell_with_every_key_gives_the_golden_file() {
    let ca = format!("{CERTIFICATE}\nMA==\n-----END CERTIFICATE-----\n");
    let cell = cell(
        &[
            PASSWORD,
            ("RegionName", "north"),
            ("ProjectDomainName", "services"),
            ("UserDomainName", "users"),
            ("ProjectName", "system"),
            ("CABundle", &ca),
            ("NoVNCProxyURL", "https://console.example.org/"),
            ("quorum_queues", "true"),
            ("notification_transport_url", "rabbit://n:p@h3:5671/notify?ssl=1"),
        ],
        &[("transport_url", "rabbit://u:p@h1:5671,u:p@h2:5671/cell1?ssl=1")],
    )
    .unwrap();
    let files = rendered(&cell, "");
    assert_eq!(files["01-nova.conf"], include_str!("testdata/01-nova-full.conf"));
    assert_eq!(parse(&files["01-nova.conf"]).1, []);
    // The operator's own options, and those that nova deprecates without a replacement.
    let expected = ["is set by the operator", "is deprecated"];
    for release in Release::all() {
        let files = rendered_for(Some(release), &cell, "");
        let text = oslo::Text { source: "01-nova.conf", text: &files["01-nova.conf"] };
        let mut found = oslo::warnings(&[text], &[], Some(release), usize::MAX).first;
        found.retain(|it| !expected.iter().any(|words| it.message.contains(words)));
        let found: Vec<&str> = found.iter().map(|it| it.option.as_str()).collect();
        // Ignored when oslo.messaging does not have the option yet.
        let is_old = release.name() == "2023.1";
        let unknown = ["[oslo_messaging_rabbit] rabbit_transient_quorum_queue"];
        assert_eq!(found, if is_old { &unknown[..] } else { &[] }, "{release:?}");
    }
    assert!(files["tls-ca-bundle.pem"].contains(ca.trim()));
}

#[test]
fn nova_is_told_how_long_it_may_take_to_stop_only_where_it_knows_the_option() {
    let cell = cell(&[PASSWORD], BUS).unwrap();
    let told = |release| {
        let (entries, _) = parse(&rendered_for(release, &cell, "")["01-nova.conf"]);
        let mut told: Vec<(String, String)> = Vec::new();
        let of_stop = entries.into_iter().filter(|it| it.key.ends_with("shutdown_timeout"));
        told.extend(of_stop.map(|it| (format!("[{}] {}", it.section, it.key), it.value)));
        told
    };
    let both = [
        ("[DEFAULT] manager_shutdown_timeout".to_owned(), "5".to_owned()),
        ("[DEFAULT] graceful_shutdown_timeout".to_owned(), "15".to_owned()),
    ];
    for release in Release::all() {
        let is_told = release.name() >= "2026.1";
        assert_eq!(told(Some(release)), if is_told { &both[..] } else { &[] }, "{release:?}");
    }
    assert_eq!(told(None), [], "of a release that we do not know");
}

#[test]
fn every_file_names_its_source_and_keeps_the_humans_text() {
    let cell = cell(&[PASSWORD], BUS).unwrap();
    let host = host();
    let input = Input {
        cell: &cell,
        cell_source: Source::new("NovaCell", "openstack", "nova-cell1"),
        host: &host,
        release: None,
        role_default: Some(Text {
            source: Source::new("ConfigMap", "openstack", "defaults"),
            text: "[libvirt]\nvirt_type = qemu",
        }),
        custom: Text {
            source: Source::new("NovaExternalCompute", "openstack", "edpm-compute-0"),
            text: "[libvirt]\ncpu_mode = custom\n  \ncpu_models = Nehalem",
        },
        further: &NO_FILES,
    };
    let files = files(&input);
    let sources: Vec<_> =
        files.iter().map(|(name, it)| (name.as_str(), it.source.to_string())).collect();
    let compute = "NovaExternalCompute openstack/edpm-compute-0".to_owned();
    assert_eq!(
        sources,
        [
            ("01-nova.conf", "NovaCell openstack/nova-cell1".to_owned()),
            ("02-nova-default.conf", "ConfigMap openstack/defaults".to_owned()),
            ("02-nova-override.conf", compute.clone()),
            ("nova-blank.conf", compute),
        ]
    );
    for file in files.values() {
        let (first, _) = file.content.split_once('\n').unwrap();
        assert!(first.starts_with("# ") && first.contains(&file.source.to_string()), "{first}");
        assert_eq!(parse(&file.content).1, []);
    }
    assert!(files["02-nova-override.conf"].content.ends_with(input.custom.text));
    assert!(files["02-nova-default.conf"].content.ends_with("\nvirt_type = qemu"));
    assert_eq!(parse(&files["nova-blank.conf"].content).0, []);
}

/// A cell's files have the same options as those of its computes, except those of a host.
#[test]
fn a_cells_files_differ_from_a_computes_only_in_the_host_and_in_comments() {
    let ca = format!("{CERTIFICATE}\nMA==\n-----END CERTIFICATE-----\n");
    for secret in [vec![PASSWORD], vec![PASSWORD, ("CABundle", &ca)]] {
        let cell = cell(&secret, BUS).unwrap();
        let of_compute = rendered(&cell, "");
        let of_cell = cell_files(&cell, &Source::new("NovaCell", "openstack", "nova-cell1"));
        let options = |text: &str| -> Vec<(String, String, String)> {
            let (entries, errors) = parse(text);
            assert_eq!(errors, []);
            entries.into_iter().map(|it| (it.section, it.key, it.value)).collect()
        };
        let mut expected = options(&of_compute["01-nova.conf"]);
        // The shutdown timeouts are set per compute too: the cell's text must never change by
        // itself.
        let own = ["host", "my_ip", "manager_shutdown_timeout", "graceful_shutdown_timeout"];
        expected.retain(|(_, key, _)| !own.contains(&key.as_str()));
        assert_eq!(options(&of_cell["01-nova.conf"].content), expected);
        assert_eq!(options(&of_cell["nova-blank.conf"].content), []);
        let mut names: Vec<&String> = of_compute.keys().collect();
        names.retain(|it| *it != "02-nova-override.conf");
        assert_eq!(of_cell.keys().collect::<Vec<_>>(), names);
        assert!(!of_cell["01-nova.conf"].content.contains("NovaExternalCompute"));
    }
}

#[test]
fn the_fixed_options_are_generated_and_count_with_a_users_own() {
    let generated = super::fixed_options();
    let (entries, _) = parse(&rendered(&cell(&[PASSWORD], BUS).unwrap(), "")["01-nova.conf"]);
    for it in &generated {
        let same = |other: &oslo::Entry| {
            (&it.section, &it.key, &it.value) == (&other.section, &other.key, &other.value)
        };
        assert!(entries.iter().any(same), "[{}] {}", it.section, it.key);
    }
    let custom = oslo::Text { source: "f", text: "[libvirt]\ncpu_models = Nehalem\n" };
    let found = oslo::warnings(&[custom], &generated, Some(Release::newest()), 9).first;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains("counts only with cpu_mode = custom"), "{found:?}");
}

/// An operator of cells writes the key empty where there are no notifications.
#[test]
fn notifications_go_to_the_bus_that_is_given_for_them() {
    let key = "notification_transport_url";
    let with = cell(&[PASSWORD, (key, "rabbit://n:p@h:5672/n")], BUS).unwrap();
    let section = "oslo_messaging_notifications";
    assert_eq!(option(&with, "transport_url")[section], "rabbit://n:p@h:5672/n");
    assert_eq!(option(&with, "driver")[section], "messagingv2");
    let without = cell(&[PASSWORD, (key, "\n")], BUS).unwrap();
    assert_eq!(rendered(&without, ""), rendered(&cell(&[PASSWORD], BUS).unwrap(), ""));
}

#[test]
fn a_human_overrides_what_is_generated() {
    let files = rendered(
        &cell(&[PASSWORD], BUS).unwrap(),
        "[libvirt]\ncpu_mode = custom\ncpu_models = Nehalem\n",
    );
    let value = |key: &str| {
        let mut entries = files.values().flat_map(|it| parse(it).0);
        // The files are read in the order of their names, and the last value counts.
        entries.by_ref().filter(|it| it.section == "libvirt" && it.key == key).last().unwrap().value
    };
    assert_eq!(value("cpu_mode"), "custom");
    assert_eq!(value("cpu_models"), "Nehalem");
    assert_eq!(value("images_type"), "qcow2");
}

#[test]
fn nothing_is_logged_to_a_file_and_no_database_is_named() {
    let (entries, _) = parse(&rendered(&cell(&[PASSWORD], BUS).unwrap(), "")["01-nova.conf"]);
    for entry in entries {
        assert!(!["log_file", "log_dir", "debug", "connection"].contains(&entry.key.as_str()));
        assert!(!["database", "api_database"].contains(&entry.section.as_str()));
    }
}

#[test]
fn secrets_with_odd_characters_are_taken_literally() {
    for (secret, written) in [
        ("pa$$word", "pa$$$$word"),
        ("'quoted'", "'quoted'"),
        ("  spaces ", "  spaces "),
        ("#;=:[x]", "#;=:[x]"),
        ("100% ${host}", "100% $${host}"),
        ("ends with a line break\n", "ends with a line break"),
    ] {
        let cell = cell(&[("ServicePassword", secret)], BUS).unwrap();
        assert_eq!(option(&cell, "password")["placement"], written);
    }
}

#[test]
fn debug_shows_no_secret() {
    let cell = cell(&[PASSWORD], BUS).unwrap();
    let shown = format!("{cell:?}{:?}", rendered(&cell, "").len());
    assert!(!shown.contains("keystone-pw") && !shown.contains("bus-pw"), "{shown}");
}

#[track_caller]
fn check(
    secret: &[(&str, &str)],
    message_bus: &[(&str, &str)],
    expected: &[(&str, CellFaultReason)],
) {
    let faults = cell(secret, message_bus).unwrap_err();
    let found: Vec<_> = faults.iter().map(|it| (it.key.as_str(), it.reason)).collect();
    assert_eq!(found, expected);
    for fault in faults {
        assert!(fault.message.contains(&fault.key) && fault.message.contains("nova-cell1"));
        assert!(!fault.message.contains("hunter2"));
    }
}

#[test]
fn all_missing_keys_are_named_at_once() {
    use CellFaultReason::KeyMissing;
    check(&[], &[], &[("transport_url", KeyMissing), ("ServicePassword", KeyMissing)]);
    check(&[("ServicePassword", "\n")], BUS, &[("ServicePassword", KeyMissing)]);
}

#[test]
fn a_missing_key_comes_with_the_command_that_adds_it() {
    let faults = cell(&[], BUS).unwrap_err();
    assert_eq!(
        faults[0].message,
        "Secret openstack/nova-cell1 lacks the key ServicePassword; add it: kubectl -n openstack \
         patch secret nova-cell1 --type merge -p '{\"stringData\":{\"ServicePassword\":\"…\"}}'"
    );
    assert_eq!(faults[0].secret.as_deref(), Some("openstack/nova-cell1"));
}

#[test]
fn values_that_cannot_be_used_are_named_without_themselves() {
    use CellFaultReason::ValueInvalid;
    check(&[("ServicePassword", "hunter2\nb")], BUS, &[("ServicePassword", ValueInvalid)]);
    check(&[("ServicePassword", "hunter2\\$")], BUS, &[("ServicePassword", ValueInvalid)]);
    check(&[PASSWORD, ("CABundle", "hunter2")], BUS, &[("CABundle", ValueInvalid)]);
    check(&[PASSWORD, ("quorum_queues", "hunter2")], BUS, &[("quorum_queues", ValueInvalid)]);
    let notifications = ("notification_transport_url", "http://u:hunter2@h/");
    check(&[PASSWORD, notifications], BUS, &[(notifications.0, ValueInvalid)]);
    check(
        &[PASSWORD],
        &[("transport_url", "rabbit://u:hunter2#@h/")],
        &[("transport_url", ValueInvalid)],
    );
}

#[test]
fn an_application_credential_logs_in_in_place_of_user_and_password_in_each_section_that_logs_in() {
    let credential = [PASSWORD, ("ACID", "0123\n"), ("ACSecret", "s3cret")];
    let with = cell(&credential, BUS).unwrap();
    let sections = ["cinder", "neutron", "placement", "service_user"];
    let each = |value: &str| sections.map(|it| (it.to_owned(), value.to_owned())).into();
    assert_eq!(option(&with, "auth_type"), each("v3applicationcredential"));
    assert_eq!(option(&with, "application_credential_id"), each("0123"));
    assert_eq!(option(&with, "application_credential_secret"), each("s3cret"));
    assert_eq!(option(&with, "auth_url").len(), 4);
    for name in ["username", "password", "project_name", "user_domain_name", "project_domain_name"]
    {
        assert_eq!(option(&with, name).len(), 0, "{name}");
    }
    // Upstream's operator writes both keys empty where no credential is used.
    let without = cell(&[PASSWORD, ("ACID", ""), ("ACSecret", "\n")], BUS).unwrap();
    assert_eq!(rendered(&without, ""), rendered(&cell(&[PASSWORD], BUS).unwrap(), ""));
}

#[test]
fn half_an_application_credential_is_told_by_the_key_that_is_missing() {
    for (given, missing) in [("ACID", "ACSecret"), ("ACSecret", "ACID")] {
        let faults = cell(&[PASSWORD, (given, "x")], BUS).unwrap_err();
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].reason, CellFaultReason::KeyMissing);
        assert!(faults[0].message.contains(&format!("lacks the key {missing}")), "{faults:?}");
    }
}

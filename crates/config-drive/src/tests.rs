//! Tests of drives of valid hosts, and of the faults of invalid ones.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv";
const NEW: ApiVersion = ApiVersion { major: 1, minor: 59 };

/// A host with a bond, a VLAN on it, and an address.
fn good() -> Value {
    json!({
        "hostName": "edpm-compute-0",
        "fqdn": "edpm-compute-0.example.org",
        "instanceUuid": "4dc4d6a3-7bf5-4d6e-8f0c-0b9c2d3a4e5f",
        "user": {"name": "cloud-admin", "authorizedKeys": [KEY]},
        "rootPassword": "$6$salt$abc",
        "network": {
            "uplink": {"bond": {
                "bondInterfaces": ["eno1", "eno2"], "bondMode": "802.3ad",
                "bondOptions": {"lacp_rate": "fast"},
            }},
            "vlanId": 20, "mtu": 9000,
            "address": "192.0.2.10/24", "gateway": "192.0.2.1",
            "dnsServers": ["192.0.2.53"], "dnsSearch": ["example.org"],
        },
    })
}

fn host(value: &Value) -> Host {
    serde_json::from_value(value.clone()).unwrap()
}

fn drive(value: &Value) -> Drive {
    Drive::of(&host(value)).unwrap()
}

fn faults(host: &Host) -> Vec<String> {
    Drive::of(host).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// Returns the faults of the valid host with another value at that JSON pointer.
fn told(pointer: &str, it: &Value) -> Vec<String> {
    let mut value = good();
    let (above, key) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(above).unwrap()[key] = it.clone();
    faults(&host(&value))
}

/// Checks that each value, at a pointer below `above`, gives one fault with that beginning and
/// continuation.
fn check(above: &str, cases: &[(&str, Value, &str, &str)]) {
    for (pointer, value, start, part) in cases {
        let told = told(&format!("{above}/{pointer}"), value);
        assert_eq!(told.len(), 1, "{pointer} {value}: {told:#?}");
        let is_it = told[0].starts_with(start) && told[0].contains(part);
        assert!(is_it, "{pointer} {value}: {}", told[0]);
    }
}

#[test]
fn names_and_users_are_told_with_path_value_and_the_legal_way() {
    assert_eq!(faults(&host(&good())), Vec::<String>::new());
    let long = format!("edpm-compute-0.{}", "a".repeat(60));
    let keys = |it: Value| json!({"name": "cloud-admin", "authorizedKeys": it});
    let of_keys = "user.authorizedKeys";
    check(
        "",
        &[
            ("hostName", json!("Edpm"), "hostName: \"Edpm\" is not a DNS label", "use 1 to 63"),
            ("fqdn", json!("b.example.org"), "fqdn: \"b.example.org\"", "edpm-compute-0.DOMAIN"),
            ("fqdn", json!(long), "fqdn: ", "64 characters"),
            ("user/name", json!("Admin"), "user.name: \"Admin\" is not a valid login name", "32"),
            ("user", keys(json!([])), of_keys, "at least one"),
            ("user", keys(json!(["x"])), "user.authorizedKeys[0]: ", ".pub file"),
        ],
    );
}

#[test]
fn no_fault_repeats_what_may_be_secret() {
    let private = "-----BEGIN OPENSSH PRIVATE KEY----- hunter2";
    let cases = [
        ("/user", json!({"name": "a", "authorizedKeys": [private]})),
        ("/rootPassword", json!("$6$salt$hunter2;")),
        ("/rootPassword", json!("hunter2\n")),
        ("/rootPassword", json!("")),
        ("/given", json!({"metaData": "hunter2"})),
        ("/given", json!({"networkData": "a: 1\n: hunter2: ["})),
        ("/given", json!({"vendorData": "{\"cloud-init\": {\"hunter2\": 1}}"})),
    ];
    for (pointer, value) in cases {
        let told = told(pointer, &value).join("\n");
        assert!(!told.is_empty() && !told.contains("hunter2"), "{pointer}: {told}");
    }
    let debug = format!("{:?}", host(&json!({"rootPassword": "hunter2"})));
    assert!(debug.contains("root_password: Some(Secret(…))"), "{debug}");
    assert!(!format!("{:?}", drive(&good())).contains("$6$"));
}

#[test]
fn links_are_told_with_path_value_and_the_legal_way() {
    let bond = |cards: Value, mode: &str, options: Value| {
        let bond = json!({"bondInterfaces": cards, "bondMode": mode, "bondOptions": options});
        json!({ "bond": bond })
    };
    let cards = |it: Value| bond(it, "802.3ad", json!({}));
    let options = |it: Value| bond(json!(["eno1", "eno2"]), "802.3ad", it);
    let none = Vec::<String>::new();
    assert_eq!(told("/network/uplink", &options(json!({"primary": "eno1"}))), none);
    assert_eq!(told("/network/vlanId", &Value::Null), none);
    for name in ["", "lo", "a b", "a/b"] {
        check("/network", &[("uplink", json!({"card": name}), "network.cards: ", "such as eno1")]);
    }
    for mtu in [67, 65536, -1] {
        let start = format!("network.mtu: \"{mtu}\" is out of range");
        check("/network", &[("mtu", json!(mtu), &start, "mostly 1500")]);
    }
    for id in [0, 4095, -1] {
        let start = format!("network.vlanId: \"{id}\"");
        check("/network", &[("vlanId", json!(id), &start, "1 to 4094")]);
    }
    let again = "network.cards: \"eno1\" is the same as link nic0";
    let one = "network.cards: \"nic0\" are fewer than two";
    let long = json!({"card": "enp0s31f6np0v12"});
    let long_vlan = "network.vlanId: \"nic0\" gives the VLAN the name enp0s31f6np0v12.20";
    let mode = bond(json!(["eno1", "eno2"]), "lacp", json!({}));
    let vlan = cards(json!(["eno1", "bond0.20"]));
    let of_vlan = "network.vlanId: \"bond0.20\" is the same as link nic1";
    let primary = "network.bond.options.primary: ";
    check(
        "/network",
        &[
            ("uplink", cards(json!(["eno1", "eno1"])), again, "one link for each card"),
            (
                "uplink",
                cards(json!(["bond0", "eno1"])),
                "network.cards: \"bond0\" is the same",
                "link nic0",
            ),
            ("uplink", vlan, of_vlan, ""),
            ("uplink", cards(json!(["eno1"])), one, "at least two"),
            ("uplink", mode, "network.bond.mode: \"lacp\"", "802.3ad"),
            ("uplink", options(json!({"speed": "1"})), "network.bond.options.speed: ", "xmit_hash"),
            (
                "uplink",
                options(json!({"miimon": "1 2"})),
                "network.bond.options.miimon: ",
                "kernel",
            ),
            (
                "uplink",
                options(json!({"primary": "nic0"})),
                primary,
                "name one of the cards of the bond",
            ),
            ("uplink", long, long_vlan, "15 characters"),
        ],
    );
}

#[test]
fn addresses_are_told_with_path_value_and_the_legal_way() {
    for bad in ["", "192.0.2.10", "192.0.2.300/24", "192.0.2.10/33", "host"] {
        check("/network", &[("address", json!(bad), "network.address: ", "prefix length")]);
    }
    for bad in ["192.0.2.0/24", "192.0.2.255/24", "127.0.0.1/8", "224.0.0.1/24", "0.0.0.0/0"] {
        check("/network", &[("address", json!(bad), "network.address: ", "not a host address")]);
    }
    let outside = "network.gateway: \"192.0.3.1\" is outside the subnet 192.0.2.0/24";
    let four = json!(["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]);
    let server = "network.dnsServers[0]: \"dns\"";
    check(
        "/network",
        &[
            ("gateway", json!("192.0.3.1"), outside, "router"),
            ("gateway", json!("192.0.2.10"), "network.gateway: ", "not another host"),
            ("gateway", json!("192.0.2.255"), "network.gateway: ", "not another host"),
            ("gateway", json!("192.0.2.1/24"), "network.gateway: ", "without a prefix"),
            ("gateway", json!("fe80::1"), "network.gateway: ", "not another host"),
            ("dnsServers", json!(["dns"]), server, "the server's address"),
            ("dnsServers", four, "network.dnsServers: ", "first three"),
            ("dnsSearch", json!(["a_b"]), "network.dnsSearch[0]: \"a_b\"", "example.org"),
        ],
    );
    let mut value = good();
    value["network"]["address"] = json!("2001:db8::a/64");
    for (mtu, gateway, expected) in [
        (9000, "fe80::1", ""),
        (9000, "2001:db8::", ""),
        (
            1279,
            "fe80::1",
            "network.address: \"vlan20\" has an MTU of 1279, too small for IPv6; raise \
                           the link's mtu to 1280 or more",
        ),
    ] {
        value["network"]["mtu"] = json!(mtu);
        value["network"]["gateway"] = json!(gateway);
        assert_eq!(faults(&host(&value)).join("\n"), expected, "{gateway}");
    }
}

const IGNORED: &str = "given.userData: the value begins with nothing that cloud-init reads, so it \
                       ignores all of it; begin it with the line #cloud-config, ";

#[test]
fn user_data_in_each_form_that_a_host_reads_is_taken() {
    for text in [
        "#!/bin/sh\n",
        "#cloud-config\nusers: []",
        "#Cloud-Config\n",
        "#cloud-config\nruncmd: [a]\nruncmd: [b]\n22: x\n",
        "#cloud-config\nwrite_files:\n- {path: /x, content: !!binary f0VMRgIBAQD/gA==}\n",
        "\n#cloud-config-archive\n- {content: x}",
        "#cloud-boothook\n#!/bin/sh",
        "#include\nhttps://a.example.org/x",
        "## template: jinja\n#cloud-config\n{% if a %}",
        "Content-Type: multipart/mixed; boundary=\"=\"\nMIME-Version: 1.0\n",
        "{\"ignition\": {\"version\": \"3.4.0\"}}",
    ] {
        assert_eq!(told("/given", &json!({ "userData": text })), [""; 0], "{text}");
    }
}

#[test]
fn what_the_human_gives_is_told_by_its_key() {
    let cases = [
        (json!({"userData": " \n"}), "given.userData: the value is empty"),
        (json!({"metaData": "[1]"}), "given.metaData: the value is not an object"),
        (
            json!({"metaData": "a: 1\nb: [\n"}),
            "given.metaData: the value is neither YAML nor JSON: line ",
        ),
        (json!({"metaData": "uuid: 7"}), "given.metaData.uuid: the value is not text"),
        (json!({"metaData": "files: []"}), "given.metaData.files: the value points to files"),
        (json!({"metaData": "meta: x"}), "given.metaData.meta: the value is not an object"),
        (json!({"metaData": "random_seed: x"}), "given.metaData.random_seed: "),
        (json!({"networkData": "links: []\nnetworks: [{}]"}), "given.networkData.links: "),
        (json!({"networkData": "links: [{}]"}), "given.networkData.networks: "),
        (
            json!({"userData": "#!".repeat(LIMIT / 2)}),
            "given.userData: the value has 524288 bytes and makes",
        ),
        (json!({"userData": "# cloud-config\nusers: []"}), IGNORED),
        (json!({"userData": "users: []"}), IGNORED),
        (
            json!({"userData": "#cloud-config\nusers:\n - a\nb: ["}),
            "given.userData: the value is no YAML of keys and values, so cloud-init ignores all of \
             it: line ",
        ),
        (
            json!({"userData": "#cloud-config\n- a"}),
            "given.userData: the value is no YAML of keys and values",
        ),
    ];
    for (value, expected) in cases {
        let told = told("/given", &value).join("\n");
        assert!(told.starts_with(expected), "{told}");
    }
}

#[test]
fn what_the_human_gives_replaces_or_is_added() {
    let mut value = good();
    value["given"] = json!({
        "userData": "#!/bin/sh\n",
        "metaData": "hostname: other\nrole: x\n",
        "networkData": "{\"links\": [{\"id\": \"a\"}], \"networks\": [{}]}",
        "vendorData": "a: 1",
    });
    // The user is not checked if user data is given.
    value["user"] = json!({});
    let form = drive(&value).configdrive(ConfigDriveFormat::Auto, NEW).unwrap();
    let expected = json!({
        "meta_data": {
            "uuid": "4dc4d6a3-7bf5-4d6e-8f0c-0b9c2d3a4e5f", "name": "edpm-compute-0",
            "hostname": "other", "role": "x",
        },
        "network_data": {"links": [{"id": "a", "mtu": 1500}], "networks": [{}], "services": []},
        "user_data": "#!/bin/sh\n",
        "vendor_data": {"a": 1},
    });
    assert_eq!(form.expose(), &expected);
}

#[test]
fn a_host_without_network_keeps_the_images_own_way() {
    let mut value = good();
    value["network"] = Value::Null;
    let names: Vec<&str> = drive(&value).files().into_keys().collect();
    assert_eq!(names, ["meta_data.json", "user_data"]);
}

#[test]
fn an_old_api_gets_the_image() {
    let old = ApiVersion { major: 1, minor: 55 };
    let form = drive(&good()).configdrive(ConfigDriveFormat::Auto, old).unwrap();
    let text = form.expose().as_str().unwrap();
    // gzip, deflate, no flags, no time, the best compression, no system.
    assert!(text.starts_with("H4sIAAAAAAAC/"), "{}", &text[..16]);
    assert!(text.len() < 8192, "{}", text.len());
}

#[test]
fn golden_texts_and_hashes_stay_as_they_are() {
    let drive = drive(&good());
    let files = drive.files();
    assert_eq!(files["meta_data.json"].expose(), include_str!("../tests/golden/meta_data.json"));
    assert_eq!(
        files["network_data.json"].expose(),
        include_str!("../tests/golden/network_data.json")
    );
    assert_eq!(files["user_data"].expose(), include_str!("../tests/golden/user_data"));
    let hash = "1cf314097a01fe6b74cbd8024de768dc3cfdb342fbeaa4afd7fd8aa50c448e03";
    assert_eq!(drive.hash(), hash);
    let image = "a22e90c95bca02ccbb79f3268d84496a7f2ec0d83e913c0e07ed4a5236fe7931";
    assert_eq!(operator_core::hash::of_bytes(drive.image().expose()), image);
}

proptest! {
    /// Any input gives faults or a drive, and the same each time.
    #[test]
    fn any_text_gives_faults_or_a_drive(
        pointer in prop::sample::select(vec![
            "/hostName", "/fqdn", "/user/name", "/user/authorizedKeys/0",
            "/network/uplink/bond/bondInterfaces/0", "/network/address", "/network/gateway",
            "/rootPassword",
        ]),
        text in "\\PC{0,20}|[0-9a-f:./]{0,20}",
    ) {
        let mut value = good();
        *value.pointer_mut(pointer).unwrap() = json!(text);
        let host = host(&value);
        let faults = Drive::of(&host).err();
        prop_assert!(faults.iter().all(|it| !it.is_empty()));
        prop_assert!(faults.iter().flatten().all(|it| !it.path.is_empty() && !it.way.is_empty()));
    }

    /// A change that a user would see gives another hash, and nothing else does.
    #[test]
    fn another_host_is_another_hash(a in "[a-z]{1,9}", b in "[a-z]{1,9}") {
        let named = |name: &str| {
            let mut value = good();
            (value["hostName"], value["fqdn"]) = (json!(name), Value::Null);
            drive(&value).hash()
        };
        prop_assert_eq!(a == b, named(&a) == named(&b));
    }
}

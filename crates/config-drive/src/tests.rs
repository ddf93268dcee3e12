//! Tests of drives of valid hosts, and of the faults of invalid ones.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv";
const NEW: ApiVersion = ApiVersion { major: 1, minor: 59 };

/// A host with a bond, a VLAN on it, and addresses of both families.
fn good() -> Value {
    json!({
        "hostName": "edpm-compute-0",
        "fqdn": "edpm-compute-0.example.org",
        "instanceUuid": "4dc4d6a3-7bf5-4d6e-8f0c-0b9c2d3a4e5f",
        "users": [{"name": "cloud-admin", "authorizedKeys": [KEY]}],
        "rootPassword": {"hash": "$6$salt$abc"},
        "network": {
            "links": [
                {"id": "nic0", "mtu": 9000, "kind": {"mac": "52:54:00:AA:00:01"}},
                {"id": "nic1", "mtu": 9000, "kind": {"name": "eno1"}},
                {"id": "bond0", "mtu": 9000, "kind": {"bond": {
                    "members": ["nic0", "nic1"], "mode": "802.3ad", "options": {"lacp_rate": "fast"},
                }}},
                {"id": "internal", "mtu": 1500, "kind": {"vlan": {"parent": "bond0", "vlanId": 20}}},
            ],
            "networks": [
                {
                    "link": "bond0", "address": "192.0.2.10/24", "gateway": "192.0.2.1",
                    "dnsServers": ["192.0.2.53"], "dnsSearch": ["example.org"],
                    "routes": [{"destination": "198.51.100.0/24", "gateway": "192.0.2.254"}],
                },
                {"link": "internal", "address": "2001:db8::a/64", "gateway": "fe80::1"},
            ],
        },
    })
}

fn host(value: &Value) -> Host {
    serde_json::from_value(value.clone()).unwrap()
}

fn drive(value: &Value) -> Drive {
    Drive::of(&host(value)).unwrap()
}

/// Returns the faults of the valid host with other values at those JSON pointers.
#[track_caller]
fn told(changes: &[(&str, Value)]) -> Vec<String> {
    let mut value = good();
    for (pointer, it) in changes {
        let (above, key) = pointer.rsplit_once('/').unwrap();
        let parent = value.pointer_mut(above).unwrap();
        match key.parse::<usize>() {
            Ok(idx) if parent.is_array() => parent[idx] = it.clone(),
            _ => parent[key] = it.clone(),
        }
    }
    faults(&host(&value)).iter().map(ToString::to_string).collect()
}

/// Checks that one change gives one fault with this beginning and continuation.
#[track_caller]
fn check(pointer: &str, value: Value, start: &str, part: &str) {
    let told = told(&[(pointer, value)]);
    assert_eq!(told.len(), 1, "{pointer}: {told:#?}");
    assert!(told[0].starts_with(start) && told[0].contains(part), "{pointer}: {}", told[0]);
}

#[test]
fn a_good_host_has_no_faults() {
    assert_eq!(told(&[]), Vec::<String>::new());
}

#[test]
fn names_and_users_are_told_with_path_value_and_the_legal_way() {
    let users = |it: Value| ("/users/0", it);
    check("/hostName", json!("Edpm"), "hostName: \"Edpm\" is not a DNS label", "use 1 to 63");
    check(
        "/fqdn",
        json!("b.example.org"),
        "fqdn: \"b.example.org\"",
        "write edpm-compute-0.DOMAIN",
    );
    check("/fqdn", json!(format!("edpm-compute-0.{}", "a".repeat(60))), "fqdn: ", "64 characters");
    check(
        "/instanceUuid",
        json!("4dc4"),
        "instanceUuid: \"4dc4\" is not a lower-case UUID",
        "4dc4d6a3-",
    );
    check("/users", json!([]), "users: the value has no entry", "set userData");
    check(
        "/users/0/name",
        json!("Admin"),
        "users[0].name: \"Admin\" is not a valid login name",
        "32",
    );
    check("/users/0/authorizedKeys", json!([]), "users[0].authorizedKeys: ", "at least one");
    check("/users/0/authorizedKeys/0", json!("x"), "users[0].authorizedKeys[0]: ", ".pub file");
    let (pointer, again) = users(json!({"name": "b", "authorizedKeys": [KEY]}));
    assert_eq!(told(&[(pointer, again.clone()), ("/users", json!([again, again]))]).len(), 1);
}

#[test]
fn no_fault_repeats_what_may_be_secret() {
    let private = "-----BEGIN OPENSSH PRIVATE KEY----- hunter2";
    let cases = [
        ("/users/0/authorizedKeys/0", json!(private)),
        ("/rootPassword", json!({"hash": "hunter2"})),
        ("/rootPassword", json!({"plain": "hunter2\n"})),
        ("/rootPassword", json!({"plain": ""})),
        ("/given", json!({"metaData": "hunter2"})),
        ("/given", json!({"networkData": "a: 1\n: hunter2: ["})),
        ("/given", json!({"vendorData": "{\"cloud-init\": {\"hunter2\": 1}}"})),
    ];
    for (pointer, value) in cases {
        let told = told(&[(pointer, value)]).join("\n");
        assert!(!told.is_empty() && !told.contains("hunter2"), "{pointer}: {told}");
    }
    let debug = format!("{:?}", host(&json!({"rootPassword": {"plain": "hunter2"}})));
    assert!(debug.contains("Plain(Secret(…))"), "{debug}");
    assert!(!format!("{:?}", drive(&good())).contains("$6$"));
}

#[test]
fn links_are_told_with_path_value_and_the_legal_way() {
    let link = |idx: usize| format!("/network/links/{idx}");
    let at = |idx: usize, rest: &str| format!("network.links[{idx}].{rest}");
    for mac in [
        "52:54:00:aa:00",
        "52-54-00-aa-00-01",
        "01:00:5e:00:00:01",
        "00:00:00:00:00:00",
        "+2:54:00:aa:00:01",
    ] {
        check(
            &format!("{}/kind", link(0)),
            json!({"mac": mac}),
            &at(0, "kind.mac: "),
            "52:54:00:12:34:56",
        );
    }
    for name in ["", "lo", "a b", "a/b", "enp0s31f6np0v123"] {
        check(
            &format!("{}/kind", link(1)),
            json!({"name": name}),
            &at(1, "kind.name: "),
            "such as eno1",
        );
    }
    for mtu in [67, 65536, -1] {
        let told = told(&[(&format!("{}/mtu", link(1)), json!(mtu))]);
        assert!(told[0].contains(&format!("links[1].mtu: \"{mtu}\" is out of range")), "{told:?}");
    }
    for id in [0, 4095, -1] {
        let path = format!("{}/kind/vlan/vlanId", link(3));
        check(&path, json!(id), &at(3, &format!("kind.vlan.vlanId: \"{id}\"")), "1 to 4094");
    }
    check(
        &format!("{}/mtu", link(3)),
        json!(9216),
        &at(3, "mtu: \"9216\" is more than the 9000"),
        "lower it",
    );
    check(
        &format!("{}/mtu", link(0)),
        json!(1500),
        &at(2, "kind.bond.members[0]: \"nic0\""),
        "raise the card's",
    );
    check(&format!("{}/mtu", link(3)), json!(1279), "network.networks[1].link: ", "1280");
    let parent = format!("{}/kind/vlan/parent", link(3));
    check(&parent, json!("nic1"), &at(3, "kind.vlan.parent: \"nic1\""), "name one of bond0");
    let members = format!("{}/kind/bond/members", link(2));
    check(
        &members,
        json!(["nic0"]),
        &at(2, "kind.bond.members: \"nic0\" are fewer than two"),
        "at least two",
    );
    check(
        &members,
        json!(["nic0", "nic0"]),
        &at(2, "kind.bond.members[1]: \"nic0\" is listed twice"),
        "once",
    );
    check(
        &members,
        json!(["nic0", "internal"]),
        &at(2, "kind.bond.members[1]: "),
        "name one of nic0, nic1",
    );
    let mode = format!("{}/kind/bond/mode", link(2));
    check(&mode, json!("lacp"), &at(2, "kind.bond.mode: \"lacp\""), "802.3ad");
    let options = format!("{}/kind/bond/options", link(2));
    check(&options, json!({"speed": "1"}), &at(2, "kind.bond.options.speed: "), "xmit_hash_policy");
    check(
        &options,
        json!({"miimon": "1 2"}),
        &at(2, "kind.bond.options.miimon: \"1 2\""),
        "kernel",
    );
    check(&options, json!({"primary": "nic0"}), &at(2, "kind.bond.options.primary: "), "by name");
    assert_eq!(told(&[(&options, json!({"primary": "eno1"}))]), Vec::<String>::new());
}

#[test]
fn links_that_are_one_are_told() {
    let again = json!({"id": "b", "mtu": 9000, "kind": {"mac": "52:54:00:aa:00:01"}});
    let told = |it: Value| told(&[("/network/links/1", it)]);
    let found = told(again);
    assert!(found[0].contains("is the same as link nic0"), "{found:?}");
    let found = told(json!({"id": "nic0", "mtu": 9000, "kind": {"name": "eno1"}}));
    assert!(found[0].contains("links[1].id: \"nic0\" is listed twice"), "{found:?}");
    let other =
        json!({"id": "bond1", "mtu": 1500, "kind": {"vlan": {"parent": "bond0", "vlanId": 20}}});
    let mut links = good()["network"]["links"].as_array().unwrap().clone();
    links.push(other);
    let found = super::tests::told(&[("/network/links", json!(links))]);
    assert!(
        found[0].contains("links[4].kind.vlan.vlanId: \"bond0.20\" is the same as link internal"),
        "{found:?}"
    );
    let found = super::tests::told(&[("/network/links/2/id", json!("bond7"))]);
    assert!(
        found[0].contains("links[2].id: \"bond7\"") && found[0].ends_with("use bond0"),
        "{found:?}"
    );
}

#[test]
fn addresses_are_told_with_path_value_and_the_legal_way() {
    let net = |rest: &str| format!("/network/networks/0/{rest}");
    let at = |rest: &str| format!("network.networks[0].{rest}");
    check("/network/networks", json!([]), "network.networks: the value has no entry", "DHCP");
    check(&net("address"), json!(""), &at("address: the value is missing"), "192.0.2.10/24");
    for bad in ["192.0.2.10", "192.0.2.300/24", "192.0.2.10/33", "host"] {
        check(&net("address"), json!(bad), &at("address: "), "prefix length");
    }
    for bad in ["192.0.2.0/24", "192.0.2.255/24", "127.0.0.1/8", "224.0.0.1/24", "0.0.0.0/0"] {
        check(&net("address"), json!(bad), &at("address: "), "is not a host address");
    }
    check(
        &net("gateway"),
        json!("192.0.3.1"),
        &at("gateway: \"192.0.3.1\" is outside the subnet 192.0.2.0/24"),
        "router",
    );
    check(&net("gateway"), json!("192.0.2.10"), &at("gateway: "), "not another host");
    check(&net("gateway"), json!("192.0.2.255"), &at("gateway: "), "not another host");
    check(&net("gateway"), json!("192.0.2.1/24"), &at("gateway: "), "without a prefix");
    check(&net("gateway"), json!("fe80::1"), &at("gateway: "), "not another host");
    check(&net("link"), json!("nic0"), &at("link: \"nic0\" is a member of bond0"), "name bond0");
    check(
        &net("link"),
        json!("x"),
        &at("link: \"x\" is not the id of a link"),
        "nic0, nic1, bond0, internal",
    );
    let routes = |it: Value| json!([it]);
    let route = |to: &str, gateway: &str| routes(json!({"destination": to, "gateway": gateway}));
    check(
        &net("routes"),
        route("x", "192.0.2.1"),
        &at("routes[0].destination: "),
        "198.51.100.0/24",
    );
    check(
        &net("routes"),
        route("10.0.0.1/8", "192.0.2.1"),
        &at("routes[0].destination: "),
        "write 10.0.0.0/8",
    );
    check(
        &net("routes"),
        route("0.0.0.0/0", "192.0.2.1"),
        &at("routes[0].destination: "),
        "as gateway",
    );
    check(
        &net("routes"),
        route("10.0.0.0/8", "10.0.0.1"),
        &at("routes[0].gateway: "),
        "not another host",
    );
    check(&net("routes"), route("10.0.0.0/8", "fe80::1"), &at("routes[0].gateway: "), "family");
    check(
        &net("dnsServers"),
        json!(["dns"]),
        &at("dnsServers[0]: \"dns\""),
        "the server's address",
    );
    let four = json!(["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]);
    check(&net("dnsServers"), four, &at("dnsServers: "), "first three");
    check(&net("dnsSearch"), json!(["a_b"]), &at("dnsSearch[0]: \"a_b\""), "example.org");
}

#[test]
fn a_second_address_or_default_gateway_is_told() {
    let second = |address: &str, gateway: Value| {
        let it = json!({"link": "internal", "address": address, "gateway": gateway});
        told(&[("/network/networks/1", it)])
    };
    let found = second("192.0.2.10/24", Value::Null);
    assert!(
        found[0]
            .contains("networks[1].address: \"192.0.2.10/24\" is also the address of networks[0]"),
        "{found:?}"
    );
    let found = second("203.0.113.9/24", json!("203.0.113.1"));
    assert!(
        found[0].contains("is a second default gateway, after that of networks[0]"),
        "{found:?}"
    );
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
        assert_eq!(told(&[("/given", json!({ "userData": text }))]), [""; 0], "{text}");
    }
}

#[test]
fn what_the_human_gives_is_told_by_its_key() {
    let given = |it: Value| told(&[("/given", it)]).join("\n");
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
        let told = given(value);
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
    // Users are not checked if user data is given.
    value["users"] = json!([]);
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
fn what_only_one_host_may_have_is_told_of_the_second() {
    let (one, mut other) = (host(&good()), host(&good()));
    let set = |other: &Host| {
        let hosts = BTreeMap::from([("a".to_owned(), &one), ("b".to_owned(), other)]);
        faults_among(&hosts).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let paths: Vec<String> =
        set(&other).iter().map(|it| it.split(": ").next().unwrap().into()).collect();
    let expected = [
        "hosts[b].instanceUuid",
        "hosts[b].fqdn",
        "hosts[b].network.networks[0].address",
        "hosts[b].network.networks[1].address",
        "hosts[b].network.links[0].kind.mac",
    ];
    assert_eq!(paths, expected);
    other.instance_uuid = "5dc4d6a3-7bf5-4d6e-8f0c-0b9c2d3a4e5f".into();
    other.fqdn = Some("b.example.org".into());
    let network = other.network.as_mut().unwrap();
    network.links.remove(0);
    network.networks[0].address = "192.0.2.11/24".into();
    // Another spelling of the same address.
    network.networks[1].address = "2001:0DB8::000a/48".into();
    let address = "hosts[b].network.networks[1].address: \"2001:db8::a\" is also the address of a; \
                   give each host its own";
    assert_eq!(set(&other), [address]);
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
    let hash = "f9b682238f77e2929696223ab1f6d8a06dae42b1ea161e3347d2a8bbc4588a57";
    assert_eq!(drive.hash(), hash);
    let image = "0f1c00b48e161b78fe54735ad6421940ac1410a88001bd842ebf9663bfb6bf9e";
    assert_eq!(operator_core::hash::of_bytes(drive.image().expose()), image);
}

proptest! {
    /// Any input gives faults or a drive, and the same each time.
    #[test]
    fn any_text_gives_faults_or_a_drive(
        pointer in prop::sample::select(vec![
            "/hostName", "/fqdn", "/users/0/name", "/users/0/authorizedKeys/0", "/network/links/0/kind/mac",
            "/network/links/1/kind/name", "/network/networks/0/address", "/network/networks/0/gateway",
            "/network/networks/0/link", "/rootPassword/hash",
        ]),
        text in "\\PC{0,20}|[0-9a-f:./]{0,20}",
    ) {
        let mut value = good();
        *value.pointer_mut(pointer).unwrap() = json!(text);
        let host = host(&value);
        let faults = faults(&host);
        prop_assert_eq!(Drive::of(&host).is_ok(), faults.is_empty());
        prop_assert!(faults.iter().all(|it| !it.path.is_empty() && !it.way.is_empty()));
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

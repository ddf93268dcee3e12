//! Hashes as earlier releases recorded them in statuses: another value here would redeploy every
//! compute after an upgrade, or report it as outdated.

use super::*;

const CA: &str = "\
-----BEGIN CERTIFICATE-----
MIIBcTCCARegAwIBAgIUJf4HYUoOSg75jvCheChP5G4y/f4wCgYIKoZIzj0EAwIw
DTELMAkGA1UEAwwCY2EwIBcNMjYxMTIxMTkxNzE0WhgPMjEyNjEwMjgxOTE3MTRa
MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE54WBvlvd
7ZYkl9swqV/ECjk6CiAnTs/Nkbw3XhDnvTmiqUicMw5XOnyiuasv1IKr4ZnQ68Mc
mjGgiurbRpKI+aNTMFEwHQYDVR0OBBYEFN8LxhLk9vVv8T/19KunM2DZVI8jMB8G
A1UdIwQYMBaAFN8LxhLk9vVv8T/19KunM2DZVI8jMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSAAwRQIgQujE+tITR4MAgYLxldyOGak5yeq9oZgdFV57DEiu
FBQCIQCC2pixWqIuOm11v4QWfrsW9K+SmxSROA9K0H4t1UwY8w==
-----END CERTIFICATE-----
";

fn hashes(mut world: World) -> Vec<String> {
    world.settle();
    let services = &world.seen.compute.status.as_ref().unwrap().services;
    services.iter().map(|it| it.hash[..12].to_owned()).collect()
}

#[test]
fn the_hashes_of_the_same_inputs_never_change() {
    let expected = ["f80a43ac4190", "d5f6102da864", "dc0796edbc59"];
    assert_eq!(hashes(World::new()), expected);
}

/// Every field and key that is an input, as in the previous release.
#[test]
fn the_hashes_of_a_compute_with_every_input_are_those_of_the_release_before() {
    let mut world = World::new();
    let fields = json!({
        "dnsConfig": { "nameservers": ["192.0.2.53"] },
        "env": [{ "name": "PROXY", "value": "http://192.0.2.9" }],
        "extraMounts": [{
            "volumes": [{ "name": "ca", "secret": { "secretName": "ca" } }],
            "mounts": [{ "name": "ca", "mountPath": "/ca" }],
        }],
        "networkAttachments": ["ctlplane"],
    });
    let compute = world.compute();
    let mut spec = serde_json::to_value(&compute.spec).unwrap();
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    compute.spec = serde_json::from_value(spec).unwrap();
    let redeploy = (REDEPLOY.to_owned(), "7".to_owned());
    compute.metadata.annotations = Some([redeploy].into());
    world.node().status.as_mut().unwrap().host_instance = Some("node+abc".into());
    world.cell().spec.service_user = "nova-of-ours".into();
    let keys = [
        "ServicePassword",
        "RegionName",
        "ProjectDomainName",
        "UserDomainName",
        "ProjectName",
        "NoVNCProxyURL",
        "unknown",
    ];
    let values = keys.map(|it| (it, "http://192.0.2.4/x"));
    let more = [("CABundle", CA), ("quorum_queues", "true")];
    world.seen.cell_secret = Some(content(&[&values[..], &more].concat()));
    let text = Some(content(&[("any", "[libvirt]\nvirt_type = qemu\n")]));
    world.seen.default_config = Some(DefaultConfig { name: "defaults".into(), content: text });
    assert_eq!(hashes(world), ["37f9e761c293", "f7e27356d9ac", "ccbfbdf5e880"]);
}

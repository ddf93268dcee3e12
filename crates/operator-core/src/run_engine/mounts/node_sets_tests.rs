//! Tests of the names, order and paths of volumes, as upstream's users see them in Jobs.

use std::collections::BTreeMap;

use api::ansibleee::AnsibleEe;
use k8s_openapi::api::core::v1::{KeyToPath, SecretProjection};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::plan::{Kind, Target};
use crate::run_engine::layout::Layout;
use crate::run_engine::mounts;
use crate::run_engine::run_template::Play;
use crate::run_engine::sources::mounted;

fn source(kind: SourceKind, name: &str, keys: &[&str]) -> MountedSource {
    let keys = keys.iter().map(|it| (*it).to_owned()).collect();
    MountedSource { kind, name: name.into(), keys }
}

fn recipe(node_sets: NodeSets, sources: Vec<MountedSource>) -> RunTemplate {
    let kind = Kind::of::<AnsibleEe>();
    let parent = Target { kind, namespace: "ns".into(), name: "d".into(), uid: None };
    let (play, layout) = (Play::Playbook("a.b.c".into()), Layout::NodeSets(node_sets));
    RunTemplate { sources: mounted(sources), ..RunTemplate::of(parent, play, "agent", layout) }
}

fn of(names: &[&str]) -> NodeSets {
    let secret = |it: &&str| ((*it).to_owned(), format!("key-of-{it}"));
    NodeSets { ssh_secrets: names.iter().map(secret).collect(), ..NodeSets::default() }
}

/// `volume | what it holds | path | sub path`, in the order of the Job.
fn lines(recipe: &RunTemplate) -> Vec<String> {
    let all = mounts::run_mounts(recipe, &[]);
    let volumes: BTreeMap<&str, &Volume> =
        all.iter().flat_map(|it| &it.volumes).map(|it| (it.name.as_str(), it)).collect();
    let mounts = all.iter().flat_map(|it| &it.mounts);
    mounts
        .map(|it| {
            let held = holds(volumes[it.name.as_str()]);
            let sub_path = it.sub_path.clone().unwrap_or_default();
            format!("{} | {held} | {} | {sub_path}", it.name, it.mount_path)
        })
        .collect()
}

fn holds(volume: &Volume) -> String {
    let keys = |it: &Option<Vec<KeyToPath>>| {
        let of = |it: &KeyToPath| format!("{}→{}", it.key, it.path);
        it.as_ref()
            .map_or_else(|| "*".to_owned(), |it| it.iter().map(of).collect::<Vec<_>>().join(","))
    };
    if let Some(it) = &volume.config_map {
        return format!("ConfigMap {} {}", it.name, keys(&it.items));
    }
    if let Some(it) = &volume.secret {
        return format!("Secret {} {}", it.secret_name.clone().unwrap(), keys(&it.items));
    }
    let all = volume.projected.iter().flat_map(|it| it.sources.iter().flatten());
    let secrets = all.filter_map(|it| it.secret.as_ref());
    let one = |it: &SecretProjection| format!("{} {}", it.name, keys(&it.items));
    format!("Secrets {}", secrets.map(one).collect::<Vec<_>>().join(" + "))
}

#[test]
fn volumes_have_upstreams_names_order_and_paths() {
    let sources = vec![
        source(SourceKind::Secret, "cell-config", &["z.conf", "01-a.conf"]),
        source(SourceKind::ConfigMap, "extra", &["25-b.conf"]),
        source(SourceKind::Secret, "migration", &["public"]),
        source(SourceKind::ConfigMap, "more", &["B", "a", "_"]),
    ];
    let ca = Tls::Bundle {
        service: "agent-custom".into(),
        service_type: "agent".into(),
        secret: "combined-ca-bundle".into(),
    };
    let mut recipe = recipe(NodeSets { tls: vec![ca], ..of(&["edpm"]) }, sources);
    let human = json!({
        "extraVolType": "Ceph",
        "volumes": [{ "name": "ceph", "secret": { "secretName": "ceph-conf" } }],
        "mounts": [{ "name": "ceph", "mountPath": "/etc/ceph" }],
    });
    let other = json!({ "propagation": ["Other"], "volumes": [], "mounts": [] });
    recipe.extra_mounts = [human, other].map(|it| serde_json::from_value(it).unwrap()).into();
    let configs = "/var/lib/openstack/configs/agent";
    assert_eq!(
        lines(&recipe),
        [
            "ceph | Secret ceph-conf * | /etc/ceph | ".to_owned(),
            format!(
                "extra-0 | ConfigMap extra 25-b.conf→25-b.conf | {configs}/25-b.conf | 25-b.conf"
            ),
            format!("more-0 | ConfigMap more B→B | {configs}/B | B"),
            format!("more-1 | ConfigMap more _→_ | {configs}/_ | _"),
            format!("more-2 | ConfigMap more a→a | {configs}/a | a"),
            format!(
                "cell-config-0 | Secret cell-config 01-a.conf→01-a.conf | {configs}/01-a.conf | 01-a.conf"
            ),
            format!("cell-config-1 | Secret cell-config z.conf→z.conf | {configs}/z.conf | z.conf"),
            format!("migration-0 | Secret migration public→public | {configs}/public | public"),
            "agent-custom-combined-ca-bundle | Secret combined-ca-bundle * | \
             /var/lib/openstack/cacerts/agent | "
                .to_owned(),
            "ssh-key-edpm | Secret key-of-edpm ssh-privatekey→ssh_key_edpm | \
             /runner/env/ssh_key/ssh_key_edpm | ssh_key_edpm"
                .to_owned(),
            "inventory | Secret dataplanenodeset-edpm inventory→inventory | \
             /runner/inventory/hosts | inventory"
                .to_owned(),
            "known-hosts-edpm | Secrets key-of-edpm known_hosts→known_hosts + \
             dataplanenodeset-edpm known_hosts→learned | /runner/env/known_hosts/edpm | "
                .to_owned(),
        ]
    );
    let entries = mounts::run_mounts(&recipe, &[]);
    assert_eq!(entries.len(), 9, "one for each object");
    assert_eq!(entries[0].extra_vol_type.as_deref(), Some("Ceph"));
}

#[test]
fn a_service_of_all_node_sets_gets_every_inventory_and_key() {
    let of = |is_global, names: &[&str]| {
        let recipe = recipe(NodeSets { is_global, ..of(names) }, vec![]);
        let place = |it: &String| it.split(" | ").nth(2).unwrap().to_owned();
        let name = |it: &String| it.split(" | ").next().unwrap().to_owned();
        let lines = lines(&recipe);
        let paths = lines.iter().map(place).filter(|it| !it.contains("known_hosts"));
        (lines.iter().map(name).collect::<Vec<_>>(), paths.collect::<Vec<_>>())
    };
    let (names, paths) = of(true, &["b", "a"]);
    let expected =
        ["ssh-key-a", "ssh-key-b", "inventory-0", "inventory-1", "known-hosts-a", "known-hosts-b"];
    assert_eq!(names, expected);
    let keys = ["/runner/env/ssh_key/ssh_key_a", "/runner/env/ssh_key/ssh_key_b"];
    let inventories = ["/runner/inventory/inventory-0", "/runner/inventory/inventory-1"];
    assert_eq!(paths, [keys, inventories].concat());
    assert_eq!(of(true, &["a"]).1, [keys[0], inventories[0]], "also of a single one");
    assert_eq!(of(false, &["a"]).1, [keys[0], "/runner/inventory/hosts"]);
}

#[test]
fn an_inventory_of_a_service_of_all_node_sets_has_the_file_name_that_upstream_gives_it() {
    let recipe = recipe(NodeSets { is_global: true, ..of(&["b", "a"]) }, vec![]);
    assert_eq!(
        lines(&recipe)[3],
        "inventory-1 | Secret dataplanenodeset-b inventory→inventory-1 | \
         /runner/inventory/inventory-1 | inventory-1"
    );
}

#[test]
fn certificates_are_projected_from_all_their_secrets() {
    let tls = Tls::Certificates {
        secrets: vec!["edpm-agent-default-certs-0".into(), "edpm-agent-default-certs-1".into()],
        service_type: "agent".into(),
        key: "default".into(),
    };
    let recipe = recipe(NodeSets { tls: vec![tls], ..of(&[]) }, vec![]);
    assert_eq!(
        lines(&recipe),
        ["edpm-agent-default-certs-0 | Secrets edpm-agent-default-certs-0 * + \
          edpm-agent-default-certs-1 * | /var/lib/openstack/certs/agent/default | "]
    );
}

#[test]
fn a_hosts_own_certificate_has_its_name_in_the_files_and_may_lack_the_authority() {
    let tls = Tls::OfHosts {
        secrets: BTreeMap::from([("n0.example.org".into(), "cert-agent-default-n0".into())]),
        service_type: "agent".into(),
        key: "default".into(),
    };
    let mut recipe = recipe(of(&[]), vec![]);
    recipe.layout = Layout::Parent { inventory: "inventory".into(), beside: None, tls: vec![tls] };
    let secret = "cert-agent-default-n0";
    let file = |it: &str| format!("{it}→n0.example.org-{it}");
    let held = format!(
        "Secrets {secret} {},{} + {secret} {}",
        file("tls.crt"),
        file("tls.key"),
        file("ca.crt")
    );
    let lines = lines(&recipe);
    let expected = format!("edpm-tls-0 | {held} | /var/lib/openstack/certs/agent/default | ");
    assert_eq!(lines.last(), Some(&expected));
}

/// The digests were computed independently with Python's hashlib.
#[test]
fn names_that_no_volume_can_have_are_hashed_as_upstream_hashes_long_ones() {
    let long = "a".repeat(62);
    let fits = "b".repeat(61);
    let sources = [
        source(SourceKind::ConfigMap, &long, &["1"]),
        source(SourceKind::ConfigMap, &fits, &["2"]),
        source(SourceKind::ConfigMap, "with.dot", &["3"]),
        source(SourceKind::ConfigMap, "same", &["4"]),
        source(SourceKind::Secret, "same", &["5"]),
        source(SourceKind::Secret, &long, &["6"]),
    ];
    let mut recipe = recipe(of(&[]), sources.into());
    let human = json!({ "volumes": [{ "name": "same-0", "emptyDir": {} }], "mounts": [] });
    let names = |recipe: &RunTemplate| -> Vec<String> {
        let all = mounts::run_mounts(recipe, &[]);
        all.iter().flat_map(|it| &it.volumes).map(|it| it.name.clone()).collect()
    };
    let sha224 = |it: &str| hex(&Sha224::digest(it));
    let plain = names(&recipe);
    let expected = [
        "cm859eaac51f3f87d9f617aab43efad06f3bfbecc27071929a095b6dfb".to_owned(),
        format!("{fits}-0"),
        format!("cm{}", sha224("with.dot-0")),
        "same-0".to_owned(),
        "secfb1dbd6f733d059d388de4a2174bc12eb0c657449def38464a2cd90c".to_owned(),
        format!("sec{}", sha224(&format!("{long}-0"))),
    ];
    assert_eq!(plain, expected);
    recipe.extra_mounts = vec![serde_json::from_value(human).unwrap()];
    let beside = names(&recipe);
    assert_eq!((beside[0].as_str(), &beside[4]), ("same-0", &format!("cm{}", sha224("same-0"))));
    assert_eq!(beside.iter().collect::<BTreeSet<_>>().len(), beside.len());
}

#[test]
fn an_object_that_is_named_twice_is_mounted_once() {
    let twice = vec![
        source(SourceKind::Secret, "s", &["a", "b"]),
        source(SourceKind::Secret, "s", &["b", "a"]),
    ];
    assert_eq!(faults(&twice), []);
    assert_eq!(lines(&recipe(of(&[]), twice)).len(), 2);
}

#[test]
fn of_one_key_in_two_objects_the_last_one_listed_is_mounted() {
    let sources = vec![
        source(SourceKind::Secret, "s", &["a", "b"]),
        source(SourceKind::ConfigMap, "m", &["b", "c"]),
        source(SourceKind::Secret, "t", &["c"]),
    ];
    assert_eq!(faults(&sources), []);
    let found = lines(&recipe(of(&[]), sources));
    let of_key = |key: &str| found.iter().find(|it| it.ends_with(key)).unwrap().clone();
    assert_eq!(found.len(), 3, "{found:?}");
    for (key, object) in [("a", "s"), ("b", "m"), ("c", "t")] {
        assert!(of_key(key).starts_with(&format!("{object}-")), "{found:?}");
    }
}

#[test]
fn a_key_with_a_path_is_named() {
    let texts = |sources: &[MountedSource]| -> Vec<String> {
        faults(sources).iter().map(ToString::to_string).collect()
    };
    for key in ["../x", "a/b", "..", ".", ""] {
        let found = texts(&[source(SourceKind::ConfigMap, "m", &[key])]);
        assert!(
            found[0].starts_with(&format!("key {key:?} of ConfigMap m is no plain")),
            "{found:?}"
        );
    }
    assert_eq!(texts(&[source(SourceKind::ConfigMap, "m", &["..a", "a..b", ".a"])]), [""; 0]);
}

#[test]
fn a_config_map_with_many_keys_fits_into_the_schema() {
    let keys: Vec<String> = (0..200).map(|it| format!("k{it:03}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let recipe = recipe(of(&["edpm"]), vec![source(SourceKind::ConfigMap, "many", &keys)]);
    let entries = mounts::run_mounts(&recipe, &[]);
    assert!(entries.iter().all(|it| it.mounts.len() <= 32));
    assert_eq!(lines(&recipe).len(), 203);
}

#[test]
fn files_are_where_an_inventory_says() {
    assert_eq!(ssh_key_file("a"), "/runner/env/ssh_key/ssh_key_a");
    let expected = ["/runner/env/known_hosts/a/known_hosts", "/runner/env/known_hosts/a/learned"];
    assert_eq!(known_hosts_files("a"), expected);
    assert_eq!(inventory_name("a"), "dataplanenodeset-a");
}

proptest! {
    #[test]
    fn a_pod_with_any_objects_is_one_that_kubernetes_accepts(
        objects in prop::collection::vec(("ConfigMap|Secret", "[a-z0-9.]{1,80}", 0_usize..5), 0..8),
        node_sets in prop::collection::btree_set("[a-z0-9]([-a-z0-9.]{0,70}[a-z0-9])?", 0..4),
    ) {
        let sources = objects.iter().map(|(kind, name, n_keys)| {
            let keys: Vec<String> = (0..*n_keys).map(|it| format!("k{it}")).collect();
            let kind = [SourceKind::ConfigMap, SourceKind::Secret][usize::from(kind == "Secret")];
            source(kind, name, &keys.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let node_sets: Vec<&str> = node_sets.iter().map(String::as_str).collect();
        let recipe =
            recipe(NodeSets { is_global: true, ..of(&node_sets) }, sources.collect());
        let all = serde_json::to_value(mounts::run_mounts(&recipe, &[])).unwrap();
        let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for entry in all.as_array().unwrap() {
            for volume in entry["volumes"].as_array().unwrap() {
                let name = volume["name"].as_str().unwrap().to_owned();
                prop_assert!(names::is_dns_label(&name), "{}", name);
                prop_assert!(names.insert(name));
            }
            for mount in entry["mounts"].as_array().unwrap() {
                prop_assert!(names.contains(mount["name"].as_str().unwrap()));
                prop_assert!(paths.insert(mount["mountPath"].as_str().unwrap().to_owned()));
            }
        }
    }
}

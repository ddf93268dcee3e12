//! Services as objects: the default ones exist and are maintained, and each reports its own errors.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use api::conditions::ConditionStatus;
use api::dataplane::{Role, Service};
use e2e::journey::{self, ROLE, ready};
use e2e::{Namespace, SOON, holds, run};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::World;

const KIND: &str = "OpenStackDataPlaneService";
/// The files of the default services, and the playbooks of the project's collection.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dataplane-operator/services");
const PLAYBOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ansible/osp/edpm/playbooks");

/// Simulates a play that reads the named key of the service's data.
const PLAYBOOK: &str = "- hosts: all\n  tasks: []\n";
/// The path at which the play reads it.
const GREETING: &str = "/var/lib/openstack/configs/own/greeting";

/// Creates a role that lists no services itself: its namespace now has hosts.
async fn role(ns: &Namespace, services: &[&str]) -> Result<()> {
    let spec = json!({ "preProvisioned": true, "services": services });
    ns.create::<Role>(ROLE, spec).await.map(drop)
}

/// Returns the playbook of each file's service, by name.
fn shipped() -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(FILES)? {
        let service: Service = api::yaml::from_str(&std::fs::read_to_string(entry?.path())?)?;
        let playbook = service.spec.playbook.clone().context("a file without a playbook")?;
        found.insert(service.name_any(), playbook);
    }
    Ok(found)
}

#[tokio::test]
async fn all_default_services_are_listed_with_the_truth_about_their_playbooks() -> Result<()> {
    let ns = World::new("services").await?;
    role(&ns, &["run-os"]).await?;
    let shipped = shipped()?;
    assert!(shipped.len() > 30, "{shipped:?}");
    for (name, playbook) in &shipped {
        let judged = |it: &Service| it.conditions().iter().any(|it| it.type_ == "PlaybookIncluded");
        let service = ns.wait::<Service>(name, "judged", SOON, judged).await?;
        assert_eq!(service.labels()["edpm.openstack.org/default-service"], "true", "{name}");
        let file = playbook.trim_start_matches("osp.edpm.");
        let is_ours = Path::new(PLAYBOOKS).join(format!("{file}.yml")).exists();
        assert_eq!(holds(service.conditions(), "PlaybookIncluded"), is_ours, "{name}: {playbook}");
    }
    let list = run("kubectl", &["get", "osdpservices", "-n", &ns.name]).await?;
    let line = |name: &str| -> Vec<String> {
        let lines = list.lines().map(|it| it.split_whitespace().collect::<Vec<_>>());
        let found = lines.into_iter().find(|it| it.first() == Some(&name)).unwrap_or_default();
        found.into_iter().map(str::to_owned).collect()
    };
    assert_eq!(line("NAME")[1..4], ["READY", "REASON", "INCLUDED"], "{list}");
    assert_eq!(line("run-os")[1..4], ["True", "Ready", "True"], "{list}");
    assert_eq!(line("telemetry")[1..4], ["True", "Ready", "False"], "{list}");
    assert_eq!(line("ovn")[1..4], ["True", "Ready", "True"], "nothing lists it: {list}");
    let change = json!({ "spec": { "services": ["run-os", "ovn"] } });
    ns.merge::<Role>(ROLE, change).await?;
    ns.reports::<Service>("ovn", "Ready", "DataSourceNotFound", &["ovn"], SOON).await?;

    // A service that no role lists is restored too.
    let gone = ns.api::<Service>().get("bootstrap").await?;
    ns.remove::<Service>("bootstrap").await?;
    let is_new = |it: &Service| it.uid() != gone.uid();
    ns.wait::<Service>("bootstrap", "made anew", SOON, is_new).await?;
    ns.done().await
}

/// Applies as another field manager, by force, as some tools do.
async fn apply(ns: &Namespace, name: &str, spec: Value) -> Result<Service> {
    let object = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": KIND,
        "metadata": { "name": name }, "spec": spec,
    });
    let params = PatchParams::apply("e2e-tool").force();
    Ok(ns.api::<Service>().patch(name, &params, &Patch::Apply(&object)).await?)
}

#[tokio::test]
async fn an_edited_default_service_is_restored_with_an_event_and_keeps_labels() -> Result<()> {
    let ns = World::new("services-edited").await?;
    role(&ns, &["run-os"]).await?;
    let before = ns.good::<Service>("run-os", &["Ready"], SOON).await?;

    // A field is changed, another one added, and a label of the user's.
    let edit = json!({
        "metadata": { "labels": { "mine": "yes" } },
        "spec": { "playbook": "my.own.playbook", "openStackAnsibleEERunnerImage": "mine" },
    });
    let edited = ns.merge::<Service>("run-os", edit).await?;
    let is_restored = |it: &Service| {
        it.spec == before.spec && it.metadata.generation > edited.metadata.generation
    };
    let restored = ns.wait::<Service>("run-os", "restored", SOON, is_restored).await?;
    assert_eq!(restored.labels()["mine"], "yes");
    ns.event(KIND, "run-os", "DefaultServiceRestored").await?;

    // It is also restored when a tool takes over the whole spec.
    apply(&ns, "run-os", json!({ "playbook": "my.own.playbook", "role": "mine" })).await?;
    ns.wait::<Service>("run-os", "restored", SOON, |it| it.spec == before.spec).await?;
    assert_eq!(ns.api::<Service>().get("run-os").await?.labels()["mine"], "yes");

    // Under another name the same spec is the user's own service.
    let own = json!({ "playbook": "my.own.playbook", "edpmServiceType": "run-os" });
    ns.create::<Service>("my-run-os", own).await?;
    let own = ns.good::<Service>("my-run-os", &["Ready"], SOON).await?;
    assert_eq!(own.spec.playbook.as_deref(), Some("my.own.playbook"));
    ns.done().await
}

#[tokio::test]
async fn a_key_that_nova_would_not_read_is_told_on_the_service_with_a_name_that_works() -> Result<()>
{
    let ns = World::new("services-keys").await?;
    ns.config_map("mine", &[("my.conf", "[libvirt]\ncpu_mode = custom\n")]).await?;
    let spec = json!({
        "playbook": "osp.edpm.nova",
        "edpmServiceType": "nova",
        "dataSources": [{ "configMapRef": { "name": "mine" } }],
    });
    ns.create::<Service>("nova-custom", spec).await?;
    let words = ["ConfigMap mine", "my.conf", "25-nova-my.conf"];
    let config = "nova.openstack.org/Config";
    let service = ns.reports::<Service>("nova-custom", config, "KeyIgnored", &words, SOON).await?;
    ns.event(KIND, "nova-custom", "KeyIgnored").await?;
    ns.good::<Service>("nova-custom", &["Ready"], SOON).await?;
    let managers: Vec<&str> =
        service.managed_fields().iter().filter_map(|it| it.manager.as_deref()).collect();
    assert!(managers.contains(&"nova-operator"), "{managers:?}");

    let renamed = json!({ "data": { "my.conf": null, "25-nova-my.conf": "[libvirt]\n" } });
    ns.merge::<ConfigMap>("mine", renamed).await?;
    ns.good::<Service>("nova-custom", &[config], SOON).await?;

    // A service that is no longer one of nova's has no such condition.
    ns.merge::<Service>("nova-custom", json!({ "spec": { "edpmServiceType": "other" } })).await?;
    let is_silent = |it: &Service| it.conditions().iter().all(|it| it.type_ != config);
    ns.wait::<Service>("nova-custom", "without the condition", SOON, is_silent).await?;
    ns.done().await
}

#[tokio::test]
async fn of_two_sources_with_one_key_the_last_one_listed_reaches_the_host() -> Result<()> {
    let (ns, host) = World::with_host("services-clash", "e2e-services", "192.168.122.197").await?;
    crate::journey::ssh_secret(&ns, &host).await?;
    ns.secret("generated", &[("greeting", "generated"), ("more", "x")]).await?;
    ns.config_map("mine", &[("greeting", "mine")]).await?;
    let spec = json!({
        "playbookContents": PLAYBOOK,
        "dataSources": [
            { "secretRef": { "name": "generated" } },
            { "configMapRef": { "name": "mine" } },
        ],
    });
    ns.create::<Service>("own", spec).await?;
    let words = ["Key greeting of ConfigMap mine is mounted", "Secret generated is not"];
    ns.reports::<Service>("own", "DataSourceKeysClash", "KeysClash", &words, SOON).await?;
    let mut role = journey::role();
    role["services"] = json!(["own"]);
    ns.create::<Role>(ROLE, role).await?;
    journey::node(&ns, &host.name, &host.address).await?;
    ready(&ns, &host.name).await?;
    let visits = host.visits();
    let given: Vec<&str> = visits.iter().map(|it| it.files[GREETING].as_str()).collect();
    assert_eq!(given, ["mine"]);
    ns.done().await
}

#[tokio::test]
async fn services_that_cannot_be_deployed_are_refused_with_the_legal_way() -> Result<()> {
    let ns = World::new("services-refused").await?;
    let source = |it: Value| json!({ "playbook": "a.b.c", "dataSources": [it] });
    let cert =
        |it: &str| json!({ "playbook": "a.b.c", "tlsCerts": { "default": { "contents": [it] } } });
    let long = "a".repeat(64);
    let cases = [
        ("own", json!({ "playbook": "" }), "a service needs playbook, playbookContents or role"),
        ("own", source(json!({ "prefix": "a_" })), "each entry names a ConfigMap"),
        ("own", source(json!({ "secretRef": { "name": "A_b" } })), "lower-case letters, digits"),
        ("own", cert("dns"), "a certificate names dnsnames, ips or both"),
        (long.as_str(), json!({ "playbook": "a.b.c" }), "at most 63 characters"),
    ];
    for (name, spec, words) in cases {
        let refused = ns.create::<Service>(name, spec.clone()).await;
        let text = format!("{:#}", refused.err().with_context(|| format!("{spec} is accepted"))?);
        assert!(text.contains(words), "{spec}: {text}");
    }
    // A file in a subfolder cannot even be expressed.
    let refused = ns.config_map("with-a-path", &[("nova/my.conf", "")]).await;
    let text = format!("{:#}", refused.err().context("a key with a path is accepted")?);
    assert!(text.contains("nova/my.conf"), "{text}");

    // A field without effect is accepted, as upstream does, and reported.
    let both = json!({ "configMapRef": { "name": "m", "optional": true }, "secretRef": { "name": "s" }, "prefix": "a_" });
    ns.create::<Service>("own", source(both)).await?;
    let words = ["spec.dataSources[0].prefix", "Secret s is not mounted"];
    let own = ns.reports::<Service>("own", "SpecWarnings", "WithoutEffect", &words, SOON).await?;
    let ready = own.conditions().iter().find(|it| it.type_ == "Ready").context("no Ready")?;
    assert_eq!(ready.status, ConditionStatus::True);
    ns.done().await
}

//! An upgrade from the previous release to this one, and back: no run starts and no desired state
//! changes.
//!
//! `cargo xtask test e2e` installs the previous release and runs the main job with it; then this
//! test runs, before all others.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use api::ansibleee::AnsibleEe;
use api::conditions::{Condition, ConditionStatus};
use api::dataplane::{Node, Role};
use api::definitions;
use api::nova::{Cell, ExternalCompute};
use e2e::demo::{Demo, HOSTS};
use e2e::installation::{Installation, schema};
use e2e::{Kind, SOON};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use operator_core::keyed::is_keyed;
use serde_json::Value;

/// State that must not change: the objects, their specs, and the containers on hosts.
#[derive(Debug, PartialEq)]
struct Picture {
    /// Object → UID and generation, which counts the writes to its spec. Services are left out: the
    /// default ones belong to the operator and change with each release.
    objects: BTreeMap<String, (Option<String>, Option<i64>)>,
    /// UIDs of all Jobs.
    jobs: BTreeSet<String>,
    /// Object and condition → the time since when it is `True`.
    true_since: BTreeMap<String, String>,
    /// Id and start of each container, by host.
    containers: BTreeMap<String, String>,
}

impl Picture {
    async fn take(demo: &Demo) -> Result<Self> {
        let mut picture = Self {
            objects: BTreeMap::new(),
            jobs: BTreeSet::new(),
            true_since: BTreeMap::new(),
            containers: BTreeMap::new(),
        };
        picture.note::<Role>(demo).await?;
        picture.note::<Cell>(demo).await?;
        picture.note::<AnsibleEe>(demo).await?;
        for node in picture.note::<Node>(demo).await? {
            picture.note_conditions("node", &node.name_any(), node.conditions());
        }
        for compute in picture.note::<ExternalCompute>(demo).await? {
            picture.note_conditions("compute", &compute.name_any(), compute.conditions());
        }
        picture.jobs = demo.ns.list::<Job>().await?.iter().filter_map(ResourceExt::uid).collect();
        for host in HOSTS {
            picture.containers.insert(host.to_owned(), demo.containers(host).await?);
        }
        Ok(picture)
    }

    async fn note<K: Kind>(&mut self, demo: &Demo) -> Result<Vec<K>> {
        let found = demo.ns.list::<K>().await?;
        for it in &found {
            let name = format!("{} {}", K::kind(&()), it.name_any());
            self.objects.insert(name, (it.uid(), it.meta().generation));
        }
        Ok(found)
    }

    fn note_conditions(&mut self, kind: &str, name: &str, conditions: &[Condition]) {
        for type_ in ["Ready", "UpToDate"] {
            if let Some(found) =
                conditions.iter().find(|it| it.type_ == type_ && it.status == ConditionStatus::True)
            {
                let since = found.last_transition_time.0.to_string();
                self.true_since.insert(format!("{kind} {name}: {type_}"), since);
            }
        }
    }

    /// Checks that the main job is done: both hosts are ready, and their runs still exist.
    fn is_of_the_main_job(&self) -> Result<()> {
        // `Ready` and `UpToDate` of a node and a compute for each host.
        ensure!(self.true_since.len() == 4 * HOSTS.len(), "{:?}", self.true_since);
        ensure!(
            self.objects.keys().any(|it| it.starts_with("OpenStackAnsibleEE ")),
            "no run is left"
        );
        ensure!(!self.jobs.is_empty(), "no Job is left");
        let runs_nova = |it: &String| it.contains("nova_compute") && it.contains("libvirt");
        ensure!(self.containers.values().all(runs_nova), "{:?}", self.containers);
        Ok(())
    }
}

/// Waits until the operators reconcile, and asserts that nothing has changed.
async fn stays(demo: &Demo, release: &Installation, before: &Picture) -> Result<()> {
    release.at_work().await?;
    assert_eq!(&Picture::take(demo).await?, before, "once the operators were at work");
    // A reconcile that starts after the result of an earlier one has seen all of its writes.
    for _ in 0..2 {
        for host in HOSTS {
            comes_back::<ConfigMap>(demo, &format!("dataplanenode-{host}")).await?;
        }
        for host in HOSTS {
            comes_back::<Secret>(demo, &format!("{host}-config-data")).await?;
        }
    }
    demo.settled().await?;
    assert_eq!(&Picture::take(demo).await?, before, "once the operators had answered");
    Ok(())
}

/// Deletes an object of an operator, which recreates it when it reconciles the owner.
async fn comes_back<K: Kind>(demo: &Demo, name: &str) -> Result<()> {
    let found = demo.ns.api::<K>().get(name).await.with_context(|| format!("read {name}"))?;
    demo.ns.remove::<K>(name).await?;
    let is_new = |it: &K| it.uid() != found.uid();
    demo.ns.wait::<K>(name, "made anew", SOON, is_new).await.map(drop)
}

#[tokio::test]
async fn an_upgrade_runs_nothing_again_and_can_be_taken_back() -> Result<()> {
    let demo = Demo::ready().await?;
    let release = Installation::existing(&demo.ns.client)?;
    let ours = definitions::all();
    let mut new: BTreeMap<String, Value> = BTreeMap::new();
    for definition in &ours {
        new.insert(definition.name_any(), schema(definition)?);
    }
    let mut old = release.schemas(&ours).await?;
    // The lab may have had this release, or an earlier state of it; its CRDs have stayed.
    let known = release.definitions().await?;
    ensure!(!known.is_empty(), "the release before has no definitions");
    old.retain(|name, _| known.contains(name));
    let before = Picture::take(&demo).await?;
    before.is_of_the_main_job()?;

    // As install.md describes an upgrade that may be rolled back.
    release.upgrade(&["secretDigests.rewriteUnkeyed=false"]).await?;
    assert_eq!(release.schemas(&ours).await?, new, "definitions after the upgrade");
    stays(&demo, &release, &before).await?;

    release.roll_back().await?;
    // A CRD that is new in this release stays after the rollback, as all CRDs do.
    for (name, schema) in &new {
        old.entry(name.clone()).or_insert_with(|| schema.clone());
    }
    assert_eq!(release.schemas(&ours).await?, old, "definitions after the rollback");
    stays(&demo, &release, &before).await?;

    // This upgrade stays. The key of the first one still exists, and unkeyed digests are rewritten.
    release.upgrade(&[]).await?;
    assert_eq!(release.schemas(&ours).await?, new, "definitions after the second upgrade");
    stays(&demo, &release, &before).await?;
    for compute in demo.ns.list::<ExternalCompute>().await? {
        let inputs = compute.status.map(|it| it.deployed_inputs).unwrap_or_default();
        let mut of_secrets = inputs.iter().filter(|it| it.0.starts_with("Secret "));
        ensure!(
            of_secrets.clone().count() > 0 && of_secrets.all(|it| is_keyed(it.1)),
            "{inputs:?}"
        );
    }
    Ok(())
}

//! The audits of a role: which hosts share a run, when it begins, and what ends it.

use std::sync::Arc;

use api::ansibleee::{AnsibleEe, AnsibleEeStatus};
use api::conditions::{Condition, ConditionStatus};
use api::dataplane::{Node, ObservedNodeSet, Role};
use api::nova::{ExternalCompute, ExternalComputeStatus, Management};
use api::shared::SourceKind;
use jiff::{SignedDuration, Timestamp};
use kube::{Resource, ResourceExt};
use operator_core::plan::{Kind, Target, Write};
use operator_core::run_engine::run_template::MountedSource;
use operator_runtime::source_cache::Digests;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::conditions::stated;
use testkit::golden::recorded;
use testkit::objects;

use super::decide;
use super::observed::{Audit, AuditedHost, Observed};
use super::schedule::slot_start;
use crate::compute::audit::condition::Audited;
use crate::compute::audit::report::last;
use crate::compute::audit::request::{AuditPolicy, AuditRequest};
use crate::compute::deploy::migration_key;
use crate::shared_caches::audit_runs::is_open;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const UID: &str = "uid-of-the-role";

struct World {
    seen: Observed,
    now: Timestamp,
}

fn object<K>(name: &str, spec: &Value, status: &Value) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let metadata = json!({ "uid": format!("uid-{name}"), "generation": 1 });
    objects::named("ns", name, json!({ "metadata": metadata, "spec": spec, "status": status }))
}

fn conditions(types: &[&str]) -> Vec<Condition> {
    types.iter().map(|it| stated(it, "True", "x", "x")).collect()
}

fn host(name: &str) -> AuditedHost {
    let number = name.trim_start_matches('n');
    let status = json!({
        "observedGeneration": 1,
        "conditions": conditions(&["Ready", "UpToDate"]),
        "address": format!("192.0.2.{number}:22"),
        "inventoryConfigMapName": format!("dataplanenode-{name}"),
        "sharedInventoryConfigMapName": "dataplanerole-compute",
    });
    let spec = json!({ "ansibleHost": format!("192.0.2.{number}"), "role": "compute" });
    let node: Node = object(name, &spec, &status);
    let spec = json!({
        "dataplaneNodeName": name, "cellName": "cell1",
        "inventoryConfigMapName": format!("dataplanenode-{name}"),
        "sshKeySecretName": "key",
        "novaComputeContainerImage": "compute:1",
        "novaLibvirtContainerImage": "libvirt:1",
    });
    let service = |name: &str| {
        json!({
            "name": name, "state": "Succeeded", "hash": "h", "attempt": 1,
            "since": "2025-12-31T00:00:00Z",
        })
    };
    let status = json!({
        "observedGeneration": 1,
        "conditions": conditions(&["DeploymentReady", "UpToDate"]),
        "configFiles": [{ "name": "01-nova.conf", "source": "s", "hash": "h" }],
        "deployedFiles": { "01-nova.conf": "h" },
        "services": [service("nova"), service("nova-registered")],
    });
    let compute: ExternalCompute = object(name, &spec, &status);
    let policy = AuditPolicy { interval: HOUR, repairs: false };
    let request = AuditRequest::Audit(policy);
    let audited = Audited { request, last: None, playbooks: Vec::new() };
    let (node, compute) = (Arc::new(node), Arc::new(compute));
    let (ssh, sources) = (Some(Digests::default()), Some(vec![]));
    AuditedHost { node, compute, audited, ssh, sources, is_busy: false }
}

impl World {
    fn new(names: &[&str]) -> Self {
        let owner = Target {
            kind: Kind::of::<Role>(),
            namespace: "ns".into(),
            name: "compute".into(),
            uid: Some(UID.into()),
        };
        let hosts = names.iter().map(|it| host(it)).collect();
        let seen =
            Observed { owner, hosts, audits: Vec::new(), n_open: <_>::default(), max_open: 4 };
        Self { seen, now: slot_start(HOUR, UID, "2026-01-01T12:00:00Z".parse().unwrap()) }
    }

    fn host(&mut self, name: &str) -> &mut AuditedHost {
        self.seen.hosts.iter_mut().find(|it| it.node.name_any() == name).unwrap()
    }

    /// Reconciles once; returns the hosts of the run that is created, and the time of the next pass in
    /// minutes.
    fn pass(&mut self) -> (Option<Vec<String>>, u64) {
        let plan = recorded(decide(&self.seen, None, self.now));
        let mut created = None;
        for step in plan.steps {
            let name = step.target.name;
            match step.write {
                Write::Create { object, .. } => {
                    assert_eq!(created, None, "two runs at a time");
                    let mut run: AnsibleEe = serde_json::from_value(object).unwrap();
                    run.metadata.uid = Some(format!("uid-{name}"));
                    run.metadata.creation_timestamp =
                        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(self.now));
                    created = Some(run.spec.hosts.iter().map(|it| it.name.clone()).collect());
                    self.seen.audits.push(Audit { run: Arc::new(run), is_in_the_way: false });
                }
                Write::Delete { .. } => self.seen.audits.retain(|it| it.run.name_any() != name),
                Write::Apply { .. }
                | Write::Status { .. }
                | Write::AddFinalizer { .. }
                | Write::RemoveFinalizer { .. } => panic!("it writes runs alone"),
            }
        }
        (created, plan.requeue_after.map_or(0, |it| it.as_secs() / 60))
    }

    fn created(&mut self) -> Option<Vec<String>> {
        self.pass().0
    }

    /// Ends the open audit with that report.
    fn end(&mut self, report: &Value) {
        let open = self.seen.audits.iter_mut().find(|it| is_open(&it.run)).unwrap();
        let run = Arc::make_mut(&mut open.run);
        let hosts = run.spec.hosts.iter().map(|it| json!({ "name": it.name, "result": "Ok" }));
        let status = json!({
            "JobStatus": "Succeeded", "hosts": hosts.collect::<Vec<_>>(), "report": report.to_string(),
        });
        run.status = Some(serde_json::from_value::<AnsibleEeStatus>(status).unwrap());
        let runs: Vec<_> = self.seen.audits.iter().map(|it| Arc::clone(&it.run)).collect();
        for host in &mut self.seen.hosts {
            host.audited.last = last(&runs, &host.node.name_any());
        }
    }

    /// Ends the open audit without a difference.
    fn end_well(&mut self) {
        self.end(&json!({ "audit": {} }));
    }
}

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|it| (*it).to_owned()).collect()
}

#[test]
fn the_hosts_of_a_role_share_a_run_with_the_files_of_each() {
    let mut world = World::new(&["n1", "n2"]);
    assert_eq!(world.created(), Some(named(&["n1", "n2"])));
    let run = Arc::clone(&world.seen.audits[0].run);
    let spec = serde_json::to_value(&run.spec).unwrap();
    assert_eq!(spec["playbook"], "osp.edpm.nova_audit");
    assert_eq!(spec["hosts"][1], json!({ "name": "n2", "address": "192.0.2.2:22" }));
    assert_eq!(
        spec["extraVars"]["edpm_nova_config_src"],
        "/var/lib/openstack/audited/{{ inventory_hostname }}"
    );
    assert_eq!(spec["extraVars"]["edpm_nova_compute_image"], "compute:1");
    let volumes = spec["extraMounts"][0]["volumes"][0]["projected"]["sources"].clone();
    let secret = |name: &str| {
        json!({
            "secret": {
                "name": format!("{name}-config-data"),
                "items": [{ "key": "01-nova.conf", "path": format!("{name}/01-nova.conf") }],
                "optional": true,
            },
        })
    };
    assert_eq!(volumes, json!([secret("n1"), secret("n2")]));
    assert!(spec.to_string().contains("dataplanerole-compute"), "{spec}");
    let owner = &run.owner_references()[0];
    assert_eq!((owner.uid.as_str(), owner.controller), (UID, None));
    assert_eq!(world.created(), None, "it has not ended");
}

#[test]
fn the_hosts_of_a_node_set_share_a_run_with_the_files_of_their_service() {
    let mut world = World::new(&["n1", "n2"]);
    for host in &mut world.seen.hosts {
        let status = Arc::make_mut(&mut host.node).status.as_mut().unwrap();
        status.inventory_config_map_name = None;
        status.shared_inventory_config_map_name = None;
        status.inventory_secret_name = Some("dataplanenodeset-edpm".into());
        status.ssh_key_secret_name = Some("key".into());
        status.observed_node_set =
            Some(ObservedNodeSet { name: "edpm".into(), ..ObservedNodeSet::default() });
        let compute = Arc::make_mut(&mut host.compute);
        compute.spec.management = Management::Observed;
        compute.spec.inventory_config_map_name = None;
        let keys = vec!["01-nova.conf".to_owned()];
        let (kind, name) = (SourceKind::Secret, "nova-cell1-compute-config".to_owned());
        host.sources = Some(vec![MountedSource { kind, name, keys }]);
        host.audited.playbooks = vec!["example.site.motd_audit".to_owned()];
    }
    world.host("n2").sources = None;
    assert_eq!(world.created(), Some(named(&["n1"])), "a file of the second one is missing");
    world.end_well();
    world.now += HOUR;
    world.host("n2").sources = world.host("n1").sources.clone();
    assert_eq!(world.created(), Some(named(&["n1", "n2"])));
    let spec = serde_json::to_value(&world.seen.audits.last().unwrap().run.spec).unwrap();
    let text = spec.to_string();
    for part in ["osp.edpm.nova_audit", "example.site.motd_audit", "dataplanenodeset-edpm"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("nova-cell1-compute-config"), "{text}");
    assert!(text.contains("/var/lib/openstack/configs/nova"), "{text}");
    for part in ["config-data", "edpm_nova_config_src", "edpm_nova_compute_image"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

#[test]
fn hosts_are_audited_once_in_each_interval_and_the_newest_run_stays() {
    let mut world = World::new(&["n1", "n2"]);
    world.pass();
    world.now += MINUTE;
    world.end_well();
    let first = world.seen.audits[0].run.name_any();
    assert_eq!(world.pass(), (None, 59));
    world.now += MINUTE * 58;
    assert_eq!(world.created(), None);
    world.now += MINUTE;
    assert_eq!(world.created(), Some(named(&["n1", "n2"])));
    assert_eq!(world.seen.audits.len(), 2, "the result is read in the first one");
    world.end_well();
    assert_eq!(world.created(), None);
    assert_eq!(world.seen.audits.len(), 1);
    assert_ne!(world.seen.audits[0].run.name_any(), first);
}

#[test]
fn an_audit_ends_where_a_deployment_needs_a_host_of_it_and_begins_again_afterwards() {
    let mut world = World::new(&["n1", "n2"]);
    world.pass();
    let first = world.seen.audits[0].run.name_any();
    world.host("n2").is_busy = true;
    world.seen.audits[0].is_in_the_way = true;
    world.pass();
    assert!(world.seen.audits.iter().all(|it| !is_open(&it.run)));
    world.now += MINUTE;
    // The other host waits for it too, but no longer than half of the interval.
    assert_eq!(world.pass(), (None, 29));
    world.now += MINUTE * 29;
    assert_eq!(world.created(), Some(named(&["n1"])));
    world.end_well();
    world.host("n2").is_busy = false;
    assert_eq!(world.created(), Some(named(&["n2"])));
    assert_ne!(world.seen.audits[1].run.name_any(), first);
}

#[test]
fn a_host_is_audited_where_it_is_known_what_was_deployed_and_not_where_a_release_before_did_it() {
    let mut world = World::new(&["n1", "n2"]);
    let status = |host: &mut AuditedHost, change: fn(&mut ExternalComputeStatus)| {
        change(Arc::make_mut(&mut host.compute).status.as_mut().unwrap());
    };
    status(world.host("n1"), |it| it.deployed_files.clear());
    status(world.host("n2"), |it| {
        let changed = it.conditions.iter_mut().find(|it| it.type_ == "UpToDate").unwrap();
        (changed.status, changed.reason) = (ConditionStatus::False, "OperatorChanged".into());
    });
    assert_eq!(world.created(), Some(named(&["n2"])), "another release changes nothing on it");
}

/// The inventory of its node is rewritten, and a rollout that has stopped does not deploy it.
fn not_up_to_date(host: &mut AuditedHost) {
    let status = Arc::make_mut(&mut host.node).status.as_mut().unwrap();
    status.conditions.retain(|it| it.type_ != "UpToDate");
}

#[test]
fn an_audit_ends_where_the_inputs_of_a_host_change_and_not_where_a_host_leaves() {
    let mut world = World::new(&["n1", "n2"]);
    world.pass();
    let first = world.seen.audits[0].run.name_any();
    let leaving = &mut Arc::make_mut(&mut world.host("n2").node).metadata;
    leaving.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
    assert_eq!(world.created(), None);
    assert_eq!(world.seen.audits.len(), 1);
    not_up_to_date(world.host("n1"));
    world.pass();
    assert!(world.seen.audits.iter().all(|it| it.run.name_any() != first));
}

#[test]
fn a_host_that_is_not_deployed_with_its_present_inputs_is_not_audited() {
    type Change = fn(&mut AuditedHost);
    let changes: [Change; 7] = [
        not_up_to_date,
        |it| Arc::make_mut(&mut it.node).status.as_mut().unwrap().conditions.clear(),
        |it| Arc::make_mut(&mut it.node).metadata.generation = Some(2),
        |it| Arc::make_mut(&mut it.compute).metadata.generation = Some(2),
        |it| Arc::make_mut(&mut it.compute).status.as_mut().unwrap().conditions.clear(),
        |it| {
            let services = &mut Arc::make_mut(&mut it.compute).status.as_mut().unwrap().services;
            services[0].state = api::dataplane::RunState::Running;
        },
        |it| it.ssh = None,
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut world = World::new(&["n1", "n2"]);
        change(world.host("n1"));
        assert_eq!(world.created(), Some(named(&["n2"])), "change {index}");
    }
}

#[test]
fn hosts_with_other_images_have_a_run_of_their_own_after_the_first() {
    let mut world = World::new(&["n1", "n2", "n3"]);
    let spec = &mut Arc::make_mut(&mut world.host("n2").compute).spec;
    spec.nova_compute_container_image = Some("compute:2".into());
    let mut created = Vec::new();
    for _ in 0..2 {
        created.extend(world.created());
        assert_eq!(world.created(), None);
        world.end_well();
    }
    created.sort();
    assert_eq!(created, [named(&["n1", "n3"]), named(&["n2"])]);
    assert_eq!(world.created(), None);
    assert_eq!(world.seen.audits.len(), 2);
}

#[test]
fn services_with_an_audit_playbook_are_audited_by_the_same_run() {
    let mut world = World::new(&["n1", "n2"]);
    world.host("n2").audited.playbooks = vec!["a.b.audit".into(), "/plays/c.yml".into()];
    world.pass();
    world.end_well();
    world.pass();
    let spec = |it: &Audit| it.run.spec.clone();
    let audits: Vec<_> = world.seen.audits.iter().map(spec).collect();
    let of = |host: &str| audits.iter().find(|it| it.hosts[0].name == host).unwrap();
    assert_eq!(of("n1").playbook.as_deref(), Some("osp.edpm.nova_audit"));
    let all = "- import_playbook: \"a.b.audit\"\n- import_playbook: \"/plays/c.yml\"\n\
               - import_playbook: \"osp.edpm.nova_audit\"\n";
    assert_eq!(of("n2").playbook_contents.as_deref(), Some(all));
}

#[test]
fn a_large_role_is_audited_by_one_run_after_the_other() {
    let names: Vec<String> = (100..220).map(|it| format!("n{it}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names);
    let mut sizes = Vec::new();
    while let Some(hosts) = world.created() {
        sizes.push(hosts.len());
        world.end_well();
    }
    assert_eq!(sizes, [50, 50, 20]);
}

#[test]
fn hosts_with_long_names_share_a_run_with_fewer() {
    let names: Vec<String> = (100..160).map(|it| format!("n{it}-{}", "x".repeat(55))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names);
    let created = world.created().unwrap();
    assert_eq!(created.len(), 35);
}

#[test]
fn few_audits_run_at_a_time_whatever_the_number_of_roles() {
    let mut world = World::new(&["n1"]);
    world.seen.n_open = [("ns".to_owned(), 4)].into();
    assert_eq!(world.pass(), (None, 0));
    world.seen.n_open = [("other".to_owned(), 3), ("ns".to_owned(), 1)].into();
    assert_eq!(world.pass(), (None, 0));
    world.seen.max_open = 5;
    assert_eq!(world.created(), Some(named(&["n1"])));
}

#[test]
fn audits_of_another_namespace_leave_a_place() {
    let mut world = World::new(&["n1"]);
    world.seen.n_open = [("other".to_owned(), 40)].into();
    assert_eq!(world.created(), Some(named(&["n1"])));
}

#[test]
fn a_host_that_was_deployed_again_after_a_difference_is_audited_at_once_and_once_only() {
    let differs = json!({ "audit": { "n1": [1, ["unit a: inactive"]] } });
    let mut world = World::new(&["n1", "n2"]);
    world.pass();
    world.end(&differs);
    let deploy = |world: &mut World| {
        world.now += MINUTE;
        let now = world.now;
        let compute = Arc::make_mut(&mut world.host("n1").compute);
        compute.status.as_mut().unwrap().services[1].since.0 = now;
    };
    assert_eq!(world.created(), None);
    deploy(&mut world);
    assert_eq!(world.created(), Some(named(&["n1"])));
    world.end(&differs);
    assert_eq!(world.created(), None);
    deploy(&mut world);
    assert_eq!(world.created(), None, "a host that no deployment mends waits for its interval");
    world.now += HOUR;
    assert_eq!(world.created(), Some(named(&["n1", "n2"])));
}

#[test]
fn the_audit_after_a_deployment_is_another_run_in_the_same_minute_too() {
    let mut world = World::new(&["n1"]);
    world.now += SignedDuration::from_secs(60 - world.now.as_second() % 60);
    world.pass();
    world.end(&json!({ "audit": { "n1": [1, ["unit a: inactive"]] } }));
    world.now += SignedDuration::from_secs(20);
    let now = world.now;
    let compute = Arc::make_mut(&mut world.host("n1").compute);
    compute.status.as_mut().unwrap().services[1].since.0 = now;
    assert_eq!(world.created(), Some(named(&["n1"])));
    let names: Vec<String> = world.seen.audits.iter().map(|it| it.run.name_any()).collect();
    assert_ne!(names[0], names[1]);
}

#[test]
fn audits_go_when_they_are_no_longer_requested() {
    for request in [AuditRequest::Absent, AuditRequest::Invalid("x".into())] {
        let mut world = World::new(&["n1"]);
        world.pass();
        world.host("n1").audited.request = request;
        assert_eq!(world.pass(), (None, 0));
        assert!(world.seen.audits.is_empty());
    }
    let mut world = World::new(&["n1"]);
    world.pass();
    world.end_well();
    world.seen.hosts.clear();
    assert_eq!(world.pass(), (None, 0));
    assert!(world.seen.audits.is_empty());
}

#[test]
fn the_key_for_migrations_is_given_where_the_host_was_deployed_with_it() {
    let mut world = World::new(&["n1", "n2"]);
    let compute = Arc::make_mut(&mut world.host("n2").compute);
    let key = (migration_key::SECRET.to_owned(), "h".to_owned());
    compute.status.as_mut().unwrap().deployed_inputs = [key].into();
    let plan = recorded(decide(&world.seen, None, world.now));
    let created = plan.steps.iter().find_map(|it| match &it.write {
        Write::Create { object, .. } => Some(object.to_string()),
        Write::Apply { .. }
        | Write::Status { .. }
        | Write::Delete { .. }
        | Write::AddFinalizer { .. }
        | Write::RemoveFinalizer { .. } => None,
    });
    let created = created.unwrap();
    assert!(created.contains("n2/ssh-privatekey") && created.contains("n2/ssh-publickey"));
    assert!(!created.contains("n1/ssh-"), "{created}");
}

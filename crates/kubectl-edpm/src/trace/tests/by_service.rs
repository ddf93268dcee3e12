//! Tests of the steps for a service that mounts the user's ConfigMap.

use api::dataplane::Service;
use api::yaml;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;

use super::*;
use crate::config_files::Content;

const FILE: &str = "25-nova-extra.conf";

fn extra(key: &str, text: &str) -> File {
    File::of_key(&SourceRef::config_map("openstack", "nova-extra-config"), key, text.as_bytes())
}

fn generated() -> File {
    let object = SourceRef::secret("openstack", "nova-cell1-compute-config");
    File::of_key(&object, "01-nova.conf", b"[libvirt]\ncpu_mode = host-model\n")
}

/// The first host without a compute; its role's service has deployed the option.
fn arrived() -> Scene {
    let service: Service = yaml::from_str(
        "
metadata: {name: nova-custom, namespace: openstack}
spec:
  playbook: osp.edpm.nova
  edpmServiceType: nova
  dataSources:
    - configMapRef: {name: nova-extra-config}
    - secretRef: {name: nova-cell1-compute-config}
",
    )
    .unwrap();
    let files = [extra(FILE, SNIPPET), generated()];
    let contents = files.clone().map(|it| content(vec![it]));
    let mut snapshot = testdata::snapshot();
    snapshot.computes.clear();
    snapshot.roles[0].spec.services.push("nova-custom".into());
    let status = snapshot.nodes[0].status.as_mut().unwrap();
    let mut progress = status.services[0].clone();
    progress.name = "nova-custom".into();
    status.services.push(progress);
    let run = &mut snapshot.runs[0];
    run.labels_mut()
        .insert(operator_core::run_engine::run::SERVICE_LABEL.into(), "nova-custom".into());
    let owner = &mut run.metadata.owner_references.as_mut().unwrap()[0];
    (owner.kind, owner.name) = ("OpenStackDataPlaneRole".into(), "edpm-compute".into());
    run.spec.extra_mounts = yaml::from_str(
        "
- volumes:
    - {name: edpm-source-0, configMap: {name: nova-extra-config}}
    - {name: edpm-source-1, secret: {secretName: nova-cell1-compute-config}}
  mounts:
    - {name: edpm-source-0, mountPath: /var/lib/openstack/configs/nova/25-nova-extra.conf, subPath: 25-nova-extra.conf}
    - {name: edpm-source-1, mountPath: /var/lib/openstack/configs/nova/01-nova.conf, subPath: 01-nova.conf}
",
    )
    .unwrap();
    testdata::set_report(run, &files);
    let given = testdata::given(service, contents);
    let mut scene = Scene::of(snapshot, "edpm-compute-0", Some(given));
    scene.answer = Some(Ok(testdata::answer(&files, FILE, "Nehalem")));
    scene
}

fn content(files: Vec<File>) -> Read<Content> {
    Read::Found(Content { files, ..Content::default() })
}

/// Replaces the content of the first source's object.
fn give(scene: &mut Scene, content: Read<Content>) {
    scene.given().sources[0].1 = content;
}

#[test]
fn each_step_can_be_the_one_that_is_missing() {
    let steps = [
        "snippet",
        "written",
        "service",
        "listed",
        "run",
        "job",
        "pod",
        "host",
        "container",
        "process",
    ];
    let cases: [(&str, Mark, Break); 14] = [
        ("snippet", Mark::NotYet, |it| it.snippet = Some(snippet(""))),
        ("written", Mark::NotYet, |it| give(it, Read::Missing)),
        ("written", Mark::NotYet, |it| give(it, content(vec![]))),
        ("written", Mark::Stale, |it| it.snippet = Some(snippet(OTHER))),
        ("service", Mark::NotYet, |it| {
            it.given().beside = vec![extra(FILE, SNIPPET)];
            it.given().sources.remove(0);
        }),
        ("service", Mark::NotYet, |it| give(it, content(vec![extra("my.conf", SNIPPET)]))),
        ("listed", Mark::NotYet, |it| it.given().is_listed = false),
        ("run", Mark::NotYet, |it| it.snapshot.runs[0].spec.extra_mounts.clear()),
        ("run", Mark::NotYet, |it| {
            it.snippet = Some(snippet(OTHER));
            give(it, content(vec![extra(FILE, OTHER)]));
        }),
        ("job", Mark::NotYet, |it| it.job = Read::Found(Job::default())),
        ("pod", Mark::Unknown, |it| it.snapshot.runs[0].status.as_mut().unwrap().report = None),
        ("host", Mark::Stale, |it| it.answer().host[0] = format!("000000000000 {FILE}")),
        ("container", Mark::NotYet, |it| {
            it.answer().asked.files.remove(0);
        }),
        ("process", Mark::Stale, |it| it.answer().said.value = Some("Westmere".into())),
    ];
    check(arrived, &steps, &cases);
}

#[test]
fn a_step_that_is_missing_names_object_key_and_way_out() {
    let mut scene = arrived();
    for words in [
        "my.conf, line 2: [libvirt] cpu_models = Nehalem",
        "ConfigMap openstack/nova-extra-config, key 25-nova-extra.conf, line 2",
        "OpenStackDataPlaneService openstack/nova-custom mounts ConfigMap nova-extra-config, ",
        "25-nova-extra.conf, line 2: [libvirt] cpu_models = Nehalem  <- wins",
        "OpenStackDataPlaneRole openstack/edpm-compute lists nova-custom in spec.services",
        "In force: Nehalem, from /etc/nova/nova.conf.d/25-nova-extra.conf of ConfigMap \
         openstack/nova-extra-config.\n",
    ] {
        scene.says(words);
    }
    give(&mut scene, content(vec![extra("my.conf", SNIPPET)]));
    scene.says("ignores key my.conf: name it 25-nova-my.conf");
    give(&mut scene, Read::Missing);
    scene.says(
        "ConfigMap openstack/nova-extra-config, which service nova-custom needs, does not exist",
    );
}

#[test]
fn a_source_that_may_be_missing_is_not_what_it_stops_at() {
    let mut scene = arrived();
    scene.given().sources[0].0.is_optional = true;
    give(&mut scene, Read::Missing);
    scene.snippet = Some(snippet("[libvirt]\ncpu_mode = host-model\n"));
    assert_eq!(scene.marks()[1], ("written", Mark::Ok));
}

//! Tests of the steps for a service that mounts the user's ConfigMap.

use api::dataplane::Service;
use api::shared::SourceKind;
use api::yaml;
use kube::ResourceExt;
use operator_core::data_sources::sources_of;

use super::*;
use crate::config_files::{Content, Object};
use crate::option_sources::ServiceSources;

const FILE: &str = "25-nova-extra.conf";

/// Inputs of a trace besides the objects.
struct Beside {
    given: ServiceSources,
    job: Job,
    snippet: Snippet,
    answer: Answer,
}

fn extra(key: &str, text: &str) -> File {
    let object = Object { kind: SourceKind::ConfigMap, name: "nova-extra-config".into() };
    File::of_key(&object, "openstack", key, text.as_bytes())
}

fn generated() -> File {
    let object = Object { kind: SourceKind::Secret, name: "nova-cell1-compute-config".into() };
    File::of_key(&object, "openstack", "01-nova.conf", b"[libvirt]\ncpu_mode = host-model\n")
}

/// The first host without a compute; its role's service has deployed the option.
fn asked() -> (Snapshot, Beside) {
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
    let files = [extra(FILE, "[libvirt]\ncpu_models = Nehalem\n"), generated()];
    let sources = sources_of(&service.spec).into_iter();
    let sources = sources.zip(files.clone().map(|it| content(vec![it]))).collect();
    let mut snapshot = testdata::snapshot();
    snapshot.computes.clear();
    snapshot.roles[0].spec.services.push("nova-custom".into());
    let mut progress = snapshot.nodes[0].status.as_ref().unwrap().services[0].clone();
    progress.name = "nova-custom".into();
    snapshot.nodes[0].status.as_mut().unwrap().services.push(progress);
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
    let beside = Beside {
        given: ServiceSources {
            service,
            sources,
            beside: vec![],
            is_listed: true,
            conflicting_service: None,
            absent: vec![],
        },
        job: testdata::job(run),
        snippet: snippet("[libvirt]\ncpu_models = Nehalem\n"),
        answer: testdata::answer(&files, FILE, "Nehalem"),
    };
    (snapshot, beside)
}

fn with<T>(snapshot: &Snapshot, beside: &Beside, make: impl Fn(&TraceInputs<'_>) -> T) -> T {
    let host = snapshot.host("openstack", "edpm-compute-0").unwrap();
    make(&TraceInputs {
        host: &host,
        stage: &host.stages[0],
        road: ConfigPath::Service(&beside.given),
        file: None,
        snippet: Some(beside.snippet.clone()),
        generated: None,
        job: Some(Read::Found(beside.job.clone())),
        pod: None,
        answer: Some(Ok(beside.answer.clone())),
    })
}

fn traced(snapshot: &Snapshot, beside: &Beside) -> String {
    let named = OptionNames::new("libvirt", "cpu_models", Release::newest());
    with(snapshot, beside, |it| {
        render(it, ("libvirt", "cpu_models"), &named, Paint::default()).text
    })
}

fn content(files: Vec<File>) -> Read<Content> {
    Read::Found(Content { files, ..Content::default() })
}

/// Replaces the content of the first source's object.
fn give(beside: &mut Beside, content: Read<Content>) {
    beside.given.sources[0].1 = content;
}

#[test]
fn each_step_can_be_the_one_that_is_missing() {
    type Break = fn(&mut Snapshot, &mut Beside);
    let cases: [(&str, Mark, Break); 14] = [
        ("snippet", Mark::NotYet, |_, it| it.snippet.text.clear()),
        ("written", Mark::NotYet, |_, it| give(it, Read::Missing)),
        ("written", Mark::NotYet, |_, it| give(it, content(vec![]))),
        ("written", Mark::Stale, |_, it| it.snippet.text = "[libvirt]\ncpu_models = a\n".into()),
        ("service", Mark::NotYet, |_, it| {
            it.given.beside = vec![extra(FILE, "[libvirt]\ncpu_models = Nehalem\n")];
            it.given.sources.remove(0);
        }),
        ("service", Mark::NotYet, |_, it| {
            let file = extra("my.conf", "[libvirt]\ncpu_models = Nehalem\n");
            give(it, content(vec![file]));
        }),
        ("listed", Mark::NotYet, |_, it| it.given.is_listed = false),
        ("run", Mark::NotYet, |it, _| it.runs[0].spec.extra_mounts.clear()),
        ("run", Mark::NotYet, |_, it| {
            it.snippet.text = "[libvirt]\ncpu_models = a\n".into();
            give(it, content(vec![extra(FILE, "[libvirt]\ncpu_models = a\n")]));
        }),
        ("job", Mark::NotYet, |_, it| it.job = Job::default()),
        ("pod", Mark::Unknown, |it, _| it.runs[0].status.as_mut().unwrap().report = None),
        ("host", Mark::Stale, |_, it| it.answer.host[0] = format!("000000000000 {FILE}")),
        ("container", Mark::NotYet, |_, it| {
            it.answer.asked.files.remove(0);
        }),
        ("process", Mark::Stale, |_, it| it.answer.said.value = Some("Westmere".into())),
    ];
    let (snapshot, beside) = asked();
    let all = with(&snapshot, &beside, marks);
    assert!(all.iter().all(|it| it.1 == Mark::Ok) && all.len() == 10, "{all:?}");
    for (idx, (name, mark, make)) in cases.into_iter().enumerate() {
        let (mut snapshot, mut beside) = asked();
        make(&mut snapshot, &mut beside);
        let marks = with(&snapshot, &beside, marks);
        let first = marks.iter().find(|it| it.1 != Mark::Ok).copied();
        assert_eq!(first, Some((name, mark)), "{idx}");
    }
}

#[test]
fn a_step_that_is_missing_names_object_key_and_way_out() {
    let (snapshot, mut beside) = asked();
    let text = traced(&snapshot, &beside);
    for words in [
        "my.conf, line 2: [libvirt] cpu_models = Nehalem",
        "ConfigMap openstack/nova-extra-config, key 25-nova-extra.conf, line 2",
        "OpenStackDataPlaneService openstack/nova-custom mounts ConfigMap nova-extra-config, ",
        "25-nova-extra.conf, line 2: [libvirt] cpu_models = Nehalem  <- wins",
        "OpenStackDataPlaneRole openstack/edpm-compute lists nova-custom in spec.services",
        "In force: Nehalem, from /etc/nova/nova.conf.d/25-nova-extra.conf of ConfigMap \
         openstack/nova-extra-config.\n",
    ] {
        assert!(text.contains(words), "{words} is not in: {text}");
    }
    let file = extra("my.conf", "[libvirt]\ncpu_models = Nehalem\n");
    give(&mut beside, content(vec![file]));
    let text = traced(&snapshot, &beside);
    assert!(text.contains("ignores key my.conf: name it 25-nova-my.conf"), "{text}");
    give(&mut beside, Read::Missing);
    let text = traced(&snapshot, &beside);
    let words =
        "ConfigMap openstack/nova-extra-config, which service nova-custom needs, does not exist";
    assert!(text.contains(words), "{text}");
}

#[test]
fn a_source_that_may_be_missing_is_not_what_it_stops_at() {
    let (snapshot, mut beside) = asked();
    beside.given.sources[0].0.is_optional = true;
    give(&mut beside, Read::Missing);
    beside.snippet.text = "[libvirt]\ncpu_mode = host-model\n".into();
    let marks = with(&snapshot, &beside, marks);
    assert_eq!(marks[1], ("written", Mark::Ok));
}

//! Tests of the steps case by case, and of invariants under crashes at any point.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use api::baremetal::{DeprovisionPolicy, Image, Machine};
use api::secret::Secret;
use jiff::Timestamp;
use operator_core::keyed::Digest;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::test_model::Model;
use crate::version::negotiated;
use crate::*;

const ATTEMPTS: u32 = 3;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn desired() -> DesiredMachine {
    let instance = instance_uuid("set", "compute-0");
    DesiredMachine {
        instance,
        host: "compute-0".into(),
        drive: "d1".into(),
        attempts: ATTEMPTS,
        ..DesiredMachine::default()
    }
}

fn node(state: &str) -> Node {
    let given = json!({
        "uuid": "4dc4d6a3-7bf5-4d6e-8f0c-0b9c2d3a4e5f", "name": "rack1-u7",
        "provision_state": state, "traits": null, "properties": null, "power_state": "power on",
        "provision_updated_at": "2026-11-22T12:00:00.123456+00:00",
    });
    serde_json::from_value(given).unwrap()
}

/// A machine that is reserved as desired, as if by our own step.
fn ours(state: &str, desired: &DesiredMachine) -> Node {
    let free = if desired.adopt { State::Manageable } else { State::Available };
    let free = Node { provision_state: free, ..node(state) };
    let Next::Do(Step::Reserve(info)) = next(&free, desired, Timestamp::UNIX_EPOCH) else {
        panic!()
    };
    let instance_uuid = Some(desired.instance.clone());
    Node { instance_uuid, instance_info: info, ..node(state) }
}

fn at(node: &Node, desired: &DesiredMachine) -> Next {
    next(node, desired, time("2026-11-22T12:00:30Z"))
}

#[track_caller]
fn stops(state: &str, expected: &Cause) {
    let stopped = ours(state, &desired());
    assert_eq!(at(&stopped, &desired()), Next::Stop(expected.clone()), "{state}");
    let message = expected.message(&stopped);
    assert!(message.contains("rack1-u7") && !message.contains('\n'), "{message}");
}

#[track_caller]
fn waits(state: &str, seconds: u32, cause: Cause) {
    assert_eq!(at(&ours(state, &desired()), &desired()), Next::Wait { seconds, cause }, "{state}");
}

#[test]
fn what_was_adopted_is_retained_and_what_was_deployed_is_taken_back_unless_the_human_says_so() {
    use DeprovisionPolicy::{Deprovision, Retain};
    let adopted = DesiredMachine { adopt: true, drive: Digest::default(), ..desired() };
    let (adopted, deployed) = (ours("active", &adopted), ours("active", &desired()));
    let unknown = Node { instance_info: serde_json::Map::new(), ..deployed.clone() };
    for (node, expected) in [(&adopted, Retain), (&deployed, Deprovision), (&unknown, Retain)] {
        assert_eq!(policy(node, None), expected);
        assert_eq!(policy(node, Some(Deprovision)), Deprovision);
        assert_eq!(policy(node, Some(Retain)), Retain);
    }
}

#[test]
fn a_machine_tells_whose_it_is() {
    let node = ours("active", &desired());
    assert_eq!(host_of(&node, "set"), Some("compute-0"));
    assert_eq!(host_of(&node, "another"), None);
    assert_eq!(host_of(&Node { instance_uuid: None, ..node }, "set"), None);
}

#[test]
fn each_deployment_of_a_machine_is_another_one_though_the_reservation_is_the_same() {
    let first = ours("active", &desired());
    let redeployed = |at: &str| {
        let free = Node { provision_updated_at: Some(at.to_owned()), ..node("available") };
        let Next::Do(Step::Reserve(instance_info)) = self::at(&free, &desired()) else { panic!() };
        Node { instance_uuid: Some(desired().instance), instance_info, ..node("active") }
    };
    let second = redeployed("2026-11-22T13:00:00+00:00");
    let of = |it: &Node| deployment(it).unwrap();
    assert_eq!(of(&first), format!("{}@2026-11-22T12:00:00.123456+00:00", desired().instance));
    assert_ne!(of(&first), of(&second));
    // A second evaluation, or one after a crash, records the same.
    assert_eq!(of(&second), of(&redeployed("2026-11-22T13:00:00+00:00")));
    // A failure that is retried after a user's rebuild has also written the disk again.
    let failed = Node {
        provision_state: State::DeployFailed,
        provision_updated_at: Some("2026-11-22T11:00:00+00:00".into()),
        ..first.clone()
    };
    let Next::Do(Step::Record(info)) = at(&failed, &desired()) else { panic!() };
    assert_ne!(of(&Node { instance_info: info, ..failed }), of(&first));
    let noted_by_nobody = Node { instance_info: serde_json::Map::new(), ..first };
    assert_eq!(of(&noted_by_nobody), desired().instance);
    assert_eq!(deployment(&node("available")), None);
}

#[test]
fn a_machine_that_is_available_is_reserved_then_deployed() {
    let Next::Do(Step::Reserve(info)) = at(&node("available"), &desired()) else { panic!() };
    let since = "2026-11-22T12:00:00.123456+00:00";
    let wrote = json!({"display_name": "compute-0"});
    assert_eq!(info["edpm"], json!({"drive": "d1", "attempt": 1, "since": since, "wrote": wrote}));
    assert_eq!(info["display_name"], "compute-0");
    assert_eq!(at(&ours("available", &desired()), &desired()), Next::Do(Step::Deploy));
}

/// Returns what a patch sets, by path; null for what it removes.
fn patched(request: &Request) -> BTreeMap<String, Value> {
    let body = request.body.as_ref().unwrap().expose().clone();
    let ops = body.as_array().unwrap().clone();
    ops.into_iter()
        .map(|it| (it["path"].as_str().unwrap().to_owned(), it["value"].clone()))
        .collect()
}

#[test]
fn the_network_of_a_ramdisk_comes_with_the_reservation_and_goes_when_the_machine_is_clean() {
    let network = network_of("a");
    let with = DesiredMachine { ramdisk: network.clone(), ..desired() };
    let given = RequestValues { ramdisk: network.clone(), ..RequestValues::default() };
    let Next::Do(reserve) = at(&node("available"), &with) else { panic!() };
    let said = patched(&reserve.request(&node("available"), &with.instance, &given));
    assert_eq!(said["/network_data"], *network.unwrap().expose());
    assert_eq!(said["/instance_uuid"], json!(with.instance));
    let mut extra = serde_json::Map::new();
    extra.insert("edpm_ramdisk".into(), said["/extra/edpm_ramdisk"].clone());
    let marked = |state: &str| Node { extra: extra.clone(), ..ours(state, &with) };
    assert_eq!(at(&marked("available"), &with), Next::Do(Step::Deploy));
    // Another one is written before the deployment or the cleaning that needs it, and not during
    // it.
    let other =
        DesiredMachine { ramdisk: Some(Secret::new(json!({"links": [1]}))), ..with.clone() };
    assert!(matches!(at(&marked("available"), &other), Next::Do(Step::Record(_))));
    let provided = DesiredMachine { provide: true, ..other.clone() };
    assert!(matches!(at(&marked("manageable"), &provided), Next::Do(Step::Record(_))));
    assert!(matches!(at(&marked("active"), &other), Next::Done { is_current: true }));

    let back = |node: &Node| release(node, &with.instance, DeprovisionPolicy::Deprovision);
    assert_eq!(back(&marked("active")), Next::Do(Step::Tell(Verb::Deleted)));
    let left = |state: &str| Node {
        instance_uuid: None,
        instance_info: serde_json::Map::new(),
        ..marked(state)
    };
    let waits = Next::Wait { seconds: 10, cause: Cause::Working };
    assert_eq!((back(&left("cleaning")), back(&left("manageable"))), (waits.clone(), waits));
    assert_eq!(back(&left("clean failed")), Next::Stop(Cause::CleanFailed));
    assert_eq!(back(&left("error")), Next::Stop(Cause::UndeployFailed));
    let retired = Node { retired: true, ..left("manageable") };
    assert!(matches!(back(&retired), Next::Do(Step::Reserve(_))));
    let Next::Do(step) = back(&left("available")) else { panic!() };
    let said =
        patched(&step.request(&left("available"), &with.instance, &RequestValues::default()));
    let gone =
        [("/network_data".to_owned(), Value::Null), ("/extra/edpm_ramdisk".into(), Value::Null)];
    assert!(gone.iter().all(|(path, value)| said.get(path) == Some(value)), "{said:?}");
    assert_eq!(said["/instance_uuid"], json!(with.instance));
    let taken = Node { instance_uuid: Some("another".into()), ..left("available") };
    assert_eq!(back(&taken), Next::Done { is_current: true });
}

#[test]
fn every_state_of_a_reserved_machine_is_waited_for_or_told() {
    for state in ["deploying", "wait call-back", "cleaning", "clean wait", "inspecting", "deleting"]
    {
        waits(state, 20, Cause::Working);
    }
    for state in ["verifying", "adopting"] {
        waits(state, 5, Cause::Working);
    }
    for state in ["rescue", "rescuing", "rescue wait", "unrescuing", "servicing", "service hold"] {
        waits(state, 60, Cause::Working);
    }
    waits("of a later release", 60, Cause::Unknown);
    stops("clean failed", &Cause::CleanFailed);
    stops("clean hold", &Cause::Held);
    stops("deploy hold", &Cause::Held);
    stops("inspect failed", &Cause::InspectFailed);
    stops("adopt failed", &Cause::AdoptFailed);
    stops("rescue failed", &Cause::CareFailed);
    stops("unrescue failed", &Cause::CareFailed);
    stops("service failed", &Cause::CareFailed);
    stops("error", &Cause::UndeployFailed);
    stops("enroll", &Cause::NotProvided);
    stops("manageable", &Cause::NotProvided);
}

#[test]
fn a_word_of_ironic_is_the_same_after_reading_it() {
    let words = "enroll,verifying,manageable,available,inspecting,inspect wait,inspect failed,cleaning,\
                 clean wait,clean hold,clean failed,deploying,wait call-back,deploy hold,deploy failed,\
                 active,deleting,error,adopting,adopt failed,rescue,rescuing,rescue wait,rescue failed,\
                 unrescuing,unrescue failed,servicing,service wait,service hold,service failed,new";
    for word in words.split(',') {
        assert_eq!(State::of(word).word(), word);
        assert_eq!(matches!(State::of(word), State::Other(_)), word == "new", "{word}");
    }
    assert!(State::of(&"ö".repeat(1_000)).word().len() <= 64);
}

#[test]
fn maintenance_and_locks_are_respected() {
    let mut it = ours("available", &desired());
    it.reservation = Some("conductor-1".into());
    assert_eq!(at(&it, &desired()), Next::Wait { seconds: 5, cause: Cause::Locked });
    it.maintenance = true;
    it.maintenance_reason = Some("disk 3 is broken".into());
    assert_eq!(at(&it, &desired()), Next::Stop(Cause::Maintenance));
    assert_eq!(
        Cause::Maintenance.message(&it),
        "machine rack1-u7 is in maintenance (the reason is: disk 3 is broken); repair it, then \
         give the command `openstack baremetal node maintenance unset rack1-u7`"
    );
    it.provision_state = State::Active;
    assert_eq!(at(&it, &desired()), Next::Done { is_current: true });
}

#[test]
fn a_machine_of_others_is_never_touched() {
    for state in ["available", "active", "deploy failed", "manageable", "enroll"] {
        let others = Node { instance_uuid: Some("b".into()), ..node(state) };
        assert_eq!(at(&others, &desired()), Next::Stop(Cause::Taken));
        for policy in [DeprovisionPolicy::Deprovision, DeprovisionPolicy::Retain] {
            let released = release(&others, &desired().instance, policy);
            assert_eq!(released, Next::Done { is_current: true });
        }
    }
}

#[test]
fn a_failure_that_ironic_has_not_explained_yet_is_waited_for_as_long_as_it_works_on_it() {
    let desired = DesiredMachine { attempts: 1, ..desired() };
    let mut it = ours("deploy failed", &desired);
    it.reservation = Some("conductor-1".into());
    assert_eq!(at(&it, &desired), Next::Wait { seconds: 5, cause: Cause::Locked });
    it.last_error = Some("no disk".into());
    assert_eq!(at(&it, &desired), Next::Stop(Cause::DeployFailed));
    (it.last_error, it.reservation) = (None, None);
    assert_eq!(at(&it, &desired), Next::Stop(Cause::DeployFailed));
}

#[test]
fn a_failed_deployment_pauses_then_is_counted_then_tried() {
    let desired = desired();
    let mut it = ours("deploy failed", &desired);
    it.target_provision_state = Some("active".into());
    it.last_error = Some("no disk".into());
    assert_eq!(at(&it, &desired), Next::Wait { seconds: 30, cause: Cause::Retrying });
    let later = time("2026-11-22T12:01:01Z");
    let Next::Do(Step::Record(info)) = next(&it, &desired, later) else { panic!() };
    assert_eq!(
        DeployRecord::of(&Node { instance_info: info.clone(), ..it.clone() }).unwrap().attempt,
        2
    );
    it.instance_info = info;
    assert_eq!(next(&it, &desired, later), Next::Do(Step::Deploy));
    // The second one failed as well: its backoff is twice as long.
    it.provision_updated_at = Some("2026-11-22T12:05:00+00:00".into());
    let soon = time("2026-11-22T12:05:01Z");
    assert_eq!(next(&it, &desired, soon), Next::Wait { seconds: 119, cause: Cause::Retrying });
    let twice = DesiredMachine { attempts: 2, ..desired.clone() };
    assert_eq!(next(&it, &twice, soon), Next::Stop(Cause::DeployFailed));
    assert!(Cause::DeployFailed.message(&it).contains("(Ironic says: no disk)"));
    // Another drive begins again, and at once.
    let other = DesiredMachine { drive: "d2".into(), ..twice };
    let Next::Do(Step::Record(info)) = next(&it, &other, soon) else { panic!() };
    it.instance_info = info;
    assert_eq!(next(&it, &other, soon), Next::Do(Step::Deploy));
}

#[test]
fn a_pause_never_grows_by_a_clock_that_is_ahead() {
    let it = ours("deploy failed", &desired());
    let early = next(&it, &desired(), time("2026-11-22T10:00:00Z"));
    assert_eq!(early, Next::Wait { seconds: 60, cause: Cause::Retrying });
}

#[test]
fn what_was_written_by_others_stays_and_the_masked_drive_never_comes_back() {
    let image =
        Image { source: "https://a/b.qcow2".into(), checksum: Some("https://a/b.sum".into()) };
    let hash = Image { source: "https://a/b.qcow2".into(), checksum: Some("ab".repeat(32)) };
    let mut it = node("available");
    it.instance_info.insert("capabilities".into(), json!({"boot_option": "local"}));
    it.instance_info.insert("image_source".into(), json!("https://old"));
    it.instance_info.insert("image_checksum".into(), json!("old"));
    it.instance_info.insert("configdrive".into(), json!("******"));
    let root_device = BTreeMap::from([("size".to_owned(), ">= 100".to_owned())]);
    let desired = DesiredMachine { image: Some(hash), root_device, ..desired() };
    let Next::Do(Step::Reserve(info)) = at(&it, &desired) else { panic!() };
    assert_eq!(
        Value::Object(info.clone()),
        json!({
            "capabilities": {"boot_option": "local"}, "display_name": "compute-0",
            "image_source": "https://a/b.qcow2", "image_os_hash_algo": "sha256",
            "image_os_hash_value": "ab".repeat(32), "root_device": {"size": ">= 100"},
            "edpm": {
                "drive": "d1", "attempt": 1, "since": it.provision_updated_at,
                "wrote": {
                    "display_name": "compute-0", "image_source": "https://a/b.qcow2",
                    "image_os_hash_algo": "sha256", "image_os_hash_value": "ab".repeat(32),
                    "root_device": {"size": ">= 100"},
                },
            },
        })
    );
    it.instance_info = info;
    it.instance_uuid = Some(desired.instance.clone());
    let other = DesiredMachine { image: Some(image), ..desired.clone() };
    let Next::Do(Step::Record(info)) = at(&it, &other) else { panic!() };
    assert_eq!(
        (&info["image_checksum"], info.get("image_os_hash_algo")),
        (&json!("https://a/b.sum"), None)
    );
    assert_eq!(at(&it, &desired), Next::Do(Step::Deploy));
    let Next::Do(Step::Unreserve(left)) =
        release(&it, &desired.instance, DeprovisionPolicy::Deprovision)
    else {
        panic!()
    };
    assert_eq!(Value::Object(left), json!({"capabilities": {"boot_option": "local"}}));
}

#[test]
fn what_is_not_wished_any_more_is_taken_off_and_what_others_wrote_stays() {
    let image = Image { source: "https://a/b.qcow2".into(), checksum: Some("ab".repeat(32)) };
    let root_device = BTreeMap::from([("name".to_owned(), "/dev/sdb".to_owned())]);
    let full = DesiredMachine { image: Some(image.clone()), root_device, ..desired() };
    let with = |desired: DesiredMachine| {
        let Next::Do(Step::Record(info)) = at(&ours("available", &full), &desired) else {
            panic!()
        };
        let recorded = Node { instance_info: info.clone(), ..ours("available", &full) };
        assert_eq!(at(&recorded, &desired), Next::Do(Step::Deploy));
        info
    };
    let info = with(DesiredMachine { root_device: BTreeMap::new(), ..full.clone() });
    assert_eq!((info.get("root_device"), &info["image_source"]), (None, &json!(image.source)));
    let info =
        with(DesiredMachine { image: Some(Image { checksum: None, ..image }), ..full.clone() });
    assert_eq!(info.get("image_os_hash_value"), None);
    let info = with(DesiredMachine { image: None, ..full.clone() });
    assert_eq!((info.get("image_source"), info.contains_key("root_device")), (None, true));
    // A disk that the user chose on the machine itself.
    let mut others = node("available");
    others.instance_info.insert("root_device".into(), json!({"name": "/dev/sdc"}));
    let Next::Do(Step::Reserve(info)) = at(&others, &desired()) else { panic!() };
    let reserved = Node { instance_info: info, ..ours("available", &desired()) };
    let other = DesiredMachine { drive: "d2".into(), ..desired() };
    let Next::Do(Step::Record(info)) = at(&reserved, &other) else { panic!() };
    assert_eq!(info["root_device"], json!({"name": "/dev/sdc"}));
}

#[test]
fn an_image_that_ironic_converts_begins_no_new_count() {
    let image = Image { source: "https://a/b.qcow2".into(), checksum: Some("ab".repeat(32)) };
    let desired = DesiredMachine { image: Some(image), attempts: 1, ..desired() };
    let mut it = ours("deploy failed", &desired);
    // What its conductor writes when it creates a raw image (`_cache_and_convert_image`).
    it.instance_info.insert("image_checksum".into(), Value::Null);
    it.instance_info.insert("image_os_hash_value".into(), json!("cd".repeat(32)));
    it.instance_info.insert("image_disk_format".into(), json!("raw"));
    it.provision_updated_at = Some("2026-11-22T12:30:00+00:00".into());
    assert_eq!(at(&it, &desired), Next::Stop(Cause::DeployFailed));
    let twice = DesiredMachine { attempts: 2, ..desired };
    let later = time("2026-11-22T12:40:00Z");
    let Next::Do(Step::Record(info)) = next(&it, &twice, later) else { panic!() };
    assert_eq!(info["image_os_hash_value"], json!("ab".repeat(32)));
    assert!(!info.contains_key("image_checksum") && !info.contains_key("image_disk_format"));
}

#[test]
fn what_is_to_be_adopted_is_never_deployed_whatever_somebody_did_to_it() {
    let adopting = DesiredMachine { adopt: true, drive: Digest::default(), ..desired() };
    for of in [&adopting, &desired()] {
        assert_eq!(at(&ours("deploy failed", of), &adopting), Next::Stop(Cause::NotRunning));
    }
}

/// Returns the machine of each host, in the order of their names.
fn taken(hosts: &[Terms], nodes: &[Node], avoided: &[&str]) -> Vec<String> {
    let names = ["a", "b", "c"].map(str::to_owned).into_iter();
    let found = assign(
        &names.zip(hosts.iter().cloned()).collect(),
        nodes,
        &avoided.iter().copied().collect(),
    );
    found.values().map(|it| it.as_ref().unwrap().title().to_owned()).collect()
}

#[test]
fn machines_go_by_name_those_that_are_locked_or_avoided_last_and_the_only_fitting_one_first() {
    let available = |name: &str| Node {
        uuid: name.to_owned(),
        name: Some(name.to_owned()),
        provision_state: State::Available,
        ..Node::default()
    };
    let by_name = [available("m2"), available("m1")];
    assert_eq!(taken(&[Terms::default(), Terms::default()], &by_name, &[]), ["m1", "m2"]);

    let mut nodes = [available("m1"), available("m2"), available("m3")];
    nodes[1].reservation = Some("c".into());
    nodes[2].provision_state = State::Manageable;
    let terms = || Terms { provide: true, ..Terms::default() };
    assert_eq!(taken(&[terms()], &nodes, &[]), ["m1"]);
    assert_eq!(taken(&[terms()], &nodes, &["m1"]), ["m3"]);
    assert_eq!(taken(&[terms(), terms(), terms()], &nodes, &["m1"]), ["m3", "m1", "m2"]);

    let mut nodes = [available("m1"), available("m2")];
    nodes[0].traits = vec!["CUSTOM_GPU".into()];
    let (set, gpu) =
        (Machine::default(), Machine { traits: nodes[0].traits.clone(), ..Machine::default() });
    let hosts = [&set, &gpu].map(|it| Terms::merged(&set, it));
    assert_eq!(taken(&hosts, &nodes, &[]), ["m2", "m1"]);
}

#[test]
fn machines_are_provided_only_where_the_human_allows_it() {
    let allowed = DesiredMachine { provide: true, ..desired() };
    for state in ["enroll", "manageable"] {
        assert_eq!(at(&node(state), &desired()), Next::Stop(Cause::NotProvided));
        assert!(matches!(at(&node(state), &allowed), Next::Do(Step::Reserve(_))));
    }
    let mut it = ours("enroll", &allowed);
    assert_eq!(at(&it, &allowed), Next::Do(Step::Tell(Verb::Manage)));
    it.last_error = Some("wrong password".into());
    assert_eq!(at(&it, &allowed), Next::Wait { seconds: 570, cause: Cause::Unreached });
    let later = next(&it, &allowed, time("2026-11-22T12:10:01Z"));
    assert_eq!(later, Next::Do(Step::Tell(Verb::Manage)));
    assert_eq!(at(&ours("manageable", &allowed), &allowed), Next::Do(Step::Tell(Verb::Provide)));
}

#[test]
fn a_machine_that_runs_is_adopted_and_one_that_does_not_is_told() {
    let adopting = DesiredMachine { adopt: true, ..desired() };
    assert!(matches!(at(&node("active"), &adopting), Next::Do(Step::Reserve(_))));
    assert_eq!(at(&ours("manageable", &adopting), &adopting), Next::Do(Step::Tell(Verb::Adopt)));
    assert_eq!(at(&node("available"), &adopting), Next::Stop(Cause::NotRunning));
    let another_drive = DesiredMachine { drive: "d2".into(), ..adopting.clone() };
    let adopted = at(&ours("active", &adopting), &another_drive);
    assert_eq!(adopted, Next::Done { is_current: true });
}

#[test]
fn an_active_machine_is_powered_on_and_never_deployed_again_by_itself() {
    let mut it = ours("active", &desired());
    assert_eq!(at(&it, &desired()), Next::Done { is_current: true });
    let changed = DesiredMachine { drive: "d2".into(), ..desired() };
    assert_eq!(at(&it, &changed), Next::Done { is_current: false });
    for unknown_or_off in [None, Some("power off".to_owned())] {
        it.power_state = unknown_or_off;
        assert_eq!(at(&it, &desired()), Next::Do(Step::PowerOn));
    }
    it.target_power_state = Some("power on".into());
    assert_eq!(at(&it, &desired()), Next::Wait { seconds: 5, cause: Cause::Working });
    it.target_power_state = None;
    it.power_state = Some("error".into());
    assert_eq!(at(&it, &desired()), Next::Stop(Cause::PowerFailed));
    it.maintenance = true;
    assert_eq!(at(&it, &desired()), Next::Stop(Cause::Maintenance));
}

#[test]
fn a_host_that_goes_gives_its_machine_back_as_it_was_asked() {
    let released =
        |state: &str, policy| release(&ours(state, &desired()), &desired().instance, policy);
    let (back, keep) = (DeprovisionPolicy::Deprovision, DeprovisionPolicy::Retain);
    for state in ["active", "deploy failed", "wait call-back", "rescue failed", "service failed"] {
        assert_eq!(released(state, back), Next::Do(Step::Tell(Verb::Deleted)), "{state}");
    }
    for state in ["available", "manageable", "enroll", "clean failed", "adopt failed"] {
        assert!(matches!(released(state, back), Next::Do(Step::Unreserve(_))), "{state}");
    }
    for state in ["deploying", "cleaning", "deleting", "rescue", "servicing"] {
        assert_eq!(released(state, back), Next::Wait { seconds: 10, cause: Cause::Working });
    }
    for state in ["active", "rescue failed", "unrescue failed", "service failed"] {
        let Next::Do(Step::Unreserve(info)) = released(state, keep) else { panic!("{state}") };
        assert_eq!(Value::Object(info), json!({"display_name": "compute-0"}));
    }
    // Somebody redeployed it and failed: the old system may still be on its disk.
    assert!(matches!(released("deploy failed", keep), Next::Do(Step::Unreserve(_))));
    let waits = Next::Wait { seconds: 10, cause: Cause::Working };
    assert_eq!(released("wait call-back", keep), waits);
    assert_eq!(released("error", back), Next::Stop(Cause::UndeployFailed));
    assert_eq!(released("deploy hold", keep), Next::Stop(Cause::Held));
    // Ironic removes the reservation whether it could undeploy the machine or not.
    let unreserved = |state: &str| release(&node(state), &desired().instance, back);
    assert_eq!(unreserved("error"), Next::Stop(Cause::UndeployFailed));
    assert_eq!(unreserved("deleting"), waits);
    for state in ["cleaning", "available", "active", "manageable"] {
        assert_eq!(unreserved(state), Next::Done { is_current: true }, "{state}");
    }
}

#[test]
fn the_identity_of_an_instance_is_a_uuid_that_never_changes() {
    // A changed one would deploy a second machine for each host after an upgrade.
    assert_eq!(instance_uuid("set", "compute-0"), GOLDEN);
    assert_ne!(instance_uuid("set", "compute-1"), GOLDEN);
}

const GOLDEN: &str = "b0cf78a6-741c-85ca-8eba-56c60dce83bd";

#[test]
fn the_newest_version_that_both_know_is_spoken() {
    let document = |min: &str, max: &str| json!({"default_version": {"id": "v1", "min_version": min, "version": max}});
    let check = |min, max| negotiated(&document(min, max)).map(|it| it.to_string());
    assert_eq!(check("1.1", "1.115").unwrap(), "1.78");
    assert_eq!(check("1.1", "1.58").unwrap(), "1.58");
    let old = check("1.1", "1.30").unwrap_err();
    assert_eq!(
        old.to_string(),
        "Ironic supports versions 1.1 to 1.30 of its API, and the operator 1.46 to 1.78"
    );
    assert_eq!(check("1.99", "1.120").unwrap_err().reason().word, "VersionNotSupported");
    assert_eq!(negotiated(&json!({"versions": {}})), Err(Error::NotIronic));
    assert_eq!(negotiated(&json!("hello")), Err(Error::NotIronic));
}

#[test]
fn an_answer_tells_ironics_own_words() {
    let inner = json!({"faultcode": "Client", "faultstring": "Node a is locked by host b"});
    let twice = json!({"error_message": inner.to_string()}).to_string();
    let locked = Error::of_answer(409, twice.as_bytes()).unwrap();
    assert_eq!(locked, Error::Conflict("Node a is locked by host b".into()));
    let once = json!({"error_message": {"faultstring": "No"}}).to_string();
    assert_eq!(Error::of_answer(400, once.as_bytes()).unwrap(), Error::Refused("No".into()));
    let page = Error::of_answer(503, b"<html>away</html>").unwrap();
    assert_eq!(page.to_string(), "Ironic is busy: no reason");
    let trace = json!({"faultstring": "Oh\nTraceback (most recent call last):\n x"}).to_string();
    assert_eq!(Error::of_answer(500, trace.as_bytes()).unwrap(), Error::Broken(500, "Oh".into()));
    assert_eq!(Error::of_answer(401, b"").unwrap(), Error::Unauthorized);
    assert_eq!(Error::of_answer(202, b"x"), None);
    let bells = json!({"faultstring": "a\u{1b}[31m\tb\r\n\u{7}c"}).to_string();
    let told = Error::of_answer(400, bells.as_bytes()).unwrap();
    assert_eq!(told, Error::Refused("a [31m b c".into()));
    let keystone = json!({"error": {"code": 403, "title": "Forbidden", "message": "no role"}});
    let told = Error::of_answer(403, keystone.to_string().as_bytes()).unwrap();
    assert_eq!(told, Error::Forbidden("no role".into()));
}

#[test]
fn nothing_of_another_servers_answer_is_repeated() {
    let long = format!(r#"{{"faultstring": "{}"}}"#, "x".repeat(9_000));
    assert!(Error::of_answer(400, long.as_bytes()).unwrap().to_string().len() < 600);
    for body in [
        "hunter2 of a metadata service",
        r#"{"message": "hunter2"}"#,
        r#"{"error_message": "hunter2"}"#,
        r#"{"error": {"message": "hunter2"}}"#,
        r#"{"error": {"code": 401, "title": "x", "message": "hunter2"}}"#,
        r#"["hunter2"]"#,
    ] {
        for status in [400, 403, 404, 409, 418, 429, 500, 503] {
            let told = Error::of_answer(status, body.as_bytes()).unwrap().to_string();
            assert!(!told.contains("hunter2"), "{status} {body}: {told}");
        }
    }
}

#[test]
fn a_request_shows_no_drive() {
    let request = Request::deploy("a", &Secret::new(json!({"user_data": "hunter2"})));
    assert!(!format!("{request:?}").contains("hunter2"));
}

fn rack(nodes: &[Value]) -> Vec<Node> {
    nodes.iter().map(|it| serde_json::from_value(it.clone()).unwrap()).collect()
}

#[test]
fn what_a_server_says_of_its_machines_is_told_in_few_words() {
    let long = "ä".repeat(10_000);
    let named =
        Node { name: Some(long.clone()), instance_uuid: Some(long.clone()), ..node("error") };
    for cause in [Cause::Taken, Cause::UndeployFailed] {
        let message = cause.message(&named);
        assert!(message.len() < 1_500, "{} bytes: {}", message.len(), cause.reason().word);
    }
    let nodes: Vec<Node> = (0..30).map(|it| node(&format!("{it}{long}"))).collect();
    let hosts = BTreeMap::from([("a".to_owned(), Terms::default())]);
    let told = assign(&hosts, &nodes, &BTreeSet::new())["a"].as_ref().unwrap_err().to_string();
    assert!(told.len() < 1_500 && told.ends_with(", 20 for other reasons"), "{told}");
}

#[test]
fn whoever_gets_no_machine_is_told_what_excluded_how_many() {
    let good = |name: &str, more: Value| {
        let mut it = json!({
            "uuid": name, "name": name, "resource_class": "bm", "provision_state": "available",
            "traits": ["CUSTOM_A"], "properties": {"capabilities": "boot_mode:uefi, x:y"},
            "extra": {"rack": "r1"},
        });
        for (key, value) in more.as_object().unwrap() {
            it[key] = value.clone();
        }
        it
    };
    let nodes = rack(&[
        good("a", json!({"resource_class": "small"})),
        good("b", json!({"traits": []})),
        good("c", json!({"traits": []})),
        good("d", json!({"properties": {}})),
        good("e", json!({"extra": {}})),
        good("f", json!({"maintenance": true})),
        good("g", json!({"instance_uuid": "x"})),
        good("h", json!({"provision_state": "clean failed"})),
        good("i", json!({"retired": true})),
        good("j", json!({})),
    ]);
    let machine: Machine = serde_json::from_value(json!({
        "resourceClass": "bm", "traits": ["CUSTOM_A"], "capabilities": {"boot_mode": "uefi"},
        "extra": {"rack": "r1"},
    }))
    .unwrap();
    let terms = Terms { machine, ..Terms::default() };
    let hosts = BTreeMap::from([("x".to_owned(), terms.clone()), ("y".to_owned(), terms)]);
    let found = assign(&hosts, &nodes, &BTreeSet::new());
    assert_eq!(found["x"].as_ref().unwrap().uuid, "j");
    assert_eq!(
        found["y"].as_ref().unwrap_err().to_string(),
        "none of 10 machines is suitable: 1 not of resource class bm, 2 without trait CUSTOM_A, \
         1 without capability boot_mode:uefi, 1 without rack=r1 in extra, 1 retired, \
         1 reserved by others, 1 in maintenance, 1 in state clean failed, \
         1 assigned to other hosts of the set"
    );
    let none = assign(&hosts, &[], &BTreeSet::new());
    let told = none["x"].as_ref().unwrap_err().to_string();
    assert_eq!(told, "Ironic has no machine; enroll one");
}

/// One act of a controller: what it reads, which of its hosts it serves, and whether its request is
/// sent.
#[derive(Clone, Debug)]
struct Act {
    set: usize,
    host: usize,
    /// How many acts ago it read.
    late: usize,
    /// It crashes before it sends; a crash afterwards is the same as a lost response.
    dies: bool,
    /// Time passes afterwards.
    passes: bool,
}

fn acts(latest: usize) -> impl Strategy<Value = Vec<Act>> {
    let act = (0..2usize, 0..3usize, 0..=latest, any::<bool>(), prop::bool::weighted(0.3))
        .prop_map(|(set, host, late, dies, passes)| Act { set, host, late, dies, passes });
    prop::collection::vec(act, 0..40)
}

fn hosts() -> BTreeMap<String, Terms> {
    let terms = Terms { provide: true, ..Terms::default() };
    ["a", "b", "c"].map(|it| (it.to_owned(), terms.clone())).into()
}

/// Hashing takes most of the time of unoptimized tests.
static INSTANCES: LazyLock<BTreeMap<(usize, &str), String>> = LazyLock::new(|| {
    let keys = (0..2).flat_map(|set| ["a", "b", "c"].map(|host| (set, host)));
    keys.map(|(set, host)| ((set, host), instance_uuid(&format!("set-{set}"), host))).collect()
});

/// The network data of a host's ramdisk: only one of three hosts has it.
fn network_of(host: &str) -> Option<Secret<Value>> {
    (host == "a").then(|| Secret::new(json!({"links": [], "networks": [], "services": []})))
}

fn of(set: usize, host: &str) -> DesiredMachine {
    let instance = INSTANCES[&(set, host)].clone();
    let (host, drive) = (host.to_owned(), "d1".into());
    let ramdisk = network_of(&host);
    DesiredMachine {
        instance,
        host,
        drive,
        ramdisk,
        provide: true,
        attempts: ATTEMPTS,
        ..DesiredMachine::default()
    }
}

/// Returns the request of a controller that reads these machines, if any.
fn request(set: usize, host: usize, nodes: &[Node], now: Timestamp) -> Option<Request> {
    let mut without = hosts();
    let host = without.keys().nth(host)?.clone();
    without.retain(|it, _| !nodes.iter().any(|node| node.is_of(&of(set, it).instance)));
    let desired = of(set, &host);
    let mine = nodes.iter().find(|it| it.is_of(&desired.instance));
    let chosen =
        || assign(&without, nodes, &BTreeSet::new()).get(&host).and_then(|it| it.clone().ok());
    let node = mine.or_else(chosen)?;
    match next(node, &desired, now) {
        Next::Do(step) => {
            let given =
                RequestValues { ramdisk: desired.ramdisk.clone(), ..RequestValues::default() };
            Some(step.request(node, &desired.instance, &given))
        }
        Next::Wait { .. } | Next::Stop(_) | Next::Done { .. } => None,
    }
}

/// Plays the acts, then lets both sets run undisturbed until nothing is left to do.
fn play(ironic: &mut Model, acts: &[Act], mut holds: impl FnMut(&Model)) {
    let mut looks = vec![ironic.nodes.clone()];
    for act in acts {
        let look = &looks[looks.len() - 1 - act.late.min(looks.len() - 1)];
        let asked = request(act.set, act.host, look, ironic.now()).filter(|_| !act.dies);
        // After a crash or a rejection it reads again.
        let _ = asked.map(|it| ironic.ask(&it));
        holds(ironic);
        if act.passes {
            ironic.pass();
            holds(ironic);
        }
        looks.push(ironic.nodes.clone());
    }
    for _ in 0..24 {
        for (set, host) in (0..2).flat_map(|set| (0..3).map(move |host| (set, host))) {
            if let Some(asked) = request(set, host, &ironic.nodes.clone(), ironic.now()) {
                let _ = ironic.ask(&asked);
                holds(ironic);
            }
        }
        ironic.pass();
        holds(ironic);
    }
}

fn instances() -> impl Iterator<Item = String> {
    INSTANCES.values().cloned()
}

/// No machine changes hosts, and no host has two.
fn each_has_its_own(before: &mut BTreeMap<String, String>, ironic: &Model) {
    let mut seen = BTreeSet::new();
    for node in &ironic.nodes {
        let Some(instance) = &node.instance_uuid else { continue };
        assert!(seen.insert(instance.clone()), "two machines for {instance}");
        let owner = before.entry(node.uuid.clone()).or_insert_with(|| instance.clone());
        assert_eq!(owner, instance, "{} changed hands", node.uuid);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Six hosts of two sets, seven machines, and a controller that may crash before and after each
    /// request.
    #[test]
    fn wherever_the_doer_dies_each_host_gets_one_machine_and_each_failure_is_counted(
        acts in acts(0),
        failing in prop::collection::vec(0..ATTEMPTS, 7),
    ) {
        let states = ["available", "manageable", "enroll", "available", "available", "enroll", "manageable"];
        let mut ironic = Model::of(&states.map(State::of));
        let failures: BTreeMap<String, u32> =
            ironic.nodes.iter().map(|it| it.uuid.clone()).zip(failing).collect();
        ironic.failing.clone_from(&failures);
        let mut owners = BTreeMap::new();
        play(&mut ironic, &acts, |it| each_has_its_own(&mut owners, it));
        for instance in instances() {
            let node = ironic.nodes.iter().find(|it| it.is_of(&instance)).unwrap();
            prop_assert_eq!(&node.provision_state, &State::Active);
            prop_assert_eq!(node.power_state.as_deref(), Some("power on"));
            let expected = failures[&node.uuid] + 1;
            prop_assert_eq!(ironic.deployed[&instance], expected);
            prop_assert_eq!(DeployRecord::of(node).unwrap().attempt, expected);
        }
        for ((set, host), instance) in &*INSTANCES {
            let expected = network_of(host).map(|it| it.expose().clone());
            prop_assert_eq!(&ironic.deployed_over[instance], &expected, "{} {}", set, host);
        }
    }

    /// Too few machines, and stale reads: as many hosts as there are machines get one each.
    #[test]
    fn late_looks_never_give_a_machine_to_two_hosts(acts in acts(5)) {
        let mut ironic = Model::of(&["available", "manageable", "available", "enroll"].map(State::of));
        let mut owners = BTreeMap::new();
        play(&mut ironic, &acts, |it| each_has_its_own(&mut owners, it));
        let is_good = |it: &Node| it.provision_state == State::Active && it.instance_uuid.is_some();
        prop_assert!(ironic.nodes.iter().all(is_good));
    }

    /// A machine that always fails is deployed as often as allowed, and no more, despite crashes.
    #[test]
    fn the_budget_of_deployments_outlives_every_crash(acts in acts(0)) {
        let mut ironic = Model::of(&[State::Available]);
        ironic.failing.insert(ironic.nodes[0].uuid.clone(), u32::MAX);
        play(&mut ironic, &acts, |_| {});
        prop_assert_eq!(ironic.deployed.values().sum::<u32>(), ATTEMPTS);
        let owner = ironic.nodes[0].instance_uuid.clone().unwrap();
        let all = (0..2).flat_map(|set| ["a", "b", "c"].map(move |host| of(set, host)));
        let desired = all.into_iter().find(|it| it.instance == owner).unwrap();
        let stopped = next(&ironic.nodes[0], &desired, ironic.now());
        prop_assert_eq!(stopped, Next::Stop(Cause::DeployFailed));
    }

    /// Hosts are removed at any point: no machine stays reserved, and none is left running.
    #[test]
    fn whatever_a_host_was_about_its_machine_comes_back(acts in acts(0), dies in prop::collection::vec(any::<bool>(), 12)) {
        let mut ironic = Model::of(&["available", "manageable", "available", "enroll"].map(State::of));
        for act in &acts {
            let asked = request(act.set, act.host, &ironic.nodes.clone(), ironic.now());
            let _ = asked.filter(|_| !act.dies).map(|it| ironic.ask(&it));
            if act.passes {
                ironic.pass();
            }
        }
        for dead in dies.into_iter().chain([false; 12]) {
            for instance in instances() {
                let is_its = |it: &&Node| it.is_of(&instance) || ramdisk::is_left(it, &instance);
                let Some(node) = ironic.nodes.iter().find(is_its).cloned() else { continue };
                let Next::Do(step) = release(&node, &instance, DeprovisionPolicy::Deprovision)
                else {
                    continue;
                };
                if !dead {
                    let _ = ironic.ask(&step.request(&node, &instance, &RequestValues::default()));
                }
            }
            ironic.pass();
        }
        let free = [State::Enroll, State::Manageable, State::Available];
        for node in &ironic.nodes {
            prop_assert_eq!(&node.instance_uuid, &None);
            prop_assert!(node.instance_info.is_empty(), "{:?}", node.instance_info);
            prop_assert!(node.extra.is_empty() && !ironic.networks.contains_key(&node.uuid));
            prop_assert!(free.contains(&node.provision_state), "{}", node.provision_state);
        }
    }
}

//! Hosts that leave a node set while the operator discovers the hosts of their cell: nova has to have
//! no mapping of them before they go.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::removals::{
    START, end, finalizers, host, leaving, order, reconcile, record, removed, said,
};
use super::*;
use crate::cell::mappings::known::Mapping;
use crate::cell::mappings::observed::AwaitedHost;
use crate::drain::order::{HostOrder, Remove};
use crate::drain::progress::{HostProgress, PlacementRemoval, Removal, ServiceRemoval};
use crate::node_set_computes::removal::record::{HostRecord, MappingStep, records};

/// What a pass has found that leaves the agents for later.
fn out_of_nova() -> HostProgress {
    let service = Removal::of_service(ServiceRemoval::Done);
    HostProgress::Removing(Removal { placement: PlacementRemoval::Done, ..service })
}

/// What is recorded of host `a`, which is observed with it from now on.
fn reread(seen: &mut Observed) -> HostRecord {
    let found = records(seen.report.found().unwrap()).remove("a").unwrap();
    host(seen).record = found.clone();
    found
}

/// A host on which nova-compute was stopped, of which nova has nothing any more but for its mapping.
fn out_of(mapping: Mapping) -> Observed {
    let mut seen = leaving(HostProgress::Drained);
    reconcile(&mut seen, START);
    end(&mut seen, "Ok", START);
    host(&mut seen).mapping = mapping;
    host(&mut seen).progress = out_of_nova();
    seen
}

fn is_unmapped(seen: &Observed) -> bool {
    let Some(HostOrder::Remove(Remove { is_unmapped, .. })) = order(seen) else {
        panic!("{:?}", order(seen))
    };
    is_unmapped
}

#[test]
fn the_mapping_is_awaited_on_record_and_then_the_host_goes() {
    let mut seen = out_of(Mapping::Unread);
    assert_eq!(reconcile(&mut seen, START), ["report", "status"]);
    assert_eq!(reread(&mut seen).mapping, Some(MappingStep::Awaited(Time(START))));
    assert_eq!((said(&seen).unwrap().0.as_str(), is_unmapped(&seen)), ("ReadingMappings", false));
    let later = START + jiff::SignedDuration::from_mins(1);
    assert_eq!(reconcile(&mut seen, later), [""; 0], "nothing has changed");
    let awaited = AwaitedHost { host: "a.example.org".into(), since: START };
    assert_eq!(host(&mut seen).record.awaited("a.example.org"), Some(awaited));

    host(&mut seen).mapping = Mapping::Present;
    assert_eq!(reconcile(&mut seen, later), ["status"]);
    let (reason, message) = said(&seen).unwrap();
    assert_eq!((reason.as_str(), is_unmapped(&seen)), ("StillMapped", false));
    for part in ["delete_host --cell_uuid UUID --host a.example.org", "skip-cleanup=true"] {
        assert!(message.contains(part), "{message}");
    }

    // The order changes with it, so nothing is known of its progress.
    (host(&mut seen).mapping, host(&mut seen).progress) = (Mapping::Absent, HostProgress::Pending);
    assert_eq!(reconcile(&mut seen, later), ["report"]);
    assert_eq!(reread(&mut seen).mapping, Some(MappingStep::Settled));
    assert_eq!(host(&mut seen).record.awaited("a.example.org"), None);
    assert!(is_unmapped(&seen));
    host(&mut seen).progress = removed();
    assert_eq!(reconcile(&mut seen, later), ["report", "status"]);
    assert_eq!((finalizers(&seen), said(&seen)), (vec!["b".to_owned()], None));
}

#[test]
fn a_reading_that_is_not_possible_holds_no_host() {
    let cause = || Mapping::NotRead("Job j has failed.".into());
    let mut seen = out_of(cause());
    assert!(is_unmapped(&seen));
    assert!(!reconcile(&mut seen, START).contains(&"report".to_owned()), "nothing is awaited");
    assert_eq!(reread(&mut seen).mapping, None);

    let mut seen = out_of(Mapping::Unread);
    reconcile(&mut seen, START);
    reread(&mut seen);
    host(&mut seen).mapping = cause();
    assert!(reconcile(&mut seen, START).contains(&"report".to_owned()));
    assert_eq!(reread(&mut seen).mapping, Some(MappingStep::Settled));
}

#[test]
fn a_host_that_comes_back_or_whose_service_is_back_is_read_again() {
    let awaited = || {
        let mut seen = out_of(Mapping::Unread);
        reconcile(&mut seen, START);
        reread(&mut seen);
        seen
    };
    let mut back = awaited();
    host(&mut back).progress = HostProgress::Removing(Removal::of_service(ServiceRemoval::StillUp));
    assert!(reconcile(&mut back, START).contains(&"report".to_owned()));
    assert_eq!(reread(&mut back).mapping, None);

    let mut stays = awaited();
    stays.removals.terminating.clear();
    assert!(reconcile(&mut stays, START).contains(&"report".to_owned()));
    let found = records(stays.report.found().unwrap()).remove("a");
    assert_eq!(found, Some(record()), "whether or not it is deployed again");
}

#[test]
fn a_host_without_a_record_gets_one() {
    let mut seen = out_of(Mapping::Unread);
    let mut report = HostReadiness::clone(seen.report.found().unwrap());
    report.metadata.annotations = None;
    seen.report = Report::Found(Arc::new(report));
    host(&mut seen).record = HostRecord::default();
    assert!(reconcile(&mut seen, START).contains(&"report".to_owned()));
    let expected = Some(MappingStep::Awaited(Time(START)));
    let found = reread(&mut seen);
    assert_eq!((found.cell.as_str(), &found.mapping), ("nova-cell1", &expected));
}

#[test]
fn of_a_node_set_that_is_being_deleted_the_mappings_of_the_hosts_are_read_too() {
    let mut seen = out_of(Mapping::Unread);
    Arc::make_mut(&mut seen.set).metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    assert!(reconcile(&mut seen, START).contains(&"report".to_owned()));
    assert_eq!(reread(&mut seen).mapping, Some(MappingStep::Awaited(Time(START))));
    host(&mut seen).mapping = Mapping::Absent;
    assert!(reconcile(&mut seen, START).contains(&"report".to_owned()));
    host(&mut seen).progress = removed();
    reconcile(&mut seen, START);
    assert_eq!(finalizers(&seen), ["b"]);
}

//! What is recorded of hosts with a host finalizer, on the report that has it: what a removal needs
//! when neither the node set nor nova's API says it any more.

use std::collections::BTreeMap;

use api::dataplane::HostReadiness;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};

use crate::cell::mappings::observed::{AwaitedHost, is_passable};
use crate::nova_health::{HostHealth, ServiceHealth};
use crate::nova_identity::Identity;

/// Annotation of a report: JSON object of inventory names, each with its [`HostRecord`].
pub const HOSTS: &str = "nova.openstack.org/hosts";

/// What is recorded of one host.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HostRecord {
    /// The name of the `NovaCell` that has its service.
    pub cell: String,
    /// A digest of what identifies the nova of that cell; see
    /// [`crate::nova_monitor::NovaMonitor::nova_of`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nova: Option<String>,
    /// Its key in `spec.nodes`; empty where that is its name in the inventory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The UUID of its service, as nova's API last had it.
    #[serde(rename = "serviceID", skip_serializing_if = "Option::is_none")]
    pub service_id: Option<String>,
    /// The UUID of its compute node and its resource provider, as nova's API last had it.
    #[serde(rename = "computeID", skip_serializing_if = "Option::is_none")]
    pub compute_id: Option<String>,
    /// Whether no deployment of nova is known to have succeeded on it: then nothing of it is changed
    /// in nova.
    #[serde(rename = "unproven", skip_serializing_if = "std::ops::Not::not")]
    pub is_unproven: bool,
    /// Whether its removal has found that it records another owner: then its service stays in nova.
    #[serde(rename = "notOwned", skip_serializing_if = "std::ops::Not::not")]
    pub is_another_s: bool,
    /// How far its removal is about its mapping; absent before, and where that is not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<MappingStep>,
}

/// How far the removal of a host is about its mapping.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MappingStep {
    /// It is to be read, since then.
    Awaited(Time),
    /// Nova has none any more, or it could not be read.
    Settled,
}

/// The records of the hosts of a node set, by their names in the inventory.
pub type HostRecords = BTreeMap<String, HostRecord>;

/// Returns the records on a report; none where the annotation is missing or is not ours any more.
pub fn records(report: &HostReadiness) -> HostRecords {
    let text = report.annotations().get(HOSTS);
    text.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default()
}

/// Returns the records as the annotation has them.
pub fn text(records: &HostRecords) -> String {
    serde_json::to_string(records).unwrap_or_default()
}

/// Returns the earlier name of a host under which nova had a service of it, and its record; `None` where
/// that is `host`, its present name. Nova keeps a host under its old name until nova-compute registers
/// under the new one.
pub fn earlier(
    report: &HostReadiness,
    recorded: &HostRecords,
    name: &str,
    host: &str,
) -> Option<(String, HostRecord)> {
    let before = report.spec.host_finalizers.get(name).filter(|it| *it != host)?;
    let record = recorded.get(name).filter(|it| it.service_id.is_some())?;
    Some((before.clone(), record.clone()))
}

/// Whether a host is in nova under its present name, and no more under the earlier one. `before` and
/// `now` are what is known of the earlier and of the present name: the present one may still be that of
/// another host, or of this one before it got the earlier name.
pub fn has_moved(
    recorded: &HostRecords,
    name: &str,
    (before, now): (&HostHealth, &HostHealth),
) -> bool {
    let Some(service) = &now.service_id else { return false };
    let is_another_s =
        recorded.iter().any(|(of, it)| of != name && it.service_id.as_ref() == Some(service));
    let is_up = |it: &HostHealth| matches!(it.service, ServiceHealth::Up { .. });
    !is_another_s && (is_up(now) || !is_up(before))
}

impl HostRecord {
    /// Returns the identity that the host is to have in nova; none where nothing shows that it is the
    /// host's.
    pub fn identity(&self) -> Identity {
        if self.is_unproven {
            return Identity::default();
        }
        let (service_id, compute_id) = (self.service_id.clone(), self.compute_id.clone());
        Identity { nova: None, service_id, compute_id }
    }

    /// Returns the host, named as its service is registered, if its mapping is to be read.
    pub fn awaited(&self, host: &str) -> Option<AwaitedHost> {
        let Some(MappingStep::Awaited(since)) = &self.mapping else { return None };
        is_passable(host).then(|| AwaitedHost { host: host.to_owned(), since: since.0 })
    }

    /// Returns the record with the cell, its nova and the UUIDs of an earlier one, where this one has none.
    ///
    /// The UUID of another service's compute node does not count.
    #[must_use]
    pub fn with_ids_of(mut self, before: &Self) -> Self {
        if self.cell.is_empty() {
            self.cell.clone_from(&before.cell);
        }
        if self.cell == before.cell {
            self.nova = self.nova.or_else(|| before.nova.clone());
        }
        let is_same = self.service_id.is_none() || self.service_id == before.service_id;
        if is_same && self.cell == before.cell {
            self.service_id = self.service_id.or_else(|| before.service_id.clone());
            self.compute_id = self.compute_id.or_else(|| before.compute_id.clone());
        }
        // Only a clean-up that succeeds shows that the host has no other owner any more.
        self.is_another_s |= before.is_another_s;
        self
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn record(service: Option<&str>, compute: Option<&str>) -> HostRecord {
        HostRecord {
            cell: "nova-cell1".to_owned(),
            key: String::new(),
            service_id: service.map(str::to_owned),
            compute_id: compute.map(str::to_owned),
            ..HostRecord::default()
        }
    }

    #[test]
    fn an_earlier_name_counts_where_nova_had_a_service_of_it() {
        let spec = serde_json::json!({
            "nodeSet": "set", "conditionType": "x", "hostFinalizers": {"n0": "n0", "n1": "n1"},
        });
        let report = HostReadiness::new("set-nova", serde_json::from_value(spec).unwrap());
        let recorded = HostRecords::from([
            ("n0".to_owned(), record(Some("s"), Some("c"))),
            ("n1".to_owned(), record(None, None)),
        ]);
        let found = |name: &str, host: &str| earlier(&report, &recorded, name, host).map(|it| it.0);
        assert_eq!(found("n0", "n0.ctlplane.example.org").as_deref(), Some("n0"));
        assert_eq!(found("n0", "n0"), None, "it has the same name");
        assert_eq!(found("n1", "n1.ctlplane.example.org"), None, "nova has never listed it");
        assert_eq!(found("n2", "n2"), None);
    }

    #[test]
    fn a_host_has_moved_where_its_present_name_is_up_and_no_others() {
        let up = || ServiceHealth::Up { disabled: None };
        let down = || ServiceHealth::Down { since: None, is_forced: false };
        let health = |service: ServiceHealth, id: Option<&str>| HostHealth {
            service,
            service_id: id.map(str::to_owned),
            ..HostHealth::default()
        };
        let recorded = HostRecords::from([
            ("n0".to_owned(), record(Some("s0"), None)),
            ("n1".to_owned(), record(Some("s1"), None)),
        ]);
        let moved =
            |before: &HostHealth, now: &HostHealth| has_moved(&recorded, "n0", (before, now));
        let (before, gone) = (health(up(), Some("s0")), health(ServiceHealth::NotFound, None));
        assert!(moved(&before, &health(up(), Some("s2"))));
        assert!(moved(&gone, &health(down(), Some("s2"))));
        assert!(!moved(&before, &health(down(), Some("s2"))), "it had that name before");
        assert!(!moved(&before, &health(up(), Some("s1"))), "it is that of another host");
        assert!(!moved(&before, &gone) && !moved(&gone, &gone));
    }

    #[test]
    fn uuids_stay_while_the_api_has_none_and_go_with_another_service() {
        let before = record(Some("s"), Some("c"));
        assert_eq!(record(None, None).with_ids_of(&before), before);
        assert_eq!(record(Some("s"), None).with_ids_of(&before), before);
        let other = record(Some("t"), None);
        assert_eq!(other.clone().with_ids_of(&before), other);
        let unread = HostRecord { cell: String::new(), ..record(None, None) };
        assert_eq!(unread.with_ids_of(&before), before, "its cell stays, too");
        let before = HostRecord { nova: Some("n".to_owned()), ..before };
        assert_eq!(
            record(Some("s"), Some("c")).with_ids_of(&before),
            before,
            "its inputs are lost"
        );
        let refused = HostRecord { is_another_s: true, ..before.clone() };
        assert!(record(None, None).with_ids_of(&refused).is_another_s, "also where it came back");
        let moved = HostRecord { cell: "nova-cell2".to_owned(), ..record(None, None) };
        assert_eq!(moved.clone().with_ids_of(&before), moved);
    }

    #[test]
    fn the_records_of_500_hosts_fit_into_an_annotation() {
        let of_host = |n: usize| {
            let uuid = || Some("00000000-0000-0000-0000-000000000000".to_owned());
            let key = "k".repeat(63);
            let cell = "c".repeat(63);
            let mapping = Some(MappingStep::Awaited(Time(Timestamp::UNIX_EPOCH)));
            let (service_id, compute_id) = (uuid(), uuid());
            let is_unproven = true;
            let nova = Some("0123456789".to_owned());
            let ids = HostRecord { service_id, compute_id, ..HostRecord::default() };
            let record =
                HostRecord { cell, nova, key, is_unproven, is_another_s: true, mapping, ..ids };
            (format!("{n:0>63}"), record)
        };
        let all: HostRecords = (0..500).map(of_host).collect();
        let text = text(&all);
        assert!(text.len() < 256 * 1024, "{}", text.len());
        let mut report = HostReadiness::default();
        report.annotations_mut().insert(HOSTS.to_owned(), text);
        assert_eq!(records(&report), all);
        report.annotations_mut().insert(HOSTS.to_owned(), "edited".to_owned());
        assert_eq!(records(&report), HostRecords::new());
    }
}

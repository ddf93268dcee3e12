//! The fields of cells, roles and node sets that others depend on, so that their statuses do not enqueue
//! those.

use std::collections::BTreeMap;

use api::conditions::{ConditionStatus, READY, find};
use api::nova::Cell;
use kube::Resource;

use crate::cell_inputs::CREDENTIALS;

/// What changes of an object when something else than its status does.
#[derive(Clone, Debug, PartialEq)]
pub struct RelevantMetadata {
    uid: Option<String>,
    generation: Option<i64>,
    annotations: Option<BTreeMap<String, String>>,
    is_terminating: bool,
}

/// Returns what changes when the spec or the annotations of an object do.
pub fn relevant_metadata<K: Resource>(object: &K) -> RelevantMetadata {
    let meta = object.meta();
    RelevantMetadata {
        uid: meta.uid.clone(),
        generation: meta.generation,
        annotations: meta.annotations.clone(),
        is_terminating: meta.deletion_timestamp.is_some(),
    }
}

/// The fields of a cell that its computes depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct RelevantFields {
    metadata: RelevantMetadata,
    observed_generation: Option<i64>,
    ready: Option<(ConditionStatus, String, String)>,
    credentials: Option<String>,
}

/// Returns the fields that computes depend on: neither counters nor other conditions than `Ready`.
pub fn relevant_fields(cell: &Cell) -> RelevantFields {
    let status = cell.status.as_ref();
    let ready = status.and_then(|it| find(&it.conditions, READY));
    RelevantFields {
        metadata: relevant_metadata(cell),
        observed_generation: status.and_then(|it| it.observed_generation),
        ready: ready.map(|it| (it.status, it.reason.clone(), it.message.clone())),
        credentials: status.and_then(|it| it.hash.get(CREDENTIALS).cloned()),
    }
}

#[cfg(test)]
mod tests {
    use api::conditions::merge_conditions;
    use api::dataplane::{Role, RoleStatus};
    use api::nova::CellStatus;
    use jiff::Timestamp;
    use operator_core::object_key::Key;
    use operator_runtime::change_filter::ChangeFilter;

    use super::*;
    use crate::reasons;

    fn cell(ready: &str, computes: i64) -> Cell {
        let conditions = vec![
            reasons::cell::READY.condition(READY, ready),
            reasons::cell::COMPUTES_BEHIND.condition("ComputesUpToDate", computes.to_string()),
        ];
        let status = CellStatus {
            conditions: merge_conditions(&[], conditions, None, Timestamp::UNIX_EPOCH),
            computes: Some(computes),
            ..CellStatus::default()
        };
        Cell { status: Some(status), ..Cell::default() }
    }

    #[test]
    fn a_role_with_another_status_is_no_change_for_its_nodes() {
        let mut role = Role::default();
        let before = relevant_metadata(&role);
        role.status = Some(RoleStatus::default());
        role.metadata.resource_version = Some("2".into());
        assert_eq!(relevant_metadata(&role), before);
        role.metadata.generation = Some(2);
        assert_ne!(relevant_metadata(&role), before);
    }

    #[test]
    fn only_what_concerns_computes_is_a_change_for_them() {
        let (concern, key) = (ChangeFilter::default(), Key::new("ns", "cell1"));
        let changes =
            |cell: Option<Cell>| concern.changes(&key, || cell.as_ref().map(relevant_fields));
        assert!(!changes(None));
        assert!(changes(Some(cell("ready", 1))));
        assert!(!changes(Some(cell("ready", 2))), "its counters");
        assert!(changes(Some(cell("ready again", 2))));
        let mut tried = cell("ready again", 2);
        tried.status.as_mut().unwrap().hash.insert(CREDENTIALS.into(), "1".into());
        assert!(changes(Some(tried)));
        assert!(changes(None), "it is gone");
        assert!(!changes(None));
    }
}

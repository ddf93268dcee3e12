//! What a controller decided to do: ordered steps as plain data, each with its reason.

use std::collections::BTreeSet;
use std::mem::discriminant;
use std::time::Duration;

use api::conditions::{Condition, ConditionStatus, READY, RECONCILING, STALLED, Severity};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use serde::Serialize;
use serde_json::{Value, json};

/// A kind of object, as in the API server's URLs.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: String,
    /// API version, without the group.
    pub version: String,
    /// Kind, as in `kind:`.
    pub kind: String,
    /// Lower-case plural, as in the URL.
    pub plural: String,
}

impl Kind {
    /// Returns the kind of a Rust type.
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
        }
    }

    /// Returns `group/version`, or only the version in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// One namespaced object.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Target {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID, if it is known to exist.
    pub uid: Option<String>,
}

impl Target {
    /// Names an object that need not exist.
    pub fn named<K: Resource<DynamicType = ()>>(
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self { kind: Kind::of::<K>(), namespace: namespace.into(), name: name.into(), uid: None }
    }

    /// Names an object that was read.
    pub fn of<K>(object: &K) -> Self
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let meta = object.meta();
        Self {
            kind: Kind::of::<K>(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone(),
        }
    }

    /// Returns whether this object, which was read, is the controller of another one.
    pub fn controls<K: Resource>(&self, object: &K) -> bool {
        let mut owners = object.meta().owner_references.iter().flatten();
        self.uid.is_some()
            && owners.any(|it| it.controller == Some(true) && Some(&it.uid) == self.uid.as_ref())
    }
}

/// An Event on an object, most often the one whose status a step writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventDraft {
    /// Whether it is of type `Warning`; otherwise `Normal`.
    pub warning: bool,
    /// One CamelCase word for the cause.
    pub reason: String,
    /// Object, cause and next step.
    pub note: String,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Write {
    /// Server-side apply of only the fields given.
    Apply {
        /// The object with `apiVersion`, `kind` and `metadata`.
        object: Value,
        /// Whether to take over fields of other field managers.
        force: bool,
        /// The field manager; `None` means the operator's own.
        manager: Option<String>,
    },
    /// Creation under a deterministic name.
    ///
    /// An existing object of that name with the same controller and `identity` counts as created.
    Create {
        /// The object with `apiVersion`, `kind` and `metadata`.
        object: Value,
        /// JSON pointer to the value that must be equal in an existing object.
        identity: String,
    },
    /// Server-side apply of the status subresource.
    Status {
        /// The whole status that this field manager owns.
        status: Value,
        /// Optimistic lock: the write fails with a conflict if the object has changed.
        resource_version: Option<String>,
        /// Events, published after the write succeeded.
        notices: Vec<EventDraft>,
    },
    /// Deletion with the target's UID as precondition; an absent object counts as deleted.
    Delete {
        /// A further precondition, if set.
        resource_version: Option<String>,
    },
    /// Adds a finalizer to an object that was read; other finalizers stay.
    AddFinalizer {
        /// The finalizer.
        finalizer: String,
    },
    /// Removes a finalizer from an object that was read.
    RemoveFinalizer {
        /// The finalizers that stay.
        rest: Vec<String>,
        /// Optimistic lock: the write fails with a conflict if the object has changed, because the
        /// remaining finalizers belong to others.
        resource_version: Option<String>,
    },
}

/// One write to one object, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The object to write.
    pub target: Target,
    /// The write.
    pub write: Write,
    /// The reason, for the log.
    pub reason: String,
}

/// What a controller has another system than the API server do from now on, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Order<O> {
    /// The order.
    pub what: O,
    /// The reason, for the log.
    pub reason: String,
}

/// The order of a controller that gives none.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum NoOrder {}

/// Everything that a controller wants to do now, in order; `O` is what it has other systems do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan<O = NoOrder> {
    /// Writes that do not depend on each other, made before the steps.
    ///
    /// A rejected one does not keep the others back, only the steps.
    pub independent: Vec<Step>,
    /// Writes in order; the first failure ends them. Those in a [row](rows) are made together, unless
    /// they are [one by one](Plan::one_by_one).
    pub steps: Vec<Step>,
    /// Whether each step relies on all those before it.
    pub one_by_one: bool,
    /// All orders about the object, given once the writes are made; those of an earlier plan that are
    /// not among them end.
    pub orders: Vec<Order<O>>,
    /// Events on objects whose status another operator writes, published after the steps.
    pub events: Vec<(Target, EventDraft)>,
    /// When to requeue without a change; `None` waits for a change.
    pub requeue_after: Option<Duration>,
}

/// The most writes of one plan about the hosts of a group. A pass has a deadline, and the status, which
/// comes last, is to say what goes on meanwhile; the next pass makes the rest.
pub const WRITES_PER_PASS: usize = 250;

/// When the next pass comes at the latest; what was written brings it at once through the caches.
pub const REST_OF_WRITES: Duration = Duration::from_secs(1);

/// The period after which an object is reconciled without a change, for what no informer reports.
const RESYNC: Duration = Duration::from_mins(15);

// Derived, it would need an order that is the default.
impl<O> Default for Plan<O> {
    fn default() -> Self {
        Self {
            independent: Vec::new(),
            steps: Vec::new(),
            one_by_one: false,
            orders: Vec::new(),
            events: Vec::new(),
            requeue_after: None,
        }
    }
}

impl<O> Plan<O> {
    /// Returns an empty plan that requeues after the resync period.
    pub fn with_resync() -> Self {
        Self { requeue_after: Some(RESYNC), ..Self::default() }
    }

    /// Returns all writes in the order in which they are tried.
    pub fn all(&self) -> impl Iterator<Item = &Step> {
        self.independent.iter().chain(&self.steps)
    }

    /// Returns the plan with only its status writes, which are still made after a rejected write, and
    /// its orders.
    #[must_use]
    pub fn only_statuses(mut self) -> Self {
        self.independent.clear();
        self.events.clear();
        self.steps.retain(|it| matches!(it.write, Write::Status { .. }));
        self
    }

    /// Adds a step.
    pub fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Requeues after `pause` at the latest.
    pub fn requeue_in(&mut self, pause: Duration) {
        self.requeue_after = Some(self.requeue_after.map_or(pause, |it| it.min(pause)));
    }

    /// Requeues shortly after a time, so that the reconciliation does not come just before it.
    pub fn requeue_at(&mut self, at: Timestamp, now: Timestamp) {
        let pause = Duration::try_from(at.duration_since(now)).unwrap_or_default();
        self.requeue_in(pause + Duration::from_millis(100));
    }
}

/// Returns steps by rows: writes of one sort, each to another object of one kind.
pub fn rows(mut steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    std::iter::from_fn(move || {
        let first = steps.first()?;
        let mut objects = BTreeSet::new();
        let length = steps.iter().take_while(|it| {
            discriminant(&it.write) == discriminant(&first.write)
                && it.target.kind == first.target.kind
                && objects.insert((&it.target.namespace, &it.target.name))
        });
        let (row, rest) = steps.split_at(length.count());
        steps = rest;
        Some(row)
    })
}

impl Step {
    /// Applies an object's own fields, given as JSON without `apiVersion` and `kind`.
    pub fn apply(target: Target, mut fields: Value, because: impl Into<String>) -> Self {
        identify(&mut fields, &target);
        Self {
            target,
            write: Write::Apply { object: fields, force: true, manager: None },
            reason: because.into(),
        }
    }

    /// Applies the same way, and takes fields over from others only on the object that was observed, by
    /// the UID of the target: not on another one that was created under its name meanwhile.
    pub fn apply_observed(target: Target, mut fields: Value, because: impl Into<String>) -> Self {
        let is_observed = target.uid.is_some();
        if is_observed {
            fields["metadata"]["uid"] = json!(target.uid);
        }
        let mut step = Self::apply(target, fields, because);
        if let Write::Apply { force, .. } = &mut step.write {
            *force = is_observed;
        }
        step
    }

    /// Creates an object; see [`Write::Create`] for `identity`.
    pub fn create(
        target: Target,
        mut object: Value,
        identity: &str,
        because: impl Into<String>,
    ) -> Self {
        identify(&mut object, &target);
        let write = Write::Create { object, identity: identity.to_owned() };
        Self { target, write, reason: because.into() }
    }

    /// Returns a status step that fails with a conflict where the object has changed since it was read
    /// in that version; any other step stays as it is.
    #[must_use]
    pub fn at(mut self, version: Option<String>) -> Self {
        if let Write::Status { resource_version, .. } = &mut self.write {
            *resource_version = version;
        }
        self
    }

    /// Returns a status step that reports no transition as an Event: another object's status has it.
    #[must_use]
    pub fn without_events(mut self) -> Self {
        if let Write::Status { notices, .. } = &mut self.write {
            notices.clear();
        }
        self
    }

    /// Deletes an object that was read.
    pub fn delete(target: Target, because: impl Into<String>) -> Self {
        Self { target, write: Write::Delete { resource_version: None }, reason: because.into() }
    }
}

/// Sets the target's kind, namespace and name in an object.
fn identify(object: &mut Value, target: &Target) {
    object["apiVersion"] = json!(target.kind.api_version());
    object["kind"] = json!(target.kind.kind);
    object["metadata"]["namespace"] = json!(target.namespace);
    object["metadata"]["name"] = json!(target.name);
}

/// Returns the step that writes an object's status; `None` when the status is up to date.
///
/// Conditions whose type has a domain (`nova.openstack.org/Compute`) belong to other field managers
/// and are not compared.
pub fn status_step<S: Serialize>(
    target: Target,
    observed: Option<&S>,
    desired: &S,
) -> Option<Step> {
    let expected = serde_json::to_value(desired).unwrap_or_default();
    let mut seen = observed.map(|it| serde_json::to_value(it).unwrap_or_default());
    // `get_mut`, because indexing would insert a null if there are none.
    let list = seen.as_mut().and_then(|it| it.get_mut("conditions")?.as_array_mut());
    if let Some(list) = list {
        list.retain(|it| !it["type"].as_str().unwrap_or_default().contains('/'));
    }
    if seen.as_ref() == Some(&expected) {
        return None;
    }
    let previous = seen.as_ref().map(conditions).unwrap_or_default();
    let notices = transition_events(&previous, &conditions(&expected));
    let write = Write::Status { status: expected, resource_version: None, notices };
    Some(Step { target, write, reason: "what was observed differs from the status".into() })
}

/// Returns the conditions of a status; those that cannot be parsed count as new.
fn conditions(status: &Value) -> Vec<Condition> {
    serde_json::from_value(status["conditions"].clone()).unwrap_or_default()
}

/// Returns the Events of a transition: one per condition with a new cause, and one for becoming
/// ready.
pub fn transition_events(previous: &[Condition], next: &[Condition]) -> Vec<EventDraft> {
    let mut notices: Vec<EventDraft> = Vec::new();
    // Ready repeats the condition that it summarizes. The others come first, so that the repetition
    // is dropped.
    let (summary, details): (Vec<_>, Vec<_>) = next.iter().partition(|it| it.type_ == READY);
    for condition in details.into_iter().chain(summary) {
        if [STALLED, RECONCILING].contains(&condition.type_.as_str()) {
            continue;
        }
        let before = previous.iter().find(|it| it.type_ == condition.type_);
        let is_same =
            |old: &Condition| old.status == condition.status && old.reason == condition.reason;
        let warning = matches!(condition.severity, Some(Severity::Error | Severity::Warning));
        let became_ready = condition.type_ == READY && condition.status == ConditionStatus::True;
        if before.is_some_and(is_same) || !(warning || became_ready) {
            continue;
        }
        if notices.iter().all(|it| it.reason != condition.reason) {
            notices.push(EventDraft {
                warning,
                reason: condition.reason.clone(),
                note: condition.message.clone(),
            });
        }
    }
    notices
}

#[cfg(test)]
mod tests {
    use api::conditions::merge_conditions;

    use super::*;
    use crate::reasons::TASK_FAILED;

    #[test]
    fn a_cause_makes_one_event_however_many_conditions_repeat_it() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let failed = TASK_FAILED.condition("DeploymentReady", "x");
        let list = merge_conditions(&[], vec![failed.clone(), failed.with_type(READY)], None, now);
        assert_eq!(transition_events(&[], &list).len(), 1);
        assert_eq!(transition_events(&list, &list), []);
    }

    #[test]
    fn a_row_ends_where_another_sort_of_write_or_kind_begins_and_where_an_object_comes_again() {
        use k8s_openapi::api::core::v1::{ConfigMap, Secret};
        let delete = |name: &str| Step::delete(Target::named::<ConfigMap>("ns", name), "x");
        let apply =
            |name: &str| Step::apply(Target::named::<ConfigMap>("ns", name), json!({}), "x");
        let other = Step::delete(Target::named::<Secret>("ns", "a"), "x");
        let in_order =
            ["a", "b", "a"].map(delete).into_iter().chain([apply("b"), apply("c"), other]);
        let steps: Vec<Step> = in_order.collect();
        let lengths: Vec<usize> = rows(&steps).map(<[Step]>::len).collect();
        assert_eq!(lengths, [2, 1, 2, 1]);
        assert!(rows(&steps).flatten().eq(&steps));
    }

    /// Returns whether a status is written over `seen`.
    fn is_written(seen: Option<&Value>, expected: &Value) -> bool {
        let kind = Kind::of::<api::dataplane::Node>();
        let target = Target { kind, namespace: "ns".into(), name: "n0".into(), uid: None };
        status_step(target, seen, expected).is_some()
    }

    #[test]
    fn a_status_is_written_only_where_it_says_something_else() {
        let (one, two) = (json!({ "observedGeneration": 1 }), json!({ "observedGeneration": 2 }));
        assert!(is_written(None, &one));
        assert!(is_written(Some(&one), &two));
        assert!(!is_written(Some(&two), &two));
    }

    #[test]
    fn a_condition_of_another_operator_makes_no_difference() {
        let ready = json!({ "type": "Ready", "status": "True" });
        let other = json!({ "type": "nova.openstack.org/Compute", "status": "False" });
        let ours = json!({ "conditions": [ready] });
        assert!(!is_written(Some(&json!({ "conditions": [other, ready] })), &ours));
        assert!(is_written(Some(&json!({ "conditions": [other] })), &ours));
    }
}

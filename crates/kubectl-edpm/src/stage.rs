//! A stage: what one operator does on a host, with its phase, conditions and services.

use std::collections::BTreeMap;
use std::fmt;

use api::conditions::{self, Condition, ConditionStatus};
use api::dataplane::{Deployment, ServiceRun};

/// Another object that a host or a stage depends on.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Its conditions; `None` when it does not exist.
    pub conditions: Option<&'a [Condition]>,
}

/// What one operator does on a host.
#[derive(Clone, Debug, Default)]
pub struct Stage<'a> {
    /// The phase that it belongs to.
    pub phase: Phase,
    /// The kind of the object with the state.
    pub kind: &'static str,
    /// The name of that object; empty when it does not exist yet.
    pub name: &'a str,
    /// The conditions of that object.
    pub conditions: Vec<Condition>,
    /// The recorded progress of the services.
    pub services: Vec<ServiceRun>,
    /// The names of the services, in order.
    pub desired: Vec<&'a str>,
    /// The digests of the inputs of the last completed deployment.
    pub deployed_inputs: Option<&'a BTreeMap<String, String>>,
    /// Whether changes are deployed automatically; `None` when that is unknown or does not apply.
    pub deploys: Option<bool>,
    /// Another object that the stage needs, such as a cell.
    pub below: Option<Group<'a>>,
    /// The deployment that runs it, on hosts of node sets.
    pub deployment: Option<&'a Deployment>,
}

/// The phases of a host.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    /// The host is prepared for services.
    #[default]
    Prepare,
    /// nova-compute is deployed.
    Nova,
    /// A deployment runs the services of its node set.
    Deploy,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Returns kind and name of an object, whose name is empty while it does not exist.
pub fn heading(kind: &str, name: &str) -> String {
    if name.is_empty() { format!("{kind} (not made yet)") } else { format!("{kind} {name}") }
}

impl Stage<'_> {
    /// Returns the status of a condition; `Unknown` when it is absent.
    pub fn truth(&self, condition: &str) -> ConditionStatus {
        conditions::find(&self.conditions, condition)
            .map_or(ConditionStatus::Unknown, |it| it.status)
    }

    /// Returns the condition of this type, if any.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        conditions::find(&self.conditions, type_)
    }
}

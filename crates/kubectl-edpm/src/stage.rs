//! What each operator does to a host, and how far that is: its phase, conditions and services.

use std::borrow::Cow;
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
    /// What is said of it; nothing where it does not exist.
    pub conditions: Option<&'a [Condition]>,
}

/// What one operator does to a host.
#[derive(Clone, Debug)]
pub struct Stage<'a> {
    /// Which of the phases.
    pub phase: Phase,
    /// Kind of the object that tells.
    pub kind: &'static str,
    /// Its name; empty where it does not exist yet.
    pub name: &'a str,
    /// What is said of it.
    pub conditions: Vec<Condition>,
    /// What is recorded of the services.
    pub services: Cow<'a, [ServiceRun]>,
    /// The names of the services in order.
    pub desired: Vec<&'a str>,
    /// Digests of the inputs of the last completed deployment.
    pub deployed_inputs: Option<&'a BTreeMap<String, String>>,
    /// Whether changes are deployed by themselves.
    pub deploys: Option<bool>,
    /// What it needs beside the host.
    pub below: Option<Group<'a>>,
    /// The deployment that does it, on hosts of node sets.
    pub deployment: Option<&'a Deployment>,
}

/// The phases of a host.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    /// The host is made ready for services.
    Prepare,
    /// nova-compute is brought to it.
    Nova,
    /// A deployment brings the services of its node set.
    Deploy,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prepare => "Prepare",
            Self::Nova => "Nova",
            Self::Deploy => "Deploy",
        })
    }
}

impl Stage<'_> {
    /// Whether a condition of it holds.
    pub fn truth(&self, condition: &str) -> ConditionStatus {
        conditions::find(&self.conditions, condition)
            .map_or(ConditionStatus::Unknown, |it| it.status)
    }

    /// Its condition of that type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        conditions::find(&self.conditions, type_)
    }
}

//! A host of a set, and the next step for its machine at Metal3.

use api::baremetal::BaremetalHost;
use api::metal3::{BareMetalHost, Image};
use config_drive::Drive;

use super::image::NoImage;
use super::selection::NoMachine;
use crate::ironic::hosts::Fault;

/// A present or former host of the set.
#[derive(Debug)]
pub struct Host<'a> {
    /// Its name.
    pub name: String,
    /// Its entry in the spec; `None` once it was removed.
    pub desired: Option<&'a BaremetalHost>,
    /// Its config drive; `None` if it is removed or has faults.
    pub drive: Option<Drive>,
    /// The faults of its inputs.
    pub faults: Vec<Fault>,
    /// Its state.
    pub state: HostState<'a>,
}

/// The state of a host.
#[derive(Debug)]
pub enum HostState<'a> {
    /// No machine is known.
    Unseen,
    /// Its inputs have faults; its machine, with nothing deployed yet, if it has one.
    Faulty(Option<&'a BareMetalHost>),
    /// It has no machine, and there is no image for one, with the reason.
    NoImage(String),
    /// No machine can be taken.
    Without(NoMachine),
    /// It lost this machine, as the status names it.
    Lost(String, Loss),
    /// It has a machine, or takes one.
    At(&'a BareMetalHost, Next),
    /// It was removed, and its machine is given back.
    Leaving(&'a BareMetalHost, Next),
    /// It was removed by hand while its owner still requests it: its machine stays as it is.
    Kept(&'a BareMetalHost),
}

/// The next step for a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Write its Secrets.
    Secrets,
    /// Reserve it, or update it before it is provisioned.
    Reserve(Image),
    /// Remove image, data and power.
    TakeBack,
    /// Release it from the set.
    Free,
    /// Wait for Metal3.
    Wait,
    /// It is provisioned, and not powered on.
    Off,
    /// It is provisioned.
    Done {
        /// Whether it has the present config drive.
        is_current: bool,
    },
    /// A user must act: reason in CamelCase, then cause and next step.
    Stop(&'static str, String),
}

/// All hosts by name, and their faults.
#[derive(Debug)]
pub struct EvaluatedHost<'a> {
    /// The present and the removed hosts.
    pub hosts: Vec<Host<'a>>,
    /// Each fault once, however many hosts have it.
    pub faults: Vec<Fault>,
    /// The image of the hosts, or why there is none.
    pub image: Result<Image, NoImage>,
}

/// Why a host's machine is gone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Loss {
    /// It was deleted, or its labels were removed.
    Gone,
    /// Another consumer uses it, as `Kind namespace/name`.
    Taken(String),
    /// Its namespace is no longer watched.
    Unwatched,
    /// It belongs to another provisioner.
    Elsewhere,
}

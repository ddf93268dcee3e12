//! A host of a set, and what Metal3 is to do with its machine.

use api::baremetal::BaremetalHost;
use api::metal3::{BareMetalHost, Image};
use config_drive::Drive;

use super::image::NoImage;
use super::selection::NoMachine;
use crate::ironic::hosts::Fault;

/// A host of the set, or one that was.
#[derive(Debug)]
pub struct Host<'a> {
    /// Its name.
    pub name: String,
    /// What the set says of it; nothing once it was taken out.
    pub desired: Option<&'a BaremetalHost>,
    /// Its drive; none of a host that is taken out, or has faults.
    pub drive: Option<Drive>,
    /// What is wrong with what it is made from.
    pub faults: Vec<Fault>,
    /// How it stands.
    pub state: HostState<'a>,
}

/// How a host stands.
#[derive(Debug)]
pub enum HostState<'a> {
    /// Nothing is known of any machine.
    Unseen,
    /// Something is wrong with what it is made from; its machine, on which nothing is yet, if it has one.
    Faulty(Option<&'a BareMetalHost>),
    /// It has no machine, and there is no image for one: why.
    NoImage(String),
    /// No machine can be taken.
    Without(NoMachine),
    /// It had this machine, as the status tells of it, and lost it.
    Lost(String, Loss),
    /// It has a machine, or takes one.
    At(&'a BareMetalHost, Next),
    /// It was taken out, and its machine is given back.
    Leaving(&'a BareMetalHost, Next),
    /// It was taken out by hand, and whoever asks for it still does: its machine stays as it is.
    Kept(&'a BareMetalHost),
}

/// What comes next for a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Its Secrets are written.
    Secrets,
    /// It is taken, or gets what has changed before it was provisioned.
    Reserve(Image),
    /// Image, data and power are taken back.
    TakeBack,
    /// It is given up: not the set's any more.
    Free,
    /// Metal3 works on it.
    Wait,
    /// It is provisioned, and not powered on.
    Off,
    /// It is provisioned; whether with the present drive.
    Done {
        /// Whether it is.
        is_current: bool,
    },
    /// A human must act: one CamelCase word, cause and next step.
    Stop(&'static str, String),
}

/// All hosts by name, and what is wrong with them.
#[derive(Debug)]
pub struct EvaluatedHost<'a> {
    /// Those that are to be and those that leave.
    pub hosts: Vec<Host<'a>>,
    /// Each fault once, however many hosts have it.
    pub faults: Vec<Fault>,
    /// What the hosts get, or why there is none.
    pub image: Result<Image, NoImage>,
}

/// Why a machine that a host had is not there any more.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Loss {
    /// It was deleted, or its labels were taken off.
    Gone,
    /// Somebody else uses it, as `Kind namespace/name`.
    Taken(String),
    /// Its namespace is not watched any more.
    Unwatched,
    /// It is another provisioner's.
    Elsewhere,
}

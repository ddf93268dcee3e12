//! Kinds of baremetal.openstack.org: machines that get an operating system before they are hosts.

pub mod ironic;
pub mod set;
pub mod template;

pub use ironic::{Authentication, ConfigDriveFormat, Image, Ironic, Machine};
pub use set::{
    BaremetalHost, BaremetalSet, BaremetalSetSpec, BaremetalSetStatus, DeprovisionPolicy, Failure,
    HostStatus, Provisioner, UNASSIGNED,
};
pub use template::BaremetalSetTemplate;

crate::conditions::has_conditions!(BaremetalSet);

//! Kinds of nova.openstack.org: cells, and nova-compute on hosts outside the cluster.

pub mod cell;
pub mod external_compute;

pub use cell::{
    Cell, CellSpec, CellStatus, DiscoveryAttempt, DiscoveryState, Leftover, MappingReading,
};
pub use external_compute::{
    CREDENTIALS, ConfigFile, Credential, CredentialKind, ExternalCompute, ExternalComputeSpec,
    ExternalComputeStatus, Management, RegisteredNova,
};

crate::conditions::has_conditions!(Cell, ExternalCompute);

//! The names of the three operators.

/// One of the operators.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Operator {
    /// Turns each `OpenStackAnsibleEE` into one Job.
    AnsibleEe,
    /// Reconciles hosts and their services, phase 0.
    DataPlane,
    /// Reconciles a compute for each node with a cell, phase 1.
    Nova,
}

impl Operator {
    /// All operators.
    pub const ALL: [Self; 3] = [Self::AnsibleEe, Self::DataPlane, Self::Nova];
    /// The operators that serve webhooks.
    pub const SERVING: [Self; 2] = [Self::DataPlane, Self::Nova];

    /// Returns the name of its program, Deployment and service account.
    pub fn name(self) -> &'static str {
        match self {
            Self::AnsibleEe => "ansibleee-operator",
            Self::DataPlane => "dataplane-operator",
            Self::Nova => "nova-operator",
        }
    }
}

//! The three operators by their names.

/// One of the operators.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Operator {
    /// Every `OpenStackAnsibleEE` becomes one Job.
    AnsibleEe,
    /// Hosts and their services, phase 0.
    DataPlane,
    /// A compute for each node with a cell, phase 1.
    Nova,
}

impl Operator {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::AnsibleEe, Self::DataPlane, Self::Nova];
    /// Those with webhooks.
    pub const SERVING: [Self; 2] = [Self::DataPlane, Self::Nova];

    /// The name of its program, Deployment and service account.
    pub fn name(self) -> &'static str {
        match self {
            Self::AnsibleEe => "ansibleee-operator",
            Self::DataPlane => "dataplane-operator",
            Self::Nova => "nova-operator",
        }
    }
}

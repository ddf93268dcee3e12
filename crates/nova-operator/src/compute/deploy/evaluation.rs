//! The evaluation of a compute, from which the steps and the status are derived.

use api::conditions::ConditionDraft;
use api::nova::ConfigFile;
use operator_core::keyed::Inputs;
use operator_core::run_engine::DesiredService;
use operator_core::run_engine::service_sequence::ServiceSequence;

use crate::compute::deploy::config::Renewing;
use crate::compute::deploy::health::Health;
use crate::compute::deploy::host_drain::HostDrain;
use crate::nova::identity::Identity;
use crate::rollout::blocked_rollout::BlockedRollout;

/// The evaluation of a compute.
pub struct Evaluation {
    /// Whether every input is present and valid.
    pub input: ConditionDraft,
    /// Whether the node can be used.
    pub node: ConditionDraft,
    /// Whether the cell can be used.
    pub cell: ConditionDraft,
    /// Whether the files are rendered.
    pub config: ConditionDraft,
    /// Warnings about the user's options.
    pub warnings: ConditionDraft,
    /// The condition for a rejected write, or `None` without one.
    pub rejection: Option<ConditionDraft>,
    /// Whether changes are deployed at all.
    pub deploy: bool,
    /// All inputs, or `None` when they are incomplete.
    pub inputs: Option<Inputs>,
    /// The rendered files, or the recorded ones when they cannot be rendered.
    pub files: Vec<ConfigFile>,
    /// The names of the files that would be deployed otherwise than they were.
    pub changed_files: Vec<String>,
    /// The digests to renew with the current key at the next write of the status.
    pub renewing: Option<Renewing>,
    /// The desired services.
    pub desired: Vec<DesiredService>,
    /// The state of the service sequence.
    pub sequence: ServiceSequence,
    /// The identity of the host in nova that is recorded now.
    pub recorded: Identity,
    /// What nova's API says.
    pub health: Health,
    /// What is known of the audits of the host; `None` where none are requested.
    pub in_sync: Option<ConditionDraft>,
    /// What keeps the identity of the host from being free, or `None`.
    pub identity: Option<ConditionDraft>,
    /// What is requested for the servers of the host.
    pub drain: HostDrain,
    /// Whether the run that is needed waits until the host is drained.
    pub waits_for_drain: bool,
    /// Why the rollout blocks a deployment for which nothing is missing, or `None`.
    pub blocked: Option<BlockedRollout>,
    /// Whether the cell's current credentials have not been tried yet; until then nothing changes.
    pub is_untried: bool,
}

//! What was judged of a compute: from it come the steps and the status.

use api::conditions::ConditionDraft;
use api::nova::ConfigFile;
use operator_core::keyed::Inputs;
use operator_core::run_engine::DesiredService;
use operator_core::run_engine::service_sequence::ServiceSequence;

use crate::compute::blocked_rollout::BlockedRollout;
use crate::compute::config::Renewing;

/// Everything that was judged of a compute.
pub struct Evaluation {
    /// Whether every input is there.
    pub input: ConditionDraft,
    /// Whether the node can be used.
    pub node: ConditionDraft,
    /// Whether the cell can be used.
    pub cell: ConditionDraft,
    /// Whether the files are rendered.
    pub config: ConditionDraft,
    /// What is surprising in the human's options.
    pub warnings: ConditionDraft,
    /// What is said of a refused write, if there was one.
    pub rejection: Option<ConditionDraft>,
    /// Whether runs are wanted at all.
    pub deploy: bool,
    /// All inputs, where they are complete.
    pub inputs: Option<Inputs>,
    /// The files, where they are rendered.
    pub files: Vec<ConfigFile>,
    /// Those whose digests go by the present key from the next write of the status on.
    pub renewing: Option<Renewing>,
    /// The services as they should be.
    pub desired: Vec<DesiredService>,
    /// Where the host stands.
    pub sequence: ServiceSequence,
    /// Why its deployment does not begin yet, where nothing is missing for it.
    pub blocked: Option<BlockedRollout>,
    /// Whether the cell's credentials have still to be tried; until then all stays as it was.
    pub is_untried: bool,
}

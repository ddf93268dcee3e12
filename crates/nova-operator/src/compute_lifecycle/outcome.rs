//! What is decided on a node: the writes to its compute, and what the node is told.

use api::conditions::ConditionDraft;
use operator_core::plan::Step;

/// Writes to the compute, and what the node is told; nothing to tell removes the condition.
pub type Outcome = (Vec<Step>, Option<ConditionDraft>);

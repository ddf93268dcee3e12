//! The decision on a node: the writes to its compute, and the node's condition.

use api::conditions::ConditionDraft;
use operator_core::plan::Step;

/// The writes to the compute and the node's condition; `None` removes the condition.
pub type Outcome = (Vec<Step>, Option<ConditionDraft>);

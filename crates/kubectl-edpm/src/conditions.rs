//! The texts of conditions, and a reason that the commands look for.

use api::conditions::Condition;

/// The reason of `UpToDate` where its inputs are current, and another release renders other files.
pub const OPERATOR_CHANGED: &str = "OperatorChanged";

/// Returns reason and message of a condition.
pub fn said(condition: &Condition) -> String {
    format!("{}: {}", condition.reason, condition.message)
}

/// Returns the same; without the condition, that no operator has written it.
pub fn said_so_far(condition: Option<&Condition>) -> String {
    condition.map_or_else(|| "no operator has reconciled it yet".to_owned(), said)
}

/// Returns the same behind a colon; empty without the condition.
pub fn because(condition: Option<&Condition>) -> String {
    condition.map(|it| format!(": {}", said(it))).unwrap_or_default()
}

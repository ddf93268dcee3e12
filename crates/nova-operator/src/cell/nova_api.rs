//! The conditions of a cell that follow from nova's API: whether it answers, and how many computes
//! are up.

use api::conditions::{Condition, ConditionDraft, Reason, find};
use api::nova::Cell;
use kube::ResourceExt;
use nova_config::conditions::{COMPUTES_UP, NOVA_API_READY};
use openstack_client::{Error, Fault, Service};

use crate::cell::observed::Observed;
use crate::compute_status::computes_up::{condition, states};
use crate::nova::fault::{cause, next_step};
use crate::nova::health::ApiHealth;
use crate::reasons;

/// Returns the conditions; none where nova's API is not read.
pub fn conditions(seen: &Observed, previous: &[Condition]) -> Vec<ConditionDraft> {
    let Some(health) = &seen.nova_api else { return vec![] };
    vec![api(seen, health, previous), condition(COMPUTES_UP, &states(&seen.computes))]
}

fn api(seen: &Observed, health: &ApiHealth, previous: &[Condition]) -> ConditionDraft {
    match health {
        ApiHealth::Answers => {
            reasons::cell::NOVA_ANSWERED.condition(NOVA_API_READY, "Nova's API answers.")
        }
        ApiHealth::Pending => {
            // Without its inputs the API is not read any more.
            let before = find(previous, NOVA_API_READY).filter(|_| seen.is_probed);
            let before = before.map(ConditionDraft::repeated);
            before.unwrap_or_else(|| {
                let text = "Nova's API is read once every input is there.";
                reasons::cell::NOVA_NOT_READ.condition(NOVA_API_READY, text)
            })
        }
        ApiHealth::Unread => unread(&seen.cell),
        ApiHealth::Fails(fault) => fails(&seen.cell, fault),
        ApiHealth::NotListed(fault) => not_listed(&seen.cell, fault),
    }
}

/// Returns the condition of an API that is not requested for want of inputs.
pub fn unread(cell: &Cell) -> ConditionDraft {
    let text = format!(
        "Nova's API is not read: an input of NovaCell {} is missing, which InputReady names, or \
         spec.keystoneAuthURL or CABundle of Secret {} cannot be used. Correct it.",
        cell.name_any(),
        cell.spec.secret
    );
    reasons::cell::NOVA_NOT_READ.condition(NOVA_API_READY, text)
}

/// Returns the condition of an API that does not answer.
pub fn fails(cell: &Cell, fault: &Fault) -> ConditionDraft {
    let text = format!(
        "{}. It is unknown whether the computes of NovaCell {} are up and mapped; deployments go on. \
         {} It is read again automatically.",
        cause(fault),
        cell.name_any(),
        next_step(fault, &cell.spec.secret)
    );
    reason(fault).condition(NOVA_API_READY, sentence(&text))
}

/// Returns the condition of an API whose list of hypervisors alone cannot be read.
pub fn not_listed(cell: &Cell, fault: &Fault) -> ConditionDraft {
    let text = format!(
        "Nova's list of hypervisors cannot be read: {}. It is unknown whether new hosts of NovaCell {} \
         are mapped; what was known of others stays. {} It is read again automatically.",
        cause(fault),
        cell.name_any(),
        next_step(fault, &cell.spec.secret)
    );
    reason(fault).condition(NOVA_API_READY, text)
}

/// Returns the text with a capital letter at its begin.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|it| it.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn reason(fault: &Fault) -> &'static Reason {
    match &fault.error {
        Error::NotUrl => &reasons::cell::INVALID_URL,
        Error::Unreachable(_) => &reasons::cell::UNREACHABLE,
        Error::Untrusted(_) => &reasons::cell::CERTIFICATE_NOT_TRUSTED,
        Error::NotTheService | Error::NotFound if fault.service == Service::Identity => {
            &reasons::cell::NOT_KEYSTONE
        }
        Error::NotTheService | Error::NotFound => &reasons::cell::NOT_NOVA,
        Error::TooLarge(_) | Error::NoMemory => &reasons::cell::ANSWER_TOO_LARGE,
        Error::NoEndpoint { .. } => &reasons::cell::ENDPOINT_NOT_FOUND,
        Error::Version { .. } => &reasons::cell::VERSION_NOT_SUPPORTED,
        Error::Unauthorized if fault.is_of_token() => &reasons::cell::TOKEN_REFUSED,
        Error::Unauthorized => &reasons::cell::CREDENTIALS_REFUSED,
        Error::Forbidden(_) => &reasons::cell::ROLE_MISSING,
        Error::Conflict(_) => &reasons::cell::NOVA_CONFLICT,
        Error::Busy(_) => &reasons::cell::NOVA_BUSY,
        Error::Refused(_) => &reasons::cell::REQUEST_REFUSED,
        // Readings change nothing, so they never fail like this.
        Error::Failed(..) | Error::NotLeader => &reasons::cell::NOVA_FAILED,
    }
}

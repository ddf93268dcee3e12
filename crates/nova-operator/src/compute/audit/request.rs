//! What the annotations of a node and its group request: audits, how often, and repairs.

use api::dataplane::Node;
use jiff::SignedDuration;
use nova_config::annotations::{AUDIT, AUDIT_REPAIR};

use crate::group::Group;
use crate::group::inherited_annotation::{annotation, repeated};

/// The longest interval.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 366);

/// Audits of a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AuditPolicy {
    /// The time from one audit to the next.
    pub interval: SignedDuration,
    /// Whether a host that is out of sync is deployed again.
    pub repairs: bool,
}

/// What is requested for a host.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum AuditRequest {
    /// No audits.
    #[default]
    Absent,
    /// Audits.
    Audit(AuditPolicy),
    /// Nothing that is understood; the message names the annotation, its value and the legal ones.
    Invalid(String),
}

impl AuditRequest {
    /// Returns the requested audits; `None` where there are none, or the request is not understood.
    pub fn policy(&self) -> Option<AuditPolicy> {
        match self {
            Self::Audit(policy) => Some(*policy),
            Self::Absent | Self::Invalid(_) => None,
        }
    }
}

/// Returns what is requested for the host of a node.
///
/// An annotation of the node, even an empty one, takes precedence over its group's; an empty one
/// requests nothing. `least` is the shortest legal interval.
pub fn requested(group: Option<&Group>, node: &Node, least: SignedDuration) -> AuditRequest {
    let Some((text, origin)) = annotation(group, node, AUDIT) else { return AuditRequest::Absent };
    if text.is_empty() {
        return AuditRequest::Absent;
    }
    let Some(interval) = interval(text).filter(|it| (least..=LONGEST).contains(it)) else {
        return AuditRequest::Invalid(format!(
            "Annotation {AUDIT} of {origin} is \"{}\", and nothing is audited: set it to a number \
             with m, h or d, as 30m, 6h or 1d, of at least {} minutes, or remove it.",
            repeated(text),
            (least.as_secs() + 59) / 60
        ));
    };
    let repairs = match annotation(group, node, AUDIT_REPAIR) {
        None | Some(("" | "false", _)) => false,
        Some(("true", _)) => true,
        Some((other, origin)) => {
            return AuditRequest::Invalid(format!(
                "Annotation {AUDIT_REPAIR} of {origin} is \"{}\", and nothing is audited: set it to \
                 true or false, or remove it.",
                repeated(other)
            ));
        }
    };
    AuditRequest::Audit(AuditPolicy { interval, repairs })
}

/// Returns the interval that a text like `30m` names, or `None` for any other text.
fn interval(text: &str) -> Option<SignedDuration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let is_number = number.bytes().all(|it| it.is_ascii_digit());
    let number = number.parse::<u32>().ok().filter(|_| is_number)?;
    Some(SignedDuration::from_secs(i64::from(number) * seconds))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::dataplane::Role;
    use kube::ResourceExt;

    use super::*;

    const LEAST: SignedDuration = SignedDuration::from_mins(10);

    fn annotated<K: ResourceExt>(mut object: K, annotations: &[(&str, &str)]) -> K {
        let all = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        object.annotations_mut().extend(all);
        object
    }

    fn of(role: &[(&str, &str)], node: &[(&str, &str)]) -> AuditRequest {
        let role = annotated(Role::new("compute", <_>::default()), role);
        let role = Group::Role(Arc::new(role));
        requested(Some(&role), &annotated(Node::new("n0", <_>::default()), node), LEAST)
    }

    fn every(minutes: i64, repairs: bool) -> AuditRequest {
        let interval = SignedDuration::from_mins(minutes);
        AuditRequest::Audit(AuditPolicy { interval, repairs })
    }

    #[test]
    fn a_node_inherits_the_audits_of_its_role_and_may_have_others_or_none() {
        assert_eq!(of(&[], &[]), AuditRequest::Absent);
        assert_eq!(of(&[(AUDIT, "6h")], &[]), every(360, false));
        assert_eq!(of(&[(AUDIT, "6h")], &[(AUDIT, "1d")]), every(1440, false));
        assert_eq!(of(&[(AUDIT, "6h")], &[(AUDIT, "")]), AuditRequest::Absent);
        assert_eq!(of(&[(AUDIT, "10m"), (AUDIT_REPAIR, "true")], &[]), every(10, true));
        let own = [(AUDIT_REPAIR, "false")];
        assert_eq!(of(&[(AUDIT, "10m"), (AUDIT_REPAIR, "true")], &own), every(10, false));
        assert_eq!(of(&[(AUDIT_REPAIR, "true")], &[]), AuditRequest::Absent);
    }

    #[test]
    fn any_other_value_is_refused_with_the_legal_ones() {
        for value in
            ["9m", "0h", "h", "6", "6 h", " 6h", "+6h", "-6h", "9s", "6H", "é", "9999999999d"]
        {
            let AuditRequest::Invalid(message) = of(&[(AUDIT, value)], &[]) else {
                panic!("{value} is accepted")
            };
            assert!(message.contains("OpenStackDataPlaneRole compute"), "{message}");
            assert!(message.contains("at least 10 minutes"), "{message}");
        }
        for value in ["yes", "True", "1"] {
            let request = of(&[(AUDIT, "6h")], &[(AUDIT_REPAIR, value)]);
            let AuditRequest::Invalid(message) = request else { panic!("{value} is accepted") };
            assert!(message.contains("OpenStackDataPlaneNode n0"), "{message}");
        }
    }
}

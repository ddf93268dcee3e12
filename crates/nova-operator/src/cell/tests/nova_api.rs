//! What a cell says of nova's API and of how many of its computes are up.

use api::nova::Management;
use openstack_client::{Error, Fault, Service};

use super::*;
use crate::nova::health::ApiHealth;

fn said(seen: &Observed, type_: &str) -> (ConditionStatus, String, String) {
    let found = condition(seen, type_);
    (found.status, found.reason, found.message)
}

fn fails(service: Service, error: Error) -> Observed {
    Observed { nova_api: Some(ApiHealth::Fails(Fault::of(service, error))), ..seen() }
}

/// A compute with that status of `ServiceUp`.
fn with_service(name: &str, status: &str) -> Arc<ExternalCompute> {
    let mut compute = compute(name);
    let condition = conditions::stated("ServiceUp", status, "x", "x");
    Arc::make_mut(&mut compute).status.as_mut().unwrap().conditions = vec![condition];
    compute
}

#[test]
fn without_readings_the_cell_is_as_before() {
    let status = status(&seen());
    for type_ in ["NovaAPIReady", "ComputesUp"] {
        assert!(find(&status.conditions, type_).is_none());
    }
}

#[test]
fn each_failure_of_nova_has_a_reason_and_a_next_step_and_takes_no_ready() {
    let why = || "why".to_owned();
    for (service, error, reason, step) in [
        (Service::Compute, Error::Unreachable(why()), "Unreachable", "Look at nova's API"),
        (Service::Identity, Error::Unreachable(why()), "Unreachable", "Look at Keystone"),
        (Service::Compute, Error::Untrusted(why()), "CertificateNotTrusted", "CABundle"),
        (Service::Compute, Error::NotTheService, "NotNova", "Look at nova's API"),
        (Service::Identity, Error::NotTheService, "NotKeystone", "Look at Keystone"),
        (Service::Identity, Error::Unauthorized, "CredentialsRefused", "ServicePassword"),
        (Service::Compute, Error::Unauthorized, "TokenRefused", "[keystone_authtoken]"),
        (Service::Compute, Error::Forbidden(why()), "RoleMissing", "the role admin"),
        (Service::Compute, Error::Conflict(why()), "NovaConflict", "Look at"),
        (Service::Compute, Error::Busy(why()), "NovaBusy", "Look at"),
        (Service::Compute, Error::Failed(500, why()), "NovaFailed", "Look at"),
        (
            Service::Compute,
            Error::NoEndpoint { region: "one".into() },
            "EndpointNotFound",
            "RegionName",
        ),
        (
            Service::Compute,
            Error::Version { needed: "2.69", supported: "2.1 to 2.60".into() },
            "VersionNotSupported",
            "Look at",
        ),
    ] {
        let seen = fails(service, error);
        let (status, word, message) = said(&seen, "NovaAPIReady");
        assert_eq!((status, word.as_str()), (ConditionStatus::False, reason));
        assert!(message.contains(step) && !message.contains(PASSWORD), "{message}");
        assert!(message.starts_with(char::is_uppercase), "{message}");
        assert_eq!(said(&seen, "Ready").0, ConditionStatus::True);
    }
}

#[test]
fn a_list_of_hypervisors_that_cannot_be_read_has_the_reason_of_its_error() {
    let fault = Fault::of(Service::Compute, Error::TooLarge("more than 50 pages".into()));
    let seen = Observed { nova_api: Some(ApiHealth::NotListed(fault)), ..seen() };
    let named = ["list of hypervisors", "50 pages", "NovaCell nova-cell1", "Look at nova's API"];
    says(&status(&seen), "NovaAPIReady", "AnswerTooLarge", &named);
    assert_eq!(said(&seen, "Ready").0, ConditionStatus::True);
}

#[test]
fn an_api_that_does_not_answer_for_a_moment_changes_nothing() {
    let mut seen = Observed { nova_api: Some(ApiHealth::Pending), ..seen() };
    assert_eq!(said(&seen, "NovaAPIReady").1, "NotRead");
    seen.nova_api = Some(ApiHealth::Answers);
    pass(&mut seen);
    let conditions = &seen.cell.status.as_ref().unwrap().conditions;
    assert_eq!(find(conditions, "NovaAPIReady").unwrap().reason, "Answered");
    seen.nova_api = Some(ApiHealth::Pending);
    assert!(!pass(&mut seen), "nothing is written");
    (seen.is_probed, seen.answers) = (false, None);
    assert_eq!(said(&seen, "NovaAPIReady").1, "NotRead", "its inputs are incomplete");
}

#[test]
fn computes_are_counted_and_the_first_that_are_down_are_named() {
    let mut seen = Observed { nova_api: Some(ApiHealth::Answers), ..seen() };
    let check = |seen: &Observed, status, reason: &str, message: &str| {
        assert_eq!(said(seen, "ComputesUp"), (status, reason.to_owned(), message.to_owned()));
    };
    seen.computes = vec![with_service("n0", "True"), with_service("n1", "True")];
    check(&seen, ConditionStatus::True, "ComputesUp", "2 of 2 computes are up.");
    seen.computes.push(with_service("n2", "Unknown"));
    let text = "2 of 3 computes are up; 1 unknown.";
    check(&seen, ConditionStatus::Unknown, "ComputesUnknown", text);
    seen.computes.push(with_service("n3", "False"));
    let text = "2 of 4 computes are up; down: n3; 1 unknown.";
    check(&seen, ConditionStatus::False, "ComputesDown", text);
}

#[test]
fn a_host_that_a_service_deploys_counts_and_has_no_credentials_of_the_cell() {
    let mut seen = Observed { nova_api: Some(ApiHealth::Answers), ..seen() };
    let inputs = present(&seen);
    let mut observed = with_service("n1", "False");
    Arc::make_mut(&mut observed).spec.management = Management::Observed;
    seen.computes = vec![deployed("n0", &inputs), observed];
    assert_eq!(said(&seen, "ComputesUp").2, "0 of 2 computes are up; down: n1; 1 unknown.");
    let of_credentials = said(&seen, "ComputesUpToDate");
    assert_eq!((of_credentials.0, &*of_credentials.1), (ConditionStatus::True, "UpToDate"));
    let status = status(&seen);
    assert_eq!((status.computes, status.up_to_date_computes), (Some(1), Some(1)));
    seen.nova_api = Some(ApiHealth::Unread);
    let api = said(&seen, "NovaAPIReady");
    assert_eq!((api.0, &*api.1), (ConditionStatus::Unknown, "NotRead"));
}

#[test]
fn computes_that_another_nova_has_or_misses_are_counted_and_five_of_them_named() {
    let mut seen = seen();
    let other = |name: &str| {
        let mut compute = compute(name);
        let told = [("ServiceUp", "See."), ("NovaMatches", "Both.")];
        let conditions =
            told.map(|(type_, it)| conditions::stated(type_, "False", "OtherIdentity", it));
        Arc::make_mut(&mut compute).status.as_mut().unwrap().conditions = conditions.into();
        compute
    };
    seen.computes = ["a", "b", "c", "d", "e", "f"].map(other).into();
    seen.computes.push(compute("g"));
    let (is, reason, message) = said(&seen, "NovaMatches");
    assert_eq!((is, reason.as_str()), (ConditionStatus::False, "OtherIdentity"));
    let expected = "NovaCell nova-cell1 has 6 of 7 computes under other identities than they have \
                    registered with: a, b, c, d, e and 1 more. NovaExternalCompute a says: Both.";
    assert_eq!(message, expected);
    seen.computes = vec![compute("g")];
    assert!(find(&status(&seen).conditions, "NovaMatches").is_none());
}

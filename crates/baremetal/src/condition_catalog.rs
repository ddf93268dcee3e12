//! The conditions of a baremetal set.

use api::conditions::Reason;
use operator_core::condition_catalog::{ConditionSpec, WRITES, condition, summary};

use crate::reasons;
use crate::status::{INPUT_READY, PROVISIONED, SERVER_READY, UP_TO_DATE};

/// The conditions, in the order in which users read them.
pub const BAREMETAL_SET: &[ConditionSpec] = &[
    summary("Each host has a machine that runs.", &[reasons::READY]),
    condition(INPUT_READY, "Everything that the hosts are made from is there.", INPUT),
    condition(SERVER_READY, "Ironic answers.", SERVER),
    condition(PROVISIONED, "Each host has a machine that runs.", MACHINES),
    condition(
        UP_TO_DATE,
        "The machines were deployed with the current config drives; `Ready` does not depend on it.",
        &[reasons::UP_TO_DATE, reasons::CONFIG_DRIVE_CHANGED, reasons::MACHINES_UNKNOWN],
    ),
    WRITES,
];

const INPUT: &[Reason] = &[
    reasons::INPUT_COMPLETE,
    reasons::SECRET_NOT_FOUND,
    reasons::PROVISIONER_NOT_FOUND,
    reasons::INVALID_INPUT,
];

const SERVER: &[Reason] = &[
    reasons::ANSWERING,
    reasons::SERVER_NOT_ASKED,
    reasons::IMAGE_NOT_SERVED,
    ironic::reasons::INVALID_URL,
    ironic::reasons::UNREACHABLE,
    ironic::reasons::CERTIFICATE_NOT_TRUSTED,
    ironic::reasons::NOT_IRONIC,
    ironic::reasons::ANSWER_TOO_LARGE,
    ironic::reasons::VERSION_NOT_SUPPORTED,
    ironic::reasons::CREDENTIALS_REFUSED,
    ironic::reasons::ACCESS_DENIED,
    ironic::reasons::CREDENTIALS_INCOMPLETE,
    ironic::reasons::MACHINE_NOT_FOUND,
    ironic::reasons::IRONIC_BUSY,
    ironic::reasons::MACHINE_BUSY,
    ironic::reasons::REQUEST_REFUSED,
    ironic::reasons::IRONIC_FAILED,
];

const MACHINES: &[Reason] = &[
    reasons::PROVISIONED,
    reasons::MACHINES_UNKNOWN,
    reasons::INPUT_MISSING,
    reasons::IMAGE_NOT_SERVED,
    reasons::MACHINE_FAILED,
    reasons::MACHINE_DETACHED,
    reasons::MACHINE_PAUSED,
    reasons::MACHINE_TWICE,
    reasons::MACHINE_GOING,
    reasons::IMAGE_HELD,
    reasons::NO_MACHINE,
    reasons::MACHINE_GONE,
    reasons::HOST_IN_USE,
    reasons::DELETION_WAITS,
    ironic::reasons::MACHINE_IN_PROGRESS,
    reasons::MACHINE_RETAINED,
    ironic::reasons::MACHINE_LOCKED,
    ironic::reasons::MACHINE_UNREACHABLE,
    ironic::reasons::DEPLOY_RETRYING,
    ironic::reasons::MACHINE_NOT_AVAILABLE,
    ironic::reasons::MACHINE_NOT_RUNNING,
    ironic::reasons::MACHINE_TAKEN,
    ironic::reasons::MACHINE_IN_MAINTENANCE,
    ironic::reasons::DEPLOY_FAILED,
    ironic::reasons::ADOPT_FAILED,
    ironic::reasons::CLEAN_FAILED,
    ironic::reasons::INSPECT_FAILED,
    ironic::reasons::UNDEPLOY_FAILED,
    ironic::reasons::SERVICE_FAILED,
    ironic::reasons::MACHINE_HELD,
    ironic::reasons::POWER_FAILED,
    ironic::reasons::STATE_UNKNOWN,
    ironic::reasons::MACHINE_NOT_FOUND.described(
        "A machine has disappeared meanwhile.",
        "Yes.",
        "Wait.",
    ),
    ironic::reasons::MACHINE_BUSY.described(
        "Another client reserved the machine first.",
        "Yes.",
        "Wait.",
    ),
    ironic::reasons::UNREACHABLE,
    ironic::reasons::CERTIFICATE_NOT_TRUSTED,
    ironic::reasons::CREDENTIALS_REFUSED,
    ironic::reasons::ACCESS_DENIED,
    ironic::reasons::IRONIC_BUSY,
    ironic::reasons::REQUEST_REFUSED,
    ironic::reasons::IRONIC_FAILED,
];

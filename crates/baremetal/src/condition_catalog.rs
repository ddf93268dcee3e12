//! The conditions of a baremetal set.

use ironic::reasons;
use operator_core::condition_catalog::{ConditionSpec, WRITES, condition, summary};

use crate::reasons::catalog;
use crate::status::{INPUT_READY, PROVISIONED, SERVER_READY, UP_TO_DATE};

/// The conditions, in the order in which users read them.
pub const BAREMETAL_SET: &[ConditionSpec] = &[
    summary("Each host has a machine that runs.", &[catalog::SUMMARY]),
    condition(INPUT_READY, "Everything that the hosts are made from is there.", &[catalog::INPUTS]),
    condition(SERVER_READY, "Ironic answers.", &[catalog::SERVER, reasons::SERVER]),
    condition(
        PROVISIONED,
        "Each host has a machine that runs.",
        &[catalog::MACHINES, reasons::MACHINES, reasons::REQUESTS],
    ),
    condition(
        UP_TO_DATE,
        "The machines were deployed with the current config drives; `Ready` does not depend on it.",
        &[catalog::CHANGES],
    ),
    WRITES,
];

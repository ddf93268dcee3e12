//! The caches that the webhooks of nodes and roles answer from.

use crate::shared_caches::SharedCaches;

/// The caches that the webhooks of nodes and roles answer from.
pub type AdmissionCaches = operator_runtime::webhook::AdmissionCache<SharedCaches>;

//! The handler type of an admission request, and the request type.

use std::sync::Arc;

use kube::core::{DynamicObject, admission::AdmissionRequest};

use super::decision::AdmissionDecision;

/// An admission request: the object before and after, the operation and the requesting user.
pub type Request = AdmissionRequest<DynamicObject>;

/// A pure function from an admission request to its decision.
pub(super) type Handler = Arc<dyn Fn(&Request) -> AdmissionDecision + Send + Sync>;

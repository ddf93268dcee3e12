//! A judgement of an admission request, and what it is asked.

use std::sync::Arc;

use kube::core::{DynamicObject, admission::AdmissionRequest};

use super::decision::AdmissionDecision;

/// What is asked: an object before and after, who asks, and what for.
pub type Request = AdmissionRequest<DynamicObject>;

/// A pure judgement.
pub(super) type Judge = Arc<dyn Fn(&Request) -> AdmissionDecision + Send + Sync>;

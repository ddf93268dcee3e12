//! Which change of which object enqueues what.

pub mod event_mapping;
pub mod relevant_fields;

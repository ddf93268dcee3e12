//! dataplane-operator: hosts, what is deployed to them, and how far that is; no service by name.

pub mod attachments;
pub mod collection;
pub mod default_services;
pub mod effective;
pub mod endpoints;
pub mod group;
pub mod inputs;
pub mod operator;
pub mod plane;
pub mod reasons;
pub mod service;
pub mod vars;

//! The Jobs that discover the hosts of a cell or read their mappings: how they are recognized.

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use operator_core::object_key::Key;

/// Label of all Jobs of cells and their pods; its value is always `true`.
pub const LABEL: &str = "nova.openstack.org/host-discovery";

/// Returns the cell that owns a Job, by namespace and UID; `None` for a Job of another owner.
pub fn owner_key(job: &Job) -> Option<Key> {
    let owner = job.owner_references().iter().find(|it| it.controller == Some(true))?;
    Some(Key::new(job.namespace().unwrap_or_default(), &owner.uid))
}

/// Returns the cell that owns a Job, by namespace and name; `None` for a Job of another owner.
pub fn cell_of(job: &Job) -> Option<Key> {
    let owner = job.owner_references().iter().find(|it| it.controller == Some(true))?;
    Some(Key::new(job.namespace().unwrap_or_default(), &owner.name))
}

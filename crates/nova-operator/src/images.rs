//! The default images of computes.

use api::nova::{ExternalComputeSpec, Management};

/// The default images of computes; an empty string means that there is no default.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Images {
    /// Image of the container `nova_compute`.
    pub nova_compute: String,
    /// Image of the libvirt containers.
    pub nova_libvirt: String,
    /// Image of the pods that run Ansible.
    pub ansible_ee: String,
}

/// Fills unset images that have a default; returns whether it filled any. A compute that a service
/// deploys uses only the image of its runs.
pub fn default_images(spec: &mut ExternalComputeSpec, images: &Images) -> bool {
    let is_managed = spec.management == Management::Managed;
    let mut has_filled = false;
    for (field, default, is_used) in [
        (&mut spec.nova_compute_container_image, &images.nova_compute, is_managed),
        (&mut spec.nova_libvirt_container_image, &images.nova_libvirt, is_managed),
        (&mut spec.ansible_ee_container_image, &images.ansible_ee, true),
    ] {
        let is_unset = field.as_deref().unwrap_or_default().is_empty();
        if is_used && is_unset && !default.is_empty() {
            *field = Some(default.clone());
            has_filled = true;
        }
    }
    has_filled
}

//! The default images of computes.

use api::nova::ExternalComputeSpec;

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

/// Fills unset images that have a default; returns whether it filled any.
pub fn default_images(spec: &mut ExternalComputeSpec, images: &Images) -> bool {
    let mut has_filled = false;
    for (field, default) in [
        (&mut spec.nova_compute_container_image, &images.nova_compute),
        (&mut spec.nova_libvirt_container_image, &images.nova_libvirt),
        (&mut spec.ansible_ee_container_image, &images.ansible_ee),
    ] {
        if field.as_deref().unwrap_or_default().is_empty() && !default.is_empty() {
            *field = Some(default.clone());
            has_filled = true;
        }
    }
    has_filled
}

//! The images of a compute that names none.

use api::nova::ExternalComputeSpec;

/// Images of a compute that names none; an empty text means that there is no default.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Images {
    /// Of the container `nova_compute`.
    pub nova_compute: String,
    /// Of the libvirt containers.
    pub nova_libvirt: String,
    /// Of the pods that run Ansible.
    pub ansible_ee: String,
}

/// Fills unset images that have a default; whether there was any.
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

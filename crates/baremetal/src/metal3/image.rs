//! The image of a set's hosts, or what is missing for it.

use api::baremetal::BaremetalSetSpec;
use api::baremetal::template::ImageDeployment;
use api::metal3::{Image, ProvisionServer};

/// Prefix of image URLs that contain their checksum. Metal3 accepts any other URL only with a
/// checksum (baremetal-operator, `Image.GetChecksum`).
const OCI: &str = "oci://";
/// Checksum type that is detected by length. Without it, older releases of Metal3 treat every
/// checksum as MD5.
const DETECTED: &str = "auto";

/// Why there is no image.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NoImage {
    /// The user must change the spec: field, cause, and valid alternatives.
    Fault(String),
    /// The named server does not serve it yet.
    Waiting(String),
}

/// Returns the image of a set; `server` is the provision server that it names.
pub fn image(spec: &BaremetalSetSpec, server: Option<&ProvisionServer>) -> Result<Image, NoImage> {
    match spec.template.os_image_deployment_type {
        ImageDeployment::PassThrough => passed_through(spec),
        ImageDeployment::SelfExtracting => served(spec, server),
    }
}

fn passed_through(spec: &BaremetalSetSpec) -> Result<Image, NoImage> {
    let given = |it: &Option<String>| it.clone().filter(|it| !it.is_empty());
    let Some(url) = given(&spec.template.os_container_image_url) else {
        let text = "spec.osContainerImageUrl: with osImageDeploymentType PassThrough it is passed \
                    to Metal3, and it is missing; set the URL of the image";
        return Err(NoImage::Fault(text.into()));
    };
    let checksum = given(&spec.template.os_image_checksum);
    if checksum.is_none() && !url.starts_with(OCI) {
        let text = "spec.osImageChecksum: Metal3 needs a checksum for an image at a URL; set it, \
                    or the URL of its file, or use an oci:// URL";
        return Err(NoImage::Fault(text.into()));
    }
    let checksum_type = checksum.is_some().then(|| DETECTED.to_owned());
    Ok(Image { url, checksum, checksum_type, format: None })
}

fn served(spec: &BaremetalSetSpec, server: Option<&ProvisionServer>) -> Result<Image, NoImage> {
    const OR: &str = "or set spec.osImageDeploymentType to PassThrough and \
                      spec.osContainerImageUrl to the URL of an image that Metal3 can read";
    let named = spec.template.provision_server_name.as_deref().filter(|it| !it.is_empty());
    let Some(name) = named else {
        let text = format!(
            "spec.osImageDeploymentType: \"SelfExtracting\" needs an image server, and these \
             operators create none; name an OpenStackProvisionServer in spec.provisionServerName, \
             {OR}"
        );
        return Err(NoImage::Fault(text));
    };
    let Some(server) = server else {
        let text = format!(
            "spec.provisionServerName: \"{name}\" is not an existing OpenStackProvisionServer; \
             create it, {OR}"
        );
        return Err(NoImage::Fault(text));
    };
    let reported = server.status.clone().unwrap_or_default();
    let some = |text: String| Some(text).filter(|it| !it.is_empty());
    let Some(url) = some(reported.local_image_url) else {
        let text =
            format!("OpenStackProvisionServer {name} does not serve its image yet: see its status");
        return Err(NoImage::Waiting(text));
    };
    // The server reports it later than the image, and Metal3 requires it.
    let Some(checksum) = some(reported.local_image_checksum_url) else {
        let text = format!(
            "OpenStackProvisionServer {name} does not serve the checksum of its image yet: see its status"
        );
        return Err(NoImage::Waiting(text));
    };
    let checksum_type = some(reported.os_image_checksum_type);
    Ok(Image { url, checksum: Some(checksum), checksum_type, format: None })
}

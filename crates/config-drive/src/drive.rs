//! The config drive: its files, its hash, and both forms in which Ironic accepts it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;

use api::baremetal::ConfigDriveFormat;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use operator_core::hash;
use operator_core::keyed::{Digest, Keys};
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::format::{self, ApiVersion, Form};
use crate::input::Host;
use crate::{cloud_config, host, iso, json, meta_data, network, user_data};
use api::secret::Secret;

/// Maximum size of all files of a drive together, in bytes.
///
/// Ironic's partition has 64 MiB, but a drive is made from Secrets of at most 1 MiB, and it is a
/// value in a row of Ironic's database. Half a MiB leaves room for base64.
pub const LIMIT: usize = 512 * 1024;

/// The volume label by which cloud-init finds a drive.
const LABEL: &str = "config-2";
/// The directories of a drive, the same as Ironic creates from the JSON form.
///
/// cloud-init uses the newest date that it knows before `latest`, other readers use `latest`. Both
/// have the same files.
const VERSIONS: [&str; 2] = ["2012-08-10", "latest"];

const META_DATA: &str = "meta_data.json";
const NETWORK_DATA: &str = "network_data.json";
const USER_DATA: &str = "user_data";
/// File name of the vendor data, as Ironic names it for the JSON form, so that both forms are
/// equal.
const VENDOR_DATA: &str = "vendor_data2.json";

/// A valid drive. It holds secrets: Debug shows only its hash.
#[derive(Clone, PartialEq)]
pub struct Drive {
    meta: Value,
    network: Option<Value>,
    user: String,
    vendor: Option<Value>,
}

impl fmt::Debug for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Drive({})", self.hash())
    }
}

impl Drive {
    /// Builds the drive of a host.
    ///
    /// # Errors
    /// Returns all faults of the input.
    pub fn of(host: &Host) -> Result<Self, Vec<Fault>> {
        let given = &host.given;
        let mut faults = host::name_faults(host);
        let user = if let Some(text) = &given.user_data {
            user_data::user_data(text, &mut faults)
        } else {
            faults.extend(host::login_faults(host));
            cloud_config::text(host)
        };
        let network = match &given.network_data {
            Some(text) => user_data::object("given.networkData", Some(text), &mut faults)
                .map(|it| user_data::network_data(it, &mut faults)),
            None => host.network.as_ref().map(|it| network::data(it, &mut faults)),
        };
        let over = user_data::object("given.metaData", given.meta_data.as_ref(), &mut faults);
        let meta = meta_data::meta_data(host, over, &mut faults);
        let data = user_data::object("given.vendorData", given.vendor_data.as_ref(), &mut faults);
        let vendor = data.map(|it| user_data::vendor_data(it, &mut faults));
        let drive = Self { meta, network, user, vendor };
        faults.extend(drive.too_large());
        if faults.is_empty() { Ok(drive) } else { Err(faults) }
    }

    /// Returns its files by name; they are the same in each directory.
    pub fn files(&self) -> BTreeMap<&'static str, Secret<String>> {
        let mut files =
            BTreeMap::from([(META_DATA, json::text(&self.meta)), (USER_DATA, self.user.clone())]);
        files.extend(self.network.as_ref().map(|it| (NETWORK_DATA, json::text(it))));
        files.extend(self.vendor.as_ref().map(|it| (VENDOR_DATA, json::text(it))));
        files.into_iter().map(|(name, text)| (name, Secret::new(text))).collect()
    }

    /// Returns the SHA-256 of its files in hexadecimal, which depends neither on form nor on
    /// compressor.
    pub fn hash(&self) -> String {
        hash::of_bytes(self.canonical())
    }

    /// Returns the digest with these keys, for publishing: root's password may be short.
    pub fn digest(&self, keys: &Keys) -> Digest {
        keys.of_bytes(self.canonical().as_bytes())
    }

    fn canonical(&self) -> String {
        let files = self.files();
        let texts: BTreeMap<&str, &str> =
            files.iter().map(|(name, text)| (*name, text.expose().as_str())).collect();
        hash::canonical(&texts)
    }

    /// Returns why this API version does not support the form that the user wants; `None` when it
    /// does.
    pub fn form_fault(&self, wanted: ConfigDriveFormat, version: ApiVersion) -> Option<Fault> {
        format::form(wanted, version, self.vendor.is_some()).err()
    }

    /// Returns `configdrive` for a deployment request, in the form that the user wants or that the
    /// API version allows.
    pub fn configdrive(
        &self,
        wanted: ConfigDriveFormat,
        version: ApiVersion,
    ) -> Result<Secret<Value>, Fault> {
        Ok(match format::form(wanted, version, self.vendor.is_some())? {
            Form::Json => self.object(),
            Form::Iso => Secret::new(Value::String(self.packed())),
        })
    }

    /// Returns the object from which Ironic builds the image itself.
    fn object(&self) -> Secret<Value> {
        let mut object = json!({"meta_data": self.meta, "user_data": self.user});
        if let Some(data) = &self.network {
            object["network_data"] = data.clone();
        }
        if let Some(data) = &self.vendor {
            object["vendor_data"] = data.clone();
        }
        Secret::new(object)
    }

    /// Returns the image as Ironic stores it: base64 of gzip.
    fn packed(&self) -> String {
        // gzip's header contains time and system.
        let writer = GzBuilder::new().mtime(0).operating_system(255);
        let mut gzip = writer.write(Vec::new(), Compression::best());
        let packed = gzip.write_all(self.image().expose()).and_then(|()| gzip.finish());
        STANDARD.encode(packed.expect("memory takes all bytes"))
    }

    /// Returns the ISO 9660 image, in sectors of 2048 bytes.
    pub fn image(&self) -> Secret<Vec<u8>> {
        let files = self.files();
        let in_folder = |version: &str| {
            let path = |name: &str| format!("openstack/{version}/{name}");
            let entries = files.iter().map(|(name, text)| (path(name), text.expose().as_bytes()));
            entries.collect::<Vec<_>>()
        };
        let all = VERSIONS.into_iter().flat_map(in_folder).collect();
        Secret::new(iso::image(LABEL, &all))
    }

    /// Returns a fault of the largest part if the drive is too large.
    fn too_large(&self) -> Option<Fault> {
        let files = self.files();
        let sizes = files.iter().map(|(name, text)| (text.expose().len(), *name));
        let total: usize = sizes.clone().map(|it| it.0).sum();
        let (size, name) = sizes.max()?;
        (total > LIMIT).then(|| {
            let path = match name {
                USER_DATA => "given.userData",
                NETWORK_DATA => "given.networkData",
                VENDOR_DATA => "given.vendorData",
                _ => "given.metaData",
            };
            let cause = format!("has {size} bytes and makes a drive of {total}, above {LIMIT}");
            Fault::hidden(path, cause, "let the host fetch what is large at its first boot")
        })
    }
}

//! Unpacks a config drive, as Ironic stores it, into the files that a host finds on it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::sh;

/// Writes the files of a drive into `folder`, readable for root only.
///
/// # Errors
///
/// The drive has neither of the two forms that the operator sends to Ironic's API.
pub(super) fn unpack(drive: &Value, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    match drive {
        Value::String(url) if url.contains("://") => bail!("the drive lies in an object store"),
        Value::String(packed) => image(packed, folder),
        Value::Object(form) => files(form, &folder.join("openstack/latest")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            bail!("it is neither an image nor an object")
        }
    }
}

/// Unpacks an ISO image with a program that is independent of the code that wrote it.
fn image(packed: &str, folder: &Path) -> Result<()> {
    let image = folder.with_extension("iso");
    let mut write = Command::new("bash");
    write.args(["-o", "pipefail", "-c", "base64 --decode | gunzip > \"$0\""]).arg(&image);
    sh::run_with_input(&mut write, packed.as_bytes())?;
    let mut extract = Command::new("xorriso");
    extract.args(["-report_about", "SORRY", "-osirrox", "on", "-abort_on", "WARNING", "-indev"]);
    extract.arg(&image).args(["-extract", "/"]).arg(folder);
    sh::run(&mut extract)?;
    fs::remove_file(&image).with_context(|| format!("remove {}", image.display()))
}

/// Writes the files that Ironic's conductor would put into an image.
fn files(form: &Map<String, Value>, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (part, value) in form {
        let (name, content) = match (part.as_str(), value) {
            (_, Value::Null) => continue,
            ("user_data", Value::String(text)) => ("user_data", text.clone()),
            ("user_data", data) => ("user_data", data.to_string()),
            ("meta_data", data) => ("meta_data.json", data.to_string()),
            ("network_data", data) => ("network_data.json", data.to_string()),
            ("vendor_data", data) => ("vendor_data2.json", data.to_string()),
            (other, _) => bail!("a drive has no {other}"),
        };
        fs::write(folder.join(name), content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unpacked(drive: &Value, look: impl FnOnce(&Path)) -> Result<()> {
        let hash = &sh::sha256(drive.to_string().as_bytes())[..8];
        let folder = std::env::temp_dir().join(format!("drive-{}-{hash}", std::process::id()));
        let result = unpack(drive, &folder);
        look(&folder);
        fs::remove_dir_all(&folder)?;
        result
    }

    #[test]
    fn an_object_becomes_the_files_that_cloud_init_looks_for() {
        let drive = json!({
            "meta_data": {"uuid": "u"}, "network_data": null, "user_data": "#cloud-config\n{}",
            "vendor_data": {"cloud-init": "x"},
        });
        unpacked(&drive, |folder| {
            let read = |name: &str| fs::read_to_string(folder.join("openstack/latest").join(name));
            assert_eq!(read("meta_data.json").unwrap(), r#"{"uuid":"u"}"#);
            assert_eq!(read("user_data").unwrap(), "#cloud-config\n{}");
            assert_eq!(read("vendor_data2.json").unwrap(), r#"{"cloud-init":"x"}"#);
            assert!(read("network_data.json").is_err());
            assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        })
        .unwrap();
    }

    #[test]
    fn what_no_host_could_read_is_refused() {
        for (drive, cause) in [
            (json!("https://swift/drive"), "object store"),
            (json!("this is no image"), "bash"),
            (json!(["a"]), "neither"),
            (json!({"secrets": {}}), "no secrets"),
        ] {
            let error = unpacked(&drive, |_| {}).unwrap_err().to_string();
            assert!(error.contains(cause), "{error}");
        }
    }
}

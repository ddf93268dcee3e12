//! The pause image: one static program, packed here; the only image that is not pulled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::{paths, sh};

/// The name of the image in containerd.
pub(super) const IMAGE: &str = "localhost/pause:1";

/// Imports the image into containerd unless it has it.
pub(super) fn provide(ctr: impl Fn() -> Command) -> Result<()> {
    let listed = sh::run(ctr().args(["images", "ls", "-q"]))?;
    if listed.lines().any(|it| it == IMAGE) {
        return Ok(());
    }
    let archive = archive()?;
    sh::run(ctr().args(["images", "import"]).arg(&archive)).map(drop)
}

/// Returns the image as an OCI archive in the cache.
fn archive() -> Result<PathBuf> {
    let source = paths::repo().join("lab/images/pause/pause.c");
    let code = fs::read(&source).with_context(|| format!("read {}", source.display()))?;
    let folder = paths::cache().join("pause").join(&sh::sha256(&code)[..12]);
    let archive = folder.join("pause.tar");
    if archive.exists() {
        return Ok(archive);
    }
    let root = folder.join("root");
    let layout = folder.join("layout");
    fs::create_dir_all(&root)?;
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let program = root.join("pause");
    sh::run(Command::new("gcc").args(["-Os", "-static", "-s", "-o"]).arg(&program).arg(&source))?;
    let layer = folder.join("layer.tar");
    sh::run(tar(&layer, &root).arg("pause"))?;
    write_layout(&layout, &fs::read(&layer)?)?;
    // Renamed when complete, so that an interrupted run leaves no partial archive under the final
    // name.
    let fresh = folder.join("fresh.tar");
    sh::run(tar(&fresh, &layout).args(["oci-layout", "index.json", "blobs"]))?;
    fs::rename(&fresh, &archive)?;
    Ok(archive)
}

fn tar(archive: &Path, folder: &Path) -> Command {
    let mut command = Command::new("tar");
    command.args(["--create", "--owner=0", "--group=0", "--numeric-owner", "--file"]);
    command.arg(archive).arg("--directory").arg(folder);
    command
}

fn write_layout(layout: &Path, layer: &[u8]) -> Result<()> {
    let layer_blob = blob(layout, "application/vnd.oci.image.layer.v1.tar", layer)?;
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": { "Entrypoint": ["/pause"], "User": "65535:65535" },
        "rootfs": { "type": "layers", "diff_ids": [layer_blob["digest"]] },
    });
    let config = config.to_string();
    let config_blob = blob(layout, "application/vnd.oci.image.config.v1+json", config.as_bytes())?;
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": manifest_type,
        "config": config_blob,
        "layers": [layer_blob],
    });
    let mut entry = blob(layout, manifest_type, manifest.to_string().as_bytes())?;
    entry["annotations"] = json!({ "io.containerd.image.name": IMAGE });
    fs::write(layout.join("oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    let index = json!({ "schemaVersion": 2, "manifests": [entry] });
    fs::write(layout.join("index.json"), index.to_string()).context("write the index")
}

/// Stores a blob and returns its descriptor.
fn blob(layout: &Path, media_type: &str, content: &[u8]) -> Result<Value> {
    let digest = sh::sha256(content);
    fs::write(layout.join("blobs/sha256").join(&digest), content)?;
    Ok(json!({
        "mediaType": media_type,
        "digest": format!("sha256:{digest}"),
        "size": content.len(),
    }))
}

/// Returns the machine's architecture in OCI's terms.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_blob_of_the_layout_is_named_by_its_digest() {
        let layout = std::env::temp_dir().join(format!("layout-{}", std::process::id()));
        fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
        write_layout(&layout, b"layer").unwrap();
        let blobs: Vec<_> = fs::read_dir(layout.join("blobs/sha256")).unwrap().flatten().collect();
        assert_eq!(blobs.len(), 3);
        for it in blobs {
            assert_eq!(sh::sha256(&fs::read(it.path()).unwrap()), it.file_name().to_str().unwrap());
        }
        let index = fs::read_to_string(layout.join("index.json")).unwrap();
        assert!(index.contains(IMAGE), "{index}");
        fs::remove_dir_all(&layout).unwrap();
    }
}

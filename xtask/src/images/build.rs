//! Builds images with buildah in a separate storage, and pushes them to a registry.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::inputs::{Context, Extra};
use super::{Tree, inputs, sources};
use crate::{paths, sh};

/// buildah's storage, and the target registry.
pub(super) struct Store {
    root: PathBuf,
    registry: String,
    plain_http: bool,
}

impl Store {
    pub(super) fn open(registry: &str, plain_http: bool) -> Result<Self> {
        let root = paths::cache().join("images");
        fs::create_dir_all(&root)?;
        Ok(Self { root, registry: registry.trim_end_matches('/').to_owned(), plain_http })
    }

    /// Returns the reference of an image in the registry.
    pub(super) fn reference(&self, name: &str, tag: &str) -> String {
        format!("{}/edpm/{name}:{tag}", self.registry)
    }

    /// Whether the registry has the image.
    pub(super) fn is_pushed(&self, reference: &str) -> bool {
        let mut inspect = Command::new("skopeo");
        inspect.args(["inspect", "--raw", &self.tls()]).arg(format!("docker://{reference}"));
        sh::succeeds(&mut inspect)
    }

    /// Whether the image is in the storage.
    pub(super) fn has(&self, name: &str, tag: &str) -> bool {
        let mut inspect = self.buildah();
        sh::succeeds(inspect.args(["inspect", "--type", "image", &local(name, tag)]))
    }

    pub(super) fn push(&self, name: &str, tag: &str) -> Result<()> {
        let mut push = self.buildah();
        push.args(["push", "--quiet", &self.tls(), &local(name, tag)])
            .arg(format!("docker://{}", self.reference(name, tag)));
        sh::run(&mut push).map(drop)
    }

    /// Builds an image from its context on top of `parent`.
    ///
    /// # Guarantees
    ///
    /// Only a complete image has the name, because buildah tags at the end.
    pub(super) fn build(
        &self,
        tree: &Tree,
        (name, tag): (&str, &str),
        parent: Option<(&str, &str)>,
        context: &Context,
        extra: &[Extra],
    ) -> Result<()> {
        let staged = self.root.join("context").join(name);
        if staged.exists() {
            fs::remove_dir_all(&staged)?;
        }
        fs::create_dir_all(&staged)?;
        context.stage(&staged)?;
        let mut build = self.buildah();
        // Layers are cached, so that a change at the end of a Containerfile does not rebuild its
        // start.
        build.args(["build", "--quiet", "--isolation", "chroot", "--layers", "--format", "oci"]);
        if let Some((name, tag)) = parent {
            build.arg("--build-arg").arg(format!("BASE={}", local(name, tag)));
        }
        if extra.contains(&Extra::RootFs) {
            sources::root_file_system(&inputs::folder(tree, name), &staged.join("rootfs.tar"))?;
        }
        if extra.contains(&Extra::Wheels) {
            let wheels = sources::wheels(&inputs::folder(tree, name).join("requirements.lock"))?;
            build.arg("--volume").arg(format!("{}:/wheels:ro", wheels.display()));
        }
        sh::run(build.args(["--tag", &local(name, tag)]).arg(&staged))?;
        fs::remove_dir_all(&staged)?;
        self.forget_older(name, tag)
    }

    /// Removes older builds of the image; layers that are still in use stay.
    fn forget_older(&self, name: &str, tag: &str) -> Result<()> {
        let mut list = self.buildah();
        list.args(["images", "--noheading", "--format", "{{.Name}}:{{.Tag}}"]);
        let prefix = format!("localhost/edpm/{name}:");
        for old in sh::run(&mut list)?.lines().filter(|it| it.starts_with(&prefix)) {
            if old != local(name, tag) {
                sh::run(self.buildah().args(["rmi", old]))?;
            }
        }
        Ok(())
    }

    fn tls(&self) -> String {
        format!("--tls-verify={}", !self.plain_http)
    }

    fn buildah(&self) -> Command {
        let mut buildah = Command::new("buildah");
        // A separate storage: the machine's images and configuration have no effect.
        buildah.arg("--root").arg(self.root.join("storage"));
        buildah.args(["--runroot", "/run/edpm-images", "--storage-driver", "overlay"]);
        buildah
    }
}

fn local(name: &str, tag: &str) -> String {
    format!("localhost/edpm/{name}:{tag}")
}

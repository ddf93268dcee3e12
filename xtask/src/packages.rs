//! Installs Debian packages that this machine lacks.

use std::fs::File;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::sh;

/// Takes the lock for apt, which fails when it runs twice at once.
pub(crate) fn lock() -> Result<File> {
    sh::lock("packages")
}

/// Installs packages with the machine's package lists, or with updated ones if that fails.
pub(crate) fn install(missing: &[&str]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let _lock = lock()?;
    sh::step(&format!("install Debian packages: {}", missing.join(" ")), || {
        let install = || {
            let mut apt = Command::new("apt-get");
            apt.env("DEBIAN_FRONTEND", "noninteractive");
            apt.args(["-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends"]);
            sh::run(apt.args(missing))
        };
        if install().is_err() {
            sh::run(Command::new("apt-get").arg("update"))?;
            install()?;
        }
        Ok(())
    })
    .with_context(|| format!("install them with: apt-get install {}", missing.join(" ")))
}

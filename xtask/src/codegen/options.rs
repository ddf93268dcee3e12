//! `cargo xtask codegen options`: extracts the option schemas of nova releases from nova itself.
//!
//! Each release is installed from the Python index with the libraries of its time, so that the
//! command writes the same files at any later time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{paths, sh};

/// The directory of the packed schemas, from the root of the repository.
const FOLDER: &str = "crates/nova-config/data";
/// The installer: unlike pip, it can install packages as they were at a date.
const UV: &str = "uv==0.13.9";
/// The oldest Python that the newest nova supports, and the newest one that the oldest nova
/// supports.
const PYTHON: &str = "3.11";

/// A release of OpenStack.
struct Release {
    name: &'static str,
    /// The version of nova.
    nova: &'static str,
    /// The date of the libraries, two weeks after the release.
    libraries: &'static str,
}

/// The maintained releases, and the one that OpenStack's own operators run.
const RELEASES: [Release; 4] = [
    Release { name: "2023.1", nova: "27.5.1", libraries: "2023-06-01" },
    Release { name: "2025.2", nova: "32.2.1", libraries: "2025-10-15" },
    Release { name: "2026.1", nova: "33.0.2", libraries: "2026-04-15" },
    Release { name: "2026.2", nova: "34.0.0", libraries: "2026-10-15" },
];

/// Writes the schemas of all releases.
pub(super) fn write(root: &Path) -> Result<()> {
    let cache = paths::cache().join("nova-options");
    let uv = installer(&cache)?;
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder)?;
    for release in &RELEASES {
        let python = installed(&cache, &uv, release)?;
        let file = folder.join(format!("nova-options-{}.json.gz", release.name));
        let mut script = Command::new(python);
        script.arg(root.join("xtask/scripts/nova_options.py")).arg(release.name).arg(&file);
        sh::run(&mut script).with_context(|| format!("the options of nova {}", release.nova))?;
        println!("{}", file.display());
    }
    Ok(())
}

/// Returns the path of the installer, in its own virtual environment.
fn installer(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join(UV.replace("==", "-"));
    let uv = folder.join("bin/uv");
    if !uv.exists() {
        sh::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut pip = Command::new(folder.join("bin/pip"));
        sh::run(pip.args(["install", "--quiet", "--disable-pip-version-check", UV]))?;
    }
    Ok(uv)
}

/// Returns the Python interpreter with which a release of nova is installed.
fn installed(cache: &Path, uv: &Path, release: &Release) -> Result<PathBuf> {
    let Release { name, nova, libraries } = release;
    let folder = cache.join(format!("{name}-{nova}-{libraries}"));
    let (python, complete) = (folder.join("bin/python"), folder.join("complete"));
    if complete.exists() {
        return Ok(python);
    }
    sh::step(&format!("install nova {nova}"), || {
        let uv = || {
            let mut uv = Command::new(uv);
            // uv would otherwise download a Python from another site.
            uv.env("UV_PYTHON_DOWNLOADS", "never").env("UV_CACHE_DIR", cache.join("uv"));
            uv.arg("--quiet");
            uv
        };
        sh::run(uv().args(["venv", "--clear", "--python", PYTHON]).arg(&folder))?;
        let mut install = uv();
        install.args(["pip", "install", "--exclude-newer", libraries, "--exclude-newer-package"]);
        // Fixes of nova itself are newer than the release.
        install.arg("nova=2100-01-01").arg("--python").arg(&python);
        install.args([&format!("nova=={nova}"), "osprofiler", "setuptools<81"]);
        sh::run(&mut install)?;
        Ok(fs::write(&complete, "")?)
    })?;
    Ok(python)
}

#[cfg(test)]
mod tests {
    use nova_config::oslo::Release;
    use serde_json::Value;

    use super::{RELEASES, fs, paths};

    #[test]
    fn program_files_and_chart_name_the_same_releases() {
        let known: Vec<&str> = Release::all().map(Release::name).collect();
        let made: Vec<&str> = RELEASES.iter().map(|it| it.name).collect();
        assert_eq!(known, made);
        let chart = paths::repo().join(super::super::chart::CHART);
        let schema = fs::read_to_string(chart.join("values.schema.json")).unwrap();
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let offered = &schema["properties"]["nova"]["properties"]["release"]["enum"];
        assert_eq!(*offered, serde_json::json!(known));
        let values = fs::read_to_string(chart.join("values.yaml")).unwrap();
        let values: Value = api::yaml::from_str(&values).unwrap();
        let newest = Release::newest();
        assert_eq!(values["nova"]["release"], newest.name());
        // The lab's nova-compute has this version.
        let lock = paths::repo().join("lab/images/nova-compute/requirements.lock");
        let lock = fs::read_to_string(lock).unwrap();
        assert!(lock.contains(&format!("\nnova=={} ", newest.schema().nova())));
    }
}

//! Builds the lab's programs from the pinned Go modules, once per pin.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{paths, sh};

/// A Go module below `lab/go`, and what is built from it.
struct Tool {
    module: &'static str,
    /// What must exist afterwards.
    programs: &'static [&'static str],
    /// The package to build as the only program; all tools of the go.mod if empty.
    package: &'static str,
    tags: &'static str,
    /// Variables that carry the version, and the module whose version it is.
    versions: &'static [(&'static str, &'static str)],
    cgo: bool,
}

const TOOLS: &[Tool] = &[
    Tool {
        module: "kubernetes",
        programs: &[
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kube-proxy",
            "kubectl",
        ],
        package: "",
        tags: "",
        // Without these the kubelet reports v0.0.0.
        versions: &[
            ("k8s.io/component-base/version.gitVersion", "k8s.io/kubernetes"),
            ("k8s.io/client-go/pkg/version.gitVersion", "k8s.io/kubernetes"),
        ],
        cgo: false,
    },
    Tool {
        module: "etcd",
        programs: &["etcd"],
        package: "go.etcd.io/etcd/server/v3",
        tags: "",
        versions: &[],
        cgo: false,
    },
    Tool {
        module: "containerd",
        programs: &[
            "containerd",
            "containerd-shim-runc-v2",
            "ctr",
            "bridge",
            "host-local",
            "loopback",
        ],
        package: "",
        tags: "no_btrfs",
        versions: &[(
            "github.com/containerd/containerd/v2/version.Version",
            "github.com/containerd/containerd/v2",
        )],
        cgo: false,
    },
    Tool {
        module: "runc",
        programs: &["runc"],
        package: "github.com/opencontainers/runc",
        // The restricted Pod Security level requires seccomp, which needs libseccomp.
        tags: "seccomp",
        versions: &[],
        cgo: true,
    },
    Tool {
        module: "registry",
        programs: &["registry"],
        package: "",
        tags: "",
        versions: &[],
        cgo: false,
    },
    Tool {
        module: "helm",
        programs: &["helm"],
        package: "",
        tags: "",
        versions: &[("helm.sh/helm/v4/internal/version.version", "helm.sh/helm/v4")],
        cgo: false,
    },
    Tool {
        module: CERT_MANAGER,
        programs: &[CERT_MANAGER],
        package: ".",
        tags: "",
        versions: &[],
        cgo: false,
    },
];

/// The module that is built only on request.
const CERT_MANAGER: &str = "cert-manager";

/// Builds what the cache lacks and links all programs that every lab needs into `bin`.
pub(super) fn provide(bin: &Path) -> Result<()> {
    provide_of(bin, |it| it != CERT_MANAGER)
}

/// Builds cert-manager if the cache lacks it, links it into `bin`, and returns the directory of its
/// CustomResourceDefinitions.
pub(super) fn cert_manager(bin: &Path) -> Result<PathBuf> {
    provide_of(bin, |it| it == CERT_MANAGER)?;
    let mut list = Command::new("go");
    list.current_dir(paths::repo().join("lab/go").join(CERT_MANAGER));
    list.args(["list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager"]);
    Ok(Path::new(sh::run(&mut list)?.trim()).join("deploy/crds"))
}

/// Returns the directory of the programs for a simulated cluster; builds what the cache lacks.
pub(super) fn simulation() -> Result<PathBuf> {
    let bin = paths::cache().join("sim/bin");
    provide_of(&bin, |it| ["kubernetes", "etcd", "helm"].contains(&it))?;
    Ok(bin)
}

/// Does the same for some modules only.
fn provide_of(bin: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<()> {
    // The lab and the simulated cluster may build at the same time.
    let _lock = sh::lock("programs")?;
    fs::create_dir_all(bin)?;
    for tool in TOOLS.iter().filter(|it| is_wanted(it.module)) {
        let folder = tool.folder()?;
        if !tool.programs.iter().all(|it| folder.join(it).is_file()) {
            sh::step(&format!("build {} from source", tool.module), || tool.build(&folder))?;
        }
        for program in tool.programs {
            link(&folder.join(program), &bin.join(program))?;
        }
    }
    Ok(())
}

impl Tool {
    fn source(&self) -> PathBuf {
        paths::repo().join("lab/go").join(self.module)
    }

    /// Returns the directory in the cache; it depends on the pins and the build recipe.
    fn folder(&self) -> Result<PathBuf> {
        let source = self.source();
        let mut inputs = Vec::new();
        let own = (self.package == ".").then_some("main.go");
        for file in ["go.mod", "go.sum"].into_iter().chain(own) {
            let path = source.join(file);
            inputs.extend(fs::read(&path).with_context(|| format!("read {}", path.display()))?);
        }
        let recipe = format!("{:?}{:?}{}{}", self.package, self.versions, self.tags, self.cgo);
        inputs.extend(recipe.into_bytes());
        let key = &sh::sha256(&inputs)[..12];
        Ok(paths::cache().join("bin").join(format!("{}-{key}", self.module)))
    }

    /// Builds the programs.
    ///
    /// # Guarantees
    ///
    /// The directory exists under its final name only when all programs are complete.
    fn build(&self, folder: &Path) -> Result<()> {
        let fresh = folder.with_extension("new");
        if fresh.exists() {
            fs::remove_dir_all(&fresh)?;
        }
        fs::create_dir_all(&fresh)?;
        let manifest = fs::read_to_string(self.source().join("go.mod"))?;
        sh::run(&mut self.go_build(&manifest, &fresh)?)?;
        for program in self.programs {
            if !fresh.join(program).is_file() {
                bail!("go build gave no {program}");
            }
        }
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::rename(&fresh, folder).context("put the programs into the cache")
    }

    fn go_build(&self, manifest: &str, output: &Path) -> Result<Command> {
        let mut flags = String::from("-s -w");
        for (variable, module) in self.versions {
            let version = required_version(manifest, module)
                .with_context(|| format!("{}/go.mod does not require {module}", self.module))?;
            flags.extend([" -X ", variable, "=", version]);
        }
        let (output, package) = match (self.package, self.programs) {
            ("", _) => (output.to_path_buf(), "tool"),
            (package, [program]) => (output.join(program), package),
            (package, _) => bail!("{package} cannot be several programs"),
        };
        let mut command = Command::new("go");
        command
            .current_dir(self.source())
            .env("CGO_ENABLED", if self.cgo { "1" } else { "0" })
            .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false"])
            .args(["-tags", self.tags, "-ldflags", &flags, "-o"])
            .arg(output)
            .arg(package);
        Ok(command)
    }
}

/// Returns the version of `module` in a go.mod.
fn required_version<'a>(manifest: &'a str, module: &str) -> Option<&'a str> {
    manifest.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        (words.next() == Some(module)).then(|| words.next()).flatten()
    })
}

/// Makes `link` point to `target`, replacing what was there.
pub(super) fn link(target: &Path, link: &Path) -> Result<()> {
    if fs::read_link(link).is_ok_and(|old| old == target) {
        return Ok(());
    }
    if link.symlink_metadata().is_ok() {
        fs::remove_file(link)?;
    }
    symlink(target, link).with_context(|| format!("link {}", link.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_go_mod() {
        let manifest = "require a.b/c v1.2.3\nrequire (\n\tx.y/z/v2 v2.0.0 // indirect\n)\n";
        assert_eq!(required_version(manifest, "a.b/c"), Some("v1.2.3"));
        assert_eq!(required_version(manifest, "x.y/z/v2"), Some("v2.0.0"));
        assert_eq!(required_version(manifest, "x.y/z"), None);
    }

    #[test]
    fn each_tool_is_pinned_and_its_build_is_defined() {
        for tool in TOOLS {
            let manifest = fs::read_to_string(tool.source().join("go.mod")).unwrap();
            let command = tool.go_build(&manifest, Path::new("/tmp")).unwrap();
            assert!(tool.folder().unwrap().ends_with(tool.folder().unwrap()), "{command:?}");
        }
    }

    #[test]
    fn a_link_is_replaced_when_its_target_moves() {
        let folder = std::env::temp_dir().join(format!("link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let at = folder.join("it");
        for target in ["/one", "/two", "/two"] {
            link(Path::new(target), &at).unwrap();
            assert_eq!(fs::read_link(&at).unwrap(), Path::new(target));
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}

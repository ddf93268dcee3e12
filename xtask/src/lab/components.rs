//! The processes of the lab: how each is started, and how its health is checked.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::health::Health;
use super::process::Process;
use super::{ADDRESS, Env, NODE, REGISTRY};
use crate::{machines, sh};

/// The timeout until a part is healthy on a busy machine.
const HEALTHY_WITHIN: Duration = Duration::from_mins(15);

/// Where cert-manager answers whether it runs.
const CERT_MANAGER: &str = "127.0.0.1:9403";

/// The recipe in the record of a process that is being stopped.
const ENDING: &str = "ending";

/// One process of the lab.
pub(super) struct Part {
    pub(super) name: &'static str,
    args: Vec<String>,
    /// Files in the state directory that it reads at its start; a change restarts it.
    reads: &'static [&'static str],
    health: Health,
    /// Whether it runs only on request.
    is_optional: bool,
    /// The time after which it is killed.
    grace: Duration,
}

/// The observed state of a part.
pub(super) struct Seen {
    /// Its process, if it runs.
    pub(super) pid: Option<u32>,
    /// Why it is not healthy; `None` when it is.
    pub(super) trouble: Option<String>,
}

/// Returns etcd, the registry and containerd, which need only the network.
pub(super) fn ground(state: &Path) -> Vec<Part> {
    let at = |it: &str| state.join(it).display().to_string();
    vec![
        Part {
            name: "registry",
            args: vec!["serve".to_owned(), at("registry.yaml")],
            reads: &["registry.yaml"],
            health: Health::Http(REGISTRY, "/v2/"),
            is_optional: false,
            grace: Duration::from_secs(5),
        },
        Part {
            name: "etcd",
            args: flags(&[
                ("data-dir", &at("etcd")),
                ("listen-client-urls", "http://127.0.0.1:2379"),
                ("advertise-client-urls", "http://127.0.0.1:2379"),
                ("listen-peer-urls", "http://127.0.0.1:2380"),
            ]),
            reads: &[],
            health: Health::Http("127.0.0.1:2379", "/readyz"),
            is_optional: false,
            grace: Duration::from_secs(10),
        },
        Part {
            name: "containerd",
            args: flags(&[("config", &at("containerd.toml"))]),
            reads: &["containerd.toml"],
            health: Health::Containerd,
            is_optional: false,
            grace: Duration::from_secs(10),
        },
    ]
}

/// Returns the API server; all other parts connect to it.
pub(super) fn api_server(state: &Path) -> Part {
    let at = |it: &str| state.join(it).display().to_string();
    Part {
        name: "kube-apiserver",
        args: flags(&[
            ("etcd-servers", "http://127.0.0.1:2379"),
            ("bind-address", "0.0.0.0"),
            ("secure-port", "6443"),
            ("advertise-address", ADDRESS),
            ("service-cluster-ip-range", super::SERVICES),
            ("authorization-mode", "Node,RBAC"),
            ("enable-admission-plugins", "NodeRestriction"),
            ("allow-privileged", "true"),
            ("client-ca-file", &at("pki/ca.crt")),
            ("tls-cert-file", &at("pki/apiserver.crt")),
            ("tls-private-key-file", &at("pki/apiserver.key")),
            ("service-account-issuer", "https://kubernetes.default.svc"),
            ("service-account-key-file", &at("pki/service-accounts.pub")),
            ("service-account-signing-key-file", &at("pki/service-accounts.key")),
            // Without it `logs` and `exec` resolve the node's name by DNS.
            ("kubelet-preferred-address-types", "InternalIP"),
            ("kubelet-certificate-authority", &at("pki/ca.crt")),
            ("kubelet-client-certificate", &at("pki/apiserver-kubelet.crt")),
            ("kubelet-client-key", &at("pki/apiserver-kubelet.key")),
            ("audit-policy-file", &at("audit-policy.yaml")),
            ("audit-log-path", &at("audit/audit.log")),
            ("audit-log-maxsize", "200"),
            ("audit-log-maxbackup", "4"),
        ]),
        reads: &["audit-policy.yaml", "pki/ca.crt"],
        health: Health::ApiServer,
        is_optional: false,
        // It has no state of its own, but waits a minute for open requests.
        grace: Duration::from_secs(3),
    }
}

/// Returns the parts that connect to the API server.
pub(super) fn workers(state: &Path) -> Vec<Part> {
    let at = |it: &str| state.join(it).display().to_string();
    vec![
        Part {
            name: "kube-controller-manager",
            args: flags(&[
                ("kubeconfig", &at("kubeconfig/controller-manager")),
                ("bind-address", "127.0.0.1"),
                ("leader-elect", "false"),
                ("use-service-account-credentials", "true"),
                ("service-account-private-key-file", &at("pki/service-accounts.key")),
                ("root-ca-file", &at("pki/ca.crt")),
                ("cluster-signing-cert-file", &at("pki/ca.crt")),
                ("cluster-signing-key-file", &at("pki/ca.key")),
            ]),
            reads: &["pki/ca.crt"],
            health: Health::Https("127.0.0.1:10257"),
            is_optional: false,
            grace: Duration::from_secs(5),
        },
        Part {
            name: "kube-scheduler",
            args: flags(&[
                ("kubeconfig", &at("kubeconfig/scheduler")),
                ("bind-address", "127.0.0.1"),
                ("leader-elect", "false"),
            ]),
            reads: &["pki/ca.crt"],
            health: Health::Https("127.0.0.1:10259"),
            is_optional: false,
            grace: Duration::from_secs(5),
        },
        Part {
            name: "kubelet",
            args: flags(&[
                ("config", &at("kubelet.yaml")),
                ("kubeconfig", &at("kubeconfig/kubelet")),
                ("hostname-override", NODE),
                ("node-ip", ADDRESS),
                ("root-dir", &at("kubelet")),
                ("cert-dir", &at("pki")),
            ]),
            reads: &["kubelet.yaml", "pki/ca.crt"],
            health: Health::Kubelet,
            is_optional: false,
            grace: Duration::from_secs(10),
        },
        Part {
            name: "kube-proxy",
            args: flags(&[("config", &at("proxy.yaml"))]),
            reads: &["proxy.yaml", "pki/ca.crt"],
            health: Health::Http("127.0.0.1:10256", "/healthz"),
            is_optional: false,
            grace: Duration::from_secs(5),
        },
    ]
}

/// Returns the process that runs Ironic's machines, booted from `image`.
pub(super) fn machines(image: &str) -> Part {
    Part {
        name: "machines",
        args: ["lab", "machines", "--image", image].map(String::from).into(),
        reads: &["machines.sha256"],
        health: Health::Recent(machines::LOOKED),
        is_optional: true,
        grace: Duration::from_secs(5),
    }
}

/// Returns cert-manager.
pub(super) fn cert_manager(state: &Path) -> Part {
    let kubeconfig = state.join("kubeconfig/admin").display().to_string();
    Part {
        name: "cert-manager",
        args: flags(&[("kubeconfig", &kubeconfig), ("health", CERT_MANAGER)]),
        reads: &["pki/ca.crt"],
        health: Health::Http(CERT_MANAGER, "/livez"),
        is_optional: true,
        grace: Duration::from_secs(5),
    }
}

/// Returns all parts in the order of their start.
pub(super) fn all(state: &Path) -> Vec<Part> {
    let mut parts = ground(state);
    parts.push(api_server(state));
    parts.extend(workers(state));
    parts.push(cert_manager(state));
    parts.push(machines(""));
    parts
}

fn flags(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

impl Part {
    /// Starts it unless it runs with the same recipe; returns whether it was started.
    pub(super) fn start(&self, env: &Env, state: &Path) -> Result<bool> {
        let recipe = self.recipe(env, state)?;
        if let Some(process) = self.find(state) {
            if process.recipe == recipe {
                return Ok(false);
            }
            self.end(&process, state)?;
        }
        let mut command = Command::new(env.bin.join(self.name));
        command.args(&self.args);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = vec![env.bin.clone()];
        folders.extend(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders)?);
        // The registry would otherwise send traces to a collector that does not exist.
        command.env("OTEL_TRACES_EXPORTER", "none");
        Process::start(&command, &recipe, &self.record(state), &self.log(state))?;
        Ok(true)
    }

    /// Waits until it is healthy; fails at once if it ends.
    pub(super) fn wait(&self, env: &Env, state: &Path) -> Result<()> {
        sh::wait_for(self.name, HEALTHY_WITHIN, || {
            if self.find(state).is_none() {
                let log = std::fs::read(self.log(state)).unwrap_or_default();
                let said = sh::tail(&String::from_utf8_lossy(&log), 15);
                return Ok(Err(anyhow!("{} ended; its log says:\n{said}", self.name)));
            }
            self.health.check(env).map(Ok)
        })?
    }

    /// Ends it if it runs.
    pub(super) fn stop(&self, state: &Path) -> Result<()> {
        if let Some(process) = self.find(state) {
            self.end(&process, state)?;
        }
        Ok(())
    }

    /// Ends it. The record is marked first, so that a process that is still ending does not count
    /// as running.
    fn end(&self, process: &Process, state: &Path) -> Result<()> {
        process.remember(&self.record(state), ENDING)?;
        process.stop(self.grace).with_context(|| format!("stop {}", self.name))
    }

    /// Checks it once.
    pub(super) fn look(&self, env: &Env, state: &Path) -> Seen {
        let Some(process) = self.find(state) else {
            return Seen { pid: None, trouble: Some("does not run".to_owned()) };
        };
        let trouble = self.health.check(env).err().map(|it| sh::tail(&format!("{it:#}"), 1));
        Seen { pid: Some(process.pid), trouble }
    }

    /// Whether it should run: always, or since it was requested.
    pub(super) fn is_expected(&self, state: &Path) -> bool {
        !self.is_optional || self.record(state).exists()
    }

    /// Returns the PID of its process, healthy or not.
    pub(super) fn pid(&self, state: &Path) -> Option<u32> {
        self.find(state).map(|it| it.pid)
    }

    fn find(&self, state: &Path) -> Option<Process> {
        Process::find(&self.record(state))
    }

    fn record(&self, state: &Path) -> PathBuf {
        state.join("run").join(format!("{}.json", self.name))
    }

    fn log(&self, state: &Path) -> PathBuf {
        state.join("log").join(format!("{}.log", self.name))
    }

    /// Returns a digest of the program, its arguments and the files that it reads.
    fn recipe(&self, env: &Env, state: &Path) -> Result<String> {
        let program = std::fs::canonicalize(env.bin.join(self.name))
            .with_context(|| format!("find {}", self.name))?;
        let mut recipe = format!("{}\n{}\n", program.display(), self.args.join("\n"));
        for file in self.reads {
            recipe += &std::fs::read_to_string(state.join(file))
                .with_context(|| format!("{} reads {file}", self.name))?;
        }
        Ok(sh::sha256(recipe.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_server_is_started_after_its_store_and_before_its_clients() {
        let names: Vec<_> = all(Path::new("/s")).iter().map(|it| it.name).collect();
        let place = |name| names.iter().position(|it| *it == name).unwrap();
        assert!(place("etcd") < place("kube-apiserver"));
        assert!(place("kube-apiserver") < place("kubelet"));
        assert!(place("containerd") < place("kubelet"));
    }

    #[test]
    fn flags_are_written_with_an_equals_sign() {
        assert_eq!(flags(&[("a", "b"), ("c", "d")]), ["--a=b", "--c=d"]);
    }
}

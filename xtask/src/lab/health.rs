//! Health checks of the lab's parts: each makes a request that only a working part can answer.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::{Env, NODE};
use crate::{paths, sh};

/// The health check of a part.
pub(super) enum Health {
    Http(&'static str, &'static str),
    /// A server with a self-signed certificate.
    Https(&'static str),
    ApiServer,
    Containerd,
    Kubelet,
    /// A file in the lab's state directory that is rewritten periodically.
    Recent(&'static str),
}

/// The maximum age of such a file on a busy machine.
const RECENT: Duration = Duration::from_secs(30);

impl Health {
    /// Checks once.
    pub(super) fn check(&self, env: &Env) -> Result<()> {
        match self {
            Self::Http(address, path) => sh::http_get(address, path).map(drop),
            Self::Https(address) => {
                // Without credentials kubectl prompts the user for them.
                let pki = paths::state().join("pki");
                let mut probe = Command::new(env.bin.join("kubectl"));
                probe.args(["--kubeconfig=/dev/null", "--insecure-skip-tls-verify"]);
                probe.arg("--client-certificate").arg(pki.join("admin.crt"));
                probe.arg("--client-key").arg(pki.join("admin.key"));
                probe.args(["--server", &format!("https://{address}")]);
                sh::run(get(probe).args(["--raw", "/healthz"])).map(drop)
            }
            Self::ApiServer => sh::run(get(env.kubectl()).args(["--raw", "/readyz"])).map(drop),
            Self::Containerd => sh::run(env.ctr().arg("version")).map(drop),
            Self::Kubelet => {
                sh::http_get("127.0.0.1:10248", "/healthz")?;
                let ready = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
                let ready = sh::run(get(env.kubectl()).args(["node", NODE, "-o", ready]))?;
                if ready != "True" {
                    bail!("the node is not Ready: {ready:?}");
                }
                Ok(())
            }
            Self::Recent(file) => {
                let file = paths::state().join(file);
                let written = file.metadata().and_then(|it| it.modified());
                let age =
                    written.with_context(|| format!("look at {}", file.display()))?.elapsed()?;
                if age > RECENT {
                    bail!("{} was written {} s ago", file.display(), age.as_secs());
                }
                Ok(())
            }
        }
    }
}

/// Returns a `get` with a short timeout: a server without etcd would not respond.
fn get(mut kubectl: Command) -> Command {
    kubectl.args(["--request-timeout=5s", "get"]);
    kubectl
}

//! What a demo shows: which hosts in which cells, from which example, and how the hosts come to be.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::hosts::{self, HOSTS, Host};
use crate::{bare_metal, controlplane, demo, images, lab, paths, sh};

/// A host, and the cell that its compute is to register in.
pub(crate) struct Placed {
    pub(crate) host: Host,
    pub(crate) cell: &'static str,
}

/// One demo.
pub(crate) struct Scene {
    pub(crate) hosts: [Placed; 2],
    /// The role that a human looks at first.
    pub(super) role: &'static str,
    /// The command that shows it.
    pub(super) command: &'static str,
    /// The folder of its example.
    pub(super) example: &'static str,
    report: &'static str,
    /// Machines of Ironic of which the hosts are made; none where the lab starts the hosts.
    enrolled: &'static [&'static str],
}

/// The main job: hosts that have an operating system.
pub(crate) const MAIN: Scene = Scene {
    hosts: [
        Placed { host: HOSTS[0], cell: "nova-cell1" },
        Placed { host: HOSTS[1], cell: "nova-cell2" },
    ],
    role: "edpm-compute",
    command: "cargo xtask demo",
    example: "examples/seed-002",
    report: "report",
    enrolled: &[],
};

/// The same from empty machines, which Ironic deploys.
pub(crate) const BARE_METAL: Scene = Scene {
    hosts: [
        Placed {
            host: Host { name: "edpm-compute-10", address: "192.168.122.110" },
            cell: "nova-cell1",
        },
        Placed {
            host: Host { name: "edpm-compute-11", address: "192.168.122.111" },
            cell: "nova-cell2",
        },
    ],
    role: "edpm-compute-bare-metal",
    command: "cargo xtask demo --baremetal",
    example: "examples/bare-metal",
    report: "bare-metal",
    enrolled: &["rack1-u1", "rack1-u2"],
};

impl Scene {
    /// Where what it found is kept.
    pub(super) fn report(&self) -> PathBuf {
        paths::target().join("demo").join(self.report).with_extension("json")
    }

    /// Whether the hosts are provisioned by us.
    pub(super) fn is_bare_metal(&self) -> bool {
        !self.enrolled.is_empty()
    }

    /// Starts the hosts, or enrolls the machines that are to become them.
    pub(super) fn prepare(&self, env: &lab::Env, images: &images::Set) -> Result<()> {
        if !self.is_bare_metal() {
            return hosts::up(env, images.reference("edpm-host")?);
        }
        bare_metal::up(env)?;
        sh::step("enroll two machines", || bare_metal::enroll(env, self.enrolled))?;
        hosts::open_to_us(env, "bare-metal-ssh", controlplane::NAMESPACE)
    }

    /// Learns the hosts' keys, where nobody but the hosts themselves made them.
    pub(super) fn meet(&self, env: &lab::Env) -> Result<()> {
        for (host, machine) in self.machines(env)? {
            let pod = format!("machine-{}", word(&machine, "name"));
            hosts::learn_key(env, host, &pod)?;
        }
        Ok(())
    }

    /// The hosts with their machines, as Ironic describes them; nothing where there are none.
    pub(super) fn machines(&self, env: &lab::Env) -> Result<Vec<(&Host, Value)>> {
        if !self.is_bare_metal() {
            return Ok(Vec::new());
        }
        // A set has the name of the role that it is made for.
        let set = demo::get(env, controlplane::NAMESPACE, "openstackbaremetalset", self.role)?;
        let mut machines = Vec::new();
        for Placed { host, .. } in &self.hosts {
            let uuid = set["status"]["baremetalHosts"][host.name]["bmhRef"].as_str();
            let uuid = uuid.with_context(|| format!("{} has no machine", host.name))?;
            machines.push((host, bare_metal::node(env, uuid)?));
        }
        Ok(machines)
    }
}

fn word<'a>(node: &'a Value, field: &str) -> &'a str {
    node[field].as_str().unwrap_or_default()
}

//! The scenes of the demo: hosts and their cells, the example, and how the hosts are created.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::hosts::{self, HOSTS, Host, THIRD};
use crate::{bare_metal, controlplane, demo, guests, images, lab, paths, sh};

/// A host, and what its compute is configured with.
pub(crate) struct Placed {
    pub(crate) host: Host,
    pub(crate) cell: &'static str,
    /// The CPU model that its guests see.
    pub(crate) cpu_model: &'static str,
}

/// What a scene has besides the main job.
enum Besides {
    Nothing,
    /// The Ironic machines that become the hosts.
    Machines(&'static [&'static str]),
    /// A network between the hosts, and guests on them.
    Guests,
}

/// One variant of the demo.
pub(crate) struct Scene {
    pub(crate) hosts: &'static [Placed],
    /// The role of the hosts, for the summary.
    pub(super) role: &'static str,
    /// The command that runs it.
    pub(super) command: &'static str,
    /// The directory of its example.
    pub(super) example: &'static str,
    report: &'static str,
    besides: Besides,
}

/// The main job, on hosts that have an operating system.
pub(crate) const MAIN: Scene = Scene {
    hosts: &[
        Placed { host: HOSTS[0], cell: "nova-cell1", cpu_model: "Nehalem" },
        Placed { host: HOSTS[1], cell: "nova-cell2", cpu_model: "Nehalem" },
    ],
    role: "edpm-compute",
    command: "cargo xtask demo",
    example: "examples/seed-002",
    report: "report",
    besides: Besides::Nothing,
};

/// The main job with a third host and guests: those of the first cell move between its two hosts.
pub(crate) const GUESTS: Scene = Scene {
    hosts: &[
        Placed { host: HOSTS[0], cell: "nova-cell1", cpu_model: "Nehalem" },
        Placed { host: HOSTS[1], cell: "nova-cell2", cpu_model: "Westmere" },
        Placed { host: THIRD, cell: "nova-cell1", cpu_model: "Nehalem" },
    ],
    role: "edpm-compute",
    command: "cargo xtask demo --guests",
    example: "examples/guests",
    report: "guests",
    besides: Besides::Guests,
};

/// The same with empty machines, which Ironic deploys.
pub(crate) const BARE_METAL: Scene = Scene {
    hosts: &[
        Placed {
            host: Host { name: "edpm-compute-10", address: "192.168.122.110" },
            cell: "nova-cell1",
            cpu_model: "Nehalem",
        },
        Placed {
            host: Host { name: "edpm-compute-11", address: "192.168.122.111" },
            cell: "nova-cell2",
            cpu_model: "Nehalem",
        },
    ],
    role: "edpm-compute-bare-metal",
    command: "cargo xtask demo --baremetal",
    example: "examples/bare-metal",
    report: "bare-metal",
    besides: Besides::Machines(&["rack1-u1", "rack1-u2"]),
};

impl Scene {
    /// Returns the path of its report.
    pub(super) fn report(&self) -> PathBuf {
        paths::target().join("demo").join(self.report).with_extension("json")
    }

    /// Whether the operators provision the hosts.
    pub(super) fn is_bare_metal(&self) -> bool {
        matches!(self.besides, Besides::Machines(_))
    }

    /// Whether guests are booted on the hosts.
    pub(super) fn has_guests(&self) -> bool {
        matches!(self.besides, Besides::Guests)
    }

    /// Builds and pushes the images that it needs.
    pub(super) fn images(&self, env: &lab::Env) -> Result<images::Set> {
        let images = images::for_cluster(env)?;
        if !self.has_guests() {
            return Ok(images);
        }
        Ok(images.and(images::for_guests(env)?))
    }

    /// Starts the hosts, or enrolls the machines for them.
    pub(super) fn prepare(&self, env: &lab::Env, images: &images::Set) -> Result<()> {
        if let Besides::Machines(names) = self.besides {
            bare_metal::up(env)?;
            sh::step("enroll two machines", || bare_metal::enroll(env, names))?;
            return hosts::open_to_us(env, "bare-metal-ssh", controlplane::NAMESPACE);
        }
        let hosts: Vec<Host> = self.hosts.iter().map(|it| it.host).collect();
        hosts::start(env, images.reference("edpm-host")?, &hosts, controlplane::NAMESPACE)?;
        if self.has_guests() {
            hosts::join_tenant_network(&hosts)?;
            guests::up(env)?;
        }
        Ok(())
    }

    /// Reads the host keys of hosts that generated them themselves.
    pub(super) fn meet(&self, env: &lab::Env) -> Result<()> {
        for (host, machine) in self.machines(env)? {
            let pod = format!("machine-{}", word(&machine, "name"));
            hosts::learn_key(env, host, &pod)?;
        }
        Ok(())
    }

    /// Returns the hosts with their Ironic nodes; empty if the lab starts the hosts.
    pub(super) fn machines(&self, env: &lab::Env) -> Result<Vec<(&Host, Value)>> {
        if !self.is_bare_metal() {
            return Ok(Vec::new());
        }
        // A set of machines has the name of its role.
        let set = demo::get(env, controlplane::NAMESPACE, "openstackbaremetalset", self.role)?;
        let mut machines = Vec::new();
        for Placed { host, .. } in self.hosts {
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

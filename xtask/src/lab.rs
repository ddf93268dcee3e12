//! A real Kubernetes on this machine, from pinned Go modules, without traffic to other machines.

mod build;
mod check;
mod clean;
mod components;
mod config;
mod health;
mod network;
mod pause;
mod pki;
pub(crate) mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
pub(crate) use config::AUDIT_POLICY;

use crate::{bare_metal, guests, machines, paths, sh};

/// The address of the node, the API server and the registry on the lab's bridge.
pub(crate) const ADDRESS: &str = "192.168.120.1";
/// The registry in image references.
pub(crate) const REGISTRY: &str = "192.168.120.1:5000";
/// The name of the only node.
pub(crate) const NODE: &str = "lab";
const BRIDGE: &str = "edpm0";
const NETWORK: &str = "192.168.120.0/21";
const SERVICES: &str = "10.96.0.0/16";
const ACCOUNTS_WITHIN: Duration = Duration::from_mins(10);

/// What to do with the lab.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Start the lab, or whatever of it is not running.
    Up,
    /// Stop the lab and leave nothing of it on the machine.
    Down,
    /// Print each part with its health; fails if one is down.
    Status,
    /// Start Ironic, and what makes machines of its nodes; the control plane must run.
    BareMetal,
    /// Start what guests need: glance, OVN, neutron and more; the control plane must run.
    Guests,
    /// What makes machines of Ironic's nodes: one of the lab's parts.
    #[command(hide = true)]
    Machines {
        /// The image that they boot.
        #[arg(long)]
        image: String,
    },
}

/// Access data of a cluster: the lab, or an existing one.
#[derive(Clone)]
pub(crate) struct Env {
    /// The administrator's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// The directory of the lab's programs (kubectl, helm, ctr, …); empty for those in PATH.
    pub(crate) bin: PathBuf,
    /// The registry in image references.
    pub(crate) registry: String,
    /// Whether the registry speaks plain HTTP.
    pub(crate) plain_http: bool,
    /// The API server's audit log, with rotated ones beside it. Empty when unknown.
    pub(crate) audit_log: PathBuf,
}

impl Env {
    /// Returns an existing cluster whose images come from `registry`.
    pub(crate) fn existing(kubeconfig: PathBuf, registry: &str, plain_http: bool) -> Self {
        Self {
            kubeconfig,
            bin: PathBuf::new(),
            registry: registry.to_owned(),
            plain_http,
            audit_log: PathBuf::new(),
        }
    }

    /// Whether this is the lab.
    pub(crate) fn is_lab(&self) -> bool {
        !self.bin.as_os_str().is_empty()
    }

    /// Returns a command for a program, with the kubeconfig in the environment.
    pub(crate) fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// Returns a command for `kubectl` as the administrator.
    pub(crate) fn kubectl(&self) -> Command {
        self.tool("kubectl")
    }

    /// Returns a command for `ctr` in the namespace of the pods.
    pub(crate) fn ctr(&self) -> Command {
        let mut command = self.tool("ctr");
        command.arg("--address").arg(paths::state().join("containerd/containerd.sock"));
        command.args(["--namespace", "k8s.io"]);
        command
    }
}

/// Returns the access data of the lab, whether it runs or not.
pub(crate) fn env() -> Env {
    let state = paths::state();
    Env {
        kubeconfig: state.join("kubeconfig/admin"),
        bin: state.join("bin"),
        registry: REGISTRY.to_owned(),
        plain_http: true,
        audit_log: state.join("audit/audit.log"),
    }
}

/// Returns the directory of the programs for a simulated cluster, built like the lab's own.
pub(crate) fn simulation_programs() -> Result<PathBuf> {
    build::simulation()
}

/// Runs one of the lab's commands.
pub(crate) fn main(args: &Args) -> Result<()> {
    match &args.action {
        Action::Up => up().map(drop),
        Action::Down => {
            check::root()?;
            let _lock = sh::lock("lab")?;
            clean::down()
        }
        Action::Status => status(),
        Action::BareMetal => {
            check::root()?;
            bare_metal::up(&env())
        }
        Action::Guests => {
            check::root()?;
            guests::up(&env())
        }
        Action::Machines { image } => machines::run(image),
    }
}

/// Starts the lab, or whatever of it is not running, and waits until it is ready.
///
/// # Guarantees
/// A running lab is not disturbed; what an interrupted start left is completed.
pub(crate) fn up() -> Result<Env> {
    let start = Instant::now();
    check::root()?;
    let _lock = sh::lock("lab")?;
    let state = paths::state();
    let env = env();
    forget_what_ended(&state)?;
    clean::end_orphans(&state)?;
    check::preconditions(&running(&state))?;
    prepare(&env, &state)?;
    start_parts(&env, &state)?;
    println!("the lab is up ({:.1} s): {REGISTRY}, node {NODE}", start.elapsed().as_secs_f64());
    println!("  export KUBECONFIG={}", paths::target().join("lab/kubeconfig").display());
    println!("  export PATH={}:$PATH", paths::target().join("lab/bin").display());
    Ok(env)
}

/// Removes what is left of a lab that was ended from outside, by a reboot or by killing its
/// processes: its hosts would continue with a /run that a real machine loses when it starts.
fn forget_what_ended(state: &Path) -> Result<()> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let file = state.join("boot");
    if fs::read_to_string(&file).is_ok_and(|it| it != boot || running(state).is_empty()) {
        println!("the lab was ended from outside since it ran: starting from nothing");
        clean::down()?;
    }
    sh::write_if_changed(&file, &boot).map(drop)
}

fn running(state: &Path) -> Vec<&'static str> {
    components::all(state).iter().filter(|it| it.pid(state).is_some()).map(|it| it.name).collect()
}

/// Prepares everything before the first process starts.
fn prepare(env: &Env, state: &Path) -> Result<()> {
    for folder in ["run", "log", "audit", "containerd"] {
        fs::create_dir_all(state.join(folder))?;
    }
    build::provide(&env.bin)?;
    pki::provide(&state.join("pki"))?;
    let registry = paths::cache().join("registry");
    fs::create_dir_all(&registry)?;
    for (path, content) in config::files(&config::Places { state, registry: &registry }) {
        sh::write_if_changed(&state.join(path), &content)?;
    }
    let visible = paths::target().join("lab");
    let kubeconfig = fs::read_to_string(&env.kubeconfig)?;
    sh::write_if_changed(&visible.join("kubeconfig"), &kubeconfig)?;
    fs::create_dir_all(visible.join("bin"))?;
    for tool in ["kubectl", "helm", "ctr"] {
        build::link(&env.bin.join(tool), &visible.join("bin").join(tool))?;
    }
    network::up(state)
}

fn start_parts(env: &Env, state: &Path) -> Result<()> {
    let started = bring_up(env, state, &components::ground(state))?;
    pause::provide(|| env.ctr())?;
    if started.contains(&"etcd") {
        // An API server that lost its etcd may need minutes until it serves all reads again.
        components::api_server(state).stop(state)?;
    }
    bring_up(env, state, &[components::api_server(state)])?;
    bring_up(env, state, &components::workers(state))?;
    // kube-proxy has inserted its rules before these.
    network::guard()?;
    namespaces(env)
}

/// Starts the process that runs Ironic's machines, unless it runs with the same inputs.
///
/// It continues after this program has ended, and does not depend on this program's file.
pub(crate) fn start_machines(env: &Env, image: &str) -> Result<()> {
    let _lock = sh::lock("lab")?;
    // This path stays readable when a build has replaced the file.
    let (state, program) = (paths::state(), Path::new("/proc/self/exe"));
    let content = fs::read(program).with_context(|| format!("read {}", program.display()))?;
    let part = components::machines(image);
    let copy = env.bin.join("machines");
    if sh::write_if_changed(&state.join("machines.sha256"), &sh::sha256(&content))?
        || !copy.exists()
    {
        // The old copy may be running, so it cannot be written to.
        let fresh = copy.with_extension("new");
        fs::copy(program, &fresh)?;
        fs::rename(&fresh, &copy)?;
    }
    bring_up(env, &state, &[part]).map(drop)
}

/// Starts cert-manager with its definitions, unless it runs, and waits until it is ready.
pub(crate) fn start_cert_manager(env: &Env) -> Result<()> {
    let _lock = sh::lock("lab")?;
    let state = paths::state();
    let definitions = build::cert_manager(&env.bin)?;
    sh::run(env.kubectl().args(["apply", "--server-side", "-f"]).arg(&definitions))?;
    let mut wait = env.kubectl();
    wait.args(["wait", "--for=condition=Established", "--timeout=600s", "-f"]);
    sh::run(wait.arg(&definitions))?;
    bring_up(env, &state, &[components::cert_manager(&state)]).map(drop)
}

/// Starts the parts, then waits for each; returns those that were started.
fn bring_up(env: &Env, state: &Path, parts: &[components::Part]) -> Result<Vec<&'static str>> {
    let mut fresh = Vec::new();
    for part in parts {
        if part.start(env, state)? {
            fresh.push(part.name);
        }
    }
    if !fresh.is_empty() {
        println!("   started {}", fresh.join(", "));
    }
    for part in parts {
        if part.look(env, state).trouble.is_some() {
            sh::step(&format!("wait for {}", part.name), || part.wait(env, state))?;
        }
    }
    Ok(fresh)
}

/// Creates the namespaces, and waits for the service accounts that pods need.
pub(crate) fn namespaces(env: &Env) -> Result<()> {
    let manifests = config::NAMESPACES.as_bytes();
    sh::run_with_input(env.kubectl().args(["apply", "-f", "-"]), manifests)?;
    for namespace in ["default", "openstack", "edpm-hosts", "edpm-system"] {
        sh::wait_for(&format!("default account in {namespace}"), ACCOUNTS_WITHIN, || {
            sh::run(env.kubectl().args(["-n", namespace, "get", "serviceaccount", "default"]))
        })?;
    }
    Ok(())
}

/// Prints each part with its health; fails if one is down.
fn status() -> Result<()> {
    let (env, state) = (env(), paths::state());
    let mut n_down = 0;
    for part in components::all(&state).iter().filter(|it| it.is_expected(&state)) {
        let seen = part.look(&env, &state);
        let pid = seen.pid.map_or_else(|| "-".to_owned(), |it| it.to_string());
        n_down += usize::from(seen.trouble.is_some());
        println!("{:<24} {pid:>8}  {}", part.name, seen.trouble.as_deref().unwrap_or("healthy"));
    }
    if n_down > 0 {
        bail!("{n_down} parts are down; logs are in {}", state.join("log").display());
    }
    Ok(())
}

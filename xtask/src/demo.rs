//! `cargo xtask demo`: runs the main job, from nothing to a running nova-compute on two hosts.

pub(crate) mod facts;
mod plugin;
mod report;
pub(crate) mod scene;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
use plugin::Plugin;
use report::Report;
use scene::{BARE_METAL, MAIN, Scene};
use serde_json::Value;

use crate::{cluster::Choice, controlplane, images, lab, paths, sh};

/// The namespace of the operators, and the name of their release.
pub(crate) const OPERATORS: &str = "edpm-system";
pub(crate) const RELEASE: &str = "edpm-operators";
/// The chart's values on the lab: nova's API is read more often, so that less is waited for.
const OF_LAB: &str = "nova:\n  api:\n    interval: 10\n";

/// Show the main job.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Collect every fact of the last demo again from the running cluster, and compare.
    #[arg(long)]
    verify: bool,
    /// Begin with two empty machines, which a real Ironic deploys.
    #[arg(long)]
    baremetal: bool,
    #[command(flatten)]
    cluster: Choice,
}

/// Runs the main job, or verifies that its result still holds.
pub(crate) fn main(args: &Args) -> Result<()> {
    let scene = if args.baremetal { &BARE_METAL } else { &MAIN };
    if args.verify { verify(&args.cluster, scene) } else { show(&args.cluster, scene) }
}

/// Starts everything, runs the main job and verifies its result.
pub(crate) fn show(cluster: &Choice, scene: &Scene) -> Result<()> {
    let start = Instant::now();
    // Without this, a report of an earlier demo would remain if this one fails.
    Report::remove(&scene.report())?;
    let mut report = Report::default();
    let env = report.time("lab", || cluster.up())?;
    let images = report.time("images", || images::for_cluster(&env))?;
    report.time("control plane", || controlplane::up(&env, images.reference("openstack")?))?;
    report.time("hosts", || scene.prepare(&env, &images))?;
    report.time("operators", || install(&env, &paths::repo(), &values(&images)?))?;
    report.time("example", || {
        apply_example(&env, &paths::repo(), scene)?;
        name_discovery_image(&env, scene, images.reference("openstack")?)
    })?;
    let plugin = Plugin::begin()?;
    report.time("deployment", || {
        sh::step("wait until both computes are ready", || facts::wait_until_ready(&env, scene))
    })?;
    report.facts = report.time("facts", || {
        scene.meet(&env)?;
        facts::collect(&env, scene)
    })?;
    let plugin = report.time("plugin", || plugin.folder())?;
    report.seconds = start.elapsed().as_secs_f64();
    report.write(&scene.report())?;
    print!("{}", report.summary(scene, &plugin));
    let wrong = facts::wrong(&report.facts, scene);
    if !wrong.is_empty() {
        bail!("not everything holds:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// Collects every fact again, and compares with the report.
pub(crate) fn verify(cluster: &Choice, scene: &Scene) -> Result<()> {
    let report = Report::read(&scene.report(), scene.command)?;
    let found = facts::collect(&cluster.env()?, scene)?;
    let wrong = facts::wrong(&found, scene);
    if let Some(text) = facts::verdict(&wrong, &facts::differences(&report.facts, &found)) {
        bail!("{text}");
    }
    println!("All facts of the demo hold still.");
    Ok(())
}

/// Writes a file with the chart's values for these images on the lab, and returns its path.
pub(crate) fn values(images: &images::Set) -> Result<PathBuf> {
    written("values", &format!("{}{OF_LAB}", images.helm_values()?))
}

/// Writes a file of this name with the values for these images, all others being the chart's own,
/// and returns its path.
pub(crate) fn values_of_images(images: &images::Set, name: &str) -> Result<PathBuf> {
    written(name, &images.helm_values()?)
}

fn written(name: &str, values: &str) -> Result<PathBuf> {
    let file = paths::target().join(format!("demo/{name}.yaml"));
    sh::write_if_changed(&file, values)?;
    Ok(file)
}

/// Installs the chart of a source tree, or upgrades to it.
pub(crate) fn install(env: &lab::Env, root: &Path, values: &Path) -> Result<()> {
    sh::step("install the chart", || {
        let mut helm = env.tool("helm");
        helm.args(["upgrade", "--install", RELEASE]).arg(root.join("charts/edpm-operators"));
        helm.args(["--namespace", OPERATORS, "--create-namespace", "--wait", "--timeout", "3m"]);
        helm.arg("--values").arg(values).args(["--set", "dnsPolicy=Default"]);
        sh::run(&mut helm).map(drop)
    })
}

/// Applies the example of a source tree.
pub(crate) fn apply_example(env: &lab::Env, root: &Path, scene: &Scene) -> Result<()> {
    let mut apply = env.kubectl();
    // Server-side, because an operator may create a compute while kubectl does.
    apply.args(["apply", "--server-side", "--force-conflicts", "-k"]).arg(root.join(scene.example));
    sh::step("apply the example", || sh::run(&mut apply).map(drop))
}

/// Names the image with which the operator discovers the hosts of the example's cells: its tag is a
/// hash of what it is built from, so the example cannot name it.
fn name_discovery_image(env: &lab::Env, scene: &Scene, image: &str) -> Result<()> {
    let mut annotate = env.kubectl();
    annotate.args(["-n", controlplane::NAMESPACE, "annotate", "--overwrite", "novacells"]);
    annotate.args(scene.hosts.iter().map(|it| it.cell));
    annotate.arg(format!("nova.openstack.org/host-discovery-image={image}"));
    sh::step("name the image of nova-manage", || sh::run(&mut annotate).map(drop))
}

/// Returns one object as JSON, by `kubectl get`.
pub(crate) fn get(env: &lab::Env, namespace: &str, kind: &str, name: &str) -> Result<Value> {
    let mut get = env.kubectl();
    get.args(["-n", namespace, "get", kind, name, "-o", "json"]);
    Ok(serde_json::from_str(&sh::run(&mut get)?)?)
}

//! `cargo xtask demo`: runs the main job, from nothing to a running nova-compute on two hosts.

pub(crate) mod facts;
mod guests;
mod plugin;
mod report;
pub(crate) mod scene;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use plugin::Plugin;
use report::Report;
use scene::{BARE_METAL, GUESTS, MAIN, Scene};
use serde_json::Value;

use crate::{cluster::Choice, controlplane, images, lab, paths, sh};

/// The namespace of the operators, and the name of their release.
pub(crate) const OPERATORS: &str = "edpm-system";
pub(crate) const RELEASE: &str = "edpm-operators";
/// The chart's values on the lab: nova's API is read more often, so that less is waited for.
const OF_LAB: &str = "nova:\n  api:\n    interval: 10\n";
/// What stands in an example for an image of the user: this, its name, and a tag.
const IMAGE: (&str, &str) = ("registry.example.org/team/", ":TAG");

/// Show the main job.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Collect every fact of the last demo again from the running cluster, and compare.
    #[arg(long)]
    verify: bool,
    /// Begin with two empty machines, which a real Ironic deploys.
    #[arg(long)]
    baremetal: bool,
    /// Boot guests on three hosts, and migrate one of them.
    #[arg(long, conflicts_with = "baremetal")]
    guests: bool,
    #[command(flatten)]
    cluster: Choice,
}

/// Runs the main job, or verifies that its result still holds.
pub(crate) fn main(args: &Args) -> Result<()> {
    let scene = match (args.baremetal, args.guests) {
        (true, _) => &BARE_METAL,
        (false, true) => &GUESTS,
        (false, false) => &MAIN,
    };
    if args.verify { verify(&args.cluster, scene) } else { show(&args.cluster, scene) }
}

/// Starts everything, runs the main job and verifies its result.
pub(crate) fn show(cluster: &Choice, scene: &Scene) -> Result<()> {
    let start = Instant::now();
    // Without this, a report of an earlier demo would remain if this one fails.
    Report::remove(&scene.report())?;
    let mut report = Report::default();
    let env = report.time("lab", || cluster.up())?;
    let images = report.time("images", || scene.images(&env))?;
    report.time("control plane", || controlplane::up(&env, images.reference("openstack")?))?;
    report.time("hosts", || scene.prepare(&env, &images))?;
    report.time("operators", || install(&env, &paths::repo(), &values(&images)?))?;
    report.time("example", || {
        apply_example(&env, &paths::repo(), scene, &images)?;
        name_discovery_image(&env, scene, images.reference("openstack")?)
    })?;
    let plugin = Plugin::begin()?;
    report.time("deployment", || {
        sh::step("wait until both computes are ready", || facts::wait_until_ready(&env, scene))
    })?;
    if scene.has_guests() {
        report.seen = report.time("guests", || guests::show(&env, scene))?;
    }
    report.facts = report.time("facts", || {
        scene.meet(&env)?;
        collect(&env, scene)
    })?;
    let plugin = report.time("plugin", || plugin.folder())?;
    report.seconds = start.elapsed().as_secs_f64();
    report.write(&scene.report())?;
    print!("{}", report.summary(scene, &plugin));
    let mut wrong = wrong(&report.facts, scene);
    if scene.has_guests() {
        wrong.extend(guests::unsaid(&report.seen, scene));
    }
    if !wrong.is_empty() {
        bail!("not everything holds:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// Collects every fact again, and compares with the report.
pub(crate) fn verify(cluster: &Choice, scene: &Scene) -> Result<()> {
    let report = Report::read(&scene.report(), scene.command)?;
    let found = collect(&cluster.env()?, scene)?;
    let wrong = wrong(&found, scene);
    if let Some(text) = facts::verdict(&wrong, &facts::differences(&report.facts, &found)) {
        bail!("{text}");
    }
    println!("All facts of the demo hold still.");
    Ok(())
}

/// Returns host or guest → fact → value.
fn collect(env: &lab::Env, scene: &Scene) -> Result<Value> {
    let mut found = facts::collect(env, scene)?;
    if scene.has_guests() {
        found.as_object_mut().context("no facts")?.extend(guests::collect(env));
    }
    Ok(found)
}

/// Returns the facts that are not as expected.
fn wrong(found: &Value, scene: &Scene) -> Vec<String> {
    let mut wrong = facts::wrong(found, scene);
    if scene.has_guests() {
        wrong.extend(guests::wrong(found, scene));
    }
    wrong
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
        helm.args(["--namespace", OPERATORS, "--create-namespace", "--wait", "--timeout", "15m"]);
        helm.arg("--values").arg(values).args(["--set", "dnsPolicy=Default"]);
        sh::run(&mut helm).map(drop)
    })
}

/// Applies the example of a source tree, with these images for those of its user.
pub(crate) fn apply_example(
    env: &lab::Env,
    root: &Path,
    scene: &Scene,
    images: &images::Set,
) -> Result<()> {
    sh::step("apply the example", || {
        let mut render = env.kubectl();
        let rendered = sh::run(render.arg("kustomize").arg(root.join(scene.example)))?;
        // Server-side, because an operator may create a compute while kubectl does.
        controlplane::apply(env, &with_images(&rendered, |name| images.reference(name))?)
    })
}

/// Returns manifests with an image for each that an example leaves to its user.
fn with_images<'a>(manifests: &str, reference: impl Fn(&str) -> Result<&'a str>) -> Result<String> {
    let (before_name, after_name) = IMAGE;
    let mut filled = String::new();
    let mut rest = manifests;
    while let Some((before, after)) = rest.split_once(before_name) {
        let (name, after) = after.split_once(after_name).context("an image without a tag")?;
        filled += before;
        filled += reference(name)?;
        rest = after;
    }
    Ok(filled + rest)
}

/// Names the image with which the operator discovers the hosts of the example's cells: its tag is a
/// hash of what it is built from, so the example cannot name it.
fn name_discovery_image(env: &lab::Env, scene: &Scene, image: &str) -> Result<()> {
    let mut annotate = env.kubectl();
    annotate.args(["-n", controlplane::NAMESPACE, "annotate", "--overwrite", "novacells"]);
    annotate.args(scene.hosts.iter().map(|it| it.cell).collect::<BTreeSet<_>>());
    annotate.arg(format!("nova.openstack.org/host-discovery-image={image}"));
    sh::step("name the image of nova-manage", || sh::run(&mut annotate).map(drop))
}

/// Returns one object as JSON, by `kubectl get`.
pub(crate) fn get(env: &lab::Env, namespace: &str, kind: &str, name: &str) -> Result<Value> {
    let mut get = env.kubectl();
    get.args(["-n", namespace, "get", kind, name, "-o", "json"]);
    Ok(serde_json::from_str(&sh::run(&mut get)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_image_of_the_user_is_one_of_the_labs() {
        let text = "a: registry.example.org/team/nova-compute:TAG\nb: 1\n";
        let reference =
            |it: &str| if it == "nova-compute" { Ok("lab/n:1") } else { bail!("no {it}") };
        assert_eq!(with_images(text, reference).unwrap(), "a: lab/n:1\nb: 1\n");
        assert!(with_images("registry.example.org/team/other:TAG", reference).is_err());
        assert!(with_images("registry.example.org/team/nova-compute", reference).is_err());
        assert_eq!(with_images("a: 1\n", reference).unwrap(), "a: 1\n");
    }
}

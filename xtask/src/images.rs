//! Builds the project's images when their inputs change, tags them by a hash of the inputs, and
//! pushes them.

mod build;
mod inputs;
pub(crate) mod sources;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use build::Store;
use inputs::{Context, Extra};

use crate::{lab, paths, sh};

/// Build all images and push what the registry lacks.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The registry to push to, for example `registry.example.org/team`; the lab's own by default.
    #[arg(long, value_name = "REGISTRY")]
    push: Option<String>,
    /// The registry speaks plain HTTP, as the lab's does.
    #[arg(long)]
    plain_http: bool,
    /// Build this image alone; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

/// Image name → its inputs and tag.
type Plans = BTreeMap<&'static str, (Context, String)>;

/// One image: a directory of `lab/images` with a Containerfile, and further inputs.
struct Image {
    name: &'static str,
    /// Its base image, which is earlier in the table.
    from: Option<&'static str>,
    extra: &'static [Extra],
    purpose: Purpose,
}

/// The purpose of an image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A base of other images, which is not pushed.
    Base,
    /// Needed by every lab and every release.
    All,
    /// Built only for what asks for it: bare metal, or guests.
    OnRequest,
}

impl Image {
    /// Whether it is in `only`; if that is empty, whether it is always needed.
    fn is_chosen(&self, only: &[&str]) -> bool {
        match self.purpose {
            Purpose::Base => false,
            Purpose::All => only.is_empty() || only.contains(&self.name),
            Purpose::OnRequest => only.contains(&self.name),
        }
    }
}

/// All images, each after its base.
const IMAGES: &[Image] = &[
    Image { name: "base", from: None, extra: &[Extra::RootFs], purpose: Purpose::Base },
    Image { name: "edpm-host", from: Some("base"), extra: &[], purpose: Purpose::All },
    Image {
        name: "ansible-runner",
        from: Some("base"),
        extra: &[
            Extra::Wheels,
            Extra::Folder { from: "ansible/runner", to: "runner" },
            Extra::Folder { from: "ansible/osp/edpm", to: "collection" },
        ],
        purpose: Purpose::All,
    },
    Image { name: "kolla", from: Some("base"), extra: &[Extra::Wheels], purpose: Purpose::Base },
    Image { name: "nova-libvirt", from: Some("kolla"), extra: &[], purpose: Purpose::All },
    Image {
        name: "nova-compute",
        from: Some("kolla"),
        extra: &[Extra::Wheels],
        purpose: Purpose::All,
    },
    Image {
        name: "openstack",
        from: Some("nova-compute"),
        extra: &[Extra::Wheels],
        purpose: Purpose::All,
    },
    Image {
        name: "edpm-machine",
        from: Some("edpm-host"),
        extra: &[],
        purpose: Purpose::OnRequest,
    },
    Image {
        name: "ironic",
        from: Some("openstack"),
        extra: &[Extra::Wheels],
        purpose: Purpose::OnRequest,
    },
    Image { name: "ovn-controller", from: Some("kolla"), extra: &[], purpose: Purpose::OnRequest },
    Image {
        name: "neutron-metadata-agent",
        from: Some("nova-compute"),
        extra: &[Extra::Wheels],
        purpose: Purpose::OnRequest,
    },
    Image {
        name: "openstack-guests",
        from: Some("openstack"),
        extra: &[Extra::Wheels],
        purpose: Purpose::OnRequest,
    },
    Image {
        name: "operators",
        from: Some("base"),
        extra: &[Extra::Operators],
        purpose: Purpose::All,
    },
];

/// The sources of images: this working tree, or those of a release.
pub(crate) struct Tree {
    /// The root of the repository.
    pub(crate) root: PathBuf,
    /// The operators' programs for the images.
    pub(crate) programs: Programs,
}

/// The operators' programs for images.
pub(crate) enum Programs {
    /// The programs that the tests run, so that nothing is compiled for images alone. For the lab.
    AsTested,
    /// Optimised and statically linked. For users, and for measurements.
    Optimized,
    /// The statically linked programs in this directory.
    Made(PathBuf),
}

impl Programs {
    /// Returns their directory in the build context.
    fn place(&self) -> &'static str {
        match self {
            Self::AsTested | Self::Optimized => "root",
            // As in the releases so far.
            Self::Made(_) => "bin",
        }
    }
}

impl Tree {
    /// Returns this working tree, for the lab.
    pub(crate) fn present() -> Self {
        Self { root: paths::repo(), programs: Programs::AsTested }
    }

    /// Returns this working tree as it would be released.
    fn released() -> Self {
        Self { root: paths::repo(), programs: Programs::Optimized }
    }

    /// Returns this working tree for a cluster: for the lab, or as released.
    fn of(env: &lab::Env) -> Self {
        if env.is_lab() { Self::present() } else { Self::released() }
    }
}

/// The images that the chart's values refer to.
const OF_CHART: [&str; 4] = ["operators", "ansible-runner", "nova-compute", "nova-libvirt"];

/// The images of the lab's Ironic and of its machines.
const OF_BARE_METAL: [&str; 2] = ["edpm-machine", "ironic"];

/// The images that guests need beside all others.
const OF_GUESTS: [&str; 3] = ["ovn-controller", "neutron-metadata-agent", "openstack-guests"];

/// The images of one build, with their references.
pub(crate) struct Set {
    references: BTreeMap<&'static str, String>,
}

impl Set {
    /// Returns the full reference of an image by its short name, for example `nova-compute`.
    pub(crate) fn reference(&self, name: &str) -> Result<&str> {
        let found = self.references.get(name).with_context(|| format!("no image {name}"))?;
        Ok(found)
    }

    /// Returns these images and those of another build.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.references.extend(other.references);
        self
    }

    /// Returns the chart's values for these images.
    pub(crate) fn helm_values(&self) -> Result<String> {
        let (repository, tag) =
            self.reference("operators")?.rsplit_once(':').context("a reference without a tag")?;
        Ok(format!(
            "image:\n  repository: {repository}\n  tag: {tag}\nrelatedImages:\n  \
             ansibleEERunner: {}\n  novaCompute: {}\n  novaLibvirt: {}\n",
            self.reference("ansible-runner")?,
            self.reference("nova-compute")?,
            self.reference("nova-libvirt")?,
        ))
    }
}

/// Builds and pushes, then prints the chart's values.
pub(crate) fn main(args: &Args) -> Result<()> {
    let registry = args.push.as_deref().unwrap_or(lab::REGISTRY);
    let plain_http = args.plain_http || registry == lab::REGISTRY;
    for name in &args.only {
        by_name(name)?;
    }
    let only: Vec<&str> = args.only.iter().map(String::as_str).collect();
    let tree = if args.push.is_some() { Tree::released() } else { Tree::present() };
    let set = provide(&tree, registry, plain_http, &only)?;
    if !args.only.is_empty() {
        return Ok(());
    }
    println!("\nHelm values for these images:\n\n{}", set.helm_values()?);
    Ok(())
}

/// Builds and pushes all images that the cluster's registry lacks.
pub(crate) fn for_cluster(env: &lab::Env) -> Result<Set> {
    provide(&Tree::of(env), &env.registry, env.plain_http, &[])
}

/// The same with the operators as released, for measurements.
pub(crate) fn released(env: &lab::Env) -> Result<Set> {
    provide(&Tree::released(), &env.registry, env.plain_http, &[])
}

/// Builds and pushes only these images.
pub(crate) fn some(env: &lab::Env, only: &[&str]) -> Result<Set> {
    provide(&Tree::of(env), &env.registry, env.plain_http, only)
}

/// Builds and pushes the images of another source tree that its chart needs.
pub(crate) fn of_tree(env: &lab::Env, tree: &Tree) -> Result<Set> {
    provide(tree, &env.registry, env.plain_http, &OF_CHART)
}

/// Builds and pushes the images for bare metal to the lab's registry.
pub(crate) fn for_bare_metal() -> Result<Set> {
    provide(&Tree::present(), lab::REGISTRY, true, &OF_BARE_METAL)
}

/// Builds and pushes the images that guests need beside all others.
pub(crate) fn for_guests(env: &lab::Env) -> Result<Set> {
    some(env, &OF_GUESTS)
}

/// Builds and pushes one image to the lab's registry, and returns its reference.
pub(crate) fn for_lab_only(name: &str) -> Result<String> {
    let set = provide(&Tree::present(), lab::REGISTRY, true, &[name])?;
    set.reference(name).map(str::to_owned)
}

/// Builds and pushes the images that the registry lacks: those in `only`, or all that are always
/// needed if it is empty.
///
/// # Guarantees
///
/// An image whose inputs did not change is not built: its tag is a hash of them, and the registry
/// is checked for the tag first.
fn provide(tree: &Tree, registry: &str, plain_http: bool, only: &[&str]) -> Result<Set> {
    let _lock = sh::lock("images")?;
    sources::tools()?;
    let store = Store::open(registry, plain_http)?;
    let mut plans = Plans::new();
    let mut references = BTreeMap::new();
    for image in IMAGES.iter().filter(|it| it.is_chosen(only)) {
        let tag = plan(tree, image, &mut plans)?;
        let reference = store.reference(image.name, &tag);
        if !store.is_pushed(&reference) {
            build_with_parents(tree, &store, image, &plans)?;
            sh::step(&format!("push {reference}"), || store.push(image.name, &tag))?;
        }
        references.insert(image.name, reference);
    }
    Ok(Set { references })
}

fn by_name(name: &str) -> Result<&'static Image> {
    IMAGES.iter().find(|it| it.name == name).with_context(|| format!("there is no image {name}"))
}

/// Collects the inputs of an image and of its bases; returns its tag.
fn plan(tree: &Tree, image: &'static Image, plans: &mut Plans) -> Result<String> {
    if let Some((_, tag)) = plans.get(image.name) {
        return Ok(tag.clone());
    }
    let parent = match image.from {
        Some(name) => plan(tree, by_name(name)?, plans)?,
        None => String::new(),
    };
    let context = inputs::collect(tree, image.name, image.extra)?;
    let tag = context.tag(&parent);
    plans.insert(image.name, (context, tag.clone()));
    Ok(tag)
}

/// Builds an image, and its base first, unless the store has them.
fn build_with_parents(tree: &Tree, store: &Store, image: &Image, plans: &Plans) -> Result<()> {
    let (context, tag) = plans.get(image.name).context("an image was not planned")?;
    if store.has(image.name, tag) {
        return Ok(());
    }
    let parent = match image.from {
        Some(name) => {
            build_with_parents(tree, store, by_name(name)?, plans)?;
            plans.get(name).map(|(_, tag)| (name, tag.as_str()))
        }
        None => None,
    };
    sh::step(&format!("build image {}", image.name), || {
        store.build(tree, (image.name, tag), parent, context, image.extra)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_comes_after_the_one_it_starts_from() {
        for (idx, image) in IMAGES.iter().enumerate() {
            if let Some(from) = image.from {
                assert!(IMAGES[..idx].iter().any(|it| it.name == from), "{}", image.name);
            }
        }
    }

    #[test]
    fn every_image_has_a_containerfile() {
        for image in IMAGES {
            assert!(
                inputs::folder(&Tree::present(), image.name).join("Containerfile").is_file(),
                "{}",
                image.name
            );
        }
    }

    #[test]
    fn every_image_that_an_example_leaves_to_its_user_is_one_of_ours() {
        let mut n_images = 0;
        for file in crate::sources::files("examples", ".yaml").unwrap() {
            let text = std::fs::read_to_string(&file).unwrap();
            for rest in text.split("registry.example.org/team/").skip(1) {
                let (name, _) = rest.split_once(":TAG").unwrap();
                assert!(by_name(name).is_ok(), "{}: {name}", file.display());
                n_images += 1;
            }
        }
        assert!(n_images >= 4, "only {n_images} images");
    }
}

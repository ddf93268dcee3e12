//! The playbooks and roles of the project's own Ansible collection, from a generated list.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::str::FromStr;
use std::sync::LazyLock;

use api::yaml;
use operator_core::run_engine::run_template::Play;
use serde::Deserialize;

/// The list, which `cargo xtask codegen` writes.
#[derive(Deserialize)]
struct Collection {
    name: String,
    playbooks: BTreeSet<String>,
    roles: BTreeSet<String>,
}

/// The runner image of the installation, as far as it is known what it has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RunnerImage {
    /// The project's own, which has this collection.
    Own,
    /// Another one, of which nothing is known.
    #[default]
    Other,
}

impl FromStr for RunnerImage {
    type Err = Infallible;

    /// Recognizes the project's own image by the name under which it is built, in any registry.
    fn from_str(image: &str) -> Result<Self, Infallible> {
        let name = image.rsplit('/').next().unwrap_or_default();
        let name = name.split(['@', ':']).next().unwrap_or_default();
        Ok(if name == OWN_IMAGE { Self::Own } else { Self::Other })
    }
}

/// The name of the project's own runner image, without registry and tag.
const OWN_IMAGE: &str = "ansible-runner";

static COLLECTION: LazyLock<Collection> = LazyLock::new(|| {
    yaml::from_str(include_str!("../collection.yaml")).expect("the file is checked by a test")
});

/// Returns the collection's full name, `<namespace>.<name>`.
pub fn name() -> &'static str {
    &COLLECTION.name
}

/// Returns the full names of the collection's playbooks.
pub fn playbooks() -> &'static BTreeSet<String> {
    &COLLECTION.playbooks
}

/// Returns whether the collection contains what is to be run.
///
/// Returns `None` when the name is not one of the collection's: then it depends on the runner
/// image.
pub fn has(play: &Play) -> Option<bool> {
    let (named, all) = match play {
        Play::Contents(_) => return Some(true),
        Play::Playbook(named) => (named, &COLLECTION.playbooks),
        Play::Role(named) => (named, &COLLECTION.roles),
    };
    let rest = named.strip_prefix(name())?.strip_prefix('.')?;
    // A path such as `<collection>.x.yml` is not a name.
    (!rest.contains(['/', '.'])).then(|| all.contains(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_runner_image_is_known_in_any_registry_and_no_other_is_taken_for_it() {
        for (image, expected) in [
            ("r.example.org:5000/edpm/ansible-runner:0.2.0", RunnerImage::Own),
            ("ansible-runner@sha256:abc", RunnerImage::Own),
            ("quay.io/x/openstack-ansibleee-runner:latest", RunnerImage::Other),
            ("r.example.org/ansible-runner/mine:1", RunnerImage::Other),
            ("", RunnerImage::Other),
        ] {
            assert_eq!(image.parse(), Ok(expected), "{image}");
        }
    }

    #[test]
    fn only_names_of_the_collection_are_known_to_be_in_it_or_not() {
        let of = |it: &str| has(&Play::Playbook(it.into()));
        assert_eq!(of("osp.edpm.run_os"), Some(true));
        assert_eq!(of("osp.edpm.no_such"), Some(false));
        for other in ["osp.edpmx.run_os", "a.b.c", "site.yaml", "osp.edpm.run_os.yml", "osp.edpm"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(has(&Play::Role("osp.edpm.edpm_podman".into())), Some(true));
        assert_eq!(has(&Play::Role("osp.edpm.run_os".into())), Some(false));
        assert_eq!(has(&Play::Contents(String::new())), Some(true));
    }
}

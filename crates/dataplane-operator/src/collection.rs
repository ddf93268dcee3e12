//! The playbooks and roles of the project's own Ansible collection, from a generated list.

use std::collections::BTreeSet;
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

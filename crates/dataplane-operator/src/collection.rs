//! What the project's own collection of Ansible ships: the list that is made from it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use api::yaml;
use operator_core::run_engine::run_template::Play;
use serde::Deserialize;

/// The list; `cargo xtask codegen` writes it.
#[derive(Deserialize)]
struct Collection {
    name: String,
    playbooks: BTreeSet<String>,
    roles: BTreeSet<String>,
}

static COLLECTION: LazyLock<Collection> = LazyLock::new(|| {
    yaml::from_str(include_str!("../collection.yaml")).expect("the file is checked by a test")
});

/// The collection's name, with its namespace.
pub fn name() -> &'static str {
    &COLLECTION.name
}

/// The full names of its playbooks.
pub fn playbooks() -> &'static BTreeSet<String> {
    &COLLECTION.playbooks
}

/// Whether the collection has what is to be run; `None` where it is named as none of the
/// collection's, so that only the runner image can tell.
pub fn has(play: &Play) -> Option<bool> {
    let (named, all) = match play {
        Play::Contents(_) => return Some(true),
        Play::Playbook(named) => (named, &COLLECTION.playbooks),
        Play::Role(named) => (named, &COLLECTION.roles),
    };
    let rest = named.strip_prefix(name())?.strip_prefix('.')?;
    // A path that begins like the name is no name.
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

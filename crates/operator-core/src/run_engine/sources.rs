//! The files of a service's data sources, and which source provides a key that several have.
//!
//! A pod can mount one file at a path; Kubernetes rejects a second mount there.
//! If several sources have a key, the last one listed is mounted, as later entries win wherever
//! lists of sources are read.

use std::collections::{BTreeMap, BTreeSet};

use crate::run_engine::run_template::MountedSource;

/// Returns the sources with each key left only in the last source that has it.
///
/// A source that loses all its keys is dropped.
pub fn mounted(sources: Vec<MountedSource>) -> Vec<MountedSource> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut kept: Vec<MountedSource> = Vec::new();
    for mut source in sources.into_iter().rev() {
        let had_keys = !source.keys.is_empty();
        source.keys.retain(|it| taken.insert(it.clone()));
        if !had_keys || !source.keys.is_empty() {
            kept.push(source);
        }
    }
    kept.reverse();
    kept
}

/// Returns the keys that several objects have, each with those objects in order.
///
/// The last object of each list is the one that is mounted.
pub fn clashes(sources: &[MountedSource]) -> BTreeMap<&str, Vec<&MountedSource>> {
    let mut by_key: BTreeMap<&str, Vec<&MountedSource>> = BTreeMap::new();
    for source in sources {
        for key in &source.keys {
            let having = by_key.entry(key).or_default();
            // An object that is listed twice counts at its last position.
            having.retain(|it| (it.kind, &it.name) != (source.kind, &source.name));
            having.push(source);
        }
    }
    by_key.retain(|_, having| having.len() > 1);
    by_key
}

#[cfg(test)]
mod tests {
    use api::shared::SourceKind;
    use proptest::prelude::*;

    use super::*;

    fn source(kind: SourceKind, name: &str, keys: &[&str]) -> MountedSource {
        let keys = keys.iter().map(|it| (*it).to_owned()).collect();
        MountedSource { kind, name: name.into(), keys }
    }

    fn any_kind() -> impl Strategy<Value = SourceKind> {
        prop_oneof![Just(SourceKind::ConfigMap), Just(SourceKind::Secret)]
    }

    #[test]
    fn the_last_one_listed_gives_a_key_that_several_have() {
        let sources = vec![
            source(SourceKind::Secret, "a", &["x", "y"]),
            source(SourceKind::ConfigMap, "a", &["x"]),
            source(SourceKind::Secret, "b", &[]),
        ];
        let found = clashes(&sources);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), ["x"]);
        assert_eq!(found["x"], [&sources[0], &sources[1]]);
        let kept = mounted(sources.clone());
        assert_eq!(
            kept,
            [source(SourceKind::Secret, "a", &["y"]), sources[1].clone(), sources[2].clone()]
        );
    }

    #[test]
    fn an_object_that_is_listed_twice_is_mounted_once_and_clashes_with_nobody() {
        let twice =
            vec![source(SourceKind::Secret, "a", &["x"]), source(SourceKind::Secret, "a", &["x"])];
        assert!(clashes(&twice).is_empty());
        assert_eq!(mounted(twice), [source(SourceKind::Secret, "a", &["x"])]);
    }

    fn any_source() -> impl Strategy<Value = MountedSource> {
        let keys = prop::collection::btree_set("[a-c]", 0..3);
        (any_kind(), "[a-b]", keys).prop_map(|(kind, name, keys)| MountedSource {
            kind,
            name,
            keys: keys.into_iter().collect(),
        })
    }

    proptest! {
        #[test]
        fn each_key_is_mounted_once_from_the_last_source_that_has_it(
            sources in prop::collection::vec(any_source(), 0..6),
        ) {
            let kept = mounted(sources.clone());
            let keys: Vec<&String> = kept.iter().flat_map(|it| &it.keys).collect();
            let all: BTreeSet<&String> = sources.iter().flat_map(|it| &it.keys).collect();
            prop_assert_eq!(keys.len(), all.len());
            for source in &kept {
                for key in &source.keys {
                    let last = sources.iter().rev().find(|it| it.keys.contains(key));
                    let last = last.map(|it| (it.kind, &it.name));
                    prop_assert_eq!(last, Some((source.kind, &source.name)));
                }
            }
            prop_assert_eq!(mounted(kept.clone()), kept);
        }
    }
}

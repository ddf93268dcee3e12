//! The ConfigMaps and Secrets that default services name: the keys that their plays read, and how
//! each is made.

use std::sync::LazyLock;

use api::shared::SourceKind;
use api::yaml;
use operator_core::data_sources::NamedSource;
use serde::Deserialize;

/// An object that default services name; the file says what each field means.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KnownInput {
    kind: String,
    name: String,
    keys: Vec<String>,
    #[serde(default)]
    needs_keys: bool,
    before: Option<String>,
    #[serde(default)]
    content: String,
    made_for: Option<String>,
}

static KNOWN: LazyLock<Vec<KnownInput>> = LazyLock::new(|| {
    yaml::from_str(include_str!("../../inputs.yaml")).expect("the file is checked by a test")
});

fn known(named: &NamedSource) -> Option<&'static KnownInput> {
    KNOWN.iter().find(|it| it.kind == named.kind.as_str() && it.name == named.name)
}

/// Returns how to make an object, as the end of a sentence: its keys and a command. For an object that
/// no default service names, that it is to be created.
pub fn way_to_make(namespace: &str, named: &NamedSource) -> String {
    let Some(input) = known(named) else { return "create it".to_owned() };
    if let Some(object) = &input.made_for {
        return format!("it is made for {object}, so create that");
    }
    let what = if named.kind == SourceKind::Secret { "secret generic" } else { "configmap" };
    let plural = if input.keys.len() > 1 { "s" } else { "" };
    let before = input.before.iter().flat_map(|it| [it.as_str(), " "]).collect::<String>();
    format!(
        "create it with the key{plural} {}, for example: {before}kubectl -n {namespace} create {what} \
         {} {}",
        input.keys.join(" and "),
        input.name,
        input.content
    )
}

/// Returns the first key that plays need and an object lacks.
pub fn missing_key(named: &NamedSource, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    let needed = known(named).filter(|it| it.needs_keys)?;
    needed.keys.iter().map(String::as_str).find(|it| !has(it))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::dataplane::Service;
    use operator_core::data_sources::sources_of;

    use super::*;
    use crate::collection;
    use crate::default_services::AS_SHIPPED;
    use crate::host::services::{ca_bundle, play};

    /// What the default services need whose playbooks our collection has.
    fn needed() -> BTreeSet<NamedSource> {
        let is_ours = |it: &&Service| collection::has(&play(it)) == Some(true);
        let mut named = BTreeSet::new();
        for service in AS_SHIPPED.values().filter(is_ours) {
            named.extend(sources_of(&service.spec).into_iter().filter(|it| !it.is_optional));
            named.extend(ca_bundle(service).map(|(name, _)| NamedSource::secret(name)));
        }
        named
    }

    #[test]
    fn the_way_to_make_whatever_our_own_services_need_is_known_with_its_keys() {
        let needed = needed();
        let unknown: Vec<&NamedSource> = needed.iter().filter(|it| known(it).is_none()).collect();
        assert_eq!(unknown, [] as [&NamedSource; 0]);
        for named in &needed {
            let (input, way) = (known(named).unwrap(), way_to_make("openstack", named));
            assert!(way.contains("kubectl -n openstack create") || way.contains("so create that"));
            assert!(input.keys.iter().all(|key| input.content.contains(key)), "{way}");
        }
    }

    #[test]
    fn an_object_that_lacks_a_key_which_plays_need_is_found_and_others_are_the_users() {
        let strict: Vec<&KnownInput> = KNOWN.iter().filter(|it| it.needs_keys).collect();
        assert!(!strict.is_empty());
        for input in strict {
            let kind =
                if input.kind == "Secret" { SourceKind::Secret } else { SourceKind::ConfigMap };
            let named = NamedSource { kind, name: input.name.clone(), is_optional: false };
            assert_eq!(missing_key(&named, |_| true), None);
            let last = input.keys.last().unwrap().as_str();
            assert_eq!(missing_key(&named, |it| it != last), Some(last));
        }
        let own = NamedSource::secret("own");
        let found = (way_to_make("openstack", &own), missing_key(&own, |_| false));
        assert_eq!(found, ("create it".to_owned(), None));
    }
}

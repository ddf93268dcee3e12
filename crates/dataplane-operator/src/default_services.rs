//! The services that exist without a human writing them: data files, read once.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use common::api::dataplane::Service;
use common::plan::{Kind, Step, Target};
use common::yaml;
use kube::ResourceExt;
use serde_json::json;

const FILES: [&str; 5] = [
    include_str!("../services/configure-network.yaml"),
    include_str!("../services/validate-network.yaml"),
    include_str!("../services/install-os.yaml"),
    include_str!("../services/configure-os.yaml"),
    include_str!("../services/run-os.yaml"),
];

static SERVICES: LazyLock<BTreeMap<String, Service>> = LazyLock::new(|| {
    let parse = |text: &&str| yaml::from_str(text).expect("the files are checked by a test");
    FILES.iter().map(parse).map(|it: Service| (it.name_any(), it)).collect()
});

/// The default service of that name.
pub fn find(name: &str) -> Option<&'static Service> {
    SERVICES.get(name)
}

/// The steps that make the default services that are listed and do not exist; a human's own are left
/// alone.
pub fn missing(
    namespace: &str,
    listed: &[String],
    known: &BTreeMap<String, Arc<Service>>,
) -> Vec<Step> {
    let create = |name: &String| {
        let target = Target {
            kind: Kind::of::<Service>(),
            namespace: namespace.to_owned(),
            name: name.clone(),
            uid: None,
        };
        let object = json!({ "metadata": {}, "spec": find(name)?.spec });
        Some(Step::create(target, object, "/kind", "this default service is listed"))
    };
    listed.iter().filter(|it| !known.contains_key(*it)).filter_map(create).collect()
}

/// The names of all default services.
pub fn names() -> impl Iterator<Item = &'static str> {
    SERVICES.keys().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::api::dataplane::RoleSpec;

    #[test]
    fn every_service_of_a_role_that_names_none_is_a_default_service() {
        for name in RoleSpec::default().services {
            assert!(find(&name).is_some(), "{name}");
        }
        assert_eq!(names().count(), FILES.len());
    }
}

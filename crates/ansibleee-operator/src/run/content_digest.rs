//! The identity of a run: a digest that survives upgrades of the operators.

use api::ansibleee::{AnsibleEe, AnsibleEeSpec};
use api::names;
use kube::ResourceExt;
use operator_core::hash;
use serde_json::{Map, Value, json};

/// The fields of the spec that say what is run; the others say where, with what image and how long.
///
/// Changing this list would run every hand-made AnsibleEE again. A new field may be added only
/// because default values are left out of the digest.
const FIELDS: [&str; 20] = [
    "args",
    "cmdLine",
    "debug",
    "dnsConfig",
    "env",
    "envConfigMapName",
    "extraMounts",
    "extraVars",
    "factVariables",
    "hosts",
    "initContainers",
    "inputHash",
    "inventory",
    "networkAttachments",
    "play",
    "playbook",
    "playbookContents",
    "restartPolicy",
    "role",
    "serviceAccountName",
];

/// Returns the identity of what an AnsibleEE asks for now.
pub fn run_digest(run: &AnsibleEe) -> String {
    let uid = run.uid().unwrap_or_default();
    hash::digest(&json!({ "version": 1, "uid": uid, "spec": canonical(&run.spec) }))
}

/// Returns the name of the Job that runs it.
pub fn job_name(run: &str, identity: &str) -> String {
    let short = identity.get(..10).unwrap_or(identity);
    names::derived(&[run, short], names::LABEL_LIMIT)
}

fn canonical(spec: &AnsibleEeSpec) -> Map<String, Value> {
    let value = |it| serde_json::to_value(it).unwrap_or_default();
    let (Value::Object(mut fields), defaults) = (value(spec), value(&AnsibleEeSpec::default()))
    else {
        return Map::new();
    };
    fields
        .retain(|name, value| FIELDS.contains(&name.as_str()) && defaults.get(name) != Some(value));
    fields
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::yaml;
    use kube::CustomResourceExt as _;

    use super::*;

    fn identity(spec: &str) -> String {
        let text = format!("metadata: {{name: a, namespace: b, uid: u1}}\nspec: {spec}");
        run_digest(&yaml::from_str::<AnsibleEe>(&text).unwrap())
    }

    #[test]
    fn golden_identities_stay_as_they_are() {
        let cases = [
            ("{}", "cc68dc23bd1f48a02c3a6fa8fd85012cf5e9750dc23dfeabdac0be457d670af2"),
            (
                "{playbook: osp.edpm.nova, inputHash: abc, hosts: [{name: a, address: 'a:22'}]}",
                "43d4eb52509706a1a5c415e16110f44323b101d45caa13c3ccc2f4af8275a2fe",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(identity(spec), expected, "{spec}");
        }
    }

    #[test]
    fn image_resources_and_scheduling_do_not_make_another_run() {
        let same = identity("{playbook: a.yml}");
        for spec in [
            "{playbook: a.yml, image: other}",
            "{playbook: a.yml, nodeSelector: {a: b}, tolerations: [{key: a}]}",
            "{playbook: a.yml, resources: {limits: {cpu: 1}}, imagePullSecrets: [{name: a}]}",
            "{playbook: a.yml, preserveJobs: false, uid: 7, activeDeadlineSeconds: 5}",
            "{playbook: a.yml, restartPolicy: Never, envConfigMapName: openstack-aee-default-env}",
        ] {
            assert_eq!(identity(spec), same, "{spec}");
        }
        for spec in [
            "{playbook: b.yml}",
            "{playbook: a.yml, inputHash: x}",
            "{playbook: a.yml, debug: true}",
            "{args: [a]}",
            "{play: '[]'}",
            "{role: a}",
        ] {
            assert_ne!(identity(spec), same, "{spec}");
        }
    }

    #[test]
    fn every_field_of_the_spec_either_says_what_is_run_or_where_and_how_long() {
        let others = [
            "activeDeadlineSeconds",
            "backoffLimit",
            "image",
            "imagePullSecrets",
            "name",
            "nodeSelector",
            "preserveJobs",
            "resources",
            "tolerations",
            "uid",
        ];
        let definition = serde_json::to_value(AnsibleEe::crd()).unwrap();
        let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let fields = definition.pointer(path).unwrap().as_object().unwrap();
        let sorted = fields.keys().map(String::as_str).collect::<BTreeSet<_>>();
        assert_eq!(sorted, FIELDS.into_iter().chain(others).collect());
        assert!(FIELDS.is_sorted());
    }

    #[test]
    fn the_order_in_which_maps_are_written_makes_no_other_run() {
        let one = "{playbook: a, extraVars: {b: {x: 1, y: [1, {p: 2, q: 3}]}, a: true}}";
        let other = "{extraVars: {a: true, b: {y: [1, {q: 3, p: 2}], x: 1}}, playbook: a}";
        assert_eq!(identity(one), identity(other));
        // Types matter, and so does the order of lists.
        assert_ne!(identity("{extraVars: {a: 1}}"), identity("{extraVars: {a: '1'}}"));
        assert_ne!(identity("{extraVars: {a: [1, 2]}}"), identity("{extraVars: {a: [2, 1]}}"));
    }

    #[test]
    fn a_job_is_named_after_its_run_and_what_it_runs() {
        assert_eq!(job_name("nova-1", &"0123456789abc".repeat(5)), "nova-1-0123456789");
        assert!(job_name(&"a".repeat(200), &"b".repeat(64)).len() <= 63);
    }
}

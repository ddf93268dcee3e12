//! The playbook of a run of the engine: owner check, requested facts, then the run's own play.

use api::ansibleee::AnsibleEeSpec;
use api::facts;
use operator_core::run_engine::host_owner::{CHECK, PLAYS_DIR};
use serde_json::{Value, json};

/// The play that compares owners, stored as [`CHECK`].
pub const OWNER_CHECK: &str = include_str!("../../plays/owner-check.yaml");
/// The play that turns facts into variables, stored as [`facts::PLAY`].
pub const FACTS: &str = include_str!("../../plays/facts.yaml");
/// Default directories of roles: beside the playbook, as with ansible-runner's `-r`, and those of
/// images.
pub const ROLES_PATH: (&str, &str) = (
    "ANSIBLE_ROLES_PATH",
    "/runner/roles:/runner/project/roles:/runner/project:/usr/share/ansible/roles:/etc/ansible/roles",
);
/// File name of the whole playbook, in [`PLAYS_DIR`].
pub const MAIN: &str = "main.yaml";

/// Returns the whole playbook.
///
/// One process runs all parts, so that a host that fails the check takes no part in the others.
pub fn main(spec: &AnsibleEeSpec) -> String {
    let check = json!({ "import_playbook": format!("{PLAYS_DIR}/{CHECK}") });
    let asks = (!spec.fact_variables.is_empty()).then(|| {
        json!({
            "import_playbook": format!("{PLAYS_DIR}/{}", facts::PLAY),
            "vars": { "edpm_fact_names": spec.fact_variables },
        })
    });
    let plays: Vec<Value> = [check].into_iter().chain(asks).chain([own(spec)]).collect();
    // JSON is YAML.
    serde_json::to_string(&plays).unwrap_or_default()
}

/// Returns the run's own play, as ansible-runner would start it.
fn own(spec: &AnsibleEeSpec) -> Value {
    let playbook = spec.playbook.as_deref().filter(|_| spec.contents().is_none());
    match (&spec.role, spec.contents(), playbook) {
        (Some(role), None, None) => json!({ "hosts": "all", "roles": [{ "name": role }] }),
        (_, _, Some(name)) if is_of_collection(name) => json!({ "import_playbook": name }),
        (_, _, name) => {
            let file = format!("/runner/project/{}", name.unwrap_or("playbook.yaml"));
            json!({ "import_playbook": literal(&file) })
        }
    }
}

/// Returns a path for `import_playbook`, which splits it at white space and evaluates it as a
/// template.
fn literal(path: &str) -> String {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"/._-".contains(&it);
    if path.bytes().all(|it| is_plain(it) || !it.is_ascii()) {
        return path.to_owned();
    }
    let letter = |it: u8| {
        if is_plain(it) { char::from(it).to_string() } else { format!("%{it:02X}") }
    };
    format!("{{{{'{}'|urldecode}}}}", path.bytes().map(letter).collect::<String>())
}

/// Returns whether a name is `namespace.collection.playbook`; otherwise it is a file of the
/// project.
fn is_of_collection(name: &str) -> bool {
    let is_file = name.contains('/') || [".yml", ".yaml"].iter().any(|it| name.ends_with(it));
    !is_file && name.split('.').count() >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_that_a_run_asks_for_come_between_the_check_and_its_own_plays() {
        let spec = json!({ "playbook": "a.b.c", "factVariables": ["ansible_interfaces"] });
        let spec = serde_json::from_value(spec).unwrap();
        let plays: Vec<Value> = serde_json::from_str(&main(&spec)).unwrap();
        let expected = json!({
            "import_playbook": "/opt/edpm/plays/facts.yaml",
            "vars": { "edpm_fact_names": ["ansible_interfaces"] },
        });
        assert_eq!((plays.len(), &plays[1]), (3, &expected));
    }

    #[test]
    fn the_play_knows_the_kind_of_each_fact_that_can_be_asked_for() {
        let plays: Value = api::yaml::from_str(FACTS).unwrap();
        let kind = |it: &str| plays[0]["vars"][it].as_array().unwrap().clone();
        let mut names = [kind("edpm_fact_lists"), kind("edpm_fact_maps"), kind("edpm_fact_texts")]
            .concat()
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect::<Vec<_>>();
        names.sort();
        assert_eq!(names, facts::NAMES);
    }

    #[test]
    fn a_refusal_is_known_by_a_task_that_the_check_has() {
        assert!(
            OWNER_CHECK
                .contains(&format!("- name: {}\n", operator_core::run_engine::host_owner::REFUSAL))
        );
    }

    #[test]
    fn the_check_comes_first_whatever_the_run_is_for() {
        let second = |spec: Value| {
            let spec = serde_json::from_value(spec).unwrap();
            let plays: Vec<Value> = serde_json::from_str(&main(&spec)).unwrap();
            assert_eq!(plays[0], json!({ "import_playbook": "/opt/edpm/plays/owner-check.yaml" }));
            assert_eq!(plays.len(), 2);
            plays[1].clone()
        };
        let import = |it: &str| json!({ "import_playbook": it });
        assert_eq!(second(json!({ "playbook": "osp.edpm.nova" })), import("osp.edpm.nova"));
        for (playbook, file) in [("x.yml", "x.yml"), ("a.b.c.yaml", "a.b.c.yaml"), ("a/b", "a/b")] {
            let expected = import(&format!("/runner/project/{file}"));
            assert_eq!(second(json!({ "playbook": playbook })), expected);
        }
        for (playbook, path) in
            [("my play.yml", "my%20play.yml"), ("{{ x }}'+.yml", "%7B%7B%20x%20%7D%7D%27%2B.yml")]
        {
            let expected = format!("{{{{'/runner/project/{path}'|urldecode}}}}");
            assert_eq!(second(json!({ "playbook": playbook })), import(&expected));
        }
        let contents = import("/runner/project/playbook.yaml");
        assert_eq!(second(json!({ "playbookContents": "[]", "playbook": "a.b.c" })), contents);
        let role = json!({ "hosts": "all", "roles": [{ "name": "my role" }] });
        assert_eq!(second(json!({ "role": "my role" })), role);
    }
}

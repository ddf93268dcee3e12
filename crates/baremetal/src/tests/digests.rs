//! Digests of config drives: keyed wherever they appear, and an upgrade or a lost key affects no
//! machine.

use super::*;

const KEY_BEFORE: &[u8] = b"before";

/// Two hosts whose root has a password, deployed by an operator with these keys.
fn deployed(keys: Keys) -> Lab {
    let password = json!({"passwordSecret": {"name": "root"}});
    let mut lab = Lab::new(&password, &["available", "available"]);
    lab.keys = keys;
    lab.secret("root", &[("NodeRootPassword", "hunter2")]);
    lab.rest().unwrap();
    assert_eq!(lab.condition("UpToDate").status, ConditionStatus::True);
    lab
}

impl Lab {
    fn told_of_drive(&self) -> String {
        self.host("a").unwrap().config_drive_hash.unwrap()
    }

    /// Returns what other users can read of the set and of the machines.
    fn visible(&self) -> String {
        let notes = self.model.nodes.iter().map(|it| json!(it.instance_info).to_string());
        notes.chain([json!(self.set).to_string()]).collect()
    }

    /// Returns the requests to Ironic and the writes until nothing changes any more.
    fn since(&mut self) -> Vec<String> {
        let n_before = self.log.len();
        self.rest().unwrap();
        self.log[n_before..].to_vec()
    }
}

#[test]
fn no_plain_digest_of_a_config_drive_stands_in_a_status_or_on_a_machine() {
    let before = deployed(Keys::default());
    let plain = before.told_of_drive()[..10].to_owned();
    assert_eq!(before.visible().matches(&plain).count(), 2, "so it was before");
    let lab = deployed(Keys::new(KEY_BEFORE, []));
    assert!(!lab.visible().contains(&plain));
    assert_eq!(lab.told_of_drive(), deployed(Keys::new(KEY_BEFORE, [])).told_of_drive());
}

#[test]
fn an_upgrade_to_keyed_digests_of_drives_writes_nothing_and_touches_no_machine() {
    let mut lab = deployed(Keys::default());
    let plain = lab.told_of_drive();
    lab.keys = Keys::new(KEY_BEFORE, []);
    assert_eq!(lab.since(), [""; 0]);
    // A write for another reason stores the digests keyed.
    lab.edit(&json!({}));
    assert_eq!(lab.since(), ["status"]);
    assert!(lab.told_of_drive().starts_with('k') && lab.told_of_drive() != plain);
    assert_eq!(lab.condition("UpToDate").status, ConditionStatus::True);
    lab.secret("root", &[("NodeRootPassword", "hunter3")]);
    assert_eq!(lab.since(), ["status"]);
    assert_eq!(lab.condition("UpToDate").status, ConditionStatus::False);
}

#[test]
fn a_lost_key_of_drives_touches_no_machine_and_is_told_once() {
    let mut lab = deployed(Keys::new(KEY_BEFORE, []));
    lab.notices.clear();
    lab.keys = Keys::new(b"new", []);
    assert_eq!(lab.since(), ["status"]);
    let told: Vec<&str> = lab.notices.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(told, [KEY_LOST]);
    assert_eq!((lab.since(), lab.condition("UpToDate").status), (vec![], ConditionStatus::True));
}

//! Digests of config drives on machines, Secrets and the set: keyed, and an upgrade affects no
//! machine.

use super::*;

/// Two hosts whose root has a password, provisioned by an operator with these keys.
fn provisioned(keys: Keys) -> Metal {
    let mut world = Metal::new(&json!({"passwordSecret": {"name": "root"}}), &["x", "y"]);
    world.secret("root", &[("NodeRootPassword", "hunter2")]);
    world.keys = keys;
    world.rest().unwrap();
    assert_eq!(world.condition("UpToDate").status, ConditionStatus::True);
    world
}

impl Metal {
    fn drive_hash(&self) -> String {
        self.host("a").unwrap().config_drive_hash.unwrap()
    }
}

#[test]
fn no_plain_digest_of_a_config_drive_stands_on_a_machine_a_secret_or_in_a_status() {
    let visible = |it: &Metal| {
        let secrets = it.made.values().map(|it| &it["metadata"]);
        json!([it.set, it.machines, secrets.collect::<Vec<_>>()]).to_string()
    };
    let before = provisioned(Keys::default());
    let plain = before.drive_hash()[..10].to_owned();
    assert!(visible(&before).contains(&plain), "so it was before");
    let world = provisioned(Keys::new(b"key", []));
    assert!(!visible(&world).contains(&plain));
    assert!(world.drive_hash().starts_with('k'), "{}", world.drive_hash());
}

#[test]
fn an_upgrade_to_keyed_digests_of_drives_touches_no_machine() {
    let mut world = provisioned(Keys::default());
    let (n_before, machines) = (world.log.len(), world.machines.clone());
    world.keys = Keys::new(b"key", []);
    world.edit(&json!({}));
    world.rest().unwrap();
    assert_eq!((world.asked(n_before), &world.machines), (vec![], &machines));
    assert!(world.drive_hash().starts_with('k'), "{}", world.drive_hash());
    assert_eq!(world.condition("UpToDate").status, ConditionStatus::True);
}

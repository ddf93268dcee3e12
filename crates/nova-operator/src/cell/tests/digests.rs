//! Digests of a cell's Secrets: keyed in its status, but for the one that neighbours compare; an upgrade
//! or a lost key outdates no compute.

use operator_core::keyed::{KEY_LOST, changed_inputs};
use operator_core::{hash, upstream_hash};

use super::*;
use crate::compute::deploy::inputs;

fn keyed(seen: &mut Observed, keys: &Keys) {
    for secret in [&mut seen.secret, &mut seen.message_bus] {
        let content = secret.take().unwrap();
        let values = content.entries().map(|(key, it)| (key.to_owned(), it.to_vec())).collect();
        *secret = Some(Content::from(Values::keyed("1", values, keys)));
    }
    seen.keys = keys.clone();
}

/// A settled cell whose computes were deployed with its current inputs.
fn at_rest(keys: &Keys) -> Observed {
    let mut seen = seen();
    keyed(&mut seen, keys);
    seen.computes = vec![deployed("n0", &present(&seen))];
    while pass(&mut seen) {}
    seen
}

/// The digest of the Secret that node sets mount, in `status.hash`.
const FILES: &str = "nova-cell1-compute-config";

fn up_to_date(seen: &Observed) -> Option<i64> {
    seen.cell.status.as_ref()?.up_to_date_computes
}

#[test]
fn digests_in_a_cells_status_and_on_its_secret_are_keyed_but_for_the_one_that_node_sets_record() {
    let plain = at_rest(&Keys::default());
    let hashes = plain.cell.status.as_ref().unwrap().hash.clone();
    assert_eq!(hashes.len(), 2);
    let mut seen = at_rest(&Keys::new(b"key", []));
    let status = Arc::make_mut(&mut seen.cell).status.as_mut().unwrap();
    assert_eq!(status.hash.remove(FILES), hashes.get(FILES).cloned());
    let visible = json!([*seen.cell, seen.rendered.as_ref().unwrap().hash]).to_string();
    for text in hashes.values() {
        assert!(!visible.contains(&text[..10]), "{visible}");
    }
    let digest = hash::short(&inputs::short(&present(&plain)).text());
    assert!(!visible.contains(&digest));
}

#[test]
fn an_upgrade_to_keyed_digests_leaves_a_cell_and_its_computes_as_they_are() {
    let mut seen = at_rest(&Keys::default());
    keyed(&mut seen, &Keys::new(b"key", []));
    assert!(!pass(&mut seen));
    assert_eq!(up_to_date(&seen), Some(1));
    let tried = seen.cell.status.as_ref().unwrap().hash[CREDENTIALS].clone();
    assert!(inputs::short(&present(&seen)).is(&tried), "no compute waits for a login");
    // The next write for another reason has them keyed.
    *Arc::make_mut(&mut seen.cell).metadata.generation.as_mut().unwrap() += 1;
    assert!(pass(&mut seen));
    assert!(!pass(&mut seen));
    let status = seen.cell.status.as_ref().unwrap();
    let rendered = &seen.rendered.as_ref().unwrap().hash;
    for text in [&status.hash[CREDENTIALS], rendered] {
        assert!(text.starts_with('k') && text.contains(':'), "{status:?}");
    }
    // A changed password is noticed.
    let deployed = &seen.computes[0].status.as_ref().unwrap().deployed_inputs;
    assert_eq!(changed_inputs(deployed, &present(&seen)), [""; 0]);
    seen.secret = Some(secret(&[("ServicePassword", "another")]));
    keyed(&mut seen, &Keys::new(b"key", []));
    assert!(pass(&mut seen));
    assert_eq!(up_to_date(&seen), Some(0));
}

#[test]
fn a_lost_key_of_a_cell_is_told_once_and_leaves_its_computes_up_to_date() {
    let mut seen = at_rest(&Keys::new(b"lost", []));
    keyed(&mut seen, &Keys::new(b"new", []));
    let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
    let mut told = Vec::new();
    for step in plan.steps {
        if let Write::Status { notices, .. } = step.write {
            told.extend(notices);
        }
    }
    assert_eq!((told.len(), told[0].reason.as_str()), (1, KEY_LOST));
    assert!(pass(&mut seen));
    assert!(!pass(&mut seen));
    assert_eq!(up_to_date(&seen), Some(1));
}

/// The digest of the files that a release without keys published.
#[test]
fn what_a_release_without_keys_published_of_a_cells_files_is_known() {
    let seen = at_rest(&Keys::default());
    let plan = recorded(decide(&self::seen(), None, Timestamp::UNIX_EPOCH));
    let data = written(&plan).1.unwrap()["data"].clone();
    let data: BTreeMap<String, ByteString> = serde_json::from_value(data).unwrap();
    let hash = upstream_hash::of_secret(&data, "Opaque");
    assert_eq!(seen.rendered.unwrap().hash, hash);
    assert!(upstream_hash::of_secret_by(&Keys::new(b"key", []), &data, "Opaque").is(&hash));
}

#[test]
fn a_keyed_hash_of_the_files_that_a_release_before_wrote_becomes_the_plain_one_and_nothing_else() {
    let mut seen = at_rest(&Keys::new(b"key", []));
    let plain = seen.cell.status.as_ref().unwrap().hash[FILES].clone();
    let keyed = seen.rendered.as_ref().unwrap().hash.clone();
    let status = Arc::make_mut(&mut seen.cell).status.as_mut().unwrap();
    status.hash.insert(FILES.to_owned(), keyed);
    let decided = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
    assert_eq!(decided.steps.len(), 1);
    assert_eq!(written(&decided).0.hash[FILES], plain);
}

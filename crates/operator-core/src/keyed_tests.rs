//! Tests of keyed digests: their texts, and which recorded texts they match.

use super::*;

const PASSWORD: &[u8] = b"hunter2";

fn keys(present: &[u8], former: &[&[u8]]) -> Keys {
    Keys::new(present, former.iter().copied())
}

/// Builds a digest as services' hashes are built, from a Secret input and others.
fn service(keys: &Keys, password: &[u8], image: &str) -> Digest {
    let inputs = Inputs::from([
        ("Secret s password".to_owned(), keys.of_bytes(password).map(hash::short::<str>)),
        ("image".to_owned(), hash::short(image).into()),
    ]);
    Digest::combined(inputs.values(), |view| hash::digest(&("v1", view.all(&inputs))))
}

#[test]
fn a_digest_has_the_id_of_its_key_and_is_hmac_with_sha_256() {
    // RFC 4231, test case 2.
    let digest = keys(b"Jefe", &[]).of_bytes(b"what do ya want for nothing?");
    let text = digest.text();
    let (id, mac) = text.split_once(':').unwrap();
    assert_eq!(mac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    assert_eq!((id.len(), &id[..1]), (7, "k"));
    assert_eq!(digest.text(), format!("{digest:?}"));
    // The id is derived from the key, so that it changes when somebody edits the key.
    assert_ne!(keys(b"other", &[]).of_bytes(b"").text()[..7], *id);
}

#[test]
fn no_text_has_the_plain_digest_of_a_secret_value_in_it() {
    let keys = keys(b"key", &[]);
    let plain = hash::of_bytes(PASSWORD);
    for digest in [keys.of_bytes(PASSWORD), service(&keys, PASSWORD, "a")] {
        for secret in
            [&plain, &hash::short(&plain), &service(&Keys::default(), PASSWORD, "a").text()]
        {
            assert!(!digest.text().contains(&secret[..10]), "{digest:?}");
        }
        assert_eq!(format!("{digest:?}"), digest.text());
    }
    assert!(!format!("{keys:?}").contains("key\""), "{keys:?}");
}

#[test]
fn a_digest_without_a_secret_is_the_plain_one() {
    let inputs = Inputs::from([("image".to_owned(), hash::short("a").into())]);
    let digest = Digest::combined(inputs.values(), |view| hash::digest(&("v1", view.all(&inputs))));
    let plain = hash::digest(&("v1", BTreeMap::from([("image", hash::short("a"))])));
    assert_eq!(digest.text(), plain);
    assert!(digest.is(&plain) && !digest.is_lost(&plain) && !digest.is("k123456:a:b"));
}

#[test]
fn what_was_recorded_by_an_older_key_or_by_none_is_the_same_and_nothing_else_is() {
    let (old, new) = (keys(b"old", &[]), keys(b"new", &[b"old"]));
    let present = service(&new, PASSWORD, "a");
    for before in [&Keys::default(), &old, &new] {
        let recorded = |password, image| service(before, password, image).text();
        assert!(present.is(&recorded(PASSWORD, "a")), "{before:?}");
        assert!(!present.is_lost(&recorded(PASSWORD, "a")));
        assert!(!present.is(&recorded(b"other", "a")), "{before:?}");
        assert!(!present.is(&recorded(PASSWORD, "b")), "{before:?}");
    }
    assert_eq!(present.text(), service(&keys(b"new", &[]), PASSWORD, "a").text());
}

#[test]
fn by_a_lost_key_secrets_count_as_unchanged_and_all_else_is_compared() {
    let (lost, present) = (keys(b"lost", &[]), keys(b"new", &[]));
    let recorded = service(&lost, b"whatever", "a").text();
    let digest = service(&present, PASSWORD, "a");
    assert!(digest.is(&recorded) && digest.is_lost(&recorded));
    let other = service(&present, PASSWORD, "b");
    assert!(!other.is(&recorded) && !other.is_lost(&recorded));
    let single = present.of_bytes(PASSWORD);
    assert!(single.is(&lost.of_bytes(b"x").text()) && single.is_lost(&lost.of_bytes(b"x").text()));
    // A service that no longer has a Secret has changed.
    assert!(!Digest::from("plain").is(&recorded));
}

#[test]
fn a_key_that_is_listed_twice_counts_once() {
    let twice = keys(b"new", &[b"new", b"old"]);
    assert_eq!(twice.of_bytes(b"x"), keys(b"new", &[b"old"]).of_bytes(b"x"));
}

#[test]
fn digests_that_are_cut_alike_are_compared_alike() {
    let (old, new) = (keys(b"old", &[]), keys(b"new", &[b"old"]));
    let present = service(&new, PASSWORD, "a").cut(8);
    for before in [&Keys::default(), &old, &new, &keys(b"lost", &[])] {
        let recorded = service(before, PASSWORD, "a").cut(8).text();
        assert!(present.is(&recorded), "{before:?}");
        assert!(!present.is(&service(before, PASSWORD, "b").cut(8).text()), "{before:?}");
    }
    assert_eq!(service(&Keys::default(), PASSWORD, "a").cut(8).text().len(), 8);
    for digest in [service(&new, PASSWORD, "a"), service(&Keys::default(), PASSWORD, "a")] {
        assert_eq!(cut_text(&digest.text(), 8), digest.cut(8).text());
    }
}

#[test]
fn inputs_are_kept_as_they_were_recorded_until_they_change() {
    let keys = keys(b"key", &[]);
    let inputs = |keys: &Keys, password: &[u8]| {
        let digest = keys.of_bytes(password).map(hash::short::<str>);
        Inputs::from([("password".to_owned(), digest), ("image".to_owned(), "1".into())])
    };
    let recorded = texts(&inputs(&Keys::default(), PASSWORD));
    let (same, other) = (inputs(&keys, PASSWORD), inputs(&keys, b"other"));
    assert_eq!(kept(&recorded, &same), recorded);
    assert_eq!(changed_inputs(&recorded, &same), [""; 0]);
    assert_eq!(kept(&recorded, &other), texts(&other));
    assert_eq!(changed_inputs(&recorded, &other), ["password"]);
    assert_eq!(changed_inputs(&BTreeMap::new(), &same), ["image", "password"]);
    assert_eq!(changed_inputs(&recorded, &Inputs::new()), ["image", "password"]);
}

#[test]
fn what_was_recorded_without_a_key_can_be_left_as_it_is() {
    let (plain, old) = (service(&Keys::default(), PASSWORD, "a"), keys(b"old", &[]));
    for (password, image) in [(PASSWORD, "a"), (b"other".as_slice(), "a"), (PASSWORD, "b")] {
        let present = service(&keys(b"new", &[b"old"]).keeping_unkeyed(), password, image);
        let is_same = present == service(&keys(b"new", &[b"old"]).keeping_unkeyed(), PASSWORD, "a");
        assert_eq!((present.is(&plain.text()), present.renews(&plain.text())), (is_same, false));
        // New texts have the key anyway, and older keys are replaced.
        assert!(is_keyed(&present.text()));
        assert_eq!(present.renews(&service(&old, PASSWORD, "a").text()), is_same);
    }
    let renewed = service(&keys(b"new", &[]), PASSWORD, "a");
    assert!(renewed.renews(&plain.text()) && !renewed.renews(&renewed.text()));
}

#[test]
fn a_renewal_writes_what_is_the_same_by_the_present_key_and_tells_lost_keys() {
    let (lost, present) = (keys(b"lost", &[]), keys(b"new", &[]));
    let digest = present.of_bytes(PASSWORD);
    let mut renewal = Renewal::default();
    let mut text = Keys::default().of_bytes(PASSWORD).text();
    renewal.of(&mut text, &digest);
    assert_eq!((text.as_str(), renewal.lost()), (digest.text().as_str(), vec![]));
    let mut other = hash::of_bytes("other");
    renewal.of_some(Some(&mut other), &digest);
    assert_eq!((other, renewal.lost()), (hash::of_bytes("other"), vec![]));
    let mut text = lost.of_bytes(b"x").text();
    let id = text[..7].to_owned();
    renewal.of(&mut text, &digest);
    assert_eq!((text, renewal.lost()), (digest.text(), vec![id.as_str()]));
    // It is reported once.
    let mut again = Renewal::default();
    again.of(&mut digest.text(), &digest);
    assert_eq!(again.lost(), [""; 0]);
}

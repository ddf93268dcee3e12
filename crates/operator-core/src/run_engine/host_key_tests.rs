//! Tests of host keys: what is a key, which one is trusted, and when a run scans it.

use super::*;

const KEYS: [(&str, &str); 3] = [
    (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+",
        "SHA256:we3NhHv6qoWDZyJEgGkUdR8Wt3uFq2IQZFuEdYnEPQg",
    ),
    (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA14qTh+9rb8TwV5yGHttuXErUjIfElTMfOXZACEJV4L",
        "SHA256:qfjns8u+mffg5thVDh//jqSmjYPM9ckImYjORFeaUdc",
    ),
    (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEZvtfoScQVwAXtXmNssy8Rm79PsyzMRPTG5MoQVEsmv",
        "SHA256:GU7ZSXmmNF2RXD8QOoKFt6REBXSfwHRuL3UZCMyH8mw",
    ),
];

fn key(idx: usize) -> HostKey {
    HostKey::parse(KEYS[idx].0).unwrap()
}

fn fingerprint(idx: usize) -> String {
    KEYS[idx].1.to_owned()
}

#[test]
fn keys_have_the_text_and_the_fingerprint_that_ssh_keygen_prints() {
    for (text, fingerprint) in KEYS {
        let key = HostKey::parse(text).unwrap();
        assert_eq!((key.to_string(), key.fingerprint()), (text.to_owned(), fingerprint.to_owned()));
        let tail = text.rsplit_once(COMMON_PREFIX).unwrap().1;
        assert_eq!(tail.len(), 43);
        assert_eq!(HostKey::of_tail(tail), Some(key));
    }
    assert!(HostKey::parse(&format!("{} a comment", KEYS[0].0)).is_some());
}

#[test]
fn nothing_else_is_a_key() {
    let body = KEYS[0].0.split_once(' ').unwrap().1;
    for text in [
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        body,
        &format!("ssh-rsa {body}"),
        &format!("ssh-ed25519 {body}AAAA"),
        &format!("ssh-ed25519 {}", &body[..67]),
        &format!("ssh-ed25519 {}", body.replacen("NTE5", "NTE4", 1)),
        &format!("ssh-ed25519 {}", body.replacen("AAAAI", "AAAAJ", 1)),
    ] {
        assert_eq!(HostKey::parse(text), None, "{text}");
    }
    // The first character after the prefix holds its last two bits.
    for tail in ["", "Z", &"Z".repeat(43), &"=".repeat(43), &"A".repeat(44), "A\nB"] {
        assert_eq!(HostKey::of_tail(tail), None, "{tail}");
    }
}

#[test]
fn a_recorded_key_gives_way_only_to_the_accepted_one() {
    let cases = [
        // recorded, accepted, offered by runs, trusted
        (None, None, &[][..], None),
        (None, None, &[0], Some(0)),
        (None, None, &[0, 1], Some(0)),
        (None, Some(1), &[], None),
        (None, Some(1), &[0], None),
        (None, Some(1), &[0, 1], Some(1)),
        (Some(0), None, &[], Some(0)),
        (Some(0), None, &[1, 2], Some(0)),
        (Some(0), Some(1), &[], Some(0)),
        (Some(0), Some(1), &[0, 2], Some(0)),
        (Some(0), Some(1), &[2, 1], Some(1)),
        (Some(0), Some(0), &[1], Some(0)),
    ];
    for (recorded, accepted, offered, expected) in cases {
        let offered: Vec<HostKey> = offered.iter().map(|it| key(*it)).collect();
        let trust = HostKeyTrust::learned(recorded.map(key), accepted.map(fingerprint), &offered);
        assert_eq!(trust.key, expected.map(key), "{recorded:?} {accepted:?} {offered:?}");
    }
}

#[test]
fn what_is_no_fingerprint_accepts_no_key() {
    let given = |it: &str| accepted(Some(&it.to_owned()));
    assert_eq!(given(" SHA256:x\n").as_deref(), Some("SHA256:x"));
    assert_eq!(given("256 SHA256:x root@n0 (ED25519)").as_deref(), Some("SHA256:x"));
    assert_eq!((given(""), given(" "), accepted(None)), (None, None, None));
    assert_eq!(given(&"x".repeat(5000)).unwrap().len(), FINGERPRINT_LIMIT);
    for wrong in [&KEYS[0].1[7..], "yes", "SHA256:", "MD5:00", "*"] {
        let trust = HostKeyTrust::learned(None, given(wrong), &[key(0)]);
        assert_eq!(trust.key, None, "{wrong}");
        assert_eq!(trust.scan(false).unwrap().fingerprint.as_deref(), Some(wrong));
    }
}

#[test]
fn a_run_asks_for_what_is_unknown_accepted_or_refused() {
    let any = || Some(HostKeyScan::default());
    let only = |idx| Some(HostKeyScan { fingerprint: Some(fingerprint(idx)) });
    let cases = [
        // known, accepted, refused by the last attempt, scanned
        (None, None, false, any()),
        (None, None, true, any()),
        (None, Some(1), false, only(1)),
        (Some(0), None, false, None),
        (Some(0), None, true, only(0)),
        (Some(0), Some(0), false, None),
        (Some(0), Some(0), true, only(0)),
        (Some(0), Some(1), false, only(1)),
        (Some(0), Some(1), true, only(1)),
    ];
    for (known, accepted, is_refused, expected) in cases {
        let trust = HostKeyTrust {
            is_learned: true,
            key: known.map(key),
            accepted: accepted.map(fingerprint),
        };
        assert_eq!(trust.scan(is_refused), expected, "{known:?} {accepted:?} {is_refused}");
        let by_others = HostKeyTrust { is_learned: false, ..trust };
        assert_eq!(by_others.scan(is_refused), None);
        assert_eq!(by_others.token(), "");
    }
}

#[test]
fn the_word_for_what_is_trusted_changes_with_key_and_acceptance() {
    let token = |known: Option<usize>, accepted: Option<usize>| {
        let (key, accepted) = (known.map(key), accepted.map(fingerprint));
        HostKeyTrust { is_learned: true, key, accepted }.token()
    };
    assert_eq!(token(None, None), "");
    let all = [token(None, Some(1)), token(Some(0), None), token(Some(0), Some(1))];
    assert!(all.iter().all(|it| !it.is_empty()));
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "{all:?}");
    assert_eq!(token(Some(0), Some(1)), all[2]);
}

#[test]
fn the_command_names_the_node_and_ends_with_the_annotation() {
    assert_eq!(
        accept_command("openstack", "n0"),
        "kubectl annotate --overwrite -n openstack openstackdataplanenode/n0 \
         dataplane.openstack.org/accept-host-key="
    );
}

//! Body of the fuzz target of this crate; see `fuzz/` and docs/development.md.
//!
//! It is compiled only for tests, which run it on the committed corpus, and for the fuzzer.

use std::collections::BTreeMap;

use api::baremetal::BaremetalSetSpec;
use api::yaml;
use serde::Deserialize;

use crate::drive::{Drive, LIMIT};
use crate::from_baremetal_set::{Member, Texts, secrets};
use crate::input::Host;
use api::secret::Secret;

/// A fuzz target: its name, and the function that takes an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[("config_drive", config_drive)];

/// The input of the target: a host, or a set with the content of its Secrets.
#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    Set { set: Box<BaremetalSetSpec>, texts: BTreeMap<String, BTreeMap<String, String>> },
    Host(Box<Host>),
}

/// The input of a drive, as YAML or JSON.
pub fn config_drive(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match yaml::from_str(&text) {
        Ok(Input::Host(host)) => judged(&host),
        Ok(Input::Set { set, texts }) => of_set(&set, texts),
        Err(_) => {}
    }
}

fn judged(host: &Host) {
    let drive = Drive::of(host);
    assert_eq!(Drive::of(host), drive, "two answers to one question");
    match drive {
        Ok(drive) => {
            let n_bytes = drive.image().expose().len();
            // Each file is in two directories; the rest is directories and rounding.
            assert!(n_bytes <= 2 * LIMIT + 64 * 1024, "{n_bytes} bytes");
            assert!(n_bytes.is_multiple_of(2048), "half a sector");
        }
        Err(faults) => assert!(!faults.is_empty(), "refused without a fault"),
    }
}

fn of_set(set: &BaremetalSetSpec, texts: BTreeMap<String, BTreeMap<String, String>>) {
    let _ = secrets(set, "ns");
    let secret =
        |it: BTreeMap<String, String>| it.into_iter().map(|(k, v)| (k, Secret::new(v))).collect();
    let texts: Texts = texts.into_iter().map(|(name, it)| (name, secret(it))).collect();
    for (name, host) in &set.baremetal_hosts {
        let member = Member { set, namespace: "ns", name, host, texts: &texts };
        if let Ok(host) = member.input("u") {
            judged(&host);
        }
        let faults = member.drive("u").err().into_iter().chain(member.ramdisk(None).err());
        assert!(faults.into_iter().all(|it| !it.is_empty()), "refused without a fault");
    }
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

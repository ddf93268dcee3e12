//! The journey as a test: a snippet arrives, a changed one replaces it, and a removed one leaves nothing.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::count::Found;
use super::outcome::Outcome;
use crate::cluster::Choice;
use crate::journey::{self, SERVICE, Walk, places};
use crate::{lab, paths, sh};

/// What nova-compute does without the snippet.
const GENERATED: [(&str, &str); 2] =
    [("libvirt.cpu_mode", "host-model"), ("libvirt.cpu_models", "[]")];

/// How long nova-compute may take from its start to its log of options.
const STARTED: Duration = Duration::from_mins(1);

/// Walks it three times; each place of the first walk is a test, and each further walk is one.
pub(super) fn run(cluster: &Choice) -> Result<Found> {
    let env = journey::up(cluster)?;
    let mut found = Found::default();
    let first = first(&env, &mut found);
    let mut go_on = told(&mut found, "the_snippets_value_is_in_force", &first);
    for (name, walk) in [
        ("a_changed_snippet_starts_nova_compute_alone", changed as fn(&lab::Env) -> Result<()>),
        ("a_removed_snippet_leaves_the_generated_values", removed),
    ] {
        go_on = go_on && told(&mut found, name, &walk(&env));
    }
    Ok(found)
}

/// Counts one test; whether it passed.
fn told(found: &mut Found, name: &str, result: &Result<()>) -> bool {
    if let Err(error) = result {
        println!("{error:#}");
    }
    found.add(format!("e2e journey::{name}"), Outcome::of(result.is_ok()));
    result.is_ok()
}

fn first(env: &lab::Env, found: &mut Found) -> Result<()> {
    let file = paths::repo().join("examples/journey/my.conf");
    let walk = Walk::of(env, &file, &[])?;
    for place in places::ALL {
        println!("{}", walk.shown(place)?);
        told(found, &format!("step_{}", place.number), &Ok(()));
    }
    walk.deployed()?;
    is("libvirt.cpu_models", "['Nehalem']")
}

/// `nova_compute` starts once more, and libvirt goes on.
fn changed(env: &lab::Env) -> Result<()> {
    let before = places::containers()?;
    let file = snippet("[libvirt]\ncpu_mode = custom\ncpu_models = Penryn\n")?;
    let walk = Walk::of(env, &file, &[SERVICE])?;
    for place in places::ALL {
        println!("{}", walk.shown(place)?);
    }
    walk.deployed()?;
    is("libvirt.cpu_models", "['Penryn']")?;
    let after = places::containers()?;
    ensure!(before["nova_compute"] != after["nova_compute"], "nova_compute is the same container");
    ensure!(before["libvirt"] == after["libvirt"], "libvirt is another container");
    Ok(())
}

fn removed(env: &lab::Env) -> Result<()> {
    sh::step("take the snippet away", || journey::forget_snippet(env))?;
    let deployment = journey::deploy(env, &[SERVICE])?;
    journey::deployed(env, &deployment)?;
    GENERATED.iter().try_for_each(|(name, expected)| is(name, expected))
}

fn snippet(text: &str) -> Result<PathBuf> {
    let file = paths::target().join("journey/changed.conf");
    sh::write_if_changed(&file, text)?;
    Ok(fs::canonicalize(file)?)
}

/// Waits until the running nova-compute says so: it logs its options a moment after it was started.
fn is(name: &str, expected: &str) -> Result<()> {
    sh::wait_for(&format!("{name} = {expected}"), STARTED, || {
        let found = places::value(name)?;
        ensure!(found == expected, "{name} is {found}");
        Ok(())
    })
}

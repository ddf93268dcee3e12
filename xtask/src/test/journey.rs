//! The journey as a test: a snippet arrives, a changed one replaces it, and a removed one leaves nothing.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs, iter};

use anyhow::{Context, Result, ensure};

use super::count::Found;
use super::outcome::Outcome;
use crate::cluster::Choice;
use crate::journey::{self, HOST, KEY, NAMESPACE, SERVICE, Walk, places};
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
        ("kubectl_edpm_traces_all_twelve_steps", arrived as fn(&lab::Env) -> Result<()>),
        ("a_changed_snippet_starts_nova_compute_alone", changed),
        ("a_removed_snippet_leaves_the_generated_values", removed),
        ("kubectl_edpm_says_that_the_option_is_gone", gone),
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
    let walk = Walk::of(env, &example(), &[])?;
    for place in places::ALL {
        println!("{}", walk.shown(place)?);
        told(found, &format!("step_{}", place.number), &Ok(()));
    }
    walk.deployed()?;
    is("libvirt.cpu_models", "['Nehalem']")
}

/// The plugin sees at every place what the walk has seen there.
fn arrived(env: &lab::Env) -> Result<()> {
    let text = traced(env, &example())?;
    for place in places::ALL {
        let number = format!("{}. ", place.number);
        let line = text.lines().find(|it| it.starts_with(&number)).unwrap_or_default();
        let mark = line.split_whitespace().nth(2);
        ensure!(mark == Some("ok"), "step {} of the trace:\n{text}", place.number);
    }
    let in_force = format!("In force: Nehalem, from /etc/nova/nova.conf.d/{KEY} of ConfigMap ");
    ensure!(text.contains(&in_force), "the trace ends otherwise:\n{text}");
    Ok(())
}

/// Of what was taken away the plugin names the place where it is missing, and what holds instead.
fn gone(env: &lab::Env) -> Result<()> {
    let text = traced(env, &example())?;
    for words in ["It stops at step 3, written", "no file sets it", "In force: "] {
        ensure!(text.contains(words), "{words:?} is not in the trace:\n{text}");
    }
    Ok(())
}

/// `kubectl edpm trace` of the snippet's option, as a human runs it.
fn traced(env: &lab::Env, snippet: &Path) -> Result<String> {
    let others = env::var_os("PATH").unwrap_or_default();
    let folders = iter::once(paths::compiled().join("debug")).chain(env::split_paths(&others));
    let mut trace = env.kubectl();
    trace.env("PATH", env::join_paths(folders)?);
    trace.args(["edpm", "-n", NAMESPACE, "trace", KEY, "[libvirt]", "cpu_models", "--ask"]);
    trace.args(["--node", HOST.name, "--snippet"]).arg(snippet);
    let output = trace.stdin(Stdio::null()).output().context("cannot start kubectl")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    // It ends with 1 where the option is not in force.
    ensure!(matches!(output.status.code(), Some(0 | 1)) && !text.is_empty(), "{said}\n{text}");
    Ok(text)
}

fn example() -> PathBuf {
    paths::repo().join("examples/journey/my.conf")
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

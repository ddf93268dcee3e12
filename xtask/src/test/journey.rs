//! The journey as a test: a snippet takes effect, a changed one replaces it, and a removed one
//! leaves nothing.

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

/// The options of nova-compute without the snippet.
const GENERATED: [(&str, &str); 2] =
    [("libvirt.cpu_mode", "host-model"), ("libvirt.cpu_models", "[]")];

/// The timeout from nova-compute's start until it logs its options.
const STARTED: Duration = Duration::from_mins(10);

/// Runs it three times; each place of the first run is a test, and each further run is one.
pub(super) fn run(cluster: &Choice) -> Result<Found> {
    let env = journey::up(cluster)?;
    let mut found = Found::default();
    let first = first(&env, &mut found);
    let mut go_on = record(&mut found, "the_snippets_value_is_in_force", &first);
    for (name, walk) in [
        ("kubectl_edpm_traces_all_twelve_steps", arrived as fn(&lab::Env) -> Result<()>),
        ("a_changed_snippet_starts_nova_compute_alone", changed),
        ("a_removed_snippet_leaves_the_generated_values", removed),
        ("kubectl_edpm_says_that_the_option_is_gone", gone),
    ] {
        go_on = go_on && record(&mut found, name, &walk(&env));
    }
    Ok(found)
}

/// Records one test, and returns whether it passed.
fn record(found: &mut Found, name: &str, result: &Result<()>) -> bool {
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
        record(found, &format!("step_{}", place.number), &Ok(()));
    }
    walk.deployed()?;
    is("libvirt.cpu_models", "['Nehalem']")
}

/// Checks that the plugin finds the snippet at every place.
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

/// Checks that for a removed snippet the plugin names the place where it is missing, and the value
/// in force.
fn gone(env: &lab::Env) -> Result<()> {
    let text = traced(env, &example())?;
    for words in ["It stops at step 3, written", "no file sets it", "In force: "] {
        ensure!(text.contains(words), "{words:?} is not in the trace:\n{text}");
    }
    Ok(())
}

/// Runs `kubectl edpm trace` for the snippet's option, as a user does.
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
    // It exits with 1 when the option is not in force.
    ensure!(matches!(output.status.code(), Some(0 | 1)) && !text.is_empty(), "{said}\n{text}");
    Ok(text)
}

fn example() -> PathBuf {
    paths::repo().join("examples/journey/my.conf")
}

/// Changes the snippet: `nova_compute` restarts, and libvirt keeps running.
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

/// Waits until the running nova-compute has logged this value: it logs its options shortly after
/// its start.
fn is(name: &str, expected: &str) -> Result<()> {
    sh::wait_for(&format!("{name} = {expected}"), STARTED, || {
        let found = places::value(name)?;
        ensure!(found == expected, "{name} is {found}");
        Ok(())
    })
}

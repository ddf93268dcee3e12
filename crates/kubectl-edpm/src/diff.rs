//! `diff`: the inputs that a deployment would change on a host, and the options that depend on
//! them.

use api::conditions::READY;
use nova_config::oslo::{Entry, parse};
use nova_config::services::{LIBVIRT, NOVA, NOVA_REGISTERED};

use crate::color::{Paint, Tone};
use crate::conditions::said;
use crate::config_files::{files, shown};
use crate::host::{Host, Progress, Step};
use crate::option_sources::{ConfigPath, Options};
use crate::stage::{Phase, Stage, heading};

mod brought;
pub mod changes;

use brought::brought;
use changes::Changes;

/// Returns the text of `diff` for a host; empty when a deployment would change nothing.
pub fn text(host: &Host<'_>, road: Option<&ConfigPath<'_>>, paint: Paint) -> String {
    host.stages.iter().map(|stage| of_stage(host, stage, road, paint)).collect()
}

fn of_stage(
    host: &Host<'_>,
    stage: &Stage<'_>,
    road: Option<&ConfigPath<'_>>,
    paint: Paint,
) -> String {
    let (options, given) = match (stage.phase, road) {
        (Phase::Nova, Some(ConfigPath::Compute(options))) => (Some(&**options), None),
        (Phase::Deploy, Some(ConfigPath::Service(given))) => (None, Some(&**given)),
        (Phase::Prepare | Phase::Nova | Phase::Deploy, _) => (None, None),
    };
    let unrendered = options.map(|it| unrendered(it, paint)).unwrap_or_default();
    let changes = Changes::of(stage, options).without_others(host);
    if changes == Changes::None && unrendered.is_empty() {
        return String::new();
    }
    let mut out = paint.text(Tone::Bold, &heading(stage.kind, stage.name)) + "\n";
    match &changes {
        Changes::None => {}
        Changes::Never if stage.name.is_empty() => {
            let ready = stage.condition(READY).map(said).unwrap_or_default();
            out += &format!("  {ready}\n");
        }
        Changes::Never => {
            out += "  nothing was deployed yet, so all of it would be: ";
            out += &stage.desired.join(", ");
            out += "\n";
        }
        Changes::Unknown(why) => out += &format!("  what would change is unknown: {why}\n"),
        Changes::Inputs { names, is_cut } => {
            out += &inputs(names, *is_cut, options, paint);
            if stage.phase == Phase::Nova && !is_cut {
                let services = still_due(host, stage, options, services(names));
                out += &format!("  services that would run: {}\n", services.join(", "));
            }
        }
    }
    out += when(stage, &changes);
    out += &unrendered;
    out += &options.map(|it| brought(&changes, it, paint)).unwrap_or_default();
    out += &given.map(|it| brought::of_service(&changes, it, paint)).unwrap_or_default();
    out
}

/// Says when the changes would be deployed.
fn when(stage: &Stage<'_>, changes: &Changes) -> &'static str {
    if stage.phase == Phase::Deploy && !matches!(changes, Changes::None | Changes::Unknown(_)) {
        return "  it is not deployed until an OpenStackDataPlaneDeployment is created\n";
    }
    match (changes, stage.deploys) {
        (Changes::None | Changes::Unknown(_), _) | (_, None) => "",
        (_, Some(true)) => "  it is deployed as soon as nothing else has to be waited for\n",
        (_, Some(false)) => "  it is not deployed until deployStrategy.deploy is true\n",
    }
}

fn inputs(names: &[String], is_cut: bool, options: Option<&Options<'_>>, paint: Paint) -> String {
    let mut out = "  inputs that changed since the last deployment:\n".to_owned();
    let spec = options.map(|it| &it.compute.spec);
    for name in names {
        // Only values that are never secret are shown.
        let value = match name.as_str() {
            "novaComputeContainerImage" => {
                spec.and_then(|it| it.nova_compute_container_image.clone())
            }
            "novaLibvirtContainerImage" => {
                spec.and_then(|it| it.nova_libvirt_container_image.clone())
            }
            _ => None,
        };
        let value = value.map(|it| format!(" (now {it})")).unwrap_or_default();
        out += &format!("    {}\n", paint.text(Tone::Warn, &format!("~ {name}{value}")));
    }
    if is_cut {
        out += "    and more that the status has no room for\n";
    }
    out
}

/// Returns the services of a compute that depend on any of the inputs.
fn services(names: &[String]) -> Vec<&'static str> {
    // nova reads single keys of Secrets, and libvirt a certificate as a whole.
    let of_libvirt =
        |it: &str| it == "novaLibvirtContainerImage" || is_secret(it) && it.split(' ').count() == 2;
    let begins = ["ConfigMap ", "NovaCell ", "defaultConfigOverwrite "];
    let of_nova = |it: &str| {
        let fields = ["customServiceConfig", "novaComputeContainerImage", "nova-migration-ssh-key"];
        fields.contains(&it)
            || begins.iter().any(|begin| it.starts_with(begin))
            || is_secret(it) && !of_libvirt(it)
    };
    let libvirt = names.iter().any(|it| !of_nova(it)).then_some(LIBVIRT);
    let nova = names.iter().any(|it| !of_libvirt(it)).then_some(NOVA);
    libvirt.into_iter().chain(nova).chain([NOVA_REGISTERED]).collect()
}

fn is_secret(input: &str) -> bool {
    input.starts_with("Secret ")
}

/// Removes services that have already run with these inputs while others are in progress or fail.
///
/// A change that affects a service would have made it due again once the operator had observed it.
fn still_due(
    host: &Host<'_>,
    stage: &Stage<'_>,
    options: Option<&Options<'_>>,
    mut services: Vec<&'static str>,
) -> Vec<&'static str> {
    let progress = host.progress(stage);
    let is_done = |it: &Progress<'_>| it.state == Step::Succeeded;
    let goes_on = progress.iter().any(|it| !is_done(it)) && stage.deploys == Some(true);
    let is_seen = options.is_none_or(|it| {
        let status = it.compute.status.as_ref();
        status.and_then(|it| it.observed_generation) == it.compute.metadata.generation
    });
    if goes_on && is_seen {
        services.retain(|name| !progress.iter().any(|it| it.service == *name && is_done(it)));
    }
    services
}

/// Shows how the user's configuration differs from the rendered files.
fn unrendered(options: &Options<'_>, paint: Paint) -> String {
    let Some(secret) = options.secret.found() else { return String::new() };
    let rendered = files(secret);
    let compared = |(name, text)| {
        let file = rendered.iter().find(|it| it.name == name);
        compared(name, file.map(|it| it.entries.as_slice()).unwrap_or_default(), text, paint)
    };
    options.written().into_iter().map(compared).collect()
}

fn compared(file: &str, rendered: &[Entry], written: &str, paint: Paint) -> String {
    let written = parse(written).0;
    let has = |entries: &[Entry], it: &Entry| {
        let key = |it: &Entry| (it.section.clone(), it.key.clone(), it.value.clone());
        entries.iter().any(|other| key(other) == key(it))
    };
    let gone = rendered.iter().filter(|it| !has(&written, it));
    let gone = gone.map(|it| paint.text(Tone::Bad, &format!("- {}", shown(it))));
    let new = written.iter().filter(|it| !has(rendered, it));
    let new = new.map(|it| paint.text(Tone::Good, &format!("+ {}", shown(it))));
    let lines: Vec<String> = gone.chain(new).map(|it| format!("    {it}\n")).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("  {file}: not rendered yet from what was written:\n{}", lines.concat())
}

#[cfg(test)]
mod tests;

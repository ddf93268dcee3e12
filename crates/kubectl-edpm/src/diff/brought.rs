//! The options that a deployment would change: those in files that depend on changed inputs.

use nova_config::conf::{CA_BUNDLE_FILE, DEFAULT_FILE, GENERATED_FILE, OVERRIDE_FILE};
use nova_config::oslo::Entry;
use nova_config::rendered_secret::compute_secret_name;

use super::changes::Changes;
use crate::cluster::Read;
use crate::color::{Paint, Tone};
use crate::config_files::{File, files, shown};
use crate::option_names::OptionNames;
use crate::option_sources::{Options, ServiceSources};

/// Lists the options that a deployment would change, file by file.
pub(super) fn brought(changes: &Changes, options: &Options<'_>, paint: Paint) -> String {
    let names: Vec<&str> = match changes {
        Changes::Inputs { names, .. } => names.iter().map(String::as_str).collect(),
        Changes::None | Changes::Never | Changes::Unknown(_) => return String::new(),
    };
    let rendered = match &options.secret {
        Read::Found(secret) => files(secret),
        Read::Missing => return "  no files are rendered yet\n".to_owned(),
        Read::Refused(why) => return format!("  the rendered options cannot be read: {why}\n"),
    };
    let mut out = String::new();
    for file in &rendered {
        let is_chosen = |it: &&Entry| names.iter().any(|name| is_of(name, &file.name, it));
        out += &listed(file, file.entries.iter().filter(is_chosen), &rendered, paint);
    }
    let name = compute_secret_name(options.compute.metadata.name.as_deref().unwrap_or_default());
    if names.iter().any(|it| it.ends_with(" CABundle")) {
        out += &format!("  {CA_BUNDLE_FILE} of Secret {name}\n");
    }
    with_note(out)
}

/// Lists the options in changed objects of a service of type nova.
pub(super) fn of_service(changes: &Changes, given: &ServiceSources, paint: Paint) -> String {
    let Changes::Inputs { names, .. } = changes else { return String::new() };
    let Some(files) = given.read() else {
        return "  an object of the service cannot be read, and with it which options change\n"
            .to_owned();
    };
    let service = given.service.metadata.name.as_deref().unwrap_or_default();
    let comes = |it: &&File| {
        let object = it.object.kind.title(&it.object.key.name);
        names.contains(&format!("{object} of service {service}"))
    };
    let coming = files.iter().filter(comes);
    with_note(coming.map(|it| listed(it, it.entries.iter(), &files, paint)).collect())
}

/// Lists the chosen options of a file; empty when there are none.
fn listed<'a>(
    file: &File,
    chosen: impl Iterator<Item = &'a Entry>,
    all: &[File],
    paint: Paint,
) -> String {
    let line = |entry: &Entry| {
        let line = paint.text(Tone::Good, &format!("> {}", shown(entry)));
        format!("    {line}{}\n", overridden(entry, file, all))
    };
    let lines: String = chosen.map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("  {}, as it would reach the host:\n{lines}", file.name)
}

/// Adds a note about what is unknown, unless the list is empty.
fn with_note(mut out: String) -> String {
    if !out.is_empty() {
        out += "  which values the host has now is not known here: what was deployed is kept as \
                digests\n";
    }
    out
}

/// Names the later file that overrides the option, if any.
fn overridden(entry: &Entry, file: &File, all: &[File]) -> String {
    let named = OptionNames {
        names: vec![(entry.section.clone(), entry.key.clone())],
        is_multi: false,
        note: None,
    };
    match named.winner(all) {
        Some((winner, _)) if winner.name != file.name => {
            format!("  (without effect: {} sets it again)", winner.name)
        }
        _ => String::new(),
    }
}

/// Whether an option of a file depends on an input.
fn is_of(input: &str, file: &str, entry: &Entry) -> bool {
    match file {
        OVERRIDE_FILE => input == "customServiceConfig",
        DEFAULT_FILE => input.starts_with("ConfigMap "),
        GENERATED_FILE => keys(input).contains(&entry.key.as_str()),
        _ => false,
    }
}

/// Returns the generated options that depend on an input.
fn keys(input: &str) -> &'static [&'static str] {
    match input.rsplit(' ').next().unwrap_or_default() {
        "hostName" => &["host"],
        "address" => &["my_ip"],
        "keystoneAuthURL" => &["auth_url", "auth_endpoint"],
        "serviceUser" => &["username"],
        // Beside it there are neither user nor project, which come back without it.
        "ACID" => &[
            "auth_type",
            "application_credential_id",
            "username",
            "password",
            "user_domain_name",
            "project_name",
            "project_domain_name",
        ],
        "ACSecret" => &["application_credential_secret"],
        "transport_url" => &["transport_url", "ssl_ca_file"],
        "ServicePassword" => &["password"],
        "RegionName" => &["region_name", "os_region_name", "barbican_region_name"],
        "ProjectDomainName" => &["project_domain_name"],
        "UserDomainName" => &["user_domain_name"],
        "ProjectName" => &["project_name"],
        "CABundle" => &["cafile", "ssl_ca_file", "verify_ssl_path"],
        "NoVNCProxyURL" => &["novncproxy_base_url", "server_listen", "server_proxyclient_address"],
        "notification_transport_url" => {
            &["transport_url", "driver", "notify_on_state_change", "notification_format"]
        }
        "quorum_queues" => {
            &["rabbit_quorum_queue", "rabbit_transient_quorum_queue", "amqp_durable_queues"]
        }
        _ => &[],
    }
}

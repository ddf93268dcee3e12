//! Warnings about what the user wrote, or has not: a condition that does not affect `Ready`.

use api::conditions::ConditionDraft;
use api::dataplane::Node;
use kube::ResourceExt;
use nova_config::conditions::CONFIG_WARNINGS;
use nova_config::conf::{fixed_options, is_read};
use nova_config::oslo::{self, LIST_LIMIT, Text};
use nova_config::release::{Chosen, not_judged};
use nova_config::services::SSH_KNOWN_HOSTS_TYPE;

use crate::compute::deploy::config_inputs::default_text;
use crate::compute::deploy::migration_key::{KEYS, SECRET};
use crate::compute::deploy::observed::Observed;
use crate::group::conflicting_service::lister;
use crate::group::{Group, group_key};
use crate::reasons;

/// Returns the warnings about `spec.customServiceConfig` and the role's default configuration, and about
/// a host from which no guest can move.
pub fn config_warnings(seen: &Observed) -> ConditionDraft {
    let (spec, cannot_move) = (&seen.compute.spec, cannot_move(seen));
    let custom = spec.custom_service_config.as_deref().unwrap_or_default();
    let default = seen.default_config.as_ref();
    let default_source = default.map(|it| format!("ConfigMap {}", it.name));
    let default_options = default.and_then(|it| default_text(it.content.as_ref()?).ok());
    let mut texts = vec![Text { source: oslo::FIELD, text: custom }];
    if let (Some(source), Some(text)) = (&default_source, default_options) {
        texts.push(Text { source, text });
    }
    let found = oslo::warnings(&texts, &fixed_options(), seen.release.release(), LIST_LIMIT);
    let mut reported: Vec<String> = found.first.into_iter().map(|it| it.message).collect();
    if found.n_more > 0 {
        reported.push(format!("There are {} more", found.n_more));
    }
    let files = spec.default_config_overwrite.keys();
    reported.extend(files.filter(|it| !is_read(it)).map(|it| {
        format!(
            "File {it} of spec.defaultConfigOverwrite is brought to the host, and nova-compute reads \
             none but provider*.yaml of these"
        )
    }));
    let has_options = !reported.is_empty();
    reported.extend(cannot_move);
    let mut reason = if has_options || reported.is_empty() {
        &reasons::compute::SURPRISING
    } else {
        &reasons::compute::GUESTS_CANNOT_MOVE
    };
    if let Chosen::Unknown(named) = &seen.release
        && texts.iter().any(|it| !it.text.trim().is_empty())
    {
        reason = if has_options { reason } else { &reasons::compute::RELEASE_UNKNOWN };
        reported.push(not_judged(&spec.cell_name, named));
    }
    if reported.is_empty() {
        let text = "Nothing in the options that users wrote is surprising.";
        return reasons::compute::NO_WARNINGS.condition(CONFIG_WARNINGS, text);
    }
    reason.condition(CONFIG_WARNINGS, sentences(&reported))
}

/// Returns why guests can move neither to nor from the host, and what to do about it, without a period.
fn cannot_move(seen: &Observed) -> Option<String> {
    let node = seen.node.as_deref()?;
    let has_tls = seen
        .group
        .as_ref()
        .and_then(Group::role)
        .is_some_and(|it| it.spec.tls_enabled == Some(true));
    if has_tls {
        return None;
    }
    if seen.migration_key.is_some() {
        return trusts_none(seen, node);
    }
    Some(format!(
        "No guest can be moved live to or from this host, which has neither a certificate for libvirt \
         nor the key for migrations: {}make that key with `ssh-keygen -q -t ed25519 -N '' -f migration` \
         and `kubectl create secret generic -n {} {SECRET} --from-file={}=migration \
         --from-file={}=migration.pub`, list the service {SSH_KNOWN_HOSTS_TYPE}, by which hosts trust \
         each other, and deploy again",
        or_tls(node),
        node.namespace().unwrap_or_default(),
        KEYS[0],
        KEYS[1],
    ))
}

/// Returns the same of a host that has the key, and that no service tells the ssh keys of other hosts. What
/// a role lists that does not exist is not known.
fn trusts_none(seen: &Observed, node: &Node) -> Option<String> {
    let is_known = seen.group.is_some() || group_key(node).is_none();
    (is_known && !seen.has_known_hosts).then(|| {
        format!(
            "No guest can be moved live to or from this host, which has the key for migrations and trusts \
             no other host, for no service of type {SSH_KNOWN_HOSTS_TYPE} is in spec.services of {}: \
             {}list that service there, and deploy it",
            lister(seen.group.as_ref(), node),
            or_tls(node),
        )
    })
}

/// Returns the other way for guests to move, before the one that follows; empty for a node without a role.
fn or_tls(node: &Node) -> String {
    let role = node.spec.role.as_deref();
    let tls =
        role.map(|it| format!("set spec.tlsEnabled of OpenStackDataPlaneRole {it} to true, or "));
    tls.unwrap_or_default()
}

/// Joins sentences; adds a period to those without a question mark.
fn sentences(texts: &[String]) -> String {
    let ended = |it: &String| if it.ends_with('?') { it.clone() } else { format!("{it}.") };
    texts.iter().map(ended).collect::<Vec<_>>().join(" ")
}

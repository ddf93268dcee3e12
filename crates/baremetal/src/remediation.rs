//! Instructions for users: how a host keeps its machine, is deployed anew, or has its record
//! removed.

use api::baremetal::set::FOR;
use kube::ResourceExt;
use operator_core::applied::APPLIED;

use crate::observe::Observed;

/// Returns how to redeploy one host or several.
pub(crate) fn anew(seen: &Observed, host: &str) -> String {
    if seen.set.labels().contains_key(FOR) {
        // Its hosts are written by the owner and would reappear.
        return format!(
            "delete the node of {host}, or remove it from its node set, and create it again once \
             {host} is not in status.baremetalHosts"
        );
    }
    format!(
        "remove {host} from spec.baremetalHosts, and add it again once it is not in \
         status.baremetalHosts"
    )
}

/// Returns the end of a text about a lost machine: the command that removes its record.
pub(crate) fn forgotten(seen: &Observed, host: &str) -> String {
    // Escaped as in JSON pointers (RFC 6901).
    let key = host.replace('~', "~0").replace('/', "~1");
    format!(
        "remove its record with `kubectl -n {} patch openstackbaremetalset {} --subresource=status \
         --type=json -p '[{{\"op\": \"remove\", \"path\": \"/status/baremetalHosts/{key}\"}}]'`",
        seen.namespace,
        seen.set.name_any()
    )
}

/// Describes a host that was removed by someone other than its requesting owner.
pub(crate) fn in_use(host: &str, machine: &str) -> String {
    format!(
        "machine {machine} is kept unchanged, because the host was removed from the set, but the \
         owner of the set still requests it: remove {host} there, or, if it is no longer needed, \
         remove annotation {APPLIED} from the set"
    )
}

/// Describes a machine that is given up and keeps running.
pub(crate) fn retained(seen: &Observed, host: &str, machine: &str) -> String {
    let reported = seen.set.host_status(host);
    let addresses: Vec<&str> =
        reported.iter().flat_map(|it| it.ip_addresses.values()).map(String::as_str).collect();
    let at = if addresses.is_empty() {
        String::new()
    } else {
        format!(
            " and answers at {}: do not assign that address to another host",
            addresses.join(", ")
        )
    };
    format!("machine {machine} is no longer managed: it keeps running{at}")
}

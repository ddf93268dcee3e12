//! Why nova-compute is not stopped yet on the host of a compute that is not known to have registered.

use api::conditions::ConditionDraft;
use api::nova::ExternalCompute;
use nova_config::conditions::HOST_CLEANED;

use crate::cleanup::messages::{host, skip};
use crate::drain::condition::counted;
use crate::drain::progress::HostProgress;
use crate::drain::unknown::unknown;
use crate::reasons;

/// Returns the condition `HostCleaned` that holds the compute, or `None` once nova has shown that its
/// host is empty. `progress` is what the last inspection found; `secret` is the cell's Secret.
pub fn uninspected(
    compute: &ExternalCompute,
    progress: Option<&HostProgress>,
    secret: &str,
) -> Option<ConditionDraft> {
    if matches!(progress, Some(HostProgress::Empty | HostProgress::NotFound)) {
        return None;
    }
    let (host, skip) = (host(compute), skip(compute));
    if let Some(HostProgress::Occupied(found)) = progress {
        let text = format!(
            "nova-compute is not stopped on host {host}: the compute is not known to have \
             registered, but nova has {} and {} there. Migrate or delete them; `openstack server \
             list --all-projects --host {host}` lists them. {skip}",
            counted(found.servers.len() + found.stuck.len(), "server"),
            counted(found.migrations, "open migration")
        );
        return Some(reasons::cleanup::SERVERS_ON_HOST.condition(HOST_CLEANED, text));
    }
    let cause = match progress.and_then(|it| unknown(it, secret)) {
        Some((_, cause)) => format!("because {cause}"),
        None => "until nova has been asked.".to_owned(),
    };
    let text = format!(
        "nova-compute is not stopped on host {host} yet: it is unknown whether the host has \
         servers, {cause} {skip}"
    );
    Some(reasons::cleanup::SERVERS_UNKNOWN.condition(HOST_CLEANED, text))
}

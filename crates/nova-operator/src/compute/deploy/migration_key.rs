//! The key with which nova and libvirt log in to other hosts to move guests: upstream's Secret, which
//! the user makes, and which all hosts of a namespace share.

use std::collections::BTreeMap;

use api::dataplane::RunState;
use api::nova::ExternalCompute;
use api::problem::Problem;
use api::shared::SourceKind;
use operator_core::keyed::{Digest, Inputs, short};
use operator_core::run_engine::run_template::MountedSource;
use operator_core::run_engine::ssh_secret::PRIVATE_KEY;

use crate::compute::deploy::observed::Observed;
use crate::compute_status::deployed_files;
use crate::reasons;

/// The name of the Secret, and of the input.
pub const SECRET: &str = "nova-migration-ssh-key";
/// The keys of the Secret.
pub const KEYS: [&str; 2] = [PRIVATE_KEY, "ssh-publickey"];

/// Returns the digest of the key where it is an input of a compute; `without` is the digest of
/// nova-compute's other inputs.
///
/// A host that was deployed without the key gets it with its next deployment: an upgrade from a
/// release that knows of no key runs nothing, nor does the key alone.
pub fn input(seen: &Observed, without: &Digest) -> Option<Digest> {
    let digests = seen.migration_key.as_ref()?;
    let last = deployed_files::nova(seen.compute.services());
    let is_on_host = |it: RunState| matches!(it, RunState::Running | RunState::Succeeded);
    if last.is_some_and(|it| is_on_host(it.state) && without.is(&it.hash)) {
        return None;
    }
    let ours = digests.keys.iter().filter(|(name, _)| KEYS.contains(&name.as_str()));
    Some(short(&ours.map(|(name, it)| (name, it.clone())).collect::<BTreeMap<_, _>>()))
}

/// Returns the names of the files that a host gets with its next deployment; `inputs` are the present
/// ones.
pub fn due(seen: &Observed, inputs: &Inputs) -> Vec<String> {
    let is_due = seen.migration_key.is_some() && !inputs.contains_key(SECRET);
    KEYS.iter().filter(|_| is_due).map(|it| (*it).to_owned()).collect()
}

/// Whether the key belongs to what a compute was last deployed with.
pub fn is_deployed(compute: &ExternalCompute) -> bool {
    compute.status.as_ref().is_some_and(|it| it.deployed_inputs.contains_key(SECRET))
}

/// Returns what is wrong with the Secret, if anything. One that is gone, as while it is made anew, is
/// no request to take the key off the hosts.
pub fn fault(seen: &Observed) -> Option<Problem> {
    let Some(digests) = &seen.migration_key else {
        return is_deployed(&seen.compute).then(|| {
            let text = format!(
                "Secret {SECRET}, with which this host was deployed, does not exist: create it again \
                 with the keys {}.",
                KEYS.join(" and ")
            );
            Problem::new(&reasons::compute::SECRET_NOT_FOUND, text)
        });
    };
    if let Some(missing) = KEYS.iter().find(|it| !digests.keys.contains_key(**it)) {
        let text = format!("Secret {SECRET} has no key {missing}: add it.");
        return Some(Problem::new(&reasons::compute::SECRET_INCOMPLETE, text));
    }
    let text = format!("{PRIVATE_KEY} of Secret {SECRET} {}.", digests.ssh_key_fault?.text());
    Some(Problem::new(&reasons::compute::SECRET_INCOMPLETE, text))
}

/// Returns the mount of the Secret's keys beside nova's files.
pub fn source() -> MountedSource {
    let keys = KEYS.map(str::to_owned).to_vec();
    MountedSource { kind: SourceKind::Secret, name: SECRET.to_owned(), keys }
}

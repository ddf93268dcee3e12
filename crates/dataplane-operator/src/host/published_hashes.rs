//! The hashes of deployed Secrets in the form that other operators compare.
//!
//! They revoke the logins of before a rotation when each hash in the status of a node set is that of
//! the Secret of this name as it is now; a Secret that is gone would keep them for ever.

use std::collections::BTreeMap;

use operator_core::data_sources::SourceRef;
use operator_core::upstream_hash::Published;
use operator_runtime::source_cache::Digests;

/// Returns the recorded hash of a Secret without a key if the content is still the one that was
/// recorded; otherwise the text stays, and another deployment has to settle it.
pub fn published(
    sources: &BTreeMap<SourceRef, Digests>,
    namespace: &str,
    name: &str,
    recorded: &str,
) -> String {
    let present = sources.get(&SourceRef::secret(namespace, name)).map(|it| &it.published);
    let same = present.filter(|it| it.is(recorded));
    same.map_or_else(|| recorded.to_owned(), Published::text)
}

/// Returns the recorded hashes of the Secrets that exist.
///
/// # Assumptions
/// `sources` has each Secret of a recorded name that exists.
pub fn of_existing(
    sources: &BTreeMap<SourceRef, Digests>,
    namespace: &str,
    recorded: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let exists = |name: &str| sources.contains_key(&SourceRef::secret(namespace, name));
    let existing = recorded.into_iter().filter(|(name, _)| exists(name));
    let of_secret = |(name, text): (String, String)| {
        let text = published(sources, namespace, &name, &text);
        (name, text)
    };
    existing.map(of_secret).collect()
}

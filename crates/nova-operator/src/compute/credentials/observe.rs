//! Reads an object that computes hold, and who uses it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::nova::CredentialKind;
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::object_key::Key;
use operator_runtime::cache::Watchable;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::compute::credentials::decide::decide;
use crate::compute::credentials::lookup;
use crate::compute::credentials::observed::{HeldObject, Observed, finalizer};
use crate::shared_caches::credential_keys::{credential_of, key};
use crate::shared_caches::indexes::{BY_CREDENTIAL, cell_key};

/// The controller of what is held.
pub struct HeldCredentials {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
}

impl Controller for HeldCredentials {
    type Observed = Observed;

    const NAME: &'static str = "held-credential";

    const DECIDE: Decide<Observed> = |seen, _, now| decide(seen, now);

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let caches = &self.caches;
        let credential = credential_of(key);
        let object = credential.and_then(|it| lookup::object(caches, &key.namespace, &it));
        let Some(object) = object.filter(HeldObject::is_held) else { return Ok(None) };
        // One that cannot be read may use it too.
        caches.shared.computes.check_readable(&key.namespace)?;
        let mut computes = caches.shared.computes.indexed(BY_CREDENTIAL, key);
        computes.retain(|it| !is_terminating(&**it));
        let cells = computes.iter().filter_map(|it| {
            let key = cell_key(it);
            Some((key.clone(), caches.cells.get(&key)?))
        });
        let cells: BTreeMap<_, _> = cells.collect();
        Ok(Some(Observed { object, computes, cells: cells.into_values().collect() }))
    }
}

/// Returns the keys of what a changed object is held as.
pub fn held_as<K: Watchable>(object: &K, kinds: &[CredentialKind]) -> Vec<Key> {
    let at = Key::of(object);
    let held = kinds.iter().filter(|it| has_finalizer(object, finalizer(**it)));
    let named = |kind: &CredentialKind| {
        let credential = api::nova::Credential { kind: *kind, name: at.name.clone() };
        key(&at.namespace, &credential)
    };
    held.map(named).collect()
}

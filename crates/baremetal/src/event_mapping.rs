//! Maps changes of watched objects to the baremetal sets that they concern.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::baremetal::{BaremetalSet, Provisioner};
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::controller::Controller as _;
use operator_runtime::event_mapping::EventMapping;
use operator_runtime::workqueue::WorkQueue;

use crate::controller::{BaremetalSets, Caches};

/// Registers the event handlers that enqueue sets.
pub fn map_events(queue: &Arc<WorkQueue>, caches: &Arc<Caches>) {
    let mapping = EventMapping::new(queue, caches);
    mapping.watches(&caches.sets, |caches, set| {
        // Hosts of two sets may claim one address.
        let addresses = |set: &BaremetalSet| -> BTreeSet<String> {
            let hosts = set.spec.baremetal_hosts.values();
            hosts.filter_map(|it| it.ctl_plane_ip.clone()).collect()
        };
        let own = addresses(set);
        let conflicts = |other: &Arc<BaremetalSet>| {
            other.uid() != set.uid() && !own.is_disjoint(&addresses(other))
        };
        let here = caches.sets.in_namespace(&set.namespace().unwrap_or_default());
        let others = Key::of_each(here.into_iter().filter(conflicts));
        others.into_iter().chain([Key::of(set)]).collect::<Vec<_>>()
    });
    // Sets may wait for machines that another set gives back.
    caches.metal3.on_change(
        mapping.debounced().handler(|caches, machine| {
            let started = format!("{}/", machine.namespace);
            sets_of_metal3(caches, |set| {
                let mut reported = set.status.iter().flat_map(|it| it.baremetal_hosts.values());
                reported.any(|it| it.bmh_ref.starts_with(&started))
                    || set.spec.template.bmh_namespace == machine.namespace
            })
        }),
        mapping.handler(|caches, server| {
            sets_of_metal3(caches, |set| {
                set.spec.template.provision_server_name.as_ref() == Some(&server.name)
                    && set.namespace().as_ref() == Some(&server.namespace)
            })
        }),
    );
    caches.sources.on_change(BaremetalSets::NAME, mapping.handler(|_, reader| [reader]));
}

/// Returns the keys of the sets of Metal3 that a change concerns.
fn sets_of_metal3(caches: &Caches, is_concerned: impl Fn(&BaremetalSet) -> bool) -> Vec<Key> {
    let is_of_metal3 = |set: &BaremetalSet| set.spec.effective_provisioner() == Provisioner::Metal3;
    let sets = caches.sets.all().into_iter();
    Key::of_each(sets.filter(|it| is_of_metal3(it) && is_concerned(it)))
}

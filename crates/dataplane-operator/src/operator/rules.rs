//! What the operator may do in the cluster: its part of the chart's roles.

use baremetal::metal3;
use operator_core::rbac::{EVENTS, Rule, definitions};

use crate::node_set::external_apis;

/// What the operator may do in the watched namespaces.
pub const RULES: &[Rule] = &[
    Rule::of(&["dataplane.openstack.org"], &["openstackdataplanes"], &["get", "list", "watch"]),
    // What the maps of a data plane state, and the finalizer on what has an inventory.
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplaneroles", "openstackdataplanenodes"],
        &["create", "delete", "get", "list", "patch", "watch"],
    ),
    // The finalizer on what has an inventory, and on deployments that run.
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplanenodesets", "openstackdataplanedeployments"],
        &["get", "list", "patch", "watch"],
    ),
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplaneservices"],
        &["create", "get", "list", "patch", "watch"],
    ),
    Rule::of(
        &["dataplane.openstack.org"],
        &[
            "openstackdataplanedeployments/status",
            "openstackdataplanes/status",
            "openstackdataplaneroles/status",
            "openstackdataplanenodes/status",
            "openstackdataplanenodesets/status",
            "openstackdataplaneservices/status",
        ],
        &["patch"],
    ),
    // blockOwnerDeletion in the owner references of roles, nodes, runs, exposed ports, and what is asked
    // for node sets.
    Rule::of(
        &["dataplane.openstack.org"],
        &[
            "openstackdataplanedeployments/finalizers",
            "openstackdataplanenodesets/finalizers",
            "openstackdataplanes/finalizers",
            "openstackdataplaneroles/finalizers",
            "openstackdataplanenodes/finalizers",
            "openstackdataplaneservices/finalizers",
        ],
        &["update"],
    ),
    // What roles, nodes and node sets ask of machines, and whether nobody is left to be asked to take
    // them back.
    Rule::of(
        &["baremetal.openstack.org"],
        &["openstackbaremetalsets"],
        &["create", "delete", "get", "list", "patch", "watch"],
    ),
    Rule::of(&["baremetal.openstack.org"], &["openstackbaremetalsets/status"], &["patch"]),
    Rule::of(&[""], &["namespaces"], &["get"]),
    // Ports of the hosts, as Kubernetes Services.
    Rule::of(&[""], &["services"], &["create", "delete", "get", "list", "patch", "watch"]),
    Rule::of(
        &["discovery.k8s.io"],
        &["endpointslices"],
        &["create", "delete", "get", "list", "patch", "watch"],
    ),
    Rule::of(
        &["ansibleee.openstack.org"],
        &["openstackansibleees"],
        &["create", "delete", "get", "list", "watch"],
    ),
    Rule::of(&[""], &["configmaps"], &["create", "delete", "get", "list", "patch", "watch"]),
    // Variables from Secrets go into Secrets beside the inventories.
    Rule::of(&[""], &["secrets"], &["create", "delete", "get", "list", "patch", "watch"]),
    Rule::of(&["k8s.cni.cncf.io"], &["network-attachment-definitions"], &["get", "list", "watch"]),
    // Addresses, names and certificates of node sets, where the cluster has who serves them.
    external_apis::RULES[0],
    external_apis::RULES[1],
    external_apis::RULES[2],
    external_apis::RULES[3],
    // Machines of Metal3, where the cluster has it.
    metal3::RULES[0],
    metal3::RULES[1],
    EVENTS,
];

/// The definitions of the kinds that it looks after.
pub const DEFINITIONS: Rule = definitions(&[
    "openstackbaremetalsets.baremetal.openstack.org",
    "openstackdataplanedeployments.dataplane.openstack.org",
    "openstackdataplanenodes.dataplane.openstack.org",
    "openstackdataplanenodesets.dataplane.openstack.org",
    "openstackdataplaneroles.dataplane.openstack.org",
    "openstackdataplanes.dataplane.openstack.org",
    "openstackdataplaneservices.dataplane.openstack.org",
]);

//! RBAC rules of the operator: its part of the chart's roles.

use baremetal::metal3;
use operator_core::rbac::{EVENTS, READ, Rule, WRITE, definitions};
use operator_runtime::cert_manager;

use crate::external_apis;

/// RBAC rules in the watched namespaces.
pub const RULES: &[Rule] = &[
    Rule::of(&["dataplane.openstack.org"], &["openstackdataplanes"], READ),
    // The objects of a data plane's maps, the nodes of node sets, and the finalizer on objects with an
    // inventory.
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplaneroles", "openstackdataplanenodes"],
        WRITE,
    ),
    // The finalizer on objects with an inventory, and on deployments that run.
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
    // blockOwnerDeletion in the owner references of roles, nodes, runs, exposed ports, and objects
    // requested for node sets.
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
    // The machines that roles, nodes and node sets request. Namespaces are read because machines
    // cannot be given back once a terminating namespace has lost its credentials.
    Rule::of(&["baremetal.openstack.org"], &["openstackbaremetalsets"], WRITE),
    Rule::of(&["baremetal.openstack.org"], &["openstackbaremetalsets/status"], &["patch"]),
    Rule::of(&[""], &["namespaces"], &["get"]),
    // Ports of the hosts, as Kubernetes Services.
    Rule::of(&[""], &["services"], WRITE),
    Rule::of(&["discovery.k8s.io"], &["endpointslices"], WRITE),
    Rule::of(
        &["ansibleee.openstack.org"],
        &["openstackansibleees"],
        &["create", "delete", "get", "list", "watch"],
    ),
    Rule::of(&[""], &["configmaps"], WRITE),
    // Variables from Secrets are written into Secrets beside the inventories.
    Rule::of(&[""], &["secrets"], WRITE),
    Rule::of(&["k8s.cni.cncf.io"], &["network-attachment-definitions"], READ),
    // Addresses and names of node sets, if the cluster has operators for them.
    external_apis::RULES[0],
    external_apis::RULES[1],
    // Certificates of hosts, if the cluster has cert-manager.
    cert_manager::RULES[0],
    cert_manager::RULES[1],
    // Machines of Metal3, if the cluster has it.
    metal3::RULES[0],
    metal3::RULES[1],
    EVENTS,
];

/// Rule for the CRDs that the operator reconciles, or that it alone reads.
pub const DEFINITIONS: Rule = definitions(&[
    "openstackbaremetalsets.baremetal.openstack.org",
    "openstackdataplanedeployments.dataplane.openstack.org",
    "openstackdataplanenodes.dataplane.openstack.org",
    "openstackdataplanenodesets.dataplane.openstack.org",
    "openstackdataplaneroles.dataplane.openstack.org",
    "openstackdataplanes.dataplane.openstack.org",
    "openstackdataplaneservices.dataplane.openstack.org",
]);

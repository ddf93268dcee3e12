//! The finalizers of nova-operator: what each of them holds, and until when.

/// On a node that owns a compute: until the compute is gone.
pub const NODE: &str = "nova.openstack.org/compute";
/// On a compute that has run, or will: until its host is cleaned up and leftovers are reported.
pub const COMPUTE: &str = "nova.openstack.org/cleanup";
/// On a cell that this operator reconciles and that has computes: until it has none.
pub const CELL: &str = "nova.openstack.org/in-use";
/// On a `RabbitMQUser` that computes log in as: until each was deployed with another one.
pub const RABBITMQ_USER: &str = "nova.openstack.org/computes";
/// On the Secret of a `TransportURL` that computes log in with, where no such user is known; infra-operator
/// keeps the user while a finalizer with this begin and this end is there.
pub const TRANSPORT_SECRET: &str = "openstack.org/edpm-transport-consumer";
/// On the Secret of an application credential that computes log in with; keystone-operator revokes none
/// with a finalizer of this begin and this end.
pub const APPLICATION_CREDENTIAL: &str = "openstack.org/edpm-ac-consumer";

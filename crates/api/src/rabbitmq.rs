//! Kinds of rabbitmq.openstack.org, which another operator serves: users of message buses.
//!
//! Only the fields that are used stand here, and no definition of them is ever installed.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// A user of a message bus.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "rabbitmq.openstack.org",
    version = "v1beta1",
    kind = "RabbitMQUser",
    root = "RabbitMqUser",
    plural = "rabbitmqusers",
    namespaced,
    schema = "disabled",
    status = "RabbitMqUserStatus",
    derive = "PartialEq"
)]
pub struct RabbitMqUserSpec {
    /// Its name in RabbitMQ; that of the object when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
}

/// What was made of it in RabbitMQ.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RabbitMqUserStatus {
    /// Its name in RabbitMQ.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The virtual host that it may use.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vhost: String,
}

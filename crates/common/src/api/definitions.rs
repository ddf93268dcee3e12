//! The definitions of all kinds, as they are installed into a cluster.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::{ansibleee, dataplane, nova};

/// The definitions of all kinds that the operators serve.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        ansibleee::AnsibleEe::crd(),
        dataplane::Node::crd(),
        dataplane::Role::crd(),
        dataplane::Service::crd(),
        nova::Cell::crd(),
        nova::ExternalCompute::crd(),
    ]
}

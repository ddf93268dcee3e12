//! The command-line options of dataplane-operator.

use clap::Parser;
use ipnet::IpNet;
use operator_runtime::args::{CommonArgs, DigestArgs, EndpointArgs, WebhookArgs};

use crate::collection::RunnerImage;
use crate::default_services::DefaultGate;

/// Brings hosts into service, phase 0: the services of each role, host by host.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Args {
    /// Arguments that all operators share.
    #[command(flatten)]
    pub common: CommonArgs,
    /// The admission webhooks.
    #[command(flatten)]
    pub webhook: WebhookArgs,
    /// Settings for the digests of the content of Secrets.
    #[command(flatten)]
    pub digests: DigestArgs,
    /// Where the servers may be that users name.
    #[command(flatten)]
    pub endpoints: EndpointArgs,
    /// Networks whose addresses may become endpoints of Kubernetes Services, as CIDRs separated by
    /// commas; every address is allowed when it is not set.
    #[arg(long, env = "SERVICE_NETWORKS", value_delimiter = ',', value_name = "CIDRS")]
    pub service_networks: Vec<IpNet>,
    /// Readiness gates that default services list beyond what is shipped, as
    /// SERVICE=TYPE, separated by commas.
    #[arg(long, env = "DEFAULT_SERVICE_GATES", value_delimiter = ',', value_name = "GATES")]
    pub default_service_gates: Vec<DefaultGate>,
    /// Runner image of runs whose service names none; where it is the project's own, services whose
    /// playbook it lacks are reported before the first run.
    #[arg(
        long,
        env = "RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT",
        default_value = "",
        value_name = "IMAGE"
    )]
    pub runner_image: RunnerImage,
}

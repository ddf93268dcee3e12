//! The command-line options of nova-operator.

use clap::{ArgAction, Parser};
use nova_config::oslo::Release;
use nova_config::release;
use operator_runtime::args::{CommonArgs, DigestArgs, EndpointArgs, WebhookArgs};

use crate::images::Images;

/// Deploys nova-compute to hosts that are ready for it, phase 1: one compute for each node with a
/// cell.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Args {
    /// The options that all operators share.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Digests of what Secrets hold.
    #[command(flatten)]
    pub digests: DigestArgs,
    /// The admission webhooks.
    #[command(flatten)]
    pub webhook: WebhookArgs,
    /// Where the servers may be that users name.
    #[command(flatten)]
    pub endpoints: EndpointArgs,
    /// Images of a compute that names none.
    #[command(flatten)]
    pub images: ImageArgs,

    /// Whether this operator reconciles `NovaCell` objects; false when another one owns them.
    #[arg(
        long,
        env = "RECONCILE_NOVACELL",
        default_value_t = true,
        action = ArgAction::Set,
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub reconcile_novacell: bool,

    /// Whether nova's API is read: whether each nova-compute service is up, and each host mapped.
    #[arg(long, env = "READ_NOVA_API")]
    pub read_nova_api: bool,

    /// Seconds between two readings of nova's API.
    #[arg(
        long,
        env = "NOVA_API_INTERVAL",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    pub nova_api_interval: u64,

    /// The shortest interval of audits that an annotation may request, in seconds.
    #[arg(
        long,
        env = "LEAST_AUDIT_INTERVAL",
        default_value_t = 600,
        value_parser = clap::value_parser!(i64).range(1..=86_400)
    )]
    pub least_audit_interval: i64,

    /// How many audits may be open at a time in the cluster.
    #[arg(
        long,
        env = "MAX_OPEN_AUDITS",
        default_value_t = 4,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub max_open_audits: u16,

    /// Release of OpenStack that options of computes are checked against when their `NovaCell`
    /// names none.
    #[arg(
        long,
        env = "NOVA_RELEASE",
        default_value = Release::newest().name(),
        value_parser = release::parse
    )]
    pub nova_release: Release,
}

/// Images of a compute that names none.
#[derive(clap::Args, Clone, Debug)]
pub struct ImageArgs {
    /// Image of the container `nova_compute`, for a compute that names none.
    #[arg(
        long,
        env = "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT",
        default_value = "",
        value_name = "IMAGE"
    )]
    pub nova_compute_image: String,

    /// Image of the libvirt containers, for a compute that names none.
    #[arg(
        long,
        env = "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT",
        default_value = "",
        value_name = "IMAGE"
    )]
    pub nova_libvirt_image: String,

    /// Image that runs Ansible, for a compute that names none.
    #[arg(
        long,
        env = "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT",
        default_value = "",
        value_name = "IMAGE"
    )]
    pub ansible_ee_image: String,
}

impl From<ImageArgs> for Images {
    fn from(args: ImageArgs) -> Self {
        Self {
            nova_compute: args.nova_compute_image,
            nova_libvirt: args.nova_libvirt_image,
            ansible_ee: args.ansible_ee_image,
        }
    }
}

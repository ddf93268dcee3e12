//! The options shared by all operators, flattened into each operator's own.

use std::{net::SocketAddr, path::PathBuf};

use clap::{ArgAction, Args, ValueEnum};
use ipnet::IpNet;

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum LogFormat {
    /// One readable line per event.
    #[default]
    Text,
    /// One JSON object per event.
    Json,
}

/// Who issues a webhook's certificate and publishes its CA.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum CertificateMaker {
    /// The operator itself.
    #[default]
    Operator,
    /// cert-manager, with the chart's `Certificate`; the operator only reads.
    CertManager,
}

/// Options of every operator.
#[derive(Args, Clone, Debug)]
pub struct CommonArgs {
    /// The operator's own namespace, of its Lease and its webhook's certificate; by default the
    /// service account's or the kubeconfig's.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAME")]
    pub namespace: Option<String>,

    /// Namespaces to work in, separated by commas; all when empty.
    #[arg(long, env = "WATCH_NAMESPACES", value_delimiter = ',', value_name = "NAMES")]
    pub watch_namespaces: Vec<String>,

    /// Kinds to reconcile although their CRD belongs to another operator, separated by commas.
    #[arg(long, env = "CLAIM_KINDS", value_delimiter = ',', value_name = "KINDS")]
    pub claim_kinds: Vec<String>,

    /// Address of /metrics, /healthz and /readyz.
    #[arg(long, env = "ADMIN_ADDRESS", default_value = "0.0.0.0:8080", value_name = "ADDRESS")]
    pub admin_address: SocketAddr,

    /// How log lines look: readable text, or JSON objects.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// What is logged: a level, or directives such as "`info,operator_runtime=debug`".
    #[arg(long, env = "LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    pub log_level: String,

    /// Write only while holding the operator's Lease; without it, run one replica only.
    #[arg(
        long,
        env = "LEADER_ELECT",
        default_value_t = true,
        action = ArgAction::Set,
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub leader_elect: bool,

    /// Seconds without a renewal of the Lease after which another replica takes over.
    #[arg(
        long,
        env = "LEASE_DURATION",
        default_value_t = 30,
        value_parser = clap::value_parser!(u16).range(5..=300),
        value_name = "SECONDS"
    )]
    pub lease_duration: u16,

    /// This replica's name in the Lease; the host's name by default.
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    pub identity: Option<String>,

    /// A kubeconfig to use instead of KUBECONFIG, ~/.kube/config or the service account.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl CommonArgs {
    /// Returns the namespaces to work in, or `None` for all. Blank and repeated entries are
    /// dropped.
    pub fn namespaces(&self) -> Option<Vec<String>> {
        let mut names: Vec<String> =
            self.watch_namespaces.iter().map(|it| it.trim().to_owned()).collect();
        names.retain(|it| !it.is_empty());
        names.sort();
        names.dedup();
        (!names.is_empty()).then_some(names)
    }
}

/// Options of an operator that writes digests of Secret content.
#[derive(Args, Clone, Debug)]
pub struct DigestArgs {
    /// Replace unkeyed digests, written by a release without digest keys, at the next write of
    /// their status; when disabled they stay until their host is deployed again, so that the older
    /// release still recognizes them.
    #[arg(
        long,
        env = "REWRITE_UNKEYED_DIGESTS",
        default_value_t = true,
        action = ArgAction::Set,
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub rewrite_unkeyed_digests: bool,
}

/// Options of an operator that sends requests to servers that users name.
#[derive(Args, Clone, Debug)]
pub struct EndpointArgs {
    /// Networks in which servers that users name may have a loopback, link-local or metadata address, as
    /// CIDRs separated by commas; nothing is sent to such an address otherwise.
    #[arg(long, env = "ALLOWED_ENDPOINT_NETWORKS", value_delimiter = ',', value_name = "CIDRS")]
    pub allowed_endpoint_networks: Vec<IpNet>,
}

/// Options of an operator with admission webhooks.
#[derive(Args, Clone, Debug)]
pub struct WebhookArgs {
    /// Serve the admission webhooks; without them the controllers alone enforce every rule.
    #[arg(
        long,
        env = "ENABLE_WEBHOOKS",
        default_value_t = true,
        action = ArgAction::Set,
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub enable_webhooks: bool,

    /// Address that the webhooks listen on.
    #[arg(long, env = "WEBHOOK_ADDRESS", default_value = "0.0.0.0", value_name = "IP")]
    pub webhook_address: std::net::IpAddr,

    /// Port that the webhooks listen on.
    #[arg(long, env = "WEBHOOK_PORT", default_value_t = 9443, value_name = "PORT")]
    pub webhook_port: u16,

    /// Name of the Service by which the API server reaches the webhooks; the certificate's name.
    #[arg(long, env = "WEBHOOK_SERVICE", default_value = "", value_name = "NAME")]
    pub webhook_service: String,

    /// Host by which the API server reaches the webhooks without a Service, for an operator outside
    /// the cluster: a DNS name or an IP address, for which the certificate is then issued.
    #[arg(long, env = "WEBHOOK_HOST", value_name = "HOST")]
    pub webhook_host: Option<String>,

    /// Name of the Secret that holds the certificate; the Service's name and "-tls" by default.
    #[arg(long, env = "WEBHOOK_SECRET", value_name = "NAME")]
    pub webhook_secret: Option<String>,

    /// Who issues the certificate and maintains the caBundle: this operator, or cert-manager.
    #[arg(long, env = "WEBHOOK_CERTIFICATES", value_enum, default_value_t)]
    pub webhook_certificates: CertificateMaker,

    /// CA certificates in PEM that authenticate the API server to the webhooks; without them every
    /// client is answered.
    #[arg(long, env = "WEBHOOK_CLIENT_AUTHORITIES", default_value = "", value_name = "PEM")]
    pub webhook_client_authorities: String,

    /// Name of the webhook configurations, mutating and validating, whose caBundle is kept in sync.
    #[arg(long, env = "WEBHOOK_CONFIGURATION", value_name = "NAME")]
    pub webhook_configuration: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        common: CommonArgs,
        #[command(flatten)]
        webhook: WebhookArgs,
        #[command(flatten)]
        endpoints: EndpointArgs,
    }

    #[test]
    fn every_option_has_a_default_and_a_sentence() {
        use clap::CommandFactory as _;
        let command = Cli::command();
        command.clone().debug_assert();
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.len() > 20, "{}", argument.get_id());
        }
        let cli = Cli::parse_from(["x"]);
        assert!(cli.common.leader_elect && cli.webhook.enable_webhooks);
    }

    #[test]
    fn an_empty_list_of_namespaces_means_all() {
        let of =
            |text: &str| Cli::parse_from(["x", "--watch-namespaces", text]).common.namespaces();
        assert_eq!(of(""), None);
        assert_eq!(of("b, a,b"), Some(vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn a_switch_can_be_turned_off() {
        let cli = Cli::parse_from(["x", "--leader-elect=false", "--enable-webhooks", "false"]);
        assert!(!cli.common.leader_elect && !cli.webhook.enable_webhooks);
    }
}

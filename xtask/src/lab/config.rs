//! The lab's configuration files as pure functions, so that a part is restarted when its text
//! changes.

use std::collections::BTreeMap;
use std::path::Path;

use super::pki::CLIENTS;
use super::{ADDRESS, BRIDGE, NODE, REGISTRY};

/// The lab's directories.
pub(super) struct Places<'a> {
    pub(super) state: &'a Path,
    /// It outlives the lab, so that images need not be pushed again.
    pub(super) registry: &'a Path,
}

/// Returns all files by their path in the state directory.
pub(super) fn files(places: &Places<'_>) -> BTreeMap<String, String> {
    let state = places.state.display().to_string();
    let mut files = BTreeMap::from([
        ("audit-policy.yaml".to_owned(), AUDIT_POLICY.to_owned()),
        ("cni/10-edpm-lab.conflist".to_owned(), network(&state)),
        ("containerd.toml".to_owned(), containerd(&state)),
        (format!("certs.d/{REGISTRY}/hosts.toml"), registry_host()),
        ("kubelet.yaml".to_owned(), kubelet(&state)),
        ("proxy.yaml".to_owned(), proxy(&state)),
        ("registry.yaml".to_owned(), registry(&places.registry.display().to_string())),
        ("resolv.conf".to_owned(), RESOLV_CONF.to_owned()),
    ]);
    for client in CLIENTS {
        files.insert(format!("kubeconfig/{client}"), kubeconfig(&state, client));
    }
    files
}

fn kubeconfig(state: &str, client: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
  - name: edpm-lab
    cluster: {{server: 'https://127.0.0.1:6443', certificate-authority: {state}/pki/ca.crt}}
users:
  - name: {client}
    user: {{client-certificate: {state}/pki/{client}.crt, client-key: {state}/pki/{client}.key}}
contexts:
  - name: edpm-lab
    context: {{cluster: edpm-lab, user: {client}}}
current-context: edpm-lab
"
    )
}

/// Logs every request once, without bodies: enough to count by user, verb and resource.
pub(crate) const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
";

/// No name server: a lookup in a pod fails at once instead of leaving the machine.
const RESOLV_CONF: &str = "options timeout:1 attempts:1\n";

/// The project's namespaces, with the Pod Security level of each.
pub(super) const NAMESPACES: &str = "apiVersion: v1
kind: Namespace
metadata: {name: openstack}
---
apiVersion: v1
kind: Namespace
metadata: {name: edpm-hosts, labels: {pod-security.kubernetes.io/enforce: privileged}}
---
apiVersion: v1
kind: Namespace
metadata: {name: edpm-system, labels: {pod-security.kubernetes.io/enforce: restricted}}
";

/// Returns the CNI configuration. The lower half of the network is reserved for hosts with fixed
/// addresses.
fn network(state: &str) -> String {
    let range = serde_json::json!({
        "subnet": super::NETWORK,
        "rangeStart": "192.168.124.2",
        "rangeEnd": "192.168.127.254",
        "gateway": ADDRESS,
    });
    let list = serde_json::json!({
        "cniVersion": "1.0.0",
        "name": "edpm-lab",
        "plugins": [{
            "type": "bridge",
            "bridge": BRIDGE,
            "isGateway": true,
            "ipMasq": false,
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "dataDir": format!("{state}/cni-addresses"),
                "ranges": [[range]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    });
    format!("{list:#}\n")
}

/// Returns containerd's configuration. `restrict_oom_score_adj` is set because many containers and
/// virtual machines do not allow to lower the value.
fn containerd(state: &str) -> String {
    format!(
        "version = 3
root = '{state}/containerd/root'
state = '{state}/containerd/state'
disabled_plugins = ['io.containerd.nri.v1.nri']

[grpc]
  address = '{state}/containerd/containerd.sock'

[plugins.'io.containerd.internal.v1.opt']
  path = '{state}/containerd/opt'

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '{pause}'

[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = '{state}/certs.d'

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  enable_selinux = false

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['{state}/bin']
  conf_dir = '{state}/cni'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = '{state}/bin/runc'
  Root = '{state}/containerd/runc'
  SystemdCgroup = false
",
        pause = super::pause::IMAGE
    )
}

fn registry_host() -> String {
    format!(
        "server = 'http://{REGISTRY}'

[host.'http://{REGISTRY}']
  capabilities = ['pull', 'resolve']
"
    )
}

fn registry(storage: &str) -> String {
    format!(
        "version: 0.1
log: {{level: warn}}
storage:
  filesystem: {{rootdirectory: '{storage}'}}
  delete: {{enabled: true}}
http: {{addr: '{REGISTRY}'}}
"
    )
}

/// Returns the kubelet's configuration. Nothing is reserved or evicted, so that a small machine
/// runs everything, or reports what failed.
fn kubelet(state: &str) -> String {
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
authentication:
  anonymous: {{enabled: false}}
  webhook: {{enabled: true}}
  x509: {{clientCAFile: {state}/pki/ca.crt}}
authorization: {{mode: Webhook}}
tlsCertFile: {state}/pki/kubelet.crt
tlsPrivateKeyFile: {state}/pki/kubelet.key
crashLoopBackOff: {{maxContainerRestartPeriod: 5s}}
containerRuntimeEndpoint: unix://{state}/containerd/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
evictionHard: {{}}
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
maxPods: 250
oomScoreAdj: 0
podLogsDir: {state}/pod-logs
registryPullQPS: 0
resolvConf: {state}/resolv.conf
volumePluginDir: {state}/kubelet-plugins
"
    )
}

/// Returns kube-proxy's configuration. `masqueradeAll` makes the response of a pod on the same
/// bridge return through the node.
///
/// The conntrack limits of the machine are not changed.
fn proxy(state: &str) -> String {
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
bindAddress: 0.0.0.0
clusterCIDR: {network}
hostnameOverride: {NODE}
nodePortAddresses: ['{network}']
oomScoreAdj: 0
clientConnection: {{kubeconfig: {state}/kubeconfig/proxy}}
iptables: {{masqueradeAll: true, localhostNodePorts: false}}
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
",
        network = super::NETWORK
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_kubeconfig_with_its_own_certificate() {
        let places = Places { state: Path::new("/s"), registry: Path::new("/r") };
        let files = files(&places);
        for client in CLIENTS {
            let text = &files[&format!("kubeconfig/{client}")];
            assert!(text.contains(&format!("/s/pki/{client}.key")), "{text}");
        }
    }

    #[test]
    fn nothing_is_masqueraded_to_the_outside() {
        let list: serde_json::Value = serde_json::from_str(&network("/s")).unwrap();
        assert_eq!(list["plugins"][0]["ipMasq"], false);
        assert_eq!(list["plugins"][0]["bridge"], BRIDGE);
    }
}

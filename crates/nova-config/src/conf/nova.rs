//! `01-nova.conf`: every option that a compute needs from its operator, and no more.
//!
//! Omitted on purpose: options equal to nova's own default; options that only nova-api, the
//! scheduler or the console proxy read (`[keystone_authtoken]`, `allow_resize_to_same_host`,
//! `[neutron] service_metadata_proxy`); `debug`; and every option of a log file: without one nova
//! logs to the container's output, which `podman logs` and the journal show. How guests move live
//! is known on the host alone, so the play writes it.
//!
//! Of Open vSwitch too nova's default is right: nova's user may not open the socket of its database,
//! so the play of OVN has that listen on the loopback address, as upstream's does.

use super::cell::{ApplicationCredential, CellView};
use super::host::HostView;
use crate::oslo::{Entry, Release, Value, render};

/// Path of [`CA_BUNDLE_FILE`](super::CA_BUNDLE_FILE) inside nova-compute's container: our nova role
/// lets Kolla copy it there, and the upstream role mounts its own bundle at the same path.
const CA_BUNDLE_PATH: &str = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem";

/// Seconds that nova-compute gives its own work to finish when it is stopped. It waits that long
/// even when it is idle, and nova's default is 160.
const MANAGER_SHUTDOWN: (&str, &str) = ("manager_shutdown_timeout", "5");
/// Seconds after which it stops in any case; nova requires more than for the other option. An idle
/// process was measured to stop after 15 s; podman's limit is 42 s.
const GRACEFUL_SHUTDOWN: (&str, &str) = ("graceful_shutdown_timeout", "15");

/// Whether the files of a compute set its shutdown timeouts: only for a release that waits even
/// when it is idle. A release without the option stops at once when it is idle, and its default
/// gives running work more time.
pub fn says_how_to_stop(release: Option<Release>) -> bool {
    release.is_some_and(|it| it.knows("DEFAULT", MANAGER_SHUTDOWN.0))
}

/// Returns the options in oslo.config's format; without a host, those that all computes of the cell
/// share.
pub(super) fn options(cell: &CellView, host: Option<(&HostView, Option<Release>)>) -> String {
    let mut file = Options::default();
    defaults(&mut file, cell, host.map(|it| it.0));
    if says_how_to_stop(host.and_then(|it| it.1)) {
        for (name, seconds) in [MANAGER_SHUTDOWN, GRACEFUL_SHUTDOWN] {
            file.section("DEFAULT").fixed(name, seconds);
        }
    }
    // A conductor may still be of the release before (nova-operator and kolla-ansible).
    file.section("upgrade_levels").fixed("compute", "auto");
    file.section("oslo_concurrency").fixed("lock_path", "/var/lib/nova/tmp");
    message_bus(&mut file, cell);
    notifications(&mut file, cell);
    consoles(&mut file, cell);
    // Config drives are made here: without it each guest is called NAME.novalocal (nova-operator).
    file.section("api").fixed("dhcp_domain", "");
    file.section("cache").fixed("enabled", "True").fixed("backend", "oslo_cache.dict");
    hypervisor(&mut file);
    services(&mut file, cell);
    render(&file.entries)
}

/// Returns those of the options above that rules about several options read: they are the same for
/// every compute, and a user's value counts together with them.
pub fn fixed_options() -> Vec<Entry> {
    let mut file = Options::default();
    driver(file.section("DEFAULT"));
    hypervisor(&mut file);
    file.entries
}

fn defaults(file: &mut Options, cell: &CellView, host: Option<&HostView>) {
    file.section("DEFAULT").value("transport_url", &cell.transport_url);
    if let Some(host) = host {
        file.value("host", &host.host_name);
    }
    if let Some(address) = host.and_then(|it| it.my_ip.as_ref()) {
        file.value("my_ip", address);
    }
    driver(file);
}

fn driver(file: &mut Options) {
    file.fixed("state_path", "/var/lib/nova")
        .fixed("compute_driver", "libvirt.LibvirtDriver")
        // Where neutron's metadata agent is on the host, the collection's edpm_nova says False after
        // this file: a live migration without shared storage loses the drive.
        .fixed("force_config_drive", "True")
        // Each image has this name: of genisoimage, which nova looks for, or of xorriso on EL 10
        // (nova-operator).
        .fixed("mkisofs_cmd", "mkisofs")
        .fixed("initial_cpu_allocation_ratio", "4.0")
        .fixed("initial_ram_allocation_ratio", "1.0")
        .fixed("initial_disk_allocation_ratio", "0.9");
}

/// Adds the options that must match the broker: it rejects a queue that is declared differently.
fn message_bus(file: &mut Options, cell: &CellView) {
    file.section("oslo_messaging_rabbit");
    if cell.quorum_queues {
        file.fixed("rabbit_quorum_queue", "True")
            .fixed("rabbit_transient_quorum_queue", "True")
            .fixed("amqp_durable_queues", "True");
    }
    if cell.message_bus.tls && cell.ca_bundle.is_some() {
        file.fixed("ssl_ca_file", CA_BUNDLE_PATH);
    }
}

/// Adds where notifications go, as nova-operator does: nowhere without a message bus of their own.
fn notifications(file: &mut Options, cell: &CellView) {
    let Some(url) = &cell.notification_url else {
        file.section("oslo_messaging_notifications").fixed("driver", "noop");
        return;
    };
    file.section("notifications")
        .fixed("notify_on_state_change", "vm_and_task_state")
        .fixed("notification_format", "both");
    file.section("oslo_messaging_notifications")
        .value("transport_url", url)
        .fixed("driver", "messagingv2");
}

fn consoles(file: &mut Options, cell: &CellView) {
    file.section("vnc");
    match &cell.console_url {
        // Without a proxy, nova would advertise a console that cannot be opened.
        None => file.fixed("enabled", "False"),
        Some(url) => file
            .fixed("enabled", "True")
            .value("novncproxy_base_url", url)
            .fixed("server_listen", "::0")
            .fixed("server_proxyclient_address", "$my_ip"),
    };
}

fn hypervisor(file: &mut Options) {
    file.section("workarounds")
        .fixed("disable_fallback_pcpu_query", "True")
        .fixed("enable_qemu_monitor_announce_self", "True")
        .fixed("reserve_disk_resource_for_image_cache", "True")
        // nova compares a guest of `host-model` with the other host's processor by its microcode
        // too, which libvirt does better afterwards (nova's bug 2039803; nova-operator and
        // kolla-ansible).
        .fixed("skip_cpu_compare_on_dest", "True");
    file.section("libvirt")
        .fixed("cpu_mode", "host-model")
        .fixed("hw_machine_type", "x86_64=q35")
        .fixed("images_type", "qcow2")
        .fixed("live_migration_permit_auto_converge", "True")
        .fixed("live_migration_permit_post_copy", "True")
        .fixed("live_migration_timeout_action", "force_complete")
        .fixed("num_pcie_ports", "24")
        .fixed("rx_queue_size", "512")
        // The play takes it back where an image lacks what nova looks for at its start.
        .fixed("swtpm_enabled", "True")
        .fixed("tx_queue_size", "512")
        // One path is used where no multipathd runs (nova-operator).
        .fixed("volume_use_multipath", "True");
}

/// Adds the services that a compute calls, which it finds in Keystone's catalog.
fn services(file: &mut Options, cell: &CellView) {
    for name in ["placement", "neutron"] {
        credentials(file.section(name), cell)
            .value("region_name", &cell.region)
            .fixed("valid_interfaces", "internal");
    }
    // Glance is called with the token of the guest's owner: nova reads no credentials here.
    authorities(file.section("glance"), cell)
        .value("region_name", &cell.region)
        .fixed("valid_interfaces", "internal");
    credentials(file.section("cinder"), cell)
        .value("os_region_name", &cell.region)
        // Without a name, as in nova's own default: the service is called cinderv3, or cinder of
        // the type block-storage, and keystoneauth finds both by this type.
        .fixed("catalog_info", "volumev3::internalURL");
    key_manager(file, cell);
    credentials(file.section("service_user"), cell).fixed("send_service_user_token", "True");
}

/// Adds where the keys of guests with a vTPM or an encrypted volume are (nova-operator and
/// kolla-ansible). Barbican is called with the token of the guest's owner.
fn key_manager(file: &mut Options, cell: &CellView) {
    file.section("key_manager").fixed("backend", "barbican");
    file.section("barbican")
        .value("auth_endpoint", &cell.keystone_auth_url)
        .value("barbican_region_name", &cell.region)
        .fixed("barbican_endpoint_type", "internal");
    if cell.ca_bundle.is_some() {
        file.fixed("verify_ssl_path", CA_BUNDLE_PATH);
    }
}

fn credentials<'a>(file: &'a mut Options, cell: &CellView) -> &'a mut Options {
    if let Some(ApplicationCredential { id, secret }) = &cell.application_credential {
        // It names user and project itself, and Keystone refuses others beside it.
        file.fixed("auth_type", "v3applicationcredential")
            .value("auth_url", &cell.keystone_auth_url)
            .value("application_credential_id", id)
            .value("application_credential_secret", secret);
        return authorities(file, cell);
    }
    file.fixed("auth_type", "password")
        .value("auth_url", &cell.keystone_auth_url)
        .value("username", &cell.service_user)
        .value("password", &cell.service_password)
        .value("user_domain_name", &cell.user_domain)
        .value("project_name", &cell.project)
        .value("project_domain_name", &cell.project_domain);
    authorities(file, cell)
}

fn authorities<'a>(file: &'a mut Options, cell: &CellView) -> &'a mut Options {
    if cell.ca_bundle.is_some() {
        file.fixed("cafile", CA_BUNDLE_PATH);
    }
    file
}

/// A file under construction; a section without options is not written.
#[derive(Default)]
struct Options {
    section: &'static str,
    entries: Vec<Entry>,
}

impl Options {
    fn section(&mut self, name: &'static str) -> &mut Self {
        self.section = name;
        self
    }

    /// Adds an option with a fixed text, which may contain substitutions.
    fn fixed(&mut self, key: &str, value: &str) -> &mut Self {
        self.entries.push(Entry {
            section: self.section.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            line: 0,
            column: 0,
        });
        self
    }

    /// Adds an option with a text from a user, taken literally.
    fn value(&mut self, key: &str, value: &Value) -> &mut Self {
        self.fixed(key, &value.escaped())
    }
}

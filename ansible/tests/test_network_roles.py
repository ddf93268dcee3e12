"""The roles that set and check a host's network, on a host that is a network namespace with one card."""

import json
import unittest

from support import BIN, NOTING_SYSTEMCTL, TemporaryDirectoryTest, collections_path

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.import_role: {name: osp.edpm.edpm_network_config}
    - ansible.builtin.import_role: {name: osp.edpm.edpm_nodes_validation}
"""
# What the roles write outside of the directory of the test ends with the namespace.
HOST = """
ip link add eth0 type veth peer name other && ip address add 10.9.0.1/24 dev eth0 && ip link set eth0 up &&
mount -t tmpfs none /usr/local/sbin && mount -t tmpfs none /etc/systemd && mkdir /etc/systemd/system &&
mount -t tmpfs none /var/lib &&
"""
TEMPLATE = """---
{% set size = 1400 %}
network_config:
- type: interface
  name: nic1
  mtu: {{ size }}
  addresses:
  - ip_netmask: {{ ctlplane_ip }}/24
"""

IP_WITHOUT_MTU = """#!/bin/sh
case "$*" in *mtu*) exit 2 ;; esac
exec /sbin/ip "$@"
"""


class NetworkRoles(TemporaryDirectoryTest):
    def run_roles(self, world="true", after="ip -o address show dev eth0; ip -o link show dev eth0", **given):
        """Runs both roles on a host of such a world; whether they succeeded, and all that was said in one line."""
        self.write("bin/systemctl", NOTING_SYSTEMCTL).chmod(0o755)
        self.write("play.yml", PLAY)
        given = {
            "edpm_network_config_directory": f"{self.directory}/etc",
            "edpm_nodes_validation_validate_gateway_icmp": False,
            **given,
        }
        # As in an inventory: texts are templates.
        self.write("hosts.json", json.dumps({"all": {"hosts": {"localhost": {**given, "ansible_connection": "local"}}}}))
        done = self.command(
            "unshare", "--net", "--mount", "bash", "-c", f'{HOST} {world} || exit 9; "$@"; rc=$?; {after}; exit $rc', "bash",
            BIN / "ansible-playbook", "-i", "hosts.json", "play.yml",
            env={
                "PATH": f"{self.directory}/bin:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
                "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
            },
        )
        said = " ".join((done.stdout + done.stderr).split())
        self.assertNotEqual(done.returncode, 9, said)
        return done.returncode == 0, said

    def test_a_text_of_several_lines_is_the_template_itself(self):
        is_good, said = self.run_roles(edpm_network_config_template=TEMPLATE, ctlplane_ip="10.9.0.1")
        self.assertTrue(is_good, said)
        self.assertIn("mtu 1400", said)

    def test_a_single_line_is_the_path_of_a_template(self):
        path = str(self.write("nic.j2", TEMPLATE))
        is_good, said = self.run_roles(edpm_network_config_template=path, ctlplane_ip="10.9.0.1")
        self.assertTrue(is_good, said)
        self.assertIn("mtu 1400", said)

    def test_json_of_a_configmap_is_what_a_template_gives(self):
        is_good, said = self.run_roles(edpm_network_config_template={
            "network_config": [{"type": "interface", "name": "eth0", "mtu": 1400}],
        })
        self.assertTrue(is_good, said)
        self.assertIn("mtu 1400", said)

    def test_a_refused_template_changes_neither_the_network_nor_what_a_start_applies(self):
        template = TEMPLATE + "  routes: [{default: true, next_hop: 10.9.0.254, table: 200}]\n"
        present = self.write("etc/config.json", "what was applied before")
        is_good, said = self.run_roles(
            edpm_network_config_template=template, ctlplane_ip="10.9.0.1", after="ip -o link show dev eth0; ls /usr/local/sbin",
        )
        self.assertFalse(is_good, said)
        self.assertIn("The network template cannot be applied, and nothing of the network was changed:", said)
        self.assertIn("network_config[0].routes[0].table: 200: this key is not carried out", said)
        self.assertIn("mtu 1500", said)
        self.assertNotIn("edpm-network-config", said.split("mtu 1500")[1])
        self.assertEqual(present.read_text(), "what was applied before")

    def test_a_start_applies_what_worked_last(self):
        present = self.write("etc/config.json", "what was applied before")
        self.write("bin/ip", IP_WITHOUT_MTU).chmod(0o755)
        is_good, said = self.run_roles(
            edpm_network_config_template=TEMPLATE, ctlplane_ip="10.9.0.1", after="ls /usr/local/sbin /etc/systemd/system",
        )
        self.assertFalse(is_good, said)
        self.assertIn("ip link set eth0 mtu 1400 failed with 2", said)
        self.assertEqual(present.read_text(), "what was applied before")
        self.assertTrue(said.endswith("/etc/systemd/system: /usr/local/sbin:"), said)

    def test_a_template_that_cannot_be_read_is_told_with_its_line(self):
        for more, fault in (
            ("  mtu: 1500\n", "key mtu stands twice"), ("  x: [\n", "expected the node content"),
            ("- {vlan_id: 0100}\n", "0100 is 64 in YAML: write 64, or put what is meant in quotes"),
        ):
            with self.subTest(fault):
                is_good, said = self.run_roles(edpm_network_config_template=TEMPLATE + more, ctlplane_ip="10.9.0.1")
                self.assertFalse(is_good, said)
                self.assertIn("The network template cannot be read, nothing was changed:", said)
                self.assertIn(fault, said)
                self.assertRegex(said, ", line [89], column")

    def test_the_address_by_which_the_host_is_reached_is_not_dropped(self):
        self.write("state", json.dumps({"addresses": [["eth0", "10.9.0.1/24"]]}))
        is_good, said = self.run_roles(
            f"mkdir /var/lib/edpm-config && cp {self.directory}/state /var/lib/edpm-config/network.json",
            edpm_network_config_template={"network_config": []}, ctlplane_ip="10.9.0.1",
        )
        self.assertFalse(is_good, said)
        self.assertIn("the template has no address 10.9.0.1, by which this host is reached", said)
        self.assertIn("inet 10.9.0.1/24", said)

    def test_a_mapping_of_cards_is_refused_with_what_to_do_instead(self):
        mapping = {"edpm-compute-0": {"nic1": "52:54:00:00:00:01"}}
        is_good, said = self.run_roles(
            edpm_network_config_template=TEMPLATE, edpm_network_config_os_net_config_mappings=mapping, ctlplane_ip="10.9.0.1",
        )
        self.assertFalse(is_good, said)
        self.assertIn("edpm_network_config_os_net_config_mappings is not carried out here: remove it", said)

    def test_default_gateways_must_answer_those_of_ipv6_where_there_are_none_of_ipv4(self):
        self.write("bin/dpkg-query", "#!/bin/sh\necho iputils-ping ii\n").chmod(0o755)
        self.write("bin/ping", f"#!/bin/sh\nshift 5; echo $* >>{self.directory}/pinged\n").chmod(0o755)
        six = "ip -6 route add default via fe80::1 dev eth0; ip -6 route add default via 2001:db8::1 dev eth0 metric 5"
        for world, pinged in (
            (f"ip address add 2001:db8::10/64 dev eth0 nodad; {six}", ["2001:db8::1", "fe80::1%eth0"]),
            (f"ip route add default via 10.9.0.254; {six.split(';')[0]}", ["10.9.0.254"]),
            (
                "ip route add default nexthop via 10.9.0.253 dev eth0 nexthop via 10.9.0.254 dev eth0",
                ["10.9.0.253", "10.9.0.254"],
            ),
            ("true", []),
        ):
            with self.subTest(world):
                self.write("pinged", "")
                is_good, said = self.run_roles(world, edpm_nodes_validation_validate_gateway_icmp=True)
                self.assertTrue(is_good, said)
                self.assertEqual((self.directory / "pinged").read_text().split(), pinged, said)

    def test_the_hosts_address_is_found_in_any_spelling_and_with_a_peer(self):
        for world, address in (
            ("ip address add 2001:db8::10/64 dev eth0 nodad", "2001:DB8:0:0::10"),
            ("ip address add 10.6.0.7 peer 10.6.0.1/32 dev eth0", "10.6.0.7"),
        ):
            with self.subTest(address):
                is_good, said = self.run_roles(world, ctlplane_ip=address)
                self.assertTrue(is_good, said)

    def test_an_address_that_the_host_does_not_have_or_shares_is_told(self):
        for world, address in (
            ("true", "10.9.0.2"),
            ("ip address add 10.9.0.22/24 dev eth0", "10.9.0.2"),
            # The address of the other end is not the host's own.
            ("ip address add 10.6.0.7 peer 10.6.0.1/32 dev eth0", "10.6.0.1"),
            ("true", "compute-a.example.org"),
        ):
            with self.subTest(address):
                is_good, said = self.run_roles(world, ctlplane_ip=address)
                self.assertFalse(is_good, said)
                self.assertIn(f"No interface of this host has ctlplane_ip {address}", said)


if __name__ == "__main__":
    unittest.main()

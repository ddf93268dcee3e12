"""The role of OVN, with a real Open vSwitch, ovn-controller and southbound database: what it promises, and how it fails."""

import re
import unittest

import yaml
from certificates import Authority
from ovn import ADDRESS, OvnHost
from support import ANSIBLE, COLLECTION, with_look_for_guests

REMOTE = "tcp:127.0.0.1:6642"
CERTIFICATES = "/var/lib/openstack/certs/ovn/default"
CLEANUP = ANSIBLE.parent / "crates" / "nova-operator" / "plays" / "nova-cleanup.yaml"
FAULT = (COLLECTION / "roles" / "edpm_ovn" / "files" / "southbound-fault").read_text()


class Ovn(OvnHost):
    def setUp(self):
        super().setUp()
        self.give(f"ovn-remote: {REMOTE}\novn-encap-type: geneve\n")

    def give(self, text):
        """Has this be what ConfigMap ovncontroller-config gives."""
        self.write("src/ovn/ovsdb-config", text)

    def external_id(self, key):
        return self.ask("ovs-vsctl", "--timeout=5", "--if-exists", "get", "Open_vSwitch", ".", f"external_ids:{key}").strip('"')

    def chassis(self):
        """The hosts that the southbound database has, with their addresses of tunnels."""
        return self.sbctl("--columns=hostname", "list", "Chassis"), self.sbctl("--columns=ip", "list", "Encap")

    def flows(self):
        text = self.ask("ovs-ofctl", "dump-flows", "--no-stats", "br-int")
        return sorted(line for line in text.splitlines() if "actions" in line)

    def test_ovn_has_the_host_a_second_run_and_a_restart_cut_nothing_and_a_host_that_leaves_is_gone(self):
        self.start_southbound()
        given = {"edpm_ovn_bridge_mappings": ["datacentre:br-ex"], "edpm_enable_chassis_gw": True}
        self.deployed(**given)
        self.assertEqual(self.chassis(), ("a.example", ADDRESS))
        self.assertEqual(self.external_id("ovn-cms-options"), "enable-chassis-as-gw")
        self.assertEqual(self.external_id("ovn-bridge-mappings"), "datacentre:br-ex")
        self.assertRegex(self.external_id("ovn-chassis-mac-mappings"), "^datacentre(:[0-9a-f]{2}){6}$")
        for bridge in ("br-int", "br-ex"):
            self.assertEqual(self.ask("ovs-vsctl", "--timeout=5", "get", "bridge", bridge, "datapath_type"), "netdev")
        self.assertEqual(self.ask("ovs-vsctl", "get-manager"), "ptcp:6640:127.0.0.1")
        # A host that is installed anew has the same name in OVN.
        name = self.external_id("system-id")
        self.assertEqual(name, self.host("/etc/openvswitch/system-id.conf").read_text().strip())
        self.assertRegex(name, "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")

        pid = self.pid("ovn_controller")
        self.assertEqual(self.deployed(**given), 0, self.said)
        self.assertEqual(self.pid("ovn_controller"), pid)
        self.assertEqual(self.audit("osp.edpm.ovn_audit", **given), [])

        # Options that are wanted no more go, and the process follows without a restart.
        self.assertEqual(self.deployed(), 1)
        self.assertEqual((self.external_id("ovn-cms-options"), self.pid("ovn_controller")), ("", pid))

        self.ask("ovs-ofctl", "add-flow", "br-int", "table=200,actions=drop")
        flows = self.flows()
        self.ask("systemctl", "stop", "edpm_ovn_controller.service")
        self.assertEqual((self.chassis(), self.flows()), (("a.example", ADDRESS), flows))
        self.ask("ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:hostname=other")
        self.assertEqual(self.audit("osp.edpm.ovn_audit"), [
            "ovs external_ids:hostname: differs", "container ovn_controller: not running", "unit edpm_ovn_controller.service: inactive",
            "unit edpm_ovn_controller.service: disabled",
        ])

        # Also where ovn-controller did not run before: its Chassis is there.
        self.program("ps", "#!/bin/sh\necho 1 /sbin/init\n")
        play = self.write("cleanup.yml", with_look_for_guests(CLEANUP))
        options = {"edpm_nova_host_leaves": True, "edpm_nova_remove_files": True, "edpm_guests_definitions": ["/nonexistent"]}
        self.deployed(play, **options)
        self.assertEqual((self.chassis(), self.sbctl("list", "Chassis_Private")), (("", ""), ""))
        self.assertFalse((self.directory / "bin" / "containers" / "ovn_controller").exists())

    def test_a_southbound_database_that_is_away_or_has_the_address_already_is_named(self):
        quick = {"edpm_ovn_connection_retries": 1}
        said = self.refused(**quick)
        self.assertIn(f"ovn-controller is not connected to the southbound database {REMOTE}: nothing answers there.", said)
        # Another host has the tunnel's address, or this one had another name before.
        self.start_southbound()
        self.sbctl("chassis-add", "old", "geneve", ADDRESS)
        said = self.refused(**quick)
        self.assertIn(f"which does not have this host as a.example with tunnels to {ADDRESS}: Chassis old has that address.", said)
        self.assertIn("delete it with `ovn-sbctl chassis-del old`", said)

    def tls(self, authority, folder, **more):
        """Puts a certificate of this authority into a folder."""
        certificate, key = authority.issue("a.example", **more)
        for name, text in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", authority.pem)):
            self.write(f"{folder}/{name}", text)
        return self.directory / folder

    def fault(self, remote, certificates):
        """What the role finds out about a database that cannot be used."""
        done = self.run_there("bash", "-c", FAULT, env={"remote": remote, "certs": str(certificates)})
        return done.stdout.strip()

    def test_renewed_certificates_are_taken_without_a_restart_and_what_is_wrong_with_one_is_named(self):
        ours, foreign = Authority(), Authority()
        own = f"root{CERTIFICATES}"
        self.tls(ours, own)
        remote = "ssl:127.0.0.1:6642"
        self.give(f"ovn-remote: {remote}\n")
        self.start_southbound(self.tls(ours, "server"))
        self.deployed(edpm_ovn_tls_enabled=True)
        self.assertEqual(self.chassis(), ("a.example", ADDRESS))

        # Both sides get certificates of another authority.
        pid = self.pid("ovn_controller")
        self.stop_southbound()
        self.tls(foreign, own)
        self.start_southbound(self.tls(foreign, "server"))
        status = "until [ \"$(ovn-appctl --timeout=5 -t ovn-controller connection-status)\" = connected ]; do sleep 0.2; done"
        self.ask("timeout", "60", "bash", "-c", status)
        self.assertEqual(self.pid("ovn_controller"), pid)

        for cause, certificate in {
            "unclear": self.tls(foreign, "own"),
            "wrong_ca": self.tls(ours, "of-another"),
            "own_expired": self.tls(foreign, "expired", ends=-1),
        }.items():
            self.assertEqual(self.fault(remote, certificate), cause)
        self.assertEqual(self.fault(remote, self.directory / "none"), "unclear")
        # It trusts the database, which does not trust it.
        mixed = self.tls(ours, "mixed")
        self.write("mixed/ca.crt", foreign.pem)
        self.assertEqual(self.fault(remote, mixed), "refused")
        self.assertEqual(self.fault("ssl:127.0.0.1:6641,ssl:nowhere.invalid:6642", mixed), "name")
        self.assertEqual(self.fault(f"ssl:127.0.0.1:6641,{remote}", mixed), "refused")

        self.stop_southbound()
        self.assertEqual(self.fault(remote, mixed), "away")
        self.start_southbound(self.tls(foreign, "server", ends=-1))
        self.assertEqual(self.fault(remote, self.directory / "own"), "server_expired")
        said = self.refused(edpm_ovn_tls_enabled=True, edpm_ovn_connection_retries=1)
        self.assertIn(f"southbound database {remote}: the database's own certificate has expired", said)
        self.stop_southbound()
        self.start_southbound()
        self.assertEqual(self.fault(remote, mixed), "plain")

    def test_what_cannot_be_done_is_refused_before_anything_changes(self):
        missing = "No interface of this host has 192.0.2.99, the address of its tunnels to other hosts"
        cases = {
            "image": ({"edpm_ovn_controller_agent_image": ""}, "edpm_ovn_controller_agent_image, the image with ovn-controller, is not set"),
            "address": ({"tenant_ip": "192.0.2.99"}, missing),
            "none": ({"tenant_ip": ""}, "tenant_ip of this host is not set"),
            "unnamed": ({"canonical_hostname": ""}, "canonical_hostname of this host is not set"),
            "remote": ({"edpm_ovn_config_src": "/nonexistent"}, "The southbound database is not named: mount ConfigMap ovncontroller-config"),
            "dbs": ({"edpm_ovn_config_src": "/nonexistent", "edpm_ovn_dbs": ["two words"]}, "ovn-remote is tcp:two words:6642"),
            "plain": ({"edpm_ovn_config_src": f"{self.directory}/src/tls"}, "ovn-remote tcp: where the database speaks no TLS"),
            "certs": ({"edpm_ovn_tls_enabled": True}, f"tls.crt and tls.key and ca.crt of {CERTIFICATES} is not on this host"),
            "shared": ({"edpm_ovn_config_src": f"{self.directory}/src/shared"}, "ovsdb-config in"),
            "mapping": ({"edpm_ovn_bridge_mappings": "datacentre:br-int"}, "edpm_ovn_bridge_mappings has datacentre:br-int"),
            "kernel": ({"edpm_ovn_datapath_type": "system"}, "The kernel of this host has no module openvswitch"),
            "offload": ({"edpm_enable_hw_offload": True}, "edpm_enable_hw_offload"),
        }
        self.write("src/tls/ovsdb-config", "ovn-remote: ssl:127.0.0.1:6642\n")
        self.write("src/shared/ovsdb-config", f"ovn-remote: {REMOTE}\nhostname: all.example\n")
        # This machine's kernel may have it.
        self.program("modprobe", "#!/bin/sh\nexit 1\n")
        self.ask("mount", "-t", "tmpfs", "none", "/sys/module")
        said = self.refusals(
            {name: given for name, (given, _) in cases.items()}, tenant_ip=ADDRESS, edpm_ovn_datapath_type="netdev",
            edpm_ovn_controller_agent_image="ovn-controller:1", edpm_ovn_config_src=f"{self.directory}/src/ovn",
        )
        for name, (_, words) in cases.items():
            with self.subTest(name):
                self.assertIn(words, said[name])


class Causes(unittest.TestCase):
    def test_a_condition_shows_each_cause_with_its_whole_next_step(self):
        [limit] = re.findall(r"GIST_LIMIT: usize = (\d+);", (ANSIBLE.parent / "crates" / "api" / "src" / "ansibleee.rs").read_text())
        role = COLLECTION / "roles" / "edpm_ovn" / "tasks" / "southbound.yml"
        [task] = [task for task in yaml.safe_load(role.read_text()) if "vars" in task]
        begin = task["ansible.builtin.fail"]["msg"].split("{{ edpm_ovn_causes")[0]
        lacks = {
            CERTIFICATES: "ovn-controller is not connected to",
            CERTIFICATES.replace("ovn", "neutron-metadata"): "neutron's metadata agent does not serve guests, which needs",
        }
        for certificates, lack in lacks.items():
            words = {
                **{name: text for name, text in task["vars"].items() if isinstance(text, str)},
                "edpm_ovn_southbound_lack": lack, "edpm_ovn_southbound_certs": certificates,
                # As upstream's control plane names it.
                "edpm_ovn_southbound_remote": "ssl:ovsdbserver-sb.openstack.svc:6642",
                "edpm_ovn_southbound_log": "podman logs ovn_metadata_agent",
            }
            for name, cause in task["vars"]["edpm_ovn_causes"].items():
                with self.subTest(lack=lack, name=name):
                    said = re.sub(r"{{ (\w+) }}", lambda it: words[it[1]], begin + cause)
                    self.assertLessEqual(len(said.rstrip(".").encode()), int(limit), said)


if __name__ == "__main__":
    unittest.main()

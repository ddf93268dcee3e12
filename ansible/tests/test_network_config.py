"""The program that applies a network template, in a network namespace of its own."""

import json
import os
import subprocess
import unittest

from support import COLLECTION, TemporaryDirectoryTest

PROGRAM = COLLECTION / "roles" / "edpm_network_config" / "files" / "edpm-network-config"
# A pair of virtual cards; the namespace and all that is in it end with the shell.
WORLD = "ip link add eth0 type veth peer name other; ip address add 10.9.0.1/24 dev eth0; ip link set eth0 up; "

BRIDGE = [{
    "type": "bridge", "name": "br-ctl", "mtu": 1400, "use_dhcp": False,
    "addresses": [{"ip_netmask": "10.9.0.1/24"}],
    "routes": [{"ip_netmask": "10.8.0.0/16", "next_hop": "10.9.0.254"}, {"default": True, "next_hop": "10.9.0.253"}],
    "members": [{"type": "interface", "name": "nic1"}],
}]


@unittest.skipUnless(os.geteuid() == 0, "needs root for a network namespace")
class NetworkConfig(TemporaryDirectoryTest):
    def run_in_namespace(self, script):
        return subprocess.run(
            ["unshare", "--net", "bash", "-c", WORLD + script], cwd=self.directory, text=True, capture_output=True,
            env={**os.environ, "EDPM_NETWORK_STATE": str(self.directory / "state"), "PROGRAM": str(PROGRAM)},
            timeout=300, check=False,
        )

    def config(self, name, links):
        self.write(name, json.dumps({"network_config": links}))

    def test_a_bridge_takes_the_address_over_and_a_second_run_changes_nothing(self):
        self.config("c", BRIDGE)
        done = self.run_in_namespace("""
            $PROGRAM apply c >/dev/null; echo "== again"; $PROGRAM apply c; $PROGRAM check c; echo "== end"
            ip -o -4 address show | awk '{print $2, $4}'; ip route; ip -o link show br-ctl | grep -o "mtu 1400"
        """)
        self.assertIn("== again\n== end\n", done.stdout, done.stderr)
        self.assertIn("br-ctl 10.9.0.1/24", done.stdout)
        self.assertNotIn("eth0 10.9.0.1/24", done.stdout)
        self.assertIn("10.8.0.0/16 via 10.9.0.254 dev br-ctl", done.stdout)
        self.assertIn("default via 10.9.0.253 dev br-ctl", done.stdout)
        self.assertTrue(done.stdout.endswith("mtu 1400\n"))

    def test_check_tells_the_differences_and_changes_nothing(self):
        self.config("c", BRIDGE)
        done = self.run_in_namespace("$PROGRAM check c; ip -o link")
        self.assertIn("create bridge br-ctl", done.stdout)
        self.assertNotIn("br-ctl", done.stdout.split("via 10.9.0.253")[1])

    def test_what_the_file_drops_is_removed_again(self):
        self.config("c", BRIDGE)
        self.config("d", [{"type": "interface", "name": "eth0", "addresses": [{"ip_netmask": "10.7.0.1/24"}]}])
        done = self.run_in_namespace("""
            { $PROGRAM apply c; $PROGRAM apply d; } >/dev/null; $PROGRAM check d; echo "== end"
            ip -o -4 address show | awk '{print $2, $4}'; ip -o link
        """)
        self.assertEqual(done.stdout.splitlines()[0], "== end", done.stdout + done.stderr)
        self.assertIn("eth0 10.7.0.1/24", done.stdout)
        self.assertNotIn("br-ctl", done.stdout)

    def test_an_address_that_was_there_before_outlives_the_file(self):
        self.config("c", [{"type": "interface", "name": "eth0", "addresses": [{"ip_netmask": "10.9.0.1/24"}]}])
        self.config("d", [{"type": "interface", "name": "eth0"}])
        done = self.run_in_namespace("$PROGRAM apply c; $PROGRAM apply d; ip -o -4 address show dev eth0")
        self.assertIn("10.9.0.1/24", done.stdout, done.stderr)

    def test_what_cannot_be_done_is_refused_with_its_name(self):
        for link, said in [
            ({"type": "ovs_bridge", "name": "br-ex"}, "type ovs_bridge is not one of"),
            ({"type": "interface", "name": "eth7"}, "there is no interface eth7"),
            ({"type": "interface", "name": "eth0", "use_dhcp": True}, "DHCP"),
            ({"type": "interface", "name": "eth0", "adresses": []}, "unknown keys adresses"),
            ({"type": "interface", "name": "eth0", "addresses": [{"ip_netmask": "10.0.0.300/24"}]}, "10.0.0.300"),
            ({"type": "vlan", "vlan_id": 5}, "needs a device"),
        ]:
            with self.subTest(said):
                self.config("c", [link])
                done = self.run_in_namespace("$PROGRAM apply c")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()

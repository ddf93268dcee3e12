"""All playbooks against a real host that may be changed: named by an inventory in EDPM_TEST_INVENTORY, else skipped.

The inventory's hosts need the variables of the README, images of libvirt and nova-compute included; it is best not
a host in service, because nova-compute ends with a configuration that reaches no cell.
"""

import json
import os
import re
import unittest

from support import ANSIBLE, BIN, TemporaryDirectoryTest, collections_path

INVENTORY = os.environ.get("EDPM_TEST_INVENTORY", "")
PLAYBOOKS = ["configure_network", "validate_network", "install_os", "configure_os", "run_os", "libvirt", "nova"]
GENERATED = """\
# A configuration of this test.
[DEFAULT]
host = edpm-test-host
my_ip = 127.0.0.1
state_path = /var/lib/nova
compute_driver = libvirt.LibvirtDriver
transport_url = rabbit://nobody:secret@127.0.0.1:1/
[libvirt]
virt_type = qemu
"""


@unittest.skipUnless(INVENTORY, "needs EDPM_TEST_INVENTORY, an inventory of a host that may be changed")
class RealHost(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.write("configs/01-nova.conf", GENERATED)
        self.write("configs/02-nova-override.conf", "[libvirt]\ncpu_mode = none\n")
        self.env = {
            "ANSIBLE_CONFIG": str(ANSIBLE / "runner" / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
            "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
        }

    def play(self, name, **variables):
        """Runs a playbook; returns how many tasks changed the host."""
        extra = {"edpm_nova_config_src": str(self.directory / "configs"), **variables}
        done = self.command(BIN / "ansible-playbook", "-i", INVENTORY, f"osp.edpm.{name}", "-e", json.dumps(extra),
                            env=self.env, timeout=900)
        self.assertEqual(done.returncode, 0, f"{name}\n{done.stdout[-4000:]}{done.stderr}")
        self.assertNotIn("secret", done.stdout + done.stderr)
        return sum(int(number) for number in re.findall(r"changed=(\d+)", done.stdout))

    def on_host(self, words):
        done = self.command(BIN / "ansible", "-i", INVENTORY, "all", "-b", "-m", "ansible.builtin.shell", "-a", words,
                            env=self.env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.split(">>\n", 1)[1].strip()

    def container(self):
        return self.on_host("podman container inspect --format {{'{{'}}.Id{{'}}'}} nova_compute")

    def loaded(self):
        """The files as the container reads them; it may be starting just now, because its bus is nowhere."""
        return self.on_host(
            "for try in $(seq 20); do podman exec nova_compute ls /etc/nova/nova.conf.d && exit; sleep 1; done; exit 1"
        ).split()

    def test_the_life_of_a_host(self):
        for name in PLAYBOOKS:
            self.play(name)
        for name in PLAYBOOKS:
            with self.subTest(f"{name} again"):
                self.assertEqual(self.play(name), 0)

        first, identity = self.container(), self.on_host("cat /var/lib/nova/compute_id")
        self.assertEqual(self.loaded(), ["01-nova.conf", "02-nova-override.conf"])
        self.play("nova")
        self.assertEqual(self.container(), first, "an unchanged set of files leaves the container alone")

        (self.directory / "configs" / "02-nova-override.conf").unlink()
        self.assertGreater(self.play("nova"), 0)
        second = self.container()
        self.assertNotEqual(second, first, "a removed file makes the container anew")
        self.assertEqual(self.loaded(), ["01-nova.conf"])

        (self.directory / "configs" / "01-nova.conf").write_text(GENERATED + "cpu_mode = none\n")
        self.play("nova")
        third = self.container()
        self.assertNotEqual(third, second, "a changed file makes the container anew")

        self.on_host("echo strange > /var/lib/openstack/config/nova/99-nova-stray.conf")
        self.assertGreater(self.play("nova"), 0)
        self.assertEqual(self.loaded(), ["01-nova.conf"])

        self.on_host("podman rm --force nova_compute")
        self.assertGreater(self.play("nova"), 0)
        self.assertEqual(self.play("nova"), 0)
        self.assertEqual(self.on_host("cat /var/lib/nova/compute_id"), identity, "the host stays who it is")


if __name__ == "__main__":
    unittest.main()

"""dataplane-operator's play that looks for guests before a machine is given back."""

import json
import unittest

from support import ANSIBLE, BIN, TemporaryDirectoryTest, with_look_for_guests

PLAY = ANSIBLE.parent / "crates" / "dataplane-operator" / "plays" / "last-look.yaml"


class LastLook(TemporaryDirectoryTest):
    def look(self, processes):
        """Plays against a host with these processes; returns how it ended and what it said."""
        self.write("bin/ps", f"#!/bin/sh\necho '1 /sbin/init'\necho '2 {processes}'\n").chmod(0o755)
        definitions = {"edpm_guests_definitions": [f"{self.directory}/definitions"]}
        done = self.command(
            BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", "ansible_become=false",
            "-e", json.dumps(definitions), self.write("playbook.yaml", with_look_for_guests(PLAY)),
            env={"PATH": f"{self.directory}/bin:{BIN}:/usr/bin:/bin"},
        )
        return done.returncode, done.stdout

    def test_an_empty_host_passes_and_nothing_is_changed(self):
        code, said = self.look("/usr/sbin/libvirtd")
        self.assertEqual(code, 0, said)
        self.assertIn("changed=0", said)

    def test_guests_that_run_or_are_shut_off_fail_it(self):
        code, said = self.look("/usr/bin/qemu-system-x86_64 -name guest=g1,debug-threads=on")
        self.assertNotEqual(code, 0, said)
        self.assertIn("1 guest is on this host, so its machine is not given back: g1. Migrate or delete them.", said)
        self.write("definitions/g2.xml", "<domain><uuid>0f-2</uuid></domain>\n")
        code, said = self.look("/usr/sbin/libvirtd")
        self.assertNotEqual(code, 0, said)
        self.assertIn("not given back: g2 (0f-2).", said)


if __name__ == "__main__":
    unittest.main()

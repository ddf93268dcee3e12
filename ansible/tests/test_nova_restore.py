"""nova-operator's play that writes a host's recorded identity in nova on a host that has lost it."""

import json
import unittest

from support import ANSIBLE, BIN, TemporaryDirectoryTest, with_look_for_guests

PLAY = ANSIBLE.parent / "crates" / "nova-operator" / "plays" / "nova-restore.yaml"
RECORDED = "0a3c8b1e-5f0d-4c59-9d5c-7d1b8c0d2e11"
OTHER = "11111111-2222-4333-8444-555555555555"

# The host's paths lie in a mount namespace of its own, where /var/lib is the test's.
START = 'mount --bind "$0" /var/lib && mount --bind "$1" /etc/passwd && mount --bind "$2" /etc/group && shift 2 && exec "$@"'


class NovaRestore(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.playbook = self.write("playbook.yaml", with_look_for_guests(PLAY))
        self.write("passwd", "root:x:0:0::/root:/bin/sh\nnova:x:42436:42436::/var/lib/nova:/bin/sh\n")
        self.write("group", "root:x:0:\nnova:x:42436:\n")
        (self.directory / "lib" / "nova").mkdir(parents=True)
        self.file = self.directory / "lib" / "nova" / "compute_id"
        self.processes("/usr/bin/vim qemu-system-guest=notes")

    def processes(self, line):
        """Has this be the one process of the host."""
        self.write("bin/ps", f"#!/bin/sh\necho '1 {line}'\n").chmod(0o755)

    def play(self):
        given = {
            "ansible_become": False,
            "edpm_nova_compute_id": RECORDED.upper(),
            "edpm_guests_definitions": [f"{self.directory}/definitions"],
        }
        return self.command(
            "unshare", "--mount", "sh", "-c", START, self.directory / "lib", self.directory / "passwd",
            self.directory / "group", BIN / "ansible-playbook", "-i", "localhost,", "-c", "local",
            "-e", json.dumps(given), self.playbook, env={"PATH": f"{self.directory}/bin:{BIN}:/usr/sbin:/usr/bin:/bin"},
        )

    def test_a_host_without_an_identity_gets_the_recorded_one_once(self):
        done = self.play()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.file.read_text(), f"{RECORDED}\n")
        self.assertEqual((self.file.stat().st_mode & 0o777, self.file.stat().st_uid), (0o400, 42436))
        again = self.play()
        self.assertEqual(again.returncode, 0, again.stdout)
        self.assertIn("changed=0", again.stdout)

    def test_another_identity_is_refused_and_stays(self):
        for text in (OTHER, ""):
            self.file.write_text(text)
            done = self.play()
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn("The host must have the recorded identity", done.stdout)
            self.assertIn(f"has another UUID than {RECORDED}", done.stdout)
            self.assertEqual(self.file.read_text(), text)

    def test_a_host_with_guests_is_not_the_one_that_has_lost_it(self):
        self.processes("/usr/bin/qemu-system-x86_64 -name guest=g1,debug-threads=on")
        done = self.play()
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("The host must have no guests", done.stdout)
        self.assertFalse(self.file.exists())


if __name__ == "__main__":
    unittest.main()

"""The role that gives a host its identity in nova, on a host that has one, has another one, or has lost it."""

import json
import re
import unittest

from support import BIN, CALLBACKS, TemporaryDirectoryTest, collections_path

RECORDED = "0a3c8b1e-5f0d-4c59-9d5c-7d1b8c0d2e11"
OTHER = "11111111-2222-4333-8444-555555555555"

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: osp.edpm.edpm_nova
        tasks_from: identity.yml
    - ansible.builtin.debug:
        msg: "identified {{ edpm_nova_identified is changed }}"
"""

# The role's paths lie in a mount namespace of its own, where /var/lib is the test's.
START = 'mount --bind "$0" /var/lib && mount --bind "$1" /etc/passwd && mount --bind "$2" /etc/group && shift 2 && exec "$@"'


class NovaIdentity(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.write("play.yml", PLAY)
        self.write("passwd", "root:x:0:0::/root:/bin/sh\nnova:x:42436:42436::/var/lib/nova:/bin/sh\n")
        self.write("group", "root:x:0:\nnova:x:42436:\n")
        (self.directory / "lib" / "nova").mkdir(parents=True)
        self.file = self.directory / "lib" / "nova" / "compute_id"

    def deploy(self, **given):
        """Runs the tasks; what the callback reports of the host."""
        result = self.directory / "result"
        done = self.command(
            "unshare", "--mount", "sh", "-c", START, self.directory / "lib", self.directory / "passwd",
            self.directory / "group", BIN / "ansible-playbook", "-i", "localhost,", "-c", "local",
            "-e", json.dumps(given), "play.yml",
            env={
                "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
                "ANSIBLE_CALLBACK_PLUGINS": CALLBACKS,
                "EDPM_RUN_HOSTS": "localhost",
                "EDPM_RESULT_FILE": str(result),
            },
        )
        self.said = done.stdout + done.stderr
        return json.loads(result.read_text())

    def succeeds(self, identified, **given):
        self.assertEqual(self.deploy(**given)["hosts"], "o", self.said)
        self.assertIn(f"identified {identified}", self.said)

    def refuses(self, task, words, **given):
        told = self.deploy(**given)
        self.assertEqual(told["hosts"], "f", self.said)
        failure = told["failures"][0]
        self.assertEqual(failure["task"], f"osp.edpm.edpm_nova : {task}")
        place = r".*/ansible_collections/osp/edpm/roles/edpm_nova/tasks/identity\.yml:\d+"
        self.assertRegex(failure["path"], place)
        for word in words:
            self.assertIn(word, failure["message"])

    def test_a_host_of_which_nothing_is_recorded_gets_an_identity_once(self):
        self.succeeds(True)
        made = self.file.read_text()
        self.assertTrue(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n", made), made)
        self.assertEqual((self.file.stat().st_mode & 0o777, self.file.stat().st_uid), (0o400, 42436))
        self.succeeds(False)
        self.assertEqual(self.file.read_text(), made)

    def test_a_host_with_its_recorded_identity_keeps_it_however_it_is_written(self):
        for text in (RECORDED, f" {RECORDED.upper()}\n\n"):
            self.file.write_text(text)
            for restore in (False, True):
                self.succeeds(False, edpm_nova_compute_id=RECORDED, edpm_nova_restore_compute_id=restore)
            self.assertEqual(self.file.read_text(), text)

    def test_a_host_with_another_identity_is_refused_with_both_and_keeps_it(self):
        for text, shown in ((OTHER, OTHER), ("", "no UUID"), ("$(reboot)", "no UUID"), (OTHER * 9, "no UUID")):
            self.file.write_text(text)
            for restore in (False, True):
                self.refuses(
                    "The host must have no other identity", [f"compute_id has {shown},", f"compute node {RECORDED}:"],
                    edpm_nova_compute_id=RECORDED, edpm_nova_restore_compute_id=restore,
                )
            self.assertEqual(self.file.read_text(), text)

    def test_a_host_that_lost_its_identity_is_refused_and_gets_none_until_that_is_allowed(self):
        words = ["compute_id is missing", f"compute node {RECORDED}"]
        self.refuses("The host must have its identity", words, edpm_nova_compute_id=RECORDED)
        self.assertFalse(self.file.exists())
        self.succeeds(True, edpm_nova_compute_id=RECORDED, edpm_nova_restore_compute_id=True)
        self.assertEqual(self.file.read_text(), f"{RECORDED}\n")
        self.assertEqual((self.file.stat().st_mode & 0o777, self.file.stat().st_uid), (0o400, 42436))
        self.succeeds(False, edpm_nova_compute_id=RECORDED)


if __name__ == "__main__":
    unittest.main()

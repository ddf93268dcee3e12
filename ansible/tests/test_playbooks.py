"""Every playbook is found by its collection name and understood by Ansible, and nothing needs another collection."""

import pathlib
import re
import unittest

from support import ANSIBLE, BIN, COLLECTION, TemporaryDirectoryTest, collections_path

PLAYBOOKS = [
    "configure_network", "validate_network", "install_os", "configure_os", "run_os", "libvirt", "nova", "reboot",
    "install_certs", "ssh_known_hosts", "bootstrap", "ovn", "neutron_metadata",
]
# Those that upstream has under no name.
OWN_PLAYBOOKS = ["nova_audit", "ovn_audit", "neutron_metadata_audit"]


class Playbooks(TemporaryDirectoryTest):
    def ansible(self, *words):
        return self.command(
            BIN / "ansible-playbook", "-i", "host,", *words,
            env={"ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory)},
        )

    def test_the_playbooks_are_those_of_upstream_and_our_own_audit(self):
        found = {path.stem for path in (COLLECTION / "playbooks").glob("*.yml")}
        self.assertEqual(found, {*PLAYBOOKS, *OWN_PLAYBOOKS})

    def test_each_playbook_is_understood(self):
        for name in PLAYBOOKS + OWN_PLAYBOOKS:
            with self.subTest(name):
                done = self.ansible("--syntax-check", f"osp.edpm.{name}")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_playbook_obeys_the_variables_of_its_keywords(self):
        for name in PLAYBOOKS + OWN_PLAYBOOKS:
            with self.subTest(name):
                text = (COLLECTION / "playbooks" / f"{name}.yml").read_text()
                for variable in ("edpm_override_hosts", "edpm_any_errors_fatal", "edpm_max_fail_percentage"):
                    self.assertIn(variable, text)
                self.assertNotIn("serial:", text)

    def test_a_playbook_stays_within_the_given_hosts(self):
        done = self.ansible("osp.edpm.nova", "--list-hosts", "-e", "edpm_override_hosts=other")
        self.assertIn("hosts (0)", done.stdout)

    def test_only_builtin_modules_and_our_own_roles_are_used(self):
        strange = set()
        for path in COLLECTION.rglob("*.yml"):
            for name in re.findall(r"^\s+(?:- )?((?:\w+\.){2}\w+):", path.read_text(), re.MULTILINE):
                if not name.startswith("ansible.builtin."):
                    strange.add((str(path), name))
        self.assertEqual(strange, set())

    def test_every_file_begins_with_a_comment(self):
        for path in COLLECTION.rglob("*"):
            if path.is_file() and path.suffix in (".yml", ".j2", ".service"):
                with self.subTest(path):
                    self.assertTrue(path.read_text().startswith(("# ", "{# ")) or path.name == "auth.json.j2")

    def test_the_image_has_the_pinned_packages(self):
        lock = ANSIBLE.parent / "lab" / "images" / "ansible-runner" / "requirements.lock"

        def pins(path: pathlib.Path):
            return {line.split()[0].lower() for line in path.read_text().splitlines() if "==" in line}

        self.assertEqual(pins(ANSIBLE / "runner" / "requirements.txt"), pins(lock))


if __name__ == "__main__":
    unittest.main()

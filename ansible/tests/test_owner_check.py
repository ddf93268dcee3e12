"""The play that comes first in every run of the engine: a host is changed by runs of its owner alone."""

import textwrap
import unittest

from support import ANSIBLE, CallbackTest

PLAY = ANSIBLE.parent / "crates" / "ansibleee-operator" / "plays" / "owner-check.yaml"
OTHER = "openstack/OpenStackDataPlaneNode/n1"

# Followed by a play that changes the host.
RUN = f"""
- import_playbook: {PLAY}
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.copy:
        content: "{{{{ edpm_owner | default('nobody') }}}}"
        dest: "{{{{ changed }}}}"
"""


class OwnerCheck(CallbackTest):
    """Each host is a folder of this machine, reached without ssh and without sudo."""

    def run_as(self, owner, uid="u-1", host="n0", names=None, extra="", options=()):
        """One run on one host, of an inventory that names its owner. Returns the callback's message."""
        folder = self.directory / host
        folder.mkdir(exist_ok=True)
        name = names or owner.split("/")[-1]
        self.write("host_vars/" + name + ".yml", f"""
            ansible_connection: local
            ansible_become: false
            canonical_hostname: {name}
            edpm_owner: {owner}
            edpm_owner_uid: {uid}
            changed: {folder}/changed
            {extra}
        """)
        options = ["-e", f"edpm_owner_dir={folder}/state", "-e", f"edpm_owner_nova={folder}/nova", *options]
        message, _ = self.play(RUN, hosts=(name,), options=options)
        return message

    def owner(self, host="n0"):
        return (self.directory / host / "state" / "owner").read_text()

    def changed(self, host="n0"):
        file = self.directory / host / "changed"
        return file.read_text() if file.exists() else None

    def assertRefused(self, message, why):
        self.assertEqual(message["hosts"], "f")
        failure = message["failures"][0]
        self.assertIn(why, failure["message"])
        self.assertIn("owner-check.yaml", failure["path"])

    def test_the_first_owner_is_recorded_and_runs_again(self):
        for _ in range(2):
            self.assertEqual(self.run_as("openstack/OpenStackDataPlaneNode/n0")["hosts"], "o")
            self.assertEqual(self.owner(), "openstack/OpenStackDataPlaneNode/n0 u-1\n")
        self.assertEqual((self.directory / "n0" / "state" / "owner").stat().st_mode & 0o777, 0o644)

    def test_another_object_at_the_same_host_changes_nothing(self):
        self.run_as("openstack/OpenStackDataPlaneNode/n0")
        message = self.run_as(OTHER, uid="u-2")
        self.assertRefused(message, "the host belongs to OpenStackDataPlaneNode n0 (UID u-1)")
        self.assertEqual(self.changed(), "openstack/OpenStackDataPlaneNode/n0")
        self.assertEqual(self.owner(), "openstack/OpenStackDataPlaneNode/n0 u-1\n")

    def test_an_object_of_another_namespace_is_not_named(self):
        self.run_as("openstack/OpenStackDataPlaneNode/n0")
        message = self.run_as("tenant/OpenStackDataPlaneNode/n0", uid="u-2")
        self.assertRefused(message, "an object of another namespace (UID u-1)")
        self.assertNotIn("openstack", message["failures"][0]["message"])

    def test_an_object_that_was_made_again_under_its_name_goes_on(self):
        self.run_as("openstack/OpenStackDataPlaneNode/n0")
        self.assertEqual(self.run_as("openstack/OpenStackDataPlaneNode/n0", uid="u-2")["hosts"], "o")
        self.assertEqual(self.owner(), "openstack/OpenStackDataPlaneNode/n0 u-2\n")

    def test_a_host_is_handed_over_by_accepting_the_uid_of_its_owner(self):
        self.run_as("openstack/OpenStackDataPlaneNode/n0")
        wrong = self.run_as(OTHER, uid="u-2", extra="edpm_owner_accepted: [u-3]")
        self.assertRefused(wrong, "belongs to OpenStackDataPlaneNode n0")
        self.assertEqual(self.run_as(OTHER, uid="u-2", extra="edpm_owner_accepted: [u-1]")["hosts"], "o")
        self.assertEqual(self.owner(), f"{OTHER} u-2\n")
        self.assertRefused(self.run_as("openstack/OpenStackDataPlaneNode/n0"), "belongs to OpenStackDataPlaneNode n1")

    def test_a_swapped_pair_of_addresses_touches_neither_host(self):
        for host in ("n0", "n1"):
            self.run_as(f"openstack/OpenStackDataPlaneNode/{host}", host=host)
        for owner, host in (("n0", "n1"), ("n1", "n0")):
            message = self.run_as(f"openstack/OpenStackDataPlaneNode/{owner}", host=host)
            self.assertRefused(message, f"the host belongs to OpenStackDataPlaneNode {host}")
            self.assertEqual(self.changed(host), f"openstack/OpenStackDataPlaneNode/{host}")

    def test_a_host_without_a_record_is_judged_by_the_name_that_nova_compute_has(self):
        self.write("n0/nova/01-nova.conf", "[DEFAULT]\nhost = a.example.org\n[vnc]\nhost = other\n")
        self.write("n0/nova/02-nova.conf", "[DEFAULT]\n# host = x\nhost=N1.example.org\nhost_x = y\n")
        self.assertRefused(self.run_as("openstack/OpenStackDataPlaneNode/n0"), "configured as host n1.example.org")
        self.assertIsNone(self.changed())
        self.assertFalse((self.directory / "n0" / "state").exists())
        self.assertEqual(self.run_as(OTHER, uid="u-2")["hosts"], "o")
        self.assertEqual(self.owner(), f"{OTHER} u-2\n")

    def test_a_record_that_names_nobody_is_told_and_never_repeated(self):
        self.write("n0/state/owner", "{{ lookup('file', '/etc/passwd') }} \x1b[31m\n")
        message = self.run_as("openstack/OpenStackDataPlaneNode/n0")
        self.assertRefused(message, "names no owner")
        self.assertNotIn("passwd", message["failures"][0]["message"])

    def test_a_host_that_only_the_check_touched_was_not_reached(self):
        self.write("other.yml", f"- import_playbook: {PLAY}\n- hosts: b\n  gather_facts: false\n  tasks: [{{ping: }}]\n")
        for host in ("a", "b"):
            self.write(f"host_vars/{host}.yml", f"edpm_owner: ns/Node/{host}\nedpm_owner_uid: u\n")
        options = ["-e", f"edpm_owner_dir={self.directory}/{{{{ inventory_hostname }}}}", "-e", "ansible_become=false"]
        message, _ = self.play("- import_playbook: other.yml\n", options=options)
        self.assertEqual(message["hosts"], "no")

    def test_a_host_on_which_nothing_can_be_recorded_is_left_to_the_next_play_which_says_why(self):
        options = ["-e", "edpm_owner_dir=/proc/nowhere"]
        self.assertEqual(self.run_as("openstack/OpenStackDataPlaneNode/n0", options=options)["hosts"], "o")

    def test_a_host_that_answers_with_a_long_line_holds_up_nobody(self):
        ssh = self.write("ssh", "#!/bin/bash\nprintf 'edpm-owner: %100000sx\\n'\n")
        ssh.chmod(0o755)
        inventory = f"""
            a ansible_connection=local ansible_become=false
            b ansible_host=192.0.2.1 ansible_ssh_executable={ssh} ansible_ssh_retries=0
            [all:vars]
            edpm_owner=openstack/OpenStackDataPlaneNode/n0
            edpm_owner_uid=u-1
            edpm_owner_dir={self.directory}/state
        """
        message, _ = self.play(f"- import_playbook: {PLAY}\n", inventory=textwrap.dedent(inventory), run_hosts=("a", "b"))
        self.assertEqual(message["hosts"], "nn", "the check is over, and nobody was kept out")

    def test_a_node_set_tells_its_hosts_apart(self):
        self.run_as("openstack/OpenStackDataPlaneNodeSet/compute/n0", names="n0")
        message = self.run_as("openstack/OpenStackDataPlaneNodeSet/compute/n1", names="n1")
        self.assertRefused(message, "the host belongs to OpenStackDataPlaneNodeSet compute/n0 (UID u-1)")

    def test_tags_skip_no_check_and_an_inventory_without_owners_is_not_checked(self):
        self.run_as("openstack/OpenStackDataPlaneNode/n0")
        self.assertRefused(self.run_as(OTHER, uid="u-2", options=["--tags", "some"]), "belongs to")
        message, _ = self.play(RUN, hosts=("x",), options=["-e", f"changed={self.directory}/x"])
        self.assertEqual(message["hosts"], "o")


if __name__ == "__main__":
    unittest.main()

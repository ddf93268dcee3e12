"""Hosts behind a bastion, by the form that docs/hosts.md gives: both keys are looked up in known_hosts of the Secret."""

import json
import re
import unittest

from support import ANSIBLE, CallbackTest

RECIPE = re.compile(r"^ +ansible_ssh_common_args: '(.+)'$", re.MULTILINE)
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Write
      ansible.builtin.copy: {content: here, dest: "{{ written }}"}
"""


class Bastion(CallbackTest):
    """An sshd as the bastion, another one as the host; both let the same user in."""

    def setUp(self):
        super().setUp()
        self.key = self.make_key("user_key")
        self.write("authorized", self.key.with_suffix(".pub").read_text()).chmod(0o600)
        self.keys = {name: self.make_key(name) for name in ("key of bastion", "key of host")}
        self.bastion, self.host = (self.serve(key) for key in self.keys.values())
        self.written = self.directory / "written"

    def serve(self, host_key):
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        return self.start_sshd(
            host_key, f"AuthorizedKeysFile={self.directory}/authorized", "StrictModes=no", "PermitRootLogin=yes",
            "PasswordAuthentication=no", user=f"edpm-user:x:0:0::{home}:/bin/sh",
        )

    def known(self, port, name):
        kind, key = self.keys[name].with_suffix(".pub").read_text().split()[:2]
        return f"[127.0.0.1]:{port} {kind} {key}\n"

    def reach(self, *known):
        """Runs the play with these lines of known_hosts; returns the host's letter, and all that was said."""
        self.write("known_hosts", "".join(known))
        found = RECIPE.findall((ANSIBLE.parent / "docs" / "hosts.md").read_text())
        self.assertEqual(len(found), 1, "the page has one form")
        own = found[0].replace("jump@198.51.100.5", f"-p {self.bastion} edpm-user@127.0.0.1")
        self.assertNotEqual(own, found[0])
        # As `ssh_vars` and `with_ours` in crates/operator-core/src/run_engine/inventory.rs have it.
        args = (
            f"-o 'UserKnownHostsFile={self.directory}/known_hosts {self.directory}/learned'"
            " -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes"
        )
        self.write("host_vars/n0.yml", json.dumps({
            "ansible_host": "127.0.0.1", "ansible_port": self.host, "ansible_user": "edpm-user",
            "ansible_ssh_private_key_file": str(self.key), "written": str(self.written),
            "edpm_ssh_args": f"-i {self.key} -o BatchMode=yes {args}", "ansible_ssh_common_args": f"{own} {args}",
        }))
        # A connection that is kept would serve the next run.
        message, done = self.play(
            PLAY, inventory="n0\n", run_hosts=("n0",), env={"ANSIBLE_SSH_ARGS": "", "ANSIBLE_SSH_RETRIES": "0"},
        )
        self.assertNotIn("unchecked", message or {}, done.stdout)
        return message["hosts"], done.stdout + done.stderr

    def test_a_host_is_reached_through_a_bastion_where_both_keys_are_known(self):
        lines = [self.known(self.bastion, "key of bastion"), self.known(self.host, "key of host")]
        letter, said = self.reach(*lines)
        self.assertEqual((letter, self.written.read_text()), ("o", "here"), said)

    def test_neither_the_bastion_nor_the_host_is_trusted_unseen(self):
        right = {"bastion": self.known(self.bastion, "key of bastion"), "host": self.known(self.host, "key of host")}
        wrong = {"bastion": self.known(self.bastion, "key of host"), "host": self.known(self.host, "key of bastion")}
        for lines in ([right["host"]], [right["bastion"]], [right["host"], wrong["bastion"]], [right["bastion"], wrong["host"]]):
            letter, said = self.reach(*lines)
            self.assertEqual(letter, "h", said)
            self.assertFalse(self.written.exists())

    def test_without_the_bastion_the_host_is_not_reached(self):
        self.bastion = 1
        letter, said = self.reach(self.known(self.host, "key of host"))
        self.assertEqual(letter, "u", said)


if __name__ == "__main__":
    unittest.main()

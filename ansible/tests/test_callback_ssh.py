"""What the callback plugin makes of ssh's own words, with real ssh clients and a real sshd."""

import subprocess
import unittest

from support import CallbackTest

PLAY = """
    - hosts: all
      gather_facts: false
      tasks:
        - ansible.builtin.ping:
"""


class SshTest(CallbackTest):
    def inventory(self, port, host="far", options=""):
        return (
            f"{host} ansible_host=127.0.0.1 ansible_port={port} ansible_user=nobody-here"
            f" ansible_ssh_common_args='-F /dev/null -o IdentityAgent=none -o IdentitiesOnly=yes -o BatchMode=yes"
            f" -o ControlMaster=no -o ControlPath=none {options}'\nnear ansible_connection=local\n"
        )


class NobodyListens(SshTest):
    def test_a_closed_port_is_unreachable_and_the_other_host_goes_on(self):
        message, done = self.play(PLAY, inventory=self.inventory(self.reserve_port()), run_hosts=("near", "far"))
        self.assertEqual(done.returncode, 4)
        self.assertEqual(message["hosts"], "ou")
        self.assertIn("Connection refused", message["failures"][0]["message"])

    def test_an_ignored_unreachable_host_is_no_failure(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.ping:
                  ignore_unreachable: true
                - ansible.builtin.debug:
        """, inventory=self.inventory(self.reserve_port()), run_hosts=("far",))
        self.assertEqual((message["hosts"], message["failures"]), ("o", []))

    def test_a_host_that_is_called_back_is_ok(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.ping:
                - ansible.builtin.meta: clear_host_errors
                - ansible.builtin.debug:
        """, inventory=self.inventory(self.reserve_port()), run_hosts=("far", "near"))
        self.assertEqual((message["hosts"], message["failures"]), ("oo", []))

    def test_waiting_in_vain_for_a_connection_is_unreachable(self):
        message, _ = self.play("""
            - hosts: far
              gather_facts: false
              tasks:
                - ansible.builtin.wait_for_connection: {timeout: 2, sleep: 1, connect_timeout: 1}
        """, inventory=self.inventory(self.reserve_port()), run_hosts=("far",))
        self.assertEqual(message["hosts"], "u")


class SomebodyListens(SshTest):
    """One sshd of our own on the loopback; nobody can log in to it."""

    def setUp(self):
        super().setUp()
        self.make_key("user_key")
        self.port = self.start_refusing_sshd()
        self.host_key = (self.directory / "host_key.pub").read_text().split()
        self.user_key = (self.directory / "user_key.pub").read_text().split()

    def attempt(self, known_key, files="{0}/known_hosts"):
        entry = f"[127.0.0.1]:{self.port} {known_key[0]} {known_key[1]}\n" if known_key else ""
        self.write("known_hosts", entry)
        option = f'-o "UserKnownHostsFile={files.format(self.directory)}"'
        options = f"-i {self.directory}/user_key {option}"
        message, _ = self.play(
            PLAY, inventory=self.inventory(self.port, options=options), run_hosts=("far", "near"),
            env={"ANSIBLE_HOST_KEY_CHECKING": "True"},
        )
        return message

    def test_a_refused_key(self):
        message = self.attempt(self.host_key)
        self.assertEqual(message["hosts"], "ko")
        self.assertIn("Permission denied (publickey", message["failures"][0]["message"])

    def test_a_changed_host_key(self):
        message = self.attempt(self.user_key)
        self.assertEqual(message["hosts"], "ho")
        self.assertIn("REMOTE HOST IDENTIFICATION HAS CHANGED", message["failures"][0]["message"])

    def test_a_host_that_the_last_of_several_files_knows(self):
        # Not refused for its key, but by it: so many files may be named as an inventory with learned keys names.
        message = self.attempt(self.host_key, "{0}/absent {0}/also-absent {0}/known_hosts")
        self.assertEqual(message["hosts"], "ko")

    def test_the_warning_of_a_changed_key_has_its_fingerprint(self):
        message = self.attempt(self.user_key)
        listed = subprocess.run(
            ["ssh-keygen", "-lf", self.directory / "host_key.pub"], check=True, capture_output=True, text=True
        )
        said = message["failures"][0]["message"]
        self.assertIn("ED25519 key sent by the remote host", said)
        self.assertIn(listed.stdout.split()[1], said)

    def test_an_unknown_host_key(self):
        self.assertEqual(self.attempt(None)["hosts"], "ho")


class SshEnds(SshTest):
    """Made-up ssh that closes its input before a module is sent, as one does that is about to end."""

    def attempt(self, last):
        program = self.write("ssh", f"""\
            #!/bin/bash
            exec 0<&-
            {last}
        """)
        program.chmod(0o755)
        way = f"ansible_ssh_executable={program} ansible_ssh_transfer_method=smart ansible_ssh_pipelining=true"
        inventory = self.inventory(self.reserve_port()).replace("ansible_user=", f"{way} ansible_user=")
        message, _ = self.play(PLAY, inventory=inventory, run_hosts=("far", "near"))
        return message

    def test_what_it_says_is_told_however_late_its_process_is_gone(self):
        message = self.attempt("sleep 2; echo 'x@y: Permission denied (publickey).' >&2; exit 255")
        self.assertEqual(message["hosts"], "ko", message)
        self.assertIn("Permission denied (publickey)", message["failures"][0]["message"])


if __name__ == "__main__":
    unittest.main()

"""What the callback plugin makes of ssh's own words, with real ssh clients and a real sshd."""

import os
import pathlib
import shutil
import socket
import subprocess
import unittest

from support import CallbackTest

PLAY = """
    - hosts: all
      gather_facts: false
      tasks:
        - ansible.builtin.ping:
"""
UNPACKED = pathlib.Path(os.environ.get("EDPM_TEST_SSHD_ROOT", "/nonexistent"))
SSHD = shutil.which("sshd", path=f"/usr/sbin:/sbin:{UNPACKED}/usr/sbin")
# In a mount namespace of its own sshd finds the user and the directory that its package would have made.
START = """
mount --bind "$0" /etc/passwd && mount -t tmpfs none /run && mkdir /run/sshd && exec "$@"
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class SshTest(CallbackTest):
    def inventory(self, port, host="far", options=""):
        return (
            f"{host} ansible_host=127.0.0.1 ansible_port={port} ansible_user=nobody-here"
            f" ansible_ssh_common_args='-F /dev/null -o IdentityAgent=none -o IdentitiesOnly=yes -o BatchMode=yes"
            f" -o ControlMaster=no -o ControlPath=none {options}'\nnear ansible_connection=local\n"
        )


class NobodyListens(SshTest):
    def test_a_closed_port_is_unreachable_and_the_other_host_goes_on(self):
        message, done = self.play(PLAY, inventory=self.inventory(free_port()), run_hosts=("near", "far"))
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
        """, inventory=self.inventory(free_port()), run_hosts=("far",))
        self.assertEqual((message["hosts"], message["failures"]), ("o", []))

    def test_a_host_that_is_called_back_is_ok(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.ping:
                - ansible.builtin.meta: clear_host_errors
                - ansible.builtin.debug:
        """, inventory=self.inventory(free_port()), run_hosts=("far", "near"))
        self.assertEqual((message["hosts"], message["failures"]), ("oo", []))

    def test_waiting_in_vain_for_a_connection_is_unreachable(self):
        message, _ = self.play("""
            - hosts: far
              gather_facts: false
              tasks:
                - ansible.builtin.wait_for_connection: {timeout: 2, sleep: 1, connect_timeout: 1}
        """, inventory=self.inventory(free_port()), run_hosts=("far",))
        self.assertEqual(message["hosts"], "u")


class SomebodyListens(SshTest):
    """One sshd of our own on the loopback; nobody can log in to it."""

    def setUp(self):
        super().setUp()
        self.assertIsNotNone(SSHD, "no sshd: start these tests by ansible/tests/run, which gets one")
        self.port = free_port()
        for name in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / name], check=True)
        users = self.write("passwd", pathlib.Path("/etc/passwd").read_text())
        if "\nsshd:" not in users.read_text():
            users.write_text(users.read_text() + "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
        libraries = ":".join(str(path) for path in UNPACKED.glob("**/lib/*-linux-gnu"))
        server = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", START, users, SSHD, "-D", "-e", "-f", "/dev/null", "-h", self.directory / "host_key", "-o", "ListenAddress=127.0.0.1",
             "-o", f"Port={self.port}", "-o", "PidFile=none", "-o", "PasswordAuthentication=no",
             "-o", "KbdInteractiveAuthentication=no", "-o", "AuthorizedKeysFile=none"],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "LD_LIBRARY_PATH": libraries},
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.kill)
        for line in server.stderr:
            if "listening" in line:
                break
        else:
            self.fail("sshd ended")
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


if __name__ == "__main__":
    unittest.main()

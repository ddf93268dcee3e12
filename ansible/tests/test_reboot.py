"""The role that restarts a host, against a machine behind a real sshd that goes away and may come back."""

import concurrent.futures
import json
import os
import signal
import sys
import time
import unittest

from support import BIN, TemporaryDirectoryTest, collections_path

SUDO = """\
#!/bin/sh
while [ "$1" != /bin/sh ]; do shift; done
exec "$@"
"""


class Reboot(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.boot_id = self.write("boot_id", "first\n")
        self.asked = self.directory / "asked"
        self.key = self.make_key("user_key")
        self.write("authorized", self.key.with_suffix(".pub").read_text()).chmod(0o600)
        (self.directory / "home").mkdir()
        self.host_key = self.make_key("host_key")
        self.write("sudo", SUDO).chmod(0o755)
        self.write("processes", "1 /usr/bin/vim qemu-system-guest=notes\n")
        self.write("bin/ps", f"#!/bin/sh\ncat {self.directory}/processes\n").chmod(0o755)
        self.port = self.serve()
        self.comes_back = True

    def serve(self, port=None):
        return self.start_sshd(
            self.host_key, f"AuthorizedKeysFile={self.directory}/authorized", "StrictModes=no", "PermitRootLogin=yes",
            "PasswordAuthentication=no", user=f"edpm-user:x:0:0::{self.directory}/home:/bin/sh", port=port,
        )

    def run_guest(self):
        """Has the machine's processes be those of a host with a guest g1."""
        self.write("processes", "1 /usr/sbin/libvirtd\n2 /usr/bin/qemu-system-x86_64 -name guest=g1,debug-threads=on -S\n")

    def machine(self, play):
        """Goes away once the play has it restart, and may come back as another start of its system."""
        while not self.asked.exists():
            if play.poll() is not None:
                return
            time.sleep(0.05)
        self.stop_sshd()
        self.boot_id.write_text("second\n")
        if self.comes_back:
            self.serve(self.port)

    def play(self, **more):
        """Runs the playbook; returns how it ended and all it said in one line."""
        given = {
            "ansible_host": "127.0.0.1", "ansible_port": self.port, "ansible_user": "edpm-user",
            "ansible_ssh_private_key_file": str(self.key), "ansible_become_exe": str(self.directory / "sudo"),
            "ansible_python_interpreter": sys.executable, "ansible_ssh_retries": 0, "ansible_pipelining": True,
            "ansible_ssh_common_args": "-F /dev/null -o IdentityAgent=none -o IdentitiesOnly=yes -o BatchMode=yes"
            " -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlMaster=no -o ControlPath=none",
            "edpm_reboot_edpm_node_config_dir": str(self.directory / "deployed"),
            "edpm_reboot_required_files": [str(self.directory / "required")],
            "edpm_reboot_required_dir": str(self.directory / "requests"),
            "edpm_reboot_boot_id_command": f"cat {self.boot_id}",
            # It lasts until the machine has gone away.
            "edpm_reboot_command": f"/usr/bin/touch {self.asked} && tail --pid={self.sshd.pid} -f /dev/null",
            "edpm_playbook_environment": {"PATH": f"{self.directory}/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            **more,
        }
        # In a session of its own, so that all its processes can be ended.
        play = self.begin(
            "setsid", BIN / "ansible-playbook", "-i", "n0,", "-e", json.dumps(given), "osp.edpm.reboot",
            env={"ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory)},
        )
        # The play waits for the machine as long as that takes, and no longer for one that has failed.
        with play, concurrent.futures.ThreadPoolExecutor(1) as pool:
            machine = pool.submit(self.machine, play)
            machine.add_done_callback(lambda done: done.exception() and os.killpg(play.pid, signal.SIGKILL))
            stdout, stderr = play.communicate()
        machine.result()
        return play.returncode, " ".join((stdout + stderr).split())

    def restarts(self, **more):
        """Runs the playbook against a machine that does restart; returns what it said."""
        code, said = self.play(**more)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.boot_id.read_text(), "second\n", said)
        return said

    def stays(self, **more):
        """Runs the playbook where nothing may be done; returns what it said."""
        code, said = self.play(**more)
        self.assertEqual(code, 0, said)
        self.assertIn("changed=0", said)
        self.assertFalse(self.asked.exists(), said)
        return said

    def test_a_host_that_needs_no_restart_is_left_alone(self):
        self.assertNotIn("The host needs a restart", self.stays())

    def test_a_host_that_needs_a_restart_comes_back_as_another_start_and_its_requests_go(self):
        request = self.write("requests/kernel-arguments", "")
        self.restarts()
        self.assertFalse(request.parent.exists())
        self.asked.unlink()
        self.stays()

    def test_needs_restarting_counts_too(self):
        tool = self.write("bin/needs-restarting", '#!/bin/sh\n[ "$1" != -r ]\n')
        tool.chmod(0o755)
        self.restarts()

    def test_a_deployed_host_restarts_only_once_it_is_drained(self):
        self.write("required", "")
        (self.directory / "deployed").mkdir()
        said = self.stays()
        self.assertIn(f"The host needs a restart ({self.directory}/required), which was not begun: nova is deployed", said)
        self.restarts(edpm_reboot_drained=True)

    def test_a_host_on_which_a_guest_runs_is_not_restarted_and_the_guest_is_named(self):
        self.write("required", "")
        self.run_guest()
        code, said = self.play(edpm_reboot_drained=True)
        self.assertNotEqual(code, 0)
        self.assertIn("1 guest is on this host, so it is not restarted: g1. Migrate or stop them, or set edpm_reboot_strategy", said)
        self.assertFalse(self.asked.exists(), said)

    def test_a_host_whose_processes_cannot_be_listed_is_not_restarted(self):
        self.write("required", "")
        self.write("bin/ps", "#!/bin/sh\nexit 1\n")
        code, said = self.play(edpm_reboot_drained=True)
        self.assertNotEqual(code, 0)
        self.assertIn("Look for guests", said)
        self.assertFalse(self.asked.exists(), said)

    def test_force_restarts_a_host_that_needs_none_and_never_leaves_one_alone_that_does(self):
        self.run_guest()
        (self.directory / "deployed").mkdir()
        self.write("required", "")
        self.assertIn("which was not begun: edpm_reboot_strategy is never", self.stays(edpm_reboot_strategy="never"))
        (self.directory / "required").unlink()
        self.restarts(edpm_reboot_strategy="force")

    def test_another_strategy_is_refused_by_name(self):
        code, said = self.play(edpm_reboot_strategy="sometimes")
        self.assertNotEqual(code, 0)
        self.assertIn("edpm_reboot_strategy must be auto, force or never, not sometimes.", said)

    def test_a_host_that_answers_with_the_boot_id_of_before_has_not_restarted(self):
        code, said = self.play(
            edpm_reboot_strategy="force", edpm_reboot_timeout_reboot=2, edpm_reboot_command="/usr/bin/true",
        )
        self.assertNotEqual(code, 0)
        self.assertIn("The host answers with the boot id of before, so it did not restart within 2 s: Timed out waiting", said)

    def test_a_command_that_fails_is_reported(self):
        code, said = self.play(edpm_reboot_strategy="force", edpm_reboot_command="/usr/bin/false")
        self.assertNotEqual(code, 0)
        self.assertIn("The host answers with the boot id of before", said)
        self.assertIn("Reboot command failed", said)

    def test_a_host_that_does_not_come_back_is_reported_with_the_limit(self):
        self.comes_back = False
        code, said = self.play(edpm_reboot_strategy="force", edpm_reboot_timeout_reboot=3)
        self.assertNotEqual(code, 0)
        self.assertIn("The host did not come back within 3 s after its restart: look at its console", said)


if __name__ == "__main__":
    unittest.main()

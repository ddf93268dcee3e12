"""Who may enter the directories of services: upstream's plays write beside ours as users without rights."""

import os
import unittest

import yaml
from support import BIN, COLLECTION, TemporaryDirectoryTest

ROLES = COLLECTION / "roles"
# In a mount namespace of its own the host has none of these directories yet.
START = 'mount -t tmpfs none /var/lib && "$@" >&2 && find /var/lib -type d -printf "%m %p\\n"'


@unittest.skipUnless(os.geteuid() == 0, "needs root for a mount namespace")
class Directories(TemporaryDirectoryTest):
    def modes(self, role, tasks):
        """Runs the task that makes a role's directories; returns their modes by path."""
        tasks = yaml.safe_load((ROLES / role / "tasks" / tasks).read_text())
        task = next(task for task in tasks if task["name"] == "Create the directories")
        for item in task["loop"]:
            # The machine of the tests does not have the services' users.
            item.pop("owner", None)
        defaults = str(ROLES / role / "defaults" / "main.yml")
        play = [{"hosts": "all", "gather_facts": False, "vars_files": [defaults], "tasks": [task]}]
        self.write("play.yml", yaml.safe_dump(play))
        done = self.command(
            "unshare", "--mount", "sh", "-c", START, "sh", BIN / "ansible-playbook", "-i", "host,", "-c", "local", "play.yml"
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return {path: mode for mode, path in (line.split(" ", 1) for line in done.stdout.splitlines())}

    def test_only_the_folders_with_secrets_are_closed_and_not_those_around_them(self):
        for role, tasks, closed in [
            ("edpm_libvirt", "main.yml", ["/var/lib/openstack/config/libvirt"]),
            ("edpm_nova", "host.yml", ["/var/lib/openstack/config/nova", "/var/lib/edpm-config/nova"]),
        ]:
            with self.subTest(role):
                modes = self.modes(role, tasks)
                for path in closed:
                    self.assertEqual(modes[path], "700")
                    parent = os.path.dirname(path)
                    while parent != "/var/lib":
                        self.assertEqual(modes[parent], "755", parent)
                        parent = os.path.dirname(parent)


if __name__ == "__main__":
    unittest.main()

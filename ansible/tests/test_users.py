"""The role that creates nova's account, with the host's own tools on a hardened host: logins of nova go on for years."""

import unittest

from support import BIN, TemporaryDirectoryTest, collections_path

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.import_role:
        name: osp.edpm.edpm_users
"""

# The tools replace files, so the whole of /etc is the test's, and /home too.
START = 'mount --bind "$0/etc" /etc && mount --bind "$0/home" /home && exec "$@"'

NEVER = ["Account expires : never", "Password expires : never", "Password inactive : never"]


class Users(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        (self.directory / "host" / "home").mkdir(parents=True)
        self.command("cp", "--archive", "/etc", "host/etc").check_returncode()
        self.etc = self.directory / "host" / "etc"
        for name in ("passwd", "shadow", "group", "gshadow"):
            lines = [line for line in (self.etc / name).read_text().splitlines() if not line.startswith(("nova:", "libvirt:"))]
            (self.etc / name).write_text("\n".join(lines) + "\n")
        defaults = (self.etc / "login.defs").read_text()
        (self.etc / "login.defs").write_text(defaults.replace("\nPASS_MAX_DAYS", "\nPASS_MAX_DAYS 60\n#"))
        self.on_host("useradd", "-D", "-f", "30", "-e", "2020-01-01")

    def on_host(self, *words):
        """What a command on the host says."""
        done = self.command("unshare", "--mount", "sh", "-c", START, self.etc.parent, *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def deploy(self):
        """Runs the role; what it said."""
        self.write("play.yml", PLAY)
        return self.on_host(
            "env", f"ANSIBLE_COLLECTIONS_PATH={collections_path(self.directory)}",
            BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "play.yml",
        )

    def expiry(self):
        """What the host says of the end of nova's account and password."""
        lines = [" ".join(line.split()) for line in self.on_host("chage", "--list", "nova").splitlines()]
        return sorted(line for line in lines if line.startswith(("Account expires", "Password expires", "Password inactive")))

    def test_neither_the_account_that_the_role_creates_nor_its_password_expires(self):
        self.assertIn("60", self.on_host("grep", "^PASS_MAX_DAYS", "/etc/login.defs"))
        self.deploy()
        self.assertEqual(self.expiry(), NEVER)
        self.assertIn("changed=0", self.deploy())

    def test_an_account_that_was_there_before_is_mended(self):
        self.on_host("groupadd", "-g", "42436", "nova")
        self.on_host("useradd", "-u", "42436", "-g", "nova", "nova")
        self.assertIn("Account expires : Jan 01, 2020", self.expiry())
        self.deploy()
        self.assertEqual(self.expiry(), NEVER)


if __name__ == "__main__":
    unittest.main()

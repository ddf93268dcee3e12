"""The role that installs packages, on a host without an archive: what is installed is not asked for again."""

import json
import unittest

from support import BIN, TemporaryDirectoryTest, collections_path

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.import_role:
        name: osp.edpm.edpm_packages
      vars:
        edpm_packages: [chrony, nftables]
"""


class Packages(TemporaryDirectoryTest):
    def test_a_package_that_is_held_is_installed(self):
        self.write("bin/dpkg-query", "#!/bin/sh\nprintf 'chrony ii \\nnftables hi \\n'\n").chmod(0o755)
        self.write("play.yml", PLAY)
        done = self.command(
            BIN / "ansible-playbook", "-i", "localhost,", "-c", "local",
            # Where the role would install, it fails: there is no archive.
            "-e", json.dumps({"edpm_download_retries": 1, "edpm_download_delay": 0}), "play.yml",
            env={
                "PATH": f"{self.directory}/bin:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin", "http_proxy": "http://127.0.0.1:9",
                "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
            },
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("skipped=1", done.stdout)


if __name__ == "__main__":
    unittest.main()

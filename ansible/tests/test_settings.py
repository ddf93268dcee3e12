"""What the operator decides about Ansible, with the real ansible-runner: nothing of an image or a mount beats it."""

import json
import unittest

from support import ANSIBLE, BIN, TemporaryDirectoryTest
from test_hostile_hosts import FORCED, forced_ssh

# What decides the same in Ansible's own files.
HOSTILE_CONFIG = """\
[defaults]
inject_facts_as_vars = True
host_key_checking = False
task_timeout = 0
[ssh_connection]
host_key_checking = False
ssh_common_args = -o StrictHostKeyChecking=no
ssh_extra_args = -o ProxyCommand=x
ssh_executable = /tmp/ssh
"""

PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.copy:
        content: "{{ dict(names | zip(names | map('extract', found))) | to_json }}"
        dest: "{{ playbook_dir }}/found"
      vars:
        found:
          INJECT_FACTS_AS_VARS: "{{ lookup('config', 'INJECT_FACTS_AS_VARS') }}"
          HOST_KEY_CHECKING: "{{ lookup('config', 'HOST_KEY_CHECKING') }}"
          TASK_TIMEOUT: "{{ lookup('config', 'TASK_TIMEOUT') }}"
          ssh_common_args: "{{ lookup('config', 'ssh_common_args', plugin_type='connection', plugin_name='ssh') }}"
          ssh_extra_args: "{{ lookup('config', 'ssh_extra_args', plugin_type='connection', plugin_name='ssh') }}"
          ssh_executable: "{{ lookup('config', 'ssh_executable', plugin_type='connection', plugin_name='ssh') }}"
        names: "{{ found | list }}"
"""


class Settings(TemporaryDirectoryTest):
    def found(self, **env):
        """What Ansible decides by, in a pod whose file of variables is the operator's."""
        self.write("runner/env/envvars", json.dumps({**FORCED, **forced_ssh(), "ANSIBLE_TASK_TIMEOUT": "900"}))
        self.write("runner/inventory/hosts", "localhost\n")
        play = self.write("runner/project/play.yml", PLAY)
        done = self.command(BIN / "ansible-runner", "run", self.directory / "runner", "-p", "play.yml", env=env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads((play.parent / "found").read_text())

    EXPECTED = {
        "INJECT_FACTS_AS_VARS": False, "HOST_KEY_CHECKING": True, "TASK_TIMEOUT": 900,
        "ssh_common_args": "-o StrictHostKeyChecking=yes", "ssh_extra_args": "", "ssh_executable": "ssh",
    }

    def test_what_an_images_entry_point_exports_decides_nothing(self):
        found = self.found(**{
            "ANSIBLE_INJECT_FACT_VARS": "True", "ANSIBLE_HOST_KEY_CHECKING": "False", "ANSIBLE_TASK_TIMEOUT": "0",
            "ANSIBLE_SSH_COMMON_ARGS": "-o StrictHostKeyChecking=no", "ANSIBLE_SSH_EXECUTABLE": "/tmp/ssh",
        })
        self.assertEqual({**found, "TASK_TIMEOUT": int(found["TASK_TIMEOUT"])}, self.EXPECTED)

    def test_no_file_of_settings_that_is_mounted_decides_anything(self):
        for name in ("own.cfg", ".ansible.cfg", "runner/project/ansible.cfg"):
            with self.subTest(name):
                file = self.write(name, HOSTILE_CONFIG)
                found = self.found(ANSIBLE_CONFIG=str(file))
                self.assertEqual({**found, "TASK_TIMEOUT": int(found["TASK_TIMEOUT"])}, self.EXPECTED)


if __name__ == "__main__":
    unittest.main()

"""Variables from Secrets, in the files and places in which a run gets them, read by real Ansible."""

import json
import unittest

from support import BIN, TemporaryDirectoryTest

INVENTORY = """
    compute:
      hosts:
        n0: {ansible_connection: local, plain: "{{ inventory_hostname }}", beaten: inventory}
        n0.yaml: {ansible_connection: local, plain: "of the inventory"}
"""
RUN = "edpm_run: {hosts: {n0: {}, n0.yaml: {}}}\n"
GROUP = """
    beaten: !unsafe "role"
    plain: !unsafe "role"
    token: !unsafe "{{ plain }} $(id)"
"""
PLAY = """
    - hosts: edpm_run
      gather_facts: false
      tasks:
        - ansible.builtin.copy:
            dest: "{{ out }}/{{ inventory_hostname }}.json"
            content: "{{ {'plain': plain, 'beaten': beaten, 'token': token, 'own': own | default('none')} | to_json }}"
"""


class SecretVars(TemporaryDirectoryTest):
    def secret(self, files):
        """A mounted Secret as kubelet lays it out: links into a folder that is replaced as a whole."""
        for name, text in files.items():
            self.write(f"inventory/host_vars/..2026_01_01/{name}", text)
        folder = self.directory / "inventory" / "host_vars"
        (folder / "..data").symlink_to("..2026_01_01")
        for name in files:
            (folder / name).symlink_to(f"..data/{name}")

    def found(self):
        self.write("inventory/hosts", INVENTORY)
        self.write("inventory/inventory.yaml", RUN)
        self.write("inventory/group_vars/all", GROUP)
        self.write("play.yml", PLAY)
        # As ansible-runner does it: the folder is the inventory.
        done = self.command(BIN / "ansible-playbook", "-i", self.directory / "inventory", "--limit", "edpm_run",
                            "-e", f"out={self.directory}", "play.yml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return {host: json.loads((self.directory / f"{host}.json").read_text()) for host in ("n0", "n0.yaml")}

    def test_a_hosts_file_beats_the_inventory_which_beats_what_all_hosts_are_given(self):
        self.secret({"group_vars": GROUP, "n0": 'beaten: !unsafe "node {{ plain }}"\n', "n0.yaml": "{}\n"})
        found = self.found()
        self.assertEqual(found["n0"]["beaten"], "node {{ plain }}")
        self.assertEqual(found["n0.yaml"]["beaten"], "role")
        self.assertEqual((found["n0"]["plain"], found["n0.yaml"]["plain"]), ("n0", "of the inventory"))
        for host in found.values():
            self.assertEqual(host["token"], "{{ plain }} $(id)")

    def test_an_empty_file_keeps_a_host_from_reading_anothers(self):
        other = 'own: !unsafe "of n0.yaml"\n'
        self.secret({"group_vars": GROUP, "n0": "{}\n", "n0.yaml": other})
        found = self.found()
        self.assertEqual((found["n0"]["own"], found["n0.yaml"]["own"]), ("none", "of n0.yaml"))


class ExtraVars(TemporaryDirectoryTest):
    def test_a_marked_text_is_no_template_and_the_others_are(self):
        marked = {"__ansible_unsafe": "{{ lookup('pipe', 'id') }}"}
        self.write("extravars", json.dumps({"a": marked, "b": [{"c": marked}], "d": "{{ 1 + 1 }}"}))
        self.write("play.yml", """
            - hosts: localhost
              connection: local
              gather_facts: false
              tasks:
                - ansible.builtin.copy:
                    dest: "{{ playbook_dir }}/found.json"
                    content: "{{ {'a': a, 'b': b[0].c, 'd': d | int} | to_json }}"
        """)
        done = self.command(BIN / "ansible-playbook", "-i", "localhost,", "-e", "@extravars", "play.yml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads((self.directory / "found.json").read_text())
        self.assertEqual(found, {"a": "{{ lookup('pipe', 'id') }}", "b": "{{ lookup('pipe', 'id') }}", "d": 2})


if __name__ == "__main__":
    unittest.main()

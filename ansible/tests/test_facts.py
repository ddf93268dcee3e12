"""Facts as variables, where a service asks for them: those of the setup module reach the plays, and nothing else."""

import json
import shutil
import unittest

from support import ANSIBLE
from test_hostile_hosts import HostileTest

PLAY = ANSIBLE.parent / "crates" / "ansibleee-operator" / "plays" / "facts.yaml"

# What two roles of upstream do with facts, in our words: edpm_podman looks for an interface among them, and
# edpm_nodes_validation asks whether there is a default route, and pings its gateway.
TASKS = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Whether there is an interface of podman's
      ansible.builtin.set_fact:
        podman_is_there: "{{ 'podman0' in ansible_interfaces }}"
    - name: The loopback is an interface
      ansible.builtin.assert: {that: "'lo' in ansible_interfaces and not podman_is_there"}
    - name: The gateway
      ansible.builtin.debug: {msg: "{{ ansible_default_ipv4.gateway | default('none') }}"}
      when: ansible_default_ipv4 is defined
"""
ASKED = ["ansible_interfaces", "ansible_default_ipv4"]


PLUGINS = ("callback", "bounds", "key_checks")


class FactVariables(HostileTest):
    def asked(self, lies, plays, names=ASKED):
        """Runs plays of a service that asks for facts; without names it does not ask."""
        # As in the pod: the plays lie beside the plugin's folder.
        for name in PLUGINS:
            shutil.copytree(ANSIBLE / name, self.directory / "edpm" / name, dirs_exist_ok=True)
        play = self.write("edpm/plays/facts.yaml", PLAY.read_text())
        asks = [{"import_playbook": str(play), "vars": {"edpm_fact_names": names}}] if names else []
        self.write("plays.yml", plays)
        folders = {
            "ANSIBLE_CALLBACK_PLUGINS": ":".join(str(self.directory / "edpm" / name) for name in PLUGINS),
            "ANSIBLE_VARS_PLUGINS": str(self.directory / "edpm" / "callback"),
        }
        return self.lying(lies, json.dumps([*asks, {"import_playbook": "plays.yml"}]), env=folders)

    def test_roles_that_read_facts_as_variables_run_where_the_service_asks(self):
        message, done = self.asked({}, TASKS)
        self.assertEqual(message["hosts"], "oo", done.stdout)

    def test_they_fail_where_it_does_not(self):
        message, done = self.asked({}, TASKS, names=None)
        self.assertEqual(message["hosts"], "ff", done.stdout)
        self.assertIn("'ansible_interfaces' is undefined", message["failures"][0]["message"])

    def test_another_modules_answer_sets_no_fact_that_is_asked_for(self):
        # The host adds its lies to what every module answers: setup is asked for these names alone, and once.
        lies = {"ansible_facts": {"ansible_interfaces": ["forged"], "ansible_become_exe": "/tmp/x", "forged": True}}
        message, done = self.asked(lies, """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.command: "true"
    - ansible.builtin.assert:
        that:
          - ansible_become_exe is undefined and forged is undefined
          - ansible_fqdn is undefined
    - ansible.builtin.assert:
        that: "'lo' in ansible_interfaces"
      when: inventory_hostname == 'good'
    - ansible.builtin.setup: {gather_subset: "!all"}
    - ansible.builtin.assert: {that: ansible_fqdn is undefined}
""", names=["ansible_interfaces"])
        self.assertEqual(message["hosts"], "oo", done.stdout)

    def test_an_answer_after_the_one_of_setup_changes_nothing(self):
        lies_later = """
- hosts: bad
  gather_facts: false
  tasks:
    - ansible.builtin.copy:
        content: '{"ansible_facts": {"ansible_interfaces": ["forged"], "interfaces": ["forged"]}}'
        dest: "{{ playbook_dir }}/lies.json"
      vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}"}
      delegate_to: good
    - ansible.builtin.command: "true"
    - ansible.builtin.assert: {that: "'lo' in ansible_interfaces and 'forged' not in ansible_interfaces"}
"""
        message, done = self.asked({}, lies_later)
        self.assertEqual(message["hosts"], "no", done.stdout)

    def test_what_a_host_gives_is_data_and_of_its_kind(self):
        template = "{{ lookup('pipe', 'touch " + str(self.directory) + "/executed') }}"
        tell = """
- hosts: bad
  gather_facts: false
  tasks:
    - ansible.builtin.debug: {msg: "{{ ansible_interfaces }} {{ ansible_interfaces[0] }} {{ ansible_interfaces | join }}"}
    - ansible.builtin.command: "echo {{ ansible_interfaces[0] | quote }}"
    - ansible.builtin.set_fact: {again: "{{ ansible_interfaces[0] }}"}
    - ansible.builtin.debug: {msg: "{{ again }}"}
"""
        message, done = self.asked({"ansible_facts": {"ansible_interfaces": [template]}}, tell)
        self.assertEqual(message["hosts"], "no", done.stdout)
        self.assertFalse((self.directory / "executed").exists())
        for value in ("lo", {"lo": 1}, 7, None, True, ["x" * 70_000]):
            with self.subTest(str(value)[:40]):
                message, done = self.asked({"ansible_facts": {"ansible_interfaces": value}}, tell)
                self.assertEqual(message["hosts"], "nf", done.stdout)
        message, _ = self.asked({"ansible_facts": {"ansible_fqdn": "['a']"}}, tell, names=["ansible_fqdn"])
        self.assertEqual(message["hosts"], "nf")


if __name__ == "__main__":
    unittest.main()

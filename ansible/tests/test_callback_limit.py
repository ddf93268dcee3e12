"""What the plugin tells of a limit that leaves no host, which ends Ansible before it asks any callback."""

import textwrap
import unittest

from support import CallbackTest

PLAY = """
    - hosts: all
      gather_facts: false
      tasks:
        - ansible.builtin.debug:
"""
NOBODY = {"v": 1, "hosts": "nn", "changed": [], "failures": [], "unmatched": True}


class Limits(CallbackTest):
    def test_a_limit_that_leaves_nobody_is_told(self):
        message, done = self.play(PLAY, options=("--limit", "elsewhere"))
        self.assertEqual((done.returncode, message), (1, NOBODY), done.stdout + done.stderr)
        message, _ = self.play(PLAY, options=("--limit", "a:&b"))
        self.assertEqual(message, NOBODY)

    def test_it_is_told_of_a_run_that_names_no_hosts(self):
        message, _ = self.play(PLAY, options=("--limit", "elsewhere"), env={"EDPM_RUN_HOSTS": ""})
        self.assertEqual(message, {**NOBODY, "hosts": ""})

    def test_a_limit_that_leaves_somebody_changes_nothing(self):
        message, done = self.play(PLAY, options=("--limit", "a"))
        self.assertEqual((done.returncode, message["hosts"]), (0, "on"), done.stdout + done.stderr)
        self.assertNotIn("unmatched", message)

    def test_a_pattern_that_no_host_has_is_no_limit(self):
        message, _ = self.play(PLAY.replace("all", "nowhere"), options=("--limit", "a"))
        self.assertEqual(message["hosts"], "nn")
        self.assertNotIn("unmatched", message)

    def test_a_playbook_that_cannot_be_read_under_a_good_limit_leaves_no_message(self):
        for playbook in ("- hosts: all\n  taskz: []\n", "- import_playbook: nowhere.yml\n", "- hosts: [\n"):
            message, done = self.play(playbook, options=("--limit", "a"))
            self.assertIsNone(message, playbook)
            self.assertNotEqual(done.returncode, 0)

    def test_an_option_that_ansible_does_not_know_leaves_no_message(self):
        message, done = self.play(PLAY, options=("--no-such-option",))
        self.assertEqual((done.returncode, message), (2, None))

    def test_a_playbook_that_does_not_exist_leaves_no_message(self):
        message, done = self.play(PLAY, options=("nowhere.yml", "--limit", "elsewhere"))
        self.assertEqual((done.returncode, message), (1, None))

    def test_what_was_told_before_stays(self):
        self.write("result", "{}")
        message, done = self.play(PLAY, options=("--limit", "elsewhere"))
        self.assertEqual((done.returncode, message), (1, {}))

    def test_a_process_within_the_run_has_not_the_last_word(self):
        self.write("inner.yml", textwrap.dedent(PLAY))
        message, _ = self.play("""
            - hosts: a
              gather_facts: false
              tasks:
                - ansible.builtin.command: ansible-playbook -i hosts inner.yml --limit x
                  args: {chdir: "{{ playbook_dir }}"}
                  ignore_errors: true
        """)
        self.assertEqual(message["hosts"], "on")

    def test_hosts_still_get_the_variables_of_their_groups(self):
        self.write("group_vars/all.yml", "word: here\n")
        self.write("host_vars/b.yml", "word: there\n")
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.assert:
                    that: "word == {'a': 'here', 'b': 'there'}[inventory_hostname]"
        """)
        self.assertEqual(message["hosts"], "oo")


if __name__ == "__main__":
    unittest.main()

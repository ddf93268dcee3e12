"""What the plugin tells of a limit that leaves no host, which ends Ansible before it asks any callback, and what the
limit of its message costs."""

import importlib.util
import textwrap
import unittest
from unittest import mock

from support import ANSIBLE, CallbackTest

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


class Message(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        path = ANSIBLE / "callback" / "edpm_result.py"
        spec = importlib.util.spec_from_file_location("edpm_result", path)
        cls.plugin = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.plugin)

    def entries(self, number):
        entry = {"play": "p", "task": "t", "path": "/runner/project/p.yml:3", "message": "größer " * 60}
        return [{"host": f"compute-{it}", **entry} for it in range(number)]

    def test_hundreds_of_unreachable_hosts_cost_no_more_than_what_fits_each_time(self):
        n_bytes = 0

        def count(text):
            nonlocal n_bytes
            n_bytes += len(text)
            return text

        encode = self.plugin._json
        with mock.patch.object(self.plugin, "_json", lambda value: count(encode(value))):
            for number in range(1, 501):
                self.plugin._fit("u" * 500, [], self.entries(number), unfinished=True)
        self.assertLess(n_bytes, 500 * 5 * self.plugin.LIMIT)

    def test_as_many_failures_are_told_as_fit(self):
        entries = self.entries(12)
        whole = len(self.plugin._encode("u" * 12, [], entries, 0))
        for limit in range(100, whole + 1, 7):
            text = self.plugin._fit("u" * 12, [], entries, limit)
            self.assertLessEqual(len(text), limit)
            for more in range(text.count(b"host\":") + 1, 13):
                longer = self.plugin._encode("u" * 12, [], entries[:more], 12 - more)
                self.assertGreater(len(longer), limit, f"{more} of 12 entries fit into {limit} bytes")


if __name__ == "__main__":
    unittest.main()

"""The callback plugin, judged by the message that real runs of ansible-playbook leave."""

import textwrap
import unittest

from support import COLLECTION, CallbackTest


class OrdinaryResults(CallbackTest):
    def test_hosts_that_succeed_are_ok_with_their_changes_counted(self):
        message, done = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.command: "true"
                  changed_when: inventory_hostname == 'b'
        """)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(message, {"v": 1, "hosts": "oo", "changed": [0, 1], "failures": []})
        self.assertEqual(self.raw.count(b"\n"), 0)

    def test_a_failure_names_play_task_place_and_message(self):
        message, done = self.play("""
            - name: The play
              hosts: all
              gather_facts: false
              tasks:
                - name: The task
                  ansible.builtin.fail:
                    msg: "no disk on {{ inventory_hostname }}"
                  when: inventory_hostname == 'b'
        """)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(message["hosts"], "of")
        failure = message["failures"][0]
        self.assertEqual((failure["host"], failure["play"], failure["task"]), ("b", "The play", "The task"))
        self.assertRegex(failure["path"], r"/play\.yml:\d+$")
        self.assertEqual(failure["message"], "no disk on b")

    def test_a_command_that_fails_shows_its_error_output(self):
        message, _ = self.play("""
            - hosts: a
              gather_facts: false
              tasks:
                - ansible.builtin.shell: "echo out of paper >&2; exit 3"
        """, hosts=("a",))
        self.assertIn("non-zero return code", message["failures"][0]["message"])
        self.assertIn("out of paper", message["failures"][0]["message"])

    def test_an_assertion_is_quoted_where_its_author_says_nothing(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.assert: {that: 1 > 2}
                  when: inventory_hostname == 'a'
                - ansible.builtin.assert: {that: 1 > 2, fail_msg: one is less}
                  when: inventory_hostname == 'b'
        """)
        texts = [failure["message"] for failure in message["failures"]]
        self.assertEqual(texts, ["Assertion failed\nassertion: 1 > 2", "one is less"])

    def test_letters_follow_the_order_of_the_run_and_not_of_the_inventory(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.fail:
                  when: inventory_hostname == 'a'
        """, hosts=("a", "b", "c"), run_hosts=("c", "nobody", "a"))
        self.assertEqual(message["hosts"], "onf")

    def test_hosts_outside_the_play_were_not_reached(self):
        message, done = self.play("""
            - hosts: nowhere
              gather_facts: false
              tasks:
                - ansible.builtin.debug:
        """)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(message["hosts"], "nn")

    def test_a_host_with_skipped_tasks_only_was_reached(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.debug:
                  when: false
        """)
        self.assertEqual(message["hosts"], "oo")

    def test_a_playbook_that_cannot_be_read_leaves_no_message(self):
        message, done = self.play("- hosts: all\n  taskz: []\n")
        self.assertNotEqual(done.returncode, 0)
        self.assertIsNone(message)

    def test_without_hosts_of_the_run_failures_are_still_told(self):
        message, _ = self.play("""
            - hosts: a
              gather_facts: false
              tasks:
                - ansible.builtin.fail: {msg: broken}
        """, env={"EDPM_RUN_HOSTS": ""})
        self.assertEqual((message["hosts"], message["changed"]), ("", []))
        self.assertEqual(message["failures"][0]["host"], "a")


class ForgivenFailures(CallbackTest):
    def test_rescued_and_ignored_failures_are_none(self):
        message, done = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.fail: {msg: ignored}
                  ignore_errors: true
                - block:
                    - ansible.builtin.fail: {msg: rescued}
                  rescue:
                    - ansible.builtin.debug:
                  always:
                    - ansible.builtin.debug:
        """)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual((message["hosts"], message["failures"]), ("oo", []))

    def test_of_a_rescued_and_a_real_failure_the_real_one_is_told(self):
        message, _ = self.play("""
            - hosts: a
              gather_facts: false
              tasks:
                - block:
                    - ansible.builtin.fail: {msg: rescued}
                  rescue:
                    - ansible.builtin.debug:
                - ansible.builtin.fail: {msg: real}
        """, hosts=("a",))
        self.assertEqual(message["hosts"], "f")
        self.assertEqual([failure["message"] for failure in message["failures"]], ["real"])

    def test_a_failure_followed_by_an_always_section_stays_one(self):
        message, _ = self.play("""
            - hosts: a
              gather_facts: false
              tasks:
                - block:
                    - ansible.builtin.fail: {msg: real}
                  always:
                    - ansible.builtin.debug:
        """, hosts=("a",))
        self.assertEqual(message["hosts"], "f")

    def test_retries_that_end_well_are_no_failure(self):
        message, _ = self.play("""
            - hosts: a
              gather_facts: false
              tasks:
                - ansible.builtin.shell: test -e flag || { touch flag; exit 1; }
                  args: {chdir: "{{ playbook_dir }}"}
                  register: tried
                  until: tried.rc == 0
                  retries: 3
                  delay: 0
        """, hosts=("a",))
        self.assertEqual((message["hosts"], message["failures"]), ("o", []))

    def test_errors_cleared_before_a_later_play_are_forgiven(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.fail:
                  when: inventory_hostname == 'a'
                - ansible.builtin.meta: clear_host_errors
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.debug:
        """)
        self.assertEqual(message["hosts"], "oo")


class HostsThatStopForAnother(CallbackTest):
    def test_any_errors_fatal_is_no_success_of_the_others(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              any_errors_fatal: true
              tasks:
                - ansible.builtin.fail: {msg: mine}
                  when: inventory_hostname == 'a'
                - ansible.builtin.debug:
        """)
        self.assertEqual(message["hosts"], "ff")
        self.assertEqual(message["failures"][0]["message"], "mine")
        self.assertIn("another host's failure", message["failures"][1]["message"])

    def test_a_failed_run_once_task_fails_all(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.fail: {msg: mine}
                  run_once: true
                - ansible.builtin.debug:
        """)
        self.assertEqual(message["hosts"], "ff")

    def test_a_rescued_run_once_task_still_ends_the_play_of_the_others(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - block:
                    - ansible.builtin.fail: {msg: rescued}
                      run_once: true
                  rescue:
                    - ansible.builtin.debug:
                - ansible.builtin.command: "true"
        """)
        # Versions of Ansible differ in whether the second host goes on; if it does not, it is no success.
        self.assertEqual(message["hosts"][0], "o")
        if message["changed"][1] == 0:
            self.assertEqual(message["hosts"][1], "f")

    UPSTREAM = """
        any_errors_fatal: "{{ edpm_any_errors_fatal | default(true) }}"
        max_fail_percentage: "{{ edpm_max_fail_percentage | default(0) }}"
    """
    OURS = next(
        text.split("max_fail_percentage", 1)[1].split("environment:", 1)[0]
        for text in [(COLLECTION / "playbooks" / "nova.yml").read_text()]
    )
    FALSE = "{edpm_any_errors_fatal: false, edpm_max_fail_percentage: 100}"

    def play_with(self, header, variables):
        head = "- hosts: all\n  gather_facts: false\n" + textwrap.indent(textwrap.dedent(header).strip(), "  ")
        return self.play(f"{head}\n  vars: {variables}\n" + textwrap.indent(textwrap.dedent("""
            tasks:
              - ansible.builtin.fail: {msg: mine}
                when: inventory_hostname == 'a'
              - ansible.builtin.command: "true"
        """), "  "))[0]

    def test_upstreams_header_obeys_the_engines_variables(self):
        message = self.play_with(self.UPSTREAM, self.FALSE)
        self.assertEqual((message["hosts"], message["changed"]), ("fo", [0, 1]))

    def test_upstreams_header_stops_all_by_default(self):
        self.assertEqual(self.play_with(self.UPSTREAM, "{}")["hosts"], "ff")

    def test_our_header_obeys_the_engines_variables(self):
        message = self.play_with("max_fail_percentage" + self.OURS, self.FALSE)
        self.assertEqual((message["hosts"], message["changed"]), ("fo", [0, 1]))
        only_one = self.play_with("max_fail_percentage" + self.OURS, "{edpm_any_errors_fatal: false}")
        self.assertEqual(only_one["hosts"], "fo")

    def test_our_header_stops_all_by_default(self):
        self.assertEqual(self.play_with("max_fail_percentage" + self.OURS, "{}")["hosts"], "ff")


if __name__ == "__main__":
    unittest.main()

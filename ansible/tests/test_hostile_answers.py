"""Hosts whose answers are odd, large or costly to read: each of them fails alone."""

import json
import re
import unittest

from test_hostile_hosts import HostileTest

# What Ansible takes for an answer, and what it is told of the host that gives it.
ODD = {
    "results_number": ({"results": [3]}, "f"),
    "results_null": ({"results": [None]}, "f"),
    "results_flag": ({"results": [{"unreachable": "", "failed_when_result": []}]}, "o"),
    "results_text": ({"results": "abc"}, "o"),
    "results_honest": ({"results": ["Installed: a", {"changed": False}, ["x"]]}, "o"),
    "stats_number": ({"ansible_stats": 3}, "o"),
    "stats_list": ({"ansible_stats": {"data": [1]}}, "o"),
    "facts_list": ({"ansible_facts": ["a"]}, "f"),
    "facts_null": ({"ansible_facts": None}, "f"),
    "failed_text": ({"failed": ""}, "o"),
    "failed_list": ({"failed": []}, "o"),
    "unreachable_text": ({"unreachable": ""}, "o"),
    "when_list": ({"failed_when_result": []}, "o"),
    "changed_list": ({"changed": [1], "skipped": []}, "o"),
    "timedout": ({"failed": True, "timedout": {"period": 1}, "results": ["x"]}, "f"),
    "surrogate": ({"failed": True, "msg": "\ud800", "_ansible_trusted_utf8": True}, "f"),
    "deep": ({"x": json.loads("[" * 150 + "]" * 150)}, "o"),
    "deeper": ({"x": json.loads("[" * 900 + "]" * 900)}, "f"),
}


class Answers(HostileTest):
    def answering(self, answers, tasks, connection="local", **more):
        """Runs tasks on a host for each answer that gives it whatever it is asked, and on an honest one."""
        inventory = "good ansible_connection=local\n"
        for name, answer in answers.items():
            self.write(f"answers/{name}", answer)
            liar = self.write(f"bin/{name}", f"#!/bin/sh\ncat {self.directory}/answers/{name}\n")
            liar.chmod(0o755)
            way = f"ansible_python_interpreter={liar}"
            if connection == "ssh":
                way = f"ansible_host=192.0.2.1 ansible_ssh_executable={liar} ansible_ssh_retries=0"
            inventory += f"{name} ansible_connection={connection} {way}\n"
        lines = "".join(f"    {line}\n" for line in tasks.strip("\n").splitlines())
        playbook = f"- hosts: all\n  gather_facts: false\n  tasks:\n{lines}"
        return self.hostile(playbook, inventory, run_hosts=("good", *answers), **more)

    def test_an_odd_answer_is_the_failure_of_its_own_host_alone(self):
        answers = {name: json.dumps(answer) for name, (answer, _) in ODD.items()}
        for loop in ("", "loop: [1]"):
            message, done = self.answering(answers, f"""
- ansible.builtin.command: "true"
  {loop}
- ansible.builtin.debug:
""", options=("--forks", "4"))
            self.assertIn(done.returncode, (2, 4), done.stdout + done.stderr)
            told = dict(zip(("good", *ODD), message["hosts"]))
            self.assertEqual(told, {"good": "o", **{name: letter for name, (_, letter) in ODD.items()}}, done.stdout)
            malformed = {it["host"] for it in message["failures"] if "malformed" in it["message"]}
            self.assertLessEqual({"results_number", "results_null"}, malformed)

    def test_a_host_whose_answer_takes_for_ever_to_compute_with_is_left_out(self):
        message, done = self.answering({"bad": "x" * 60 + "!"}, """
- ansible.builtin.raw: "true"
  register: told
- ansible.builtin.debug:
  loop: [1, 2]
  when: told.stdout is match('(x+x+)+y')
  ignore_errors: true
  ignore_unreachable: true
- ansible.builtin.debug:
""", connection="ssh", env={"EDPM_COMPUTE_LIMIT": "3"})
        self.assertEqual(message["hosts"], "ou", done.stdout)
        self.assertIn("took more than 3 s to compute with", message["failures"][0]["message"])

    def test_a_host_that_answers_with_very_many_entries_is_left_out_before_they_are_read(self):
        many = "[" + "[]," * 300_000 + "[]]"
        answers = {
            "facts": f'{{"ansible_facts": {{"a": {many}}}}}',
            "deep": f'{{"a": {{"b": {many}}}}}',
            "lines": json.dumps({"rc": 0, "stdout": "\n" * 300_000}),
            "commas": json.dumps({"rc": 0, "stdout": "a\\\",[{" * 300_000}),
        }
        message, done = self.answering(answers, """
- ansible.builtin.command: "true"
  ignore_errors: true
  ignore_unreachable: true
- ansible.builtin.debug:
""")
        self.assertEqual(message["hosts"], "ouuuo", done.stdout)
        self.assertIn("more than 250000 entries or lines at once", message["failures"][0]["message"])

    def test_a_host_that_answers_much_again_and_again_is_left_out(self):
        message, done = self.answering({"much": "x" * 90_000}, """
- ansible.builtin.raw: "true"
  loop: "{{ range(20) | list }}"
  ignore_errors: true
  ignore_unreachable: true
- ansible.builtin.debug:
""", connection="ssh", env={"EDPM_OUTPUT_LIMIT": "100000"})
        self.assertEqual(message["hosts"], "ou", done.stdout)
        self.assertIn("together more than 8", message["failures"][0]["message"])

    def test_what_a_terminal_obeys_is_left_out_of_the_log(self):
        bad = {
            "warnings": ["one\x1b]0;title\x07\x1b[2J"], "deprecations": [{"msg": "two\x1b[8m\u061c", "version": "9"}],
            "_ansible_key\x9b": "three\x1b[2J",
        }
        _, done = self.answering({"bad": json.dumps(bad) + "\nfour\x1b[2J\r"}, """
- ansible.builtin.command: "true"
- ansible.builtin.debug: {msg: "{{ undefined_here }}"}
""", env={"ANSIBLE_NOCOLOR": "False", "ANSIBLE_FORCE_COLOR": "True"})
        log = done.stdout + done.stderr
        for word in ("one", "two", "three", "four"):
            self.assertIn(word, log)
        self.assertIn("\x1b[0;31m", log, "colours stay")
        self.assertEqual(re.findall("\x1b(?!\\[[0-9;]*m)|\x1b\\[8m|[\x00-\x08\x0b-\x1a\x7f-\x9f\u061c]", log), [])


class Slow(HostileTest):
    PLAY = """
            - hosts: all
              gather_facts: false
              tasks:
    """

    def slow(self, tasks, **env):
        inventory = "good ansible_connection=local\nbad ansible_connection=local\n"
        return self.hostile(self.PLAY.rstrip() + tasks, inventory, env=env)

    def test_a_host_that_stays_just_below_the_limit_is_left_out_in_the_end(self):
        # A busy machine delays a module by seconds: the limits leave the honest host that much.
        message, done = self.slow("""
                - ansible.builtin.shell: "[ {{ inventory_hostname }} = good ] || sleep 20.5"
                - ansible.builtin.file: {path: "{{ playbook_dir }}/mark-{{ inventory_hostname }}", state: touch}
        """, ANSIBLE_TASK_TIMEOUT="40", EDPM_SLOW_LIMIT="20")
        self.assertEqual(message["hosts"], "ou", done.stdout)
        self.assertIn("more than 20 s together", message["failures"][0]["message"])
        self.assertFalse((self.directory / "mark-bad").exists())

    def test_what_is_repeated_until_it_works_counts_however_short_it_is(self):
        message, done = self.slow("""
                - ansible.builtin.shell: "[ {{ inventory_hostname }} = good ] || { echo >>tried; sleep 1; false; }"
                  args: {chdir: "{{ playbook_dir }}"}
                  register: told
                  until: told.rc == 0
                  retries: 30
                  delay: 0
                  ignore_errors: true
        """, ANSIBLE_TASK_TIMEOUT="60", EDPM_SLOW_LIMIT="3")
        self.assertEqual(message["hosts"], "ou", done.stdout)
        self.assertLess(len((self.directory / "tried").read_text()), 6)


if __name__ == "__main__":
    unittest.main()

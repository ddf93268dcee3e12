"""What a play itself says, in the message of the callback plugin."""

import json
import unittest

from support import COLLECTION, CallbackTest

PLAY = """
    - hosts: all
      gather_facts: false
      tasks:
        - ansible.builtin.set_stats:
            data: {edpm_report: "{{ said }}", other: nobody asks}
            aggregate: false
          run_once: true
        - ansible.builtin.fail: {msg: "{{ 'x' * 700 }}"}
          when: inventory_hostname == 'b'
"""


class Reports(CallbackTest):
    def said(self, said):
        return self.play(PLAY, options=("--extra-vars", json.dumps({"said": said})))[0]

    def test_a_plays_own_words_follow_the_results(self):
        message = self.said("two words")
        self.assertEqual((message["hosts"], message["report"]), ("of", "two words"))
        self.assertEqual(len(message["failures"]), 1)

    def test_a_text_that_looks_like_data_is_still_a_text(self):
        report = self.said('{"a": ["b", 1, null]}')["report"]
        self.assertEqual(json.loads(report), {"a": ["b", 1, None]})

    def test_failures_yield_to_a_plays_words_which_are_left_out_where_they_do_not_fit(self):
        short, long = self.said("y" * 2000), self.said("y" * 3500)
        self.assertLessEqual(len(self.raw), 4096)
        self.assertEqual((short.pop("report"), long.pop("report")), ("y" * 2000, "y" * 3500))
        self.assertTrue(long["failures"][0].pop("message").endswith("…"), "it is cut")
        self.assertEqual(self.said("y" * 4100), short)
        self.assertEqual(short["failures"][0].pop("message"), "x" * 700)
        self.assertEqual(long, short)

    def test_the_play_of_nova_reports_the_files_of_the_pod(self):
        self.assertEqual(self.reported({"01-nova.conf": "[DEFAULT]\n", "my.conf": "x", "ssh-privatekey": "k"}),
                         {"01-nova.conf": "62fb8fa57dc9"})

    def test_secret_values_have_no_part_in_what_the_play_of_nova_reports(self):
        def digest(text):
            return self.reported({"01-nova.conf": text})["01-nova.conf"]

        # The same text and digests are known to `kubectl edpm` (crates/kubectl-edpm/src/config_files.rs).
        text = ("[DEFAULT]\ntransport_url = rabbit://nova:hunter2@h/\ndebug = true\n"
                "memcache = http://u:hunter2@h, http://h\n[keystone]\n#Admin-Password: hunter2\n  hunter2\nx = 1\n")
        self.assertEqual(digest(text), digest(text.replace("hunter2", "another")))
        self.assertEqual(digest(text), "595d1c78f778")
        self.assertNotEqual(digest(text), digest(text.replace("x = 1", "x = 2")))
        self.assertNotEqual(digest(text), digest(text.replace("@h/", "@h2/").replace("http://h", "http://h2")))

    def reported(self, files):
        for name, text in files.items():
            self.write(f"configs/{name}", text)
        message, done = self.play("""
            - hosts: all
              gather_facts: false
              vars:
                edpm_nova_files: "{{ query('ansible.builtin.fileglob', folder ~ '/*') | sort }}"
              tasks:
                - ansible.builtin.import_tasks: "{{ tasks }}"
        """, options=("-e", f"folder={self.directory}/configs",
                      "-e", f"tasks={COLLECTION / 'roles' / 'edpm_nova' / 'tasks' / 'report.yml'}"))
        self.assertEqual(done.returncode, 0, done.stdout)
        return json.loads(message["report"])["files"]


if __name__ == "__main__":
    unittest.main()

"""What the callback plugin shows of messages: nothing hidden, and never more than fits."""

import unittest

from support import CallbackTest


class Hidden(CallbackTest):
    def test_no_log_hides_the_message(self):
        message, _ = self.play("""
            - hosts: a
              gather_facts: false
              tasks:
                - ansible.builtin.fail: {msg: hunter2}
                  no_log: true
        """, hosts=("a",))
        self.assertEqual(message["failures"][0]["message"], "(hidden by no_log)")
        self.assertNotIn(b"hunter2", self.raw)

    def test_no_log_hides_the_items_of_a_loop(self):
        message, _ = self.play("""
            - hosts: a
              gather_facts: false
              tasks:
                - ansible.builtin.command: "false {{ item }}"
                  loop: [hunter2, hunter3]
                  no_log: "{{ true }}"
        """, hosts=("a",))
        self.assertEqual(message["hosts"], "f")
        self.assertNotIn(b"hunter", self.raw)

    def test_a_loop_tells_the_item_that_failed(self):
        message, _ = self.play("""
            - hosts: a
              gather_facts: false
              tasks:
                - ansible.builtin.command: "test {{ item }} = good"
                  loop: [good, bad]
        """, hosts=("a",))
        self.assertIn("item bad: ", message["failures"][0]["message"])


class Size(CallbackTest):
    HOSTS = tuple(f"compute-{number:02}" for number in range(50))

    def test_many_long_failures_keep_every_letter_within_the_limit(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.fail: {msg: "{{ 'größer ' * 200 }}{{ inventory_hostname }}"}
        """, hosts=self.HOSTS)
        self.assertLessEqual(len(self.raw), 4096)
        self.assertEqual(message["hosts"], "f" * 50)
        self.assertEqual(len(message["failures"]) + message["more"], 50)
        self.assertTrue(message["failures"][0]["message"].endswith("…"))

    def test_trimming_prefers_different_failures(self):
        message, _ = self.play("""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.fail: {msg: "{{ 'common ' * 60 }}"}
                  when: inventory_hostname != 'compute-49'
                - ansible.builtin.fail: {msg: "{{ 'rare ' * 60 }}"}
        """, hosts=self.HOSTS)
        self.assertIn("more", message)
        self.assertEqual(message["failures"][1]["host"], "compute-49")


if __name__ == "__main__":
    unittest.main()

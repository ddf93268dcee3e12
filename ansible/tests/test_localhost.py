"""Plays for localhost in a run of the engine: they run in the runner, once, and count for the hosts of the run."""

import unittest

from support import ANSIBLE
from test_owner_check import OwnerTest

# As the operator limits a run (`cmd_line` in crates/operator-core/src/run_engine/run_template.rs).
OF_THE_RUN = ("--limit", "edpm_run,localhost")
# Of three hosts the run has two; an address that does not answer must not matter to localhost.
INVENTORY = """
[compute]
n0 ansible_connection=local
n1 ansible_connection=local
n2 ansible_connection=local
[compute:vars]
word=theirs
[edpm_run]
n0
n1
"""
ONLY_LOCALHOST = """
- name: In the runner
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Count
      ansible.builtin.shell: echo "{{ inventory_hostname }} {{ word | default('none') }}" >>"{{ playbook_dir }}/ran"
    - name: Say no
      ansible.builtin.fail: {msg: no token}
      when: fails | default(false) | bool
"""
FOR_HOSTS = """
- name: On the hosts
  hosts: compute
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.shell: echo {{ inventory_hostname }} >>"{{ playbook_dir }}/ran"
    - name: Say no
      ansible.builtin.fail: {msg: no disk}
      when: inventory_hostname == bad | default('')
"""


class Localhost(OwnerTest):
    def run_of_two(self, plays, *extra, inventory=INVENTORY, options=OF_THE_RUN, env=None):
        """One run, after the check of owners; returns message, exit code and what ran, in order."""
        words = [word for it in extra for word in ("-e", it)]
        message, done = self.checked(
            plays, hosts=("n0", "n1"), inventory=inventory, options=(*options, *words), env=env,
        )
        ran = self.directory / "ran"
        return message, done.returncode, ran.read_text().split("\n")[:-1] if ran.exists() else []

    def test_a_run_for_localhost_alone_counts_for_all_of_its_hosts(self):
        message, code, ran = self.run_of_two(ONLY_LOCALHOST)
        self.assertEqual((message["hosts"], message["failures"], code), ("oo", [], 0))
        # Once, and with no variable of a host.
        self.assertEqual(ran, ["localhost none"])
        self.assertEqual(message["changed"], [0, 0])

    def test_a_failure_of_a_run_for_localhost_alone_is_one_of_all_of_its_hosts(self):
        message, code, _ = self.run_of_two(ONLY_LOCALHOST, "fails=true")
        self.assertEqual((message["hosts"], code), ("ff", 2))
        told = [(it["host"], it["task"], it["message"]) for it in message["failures"]]
        self.assertEqual(told, [("localhost", "Say no", "no token")])

    def test_beside_a_play_for_localhost_hosts_have_results_of_their_own(self):
        message, _, ran = self.run_of_two(ONLY_LOCALHOST + FOR_HOSTS, "bad=n1")
        self.assertEqual(message["hosts"], "of")
        self.assertEqual((ran[0], sorted(ran[1:])), ("localhost none", ["n0", "n1"]))

    def test_no_host_is_done_where_a_play_for_localhost_fails_before_or_after_it(self):
        message, _, ran = self.run_of_two(ONLY_LOCALHOST + FOR_HOSTS, "fails=true")
        self.assertEqual((message["hosts"], ran), ("ff", ["localhost none"]))
        (self.directory / "ran").unlink()
        message, code, ran = self.run_of_two(FOR_HOSTS + ONLY_LOCALHOST, "fails=true", "bad=n1")
        self.assertEqual((message["hosts"], code), ("ff", 2))
        told = {it["host"]: it["message"] for it in message["failures"]}
        self.assertEqual(told, {"n1": "no disk", "localhost": "no token"})
        self.assertEqual(sorted(ran), ["localhost none", "n0", "n1"])

    def test_a_failure_that_a_play_for_localhost_forgives_is_none(self):
        plays = ONLY_LOCALHOST.replace("{msg: no token}", "{msg: no token}\n      ignore_errors: true") + FOR_HOSTS
        message, code, _ = self.run_of_two(plays, "fails=true")
        self.assertEqual((message["hosts"], code), ("oo", 0))

    def test_a_play_for_hosts_that_none_of_them_takes_part_in_is_still_told(self):
        message, code, ran = self.run_of_two(ONLY_LOCALHOST + FOR_HOSTS.replace("compute", "storage"))
        self.assertEqual((message["hosts"], code, ran), ("nn", 0, ["localhost none"]))

    def test_plays_for_all_are_not_for_localhost(self):
        message, _, ran = self.run_of_two(FOR_HOSTS.replace("compute", "all"))
        self.assertEqual((message["hosts"], sorted(ran)), ("oo", ["n0", "n1"]))

    def test_other_names_of_localhost_count_as_it_does_also_without_a_limit(self):
        for hosts, options in (("127.0.0.1", OF_THE_RUN), ("[localhost]", OF_THE_RUN), ("'::1'", ())):
            plays = ONLY_LOCALHOST.replace("hosts: localhost", f"hosts: {hosts}")
            message, code, _ = self.run_of_two(plays, options=options)
            self.assertEqual((message["hosts"], code), ("oo", 0), (hosts, options))

    def test_a_limit_of_the_users_decides_whether_plays_for_localhost_run(self):
        message, _, ran = self.run_of_two(ONLY_LOCALHOST + FOR_HOSTS, options=("--limit", "n0,&edpm_run"))
        self.assertEqual((message["hosts"], ran), ("on", ["n0"]))

    def test_hosts_that_do_not_answer_or_are_another_owners_count_for_what_they_are(self):
        (self.directory / "n0").mkdir()
        (self.directory / "n1" / "state").mkdir(parents=True)
        (self.directory / "n1" / "state" / "owner").write_text("openstack/OpenStackDataPlaneNode/other u-9\n")
        owners = "".join(
            f"{it} folder={self.directory / it} edpm_owner=openstack/OpenStackDataPlaneNode/{it} edpm_owner_uid=u\n"
            for it in ("n0", "n1")
        )
        gone = "[compute]\nn0 ansible_connection=ssh ansible_host=127.0.0.1 ansible_port=1\n"
        inventory = INVENTORY.replace("[compute]\nn0 ansible_connection=local\n", f"{owners}{gone}", 1)
        message, _, ran = self.run_of_two(ONLY_LOCALHOST, inventory=inventory)
        # The play for localhost needs no host, but no run changes what is another owner's.
        self.assertEqual((message["hosts"], ran), ("of", ["localhost none"]))
        self.assertIn("belongs to", message["failures"][0]["message"])


class Facts(OwnerTest):
    def test_facts_that_a_service_asks_for_are_no_play_for_hosts(self):
        text = (ANSIBLE.parent / "crates" / "ansibleee-operator" / "plays" / "facts.yaml").read_text()
        facts = self.write("edpm/plays/facts.yaml", text)
        asks = f'- import_playbook: {facts}\n  vars: {{edpm_fact_names: [ansible_interfaces]}}\n'
        message, done = self.checked(
            asks + ONLY_LOCALHOST, hosts=("n0", "n1"), inventory=INVENTORY, options=OF_THE_RUN,
        )
        self.assertEqual((message["hosts"], done.returncode), ("oo", 0), done.stdout)


if __name__ == "__main__":
    unittest.main()

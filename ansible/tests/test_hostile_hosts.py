"""Hosts that lie: what one of them answers, sends or holds back costs the others nothing and gets it nothing."""

import contextlib
import json
import os
import re
import sys
import threading
import unittest

from support import ANSIBLE, BIN, CALLBACKS, CallbackTest, collections_path, wait_for

CRATES = ANSIBLE.parent / "crates"
ENVIRONMENT = (CRATES / "ansibleee-operator" / "src" / "run" / "environment.rs").read_text()
# What the operator forces for every run, as its code has it.
FORCED = dict(re.findall(r'\("(ANSIBLE_(?:INJECT|HOST_KEY)\w+)", "(\w+)"\)', ENVIRONMENT))



def forced_ssh():
    """What the operator decides about ssh, as its code has it."""
    table = ENVIRONMENT.split("const SSH:")[1].split("];")[0]
    pairs = re.findall(r'\(\s*"(\w+)",\s*"((?:[^"\\]|\\.)*)",?\s*\)', table, re.DOTALL)
    return {name: re.sub(r"\\\s+", "", value) for name, value in pairs}


# Python as a host that lies has it: every module answers, and the host adds what it likes.
LIAR = """\
#!{python}
import json, subprocess, sys
done = subprocess.run([{python!r}, *sys.argv[1:]], capture_output=True, text=True)
try:
    answer = json.loads(done.stdout)
    answer.update(json.load(open({lies!r})))
    sys.stdout.write(json.dumps(answer))
except ValueError:
    sys.stdout.write(done.stdout)
sys.exit(done.returncode)
"""


class HostileTest(CallbackTest):
    """Host "good" is honest; "bad" is what each test makes of it."""

    def setUp(self):
        super().setUp()
        # Beside the lab the suite has a low priority, with which an honest host would exceed a limit of seconds:
        # these few tests restore the usual one. Only root may do so.
        priority = os.getpriority(os.PRIO_PROCESS, 0)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        self.addCleanup(os.setpriority, os.PRIO_PROCESS, 0, priority)

    def lying(self, lies, playbook, **more):
        """Runs plays against a host whose modules' answers carry these lies."""
        lies_file = self.write("lies.json", json.dumps(lies))
        liar = self.write("liar", LIAR.format(python=sys.executable, lies=str(lies_file)))
        liar.chmod(0o755)
        inventory = f"good ansible_connection=local\nbad ansible_connection=local ansible_python_interpreter={liar}\n"
        return self.hostile(playbook, inventory, **more)

    def over_ssh(self, script, playbook, pipelining=True, **more):
        """Runs plays against a host to which this script is the way: its last argument is the command for the host."""
        ssh = self.write("ssh", "#!/bin/bash\nfor command; do :; done\n" + script)
        ssh.chmod(0o755)
        inventory = (
            "good ansible_connection=local\n"
            f"bad ansible_host=192.0.2.1 ansible_ssh_executable={ssh} ansible_ssh_retries=0"
            f" ansible_ssh_pipelining={pipelining} ansible_ssh_transfer_method=piped\n"
        )
        return self.hostile(playbook, inventory, **more)

    def hostile(self, playbook, inventory, env=None, options=(), run_hosts=("good", "bad")):
        env = {"ANSIBLE_TASK_TIMEOUT": "30", **FORCED, "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory), **(env or {})}
        return self.play(playbook, run_hosts=run_hosts, inventory=inventory, env=env, options=options)


class Facts(HostileTest):
    def test_a_host_that_adds_facts_is_not_given_the_key_of_the_others(self):
        key = self.write("runner/env/ssh_key", "the key of the others\n")
        self.write("host/libvirt/.keep", "")
        message, done = self.lying({"ansible_facts": {"edpm_libvirt_given_files": [str(key)]}}, """
            - hosts: bad
              gather_facts: false
              tasks:
                - ansible.builtin.command: "true"
                - ansible.builtin.include_role:
                    name: osp.edpm.edpm_libvirt
                    tasks_from: configure
        """, options=("-e", json.dumps({
            "edpm_libvirt_config_dest": f"{self.directory}/host/libvirt", "edpm_libvirt_daemons": [],
        })))
        self.assertEqual(message["hosts"], "no", done.stdout)
        self.assertFalse((self.directory / "host/libvirt/ssh_key").exists(), "the host has the key of the others")
        self.assertTrue((self.directory / "host/libvirt/qemu.conf").exists())

    def test_no_fact_of_a_host_becomes_a_variable_or_beats_one(self):
        forged = {"path_src": "/runner/env/ssh_key", "ansible_other_src": "/runner", "role_src": "/runner"}
        message, done = self.lying({"ansible_facts": forged, "_ansible_facts_cacheable": True}, """
            - hosts: bad
              gather_facts: false
              vars: {play_src: good}
              tasks:
                - ansible.builtin.command: "true"
                  loop: [1, 2]
                  register: told
                - ansible.builtin.setup: {gather_subset: "!all"}
                - ansible.builtin.assert:
                    that:
                      - ansible_facts.path_src == '/runner/env/ssh_key'
                      - path_src is undefined
                      - ansible_other_src is undefined and other_src is undefined
                      - role_src == 'of the inventory'
                      - hostvars[inventory_hostname].path_src is undefined
                      - told.results | length == 2
            - hosts: bad
              gather_facts: true
              tasks:
                - ansible.builtin.assert: {that: path_src is undefined and role_src == 'of the inventory'}
        """, options=("-i", str(self.write("more", "bad role_src='of the inventory'\n"))))
        self.assertEqual(message["hosts"], "no", done.stdout)

    def test_no_play_of_ours_reads_a_fact_as_a_variable(self):
        # ansible_local becomes one whatever the setting says.
        plays = [*(ANSIBLE / "osp").rglob("*.yml"), *(ANSIBLE / "osp").rglob("*.j2"), *CRATES.glob("*/plays/*.yaml")]
        # It has the names that a service may ask for, and reads them from `ansible_facts`.
        plays = [play for play in plays if play.name != "facts.yaml"]
        self.assertGreater(len(plays), 40)
        for play in plays:
            named = set(re.findall(r"\bansible_(?!facts\b)\w+", play.read_text()))
            # The last two are Ansible's own, which no fact replaces.
            known = {"ansible_host", "ansible_port", "ansible_user", "ansible_check_mode", "ansible_play_hosts_all",
                     "ansible_play_hosts"}
            self.assertLessEqual(named, known, play)


class DefaultConfigMap(HostileTest):
    """What the author of the ConfigMap `openstack-aee-default-env` may set is no way into the runner."""

    def test_no_setting_that_is_taken_from_it_is_a_template(self):
        taken = re.search(r"FROM_DEFAULT_CONFIG_MAP[^=]*= \[(.*?)\];", ENVIRONMENT, re.S).group(1)
        listed = self.command(BIN / "ansible-config", "list", "--format", "json")
        known = {env["name"]: it.get("type") for it in json.loads(listed.stdout).values() for env in it.get("env") or ()}
        names = re.findall(r'"(ANSIBLE_\w+)"', taken)
        self.assertGreater(len(names), 20)
        texts = [name for name in names if known.get(name) not in ("bool", "boolean", "int", "integer")]
        for name in texts:
            mark = self.directory / name
            template = "{{ lookup('ansible.builtin.pipe', 'touch %s') }}\n[defaults]\n" % mark
            with self.subTest(name):
                _, done = self.play("""
                    - hosts: all
                      gather_facts: true
                      tasks:
                        - ansible.builtin.command: "true"
                        - ansible.builtin.debug: {msg: "{{ ansible_user | default('') }}"}
                """, run_hosts=("good",), inventory="good ansible_connection=local\n", env={**FORCED, name: template})
                self.assertFalse(mark.exists(), done.stdout)


class Words(HostileTest):
    def test_a_report_is_what_the_play_says_and_not_what_a_host_answers(self):
        lies = {"ansible_stats": {"data": {"edpm_report": "forged"}, "per_host": False, "aggregate": False}}
        playbook = """
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.command: "true"
        """
        message, _ = self.lying(lies, playbook)
        self.assertEqual(message["hosts"], "oo")
        self.assertNotIn("report", message)
        message, _ = self.lying(lies, playbook + """
                - ansible.builtin.set_stats: {data: {edpm_report: "the play's"}, aggregate: false}
                  run_once: true
                - ansible.builtin.command: "true"
        """)
        self.assertEqual(message["report"], "the play's")

    def test_what_a_terminal_obeys_is_left_out_of_the_message(self):
        lies = {
            "failed": True,
            "msg": "\x1b[2J\x1b]0;title\x07no \x1b[31mdisk\x1b[0m\r\nnext\x9b1m\x00\u202e line\x7f\u061c",
        }
        message, _ = self.lying(lies, """
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.command: "true"
        """)
        self.assertEqual(message["hosts"], "of")
        self.assertEqual(message["failures"][0]["message"], "no disk\nnext1m line")


class EndlessTest(HostileTest):
    # Seconds, many more than the honest host takes for a task on a busy machine.
    LIMIT = 15
    # The bad host leaves a line for each time it hangs.
    HANG = "[ {{ inventory_hostname }} = good ] || { echo hangs >>{{ playbook_dir }}/hung; exec sleep 600; }"

    def endless(self, tasks, **more):
        """Runs tasks of which some never end on the bad host; returns message and process."""
        lines = "\n".join(f"{'    ' * 4}{line}" for line in tasks.strip("\n").splitlines())
        playbook = f"            - hosts: all\n              gather_facts: false\n              tasks:\n{lines}\n"
        inventory = "good ansible_connection=local\nbad ansible_connection=local\n"
        env = {"ANSIBLE_TASK_TIMEOUT": str(self.LIMIT)}
        return self.hostile(playbook, inventory, env=env, options=("-e", json.dumps({"hang": self.HANG})), **more)

    def n_hung(self):
        """How many times the bad host was waited for until the limit."""
        return len((self.directory / "hung").read_text().splitlines())

    def marked(self):
        return sorted(path.name for path in self.directory.glob("mark-*"))

    MARK = """
    - ansible.builtin.file: {path: "{{ playbook_dir }}/mark-{{ inventory_hostname }}", state: touch}
    """


class Endless(EndlessTest):
    def test_a_loop_of_twenty_costs_twice_the_limit_and_the_host_is_left_out(self):
        message, done = self.endless("""
    - ansible.builtin.shell: "{{ hang }}"
      loop: "{{ range(20) | list }}"
      ignore_errors: true
    """ + self.MARK)
        self.assertEqual(message["hosts"], "ou", done.stdout)
        self.assertIn(f"no answer within {self.LIMIT} s", message["failures"][0]["message"])
        self.assertEqual(self.marked(), ["mark-good"])
        self.assertEqual(self.n_hung(), 2, "of 20 items")

    def test_a_task_that_is_tried_until_it_works_costs_the_limit(self):
        message, done = self.endless("""
    - ansible.builtin.shell: "{{ hang }}"
      register: tried
      until: tried.rc == 0
      retries: 30
      delay: 0
    """)
        self.assertEqual((message["hosts"], done.returncode), ("ou", 2), done.stdout)
        self.assertEqual(self.n_hung(), 1, "of 31 attempts")

    def test_a_slow_task_that_the_play_ignores_or_rescues_is_told_and_the_second_is_the_last(self):
        message, done = self.endless("""
    - ansible.builtin.shell: "{{ hang }}"
      ignore_errors: true
    - ansible.builtin.file: {path: "{{ playbook_dir }}/mark-first-{{ inventory_hostname }}", state: touch}
    - block:
        - ansible.builtin.shell: "{{ hang }}"
          ignore_unreachable: true
      rescue:
        - ansible.builtin.debug:
    """ + self.MARK)
        self.assertEqual(message["hosts"], "ou", done.stdout)
        self.assertEqual(self.marked(), ["mark-first-bad", "mark-first-good", "mark-good"])

    def test_a_limit_that_the_play_itself_sets_is_the_plays_business(self):
        message, done = self.endless("""
    - ansible.builtin.shell: "{{ hang }}"
      timeout: 1
      loop: [1, 2, 3]
      ignore_errors: true
    """ + self.MARK)
        self.assertEqual(message["hosts"], "oo", done.stdout)
        self.assertEqual(self.marked(), ["mark-bad", "mark-good"])


class OlderAnsible(EndlessTest):
    """What ansible-core 2.15 to 2.17 have otherwise; upstream's images may have them."""

    OLDER = """
        from ansible.executor.task_executor import TaskExecutor
        from ansible.plugins.action import ActionBase
        from ansible.plugins.callback import CallbackBase

        del ActionBase.BYPASS_HOST_LOOP
        execute = TaskExecutor._execute

        def older_execute(*args, **kwargs):
            result = execute(*args, **kwargs)
            result.pop("timedout", None)
            return result

        TaskExecutor._execute = older_execute

        class CallbackModule(CallbackBase):
            CALLBACK_VERSION = 2.0
            CALLBACK_TYPE = "aggregate"
            CALLBACK_NAME = "older"
    """

    def hostile(self, *args, env=None, **more):
        older = self.write("older/older.py", self.OLDER)
        env = {**(env or {}), "ANSIBLE_CALLBACK_PLUGINS": f"{older.parent}:{CALLBACKS}"}
        return super().hostile(*args, env=env, **more)

    def test_a_host_that_hangs_is_left_out_and_the_others_go_on_with_an_older_ansible_too(self):
        message, done = self.endless("""
    - ansible.builtin.shell: "{{ hang }}"
      loop: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
      ignore_errors: true
    """ + self.MARK)
        self.assertEqual(message["hosts"], "ou", done.stdout)
        self.assertIn(f"no answer within {self.LIMIT} s", message["failures"][0]["message"])
        self.assertEqual(self.marked(), ["mark-good"])
        self.assertEqual(self.n_hung(), 2, "of 10 items")


class Connections(HostileTest):
    PLAY = """
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.command: "true"
    """

    def test_a_host_that_never_stops_writing_is_not_listened_to_for_ever(self):
        message, done = self.over_ssh("cat >/dev/null; exec yes\n", self.PLAY, env={"EDPM_OUTPUT_LIMIT": "1000000"})
        self.assertEqual(message["hosts"], "ou", done.stdout)
        self.assertIn("more than 1000000 bytes", message["failures"][0]["message"])

    def test_a_connection_that_closes_in_the_middle_of_an_answer(self):
        message, _ = self.over_ssh("""echo -n '{"changed": tr'; exit 255\n""", self.PLAY)
        self.assertEqual(message["hosts"], "ou")

    def test_half_an_answer_is_a_failure(self):
        # All of the module is read first: a pipe that closes before that is a lost connection to Ansible.
        message, _ = self.over_ssh("""cat >/dev/null; echo -n '{"changed": tr'; exit 0\n""", self.PLAY)
        self.assertEqual(message["hosts"], "of")

    def test_a_host_that_hangs_while_it_is_tidied_up_after_costs_no_more_than_the_limit(self):
        # Ansible removes its files once more after a task that was too long, without any limit.
        marks = self.directory / "hung"
        message, done = self.over_ssh(f"""
            case $command in
              *rm\\ -f*) touch {marks}; exec sleep 600 ;;
              *) exec sh -c "$command" ;;
            esac
        """, self.PLAY, pipelining=False, env={"ANSIBLE_TASK_TIMEOUT": "15", "EDPM_CLEANUP_LIMIT": "6"})
        self.assertEqual(message["hosts"], "ou", done.stdout)
        self.assertTrue(marks.exists())


class ChangedKey(HostileTest):
    """A machine behind a real sshd, which comes back with another key in the middle of a run."""

    def test_another_key_in_the_middle_of_a_run_ends_it_for_that_host_and_is_not_accepted(self):
        key = self.make_key("user_key")
        self.write("authorized", key.with_suffix(".pub").read_text()).chmod(0o600)
        home = self.directory / "home"
        home.mkdir()
        options = (
            f"AuthorizedKeysFile={self.directory}/authorized", "StrictModes=no", "PermitRootLogin=yes",
            "PasswordAuthentication=no",
        )
        user = f"edpm-user:x:0:0::{home}:/bin/sh"
        first, second = self.make_key("first"), self.make_key("second")
        port = self.start_sshd(first, *options, user=user)
        entry = f"[127.0.0.1]:{port} {first.with_suffix('.pub').read_text()}"
        known = self.write("known_hosts", entry)
        begun, changed = self.directory / "begun", self.directory / "changed"

        def change():
            if wait_for(begun):
                self.stop_sshd()
                self.start_sshd(second, *options, user=user, port=port)
            changed.touch()

        other = threading.Thread(target=change)
        other.start()
        self.addCleanup(other.join)
        self.addCleanup(begun.touch)
        message, done = self.hostile(f"""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.raw: "true"
                - ansible.builtin.shell: touch {begun}; timeout 60 sh -c 'until [ -e {changed} ]; do sleep 0.1; done'
                  when: inventory_hostname == 'good'
                - ansible.builtin.raw: touch {self.directory}/second-$(date +%N)
                  ignore_errors: true
                - ansible.builtin.raw: touch {self.directory}/third
        """, "good ansible_connection=local\nbad ansible_host=127.0.0.1 ansible_user=edpm-user"
             f" ansible_port={port} ansible_ssh_private_key_file={key} ansible_ssh_common_args='-F /dev/null"
             f" -o IdentityAgent=none -o UserKnownHostsFile={known} -o GlobalKnownHostsFile=/dev/null"
             " -o StrictHostKeyChecking=yes'\n", env=forced_ssh())
        self.assertEqual(message["hosts"], "oh", done.stdout)
        self.assertIn("REMOTE HOST IDENTIFICATION HAS CHANGED", message["failures"][0]["message"])
        self.assertEqual(known.read_text(), entry)
        # The honest host alone.
        self.assertEqual(len(list(self.directory.glob("second-*"))), 1)


class Cut(HostileTest):
    # The end of a run at its deadline: ansible-runner kills Ansible.
    KILL = """\
p=$PPID; while [ $p -gt 1 ]; do
  tr '\\0' ' ' </proc/$p/cmdline | grep -q ansible-playbook && last=$p; p=$(cut -d' ' -f4 /proc/$p/stat)
done; kill -9 $last; sleep 5
"""

    def test_a_run_that_is_killed_has_told_what_it_knew_of_each_host(self):
        kill = self.write("kill.sh", self.KILL)
        inventory = "".join(f"{host} ansible_connection=local\n" for host in ("good", "bad", "last"))
        message, done = self.hostile(f"""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.command: "true"
                - block:
                    - ansible.builtin.fail: {{msg: rescued}}
                  rescue:
                    - ansible.builtin.debug:
                  when: inventory_hostname == 'good'
                - ansible.builtin.fail: {{msg: mine}}
                  when: inventory_hostname == 'bad'
                - ansible.builtin.command: bash {kill}
                  when: inventory_hostname == 'last'
        """, inventory)
        self.assertEqual(done.returncode, -9, done.stdout)
        self.assertEqual((message["hosts"], message["unfinished"]), ("?f", True))
        self.assertEqual([failure["message"] for failure in message["failures"]], ["mine"])


if __name__ == "__main__":
    unittest.main()

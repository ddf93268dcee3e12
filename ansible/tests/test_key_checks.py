"""What a run tells of hosts whose own ssh keys it does not check, with real ssh clients and a real sshd."""

import json
import os
import shutil
import sys
import unittest

from support import ANSIBLE, CallbackTest
from test_hostile_hosts import FORCED, HostileTest, forced_ssh

PLAY = """
    - hosts: all
      gather_facts: false
      tasks:
        - ansible.builtin.ping:
"""
TRUSTING = "-o StrictHostKeyChecking=no"


class Unknown(CallbackTest):
    """Nobody knows the key of host far: only where keys are not checked it comes to refusing ours."""

    def setUp(self):
        super().setUp()
        self.make_key("user_key")
        self.port = self.start_refusing_sshd()

    def run_with(self, variables=None, options=(), playbook=PLAY, env=None, hosts=("far",)):
        """What the run tells, where these are the variables of its hosts and the operator decides as always."""
        variables = {
            "ansible_host": "127.0.0.1", "ansible_port": self.port, "ansible_user": "nobody-here",
            "ansible_ssh_private_key_file": f"{self.directory}/user_key", **(variables or {}),
        }
        self.write("known_hosts", "")
        inventory = json.dumps({"all": {"vars": variables, "hosts": {host: {} for host in hosts}}})
        message, done = self.play(
            playbook, inventory=inventory, run_hosts=hosts, options=options,
            env={**FORCED, **forced_ssh(), "ANSIBLE_INVENTORY_ENABLED": "yaml", **(env or {})},
        )
        self.assertIsNotNone(message, done.stdout + done.stderr)
        return message

    def files(self, options):
        return f"-o UserKnownHostsFile={self.directory}/known_hosts {options}"

    def assert_told(self, by, **run):
        message = self.run_with(**run)
        self.assertEqual((message["hosts"], message.get("unchecked")), ("k", {"hosts": ["far"], "by": by}), message)

    def assert_nothing_told(self, **run):
        message = self.run_with(**run)
        self.assertEqual((message["hosts"], list(message)), ("h", ["v", "hosts", "changed", "failures"]), message)

    def test_a_usual_run_checks_and_tells_nothing(self):
        self.assert_nothing_told()
        # As inventories of node sets have it.
        files = f"-o 'UserKnownHostsFile={self.directory}/known_hosts {self.directory}/learned'"
        arguments = f"{files} -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes"
        self.assert_nothing_told(variables={"ansible_ssh_common_args": arguments})

    def test_variables_of_the_inventory_are_told_whatever_their_spelling(self):
        for name, value in [
            ("ansible_host_key_checking", False),
            ("ansible_ssh_host_key_checking", "{{ 'n' ~ 'o' }}"),
            ("ansible_ssh_common_args", self.files(TRUSTING)),
            ("ansible_ssh_common_args", self.files("-oStrictHostKeyChecking=accept-new")),
            ("ansible_ssh_args", self.files("-vo 'stricthostkeychecking off'")),
            ("ansible_ssh_args", self.files("""-o '"StrictHostKeyChecking" "no"'""")),
        ]:
            with self.subTest(f"{name} {value}"):
                self.assert_told([name], variables={name: value})

    def test_options_of_the_command_line_are_told(self):
        common = self.files(TRUSTING)
        self.assert_told(["--ssh-common-args"], options=("--ssh-common-args", common))
        # The operator's own common arguments come first, so these alone turn nothing off.
        self.assert_nothing_told(options=("--ssh-extra-args", common))
        self.assert_told(["--ssh-extra-args"], options=("--ssh-common-args=-C", "--ssh-extra-args", common))

    def test_extra_variables_are_told_as_such(self):
        for name, value in [("ansible_host_key_checking", False), ("ansible_ssh_common_args", self.files(TRUSTING))]:
            with self.subTest(name):
                self.assert_told([f"-e {name}"], options=("-e", json.dumps({name: value})))

    def test_variables_of_plays_and_tasks_are_told(self):
        play = PLAY + "          vars: {ansible_host_key_checking: false}\n"
        self.assert_told(["ansible_host_key_checking"], playbook=play)

    def test_files_of_ssh_are_told_where_no_argument_decides(self):
        config = self.write("ssh.cfg", f"Host *\n StrictHostKeyChecking no\n UserKnownHostsFile {self.directory}/k\n")
        self.assert_told(["ssh_config"], variables={"ansible_ssh_common_args": f"-F {config}"},
                         options=("-e", "ssh_config=x settings=y"))
        config.write_text(f"Host *\n StrictHostKeyChecking yes\n UserKnownHostsFile {self.directory}/known_hosts\n")
        self.assert_nothing_told(variables={"ansible_ssh_common_args": f"-F {config}"})

    def test_single_quotation_marks_within_an_argument_hide_nothing(self):
        arguments = self.files("""-o "StrictHostKeyChecking='no'" """)
        self.assert_told(["ansible_ssh_args"], variables={"ansible_ssh_args": arguments})

    def test_the_value_of_another_argument_is_no_decision(self):
        # With -S it is the name of a socket.
        arguments = self.files("-S StrictHostKeyChecking=yes -o StrictHostKeyChecking=no")
        self.assert_told(["ansible_ssh_args"], variables={"ansible_ssh_args": arguments})

    def test_a_program_that_a_file_of_ssh_names_is_told_where_arguments_decide_all_else(self):
        config = self.write("ssh.cfg", "Host *\n KnownHostsCommand /bin/echo %H %t %K\n")
        self.assert_told(["ssh_config"], variables={"ansible_ssh_args": f"-F {config}"})

    def test_files_of_ssh_are_asked_for_the_user_and_the_port_of_the_task(self):
        config = self.write("ssh.cfg", f"""\
            Match user nobody-here exec "test %p = {self.port}"
                StrictHostKeyChecking no
                UserKnownHostsFile {self.directory}/k
        """)
        self.assert_told(["ssh_config"], variables={"ansible_ssh_common_args": f"-F {config}"})

    def hanging(self, questions):
        """A file of ssh that turns the check off, whose first questions hang until the end of the test."""
        os.mkfifo(self.directory / "fifo")
        places = " || ".join(f"mkdir {self.directory}/{number}" for number in range(questions))
        wait = self.write("wait", f"""\
            #!/bin/sh
            if tr '\\0' ' ' </proc/$PPID/cmdline | grep -q '^ssh -G '; then
                {{ {places}; }} 2>/dev/null && exec cat {self.directory}/fifo
            fi
            exit 1
        """)
        wait.chmod(0o755)
        return self.write("ssh.cfg", f'Match exec "exec {wait}"\n StrictHostKeyChecking no\n')

    def assert_somebody_waits(self):
        # Or the test has shown nothing.
        os.close(os.open(self.directory / "fifo", os.O_WRONLY | os.O_NONBLOCK))

    def test_where_ssh_does_not_answer_in_time_keys_are_not_known_to_be_checked(self):
        arguments = self.files(f"-F {self.hanging(2)}")
        message = self.run_with(variables={"ansible_ssh_common_args": arguments})
        self.assert_somebody_waits()
        self.assertEqual(message["unchecked"], {"hosts": ["far"], "by": ["no_answer"]}, message)

    def test_ssh_is_asked_again_where_it_answers_late(self):
        arguments = self.files(f"-F {self.hanging(1)} -o StrictHostKeyChecking=yes")
        self.assert_nothing_told(variables={"ansible_ssh_common_args": arguments})
        self.assert_somebody_waits()

    def test_a_program_that_answers_the_question_of_ssh_is_not_asked(self):
        says_yes = self.write("yes", "#!/bin/sh\necho yes\n")
        says_yes.chmod(0o755)
        ask = {"SSH_ASKPASS": str(says_yes), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
        # As in a pod: what the operator decides stands last.
        variables = {"ansible_ssh_common_args": self.files("-o ConnectTimeout=9")}
        self.assert_nothing_told(variables=variables, env={**ask, **forced_ssh()})

    def test_ssh_by_its_path_is_the_same_program(self):
        config = self.write("ssh.cfg", f"Host *\n StrictHostKeyChecking no\n UserKnownHostsFile {self.directory}/k\n")
        variables = {"ansible_ssh_common_args": f"-F {config}", "ansible_ssh_executable": shutil.which("ssh")}
        self.assert_told(["ssh_config"], variables=variables)

    def test_no_key_is_checked_of_an_address_of_this_machine_where_ssh_is_told_so(self):
        arguments = self.files("-o NoHostAuthenticationForLocalhost=yes -o StrictHostKeyChecking=yes")
        self.assert_told(["ansible_ssh_common_args"], variables={"ansible_ssh_common_args": arguments})
        # Of others it says nothing.
        config = self.write("ssh.cfg", "Host *\n NoHostAuthenticationForLocalhost yes\n")
        message = self.run_with(variables={
            "ansible_host": "192.0.2.1", "ansible_ssh_retries": 0,
            "ansible_ssh_common_args": f"-F {config} -o StrictHostKeyChecking=yes -o 'ProxyCommand=exit 1'",
        })
        self.assertNotIn("unchecked", message)

    def test_tasks_that_go_to_no_host_check_nothing(self):
        message = self.run_with(variables={"ansible_host_key_checking": False}, playbook="""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.debug:
                - ansible.builtin.set_fact: {word: said}
        """)
        self.assertEqual((message["hosts"], "unchecked" in message), ("o", False))

    def test_without_the_plugin_nothing_is_known(self):
        message = self.run_with(env={"ANSIBLE_CALLBACK_PLUGINS": str(ANSIBLE / "callback")})
        self.assertEqual(message["unchecked"], {"hosts": ["far"], "by": ["no_answer"]}, message)

    def test_options_that_another_plugin_has_like_ssh_mean_nothing_to_it(self):
        # As paramiko_ssh of older versions has them, and libssh.
        self.write("connections/odd.py", """
            from ansible.plugins.connection.local import Connection as Local

            DOCUMENTATION = '''
            name: odd
            short_description: goes nowhere
            description: [goes nowhere]
            options:
              host_key_checking:
                description: [checks keys]
                type: bool
                default: true
                vars: [{name: ansible_host_key_checking}]
              ssh_common_args:
                description: [means nothing]
                default: ""
                vars: [{name: ansible_ssh_common_args}]
            '''


            class Connection(Local):
                transport = "odd"
        """)
        folder = {"ANSIBLE_CONNECTION_PLUGINS": str(self.directory / "connections")}
        odd = {"ansible_connection": "odd", "ansible_python_interpreter": sys.executable}
        message = self.run_with(variables={**odd, "ansible_ssh_common_args": TRUSTING}, env=folder)
        self.assertEqual((message["hosts"], "unchecked" in message), ("o", False), message)
        strict = {"ansible_host_key_checking": False, "ansible_ssh_common_args": "-o StrictHostKeyChecking=yes"}
        message = self.run_with(variables={**odd, **strict}, env=folder)
        self.assertEqual(message["unchecked"], {"hosts": ["far"], "by": ["ansible_host_key_checking"]}, message)

    def test_arguments_of_sftp_and_scp_are_read_as_theirs(self):
        strict = self.files("-o BatchMode=yes")
        # To ssh -O would be something else.
        self.assert_nothing_told(variables={"ansible_ssh_common_args": strict, "ansible_scp_extra_args": "-O"})
        for name in ("ansible_sftp_extra_args", "ansible_scp_extra_args"):
            variables = {"ansible_ssh_common_args": strict, name: f"-p {TRUSTING}"}
            message = self.run_with(variables=variables)
            self.assertEqual(message["unchecked"], {"hosts": ["far"], "by": [name]}, message)
        # What only ssh is given checks nothing for sftp.
        config = self.write("ssh.cfg", "Host *\n StrictHostKeyChecking no\n")
        message = self.run_with(variables={
            "ansible_ssh_common_args": self.files(f"-F {config}"),
            "ansible_ssh_extra_args": "-o StrictHostKeyChecking=yes",
        })
        self.assertEqual(message["unchecked"], {"hosts": ["far"], "by": ["ssh_config"]}, message)

    def test_a_program_that_says_which_keys_are_right_is_told(self):
        command = "-F /dev/null -o StrictHostKeyChecking=yes -o 'KnownHostsCommand=/bin/echo %H %t %K'"
        self.assert_told(["ansible_ssh_common_args"], variables={"ansible_ssh_common_args": command})

    def test_a_bastion_turns_nothing_off(self):
        bastion = self.write("bastion", """\
            #!/bin/bash
            exec 3<>/dev/tcp/$1/$2
            cat <&3 &
            exec cat >&3
        """)
        bastion.chmod(0o755)
        for strict in ("yes", "ask"):
            # What is not asked of the bastion is asked of the host.
            proxy = f"-o BatchMode=yes -o 'ProxyCommand={bastion} %h %p -o StrictHostKeyChecking=no'"
            arguments = self.files(f"{proxy} -o StrictHostKeyChecking={strict}")
            self.assert_nothing_told(variables={"ansible_ssh_common_args": arguments})

    def test_another_connection_plugin_is_told_too(self):
        message = self.run_with(variables={"ansible_connection": "paramiko_ssh", "ansible_host_key_checking": False})
        self.assertEqual(message["unchecked"], {"hosts": ["far"], "by": ["ansible_host_key_checking"]})
        message = self.run_with(variables={"ansible_connection": "paramiko_ssh"})
        self.assertNotIn("unchecked", message)

    def test_it_is_told_on_the_way_too(self):
        self.run_with(variables={"ansible_host_key_checking": False}, hosts=("far", "near"), playbook="""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.ping:
                  when: inventory_hostname == 'far'
                  ignore_unreachable: true
                - ansible.builtin.debug:
            - hosts: near
              gather_facts: false
              tasks:
                - ansible.builtin.command: cp result seen
                  args: {chdir: "{{ playbook_dir }}"}
                  delegate_to: localhost
                  vars: {ansible_connection: local}
        """)
        seen = json.loads((self.directory / "seen").read_text())
        self.assertTrue(seen["unfinished"])
        self.assertEqual(seen["unchecked"]["by"], ["ansible_host_key_checking"])

    def test_a_run_that_is_cut_in_a_later_play_tells_it(self):
        self.run_with(variables={"ansible_connection": "local"}, playbook="""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.ping:
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.ping:
                  ignore_unreachable: true
                  vars: {ansible_connection: ssh, ansible_host_key_checking: false}
                - ansible.builtin.debug:
                - ansible.builtin.command: cp result seen
                  args: {chdir: "{{ playbook_dir }}"}
        """)
        seen = json.loads((self.directory / "seen").read_text())
        self.assertEqual((seen["unfinished"], seen["unchecked"]["by"]), (True, ["ansible_host_key_checking"]))

    def test_many_hosts_are_counted_and_every_letter_is_kept(self):
        hosts = tuple(f"{number:02}-{'x' * 240}" for number in range(40))
        message = self.run_with(variables={"ansible_host_key_checking": False, "ansible_port": 1}, hosts=hosts, playbook="""
            - hosts: all
              gather_facts: false
              tasks:
                - ansible.builtin.raw: "true"
                  ignore_unreachable: true
                - ansible.builtin.fail: {msg: "{{ 'größer ' * 200 }}{{ inventory_hostname }}"}
        """)
        self.assertLessEqual(len(self.raw), 4096)
        self.assertEqual(message["hosts"], "f" * 40)
        told = message["unchecked"]
        self.assertEqual((len(told["hosts"]), told["more"], len(told["hosts"][0])), (5, 35, 63))
        self.assertGreaterEqual(len(message["failures"]), 1)


class Liars(HostileTest):
    LIES = {
        "ansible_facts": {"ansible_host_key_checking": False, "ansible_ssh_common_args": TRUSTING},
        "unchecked": {"hosts": [], "by": []}, "ansible_stats": {"data": {"unchecked": 1}},
    }
    PLAY = """
        - hosts: all
          gather_facts: false
          tasks:
            - ansible.builtin.command: "true"
            - ansible.builtin.setup: {gather_subset: "!all"}
            - ansible.builtin.raw: "true"
              ignore_unreachable: true
              vars: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1}
    """

    def test_no_answer_of_a_host_feigns_that_keys_are_not_checked(self):
        message, done = self.lying(self.LIES, self.PLAY, env=forced_ssh())
        self.assertEqual((message["hosts"], "unchecked" in message), ("oo", False), done.stdout)

    def test_no_answer_of_a_host_hides_that_keys_are_not_checked(self):
        lies = json.loads(json.dumps(self.LIES).replace("false", "true").replace(TRUSTING, "-C"))
        message, done = self.lying(lies, self.PLAY, env=forced_ssh(), options=("-e", "ansible_host_key_checking=no"))
        self.assertEqual(message["hosts"], "oo", done.stdout)
        self.assertEqual(message["unchecked"], {"hosts": ["bad", "good"], "by": ["-e ansible_host_key_checking"]})


if __name__ == "__main__":
    unittest.main()

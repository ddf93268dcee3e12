"""The runner image's entry point, run in a directory that stands for /runner."""

import json
import os
import unittest

from support import ANSIBLE, BIN, CALLBACKS, TemporaryDirectoryTest


class Entrypoint(TemporaryDirectoryTest):
    def enter(self, *command, **env):
        self.passwd = self.directory / "passwd"
        if not self.passwd.exists():
            self.passwd.write_text("root:x:0:0::/root:/bin/sh\n")
        done = self.command(
            ANSIBLE / "runner" / "edpm_entrypoint", *command,
            env={"EDPM_RUNNER_DIR": str(self.directory / "runner"), "EDPM_PASSWD_FILE": str(self.passwd), **env},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def text(self, name):
        return (self.directory / "runner" / name).read_text()

    def test_variables_become_the_input_directory(self):
        self.enter("true", RUNNER_INVENTORY="\nall: {}\n\n", RUNNER_PLAYBOOK="\n- hosts: all\n\n",
                   RUNNER_EXTRA_VARS="\nword: 'it''s \"quoted\" $HOME'\n\n")
        self.assertEqual(self.text("inventory/inventory.yaml").split(), ["---", "all:", "{}"])
        self.assertIn("- hosts: all", self.text("project/playbook.yaml"))
        self.assertIn("word: 'it''s \"quoted\" $HOME'", self.text("env/extravars"))

    def test_the_command_line_is_appended(self):
        self.write("runner/env/cmdline", "--limit a\n")
        self.enter("true", RUNNER_CMDLINE="--tags b")
        self.assertEqual(self.text("env/cmdline").split(), ["--limit", "a", "--tags", "b"])

    def test_nothing_is_made_of_variables_that_are_not_set(self):
        self.enter("true")
        for name in ("inventory/inventory.yaml", "project/playbook.yaml", "env/cmdline", "env/extravars"):
            self.assertFalse((self.directory / "runner" / name).exists(), name)

    def test_settings_have_defaults_and_a_mounted_file_wins(self):
        self.enter("true", RUNNER_JOB_TIMEOUT="99")
        self.assertIn("job_timeout: 99\n", self.text("env/settings"))
        self.assertIn("idle_timeout: 600\n", self.text("env/settings"))
        self.write("runner/env/settings", "job_timeout: 5\n")
        self.enter("true", RUNNER_JOB_TIMEOUT="99")
        self.assertEqual(self.text("env/settings"), "job_timeout: 5\n")

    def test_no_variable_brings_a_setting_of_its_own(self):
        told = self.enter("true", RUNNER_PEXPECT_TIMEOUT="10\nprocess_isolation: true", RUNNER_SUPPRESS_OUTPUT_FILE="{a: b}",
                          RUNNER_FACT_CACHE="x # y", RUNNER_FACT_CACHE_TYPE="memory", RUNNER_PEXPECT_USE_POLL="false")
        settings = self.text("env/settings")
        self.assertEqual(len(settings.splitlines()), 9, settings)
        for line in ("pexpect_timeout: 10", "suppress_output_file: False", "fact_cache: fact_cache",
                     "fact_cache_type: memory", "pexpect_use_poll: false"):
            self.assertIn(line, settings.splitlines())
        self.assertIn("RUNNER_PEXPECT_TIMEOUT is not as it must be ([0-9]+): 10 is taken", told.stderr)

    def test_what_the_config_map_of_all_runs_says_is_judged_and_gives_way_to_the_runs_own(self):
        self.enter("true", EDPM_DEFAULT_RUNNER_JOB_TIMEOUT="99", RUNNER_IDLE_TIMEOUT="7", EDPM_DEFAULT_RUNNER_IDLE_TIMEOUT="8",
                   EDPM_DEFAULT_RUNNER_PEXPECT_TIMEOUT="10\nprocess_isolation: true\nprocess_isolation_executable: /x")
        settings = self.text("env/settings").splitlines()
        self.assertEqual(settings[1:4], ["idle_timeout: 7", "job_timeout: 99", "pexpect_timeout: 10"])
        self.assertEqual(len(settings), 9, settings)

    def test_host_keys_are_checked_unless_told_otherwise(self):
        self.assertEqual(self.enter("printenv", "ANSIBLE_HOST_KEY_CHECKING").stdout.strip(), "True")
        told = self.enter("printenv", "ANSIBLE_HOST_KEY_CHECKING", ANSIBLE_HOST_KEY_CHECKING="False")
        self.assertEqual(told.stdout.strip(), "False")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
    def test_a_user_without_an_entry_gets_one_and_only_one(self):
        self.directory.chmod(0o777)
        (self.directory / "runner").mkdir(mode=0o777)
        (self.directory / "runner").chmod(0o777)
        self.passwd = self.write("passwd", "root:x:0:0::/root:/bin/sh\n")
        self.passwd.chmod(0o666)
        # A path below a private home is closed to the other user, so the script comes on standard input.
        script = (ANSIBLE / "runner" / "edpm_entrypoint").read_text()
        for _ in range(2):
            home = self.command(
                "setpriv", "--reuid", "4711", "--regid", "0", "--clear-groups",
                "bash", "-c", script, "edpm_entrypoint", "printenv", "HOME",
                env={"EDPM_RUNNER_DIR": str(self.directory / "runner"), "EDPM_PASSWD_FILE": str(self.passwd),
                     "HOME": "/nonexistent"},
            )
            self.assertEqual((home.returncode, home.stdout.strip()), (0, str(self.directory / "runner")), home.stderr)
        entries = [line for line in self.passwd.read_text().splitlines() if ":4711:0:" in line]
        self.assertEqual(len(entries), 1)

    def test_a_whole_run_through_ansible_runner(self):
        result = self.directory / "result"
        done = self.enter(
            str(BIN / "ansible-runner"), "run", str(self.directory / "runner"), "-p", "playbook.yaml", "-i", "one",
            RUNNER_INVENTORY="\nall: {hosts: {here: {ansible_connection: local}}}\n\n",
            RUNNER_PLAYBOOK="\n- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.assert: {that: word == 'yes'}\n\n",
            RUNNER_EXTRA_VARS='\n{"word": "yes"}\n\n',
            ANSIBLE_CALLBACK_PLUGINS=CALLBACKS,
            EDPM_RUN_HOSTS="here", EDPM_RESULT_FILE=str(result),
        )
        self.assertIn("ok=1", done.stdout)
        self.assertEqual(json.loads(result.read_text())["hosts"], "o")

    def as_the_operator_mounts_it(self, cmdline):
        self.write("runner/inventory/inventory.yaml",
                   "all: {hosts: {a: {ansible_connection: local}, b: {ansible_connection: local}}}\n")
        self.write("runner/env/extravars", '{"b":true,"big":9007199254740993,"d":{"x":[1,"1"]},"f":1.5,"n":1,"t":"1"}')
        self.write("runner/env/cmdline", cmdline)
        self.write("runner/roles/judge/tasks/main.yml", """
            - ansible.builtin.assert:
                that:
                  - b is boolean and b
                  - n is integer and n is not boolean and n == 1
                  - big is integer and big == 9007199254740993
                  - f is float
                  - t is string and t == "1"
                  - d.x[0] is integer and d.x[1] is string
        """)
        self.write("runner/project/playbook.yaml", """
            - hosts: all
              gather_facts: false
              roles: [judge]
        """)
        (self.directory / "result").unlink(missing_ok=True)

    def message(self):
        return json.loads((self.directory / "result").read_text())

    def as_the_pod_does(self, *what):
        plugins = str(ANSIBLE / "callback")
        self.write("passwd", "root:x:0:0::/root:/bin/sh\n")
        return self.command(
            ANSIBLE / "runner" / "edpm_entrypoint",
            BIN / "ansible-runner", "run", self.directory / "runner", *what, "-i", "one",
            env={
                "EDPM_RUNNER_DIR": str(self.directory / "runner"),
                "EDPM_PASSWD_FILE": str(self.directory / "passwd"),
                "ANSIBLE_CALLBACK_PLUGINS": CALLBACKS,
                "ANSIBLE_VARS_PLUGINS": f"~/.ansible/plugins/vars:/usr/share/ansible/plugins/vars:{plugins}",
                "ANSIBLE_ROLES_PATH": str(self.directory / "runner" / "roles"),
                "EDPM_RUN_HOSTS": "a,b",
                "EDPM_RESULT_FILE": str(self.directory / "result"),
            },
        )

    def test_variables_keep_their_types_and_options_are_read_as_a_shell_would(self):
        self.as_the_operator_mounts_it("--limit 'a'")
        done = self.as_the_pod_does("-p", "playbook.yaml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual((self.message()["hosts"], self.message()["failures"]), ("on", []))

    def test_a_role_is_run_on_all_hosts(self):
        self.as_the_operator_mounts_it("--limit 'a,b'")
        done = self.as_the_pod_does("-r", "judge")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual((self.message()["hosts"], self.message()["failures"]), ("oo", []))

    def test_a_limit_that_leaves_nobody_is_told_through_ansible_runner_too(self):
        self.as_the_operator_mounts_it("--limit 'elsewhere,&a'")
        done = self.as_the_pod_does("-p", "playbook.yaml")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual((self.message()["hosts"], self.message()["unmatched"]), ("nn", True))


if __name__ == "__main__":
    unittest.main()

"""The play that comes first in every run of the engine: a host is changed by runs of its owner alone."""

import json
import shutil
import unittest
import urllib.parse

from support import ANSIBLE, UNPACKED, CallbackTest

PLAY = ANSIBLE.parent / "crates" / "ansibleee-operator" / "plays" / "owner-check.yaml"
NODE = "openstack/OpenStackDataPlaneNode/n0"
OTHER = "openstack/OpenStackDataPlaneNode/n1"

# A play that changes the host.
CHANGE = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Change
      ansible.builtin.copy:
        content: "{{ edpm_owner | default('nobody') }}"
        dest: "{{ changed }}"
"""


class OwnerTest(CallbackTest):
    """Each host is a folder of this machine."""

    def setUp(self):
        super().setUp()
        # As in the pod: the plays lie beside the plugin's folder.
        self.edpm = self.directory / "edpm"
        for name in ("callback", "bounds"):
            shutil.copytree(ANSIBLE / name, self.edpm / name)
        text = PLAY.read_text()
        for path in ("/var/lib/edpm-operators", "/var/lib/openstack/config/nova"):
            self.assertIn(path, text)
        text = text.replace("/var/lib/edpm-operators", "{{ folder }}/state")
        self.check = self.write("edpm/plays/owner-check.yaml", text.replace("/var/lib/openstack/config/nova", "{{ folder }}/nova"))

    def checked(self, plays, hosts=("n0",), env=None, **more):
        """Runs plays after the check."""
        folders = {
            "ANSIBLE_CALLBACK_PLUGINS": ":".join(str(self.edpm / name) for name in ("callback", "bounds", "key_checks")),
            "ANSIBLE_VARS_PLUGINS": str(self.edpm / "callback"),
        }
        playbook = f"- import_playbook: {self.check}\n{plays}"
        return self.play(playbook, hosts=hosts, env={**folders, **(env or {})}, **more)

    def assertRefused(self, message, why):
        self.assertEqual(message["hosts"], "f")
        failure = message["failures"][0]
        self.assertIn(why, failure["message"])
        self.assertRegex(failure["path"], f"^{self.check}:[0-9]+$")
        self.assertEqual(failure["task"], "The host must be the owner's")


class OwnerCheck(OwnerTest):
    """Reached without ssh and without sudo."""

    def run_as(self, owner, uid="u-1", host="n0", names=None, extra="", options=(), env=None):
        """One run on one host, of an inventory that names its owner. Returns the callback's message."""
        folder = self.directory / host
        folder.mkdir(exist_ok=True)
        name = names or owner.split("/")[-1]
        self.write("host_vars/" + name + ".yml", f"""
            ansible_connection: local
            ansible_become: false
            canonical_hostname: {name}
            edpm_owner: {owner}
            edpm_owner_uid: {uid}
            changed: {folder}/changed
            folder: {folder}
            {extra}
        """)
        message, done = self.checked(CHANGE, hosts=(name,), options=options, env=env)
        self.assertIsNotNone(message, done.stdout + done.stderr)
        return message

    def owner(self, host="n0"):
        return (self.directory / host / "state" / "owner").read_text()

    def changed(self, host="n0"):
        file = self.directory / host / "changed"
        return file.read_text() if file.exists() else None

    def test_the_first_owner_is_recorded_and_runs_again(self):
        for _ in range(2):
            self.assertEqual(self.run_as("openstack/OpenStackDataPlaneNode/n0")["hosts"], "o")
            self.assertEqual(self.owner(), "openstack/OpenStackDataPlaneNode/n0 u-1\n")
        self.assertEqual((self.directory / "n0" / "state" / "owner").stat().st_mode & 0o777, 0o644)

    def test_another_object_at_the_same_host_changes_nothing(self):
        self.run_as("openstack/OpenStackDataPlaneNode/n0")
        message = self.run_as(OTHER, uid="u-2")
        self.assertRefused(message, "the host belongs to OpenStackDataPlaneNode n0 (UID u-1)")
        self.assertEqual(self.changed(), "openstack/OpenStackDataPlaneNode/n0")
        self.assertEqual(self.owner(), "openstack/OpenStackDataPlaneNode/n0 u-1\n")

    def test_an_object_of_another_namespace_is_not_named(self):
        self.run_as("openstack/OpenStackDataPlaneNode/n0")
        message = self.run_as("tenant/OpenStackDataPlaneNode/n0", uid="u-2")
        self.assertRefused(message, "an object of another namespace (UID u-1)")
        self.assertNotIn("openstack", message["failures"][0]["message"])

    def test_an_object_that_was_made_again_under_its_name_goes_on(self):
        self.run_as("openstack/OpenStackDataPlaneNode/n0")
        self.assertEqual(self.run_as("openstack/OpenStackDataPlaneNode/n0", uid="u-2")["hosts"], "o")
        self.assertEqual(self.owner(), "openstack/OpenStackDataPlaneNode/n0 u-2\n")

    def test_a_host_is_handed_over_by_accepting_the_uid_of_its_owner(self):
        self.run_as("openstack/OpenStackDataPlaneNode/n0")
        wrong = self.run_as(OTHER, uid="u-2", extra="edpm_owner_accepted: [u-3]")
        self.assertRefused(wrong, "belongs to OpenStackDataPlaneNode n0")
        self.assertEqual(self.run_as(OTHER, uid="u-2", extra="edpm_owner_accepted: [u-1]")["hosts"], "o")
        self.assertEqual(self.owner(), f"{OTHER} u-2\n")
        self.assertRefused(self.run_as("openstack/OpenStackDataPlaneNode/n0"), "belongs to OpenStackDataPlaneNode n1")

    def test_a_swapped_pair_of_addresses_touches_neither_host(self):
        for host in ("n0", "n1"):
            self.run_as(f"openstack/OpenStackDataPlaneNode/{host}", host=host)
        for owner, host in (("n0", "n1"), ("n1", "n0")):
            message = self.run_as(f"openstack/OpenStackDataPlaneNode/{owner}", host=host)
            self.assertRefused(message, f"the host belongs to OpenStackDataPlaneNode {host}")
            self.assertEqual(self.changed(host), f"openstack/OpenStackDataPlaneNode/{host}")

    def test_a_host_without_a_record_is_judged_by_the_name_that_nova_compute_has(self):
        self.write("n0/nova/01-nova.conf", "[DEFAULT]\nhost = a.example.org\n[vnc]\nhost = other\n")
        self.write("n0/nova/02-nova.conf", "[DEFAULT]\n# host = x\nhost=N1.example.org\nhost_x = y\n")
        self.assertRefused(self.run_as("openstack/OpenStackDataPlaneNode/n0"), "configured as host n1.example.org")
        self.assertIsNone(self.changed())
        self.assertFalse((self.directory / "n0" / "state").exists())
        self.assertEqual(self.run_as(OTHER, uid="u-2")["hosts"], "o")
        self.assertEqual(self.owner(), f"{OTHER} u-2\n")

    def test_a_host_that_nova_compute_has_under_another_name_is_taken_over_by_that_name_as_a_whole(self):
        self.write("n0/nova/01-nova.conf", "[DEFAULT]\nhost = Old.example.org\n")
        for wrong in ("host:old", "host:old.example.com", "host:OLD.example.org", "u-1"):
            message = self.run_as(OTHER, extra=f"edpm_owner_accepted: ['{wrong}']")
            self.assertRefused(message, "configured as host old.example.org")
        message = self.run_as(OTHER, extra="edpm_owner_accepted: [u-9, 'host:old.example.org']")
        self.assertEqual(message["hosts"], "o")
        self.assertEqual(self.owner(), f"{OTHER} u-1\n")
        # A host that records its owner is that one's, whatever it is configured as.
        self.assertRefused(
            self.run_as("openstack/OpenStackDataPlaneNode/n0", extra="edpm_owner_accepted: ['host:old.example.org']"),
            "the host belongs to OpenStackDataPlaneNode n1",
        )

    def test_a_record_that_names_nobody_is_told_and_never_repeated(self):
        self.write("n0/state/owner", "{{ lookup('file', '/etc/passwd') }} \x1b[31m\n")
        message = self.run_as("openstack/OpenStackDataPlaneNode/n0")
        self.assertRefused(message, "names no owner")
        self.assertNotIn("passwd", message["failures"][0]["message"])

    def test_a_host_that_only_the_check_touched_was_not_reached(self):
        for host in ("a", "b"):
            (self.directory / host).mkdir()
            self.write(f"host_vars/{host}.yml", f"""
                ansible_become: false
                edpm_owner: ns/Node/{host}
                edpm_owner_uid: u
                folder: {self.directory}/{host}
            """)
        message, _ = self.checked("- hosts: b\n  gather_facts: false\n  tasks: [{ping: }]\n", hosts=("a", "b"))
        self.assertEqual(message["hosts"], "no")

    def test_a_play_of_somebody_elses_is_not_taken_for_the_check(self):
        self.write("plays/owner-check.yaml", "- hosts: all\n  gather_facts: false\n  tasks: [{ping: }]\n")
        message, _ = self.checked("- import_playbook: plays/owner-check.yaml\n")
        self.assertEqual(message["hosts"], "o")

    def test_a_host_on_which_nothing_can_be_recorded_is_left_to_the_next_play_which_says_why(self):
        self.check.write_text(self.check.read_text().replace("{{ folder }}/state", "/proc/nowhere"))
        self.assertEqual(self.run_as(NODE)["hosts"], "o")

    def test_a_host_that_answers_with_a_long_line_holds_up_nobody(self):
        ssh = self.write("ssh", "#!/bin/bash\nprintf 'edpm-owner: %100000sx\\n'\n")
        ssh.chmod(0o755)
        inventory = (
            "a ansible_connection=local ansible_become=false\n"
            f"b ansible_host=192.0.2.1 ansible_ssh_executable={ssh} ansible_ssh_retries=0\n"
            f"[all:vars]\nedpm_owner={NODE}\nedpm_owner_uid=u-1\nfolder={self.directory}\n"
        )
        message, _ = self.checked("", hosts=("a", "b"), inventory=inventory)
        self.assertEqual(message["hosts"], "nn", "the check is over, and nobody was kept out")

    def test_a_node_set_tells_its_hosts_apart(self):
        self.run_as("openstack/OpenStackDataPlaneNodeSet/compute/n0", names="n0")
        message = self.run_as("openstack/OpenStackDataPlaneNodeSet/compute/n1", names="n1")
        self.assertRefused(message, "the host belongs to OpenStackDataPlaneNodeSet compute/n0 (UID u-1)")

    def test_neither_tags_nor_extra_variables_nor_settings_switch_the_check_off(self):
        self.run_as(NODE)
        for options in (
            ["--tags", "some"],
            ["--skip-tags", "always"],
            ["--skip-tags", "all,tagged,always"],
            ["--check"],
            ["-e", f"edpm_owner={NODE}"],
            ["-e", "edpm_owner_is_known=false", "-e", "edpm_owner_now="],
            ["-e", "edpm_owner_accepted=[u-1]"],
            ["-e", '{"edpm_owner_accepted": ["u-1"], "edpm_owner_is_same": true}'],
            ["-e", "edpm_owner_file={'stdout': 'edpm-owner: '}"],
        ):
            with self.subTest(options):
                self.assertRefused(self.run_as(OTHER, uid="u-2", options=options), "belongs to OpenStackDataPlaneNode n0")
        for env in (
            {"ANSIBLE_SKIP_TAGS": "always", "ANSIBLE_TAGS_SKIP": "always"},
            {"ANSIBLE_NO_LOG": "True"},
            {"ANSIBLE_STRATEGY": "free", "ANSIBLE_JINJA2_NATIVE": "True", "ANSIBLE_ANY_ERRORS_FATAL": "True"},
        ):
            with self.subTest(env):
                self.assertRefused(self.run_as(OTHER, uid="u-2", env=env), "belongs to OpenStackDataPlaneNode n0")
        self.assertEqual(self.changed(), NODE)
        self.assertEqual(self.owner(), f"{NODE} u-1\n")

    def test_tags_and_extra_variables_are_still_those_of_the_runs_own_plays(self):
        self.run_as(NODE, options=["--skip-tags", "always", "-e", "edpm_owner_accepted=[u-1]", "-e", f"changed={self.directory}/n0/other"])
        self.assertIsNone(self.changed())
        self.assertEqual((self.directory / "n0/other").read_text(), NODE)
        message, done = self.checked("""
- hosts: all
  gather_facts: false
  tags: [always]
  tasks: [{fail: }]
""", hosts=("n0",), options=["--skip-tags", "always"])
        self.assertEqual(message["hosts"], "n", done.stdout)

    def test_the_check_asks_the_machine_that_the_plays_of_the_project_reach(self):
        self.run_as(NODE, host="other")
        (self.directory / "n1").mkdir()
        self.write("host_vars/n1.yml", f"""
            ansible_become: false
            edpm_owner: {OTHER}
            edpm_owner_uid: u-2
            folder: {self.directory}/n1
            changed: {self.directory}/n1/changed
        """)
        self.write("project/host_vars/n1.yml", f"folder: {self.directory}/other\nchanged: {self.directory}/other/changed\n")
        self.write("project/site.yml", CHANGE)
        message, _ = self.checked("- import_playbook: project/site.yml\n", hosts=("n1",))
        self.assertRefused(message, "belongs to OpenStackDataPlaneNode n0")
        self.assertEqual(self.changed("other"), NODE)

    def test_a_playbook_of_the_project_may_have_any_name(self):
        # As the operator writes them: import_playbook would split a name at its spaces, and execute what is in braces.
        name = "my play {{ lookup('pipe', 'touch forged') }}'+%41.yml"
        self.write(f"project/{name}", CHANGE)
        path = urllib.parse.quote(f"{self.directory}/project/{name}", safe="/.-_")
        (self.directory / "n0").mkdir()
        self.write("host_vars/n0.yml", f"changed: {self.directory}/n0/changed\n")
        message, done = self.checked(f"- import_playbook: \"{{{{'{path}'|urldecode}}}}\"\n")
        self.assertEqual(message and message["hosts"], "o", done.stdout + done.stderr)
        self.assertEqual(self.changed(), "nobody")
        self.assertEqual(list(self.directory.rglob("forged")), [])

    def test_an_inventory_without_owners_is_not_checked(self):
        message, _ = self.checked(CHANGE, hosts=("x",), options=["-e", f"changed={self.directory}/x"])
        self.assertEqual(message["hosts"], "o")


class Shells(OwnerTest):
    """Over a real sshd, which starts the login shell of the user, whatever that says by itself."""

    SUDO = """\
#!/bin/sh
# Stands for sudo: it says what sudo says to new users, and executes the command.
printf 'We trust you have received the usual lecture.' >&2
while [ "${1#-}" != "$1" ]; do [ "$1" = -u ] && shift; shift; done
printf 'noise of the account'
exec "$@"
"""

    # Modules of Ansible itself stumble over an account that ends no line of what it says.
    CHANGE = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Change
      ansible.builtin.raw: "printf %s {{ edpm_owner }} >{{ changed }}"
"""

    def login(self, shell, files, **variables):
        """A machine n0 behind sshd, whose user has this shell and these files in its home."""
        home = self.directory / "home"
        home.mkdir()
        for name, text in files.items():
            (home / name).write_text(text)
        sudo = self.write("sudo", self.SUDO)
        sudo.chmod(0o755)
        key = self.make_key("user_key")
        self.write("authorized", key.with_suffix(".pub").read_text()).chmod(0o600)
        port = self.start_sshd(
            self.make_key("host_key"), f"AuthorizedKeysFile={self.directory}/authorized", "StrictModes=no",
            "PermitRootLogin=yes", "PasswordAuthentication=no", user=f"edpm-user:x:0:0::{home}:{shell}",
        )
        (self.directory / "n0").mkdir()
        self.vars = {
            "ansible_host": "127.0.0.1", "ansible_port": port, "ansible_user": "edpm-user",
            "ansible_ssh_private_key_file": str(key), "ansible_become_exe": str(sudo),
            "ansible_ssh_common_args": "-F /dev/null -o IdentityAgent=none -o IdentitiesOnly=yes -o BatchMode=yes"
            " -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlMaster=no -o ControlPath=none",
            "folder": str(self.directory / "n0"), "changed": str(self.directory / "n0" / "changed"), **variables,
        }

    def run_as(self, owner, uid):
        self.write("host_vars/n0.yml", json.dumps({**self.vars, "edpm_owner": owner, "edpm_owner_uid": uid}))
        message, done = self.checked(self.CHANGE, inventory="n0\n", run_hosts=("n0",))
        self.output = done.stdout
        return message

    def owner(self):
        return (self.directory / "n0" / "state" / "owner").read_text()

    def check_account(self):
        """The first owner is recorded, and another one refused."""
        message = self.run_as(NODE, "u-1")
        self.assertEqual(message["hosts"], "o", self.output)
        self.assertEqual(self.owner(), f"{NODE} u-1\n", self.output)
        self.assertRefused(self.run_as(OTHER, "u-2"), "belongs to OpenStackDataPlaneNode n0 (UID u-1)")
        self.assertEqual((self.directory / "n0" / "changed").read_text(), NODE)
        self.assertEqual(self.run_as(NODE, "u-3")["hosts"], "o", self.output)
        self.assertEqual(self.owner(), f"{NODE} u-3\n")

    def test_an_account_that_says_things_of_its_own(self):
        self.login("/bin/bash", {".bashrc": "echo Welcome; echo help >&2; echo; printf 'to n0: '\n"})
        self.check_account()

    def test_an_account_with_a_c_shell(self):
        tcsh = shutil.which("tcsh") or str(UNPACKED.parent / "shells" / "bin" / "tcsh")
        self.login(tcsh, {".cshrc": "echo Welcome\nprintf 'to n0: '\n"})
        self.check_account()

    def test_a_c_shell_and_a_name_that_nova_compute_has(self):
        tcsh = shutil.which("tcsh") or str(UNPACKED.parent / "shells" / "bin" / "tcsh")
        self.login(tcsh, {})
        self.write("n0/nova/01-nova.conf", "[DEFAULT]\nhost = n9.example.org\n")
        self.assertRefused(self.run_as(NODE, "u-1"), "configured as host n9.example.org")

    def test_an_account_that_executes_something_else_is_not_a_host_without_an_owner(self):
        shell = self.write("menu", "#!/bin/sh\necho 'Press 1 for help'\n")
        shell.chmod(0o755)
        self.login(shell, {})
        self.assertRefused(self.run_as(NODE, "u-1"), "the host does not tell its owner")


if __name__ == "__main__":
    unittest.main()

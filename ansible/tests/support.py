"""Runs real ansible-playbook processes in a temporary directory, away from this machine's own settings."""

import importlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ANSIBLE = pathlib.Path(__file__).resolve().parent.parent
COLLECTION = ANSIBLE / "osp" / "edpm"
# Where the operator lets Ansible look for callbacks.
CALLBACKS = ":".join(str(ANSIBLE / folder) for folder in ("callback", "bounds", "key_checks"))
BIN = pathlib.Path(sys.executable).parent
UNPACKED = pathlib.Path(os.environ.get("EDPM_TEST_SSHD_ROOT", "/nonexistent"))
FIREWALL = pathlib.Path(os.environ.get("EDPM_TEST_FIREWALL_ROOT", "/nonexistent"))
SSHD = shutil.which("sshd", path=f"/usr/sbin:/sbin:{UNPACKED}/usr/sbin")
# In a mount namespace of its own sshd finds the user and the directory that its package would have made.
START = """
mount --bind "$0" /etc/passwd && mount -t tmpfs none /run && mkdir /run/sshd && exec "$@"
"""


def wait_for(path, seconds=120):
    """Whether a file is there within so many seconds."""
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def clean_environment(home):
    """Only what a play needs: settings of whoever runs the tests must not decide their outcome."""
    return {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_CONFIG": str(home / "ansible.cfg"),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_NOCOLOR": "True",
        # As in the runner, whose ansible.cfg is not read here; but an ssh that is refused may end before
        # its data is sent, which Ansible reports as another failure.
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_SSH_PIPELINING": "False",
    }


def collections_path(directory):
    """A collections folder that holds the collection of this repository under its name."""
    osp = pathlib.Path(directory) / "collections" / "ansible_collections" / "osp"
    osp.mkdir(parents=True, exist_ok=True)
    if not (osp / "edpm").exists():
        (osp / "edpm").symlink_to(ANSIBLE / "osp" / "edpm")
    return str(osp.parent.parent)


def collection_module(name):
    """A plugin of this repository's collection, imported by its name in the collection as Ansible does."""
    with tempfile.TemporaryDirectory() as directory:
        sys.path.insert(0, collections_path(directory))
        try:
            return importlib.import_module(f"ansible_collections.osp.edpm.plugins.{name}")
        finally:
            sys.path.pop(0)


def with_look_for_guests(play):
    """The text of an operator's play, begun with the look for guests as the operator begins it."""
    tasks = (COLLECTION / "roles" / "edpm_guests" / "tasks" / "main.yml").read_text()
    before, after = play.read_text().split("  tasks:\n", 1)
    return f"{before}  tasks:\n{textwrap.indent(tasks, '    ')}\n{after}"


# A systemd that only takes notes of what it is to do, beside the program: each unit is there and active.
NOTING_SYSTEMCTL = r"""#!/bin/bash
here=$(dirname "$0")
case $1 in
show) printf 'LoadState=loaded\nActiveState=active\n' ;;
is-enabled | is-active) echo enabled ;;
*) echo "systemctl $*" >>"$here/notes" ;;
esac
"""

# After how many seconds a command counts as one that hangs. No test depends on it: a playbook takes seconds, and minutes
# where the lab's tests use the same two cores.
HANGS = 900

# Runs a command whose units of systemd are in the given directory: what roles write there stays in a mount namespace.
OWN_UNITS = 'mount -t tmpfs none /etc/systemd && mkdir /etc/systemd/system && mount --bind "$0" /etc/systemd/system && exec "$@"'


class TemporaryDirectoryTest(unittest.TestCase):
    """A test with a directory of its own."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="edpm-ansible-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.write("ansible.cfg", "[defaults]\n")

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def command(self, *words, env=None):
        with self.begin(*words, env=env) as process:
            try:
                stdout, stderr = process.communicate(timeout=HANGS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def begin(self, *words, env=None):
        """Starts a command, whose output is piped; the caller awaits its end."""
        return subprocess.Popen(
            [str(word) for word in words],
            cwd=self.directory,
            env={**clean_environment(self.directory), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def reserve_port(self):
        """A port on which an sshd of this test may listen, also once more: no other socket gets it in the meantime."""
        holder = socket.socket()
        self.addCleanup(holder.close)
        # With this option sshd may bind it too, as long as this socket does not listen.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        return holder.getsockname()[1]

    def make_key(self, name, kind="ed25519"):
        """Makes a pair of keys; returns the path of the private one."""
        path = self.directory / name
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path], check=True)
        return path

    def start_refusing_sshd(self):
        """Starts an sshd to which nobody can log in, with a key of its own in `host_key`. Returns its port."""
        return self.start_sshd(
            self.make_key("host_key"), "PasswordAuthentication=no", "KbdInteractiveAuthentication=no",
            "AuthorizedKeysFile=none",
        )

    def start_sshd(self, host_key, *options, user=None, port=None):
        """Starts an sshd of our own on the loopback; nobody but the user of this passwd line can log in. Returns its port."""
        self.assertIsNotNone(SSHD, "no sshd: start these tests by ansible/tests/run, which gets one")
        port = port or self.reserve_port()
        users = self.write(f"passwd-{port}", pathlib.Path("/etc/passwd").read_text())
        if "\nsshd:" not in users.read_text():
            users.write_text(users.read_text() + "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
        if user:
            users.write_text(f"{users.read_text().rstrip()}\n{user}\n")
        libraries = ":".join(str(path) for path in UNPACKED.glob("**/lib/*-linux-gnu"))
        options = ["ListenAddress=127.0.0.1", f"Port={port}", "PidFile=none", *options]
        server = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", START, users, SSHD, "-D", "-e", "-f", "/dev/null", "-h", host_key,
             *(word for option in options for word in ("-o", option))],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "LD_LIBRARY_PATH": libraries},
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.kill)
        self.sshd = server
        said = []
        for line in server.stderr:
            if "listening" in line:
                return port
            said.append(line)
        self.fail(f"sshd ended: {''.join(said)}")

    def stop_sshd(self):
        """Ends the sshd that was started last, and the connections that it serves."""
        children = f"/proc/{self.sshd.pid}/task/{self.sshd.pid}/children"
        served = [int(pid) for pid in pathlib.Path(children).read_text().split()]
        for pid in [self.sshd.pid, *served]:
            os.kill(pid, signal.SIGKILL)
        self.sshd.wait()


class CallbackTest(TemporaryDirectoryTest):
    """A test of the termination message that a play leaves."""

    def play(self, playbook, hosts=("a", "b"), run_hosts=None, inventory=None, env=None, options=()):
        """Runs the text of a playbook; returns the message (None: there is none) and the process."""
        self.write("play.yml", playbook)
        lines = inventory or "".join(f"{host} ansible_connection=local\n" for host in hosts)
        self.write("hosts", lines)
        result = self.directory / "result"
        done = self.command(
            BIN / "ansible-playbook", "-i", "hosts", "play.yml", *options,
            env={
                "ANSIBLE_CALLBACK_PLUGINS": CALLBACKS,
                "ANSIBLE_VARS_PLUGINS": str(ANSIBLE / "callback"),
                "EDPM_RUN_HOSTS": ",".join(run_hosts or hosts),
                "EDPM_RESULT_FILE": str(result),
                **(env or {}),
            },
        )
        self.raw = result.read_bytes() if result.exists() else None
        for plugin in ("edpm_result:", "edpm_bounds:", "edpm_key_checks:"):
            self.assertNotIn(plugin, done.stdout + done.stderr, "the plugin warned of a fault of its own")
        return (json.loads(self.raw) if self.raw else None), done

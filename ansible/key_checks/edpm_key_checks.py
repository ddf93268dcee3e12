"""Sees which tasks go to hosts without a check of the host's own ssh key; edpm_result tells it."""

from __future__ import annotations

import functools
import getopt
import itertools
import mmap
import os
import re
import shlex
import shutil
import subprocess

from ansible import context
from ansible.executor.task_executor import TaskExecutor
from ansible.plugins.callback import CallbackBase
from ansible.plugins.connection.ssh import Connection as Ssh

DOCUMENTATION = """
name: edpm_key_checks
type: aggregate
short_description: whether hosts' own ssh keys are checked
description:
  - Variables, options of ansible-playbook and configuration files of ssh may turn the check off. What holds is seen
    where all of them have come together, in the connection of each task.
"""

# Connections' options that turn the check off, with that value, and the variables that set them, the last one first.
SWITCHES = {
    "host_key_checking": (
        False,
        (
            "ansible_paramiko_host_key_checking", "ansible_libssh_host_key_checking", "ansible_ssh_host_key_checking",
            "ansible_host_key_checking",
        ),
    ),
    "host_key_auto_add": (True, ("ansible_paramiko_host_key_auto_add", "ansible_libssh_host_key_auto_add")),
}
ARGUMENTS = ("ssh_args", "ssh_common_args", "ssh_extra_args", "sftp_extra_args", "scp_extra_args")
# What the connection gives to ssh, sftp and scp alike, in its order: of what is given twice ssh takes the first.
FIRST = ("ssh_args", "host_key_checking", "port", "remote_user", "ssh_common_args")
SINGLE = {"host_key_checking": "StrictHostKeyChecking=no", "port": "Port={}", "remote_user": 'User="{}"'}
# The letters of sftp and scp: ssh knows some of them in another sense (`scp -O`).
LETTERS = {
    "sftp_extra_args": "1246AafhNpqrvCc:D:i:l:o:s:S:b:B:F:J:P:R:X:",
    "scp_extra_args": "12346ABCTdfOpqRrstvD:F:J:M:P:S:c:i:l:o:X:",
}
# Where no argument is the cause, ssh's own files are; where no variable and no option is, Ansible's settings are. Where
# ssh itself does not answer, nothing is known.
SSH_CONFIG, SETTINGS, NO_ANSWER = "ssh_config", "settings", "no_answer"
# All reasons, in the words in which they are told.
REASONS = (
    *(name for _, names in SWITCHES.values() for name in names),
    *(f"ansible_{name}" for name in ARGUMENTS),
    *(f"--{name.replace('_', '-')}" for name in ARGUMENTS[1:]),
    SSH_CONFIG, SETTINGS, NO_ANSWER,
)
# What is off, in a line of what ssh says of its configuration, or in an argument without its quotation marks. Only
# values that are known to check count as such.
STRICT = re.compile(r"(?:-\w*o)?\s*stricthostkeychecking[\s=]+(?![\s=]|(?:true|yes|ask)\s*$)", re.IGNORECASE)
# A program that says which keys are right says whatever it likes.
KEYS_COMMAND = re.compile(r"(?:-\w*o)?\s*knownhostscommand[\s=]+(?![\s=]|none\s*$)", re.IGNORECASE)
# Nobody is asked for the key of an address of this machine, where a tunnel may end.
LOOPBACK = re.compile(r"hostname (?:127\..*|::1|localhost)$")
ANY_LOOPBACK = re.compile(r"(?:-\w*o)?\s*nohostauthenticationforlocalhost[\s=]+(?:true|yes)\s*$", re.IGNORECASE)
QUOTES = re.compile(r"""["'\\]""")
# A file may run programs (`Match exec`) that take their time, and so may a busy machine: the second time ssh may take
# twice as long.
SSH_SECONDS = 5
HOSTS_LIMIT = 65536


class CallbackModule(CallbackBase):
    """Keeps what was seen; a fault of its own never makes a run fail."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "edpm_key_checks"
    CALLBACK_NEEDS_ENABLED = False
    CALLBACK_NEEDS_WHITELIST = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.numbers = {}  # host -> its place in what follows
        # One number a host, with a bit for each reason, in memory that the processes of tasks share with this one: no
        # answer of a host has a part in it.
        self.reasons = memoryview(mmap.mmap(-1, 4 * HOSTS_LIMIT)).cast("I")
        self._guard(self._watch)

    def v2_runner_on_start(self, host, task):
        # Before the process is forked, so that it knows the place.
        if len(self.numbers) < HOSTS_LIMIT:
            self.numbers.setdefault(host.get_name(), len(self.numbers))

    def seen(self):
        """All that was seen so far, to compare with what was seen before."""
        return self.reasons[: len(self.numbers)].tobytes().rstrip(b"\0")

    def unchecked(self):
        """The hosts in whose tasks a key was not checked, and why."""
        found = {host: self.reasons[number] for host, number in self.numbers.items() if self.reasons[number]}
        return sorted(found), [it for it in REASONS if any(bits & _bit(it) for bits in found.values())]

    def _watch(self):
        set_options = TaskExecutor._set_connection_options
        get_handler = TaskExecutor._get_action_handler_with_module_context

        def watched_options(executor, variables, *args, **kwargs):
            executor.edpm_variables = variables
            return set_options(executor, variables, *args, **kwargs)

        def watched_handler(executor, *args, **kwargs):
            found = get_handler(executor, *args, **kwargs)
            # Actions such as debug go to no host.
            if getattr(found[0], "_requires_connection", True):
                self._guard(self._look, executor)
            return found

        TaskExecutor._set_connection_options = watched_options
        TaskExecutor._get_action_handler_with_module_context = watched_handler
        TaskExecutor.edpm_key_checks = self

    def _look(self, executor):
        number = self.numbers.get(executor._host.get_name())
        if number is None:
            return
        for option in _trusting(executor._connection):
            self.reasons[number] |= _bit(_reason(option, executor._connection, executor.edpm_variables))

    def _guard(self, function, *args):
        try:
            function(*args)
        except Exception as error:  # pylint: disable=broad-except
            self._display.warning(f"edpm_key_checks: {type(error).__name__}: {error}")


def _trusting(connection):
    """The connection's options that turn the check off; ssh's own files are named in their place."""
    options = connection._options
    if not isinstance(connection, Ssh):
        return {name for name, (off, _) in SWITCHES.items() if options.get(name) is off}
    found = set()
    for last in ARGUMENTS[2:]:
        given = [(name, options.get(name)) for name in (*FIRST, last)]
        found |= _ssh_trusts(str(options.get("host")), *(it for it in given if it[1] not in (None, "")))
    # What another program than the usual one makes of files is not known here.
    executable = options.get("ssh_executable")
    is_usual = executable == "ssh" or _program(executable) == _program("ssh")
    return found if is_usual else found - {SSH_CONFIG, NO_ANSWER}


def _program(name):
    """The file that is run under a name; an empty one where there is none."""
    return os.path.realpath(shutil.which(str(name)) or "")


# A process has one task, so that what is kept is never old; a loop asks once.
@functools.cache
def _ssh_trusts(host, *given):
    """Which of these options turn the check off. Only ssh itself says whether it is off; words merely name the cause,
    for they have many spellings, and the value of another option may look like them."""
    try:
        parts = {name: _words(name, value) for name, value in given}
        lines = _ask_ssh([*itertools.chain(*parts.values()), "--", host])
    except FileNotFoundError:
        # Without ssh there is no connection either.
        return set()
    except (OSError, ValueError, getopt.GetoptError, subprocess.SubprocessError):
        return {NO_ANSWER}
    off = [STRICT, KEYS_COMMAND, *([ANY_LOOPBACK] if any(map(LOOPBACK.match, lines)) else [])]
    return {_cause(parts, it) for it in off if any(map(it.match, lines))}


def _words(name, value):
    """The words that the connection makes of an option, as far as they mean something to ssh."""
    if name in SINGLE:
        return [] if name == "host_key_checking" and value is not False else ["-o", SINGLE[name].format(value)]
    words = [word.strip() for word in shlex.split(value) if word.strip()]
    if name not in LETTERS:
        return words
    # Of these, sftp and scp hand on what follows.
    return [word for pair in getopt.getopt(words, LETTERS[name])[0] if pair[0] in ("-o", "-F") for word in pair]


def _ask_ssh(words):
    """What ssh makes of its arguments and files, in lines, without a connection."""
    ask = functools.partial(
        subprocess.run, ["ssh", "-G", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, encoding="utf-8", errors="replace", check=True,
    )
    try:
        done = ask(timeout=SSH_SECONDS)
    except subprocess.TimeoutExpired:
        done = ask(timeout=2 * SSH_SECONDS)
    lines = done.stdout.splitlines()
    if not any(line.startswith("stricthostkeychecking ") for line in lines):
        raise ValueError("ssh said nothing of the check")
    return lines


def _cause(parts, off):
    """The first option with an argument that turns the check off."""
    named = (name for name, words in parts.items() if any(off.match(QUOTES.sub("", word)) for word in words))
    return next(named, SSH_CONFIG)


def _reason(option, connection, variables):
    """Which variable, option of ansible-playbook or setting gave the value, by their order in Ansible."""
    if option in (SSH_CONFIG, NO_ANSWER):
        return option
    names = SWITCHES[option][1] if option in SWITCHES else (f"ansible_{option}",)
    # The usual connection knows nothing of the others' variables.
    others = ("paramiko", "libssh")
    known = [name for name in names if not isinstance(connection, Ssh) or not any(it in name for it in others)]
    given = [name for name in known if variables.get(name) is not None]
    if given:
        return given[0]
    return f"--{option.replace('_', '-')}" if context.CLIARGS.get(option) else SETTINGS


def _bit(reason):
    return 1 << REASONS.index(reason)

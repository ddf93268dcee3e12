"""Sees which tasks go to hosts without a check of the host's own ssh key; edpm_result tells it."""

from __future__ import annotations

import mmap
import re
import shlex
import subprocess

from ansible import context
from ansible.executor.task_executor import TaskExecutor
from ansible.plugins.callback import CallbackBase

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
        False, ("ansible_paramiko_host_key_checking", "ansible_ssh_host_key_checking", "ansible_host_key_checking"),
    ),
    "host_key_auto_add": (True, ("ansible_paramiko_host_key_auto_add",)),
}
ARGUMENTS = ("ssh_args", "ssh_common_args", "ssh_extra_args", "sftp_extra_args", "scp_extra_args")
# Where no argument decides, ssh's own files do; where no variable and no option does, Ansible's settings do.
SSH_CONFIG, SETTINGS = "ssh_config", "settings"
# All reasons, in the words in which they are told.
REASONS = (
    *(name for _, names in SWITCHES.values() for name in names),
    *(f"ansible_{name}" for name in ARGUMENTS),
    *(f"--{name.replace('_', '-')}" for name in ARGUMENTS[1:]),
    SSH_CONFIG, SETTINGS,
)
# An argument, or a line of what ssh says of its configuration.
STRICT = re.compile(r"""(?:-\w*o)?\s*"?stricthostkeychecking["\s=]+([\w-]+)""", re.IGNORECASE)
# A program that says which keys are right says whatever it likes.
KEYS_COMMAND = re.compile(r"""(?:-\w*o)?\s*"?knownhostscommand["\s=]+(?!none\b|["\s=])""", re.IGNORECASE)
SSH_SECONDS = 10
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

    def unchecked(self):
        """The hosts in whose tasks a key was not checked, and why."""
        found = {host: self.reasons[number] for host, number in self.numbers.items() if self.reasons[number]}
        return sorted(found), [it for it in REASONS if any(bits & _bit(it) for bits in found.values())]

    def _watch(self):
        set_options = TaskExecutor._set_connection_options

        def watched(executor, variables, *args, **kwargs):
            names = set_options(executor, variables, *args, **kwargs)
            self._guard(self._look, executor, variables)
            return names

        TaskExecutor._set_connection_options = watched
        TaskExecutor.edpm_key_checks = self

    def _look(self, executor, variables):
        number = self.numbers.get(executor._host.get_name())
        options = executor._connection._options
        for option in _trusting(options) if number is not None else ():
            self.reasons[number] |= _bit(_reason(option, options, variables))

    def _guard(self, function, *args):
        try:
            function(*args)
        except Exception as error:  # pylint: disable=broad-except
            self._display.warning(f"edpm_key_checks: {type(error).__name__}: {error}")


def _trusting(options):
    """The connection's options that turn the check off; ssh's own files are named in their place."""
    if "ssh_common_args" not in options:
        return {name for name, (off, _) in SWITCHES.items() if options.get(name) is off}
    decisions = {name: _decision(_words(options, name)) for name in ARGUMENTS}
    decisions["host_key_checking"] = True if options.get("host_key_checking") is False else None
    found = {name for name in ARGUMENTS if any(map(KEYS_COMMAND.match, _words(options, name)))}
    for last in ARGUMENTS[2:]:
        # As the connection puts them together: of what is given twice ssh takes the first.
        order = ("ssh_args", "host_key_checking", "ssh_common_args", last)
        deciding = next((name for name in order if decisions[name] is not None), None)
        if deciding and decisions[deciding]:
            found.add(deciding)
        if not deciding and last == "ssh_extra_args" and _ssh_trusts(options):
            found.add(SSH_CONFIG)
    return found


def _words(options, name):
    """The arguments, where any of them matters here."""
    text = options.get(name) or ""
    matters = any(it in text.lower() for it in ("stricthostkeychecking", "knownhostscommand"))
    return shlex.split(text) if matters else []


def _decision(words):
    """Whether ssh takes a key that it does not know; nothing where none of the words says so."""
    said = next(filter(None, map(STRICT.match, words)), None)
    return said and said[1].lower() in ("no", "off", "false", "accept-new")


def _ssh_trusts(options):
    """What ssh makes of its files, without a connection; another program than the usual one is not asked."""
    if options.get("ssh_executable") != "ssh":
        return False
    words = [word for name in ARGUMENTS[:3] for word in shlex.split(options.get(name) or "")]
    done = subprocess.run(
        ["ssh", "-G", *words, "--", str(options.get("host"))], stdin=subprocess.DEVNULL, capture_output=True,
        encoding="utf-8", errors="replace", timeout=SSH_SECONDS, check=False,
    )
    lines = done.stdout.splitlines()
    return _decision(lines) or any(map(KEYS_COMMAND.match, lines))


def _reason(option, options, variables):
    """Which variable, option of ansible-playbook or setting gave the value, by their order in Ansible."""
    if option == SSH_CONFIG:
        return option
    names = SWITCHES[option][1] if option in SWITCHES else (f"ansible_{option}",)
    # The usual connection knows nothing of paramiko.
    known = [name for name in names if "paramiko" not in name or "ssh_common_args" not in options]
    given = [name for name in known if variables.get(name) is not None]
    if given:
        return given[0]
    return f"--{option.replace('_', '-')}" if context.CLIARGS.get(option) else SETTINGS


def _bit(reason):
    return 1 << REASONS.index(reason)

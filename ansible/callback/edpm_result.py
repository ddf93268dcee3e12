"""Writes what a playbook run did to each host into the container's termination message."""

from __future__ import annotations

import atexit
import json
import os
import re

from ansible import constants, context
from ansible.executor.stats import AggregateStats
from ansible.executor.task_executor import TaskExecutor
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.callback import CallbackBase
from ansible.plugins.vars import BaseVarsPlugin
from ansible.template import Templar

# Ansible loads the file twice: as a callback, and as a vars plugin, which it asks while it reads the inventory.
DOCUMENTATION = """
name: edpm_result
type: aggregate
short_description: one result per host in the container's termination message
description:
  - At the end of a run it writes one line of JSON, at most 4096 bytes, that tells for each host of EDPM_RUN_HOSTS
    whether it is done (o), failed (f), unreachable (u), refused our key (k), has another host key (h),
    was never touched (n) or is unknown (?), how many tasks changed it, and which tasks failed.
  - Plays for localhost run where Ansible does. If one of them fails, no host is done; if all of the run's own plays are
    for localhost, the hosts that no play touched are as done as those plays.
  - As long as the run goes on, the line tells what is known so far, and that it is unfinished.
  - A host that takes longer for a task than ANSIBLE_TASK_TIMEOUT says is unreachable, even where the play ignores it.
  - Where the plugin edpm_key_checks saw that hosts' own ssh keys are not checked, the line names some of the hosts, and
    what turned the check off.
  - What a play gives to set_stats as edpm_report, for the whole run, follows if there is room for all of it.
  - Where a limit leaves no host, Ansible ends before it loads a callback; the line then says so.
options:
  stage:
    description: When Ansible asks for variables; there are none, so once is enough.
    type: str
    default: inventory
    choices: [inventory]
"""

# A pod of many containers keeps less of each; the operator counts them.
LIMIT = min(4096, int(os.environ.get("EDPM_RESULT_LIMIT") or 4096))
MESSAGE_LINES = 8
MESSAGE_CHARS = 800
SHORTEST_MESSAGE = 40
HIDDEN = "(hidden by no_log)"
UNCHECKED_HOSTS = 5
NAME_CHARS = 63

# What ssh itself says; a remote "Permission denied" on a file has no list of methods behind it.
KEY_REFUSED = re.compile(r"Permission denied \([a-z,-]+\)|Too many authentication failures|Invalid/incorrect password")
# The play that ansibleee-operator puts before a run's own: a host that only it touched was not reached by the run. It
# lies beside this file's folder, so that no play of anybody else's is taken for it.
PLAYS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plays")
OWNER_CHECK = os.path.join(PLAYS, "owner-check.yaml")
FACTS = os.path.join(PLAYS, "facts.yaml")
# What all of its variables begin with.
OWNER_VARIABLES = "edpm_owner"
HOST_KEY = re.compile(
    r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED|No \S+ host key is known for"
)
# What a terminal obeys instead of showing it: whole escape sequences first, then what is left of them, and the marks
# that turn the direction of a text.
CONTROLS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


class CallbackModule(CallbackBase):
    """Collects results as they come; a fault of its own never makes a run fail."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "edpm_result"
    CALLBACK_NEEDS_ENABLED = False
    CALLBACK_NEEDS_WHITELIST = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.playbook = None
        self.play = None
        self.play_number = 0
        self.failures = []  # in order of time: dicts with host, play_number, entry
        self.unreachable = {}  # host -> (class, entry), as long as nothing came from it afterwards
        self.last_play_of = {}  # host -> number of the last play that had a result of it
        self.stopped = {}  # host -> (number, name) of the play that ended for it
        self.all_or_none = {}  # number -> name of the plays that one failure ends for all hosts
        self.checked = set()  # hosts that our own plays came to
        self.played = set()  # hosts with a result of any other play
        self.is_for_hosts = False  # whether any other play was for more than localhost
        self.slow = {}  # host -> the first task that took too long
        self.said = AggregateStats()  # what plays themselves gave to set_stats
        self.keys = b""  # what was seen of unchecked keys when that was looked at last
        self.told = None  # the unfinished message that was written last

    # -- events -------------------------------------------------------------

    def v2_playbook_on_start(self, playbook):
        self.playbook = playbook

    def v2_playbook_on_play_start(self, play):
        self._guard(self._play_starts, play)

    def v2_runner_on_ok(self, result):
        self._guard(self._host_did, result)
        self._guard(self._play_says, result)

    def v2_runner_on_skipped(self, result):
        self._guard(self._host_did, result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._guard(self._host_failed, result, ignore_errors)

    def v2_runner_on_unreachable(self, result):
        self._guard(self._host_unreachable, result)

    def v2_playbook_on_stats(self, stats):
        self._guard(self._finish, stats)

    def _guard(self, function, *args):
        try:
            function(*args)
        except Exception as error:  # pylint: disable=broad-except
            self._display.warning(f"edpm_result: {type(error).__name__}: {error}")

    # -- bookkeeping --------------------------------------------------------

    def _play_starts(self, play):
        self._close_play()
        self.play = play
        self.play_number += 1
        if _is_check(play):
            self._protect_check(play)
        _honour_any_errors_fatal(play)
        if not (_has_task_of(play, OWNER_CHECK) or _has_task_of(play, FACTS) or _is_for_localhost(play)):
            self.is_for_hosts = True

    def _protect_check(self, play):
        """No option of the run reaches the check: neither its tags nor its extra variables.

        It sees the variables that lie beside the run's own playbook, so that it asks the machine that the run changes.
        """
        for holder in [play, *(block._play for block in play.tasks)]:
            holder.only_tags, holder.skip_tags = frozenset(["all"]), frozenset()
        extra = play.get_variable_manager().extra_vars
        for name in [name for name in extra if name.startswith(OWNER_VARIABLES)]:
            del extra[name]
        own = [it for it in self.playbook.get_plays() if not _is_check(it)]
        if own and own[0]._included_path:
            play.get_loader().set_basedir(own[0]._included_path)

    def _close_play(self):
        """Notes the hosts that the play left out, whoever's failure was the reason."""
        for host in getattr(self.play, "_removed_hosts", None) or []:
            self.stopped[host] = (self.play_number, self.play.get_name())
        if getattr(self.play, "any_errors_fatal", False) is True:
            self.all_or_none[self.play_number] = self.play.get_name()

    def _host_did(self, result):
        if not self._is_of_check(result):
            self._host_answered(result)

    def _is_of_check(self, result):
        # A host that only our own plays came to was not reached by the run's.
        is_ours = _file_of(result._task) in (OWNER_CHECK, FACTS)
        (self.checked if is_ours else self.played).add(result._host.get_name())
        return _is_task_of_check(result._task)

    def _host_answered(self, result, is_told=True):
        host = result._host.get_name()
        is_new = host not in self.last_play_of
        self.last_play_of[host] = self.play_number
        # An unreachable host takes part in nothing more, so a result means that it was called back.
        was_unreachable = self.unreachable.pop(host, None)
        if is_told and (is_new or was_unreachable or self._has_news_of_keys()):
            self._tell()

    def _has_news_of_keys(self):
        checks = _key_checks()
        before, self.keys = self.keys, checks.seen() if checks else b""
        return self.keys != before

    def _host_failed(self, result, ignore_errors):
        if self._is_of_check(result) and ignore_errors:
            return
        self._host_answered(result, is_told=False)
        host, entry = self._entry(result)
        if _is_slow(result):
            self._note_slow(host, entry)
        elif not ignore_errors and _last_part(result._task.action) == "wait_for_connection":
            self.unreachable[host] = (_connection_class(result._result), entry)
        if not ignore_errors:
            self.failures.append({"host": host, "play": self.play_number, "entry": entry})
        self._tell()

    def _host_unreachable(self, result):
        self._is_of_check(result)
        if getattr(result._task, "ignore_unreachable", False):
            return
        host, entry = self._entry(result)
        self.last_play_of[host] = self.play_number
        if _is_slow(result):
            self._note_slow(host, entry)
        self.unreachable[host] = (_connection_class(result._result), entry)
        self._tell()

    def _note_slow(self, host, entry):
        entry["message"] = (
            f"no answer within {constants.TASK_TIMEOUT} s: the host hangs, or the task needs longer "
            "(then raise ANSIBLE_TASK_TIMEOUT in env)"
        )
        self.slow.setdefault(host, entry)

    def _play_says(self, result):
        """Only set_stats counts, which runs here: any module's answer may have ansible_stats, for it is the host's."""
        if _last_part(result._task.action) != "set_stats":
            return
        for item in result._result.get("results") or [result._result]:
            stats = item.get("ansible_stats") or {}
            if stats.get("per_host"):
                continue
            keep = self.said.update_custom_stats if stats.get("aggregate") else self.said.set_custom_stats
            for name, value in (stats.get("data") or {}).items():
                keep(name, value)

    def _entry(self, result):
        host, task = result._host.get_name(), result._task
        return host, {
            "host": host,
            "play": _printable(self.play.get_name() if self.play else ""),
            "task": _printable(task.get_name()),
            "path": task.get_path() or "",
            "message": _message(result._result, bool(task.no_log is True)),
        }

    # -- on the way ---------------------------------------------------------

    def _tell(self):
        """Writes what is known so far; of whoever is not in trouble nobody knows yet how it ends."""
        letters, entries = "", []
        for host in _run_hosts():
            state, entry = self._state_so_far(host)
            letters += state
            entries += [entry] if entry else []
        text = _fit(letters, [], _varied_first(entries), unfinished=True, **self._unchecked())
        if text != self.told:
            _write(text)
            self.told = text

    def _state_so_far(self, host):
        trouble = self._connection_trouble(host)
        if trouble:
            return trouble
        removed = host in (getattr(self.play, "_removed_hosts", None) or [])
        if removed or self.stopped.get(host, (0, ""))[0] >= self.last_play_of.get(host, 1):
            mine = [it for it in self.failures if it["host"] == host and it["play"] == self.last_play_of.get(host)]
            if mine:
                return "f", mine[-1]["entry"]
        return "?", None

    def _connection_trouble(self, host):
        """The host's letter and entry, where it did not answer; that it was slow explains all that came after."""
        if host in self.slow:
            return "u", self.slow[host]
        return self.unreachable.get(host)

    def _unchecked(self):
        """What to tell of hosts whose own keys are not checked; nothing where all are."""
        checks = _key_checks()
        # A plugin that was not loaded has seen nothing of any host.
        hosts, reasons = checks.unchecked() if checks else (_run_hosts(), ["no_answer"])
        if not hosts:
            return {}
        names = {name for name in self.play.get_variable_manager().extra_vars if name.startswith("ansible_")}
        told = {
            "hosts": [_cut(_printable(host), NAME_CHARS) for host in hosts[:UNCHECKED_HOSTS]],
            "by": [f"-e {reason}" if reason in names else reason for reason in reasons],
        }
        more = len(hosts) - len(told["hosts"])
        return {"unchecked": {**told, "more": more} if more else told}

    # -- the end ------------------------------------------------------------

    def _finish(self, stats):
        self._close_play()
        self._stop_with_others(stats)
        hosts = _run_hosts()
        states, entries = {}, []
        for host in sorted(set(hosts) | set(stats.processed) | set(self.stopped)):
            states[host], found = self._state(host, stats)
            entries.extend(found)
        self._count_localhost(hosts, states)
        text = _fit_with_report(
            self.said.custom.get("_run", {}).get("edpm_report"),
            "".join(states[host] for host in hosts),
            [stats.changed.get(host, 0) for host in hosts],
            _varied_first(entries),
            **self._unchecked(),
        )
        _write(text)

    def _count_localhost(self, hosts, states):
        """Puts what became of plays for localhost into the letters of the run's hosts, which have none of their own."""
        ends = [states[name] for name in constants.LOCALHOST if name in states and name not in hosts]
        has_failed = any(end not in "on" for end in ends)
        for host in hosts:
            if has_failed and states[host] in "on":
                states[host] = "f"
            elif "o" in ends and states[host] == "n" and not self.is_for_hosts:
                states[host] = "o"

    def _stop_with_others(self, stats):
        """Older versions of Ansible do not tell whom any_errors_fatal stopped."""
        in_trouble = {self.last_play_of.get(host) for host in stats.processed if self._own_trouble(host, stats)}
        for host, number in self.last_play_of.items():
            if number in in_trouble and number in self.all_or_none:
                self.stopped.setdefault(host, (number, self.all_or_none[number]))

    def _own_trouble(self, host, stats):
        return bool(self._connection_trouble(host)) or bool(self._real_failures(host, stats))

    def _state(self, host, stats):
        """The host's letter and the failures that explain it."""
        trouble = self._connection_trouble(host)
        if trouble:
            return trouble[0], [trouble[1]]
        real = self._real_failures(host, stats)
        if real:
            return "f", [failure["entry"] for failure in real]
        if host in self.stopped and not self._goes_on(host, stats):
            return "f", [self._stopped_entry(host)]
        if host in stats.processed and (host in self.played or host not in self.checked):
            return "o", []
        return "n", []

    def _real_failures(self, host, stats):
        """Ansible counts failures that nobody rescued; they are the last ones, for they end the host's part."""
        count = stats.failures.get(host, 0)
        if not count:
            return []
        mine = [failure for failure in self.failures if failure["host"] == host][-count:]
        # `meta: clear_host_errors` forgives: a later play has results of a forgiven host only.
        return [failure for failure in mine if failure["play"] == self.last_play_of.get(host)]

    def _goes_on(self, host, stats):
        """Whether a host that a play left out had trouble of its own, forgiven since, or was called back."""
        number, _ = self.stopped[host]
        own_trouble = stats.failures.get(host, 0) or stats.dark.get(host, 0)
        return bool(own_trouble) or self.last_play_of.get(host, 0) > number

    def _stopped_entry(self, host):
        return {
            "host": host,
            "play": _printable(self.stopped[host][1]),
            "task": "",
            "path": "",
            "message": "stopped because of another host's failure (any_errors_fatal, max_fail_percentage or run_once)",
        }


class VarsModule(BaseVarsPlugin):
    """Gives no variables; it is there before Ansible finds that a limit leaves no host, and ends."""

    is_watching = False

    def get_vars(self, loader, path, entities, cache=True):
        if not VarsModule.is_watching:
            VarsModule.is_watching = True
            atexit.register(_tell_if_nobody_is_left, loader, os.getpid())
        return {}


def _tell_if_nobody_is_left(loader, pid):
    """The last act of a process that said nothing else: its workers are others, and so is a nested one."""
    try:
        if os.getpid() == pid and not _has_told() and _limit_leaves_nobody(loader):
            _write(_encode("n" * len(_run_hosts()), [], [], 0, unmatched=True))
    except Exception:  # pylint: disable=broad-except
        pass  # then the run has no message, and its result is unknown


def _limit_leaves_nobody(loader):
    limit = context.CLIARGS.get("subset")
    if not limit:
        return False
    # Here and not above: where a version of Ansible has them elsewhere, the callback still works.
    from ansible.cli import CLI
    from ansible.errors import AnsibleError
    from ansible.inventory.manager import InventoryManager

    inventory = InventoryManager(loader=loader, sources=context.CLIARGS.get("inventory"))
    try:
        CLI.get_host_list(inventory, limit)
    except AnsibleError:
        return True
    return False


def _result_file():
    return os.environ.get("EDPM_RESULT_FILE", "/dev/termination-log")


def _has_told():
    path = _result_file()
    return os.path.exists(path) and os.path.getsize(path) > 0


def _write(text):
    """Replaces the message in one write, so that it is whole whenever the process is killed.

    Blanks, which JSON allows at the end, cover the rest of a longer message until the file is cut.
    """
    target = os.open(_result_file(), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.pwrite(target, text.ljust(os.fstat(target).st_size), 0)
        os.ftruncate(target, len(text))
    finally:
        os.close(target)


def _key_checks():
    """The plugin that sees whether hosts' keys are checked; None where it was not loaded."""
    return getattr(TaskExecutor, "edpm_key_checks", None)


def _run_hosts():
    return [name for name in os.environ.get("EDPM_RUN_HOSTS", "").split(",") if name]


def _honour_any_errors_fatal(play):
    """Makes any_errors_fatal: "{{ variable }}" mean the variable's value.

    Ansible never resolves a template there and takes its text for true: with such a header one bad host would stop
    all others although the variable says false.
    """
    if not isinstance(play.any_errors_fatal, str):
        return
    variables = play.get_variable_manager().get_vars(play=play)
    value = boolean(Templar(loader=play.get_loader(), variables=variables).template(play.any_errors_fatal))
    # Tasks ask the play as it was written, of which Ansible gives us a copy.
    for holder in [play, *(block._play for block in [*play.pre_tasks, *play.tasks, *play.post_tasks])]:
        if isinstance(holder.any_errors_fatal, str):
            holder.any_errors_fatal = value


def _is_check(play):
    return _has_task_of(play, OWNER_CHECK)


def _has_task_of(play, file):
    return any(_file_of(task) == file for block in play.tasks for task in block.block)


def _is_for_localhost(play):
    # Here and not above, as in _limit_leaves_nobody.
    from ansible.inventory.manager import split_host_pattern

    return all(name in constants.LOCALHOST for name in split_host_pattern(play.hosts))


def _is_task_of_check(task):
    return _file_of(task) == OWNER_CHECK


def _file_of(task):
    return (task.get_path() or "").rpartition(":")[0]


def _last_part(action):
    return str(action).rsplit(".", 1)[-1]


def _is_slow(result):
    """Whether the time limit of all tasks ran out; a limit that the play itself sets is the play's business."""
    items = result._result.get("results") or [result._result]
    is_late = any(isinstance(item, dict) and item.get("timedout") for item in items)
    return is_late and getattr(result._task, "timeout", None) == getattr(constants, "TASK_TIMEOUT", 0)


def _connection_class(result):
    text = _text(result.get("msg", ""))
    if HOST_KEY.search(text):
        return "h"
    if KEY_REFUSED.search(text):
        return "k"
    return "u"


def _message(result, no_log):
    """The first lines of what a failed task said, never of a hidden one."""
    if no_log or result.get("_ansible_no_log") or "censored" in result:
        return HIDDEN
    for item in result.get("results") or []:
        if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
            label = item.get("_ansible_item_label", item.get("item", ""))
            text = _message(item, False)
            return text if text == HIDDEN else _shorten(f"item {label}: {text}")
    parts = [result.get("msg") or result.get("reason") or ""]
    parts += [result[key] for key in ("module_stderr", "stderr", "stdout", "module_stdout") if result.get(key)]
    if result.get("assertion") and result.get("msg") == "Assertion failed":
        parts.append(f"assertion: {result['assertion']}")
    if not any(parts):
        parts = [result.get("exception") or "failed without a message"]
    return _shorten("\n".join(_text(part) for part in parts))


def _text(value):
    if isinstance(value, (list, tuple)):
        return "\n".join(_text(part) for part in value)
    return str(value)


def _printable(text):
    return CONTROLS.sub("", text)


def _shorten(text):
    # What is shown is at the begin; a host's answer may be long.
    text = _printable(text[: 64 * MESSAGE_CHARS].replace("\r", "\n"))
    lines = [line.rstrip() for line in text.splitlines() if line.strip(" @")]  # ssh frames its warnings in @
    return _cut("\n".join(lines[:MESSAGE_LINES]) + ("…" if len(lines) > MESSAGE_LINES else ""), MESSAGE_CHARS)


def _cut(text, length):
    return text if len(text) <= length else text[: length - 1] + "…"


def _varied_first(entries):
    """Different failures before repetitions of one on more hosts, so that trimming loses the least."""
    first, repeated, seen = [], [], set()
    for entry in entries:
        key = (entry["path"], entry["task"], entry["message"].replace(entry["host"], ""))
        (repeated if key in seen else first).append(entry)
        seen.add(key)
    return first + repeated


def _fit(hosts, changed, entries, limit=LIMIT, **marks):
    """The message in at most `limit` bytes: entries go first, then the last one's text, then counts."""
    room = limit - len(_encode(hosts, changed, [], 0, **marks))
    for kept in range(_most(entries, room), 0, -1):
        text = _encode(hosts, changed, entries[:kept], len(entries) - kept, **marks)
        if len(text) <= limit:
            return text
    if entries:
        for length in range(MESSAGE_CHARS, SHORTEST_MESSAGE - 1, -20):
            shorter = dict(entries[0], message=_cut(entries[0]["message"], length))
            text = _encode(hosts, changed, [shorter], len(entries) - 1, **marks)
            if len(text) <= limit:
                return text
    for letters, counts in ((hosts, changed), (hosts, []), ("", [])):
        text = _encode(letters, counts, [], len(entries), **marks)
        if len(text) <= limit:
            break
    return text


def _most(entries, room):
    """How many entries fit at most; each is encoded once, and those that come too late never are."""
    room += 1  # the first one has no comma before it
    for number, entry in enumerate(entries):
        room -= len(_bytes(entry)) + 1
        if room < 0:
            return number
    return len(entries)


def _fit_with_report(report, hosts, changed, entries, **marks):
    """The message and what a play itself says, for which failures of hosts yield; it is left out where
    it does not fit beside the letters and counts of all hosts."""
    if report is not None:
        # Older versions of Ansible make a dictionary of a text that looks like one.
        told = _printable(report if isinstance(report, str) else _json(report))
        room = len(_bytes({"report": told})) - 1
        fewest = _encode(hosts, changed, [], len(entries), **marks)
        if len(fewest) + room <= LIMIT:
            text = _fit(hosts, changed, entries, LIMIT - room, **marks)
            return _bytes({**json.loads(text), "report": told})
    return _fit(hosts, changed, entries, **marks)


def _json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bytes(value):
    return _json(value).encode("utf-8", errors="replace")


def _encode(hosts, changed, entries, dropped, **marks):
    message = {"v": 1, "hosts": hosts, "changed": changed, "failures": entries, **marks}
    if dropped:
        message["more"] = dropped
    return _bytes(message)

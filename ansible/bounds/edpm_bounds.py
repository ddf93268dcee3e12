"""Bounds what one host costs the others: the time of its tasks, how much it may answer, and what it may break."""

from __future__ import annotations

import mmap
import os
import re
import signal
import subprocess
import time
from multiprocessing.connection import Connection

from ansible import constants
from ansible.errors import AnsibleConnectionFailure
from ansible.executor import task_executor
from ansible.executor.task_executor import TaskExecutor
from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase
from ansible.plugins.connection import ssh
from ansible.utils.display import Display

DOCUMENTATION = """
name: edpm_bounds
type: aggregate
short_description: what one host costs the others is bounded
description:
  - Ansible limits the time of each attempt of a task alone (ANSIBLE_TASK_TIMEOUT), and neither what it computes
    around it nor how much a host answers. README.md of the folder above says what is bounded here, and how.
  - A host that meets a bound is left out of the rest as an unreachable one, whatever the play says of errors.
"""

SLOW_TASKS = 2
SLOW_FACTOR = 4  # limits of a task
CLEANUP_SECONDS = 30
SSH_END_SECONDS = 10
OUTPUT_LIMIT = 8 * 1024 * 1024  # bytes of one answer
PARTS_LIMIT = 250_000  # lists, dictionaries, their entries and lines of one answer: each costs some 100 bytes
ANSWERS_FACTOR = 8  # answers of that size, of one host in one run

# What a host cost so far, in memory that its tasks' processes share.
SLOW, SECONDS, BYTES, PARTS, REFUSED = range(5)
TOO_MUCH_TO_COMPUTE, TOO_LONG_ANSWER, TOO_MANY_PARTS, TOO_MANY_ANSWERS = range(1, 5)

FLAGS = {"changed", "failed", "failed_when_result", "skipped", "unreachable"}
# Of JSON, what its structure is not; never backtracks.
STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.S)
# What a terminal obeys, but colours, and marks that turn the direction of a text.
CONTROLS = re.compile(
    r"(\x1b\[(?:0|[01];[39][0-7]|38;5;[0-9]{1,3})m)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


class CallbackModule(CallbackBase):
    """Keeps what each host cost; a fault of its own never makes a run fail."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "edpm_bounds"
    CALLBACK_NEEDS_ENABLED = False
    CALLBACK_NEEDS_WHITELIST = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.costs = {}  # host -> its numbers
        self.current = None  # in the process of a task: those of its host
        self.is_late = False  # there too: whether the limit of the present attempt ran out
        try:
            _bound(self)
        except Exception as error:  # pylint: disable=broad-except
            self._display.warning(f"edpm_bounds: {type(error).__name__}: {error}")

    def v2_runner_on_start(self, host, task):
        # Before the process is forked, so that it shares them.
        self.of(host)

    def of(self, host):
        name = host.get_name()
        if name not in self.costs:
            self.costs[name] = memoryview(mmap.mmap(-1, 5 * 8)).cast("d")
        return self.costs[name]


def _task_timeout():
    """Seconds that a task may take; 0 where nothing bounds it."""
    return getattr(constants, "TASK_TIMEOUT", 0)


def _limit(name, usual):
    return int(os.environ.get(name) or usual)


def _slow_limit():
    return _limit("EDPM_SLOW_LIMIT", SLOW_FACTOR * _task_timeout())


def _compute_limit():
    return _limit("EDPM_COMPUTE_LIMIT", _task_timeout())


def _output_limit():
    return _limit("EDPM_OUTPUT_LIMIT", OUTPUT_LIMIT)


def _is_slow(result, task):
    """Whether the limit of all tasks ran out; one that the play itself sets is the play's business."""
    return isinstance(result, dict) and bool(result.get("timedout")) and task.timeout == _task_timeout()


def _why_left_out(cost):
    """Why a host gets no more attempts; nothing where it does."""
    if cost[SLOW] >= SLOW_TASKS:
        return "the host took too long for its tasks"
    if _task_timeout() and cost[SECONDS] > _slow_limit():
        return (
            f"the host's slow and repeated attempts took more than {_slow_limit()} s together: it hangs, or they need "
            "longer (then raise ANSIBLE_TASK_TIMEOUT in env)"
        )
    return {
        0: "",
        TOO_MUCH_TO_COMPUTE: f"what the host answers took more than {_compute_limit()} s to compute with",
        TOO_LONG_ANSWER: f"the host answered with more than {_output_limit()} bytes at once",
        TOO_MANY_PARTS: f"the host answered with more than {PARTS_LIMIT} entries or lines at once",
        TOO_MANY_ANSWERS: f"the host's answers are together more than {ANSWERS_FACTOR} of the largest that one may be",
    }[int(cost[REFUSED])]


def _bound(callback):
    """Changes what Ansible executes in the processes that it forks from this one, one for a task and host."""
    if getattr(TaskExecutor, "edpm_is_bounded", False):
        return
    TaskExecutor.edpm_is_bounded = True
    ssh.subprocess = _Subprocess()
    _bound_display(Display)
    _await_end_of_ssh(ssh.Connection)
    _mark_late(task_executor, callback)
    _bound_loops(TaskExecutor, callback)
    _bound_polls(TaskExecutor)
    _bound_cleanup(ActionBase, callback)
    _bound_answers(ActionBase, callback)
    _bound_attempts(TaskExecutor, callback)


def _bound_display(display_class):
    display = display_class.display

    def clean_display(self, msg, *args, **kwargs):
        if isinstance(msg, str):
            msg = CONTROLS.sub(lambda found: found[1] or "", msg)
        return display(self, msg, *args, **kwargs)

    display_class.display = clean_display


def _await_end_of_ssh(connection_class):
    """Where ssh ends while Ansible writes a module to it, its stderr has the cause. Ansible waits a millisecond for the
    process to exit, and on a busy machine reports the broken pipe in place of that cause."""
    send = connection_class._send_initial_data

    def patient_send(connection, pipe, data, process):
        try:
            send(connection, pipe, data, process)
        except AnsibleConnectionFailure:
            try:
                process.wait(SSH_END_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            if process.returncode is None:
                raise

    connection_class._send_initial_data = patient_send


def _mark_late(module, callback):
    """Before 2.18 ansible-core does not say that a limit ran out; since 2.19 it has no such function."""
    interrupt = getattr(module, "task_timeout", None)

    def marking_interrupt(*args):
        callback.is_late = True
        interrupt(*args)

    if interrupt:
        module.task_timeout = marking_interrupt


def _bound_loops(executor_class, callback):
    execute, run = executor_class._execute, executor_class.run

    def bounded_execute(executor, *args, **kwargs):
        if _why_left_out(callback.current):
            return {"failed": True, "msg": "left out: the host took too much for other items", "timedout": {}}
        executor.edpm_attempts, callback.is_late = 0, False
        result = _computed(callback, execute, executor, *args, **kwargs)
        if callback.is_late and result.get("failed"):
            result.setdefault("timedout", {"period": executor._task.timeout})
        if result.get("failed") and _is_slow(result, executor._task):
            callback.current[SLOW] += 1
        return result

    def bounded_run(executor):
        task, cost = executor._task, callback.of(executor._host)
        callback.current = cost
        # Whoever was left out, and called back by the play, is left out again.
        result = {} if _why_left_out(cost) else _computed(callback, run, executor)
        why = _why_left_out(cost)
        if why:
            _make_unreachable(result, task, why)
        return result

    executor_class._execute, executor_class.run = bounded_execute, bounded_run


def _computed(callback, function, *args, **kwargs):
    """What the function returns; Ansible limits neither what conditions and arguments cost, nor what results do."""
    limit = _compute_limit() if _task_timeout() else 0
    result = _within(limit, None, function, *args, timer=signal.ITIMER_VIRTUAL, **kwargs)
    if result is None:
        callback.current[REFUSED] = TOO_MUCH_TO_COMPUTE
        result = {"failed": True, "msg": _why_left_out(callback.current)}
    return result


def _make_unreachable(result, task, why):
    """Unreachable hosts are left out of the rest, whatever the play says of errors."""
    items = result.get("results")
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict):
            item.pop("failed", None)
            if item.get("timedout"):
                item["unreachable"] = True
    result.pop("failed", None)
    result.update(unreachable=True, msg=why)
    task.ignore_unreachable = False


def _bound_polls(executor_class):
    poll = executor_class._poll_async_result

    def bounded_poll(executor, *args, **kwargs):
        seconds = executor._task.async_val + (_task_timeout() or 0)
        late = {"failed": True, "msg": f"no answer within {seconds} s", "timedout": {"period": seconds}}
        return _within(seconds if _task_timeout() else 0, late, poll, executor, *args, **kwargs)

    executor_class._poll_async_result = bounded_poll


def _bound_cleanup(action_class, callback):
    """It is also what ends each attempt."""
    cleanup = action_class.cleanup

    def bounded_cleanup(action, *args, **kwargs):
        _count_time(action, callback)
        seconds = _limit("EDPM_CLEANUP_LIMIT", CLEANUP_SECONDS) if _task_timeout() else 0
        return _within(seconds, None, cleanup, action, *args, **kwargs)

    action_class.cleanup = bounded_cleanup


def _bound_attempts(executor_class, callback):
    """Each attempt has a handler of its own."""
    make = executor_class._get_action_handler_with_module_context

    def timed_make(executor, *args, **kwargs):
        why = _why_left_out(callback.current)
        if why:
            raise _TooLong({"failed": True, "msg": why})
        made = make(executor, *args, **kwargs)
        made[0].edpm_began = (time.monotonic(), executor.edpm_attempts > 0)
        executor.edpm_attempts += 1
        return made

    executor_class._get_action_handler_with_module_context = timed_make


def _count_time(action, callback):
    """Counts what is near the limit, and what is repeated: an honest host may need long, but not again and again."""
    began, is_repeated = getattr(action, "edpm_began", (None, False))
    # What bypasses the loop of hosts is no host's; a limit of the play itself is the play's business.
    # ActionBase itself has the mark since 2.16 alone.
    bypasses = getattr(action, "BYPASS_HOST_LOOP", False)
    if began is None or bypasses or action._task.timeout != _task_timeout():
        return
    action.edpm_began = (None, False)
    seconds = time.monotonic() - began
    if is_repeated or seconds > _task_timeout() / 2:
        callback.current[SECONDS] += seconds


def _bound_answers(action_class, callback):
    execute, parse = action_class._low_level_execute_command, action_class._parse_returned_data

    def bounded_execute(action, *args, **kwargs):
        answer = execute(action, *args, **kwargs)
        length = sum(len(answer.get(key) or "") for key in ("stdout", "stderr"))
        lines = sum(len(answer.get(key) or "") for key in ("stdout_lines", "stderr_lines"))
        _count_answer(callback.current, length, lines)
        return answer

    def bounded_parse(action, res, *args, **kwargs):
        structure = STRINGS.sub("", res.get("stdout") or "")
        _count_answer(callback.current, 0, sum(structure.count(sign) for sign in "[{,"))
        answer = parse(action, res, *args, **kwargs)
        texts = [answer.get(key) for key in ("stdout", "stderr") if isinstance(answer.get(key), str)]
        _count_answer(callback.current, 0, sum(len(text.splitlines()) for text in texts))
        return _well_formed(answer)

    action_class._low_level_execute_command, action_class._parse_returned_data = bounded_execute, bounded_parse


def _count_answer(cost, length, parts):
    """Refuses what would take too much memory and time to read, here and in the process that collects results."""
    cost[BYTES] += length
    cost[PARTS] += parts
    if length > _output_limit():
        cost[REFUSED] = TOO_LONG_ANSWER
    elif parts > PARTS_LIMIT:
        cost[REFUSED] = TOO_MANY_PARTS
    elif cost[BYTES] > ANSWERS_FACTOR * _output_limit() or cost[PARTS] > ANSWERS_FACTOR * PARTS_LIMIT:
        cost[REFUSED] = TOO_MANY_ANSWERS
    if cost[REFUSED]:
        raise AnsibleConnectionFailure(_why_left_out(cost))


def _well_formed(answer):
    """The answer, or the host's failure where Ansible would end the run of all hosts about it."""
    # Only set_stats has the one, which runs here, and only Ansible itself the other.
    answer.pop("ansible_stats", None)
    answer.pop("timedout", None)
    facts, results = answer.get("ansible_facts", {}), answer.get("results")
    results = results if isinstance(results, list) else []  # Ansible renames others
    malformed = [] if isinstance(facts, dict) else ["ansible_facts"]
    if not all(isinstance(item, (dict, list, str)) for item in results):
        malformed.append("results")
    if malformed:
        message = f"the host's answer is malformed: {' and '.join(malformed)} cannot be what the host says"
        return {"failed": True, "_ansible_parsed": False, "msg": message}
    for item in [answer, *results]:
        for flag in FLAGS.intersection(item) if isinstance(item, dict) else ():
            # Ansible adds them up.
            item[flag] = bool(item[flag])
    return answer


class _TooLong(BaseException):
    """Not an Exception, so that nothing on the way takes it for a failure of its own."""


def _within(seconds, otherwise, function, *args, timer=signal.ITIMER_REAL, **kwargs):
    """What the function returns, or something else where it does not end in time; 0 is no limit."""
    if not seconds:
        return function(*args, **kwargs)

    def give_up(_signal, frame):
        while frame:
            # Half a message would be the end of the run; the timer comes again.
            if frame.f_code is Connection.send_bytes.__code__:
                return
            frame = frame.f_back
        raise _TooLong

    sign = signal.SIGALRM if timer == signal.ITIMER_REAL else signal.SIGVTALRM
    before = signal.signal(sign, give_up)
    around = signal.setitimer(timer, seconds, 1)
    try:
        try:
            return function(*args, **kwargs)
        finally:
            signal.setitimer(timer, 0)
    except _TooLong as end:
        return end.args[0] if end.args else otherwise
    finally:
        signal.signal(sign, before)
        signal.setitimer(timer, *around)


class _Subprocess:
    """The module subprocess as the ssh connection sees it: what a host sends is bounded."""

    def __getattr__(self, name):
        return getattr(subprocess, name)

    @staticmethod
    def Popen(*args, **kwargs):
        process = subprocess.Popen(*args, **kwargs)
        for name in ("stdout", "stderr"):
            if getattr(process, name):
                setattr(process, name, _Bounded(getattr(process, name), _output_limit()))
        return process


class _Bounded:
    """A pipe of which no more than so many bytes are read."""

    def __init__(self, pipe, limit):
        self._pipe, self._left, self._limit = pipe, limit, limit

    def __getattr__(self, name):
        return getattr(self._pipe, name)

    def read(self, *args):
        # Of a host that never stops writing, read() would never return.
        chunk = self._pipe.read(*args) if args else self._pipe.read1(1 << 20)
        self._left -= len(chunk or b"")
        if self._left < 0:
            raise AnsibleConnectionFailure(f"the host sent more than {self._limit} bytes: it is not listened to any more")
        return chunk

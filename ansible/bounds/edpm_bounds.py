"""Bounds what one host costs the others: the time of its tasks, and how much it may answer."""

from __future__ import annotations

import os
import signal
import subprocess

from ansible import constants
from ansible.errors import AnsibleConnectionFailure
from ansible.executor.task_executor import TaskExecutor
from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase
from ansible.plugins.connection import ssh

DOCUMENTATION = """
name: edpm_bounds
type: aggregate
short_description: what one host costs the others is bounded
description:
  - Ansible limits the time of each attempt of a task alone (ANSIBLE_TASK_TIMEOUT), so that a loop of 20 items would
    wait 20 times, and what follows a task without any limit. Here a host that met the limit twice in a run gets
    no more attempts, and is left out of the rest as an unreachable one, whatever the play says of errors.
  - A host that answers with more than EDPM_OUTPUT_LIMIT bytes at once (64 MiB) is unreachable, too.
"""

SLOW_TASKS = 2
CLEANUP_SECONDS = 30
OUTPUT_LIMIT = 64 * 1024 * 1024


class CallbackModule(CallbackBase):
    """Counts whose tasks took too long; a fault of its own never makes a run fail."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "edpm_bounds"
    CALLBACK_NEEDS_ENABLED = False
    CALLBACK_NEEDS_WHITELIST = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.slow = {}  # host -> how often a task of it took too long
        try:
            _bound(self)
        except Exception as error:  # pylint: disable=broad-except
            self._display.warning(f"edpm_bounds: {type(error).__name__}: {error}")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        items = result._result.get("results") or [result._result]
        count = sum(1 for item in items if _is_slow(item, result._task))
        host = result._host.get_name()
        self.slow[host] = self.slow.get(host, 0) + count


def _task_timeout():
    """Seconds that a task may take; 0 where nothing bounds it."""
    return getattr(constants, "TASK_TIMEOUT", 0)


def _is_slow(result, task):
    """Whether the limit of all tasks ran out; one that the play itself sets is the play's business."""
    return isinstance(result, dict) and bool(result.get("timedout")) and task.timeout == _task_timeout()


def _bound(callback):
    """Changes what Ansible executes in the processes that it forks from this one, one for a task and host."""
    if getattr(TaskExecutor, "edpm_is_bounded", False):
        return
    TaskExecutor.edpm_is_bounded = True
    _bound_loops(TaskExecutor, callback)
    _bound_polls(TaskExecutor)
    _bound_cleanup(ActionBase)
    ssh.subprocess = _Subprocess()


def _bound_loops(executor_class, callback):
    execute, run = executor_class._execute, executor_class.run

    def count(executor):
        return executor.edpm_slow + callback.slow.get(executor._host.get_name(), 0)

    def bounded_execute(executor, variables=None):
        if count(executor) >= SLOW_TASKS:
            return {"failed": True, "msg": "left out: the host took too long for other items", "timedout": {}}
        result = execute(executor, variables)
        if result.get("failed") and _is_slow(result, executor._task):
            executor.edpm_slow += 1
        return result

    def bounded_run(executor):
        executor.edpm_slow = 0
        result = run(executor)
        if executor.edpm_slow and count(executor) >= SLOW_TASKS:
            _make_unreachable(result, executor._task)
        return result

    executor_class._execute, executor_class.run = bounded_execute, bounded_run


def _make_unreachable(result, task):
    """Unreachable hosts are left out of the rest, whatever the play says of errors."""
    for item in [result, *(result.get("results") or [])]:
        item.pop("failed", None)
        if item is result or item.get("timedout"):
            item["unreachable"] = True
    task.ignore_unreachable = False


def _bound_polls(executor_class):
    poll = executor_class._poll_async_result

    def bounded_poll(executor, *args, **kwargs):
        seconds = executor._task.async_val + (_task_timeout() or 0)
        late = {"failed": True, "msg": f"no answer within {seconds} s", "timedout": {"period": seconds}}
        return _within(seconds if _task_timeout() else 0, late, poll, executor, *args, **kwargs)

    executor_class._poll_async_result = bounded_poll


def _bound_cleanup(action_class):
    cleanup = action_class.cleanup

    def bounded_cleanup(action, *args, **kwargs):
        seconds = int(os.environ.get("EDPM_CLEANUP_LIMIT") or CLEANUP_SECONDS) if _task_timeout() else 0
        return _within(seconds, None, cleanup, action, *args, **kwargs)

    action_class.cleanup = bounded_cleanup


class _TooLong(BaseException):
    """Not an Exception, so that nothing on the way takes it for a failure of its own."""


def _within(seconds, otherwise, function, *args, **kwargs):
    """What the function returns, or something else where it does not end in time; 0 is no limit."""

    def give_up(_signal, _frame):
        raise _TooLong

    before = signal.signal(signal.SIGALRM, give_up)
    left = signal.alarm(seconds)
    try:
        return function(*args, **kwargs)
    except _TooLong:
        return otherwise
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        signal.alarm(left)  # of a limit around this one


class _Subprocess:
    """The module subprocess as the ssh connection sees it: what a host sends is bounded."""

    def __getattr__(self, name):
        return getattr(subprocess, name)

    @staticmethod
    def Popen(*args, **kwargs):
        process = subprocess.Popen(*args, **kwargs)
        limit = int(os.environ.get("EDPM_OUTPUT_LIMIT") or OUTPUT_LIMIT)
        for name in ("stdout", "stderr"):
            if getattr(process, name):
                setattr(process, name, _Bounded(getattr(process, name), limit))
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

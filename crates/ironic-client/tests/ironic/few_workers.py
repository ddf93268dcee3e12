# Ironic, whose workers are free again when they are done.
"""Ironic 39.0.0 counts idle threads as taken, and drops them only when it takes new work: once all have been
taken at the same time, it answers 503 to everything until it is restarted. Here an idle one goes first."""

import sys

from ironic.command.singleprocess import main
from ironic.conductor import base_manager

counted = base_manager.reject_when_reached


def reject_when_reached(pool_size):
    """Refuses work like Ironic, but for threads that have none."""
    refuses = counted(pool_size)

    def rejector(executor, backlog):
        if executor.num_workers == pool_size and executor.get_num_idle_workers():
            executor._drop_thread()
        refuses(executor, backlog)

    return rejector


base_manager.reject_when_reached = reject_when_reached
sys.exit(main())

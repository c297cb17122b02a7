"""One thread for what must come out the same on every number of cores.

Threads divide a sum among themselves, and another division rounds otherwise. A result that is kept is therefore
computed by one thread, whatever the environment says (``OMP_NUM_THREADS`` and the like).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Let numpy's linear algebra, and torch if it is loaded, compute with one thread; put back what was set before.

    >>> from threadpoolctl import threadpool_info
    >>> with one_thread():
    ...     {pool["num_threads"] for pool in threadpool_info()} <= {1}
    True
    """
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 1
    with threadpool_limits(1):
        if torch:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch:
                torch.set_num_threads(before)


def in_main_thread() -> bool:
    """Whether this is the thread of the process that hears signals.

    >>> in_main_thread()
    True
    """
    return current_thread() is main_thread()

"""Kernels that are forked from one process, in which the libraries that every chapter imports are loaded already.

To start a kernel and to load these libraries takes a fifth of the time of a chapter. A forked kernel is a process of
its own, with a namespace of its own, as any other is. It has loaded nothing that the notebook's first cell does not
import (a notebook that imports less gets a kernel of the usual kind), so that no notebook can lean on a library for
which it did not ask.
"""

from __future__ import annotations

import ast
import gc
import multiprocessing
import os
import sys
import threading
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

#: What is loaded before the fork, besides what these modules import themselves.
PRELOADED = {"matplotlib.pyplot", "linewise.derive", "attnmath.figures", "linewise.ledger"}
#: ipykernel sets it when it starts; matplotlib reads it once, when it is loaded.
BACKEND = "module://matplotlib_inline.backend_inline"
TOOLS = Path(__file__).resolve().parent


class ForkedKernel:
    """A forked kernel, as much of it as jupyter_client asks of the `subprocess.Popen` of a kernel."""

    stdin = stdout = stderr = None

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        """Return the exit status; None while the kernel runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send the kernel a signal, unless it has ended."""
        if self._process.exitcode is None and self.pid:
            os.kill(self.pid, number)

    def wait(self) -> int | None:
        """Wait for the kernel's end, and return its exit status."""
        self._process.join()
        return self._process.exitcode


def launch(cmd: list[str], env: dict[str, str], cwd: str | None = None, **_streams: Any) -> ForkedKernel:
    """Fork a kernel, in place of `jupyter_client.launcher.launch_kernel` with ``python -m ipykernel_launcher -f FILE``.

    Its standard streams are closed: what a cell prints goes through the kernel's sockets.
    """
    context = multiprocessing.get_context("forkserver")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=become_kernel, args=(cmd[cmd.index("-f") :], env, cwd, there))
    process.start()
    there.close()
    here.recv()  # signals go to a kernel's process group, which from here on is its own and no longer this one's
    return ForkedKernel(process)


def become_kernel(arguments: list[str], env: dict[str, str], cwd: str | None, parent: Connection) -> None:
    """Be a kernel, in a session of its own, until it is asked to end."""
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()
    parent.send(os.getpid())
    os.environ.clear()
    os.environ.update(env)
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.chdir(cwd or os.curdir)
    sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != TOOLS]
    for stream, mode in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
        os.dup2(os.open(os.devnull, mode), stream)
    gc.freeze()  # what was loaded before is no garbage, and need not be looked through again and again
    IPKernelApp.launch_instance(arguments)


def end_with_parent() -> None:
    """Wait for the end of the process that launched this one, whatever ended it, and end.

    A kernel looks for the end of the process from which it was forked. That one waits for its last child.
    """
    launcher = multiprocessing.parent_process()
    if launcher is not None:
        launcher.join()
    os._exit(1)


def imported(source: str) -> set[str]:
    """Return the names of the modules that a cell imports; with ``from a import b``, of a and of a.b."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def use_for(first_cell: str) -> bool:
    """Let jupyter_client fork the next kernels, if that cell imports what they have loaded; return whether it will."""
    from jupyter_client import launcher
    from jupyter_client.provisioning import local_provisioner

    try:
        forked = "forkserver" in multiprocessing.get_all_start_methods() and imported(first_cell) >= PRELOADED
    except SyntaxError:  # IPython knows more than Python does
        forked = False
    if forked:
        os.environ["MPLBACKEND"] = BACKEND
        multiprocessing.get_context("forkserver").set_forkserver_preload(["ipykernel.kernelapp", *sorted(PRELOADED)])
    vars(local_provisioner)["launch_kernel"] = launch if forked else launcher.launch_kernel
    return forked

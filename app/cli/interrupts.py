"""Ends the command line at once on Ctrl-C while its imports still run, so it imports no other module of ours."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_INTERRUPTED = 130
"""The exit code that a shell expects of a command that Ctrl-C ended."""


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process during the block, without a traceback; for work that leaves nothing half done.

    An exception would not be enough: Python drops one that a signal raises within the callbacks of an import or of the
    garbage collector, and the command would simply go on.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)

"""Tests that interrupt a process need one that listens.

A script that starts a command with `&` lets it ignore SIGINT, so that a Ctrl-C at the terminal does not end
what runs in the background. Every process that the command starts inherits that, and so would all that the
tests start.
"""

from __future__ import annotations

import signal


def listen_to_interrupts() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

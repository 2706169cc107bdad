"""Tells systemd how far the broker is (`Type=notify`): ready, and about to stop.

A datagram to the socket that the environment names. Without one nobody wants to know.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

SOCKET_VARIABLE: Final = "NOTIFY_SOCKET"
READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def notify(state: str, status: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether somebody was told. Never fails: that a broker serves matters more than who knows of it."""
    address = environ.get(SOCKET_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = f"\0{address[1:]}"  # Linux' abstract names begin so
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            sender.sendto(f"{state}\nSTATUS={status}".encode(), address)
    except OSError:
        return False
    return True

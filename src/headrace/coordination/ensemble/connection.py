"""How kazoo is set up: quick to notice, quick to reconnect, quick to tell."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.handlers.threading import AsyncResult, SequentialThreadingHandler
from kazoo.security import CREATOR_ALL_ACL

from headrace.config.zookeeper_address import ZooKeeperAddress
from headrace.config.zookeeper_security import ZooKeeperSecurity
from headrace.coordination.ensemble.secure_sockets import SecureSockets, has_pending

SWITCH_SECONDS: Final = 0.0002
"""A thread that wants the interpreter asks for it after this time. With Python's 5 ms a loop that makes a
short system call every millisecond, as a busy broker does, never gives way: each call lets go and takes
hold again before the other thread has woken, and its clock starts anew. Measured: seconds for one answer."""
_RECONNECT: Final = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_jitter": 0.3, "max_delay": 0.5}

_LOG: Final = logging.getLogger("headrace.zookeeper")
_KAZOO_LOG: Final = logging.getLogger("headrace.zookeeper.kazoo")
# It warns of every attempt to connect, for as long as an outage lasts. We tell its beginning and its end.
_KAZOO_LOG.setLevel(logging.ERROR)


def new_client(
    address: ZooKeeperAddress, timeout_ms: int, security: ZooKeeperSecurity, sockets: SecureSockets | None
) -> Any:
    """A client that is not yet started. One host may use up a third of the session timeout at most."""
    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
    digest = security.digest
    return _Client(
        hosts=address.hosts,
        timeout=timeout_ms / 1000,
        handler=_Handler(timeout_ms / 1000 / max(3, len(address.servers)), sockets),
        connection_retry=dict(_RECONNECT),
        logger=_KAZOO_LOG,
        # kazoo gives them to every node, also to those of transactions.
        default_acl=CREATOR_ALL_ACL if security.sets_acl else None,
        auth_data=None if digest is None else {("digest", digest.reveal())},
    )


class _Client(KazooClient):  # type: ignore[misc]  # kazoo has no types
    """Remembers what the server granted, which kazoo uses for its own timeouts and does not tell, and when a
    server was last heard of: the state of a session says it late, or not while somebody keeps asking."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.granted_timeout_ms: int | None = None
        self.heard_at = time.monotonic()
        connect, read = self._connection._connect, self._connection._read_socket

        def connect_and_note(*where: Any) -> Any:
            read_timeout_ms, connect_timeout_ms = connect(*where)
            self._note(round(read_timeout_ms * 3 / 2))  # kazoo lets a reading take two thirds of what it has
            self.heard_at = time.monotonic()
            if self.handler.sockets is not None:
                self.handler.sockets.succeeded()
            return read_timeout_ms, connect_timeout_ms

        def read_and_note(timeout: float) -> Any:
            response = read(timeout)
            self.heard_at = time.monotonic()
            return response

        self._connection._connect = connect_and_note
        self._connection._read_socket = read_and_note

    def _note(self, granted_ms: int) -> None:
        if granted_ms < self._session_timeout and granted_ms != self.granted_timeout_ms:
            _LOG.warning(
                "ZooKeeper grants sessions of %d ms, not the %d that zookeeper.session.timeout.ms asks for:"
                " raise maxSessionTimeout on its servers (20 ticks, if it is not set), or ask for less",
                granted_ms,
                self._session_timeout,
            )
        self.granted_timeout_ms = granted_ms


class _Promise(AsyncResult):  # type: ignore[misc]  # kazoo has no types
    """Tells of an answer from the thread that read it. kazoo would hand it to yet another thread first."""

    def _do_callbacks(self) -> None:
        for callback in self._callbacks:
            callback(self)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Gives up on a silent host before the session is over: kazoo would let one use up all of its time.

    A server that is just starting takes connections and does not answer them. The next attempt, there or at
    another host, has to come while the session still lives.
    """

    def __init__(self, patience_seconds: float, sockets: SecureSockets | None) -> None:
        super().__init__()
        self._patience_seconds = patience_seconds
        self.sockets = sockets

    def async_result(self) -> _Promise:
        return _Promise(self)

    def create_connection(self, *args: Any, **options: Any) -> Any:
        if self.sockets is not None:
            return self.sockets.connect(options["address"], options["hostname"], self._patience_seconds)
        options["timeout"] = self._patience_seconds
        return super().create_connection(*args, **options)

    def select(self, readable: Any, writable: Any, failed: Any, timeout: float | None = None) -> Any:
        if any(map(has_pending, readable)):
            # kazoo asks before it reads a message, and several may have come together.
            ready = super().select(readable, writable, failed, 0)
            pending = [each for each in readable if has_pending(each) or each in ready[0]]
            return pending, ready[1], ready[2]
        # For one socket alone it waits where an answer is due: the handshake, the rest of a message.
        if timeout is not None and len(readable) + len(writable) == 1:
            timeout = min(timeout, self._patience_seconds)
        return super().select(readable, writable, failed, timeout)

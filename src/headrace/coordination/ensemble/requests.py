"""What is asked of ZooKeeper, what it answers with, and what can come of it instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.core.ports_coordination import CoordinationUnavailable

Request = Callable[[Any], Any]
"""Sends one request through the client that it is given, and returns kazoo's promise of the answer."""


class ConnectionBroken(CoordinationUnavailable):
    """No answer came. A read has changed nothing; whether a write happened is not known."""


class NotPermitted(CoordinationUnavailable):
    """ZooKeeper knows us as somebody who may not do this. Nothing was done."""


class Missing(Exception):
    """There is no such node."""


class Exists(Exception):
    """There is such a node already."""


class OtherVersion(Exception):
    """The node has been changed since."""


class Refused(Exception):
    """A transaction of which nothing was done, with the place of the operation that failed, and why."""

    def __init__(self, place: int, reason: Exception) -> None:
        super().__init__(f"operation {place}: {type(reason).__name__}")
        self.place = place
        self.reason = reason


class Stored(NamedTuple):
    """A node. `created` is the number of the change that made it; `owner` its session, 0 if it lasts."""

    data: bytes
    version: int
    created: int
    owner: int


def get(path: str, watch: Callable[[Any], None] | None = None) -> Request:
    return lambda client: client.get_async(path, watch=watch)


def children(path: str, watch: Callable[[Any], None] | None = None) -> Request:
    return lambda client: client.get_children_async(path, watch=watch)


def exists(path: str, watch: Callable[[Any], None] | None = None) -> Request:
    return lambda client: client.exists_async(path, watch=watch)


def create(path: str, data: bytes) -> Request:
    return lambda client: client.create_async(path, data)


def put(path: str, data: bytes) -> Request:
    """Into a node that is there, whatever its version."""
    return lambda client: client.set_async(path, data)


def delete(path: str, version: int) -> Request:
    return lambda client: client.delete_async(path, version)


def acls(path: str) -> Request:
    return lambda client: client.get_acls_async(path)


def put_acls(path: str, entries: Any) -> Request:
    return lambda client: client.set_acls_async(path, entries)


def stored(answer: Any) -> Stored | None:
    """What `get` answered with."""
    if answer is None:
        return None
    data, stat = answer
    return Stored(data, stat.version, stat.czxid, stat.ephemeralOwner)

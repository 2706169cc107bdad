"""What was agreed on with the first pass stands, whatever a restart says."""

from __future__ import annotations

import pytest

from headrace.spark.audit import memory
from headrace.spark.audit.config import AuditConfig, AuditRefused
from headrace.spark.audit.memory import Memory
from headrace.spark.audit.offsets import Ends


def config(*topics: str, since_ms: int | None = None, window_ms: int = 60_000) -> AuditConfig:
    brokers = {"bootstrap.servers": "b:1"}
    return AuditConfig(brokers, topics, "/books", window_ms=window_ms, since_ms=since_ms)


def again(before: Memory) -> Memory:
    return memory.decode(before.encode())


def test_each_topic_begins_where_it_first_began() -> None:
    first = memory.decode(None)
    first.agree(config("a", since_ms=100))
    # As `--since now` in the file of a service says it at each start; another topic has come.
    second = again(first)
    second.agree(config("a", "b", since_ms=900))
    assert second.since == {"a": 100, "b": 900}
    third = again(second)
    third.agree(config("a", "c"))
    assert third.since == {"a": 100, "b": 900, "c": None}
    assert again(third).encode() == third.encode()


def test_other_windows_are_refused() -> None:
    first = Memory()
    first.agree(config("a"))
    with pytest.raises(AuditRefused, match="windows of 60000 ms, not of 5000 ms"):
        again(first).agree(config("a", window_ms=5_000))


def test_books_of_another_kind_are_refused() -> None:
    with pytest.raises(AuditRefused, match="another version"):
        memory.decode('{"known":[],"topics":{}}')


def test_a_log_that_never_ends_is_heard_up_to_where_it_ended_once() -> None:
    """Pass by pass: where the log ends, up to where it can be read, and until when all of it was."""
    story = [(100, 80, None), (130, 99, None), (160, 100, 0), (190, 159, 0), (220, 161, 20), (220, 220, None)]
    known, place = Memory(), ("t", 0)
    for number, (end, position, heard_ms) in enumerate(story):
        known = again(known)
        known.listen({place: Ends(0, position, end, 0)}, {place: position}, asked_ms=10 * number)
        assert known.heard == ({} if heard_ms is None else {place: heard_ms})

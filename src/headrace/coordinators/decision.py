"""What a coordinator decides: records to be written, an answer, and what to do once both are safe.

Groups and transactions are pure machines over a log. An operation looks at the state and returns a Decision;
the state itself changes only when the decision's records are replayed. The runtime writes them, replays them,
and holds every answer until the high watermark has passed all that the operation could have seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from headrace.core.completion import Completion
from headrace.protocol.message import Message

R = TypeVar("R")


class CoordinatorRecord(NamedTuple):
    """One record of an internal topic in Kafka's own schema. A value of None removes the key."""

    key: Message
    """Its API_KEY is the kind of record, and is written as the key's version."""
    value: Message | None
    value_version: int = 0


class Parked:
    """As a response: not yet. The answer comes in `answers` of a later decision, with the completion that the
    operation was given. A shard keeps the completion and gives it back; the runtime completes it."""

    __slots__ = ()


PARKED: Final = Parked()


class Decision(NamedTuple, Generic[R]):
    records: Sequence[CoordinatorRecord] = ()
    """Written together, as one batch: all of them or none."""
    response: R | Parked = PARKED
    answers: Sequence[tuple[Completion[Any], object]] = ()
    """For requests that were parked before. Sent when the records are committed, like the response."""
    effects: Sequence[object] = ()
    """What the shell of the coordinator has to do when the records are committed: to send markers, say."""
    reveals: bool = True
    """The response tells something of the state, so it waits for its commit. A heartbeat's does not."""

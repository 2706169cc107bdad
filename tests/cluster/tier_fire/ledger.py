"""What was sent, acknowledged and read, and what must never be: a judge that knows nothing of the system.

A record says who sent it and as which of his records, and its bytes follow from that. So any reader can tell
whether a record is one that was ever sent, and whether all of it is as it was.
"""

from __future__ import annotations

import threading
from array import array
from hashlib import blake2b
from typing import Final, NamedTuple

_SEQUENCES: Final = 1 << 40
_UNKNOWN: Final = -1
PAYLOAD: Final = 288
Key = tuple[str, int]
"""Topic and partition."""


class Sent(NamedTuple):
    writer: int
    number: int

    @property
    def identity(self) -> int:
        return self.writer * _SEQUENCES + self.number


def value_of(sent: Sent) -> bytes:
    head = b"%d:%d:" % sent
    return head + blake2b(head).digest() * (PAYLOAD // 64)


def parse(value: bytes | None) -> Sent | None:
    """None if nobody can have sent this."""
    try:
        writer, number, _ = (value or b"").split(b":", 2)
        sent = Sent(int(writer), int(number))
    except ValueError:
        return None
    return sent if value_of(sent) == value else None


class Ledger:
    """By partition and offset, which record was seen there: by an acknowledgement or by any reader."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[Key, array[int]] = {}
        self.anomalies: list[str] = []
        self.acknowledged = 0
        self.read = 0

    def accuse(self, what: str) -> None:
        with self._lock:
            self.anomalies.append(what)

    def on_acknowledged(self, key: Key, offset: int, sent: Sent) -> None:
        self.acknowledged += 1
        self._place(key, offset, sent, "acknowledged")

    def on_read(self, key: Key, offset: int, value: bytes | None) -> None:
        sent = parse(value)
        self.read += 1
        if sent is None:
            self.accuse(f"{key} at {offset} has what nobody sent: {(value or b'')[:60]!r}")
        else:
            self._place(key, offset, sent, "read")

    def _place(self, key: Key, offset: int, sent: Sent, how: str) -> None:
        with self._lock:
            seen = self._seen.setdefault(key, array("q"))
            if offset >= len(seen):
                seen.extend([_UNKNOWN] * (offset + 1 - len(seen)))
            if seen[offset] not in (_UNKNOWN, sent.identity):
                before = Sent(*divmod(seen[offset], _SEQUENCES))
                self.anomalies.append(f"{key} at {offset}: {before} was there, and {sent} was {how}")
            seen[offset] = sent.identity

    def judge_contiguous(self, keys: list[Key], sent: dict[int, int]) -> None:
        """At the end, after everything was read: `sent` has how many records each writer sent, all of which
        were acknowledged. Each is there once, in its writer's order, and no offset is empty."""
        everywhere: dict[int, list[int]] = {writer: [] for writer in sent}
        for key in keys:
            last: dict[int, int] = {}
            for offset, identity in enumerate(self._seen.get(key, ())):
                if identity == _UNKNOWN:
                    self.accuse(f"{key} has nothing at {offset}")
                    continue
                writer, number = divmod(identity, _SEQUENCES)
                if number <= last.get(writer, -1):
                    self.accuse(f"{key} at {offset}: {Sent(writer, number)} after {last[writer]}")
                last[writer] = number
                everywhere.setdefault(writer, []).append(number)
        self._count(everywhere, sent)

    def _count(self, everywhere: dict[int, list[int]], sent: dict[int, int]) -> None:
        for writer, found in everywhere.items():
            count = sent.get(writer, 0)
            for number in sorted(set(range(count)) - set(found))[:20]:
                self.accuse(f"{Sent(writer, number)} is lost")
            if len(found) != len(set(found)):
                self.accuse(f"writer {writer} has {len(found) - len(set(found))} records twice")
            if set(found) - set(range(count)):
                self.accuse(f"writer {writer} has records that it did not send")

    def judge_transactions(
        self,
        visible: dict[Key, list[tuple[int, Sent]]],
        outcomes: dict[int, tuple[range, bool | None]],
    ) -> None:
        """`visible`: what a reader of committed records read from the beginning. `outcomes`: of each
        transaction its records, and whether it was committed, if that is known."""
        found: dict[int, int] = {}
        for key, rows in visible.items():
            last = -1
            for offset, sent in rows:
                if sent.number <= last:
                    self.accuse(f"{key} at {offset}: {sent} after {last}")
                last = sent.number
                found[sent.number] = found.get(sent.number, 0) + 1
        self.anomalies += [
            f"record {number} of a transaction {n} times" for number, n in found.items() if n > 1
        ]
        for transaction, (numbers, committed) in outcomes.items():
            there = sum(number in found for number in numbers)
            if committed is True and there != len(numbers):
                self.accuse(f"transaction {transaction} is committed, {there} of {len(numbers)} are there")
            if committed is False and there:
                self.accuse(f"transaction {transaction} is aborted, and {there} of its records were read")
            if committed is None and there not in (0, len(numbers)):
                self.accuse(f"transaction {transaction} is torn: {there} of {len(numbers)}")

    def ends(self) -> dict[Key, int]:
        """How far each partition goes at least."""
        with self._lock:
            return {key: len(seen) for key, seen in self._seen.items()}

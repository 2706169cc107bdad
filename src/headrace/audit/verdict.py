"""What an audit says of a window of a topic, and the record in which it says so.

Verdicts go to a compacted topic. The key is `TOPIC/WINDOW`, with the window's first millisecond; the value is
JSON, as `Verdict.encode` writes it. The one with the state "certified" is the certificate.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple

from headrace.audit.tally import Tally
from headrace.core.errors import HeadraceError

DEFAULT_TOPIC: Final = "headrace-audit-certificates"
VERSION: Final = 1
PRODUCERS: Final = "producers"
LOG: Final = "log"


class State(StrEnum):
    #: All tiers have been heard to the end, and agree.
    CERTIFIED = "certified"
    #: Two tiers differ, and nothing that is still to come can mend that.
    DIFFERENT = "different"
    #: Somebody has to do something before it can be judged: a producer is silent, a lake is behind.
    INCOMPLETE = "incomplete"
    #: Time has to pass.
    OPEN = "open"


class Kind(StrEnum):
    LOST = "lost"
    DOUBLED = "doubled"
    ALTERED = "altered"


class Difference(NamedTuple):
    """`tier` differs from `reference`, the one before it on the way of a record."""

    tier: str
    reference: str
    partition: int
    kind: Kind
    found: int
    expected: int

    def __str__(self) -> str:
        by = abs(self.found - self.expected)
        what = {
            Kind.LOST: f"{by} lost",
            Kind.DOUBLED: f"{by} doubled, or never told of",
            Kind.ALTERED: "altered: as many records, but not the same",
        }[self.kind]
        counts = f"{self.tier} has {self.found}, {self.reference} {self.expected}"
        return f"partition {self.partition}: {self.tier}: {what} ({counts})"


@dataclass(frozen=True)
class Verdict:
    topic: str
    window_ms: int
    length_ms: int
    state: State
    #: Of all partitions, by tier, in the order of a record's way.
    tiers: dict[str, Tally]
    differences: tuple[Difference, ...] = ()
    reasons: tuple[str, ...] = ()
    decided_ms: int = 0
    #: Counts the certificates of this window: late records make a new one.
    revision: int = 0
    headline: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "headline", self._headline())

    def _headline(self) -> str:
        if self.differences:
            return str(self.differences[0])
        if self.reasons:
            return f"{self.state}: {self.reasons[0]}"
        return str(self.state)

    @property
    def key(self) -> bytes:
        return f"{self.topic}/{self.window_ms}".encode()

    def says_the_same_as(self, other: Verdict | None) -> bool:
        return other is not None and (
            (self.state, self.tiers, self.differences, self.reasons)
            == (other.state, other.tiers, other.differences, other.reasons)
        )

    def encode(self) -> bytes:
        document = {
            "version": VERSION,
            "topic": self.topic,
            "window_ms": self.window_ms,
            "window": window_text(self.window_ms),
            "length_ms": self.length_ms,
            "state": self.state,
            "headline": self.headline,
            "tiers": {
                name: {"count": tally.count, "checksum": tally.checksum} for name, tally in self.tiers.items()
            },
            "differences": [difference._asdict() for difference in self.differences],
            "reasons": self.reasons,
            "decided_ms": self.decided_ms,
            "revision": self.revision,
        }
        return json.dumps(document, separators=(",", ":")).encode()


def decode(data: bytes) -> Verdict:
    try:
        document = json.loads(data)
        if document["version"] != VERSION:
            raise ValueError("a version that is not known")
        return Verdict(
            document["topic"],
            document["window_ms"],
            document["length_ms"],
            State(document["state"]),
            {
                name: Tally.parse(tally["count"], tally["checksum"])
                for name, tally in document["tiers"].items()
            },
            tuple(Difference(**{**each, "kind": Kind(each["kind"])}) for each in document["differences"]),
            tuple(document["reasons"]),
            document["decided_ms"],
            document["revision"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise HeadraceError(f"not a verdict of an audit: {error}") from error


def window_text(moment_ms: int) -> str:
    """In UTC; the bare milliseconds where no calendar has them, as when a client wrote microseconds."""
    try:
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(moment_ms)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00").removesuffix(".000") + "Z"

"""What the machine of the tier wants to know of the log on this broker's disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.core.ports import Buffer
from headrace.tier.segments import EpochStart


class LocalSegment(Protocol):
    """A sealed one: nobody writes to it any more."""

    @property
    def base_offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...

    def records(self, base_offset: int) -> Iterable[Buffer]:
        """Its batches from this offset on, where one begins. Read in a thread."""
        ...

    def indexes(self, base_offset: int) -> Iterable[Buffer]: ...


class LocalLog(Protocol):
    """As it is at one moment: a job keeps nothing of it but the segment that it uploads."""

    @property
    def start(self) -> int:
        """The log start: what is before it was deleted, here and in the store."""
        ...

    @property
    def local_start(self) -> int:
        """Where the first local segment begins."""
        ...

    @property
    def end(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...
    @property
    def sealed(self) -> Sequence[LocalSegment]: ...
    @property
    def epochs(self) -> Sequence[EpochStart]:
        """Of the whole log, as far as its start, also of what is only in the store."""
        ...

    def bytes_from(self, offset: int) -> int:
        """How many bytes of records are on the disk from this offset on."""
        ...


@dataclass(frozen=True, slots=True)
class TierSettings:
    """Times in milliseconds, sizes in bytes. -1 is no bound, as in Kafka."""

    retention_ms: int = -1
    retention_bytes: int = -1
    local_retention_ms: int = -1
    local_retention_bytes: int = -1
    grace_ms: int = 3_600_000
    """Between the manifest that gives an object up and its deletion: so long may a job read it."""
    garbage_age_ms: int = 86_400_000
    sweep_ms: int = 86_400_000
    refresh_ms: int = 60_000
    """How old what a follower knows may become, while it could delete more if it knew more."""
    backoff_ms: int = 1_000
    fold_above: int = 300
    """Segments that the manifest lists itself; about 64 KB."""
    fold_keeps: int = 20
    collect_at_once: int = 50


def epochs_within(epochs: Sequence[EpochStart], first: int, until: int) -> tuple[EpochStart, ...]:
    """Those of a range of offsets. The first one begins with it."""
    within: list[EpochStart] = []
    for epoch, offset in epochs:
        if offset >= until:
            break
        if offset <= first:
            within = [EpochStart(epoch, first)]
        else:
            within.append(EpochStart(epoch, offset))
    return tuple(within)


def agree(ours: Sequence[EpochStart], theirs: Sequence[EpochStart], first: int, until: int) -> bool:
    """Whether two logs have the same epochs in a range. One leader writes in an epoch, so that they have the
    same records then."""
    return first >= until or epochs_within(ours, first, until) == epochs_within(theirs, first, until)

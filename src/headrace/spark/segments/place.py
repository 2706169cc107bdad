"""Where segments are: a bucket, or directories that every executor sees. Sent to tasks as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from headrace.arrow.errors import HistoryGone
from headrace.arrow.history import History
from headrace.client.errors import ClientFailure
from headrace.core.ids import TopicPartition
from headrace.spark.segments.plan import Span

if TYPE_CHECKING:
    from headrace.arrow.tiered import Blocks

_DEADLINE_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 10.0
"""Of a call before anything is read: whoever has mistyped an address need not wait longer."""


class Opened(Protocol):
    def histories(self, topic: str, partitions: Sequence[int] | None) -> Sequence[History]:
        """Of those partitions that are there, in order."""
        ...

    def history_of(self, span: Span) -> History:
        """For who reads it. HistoryGone if its first offsets were deleted."""
        ...


class Place(Protocol):
    def opened(self, *, patient: bool = True) -> AbstractContextManager[Opened]: ...


@dataclass(frozen=True)
class Bucket:
    url: str
    cluster_id: str
    topic_id: str
    endpoint: str | None = None
    region: str | None = None

    @contextmanager
    def opened(self, *, patient: bool = True) -> Iterator[Opened]:
        from headrace.arrow.tiered import Blocks
        from headrace.objects.opening import open_bucket

        bucket = open_bucket(self.url, endpoint=self.endpoint, region=self.region)
        try:
            yield _OpenBucket(self, Blocks(bucket, _DEADLINE_SECONDS if patient else _ASK_SECONDS))
        finally:
            bucket.close()


class _OpenBucket:
    def __init__(self, place: Bucket, blocks: Blocks) -> None:
        from headrace.tier.names import decode_id

        self._place = place
        self._blocks = blocks
        try:
            self._topic_id = decode_id(place.topic_id)
        except ValueError:
            raise ClientFailure(
                f"{place.topic_id!r} is not the id of a topic", "`headrace topic describe` shows it"
            ) from None

    def histories(self, topic: str, partitions: Sequence[int] | None) -> Sequence[History]:
        from headrace.arrow.tiered import find_tiered

        return find_tiered(self._blocks, self._place.cluster_id, topic, self._topic_id, partitions)

    def history_of(self, span: Span) -> History:
        from headrace.arrow.tiered import PinnedHistory

        return PinnedHistory(self._blocks, TopicPartition(span.topic, span.partition), span.segments)


@dataclass(frozen=True)
class Directories:
    """Log directories of brokers, or folders of single partitions."""

    paths: tuple[str, ...]

    @contextmanager
    def opened(self, *, patient: bool = True) -> Iterator[Opened]:  # noqa: ARG002 - a disk answers
        try:
            yield _OpenDirectories(self.paths)
        except OSError as error:
            reason = f"{error.filename} cannot be read: {error.strerror}"
            raise ClientFailure(reason, "every executor must see it, as the user of the broker") from None


class _OpenDirectories:
    def __init__(self, paths: tuple[str, ...]) -> None:
        self._paths = paths

    def histories(self, topic: str, partitions: Sequence[int] | None) -> Sequence[History]:
        from headrace.arrow.files import find_histories

        found = find_histories(self._paths, topic, partitions)
        if not found:
            raise ClientFailure(
                f"there is no partition of topic {topic} in {', '.join(self._paths)}",
                "name the broker's log directory, or a partition's folder as DIR/orders-0",
            )
        return found

    def history_of(self, span: Span) -> History:
        (history,) = self.histories(span.topic, (span.partition,))
        if history.start > span.first_offset:
            raise HistoryGone(history.partition, span.first_offset, history.start)
        return history

"""Reading what a fetch asks for, within its byte limits. Bytes stay in their files: only ranges are found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from headrace.broker.errors import code_of
from headrace.broker.fetch.sessions import Wanted
from headrace.core.errors import HeadraceError, UnknownTopicId
from headrace.core.ports import FileRange

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.metrics.registry import TopicMetrics
    from headrace.replication.partition import Partition

UNKNOWN_OFFSET: Final = -1


class PartitionAnswer:
    """What is said about one partition; `records` is None where there are none."""

    __slots__ = (
        "diverging",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "metrics",
        "records",
        "want",
    )

    def __init__(self, want: Wanted) -> None:
        self.want = want
        self.error_code = 0
        self.high_watermark = UNKNOWN_OFFSET
        self.last_stable_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.records: FileRange | None = None
        self.metrics: TopicMetrics | None = None
        self.diverging: tuple[int, int] | None = None
        """(epoch, end offset) where the peer's log and ours part ways (KIP-595)."""

    @property
    def is_news(self) -> bool:
        """Whether an incremental answer must mention this partition."""
        changed = self.want.told(self.high_watermark, self.last_stable_offset, self.log_start_offset)
        return changed or self.records is not None or self.error_code != 0 or self.diverging is not None


class ReadResult:
    __slots__ = ("answers", "must_answer", "partitions", "total_bytes")

    def __init__(self) -> None:
        self.answers: list[PartitionAnswer] = []
        self.partitions: list[Partition] = []
        """Those that were found: where more may come from."""
        self.total_bytes = 0
        self.must_answer = False
        """There is nothing to wait for: an error, a divergence, or old data."""


def read_all(broker: Broker, wanted: Iterable[Wanted], max_bytes: int, read_committed: bool) -> ReadResult:
    """Partitions in order, until the bytes are used up. The first batch is returned whatever its size."""
    result = ReadResult()
    remaining = max_bytes
    for want in wanted:
        answer = PartitionAnswer(want)
        result.answers.append(answer)
        try:
            partition = find(broker, want)
            result.partitions.append(partition)
            _read_one(partition, want, answer, remaining, read_committed, min_one=result.total_bytes == 0)
        except HeadraceError as error:
            answer.error_code = code_of(error)
            result.must_answer = True
            metrics = broker.metrics.known_topic(want.key.topic)
            metrics.fetch_requests += 1
            metrics.failed_fetch_requests += 1
            continue
        partition.metrics.fetch_requests += 1
        if answer.diverging is not None:
            result.must_answer = True
        elif answer.records is not None:
            length = answer.records.length
            result.total_bytes += length
            if want.fetch_offset < partition.log.active_segment.base_offset:
                # A read ends with its segment, and more follows: waiting would only keep it from the peer.
                result.must_answer = True
            remaining = max(0, remaining - length)
    return result


def find(broker: Broker, want: Wanted) -> Partition:
    topic = want.key.topic
    if not topic and want.key.topic_id is not None:
        image = broker.image.topic_by_id(want.key.topic_id)
        if image is None:
            raise UnknownTopicId(f"no topic has the id {want.key.topic_id}")
        topic = image.name
    return broker.partitions.get(topic, want.key.partition)


def _read_one(
    partition: Partition,
    want: Wanted,
    answer: PartitionAnswer,
    remaining: int,
    read_committed: bool,
    *,
    min_one: bool,
) -> None:
    partition.check_epoch(want.current_leader_epoch)
    answer.metrics = partition.metrics
    log = partition.log
    if want.last_fetched_epoch >= 0:
        epoch, end_offset = partition.end_offset_for_epoch(want.last_fetched_epoch)
        if epoch < want.last_fetched_epoch or end_offset < want.fetch_offset:
            answer.diverging = (epoch, end_offset)
    if answer.diverging is None:
        records = partition.read(
            want.fetch_offset,
            min(remaining, want.max_bytes),
            read_committed=read_committed,
            min_one=min_one,
        )
        if records.length:
            answer.records = records
    answer.high_watermark = partition.high_watermark
    answer.last_stable_offset = partition.last_stable_offset
    answer.log_start_offset = log.log_start_offset

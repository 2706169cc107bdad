"""What was read for a fetch: an answer for each partition, and what has to be brought into memory first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from headrace.broker.fetch.watched_partition import WatchedPartition
from headrace.core.ports import FileRange
from headrace.log.read_state import ColdRead

if TYPE_CHECKING:
    from headrace.broker.fetch.remote_read import RemoteRead
    from headrace.metrics.registry import TopicMetrics
    from headrace.replication.partition import Partition

UNKNOWN_OFFSET: Final = -1
NO_REPLICA: Final = -1


class PartitionAnswer:
    """What is said about one partition; `records` is None where there are none."""

    __slots__ = (
        "aborted",
        "current_leader",
        "diverging",
        "error_code",
        "high_watermark",
        "is_exhausted",
        "last_stable_offset",
        "log_start_offset",
        "metrics",
        "preferred_replica",
        "records",
        "want",
    )

    def __init__(self, want: WatchedPartition) -> None:
        self.want = want
        self.error_code = 0
        self.high_watermark = UNKNOWN_OFFSET
        self.last_stable_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.records: FileRange | None = None
        self.aborted: Sequence[tuple[int, int]] = ()
        """Producer and first offset of the aborted transactions in the records; only for whoever asked to
        be spared them."""
        self.metrics: TopicMetrics | None = None
        self.preferred_replica = NO_REPLICA
        self.is_exhausted = False
        """There are no more records to be had, not even if there were room for them."""
        self.diverging: tuple[int, int] | None = None
        """(epoch, end offset) where the peer's log and ours part ways (KIP-595)."""
        self.current_leader: tuple[int, int] | None = None
        """Broker and epoch, for a peer that asked the wrong one."""

    @property
    def demands_attention(self) -> bool:
        """Whether an incremental answer must mention this partition, whatever the peer knows."""
        return (
            self.records is not None
            or self.error_code != 0
            or self.diverging is not None
            or self.preferred_replica != NO_REPLICA
        )

    @property
    def is_known(self) -> bool:
        return self.want.knows(self.high_watermark, self.last_stable_offset, self.log_start_offset)

    def tell(self) -> bool:
        """It goes into an answer. False if an incremental one may leave it out."""
        changed = self.want.told(self.high_watermark, self.last_stable_offset, self.log_start_offset)
        return changed or self.demands_attention


class ReadResult:
    __slots__ = ("answers", "cold", "giving", "must_answer", "total_bytes")

    def __init__(self) -> None:
        self.answers: list[PartitionAnswer] = []
        self.cold: list[ColdPart] | None = None
        """What has to be brought into memory before there can be an answer; None if there is nothing."""
        self.total_bytes = 0
        self.giving = 0
        """Partitions with records, also with such as have to be brought first."""
        self.must_answer = False
        """There is nothing to wait for: an error, a divergence, another replica, old data, or more than one
        answer gives."""


class ColdPart:
    """No NamedTuple: compiled, one takes the class of each field as it is made, and a partition's is not yet
    there."""

    __slots__ = ("max_bytes", "partition", "read")

    def __init__(self, partition: Partition, read: ColdRead | RemoteRead, max_bytes: int) -> None:
        self.partition = partition
        self.read = read
        self.max_bytes = max_bytes

"""What a topic's configuration demands of a batch before it is appended.

The header answers nearly everything. The records are only opened where the topic asks for it: keys for
`cleanup.policy=compact`, another codec for a `compression.type` other than `producer`.
Timestamps are checked by the first and the largest one, which the header has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.core.errors import (
    BatchLargerThanSegment,
    CorruptBatch,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    PolicyViolation,
)
from headrace.protocol.batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    BatchHeader,
    read_header,
    stamp_log_append_time,
)
from headrace.protocol.batch_inside import check_inside
from headrace.protocol.compression import Compression
from headrace.protocol.records import decode_records, recompress

if TYPE_CHECKING:
    from headrace.config.topic import TopicConfig

_CODECS: Final = {
    "uncompressed": Compression.NONE,
    "none": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_HIGHEST_CODEC: Final = 4


class AppendRules:
    """A topic's demands, taken out of its configuration once."""

    __slots__ = (
        "after_max_ms",
        "before_max_ms",
        "codec",
        "level",
        "log_append_time",
        "max_message_bytes",
        "needs_keys",
        "opened_bytes",
        "plain",
        "segment_bytes",
    )

    def __init__(self, config: TopicConfig) -> None:
        self.max_message_bytes = config.max_message_bytes
        self.opened_bytes = max(8 * config.max_message_bytes, 8 << 20)
        """What a batch may become when it is opened here, on the loop."""
        self.segment_bytes = config.segment_bytes
        self.before_max_ms = config.message_timestamp_before_max_ms
        self.after_max_ms = config.message_timestamp_after_max_ms
        self.log_append_time = config.message_timestamp_type == "LogAppendTime"
        self.needs_keys = "compact" in config.cleanup_policy
        self.codec: int | None = _CODECS.get(config.compression_type)
        self.level: int | None = _level(config)
        self.plain = not self.log_append_time and not self.needs_keys and self.codec is None

    def admit(
        self, batch: bytearray | memoryview, header: BatchHeader, now_ms: int
    ) -> tuple[bytearray | memoryview, BatchHeader]:
        """The batch and header to append: the same, unless the topic changes them. Raises if refused."""
        (
            _,
            length,
            _,
            _,
            _,
            attributes,
            last_delta,
            first_time,
            last_time,
            producer,
            epoch,
            sequence,
            count,
        ) = header
        size = length + 12
        if size > self.max_message_bytes:
            raise MessageTooLarge(f"a batch of {size} bytes, max.message.bytes is {self.max_message_bytes}")
        if size > self.segment_bytes:
            raise BatchLargerThanSegment(f"a batch of {size} bytes, segment.bytes is {self.segment_bytes}")
        if count != last_delta + 1 or count <= 0:
            raise InvalidRecord(f"{count} records with last offset delta {last_delta}")
        if attributes & CONTROL_FLAG:
            raise InvalidRecord("a client may not write control records")
        if producer >= 0 and (sequence < 0 or epoch < 0):
            raise InvalidRecord(f"producer {producer} sent sequence {sequence} with epoch {epoch}")
        if attributes & LOG_APPEND_TIME_FLAG:
            raise InvalidTimestamp("a client may not mark a batch as LogAppendTime")
        if attributes & COMPRESSION_MASK > _HIGHEST_CODEC:
            raise InvalidRecord(f"unknown compression {attributes & COMPRESSION_MASK}")
        if not self.log_append_time and last_time >= 0:
            if last_time - now_ms > self.after_max_ms:
                raise InvalidTimestamp(
                    f"timestamp {last_time} is more than {self.after_max_ms} ms after the broker's {now_ms}"
                )
            if now_ms - first_time > self.before_max_ms and first_time >= 0:
                raise InvalidTimestamp(
                    f"timestamp {first_time} is over {self.before_max_ms} ms before the broker's {now_ms}"
                )
        check_inside(batch, attributes & COMPRESSION_MASK, count)
        if self.plain:
            return batch, header
        return self._open(batch, header, now_ms)

    def _open(
        self, batch: bytearray | memoryview, header: BatchHeader, now_ms: int
    ) -> tuple[bytearray | memoryview, BatchHeader]:
        if self.needs_keys:
            _require_keys(batch, self.opened_bytes)
        changed = batch
        if self.codec is not None and header.compression != self.codec:
            try:
                changed = recompress(batch, self.codec, self.level, max_bytes=self.opened_bytes)
            except CorruptBatch as error:
                raise InvalidRecord(f"the records cannot be read: {error}") from None
            except InvalidRecord as error:  # they are not decoded: only their size can be wrong
                raise MessageTooLarge(str(error)) from None
        if self.log_append_time:
            stamp_log_append_time(changed, 0, len(changed), now_ms)
        header = read_header(changed)
        if header.size > self.max_message_bytes:
            raise MessageTooLarge(
                f"a batch of {header.size} bytes after recompression, max.message.bytes is "
                f"{self.max_message_bytes}"
            )
        if header.size > self.segment_bytes:
            raise BatchLargerThanSegment(
                f"a batch of {header.size} bytes after recompression, segment.bytes is {self.segment_bytes}"
            )
        return changed, header


def _require_keys(batch: bytearray | memoryview, opened_bytes: int) -> None:
    try:
        for record in decode_records(batch, max_bytes=opened_bytes):
            if record.key is None:
                raise InvalidRecord("a compacted topic takes no record without a key")
    except CorruptBatch as error:
        raise InvalidRecord(f"the records cannot be read: {error}") from None


class SealedRules(AppendRules):
    """Of a log that copies another cluster's: no client writes to it. No other log is asked whether it is
    one."""

    __slots__ = ("reason",)

    def __init__(self, config: TopicConfig, reason: str) -> None:
        super().__init__(config)
        self.reason = reason

    def admit(
        self,
        batch: bytearray | memoryview,  # noqa: ARG002 - the shape of `AppendRules.admit`
        header: BatchHeader,  # noqa: ARG002
        now_ms: int,  # noqa: ARG002
    ) -> tuple[bytearray | memoryview, BatchHeader]:
        raise PolicyViolation(self.reason)


def _level(config: TopicConfig) -> int | None:
    level = getattr(config, f"compression_{config.compression_type}_level", None)
    return None if level is None else int(level)

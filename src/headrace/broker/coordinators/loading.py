"""Reading a partition of an internal topic into a new shard, in short turns of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from headrace.broker.coordinators.shard_host import ShardHost
from headrace.coordinators.codec import Kinds, decode
from headrace.coordinators.shard import Shard
from headrace.core.errors import (
    ClientError,
    CoordinatorLoading,
    CoordinatorNotAvailable,
    CorruptBatch,
    CorruptLog,
    HeadraceError,
    NotLeader,
)
from headrace.core.ports import FileRange
from headrace.core.tasks import spawn
from headrace.protocol.batch import BatchHeader, check, iterate
from headrace.protocol.control_records import ControlType, control_type
from headrace.protocol.records import Record, decode_records
from headrace.replication.partition import Partition

READ_BYTES: Final = 256 * 1024
RECORDS_PER_TURN: Final = 200
"""A few milliseconds of work, then others have their turn."""
MOMENT_SECONDS: Final = 0.05
"""A log that is truncated, or changes its directory, is closed for a moment."""
RELOAD_SECONDS: Final = 5.0
"""A partition that could not be read is read again after this pause, for as long as it is led here."""

S = TypeVar("S", bound=Shard)


class ShardLoading(Generic[S]):
    """From the beginning of a leadership until its shard may be asked, however often that is tried."""

    def __init__(
        self,
        host: ShardHost,
        partition: Partition,
        kinds: Kinds,
        make: Callable[[], S],
        on_loaded: Callable[[S], None],
    ) -> None:
        """`make` makes an empty shard for each try."""
        self._host = host
        self._partition = partition
        self._kinds = kinds
        self._make = make
        self._on_loaded = on_loaded
        name = partition.topic_partition
        self.refusal: HeadraceError = CoordinatorLoading(f"{name} is being read")
        """What whoever asks meanwhile is told."""
        self._task = spawn(f"the loading of {name}", self._run(), host.runtime.loop)

    def cancel(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            shard = self._make()
            try:
                await ShardLoader(self._host, self._partition, shard, self._kinds).load()
            except NotLeader:
                # Where it is led by another from now on, this task ends with its leadership.
                await asyncio.sleep(MOMENT_SECONDS)
            except Exception as error:
                self._on_failure(error)
                if self._partition.is_offline:
                    return  # its directory is: another broker leads it soon, or nobody can
                if isinstance(error, Damaged):
                    # If another replica has it, this one is given up, and this task ends with its leadership.
                    await self._host.on_suspected_corruption(self._partition, error.offset)
                await asyncio.sleep(RELOAD_SECONDS)
            else:
                self._on_loaded(shard)
                return

    def _on_failure(self, error: Exception) -> None:
        name = str(self._partition.topic_partition)
        is_ours = not isinstance(error, HeadraceError)
        self._host.runtime.log.error(
            "internal topic cannot be read",
            partition=name,
            error=repr(error) if is_ours else str(error),
            exc_info=error if is_ours else None,
        )
        self.refusal = CoordinatorNotAvailable(f"{name} cannot be read: {error}")


class Damaged(CorruptLog):
    """What was written is not there any more."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(text)
        self.offset = offset


class ShardLoader:
    def __init__(self, host: ShardHost, partition: Partition, shard: Shard, kinds: Kinds) -> None:
        self._host = host
        self._runtime = host.runtime
        self._partition = partition
        self._log = partition.log
        self._shard = shard
        self._kinds = kinds
        self._since_turn = 0
        self.records = 0
        self.damaged = 0
        """Batches and records that could not be used."""

    async def load(self) -> None:
        """Replay everything up to the log's end. What is appended meanwhile is replayed too: when this
        returns, nothing is missing, unless the caller lets others run before it looks."""
        log = self._log
        offset = log.log_start_offset
        while offset < log.end_offset:
            offset = max(offset, log.log_start_offset)  # records may be deleted while this reads
            try:
                found = log.read(offset, READ_BYTES, limit=log.end_offset, min_one=True)
            except CorruptLog as error:
                raise Damaged(str(error), offset) from error
            if not found.length:
                break  # the cleaner left nothing behind this offset
            data = await self._read(found)
            following = await self._replay(data, offset)
            if following <= offset:
                raise Damaged(f"{log.topic_partition} cannot be read at offset {offset}", offset)
            offset = following

    async def _read(self, found: FileRange) -> bytes:
        data = b""

        def read() -> None:
            nonlocal data
            data = found.file.pread(found.length, found.position)

        try:
            await self._runtime.offload(read)
        except OSError as error:
            if self._log.closed:
                raise
            raise self._log.directory.fail(error, f"load {self._log.topic_partition}") from error
        return data

    async def _replay(self, data: bytes, offset: int) -> int:
        """The offset behind the last whole batch in `data`."""
        for at, header in iterate(data):
            if header.next_offset > offset:
                for _ in self._replay_batch(data[at : at + header.size], header):
                    self._since_turn += 1
                    if self._since_turn >= RECORDS_PER_TURN:
                        self._since_turn = 0
                        await asyncio.sleep(0)
                offset = header.next_offset
        return offset

    def _replay_batch(self, batch: bytes, header: BatchHeader) -> Iterator[None]:
        try:
            check(batch)
            for record in decode_records(batch):
                self._replay_record(record, header)
                self.records += 1
                yield
        except ClientError as error:
            # Whoever passed over damage would forget what was committed, though others know it. If nobody
            # does, what is whole is worth more than nothing.
            if isinstance(error, CorruptBatch) and self._host.may_be_had(self._partition):
                raise Damaged(f"{self._log.topic_partition}: {error}", header.base_offset) from error
            self.damaged += 1
            self._runtime.log.error(
                "unreadable batch of an internal topic skipped",
                partition=str(self._log.topic_partition),
                offset=header.base_offset,
                error=str(error),
            )

    def _replay_record(self, record: Record, header: BatchHeader) -> None:
        shard = self._shard
        try:
            if header.is_control:
                kind = control_type(record)
                if kind in (ControlType.COMMIT, ControlType.ABORT):
                    committed = kind == ControlType.COMMIT
                    shard.replay_end(header.producer_id, header.producer_epoch, committed=committed)
                return
            decoded = decode(record, self._kinds)
            if decoded is None:
                return
            if header.is_transactional:
                shard.replay_transactional(decoded, record.offset, record.timestamp, header.producer_id)
            else:
                shard.replay(decoded, record.offset, record.timestamp)
        except Exception as error:
            # One record that cannot be understood must not take all the others of its partition away.
            self.damaged += 1
            self._runtime.log.error(
                "record of an internal topic passed over",
                partition=str(self._log.topic_partition),
                offset=record.offset,
                error=repr(error),
                exc_info=error,
            )

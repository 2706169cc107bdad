"""What the invariants know of each partition: what is committed of it, and what each replica holds."""

from __future__ import annotations

from headrace.controller.topic_image import PartitionState
from headrace.core.errors import CorruptBatch
from headrace.log import files, manifest
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import check
from headrace.replication.partition import Partition
from headrace.testing.disk import SimulatedDisk
from headrace.testing.simulation.virtual_time import SimulationFailed
from tests.simulation.mirror import Entry, Mirror, place_of

Key = tuple[str, int]


class InvariantBroken(SimulationFailed):
    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name


class CommittedLog:
    """One partition's committed batches, and who led it when."""

    __slots__ = ("condemned", "end", "entries", "leaders", "row", "served", "unread")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.end = 0
        self.condemned = 0
        """Below this, retention or DeleteRecords has decided that records may go."""
        self.leaders: dict[int, str] = {}
        """Leader epoch to the process that had it."""
        self.unread = 0
        """A damaged leader, which could not be read, had its high watermark here: others may follow it."""
        self.served: dict[int, Entry] = {}
        """What consumers were given from between `end` and `unread`, by its offset: of this nothing else is
        known than that it must not change."""
        self.row: PartitionState | None = None
        """As the newest committed metadata has it."""


class Replica:
    """One partition at one broker process."""

    __slots__ = (
        "compared",
        "high_watermark",
        "is_damaged",
        "leader_epoch",
        "log_start",
        "mirror",
        "partition",
        "seen",
        "was_leader",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.mirror = Mirror(partition.log)
        self.seen: tuple[object, ...] = ()
        self.high_watermark = partition.high_watermark
        self.log_start = partition.log.log_start_offset
        self.leader_epoch = -1
        self.was_leader = False
        self.is_damaged = False
        """Its files were damaged, so it answers for nothing but its log start."""
        self.compared = 0
        """How many entries of the mirror are known to agree with the committed ones."""

    def begin_anew(self) -> None:
        """What was read of it while it was damaged is not what it holds."""
        self.mirror = Mirror(self.partition.log)
        self.mirror.update()  # the process may end before anything changes
        self.compared = 0
        self.is_damaged = False
        self.seen = ()

    @property
    def is_readable(self) -> bool:
        """Not while it is being truncated: nobody may read it then. It is looked at when that is done."""
        return self.partition.log.is_open and self.partition.log.directory.failure is None


def _has_listed(disk: SimulatedDisk, log: PartitionLog) -> bool:
    names = set(disk.files(f"{log.path}/"))
    if f"{log.path}/{manifest.NAME}" not in names:
        return True
    try:
        known = manifest.decode(disk.content(f"{log.path}/{manifest.NAME}"))
    except manifest.CorruptManifest:
        return True  # what stands in it is not believed
    return all(f"{log.path}/{files.numbered(each.base_offset)}{files.LOG}" in names for each in known.sealed)


def holds_all(disk: SimulatedDisk, log: PartitionLog, committed: CommittedLog) -> bool:
    """Whether a log's files, as they are under their names, hold every committed record from its start on.

    None may be missing that the next process would look for: a higher start may not be on the disk yet."""
    start = log.log_start_offset
    if not _has_listed(disk, log):
        return False
    found: list[Entry] = []
    try:
        for path in disk.files(f"{log.path}/"):
            if path.endswith(files.LOG):
                data, position = disk.content(path), 0
                while position < len(data):
                    header = check(data, position)
                    position += header.size
                    if header.base_offset >= start:
                        found.append(Entry.of(header))
    except CorruptBatch:
        return False
    at = start
    for entry in found:
        if entry.base_offset != at:
            return False
        at = entry.next_offset
    if at != log.end_offset:
        return False  # it misses what is not committed yet
    wanted = committed.entries[place_of(committed.entries, start) :]
    return start <= committed.condemned and found[: len(wanted)] == wanted

"""What one log directory says of its logs with a checksum, and which version of that is on its disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.core.ids import TopicPartition
from headrace.log import claims_file, files
from headrace.log.claims_file import Claimed, ClaimsFile
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog
from headrace.log.side_files import SideFiles


class DirectoryClaims:
    """Whoever writes is one at a time: `DirectoryCheckpoints` sees to that."""

    __slots__ = ("_directory", "_is_behind", "found", "logs", "written")

    def __init__(self, directory: LogDirectory) -> None:
        self._directory = directory
        self.logs: dict[TopicPartition, Claimed] | None = None
        """What the file says; None if there is none that can be read."""
        self.written = 0
        """Which version of the file is on the disk, or, if it is behind, which one the cluster knows."""
        self.found = 0
        """Which version was there at the start, before this process has written one."""
        self._is_behind = False
        """The cluster knows a later version than is on the disk: the next one is news whatever it says."""

    def load(self) -> None:
        said = claims_file.load(self._directory.disk, self._directory.path)
        if said is not None:
            self.logs, self.written, self.found = dict(said.logs), said.written, said.written

    def raise_version(self, told: int) -> bool:
        """The cluster knows the version `told`: the next one is above it. True if that at the start was
        older."""
        if self.written < told:
            self.written, self._is_behind = told, True
        return self.found < told

    def write(self, logs: dict[TopicPartition, Claimed]) -> None:
        if logs == self.logs and not self._is_behind:
            return
        said = claims_file.encode(ClaimsFile(self.written + 1, logs))
        files.replace(self._directory.disk, f"{self._directory.path}/{claims_file.NAME}", said, sync=True)
        self.logs = logs
        self.written += 1
        self._is_behind = False


def claims_of(
    logs: Sequence[PartitionLog], marks: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Claimed]:
    """What can be said of them now; `marks` are their high watermarks."""
    return {
        log.topic_partition: Claimed(
            log.log_start_offset,
            marks.get(log.topic_partition, 0),
            log.first_batch,
            log.at_stop.side if log.closed else SideFiles(),
            log.topic_id,
        )
        for log in logs
    }

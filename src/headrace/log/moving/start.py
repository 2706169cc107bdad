"""What a move between log directories that was interrupted leaves, when the logs are opened again.

A future replica is never opened: whatever it lacks is still in the log. It is copied anew, if somebody goes
on with the move. Between the two renames of a swap both directories have a folder of the partition. Then the
later one is opened (marker.py), and the other one keeps its files under another name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from headrace.core.ids import TopicPartition
from headrace.log import files
from headrace.log.directory import LogDirectory
from headrace.log.moving import marker
from headrace.log.moving.marker import Moved

Named = Mapping[LogDirectory, Sequence[str]]
"""The names in each working directory."""


class Interrupted(NamedTuple):
    partition: TopicPartition
    directory: LogDirectory
    """Where it was to go."""
    path: str


def future_replicas(named: Named) -> list[Interrupted]:
    return [
        Interrupted(partition, directory, f"{directory.path}/{name}")
        for directory, names in named.items()
        for name in names
        if name.endswith(files.FUTURE_DIRECTORY) and (partition := files.parse_future(name)) is not None
    ]


def superseded(named: Named) -> list[tuple[LogDirectory, TopicPartition]]:
    """The folders of partitions of which another directory has a later one.

    If no marker says which is the later one, none of them is here: somebody has to look at them.
    """
    places: dict[TopicPartition, list[LogDirectory]] = {}
    for directory, names in named.items():
        for name in names:
            partition = files.parse_directory(name)
            if partition is not None:
                places.setdefault(partition, []).append(directory)
    found = []
    for partition, directories in places.items():
        if len(directories) > 1:
            found += [(each, partition) for each in _older(partition, directories)]
    return found


def _older(partition: TopicPartition, directories: Sequence[LogDirectory]) -> list[LogDirectory]:
    markers = {each: _marker(each, partition) for each in directories}
    latest = max(directories, key=lambda each: markers[each].number)
    others = [each for each in directories if each is not latest]
    is_known = all(markers[latest].supersedes(markers[each], each.uuid) for each in others)
    return others if is_known else []


def _marker(directory: LogDirectory, partition: TopicPartition) -> Moved:
    try:
        return marker.load(directory.disk, f"{directory.path}/{partition}")
    except OSError:
        return Moved()  # whoever opens the folder meets it too


def open_alone(directory: LogDirectory, folder: str, present: Collection[UUID]) -> None:
    """Before the folder of a partition is opened that no other directory here has.

    If a move from it was interrupted, and where it was to go is not among the directories that are `present`,
    the folder there may have the partition's name too, and what is appended now goes beyond it.
    """
    disk = directory.disk
    try:
        if not disk.exists(f"{folder}/{marker.PREPARED}"):
            return
        prepared = marker.load(disk, folder, marker.PREPARED)
        if prepared.sources <= set(present):
            marker.remove(disk, folder, marker.PREPARED)
        else:
            marker.take_prepared(disk, folder)
    except OSError as error:
        raise directory.fail(error, f"open {folder}", half_done=True) from error


def forget(directory: LogDirectory, folder: str) -> None:
    """The older folders are gone for good."""
    try:
        marker.remove(directory.disk, folder)
    except OSError as error:
        directory.refuse(error, f"remove {folder}/{marker.NAME}")

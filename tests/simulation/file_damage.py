"""Files that are damaged: any file of any replica, while its broker is down or while it runs.

What may be damaged is bounded by the completion: nothing acknowledged is lost while one whole replica in sync
exists. So of each partition fewer replicas than min.insync.replicas are ever in doubt, and one that was
damaged counts as whole again only when its files say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Final, NamedTuple, cast

from headrace.broker.broker import Broker
from headrace.broker.handlers import delete_records
from headrace.broker.requests.api import Call
from headrace.core.errors import HeadraceError
from headrace.core.ids import BrokerId
from headrace.log import checkpoints, claims_file, files
from headrace.log.directory_identity import read_meta_properties
from headrace.network.connection import Connection
from headrace.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.damage import ALONE, CUT, MISSING, OLDER, SWAPPED, harm
from tests.simulation.client import TOPIC
from tests.simulation.cluster import DATA, SimulatedHost
from tests.simulation.fault_scene import QUICK, SLOW, FaultScene
from tests.simulation.invariants import METADATA
from tests.simulation.missed_damage import folder_is_missed, is_listed, last_is_missed

Key = tuple[str, int]

WAYS: Final = (*ALONE, SWAPPED, OLDER, MISSING)
FOLDER_WAYS: Final = ("missing", OLDER)
DERIVED: Final = (files.INDEX, files.TIME_INDEX, files.TXN_INDEX, files.SNAPSHOT, files.EPOCHS)
"""Made again from the batches: a replica that lost one of these is as whole as it was."""
MOST_COPIES: Final = 4
HAND_SECONDS: Final = 3.0
"""Until a person has read why a broker does not start."""
WEIGHTS: Final = {
    "first .log": 8,
    "middle .log": 8,
    "last .log": 6,
    files.INDEX: 2,
    files.TIME_INDEX: 3,
    files.TXN_INDEX: 1,
    files.SNAPSHOT: 2,
    files.EPOCHS: 3,
    files.PARTITION_METADATA: 2,
    checkpoints.RECOVERY_POINTS: 3,
    checkpoints.LOG_START_OFFSETS: 4,
    checkpoints.HIGH_WATERMARKS: 3,
    checkpoints.META_PROPERTIES: 1,
    checkpoints.CLEAN_SHUTDOWN: 2,
    "folder": 4,
    "directory": 2,
    "other": 3,
}


class Copy(NamedTuple):
    """What a host had on its disk at some moment."""

    at: float
    life: int
    content: dict[str, bytes]


def kind_of(path: str, paths: list[str]) -> str:
    """By which name of WEIGHTS a file is drawn."""
    folder, _, name = path.rpartition("/")
    if name.endswith(files.LOG):
        logs = [each for each in paths if each.startswith(f"{folder}/") and each.endswith(files.LOG)]
        if path == logs[-1]:
            return "last .log"
        return "first .log" if path == logs[0] else "middle .log"
    for kind in WEIGHTS:
        if name == kind or (kind.startswith(".") and name.endswith(kind)):
            return kind
    return "other"


def partition_of(path: str) -> Key | None:
    """Whose file it is; None: the directory's."""
    parts = path.split("/")
    found = files.parse_directory(parts[2]) if len(parts) > 3 else None
    return None if found is None else (found.topic, found.partition)


async def _delete(broker: Broker, request: DeleteRecordsRequest, call: Call) -> None:
    with suppress(HeadraceError):
        await delete_records.handle(broker.context, request, call)


class FileDamage:
    def __init__(self, scene: FaultScene) -> None:
        self._scene = scene
        self._cluster = scene.cluster
        self._random: Random = scene.random
        self._copies: dict[SimulatedHost, list[Copy]] = {}
        self.count = 0
        self.weights: Mapping[str, int] = WEIGHTS
        """What is damaged how often; what is not in it, never."""
        self.condemn: Callable[[Key, int], None] = lambda _key, _offset: None
        """Is told what is to be deleted."""
        self._identities: dict[SimulatedHost, bytes] = {}
        self.names: dict[str, Callable[[], str | None]] = {
            "damage at a stop": partial(self.while_down, clean=True),
            "damage at a kill": partial(self.while_down, clean=False),
            "damage in service": self.in_service,
            "copy": self.copy,
            "delete records": self.delete_records,
        }

    # --- faults ---

    def copy(self) -> str | None:
        """Somebody keeps a copy of a disk as it is now, to be put back later, wholly or in part."""
        host = self._random.choice(self._cluster.hosts)
        disk = host.disk
        content = {path: disk.content(path) for path in self._files(host)}
        kept = self._copies.setdefault(host, [])
        kept.append(Copy(self._cluster.scheduler.now, host.lives, content))
        del kept[:-MOST_COPIES]
        return f"copy of the disk of {host.name}"

    def while_down(self, *, clean: bool) -> str | None:
        """A broker stops or is killed, and its files are others when it starts again."""
        host = self._scene.victim()
        if host is None or host.process is None or not host.process.is_ready or host.before_start is not None:
            return None
        if not any(self._may_damage(host, key) for key in self._hosted(host)):
            return None
        host.before_start = partial(self._damage, host)
        if clean:
            host.stop()
            return f"stop {host.name}, whose files are damaged then"
        host.kill()
        span = QUICK if self._random.random() < 0.5 else SLOW
        seconds = self._scene.later(span, host.start)
        return f"kill {host.name}, whose files are damaged then, back in {seconds:.2f} s"

    def in_service(self) -> str | None:
        """A sealed segment is damaged while its broker runs, and has it open or not."""
        host = self._scene.victim()
        if host is None:
            return None
        paths = [path for path in self._files(host) if partition_of(path) is not None]
        sealed = [path for path in paths if kind_of(path, paths) in ("first .log", "middle .log")]
        sealed = [path for path in sealed if self._is_synced(host, path)]
        if not sealed:
            return None
        path = self._random.choice(sealed)
        # Not swapped with another's: whoever has a file open keeps it, whatever name it gets.
        self._damage_file(host, path, paths, (*ALONE, OLDER))
        return None

    def delete_records(self) -> str | None:
        """Not damage, but what looks like it: a log that begins later."""
        leaders = [
            (host, partition)
            for host in self._cluster.hosts
            if host.process is not None and host.process.is_ready and host.broker is not None
            for partition in host.broker.partitions.of_topic(TOPIC)
            if partition.is_leader and partition.high_watermark > partition.log.log_start_offset
        ]
        if not leaders:
            return None
        host, partition = self._random.choice(leaders)
        offset = self._random.randint(partition.log.log_start_offset, partition.high_watermark)
        assert host.process is not None
        assert host.broker is not None
        self.condemn(partition.topic_partition, offset)
        asked = DeleteRecordsPartition(partition_index=partition.topic_partition.partition, offset=offset)
        topic = DeleteRecordsTopic(name=TOPIC, partitions=[asked])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=2000)
        call = Call(2, None, cast(Connection, None))
        host.process.loop.create_task(_delete(host.broker, request, call))
        return f"delete {partition.topic_partition} before {offset} at {host.name}"

    def give_back(self, host: SimulatedHost) -> None:
        """A person who reads why a broker refuses its directory gives it back its name."""
        kept = self._identities.pop(host, None)
        is_ready = host.process is not None and host.process.is_ready
        if kept is not None and not is_ready and not self._has_name(host, kept):
            host.disk.put(f"{DATA}/{checkpoints.META_PROPERTIES}", kept)

    def _has_name(self, host: SimulatedHost, kept: bytes) -> bool:
        """A broker that could do without has written a new one, and was killed since: nobody takes that away
        (2009148)."""
        said, before = read_meta_properties(host.disk, DATA), checkpoints.parse_properties(kept)
        return "directory.id" in said and all(
            said.get(key) == before.get(key) for key in ("cluster.id", "node.id")
        )

    # --- what is damaged ---

    def _damage(self, host: SimulatedHost) -> None:
        """After a kill not to what no checkpoint knows of yet: nobody can miss that."""
        clean = not host.was_killed
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            paths = self._files(host)
            kinds: dict[str, list[str]] = {}
            for path in paths:
                kinds.setdefault(kind_of(path, paths), []).append(path)
            weights = self.weights
            drawn = [kind for kind in weights if kind in kinds or kind in ("folder", "directory")]
            if not drawn:
                return
            kind = self._random.choices(drawn, weights=[weights[each] for each in drawn])[0]
            if kind == "directory":
                self._restore(host, f"{DATA}/", None, clean)
            elif kind == "folder":
                self._damage_folder(host, paths, clean)
            else:
                self._damage_file(host, self._random.choice(kinds[kind]), paths, clean=clean)

    def _damage_file(
        self,
        host: SimulatedHost,
        path: str,
        paths: list[str],
        ways: Sequence[str] = WAYS,
        *,
        clean: bool = True,
    ) -> None:
        disk, random = host.disk, self._random
        kind, key = kind_of(path, paths), partition_of(path)
        way = random.choice(ways)
        is_bound = kind == "last .log" and not clean
        if way == SWAPPED:
            others = [each for each in paths if kind_of(each, paths) == kind and partition_of(each) != key]
            if not others or key is None:
                return
            other = random.choice(others)
            other_key = partition_of(other)
            if is_bound and not (
                last_is_missed(host, key, path, disk.content(other))
                and other_key is not None
                and last_is_missed(host, other_key, other, disk.content(path))
            ):
                return
            is_sealed = kind in ("first .log", "middle .log")
            if is_sealed and not clean and not (is_listed(host, path) and is_listed(host, other)):
                return
            if not (self._mark(host, key, kind) and self._mark(host, partition_of(other), kind)):
                return
            mine, theirs = disk.content(path), disk.content(other)
            disk.put(path, theirs)
            disk.put(other, mine)
            self._did(host, f"{path} and {other} are swapped")
            return
        if way == OLDER:
            old = [copy.content[path] for copy in self._copies.get(host, ()) if path in copy.content]
            left = random.choice(old) if old else harm(disk.content(path), CUT, random)
        else:
            left = harm(disk.content(path), way, random)
        if is_bound and key is not None and not last_is_missed(host, key, path, left):
            return
        if not self._mark(host, key, kind):
            return
        if kind == checkpoints.META_PROPERTIES:
            self._save_identity(host)
        if left is None:
            disk.lose(path)
            way = "missing"
        else:
            disk.put(path, left)
        self._did(host, f"{path} is {way}")

    def _damage_folder(self, host: SimulatedHost, paths: list[str], clean: bool) -> None:
        keys = sorted({key for path in paths if (key := partition_of(path)) is not None})
        if not keys:
            return
        key = self._random.choice(keys)
        folder = f"{DATA}/{key[0]}-{key[1]}"
        if self._random.choice(FOLDER_WAYS) == "missing":
            if self._mark(host, key, "folder"):
                host.disk.lose(folder)
                self._did(host, f"{folder} is missing")
            return
        self._restore(host, f"{folder}/", key, clean)

    def _restore(self, host: SimulatedHost, under: str, key: Key | None, clean: bool) -> None:
        """An older copy of everything there is put in the place of what is there."""
        copies = self._copies.get(host, [])
        if key is None:
            copies = [copy for copy in copies if copy.life < host.lives - 1 or self._is_outdated(host, copy)]
        if not copies:
            return
        copy = self._random.choice(copies)
        old = {path: data for path, data in copy.content.items() if path.startswith(under)}
        if key is not None and not clean and not folder_is_missed(host, key, old):
            return
        if not old or not self._mark(host, key, "folder"):
            return
        if key is None:  # the copy may be of a time when that was damaged
            self._save_identity(host)
        host.disk.lose(under.rstrip("/"))
        for path, data in old.items():
            host.disk.put(path, data)
        self._did(host, f"{under} is as it was at {copy.at:.3f} s")

    def _save_identity(self, host: SimulatedHost) -> None:
        path = f"{DATA}/{checkpoints.META_PROPERTIES}"
        if path in host.disk.files(DATA):
            self._identities.setdefault(host, host.disk.content(path))
            self._cluster.network.loop.call_later(HAND_SECONDS, self.give_back, host)

    def _is_outdated(self, host: SimulatedHost, copy: Copy) -> bool:
        """Whether the cluster has heard of more than a copy from the life that has just ended says. Else
        it proves as much as the disk itself."""
        said = claims_file.decode(copy.content.get(f"{DATA}/{claims_file.NAME}", b""))
        known = self._cluster.ensemble.versions.get(BrokerId(host.broker_id), {})
        written = 0 if said is None else said.written
        return bool(known) and all(written < version for version in known.values())

    def _did(self, host: SimulatedHost, what: str) -> None:
        self.count += 1
        self._cluster.tell(f"*** damage at {host.name}: {what}")

    # --- what may be damaged ---

    def _is_synced(self, host: SimulatedHost, path: str) -> bool:
        """Before, it cannot leave memory."""
        key, broker = partition_of(path), host.broker
        found = None if key is None or broker is None else broker.partitions.find(*key)
        if found is None:
            return False
        ends = [
            each.base_offset for each in found.log.segments if each.base_offset <= found.log.recovery_point
        ]
        return int(path.rpartition("/")[2].removesuffix(files.LOG)) < max(ends, default=0)

    def _files(self, host: SimulatedHost) -> list[str]:
        """Not what is on its way out, nor the lock."""
        found = host.disk.files(f"{DATA}/")
        gone = (files.DELETED, files.TEMPORARY, checkpoints.LOCK)
        return [
            path
            for path in found
            if not path.endswith(gone) and (len(path.split("/")) == 3 or partition_of(path) is not None)
        ]

    def _mark(self, host: SimulatedHost, key: Key | None, kind: str) -> bool:
        """From now on this replica, or all of the host, is in doubt. False: it may not be."""
        if kind in DERIVED:
            return True
        keys = [key] if key is not None and not self._is_all_that_it_knows(host, key) else self._hosted(host)
        if not all(self._may_damage(host, each) for each in keys):
            return False
        host.damaged.update(dict.fromkeys(keys))
        if key is None:
            host.is_suspect = host.is_emptied = True
        return True

    def _is_all_that_it_knows(self, host: SimulatedHost, key: Key) -> bool:
        """The copy of the metadata, unless a clean stop has written down which replicas there are: without
        it the broker can vouch for none."""
        written = {f"{DATA}/{claims_file.NAME}", f"{DATA}/{checkpoints.CLEAN_SHUTDOWN}"}
        return key == METADATA and not written <= set(host.disk.files(DATA))

    def _hosted(self, host: SimulatedHost) -> list[Key]:
        return sorted({key for path in self._files(host) if (key := partition_of(path)) is not None})

    def _may_damage(self, host: SimulatedHost, key: Key) -> bool:
        """Of each partition by itself: brokers that each lack another one still have all of them."""
        in_doubt = sum(each.is_in_doubt(key) for each in self._scene.others(host))
        return in_doubt + 1 < self._scene.min_in_sync

"""Whether anybody can miss what damage takes from the end of a log after a kill.

What was written after the last checkpoint is known to no other file of the same disk. If it is gone, and ends
between two batches or inside the last one, the log looks like one that was killed a moment earlier. That is a
known limit (docs/invariants/log.md), and not what the seeds look for.
"""

from __future__ import annotations

from headrace.core.errors import CorruptBatch
from headrace.core.ids import BrokerId, TopicPartition
from headrace.log import claims_file, files, manifest
from headrace.log.claims_file import Claimed, first_checksum
from headrace.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, check
from tests.simulation.cluster import DATA, SimulatedHost

Key = tuple[str, int]


def _claimed(host: SimulatedHost, key: Key) -> Claimed | None:
    """None: what the cluster was told of is not there, so the broker cannot vouch for anything."""
    path = f"{DATA}/{claims_file.NAME}"
    said = claims_file.decode(host.disk.content(path)) if path in host.disk.files(f"{DATA}/") else None
    if said is None:
        return None if host.cluster.ensemble.versions.get(BrokerId(host.broker_id)) else Claimed()
    return said.logs.get(TopicPartition(*key), Claimed())


def end_of(data: bytes, base: int) -> tuple[int, bool]:
    """Where the whole batches of a segment end, and whether anything but half of a last one follows. Gaps are
    what compaction leaves."""
    position, end = 0, base
    while position < len(data):
        left = len(data) - position
        length = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
        if left < HEADER_SIZE or length + LOG_OVERHEAD > left:
            return end, True
        try:
            header = check(data, position)
        except CorruptBatch:
            return end, False
        if header.base_offset < end:
            return end, False
        position, end = position + header.size, header.next_offset
    return end, True


def last_is_missed(host: SimulatedHost, key: Key, path: str, left: bytes | None) -> bool:
    """Whether a start after a kill notices that the last segment is `left`, or that nothing is lost by it."""
    disk = host.disk
    claimed, base = _claimed(host, key), int(path.rpartition("/")[2].removesuffix(files.LOG))
    if claimed is None:
        return True
    first = claimed.first_batch
    begins = None if left is None else first_checksum(left[:HEADER_SIZE])
    if first is not None and first.base_offset == base and begins != first.checksum:
        return True
    if left is None:
        return base < claimed.high_watermark
    end, is_torn = end_of(left, base)
    lost_nothing = left == disk.content(path)
    return not is_torn or end < claimed.high_watermark or lost_nothing


def is_listed(host: SimulatedHost, path: str) -> bool:
    """Whether the manifest knows a sealed segment. One that is not synced yet may be swapped with another's
    that is as long without anybody noticing: no batch says whose it is."""
    folder, _, name = path.rpartition("/")
    if f"{folder}/{manifest.NAME}" not in host.disk.files(f"{folder}/"):
        return False
    try:
        known = manifest.decode(host.disk.content(f"{folder}/{manifest.NAME}"))
    except manifest.CorruptManifest:
        return False
    return int(name.removesuffix(files.LOG)) in [each.base_offset for each in known.sealed]


def folder_is_missed(host: SimulatedHost, key: Key, old: dict[str, bytes]) -> bool:
    """The same of a folder that is as it was earlier, in another life of the broker or in this one."""
    disk = host.disk
    claimed = _claimed(host, key)
    if claimed is None:
        return True
    now = {path: disk.content(path) for path in disk.files(f"{DATA}/{key[0]}-{key[1]}/")}
    end = _log_end(old)
    return end < claimed.high_watermark or end >= _log_end(now)


def _log_end(content: dict[str, bytes]) -> int:
    logs = sorted(path for path in content if path.endswith(files.LOG))
    if not logs:
        return 0
    return end_of(content[logs[-1]], int(logs[-1].rpartition("/")[2].removesuffix(files.LOG)))[0]

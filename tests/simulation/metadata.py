"""Every broker's copy of the metadata, batch by batch against what was committed."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.broker.broker import Broker
from headrace.core.ports import Buffer
from headrace.protocol.batch import read_header
from tests.simulation.replicas import InvariantBroken


def compare_metadata(name: str, broker: Broker, at: int, known: Mapping[int, Buffer]) -> None:
    """MetadataLogMatching, from offset `at` on."""
    log, end = broker.metadata.partition.log, broker.metadata.store.end
    if log.closed or log.directory.failure is not None:
        return
    at = max(at, log.log_start_offset)
    while at < end:
        part = log.read(at, 1 << 30, limit=end, min_one=True)
        if part.length == 0:
            return
        data = part.file.pread(part.length, part.position)
        position = 0
        while position < len(data) and at < end:
            header = read_header(data, position)
            committed = known.get(header.base_offset)
            if committed is None or read_header(committed).crc != header.crc:
                raise InvariantBroken(
                    "MetadataLogMatching", f"{name} holds another batch at {header.base_offset}"
                )
            position += header.size
            at = header.next_offset

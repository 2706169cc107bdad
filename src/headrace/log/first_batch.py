"""Whether the segment that was active still begins with the batch that `headrace.claims` knows.

Another log's segment may have the same name and length, and be whole in itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.core.ports import Disk
from headrace.log import files
from headrace.log.claims_file import first_checksum
from headrace.log.manifest import Contents
from headrace.log.wholeness import Claims, FileFault
from headrace.protocol.batch import HEADER_SIZE


def first_batch_fault(
    disk: Disk, folder: str, claims: Claims, known: Contents | None, bases: Sequence[int]
) -> FileFault | None:
    """None if it does, or need not. Since the last checkpoint it may have been sealed, and then the manifest
    knows better; before a loss of power it may not have been synced."""
    first = claims.first_batch
    if first is None or (known is not None and known.emptied):
        return None
    if known is not None and known.sealed and first.base_offset < known.sealed[-1].next_offset:
        return None
    if not claims.lost_nothing and claims.recovery_point <= first.base_offset:
        return None
    path = f"{folder}/{files.numbered(first.base_offset)}{files.LOG}"
    if first.base_offset not in bases:
        if bases and first.base_offset < bases[0]:
            return None  # the beginning may have been deleted: who looks at the first segment knows
        return FileFault(path, "the segment file is missing")
    file = disk.open(path)
    try:
        head = file.pread(HEADER_SIZE, 0)
    finally:
        file.close()
    if first_checksum(head) != first.checksum:
        return FileFault(path, "it does not begin with the batch that was written there")
    return None

"""Where this broker's copy of the metadata ends, beside what the coordination service says of it."""

from __future__ import annotations

from headrace.broker.cluster.metadata_partition import METADATA_PARTITION
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.store import MetadataStore
from headrace.core.errors import CorruptLog, DoesNotFollow
from headrace.core.ports_coordination import Coordination, CoordinationUnavailable
from headrace.log.manager import LogManager


async def is_all_there(runtime: Runtime, store: MetadataStore, coordination: Coordination) -> bool:
    """Whether whoever becomes controller with this copy knows everything that is committed. If not, says why.

    The end may move meanwhile: it is read again for each comparison.
    """
    start = await coordination.start_offset()
    if store.end < start:
        runtime.log.warning(
            "cannot become controller: this broker's metadata ends before what ZooKeeper still holds;"
            " start a broker that has it",
            metadata_end=store.end,
            needed=start,
        )
        return False
    end = await coordination.end()
    if store.end > end:
        # Nobody can go on from there, whoever becomes controller. Data flows meanwhile, as without a quorum.
        runtime.log.error(
            "cannot become controller: ZooKeeper has lost metadata that this broker has, as after a"
            " restore of an older snapshot; stop the brokers, remove what is below the chroot, and run"
            " `headrace cluster recover-metadata`",
            metadata_end=store.end,
            zookeeper_end=end,
        )
        return False
    return True


async def cut_damaged_end(
    runtime: Runtime, logs: LogManager, coordination: Coordination, error: DoesNotFollow
) -> bool:
    """A batch of this copy that is said to be of a later epoch than there was: no checksum covers that.
    Nothing could follow it, ever. It is cut off, and fetched again by the next process."""
    try:
        latest = await coordination.latest_epoch()
    except CoordinationUnavailable:
        return False
    log = logs.get(METADATA_PARTITION)
    impossible = [start for epoch, start in log.epochs.entries if epoch > latest]
    if not impossible:
        return False
    await runtime.loop.run_in_executor(None, log.truncate_to, impossible[0])
    runtime.give_up(
        CorruptLog(
            f"the copy of the metadata was damaged, {error}, and is cut off at offset {impossible[0]}:"
            " start the broker again, it fetches the rest"
        )
    )
    return True

"""The last step: the source at rest, the copies whole, the final offsets, then the promotion.

Up to the promotion each part may be repeated and taken back. The file says PROMOTING before the first link is
asked, and from then on the only way is forward, for whoever runs this again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headrace.client import health, links
from headrace.client.errors import ClientFailure
from headrace.client.links import LinkView
from headrace.migration import carrying, draining, ends, linking, report
from headrace.migration.carrying import Carried
from headrace.migration.draining import Drain, Patience
from headrace.migration.ends import Both
from headrace.migration.linking import Save, Tell
from headrace.migration.proving import compare_tails
from headrace.migration.standing import behind
from headrace.migration.state import Migration, Stage

LOOK_SECONDS: Final = 0.05
PROMOTION_SECONDS: Final = 300.0


class How(NamedTuple):
    fence: bool
    everybody_may_the_rest: bool
    with_groups: bool
    patience: Patience


class Clocks(NamedTuple):
    monotonic: Callable[[], float]
    wall_ms: Callable[[], int]


async def cut_over(
    both: Both, migration: Migration, how: How, save: Save, tell: Tell, clocks: Clocks
) -> dict[str, Any]:
    """The report. Goes on where an earlier one has ended."""
    cutover = migration.cutover
    if cutover.report is not None:
        return cutover.report
    carried: list[Carried] = []
    if cutover.stage is not Stage.PROMOTING:
        await ends.check_topics(both.source, migration)
        await _quiet(both, migration, how, save, clocks)
        carried = await _take_the_last(both, migration, how, save, tell, clocks)
        cutover.stage = Stage.PROMOTING
        save()
    elif how.with_groups and migration.group_patterns:
        limits = draining.unlisted(cutover.ends)
        carried = await _unless_gone(carrying.carry(both, migration, limits, only_forward=True), [])
    promoted = await _promote(both, migration, tell)
    now_ms = clocks.wall_ms()
    late = await _unless_gone(_late(both, migration), {})
    await _unless_gone(linking.throttle(both.source, migration, None, save), None)
    bootstrap = await _addresses(both)
    cutover.report = report.document(migration, promoted, carried, late, bootstrap, now_ms)
    cutover.stage = Stage.DONE
    save()
    return cutover.report


async def _quiet(both: Both, migration: Migration, how: How, save: Save, clocks: Clocks) -> None:
    """Also one that was begun without a fence may get one; what the file says of it may not be there yet."""
    cutover = migration.cutover
    if how.fence or cutover.fence:
        cutover.stage = Stage.FENCING
        if not cutover.fence:
            cutover.silent_from_ms = clocks.wall_ms()
        await draining.shut_out(both, migration, save, everybody_may_the_rest=how.everybody_may_the_rest)
    cutover.stage = Stage.DRAINING
    save()


async def _take_the_last(
    both: Both, migration: Migration, how: How, save: Save, tell: Tell, clocks: Clocks
) -> list[Carried]:
    while True:
        drain = Drain(both, migration, save, tell, how.patience, clocks.monotonic, clocks.wall_ms)
        source = await drain.until_over()
        differences = await compare_tails(both, source, list(migration.topics))
        if differences:
            raise ClientFailure(
                f"the last batches differ: {differences[0]}",
                "nothing is promoted: `headrace migrate cutover --undo`, then `headrace migrate prove`",
            )
        carried = []
        if how.with_groups and migration.group_patterns:
            carried = await carrying.carry(both, migration, source)
        if await ends.ends(both.source, migration.topics) == source:
            migration.cutover.ends = draining.listed(source)
            return carried
        tell("the source has taken more")


async def _promote(both: Both, migration: Migration, tell: Tell) -> list[LinkView]:
    """All at once. Asked for again it changes nothing; the brokers go on by themselves."""
    await asyncio.gather(
        *(links.alter(both.target, name, {links.STATE: links.PROMOTING}) for name in migration.topics)
    )
    deadline = asyncio.get_running_loop().time() + PROMOTION_SECONDS
    while True:
        found = await ends.views(both, migration)
        waiting = [view.topic for view in found if view.state != links.PROMOTED]
        if not waiting:
            return found
        if asyncio.get_running_loop().time() > deadline:
            raise ClientFailure(
                f"not all partitions are open yet: {', '.join(waiting)}",
                "it goes on by itself; `headrace migrate cutover` waits for it again",
            )
        tell(f"{len(waiting)} topics are being promoted")
        await asyncio.sleep(LOOK_SECONDS)


async def _late(both: Both, migration: Migration) -> dict[Any, int]:
    now = await ends.ends(both.source, migration.topics)
    return behind(draining.unlisted(migration.cutover.ends), now)


async def _unless_gone(work: Any, otherwise: Any) -> Any:
    """What is asked of the source once the topics are promoted: it may be gone, and that stops nothing."""
    try:
        return await work
    except ClientFailure:
        return otherwise


async def _addresses(both: Both) -> str:
    view = await health.describe_cluster(both.target)
    return ",".join(broker.address for broker in view.brokers if broker.alive)


async def undo(both: Both, migration: Migration, save: Save) -> None:
    """Producers may write at the source again, and the links copy on."""
    await draining.let_in(both, migration, save)
    cutover = migration.cutover
    cutover.stage, cutover.silent_from_ms, cutover.ends = Stage.NOT_BEGUN, None, {}
    save()

"""The source comes to rest: nobody writes, transactions are over, the copies have everything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from headrace.client import transactions
from headrace.client.acls import create_acls, delete_acls, describe_acls
from headrace.client.errors import ClientFailure, Refused
from headrace.client.open_transactions import OpenTransaction, open_transactions
from headrace.core.ids import TopicPartition
from headrace.migration import ends
from headrace.migration.ends import Both
from headrace.migration.fence import as_list, from_list, rules_for
from headrace.migration.linking import Save, Tell, check_running
from headrace.migration.standing import Ends, Standing, behind
from headrace.migration.state import Migration
from headrace.protocol.error_codes import ErrorCode

LOOK_SECONDS: Final = 0.1
_VIEWS_SECONDS: Final = 2.0


class Patience(NamedTuple):
    still: float
    """Seconds in which no end moves."""
    transactions: float
    """Seconds for open transactions to end by themselves, once nothing else is written."""
    overall: float


async def shut_out(both: Both, migration: Migration, save: Save, *, everybody_may_the_rest: bool) -> None:
    """Rules that deny writing, at every broker of the source when this returns."""
    try:
        present = await describe_acls(both.source)
    except Refused as error:
        if error.code != ErrorCode.SECURITY_DISABLED:
            raise
        raise ClientFailure(
            "the source has no authorizer, so that no rule keeps producers out",
            "stop the producers yourself and leave --fence-with out",
        ) from None
    missing = rules_for(migration.topics, present, everybody_may_the_rest=everybody_may_the_rest)
    known = migration.cutover.fence
    known += [each for each in map(as_list, missing) if each not in known]
    save()
    await create_acls(both.source, missing)


async def let_in(both: Both, migration: Migration, save: Save) -> None:
    """Take away the rules of the fence. Denials go first, so that nobody lacks what was given back."""
    rules = [from_list(each) for each in migration.cutover.fence]
    for rule in sorted(rules, key=lambda rule: rule.permission):
        await delete_acls(both.source, [rule])
    migration.cutover.fence = []
    save()


class Drain:
    """Waits until the copies have all that the source will ever have."""

    def __init__(
        self,
        both: Both,
        migration: Migration,
        save: Save,
        tell: Tell,
        patience: Patience,
        clock: Callable[[], float],
        wall_ms: Callable[[], int],
    ) -> None:
        self._both, self._migration, self._save, self._tell = both, migration, save, tell
        self._patience, self._clock, self._wall_ms = patience, clock, wall_ms
        self._standing = Standing()
        self._has_moved = False
        self._aborted_at: float | None = None
        self._next_views = 0.0

    async def until_over(self) -> Ends:
        """The source's ends, which the copies have reached."""
        deadline = self._clock() + self._patience.overall
        while True:
            source = await ends.ends(self._both.source, self._migration.topics)
            now = self._clock()
            self._note(source, now)
            waiting = await self._in_the_way(source, now)
            if waiting is None:
                return source
            self._tell(waiting)
            await self._check_links(now)
            if now > deadline:
                raise ClientFailure(
                    f"not over after {self._patience.overall:g} s: {waiting}",
                    "`headrace migrate cutover` goes on with it; `headrace migrate cutover --undo` takes back"
                    " what was begun",
                )
            await asyncio.sleep(LOOK_SECONDS)

    def _note(self, source: Ends, now: float) -> None:
        """Without a fence the last record that is seen tells since when nobody is acknowledged."""
        cutover, seen_before = self._migration.cutover, self._standing.ends is not None
        moved = self._standing.look(source, now)
        self._has_moved = self._has_moved or (moved and seen_before)
        if moved and not cutover.fence and (seen_before or cutover.silent_from_ms is None):
            cutover.silent_from_ms = self._wall_ms()

    async def _in_the_way(self, source: Ends, now: float) -> str | None:
        stood = self._standing.seconds(now)
        if stood < self._patience.still:
            if self._migration.cutover.fence:
                return "the last records arrive at the source"
            if self._has_moved:
                return "producers still write at the source: stop them"
            return f"looking for {self._patience.still:g} s whether anybody still writes at the source"
        still_open = await open_transactions(self._both.source, source)
        ending = [each for each in still_open if not each.hangs]
        if ending:
            return await self._end(ending, now)
        here = await ends.ends(self._both.target, self._migration.topics)
        lacking = behind(here, source)
        if lacking:
            return f"{sum(lacking.values()):,} records are on their way"
        again = await ends.ends(self._both.source, self._migration.topics)
        if self._standing.look(again, self._clock()):
            return "the source has taken more"
        return None

    async def _end(self, still_open: list[OpenTransaction], now: float) -> str:
        """First by themselves; then as a producer would that begins under the same id."""
        ids = sorted({each.transaction.transactional_id for each in still_open if each.transaction})
        if self._aborted_at is None:
            self._aborted_at = now + self._patience.transactions
        if now >= self._aborted_at:
            for each in ids:
                if each not in self._migration.cutover.aborted:
                    self._migration.cutover.aborted.append(each)
                    self._save()
                await transactions.fence(self._both.source, each)
            self._aborted_at = now + self._patience.transactions
        return f"transactions are open at the source: {', '.join(ids)}"

    async def _check_links(self, now: float) -> None:
        if now >= self._next_views:
            self._next_views = now + _VIEWS_SECONDS
            check_running(await ends.views(self._both, self._migration))


def listed(source: Ends) -> dict[str, list[int]]:
    """By topic, in the order of partitions, for the state file."""
    found: dict[str, list[int]] = {}
    for partition in sorted(source):
        found.setdefault(partition.topic, []).append(source[partition])
    return found


def unlisted(kept: dict[str, list[int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, index): end for topic, found in kept.items() for index, end in enumerate(found)
    }

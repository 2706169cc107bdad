"""Finds out which topics a subscribed pattern matches, off the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from headrace.broker.runtime.work_thread import WorkThread
from headrace.core.completion import Completion
from headrace.core.errors import HeadraceError, InvalidRegularExpression
from headrace.core.ports import Clock
from headrace.core.tasks import spawn
from headrace.groups.consumer.regexes import Matched, TopicPatterns
from headrace.groups.consumer.regular_expressions import Pattern, compile_pattern

NAMES_AT_ONCE: Final = 256
"""Between them the thread is free for others, and the time that all have taken is looked at."""
MOST_SECONDS: Final = 10.0
"""For one pattern. The dearest that fits into its memory takes two milliseconds for a long name."""


class PatternResolver:
    def __init__(self, patterns: TopicPatterns, thread: WorkThread, clock: Clock) -> None:
        self._patterns = patterns
        self._thread = thread
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    def resolve(self, regex: str) -> Completion[None]:
        """Decided when the patterns have learnt it. InvalidRegularExpression if it is none, or takes too
        long."""
        done: Completion[None] = Completion()
        task = spawn("pattern", self._resolve(regex, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return done

    def refresh(self) -> None:
        """Look up again what is wanted. One that cannot be matched any more matches nothing."""
        patterns = self._patterns
        if not patterns.wanted:
            return
        wanted, version = list(patterns.wanted), patterns.topics.version
        patterns.wanted.clear()
        for regex in wanted:
            self.resolve(regex).when_done(partial(self._on_refreshed, regex, version))

    def _on_refreshed(self, regex: str, version: int, done: Completion[None]) -> None:
        if done.error is not None:
            self._patterns.learn(regex, Matched(frozenset(), version))

    async def _resolve(self, regex: str, done: Completion[None]) -> None:
        topics = self._patterns.topics
        names, version = list(topics.names()), topics.version
        try:
            found = await self.matching(regex, names)
        except HeadraceError as error:
            done.fail(error)
        else:
            self._patterns.learn(regex, Matched(frozenset(found), version))
            done.complete(None)

    async def matching(self, regex: str, names: Sequence[str]) -> list[str]:
        """Those that match as a whole. Raises InvalidRegularExpression."""
        ends = self._clock.monotonic() + MOST_SECONDS
        pattern = await self._thread.run(compile_pattern, regex)
        found: list[str] = []
        for at in range(0, len(names), NAMES_AT_ONCE):
            found += await self._thread.run(_matching, pattern, names[at : at + NAMES_AT_ONCE])
            if self._clock.monotonic() > ends:
                raise InvalidRegularExpression(f"the regular expression `{regex}` takes too long to match.")
        return found


def _matching(pattern: Pattern, names: Sequence[str]) -> list[str]:
    return [name for name in names if pattern.matches(name)]

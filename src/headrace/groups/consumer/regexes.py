"""Subscribed patterns: which topics they match, and when that is looked up again.

A new pattern is looked up with the heartbeat that brings it. All patterns of a group are looked up again when
topics may have changed, but not more often than every ten seconds, and now and then without a change.

In a broker names are matched elsewhere, not on the loop (broker/coordinators/pattern_resolver.py): the
operation stops with `Unresolved`, and is asked for again when the answer is known. What is looked up again
stays as it is until then.

What is remembered is what a pattern matches. Topics that the client may not know of are left out when the
group is given the answer: those of the client whose heartbeat brings the look-up, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from headrace.coordinators.decision import CoordinatorRecord
from headrace.core.errors import HeadraceError, InvalidRegularExpression
from headrace.groups.consumer import records
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.member import ConsumerMember
from headrace.groups.consumer.regular_expressions import compile_pattern
from headrace.groups.consumer.resolved_regex import ResolvedRegex
from headrace.groups.topics_view import TopicsView

_LEAST_INTERVAL_MS: Final = 10_000
_KEPT_LOOKUPS: Final = 256

Sees = Callable[[str], bool] | None
"""Whether a client may know of a topic; None: of every one."""


class RegexUpdate(NamedTuple):
    resolved: Mapping[str, ResolvedRegex]
    """All patterns of the group, once the records are replayed."""
    records: list[CoordinatorRecord]
    changed: bool
    """The topics of the group may be others now."""


class Unresolved(HeadraceError):
    """Which topics a new pattern matches must be found out first."""

    def __init__(self, regex: str) -> None:
        super().__init__(f"the topics of `{regex}` are being looked up")
        self.regex = regex


class Matched(NamedTuple):
    topics: frozenset[str]
    version: int
    """Of the metadata whose names were matched."""


class TopicPatterns:
    """Remembers what patterns match while the metadata stays the same."""

    __slots__ = ("_found", "_is_elsewhere", "_news", "topics", "wanted")

    def __init__(self, topics: TopicsView, *, elsewhere: bool = False) -> None:
        """`elsewhere`: names are matched by somebody else, who calls `learn`."""
        self.topics = topics
        self.wanted: dict[str, None] = {}
        """Patterns that are to be looked up again."""
        self._is_elsewhere = elsewhere
        self._found: dict[str, Matched] = {}
        self._news: set[str] = set()
        """Found a moment ago: good for one question, even if the metadata has moved on meanwhile."""

    def learn(self, regex: str, matched: Matched) -> None:
        if len(self._found) >= _KEPT_LOOKUPS:
            self._found.clear()
            self._news.clear()
        self._found[regex] = matched
        self._news.add(regex)
        self.wanted.pop(regex, None)

    def _matching(self, regex: str) -> Matched | None:
        """None while somebody else is to find it out. Raises InvalidRegularExpression."""
        known = self._found.get(regex)
        if known is not None and (known.version == self.topics.version or regex in self._news):
            self._news.discard(regex)
            return known
        if self._is_elsewhere:
            return None
        pattern = compile_pattern(regex)
        names = frozenset(name for name in self.topics.names() if pattern.matches(name))
        matched = Matched(names, self.topics.version)
        self.learn(regex, matched)
        return matched

    def update(
        self,
        group: ConsumerGroup,
        old: ConsumerMember,
        new: ConsumerMember,
        refresh_interval_ms: int,
        now_ms: int,
        sees: Sees = None,
    ) -> RegexUpdate:
        """For a heartbeat by which a member changes from `old` to `new`."""
        before, after = old.subscribed_regex, new.subscribed_regex
        if not group.regex_counts and not after:
            return RegexUpdate(group.resolved, [], before != after)
        resolved = dict(group.resolved)
        written: list[CoordinatorRecord] = []
        changed = before != after
        if before and before != after and group.regex_counts.get(before, 0) == 1:
            resolved.pop(before, None)
            written.append(records.without_regex(group.group_id, before))
        if after and after not in resolved:
            changed = True
            self._look_up(group, after, resolved, written, now_ms, sees)
        if self._is_due(group, refresh_interval_ms, now_ms):
            # Set by what finds nothing to write, so that nothing is missed if the records are refused.
            refreshed = [
                self._look_up(group, regex, resolved, written, now_ms, sees) for regex in list(resolved)
            ]
            if any(refreshed):
                changed = True
            elif None not in refreshed:
                group.regexes_version = self.topics.version
                group.regexes_checked_ms = now_ms
        return RegexUpdate(resolved, written, changed)

    def _look_up(
        self,
        group: ConsumerGroup,
        regex: str,
        resolved: dict[str, ResolvedRegex],
        written: list[CoordinatorRecord],
        now_ms: int,
        sees: Sees,
    ) -> bool | None:
        """Whether the topics are others than before. Only then they are written down. None: not known yet."""
        before = resolved.get(regex)
        try:
            matched = self._matching(regex)
        except InvalidRegularExpression:
            if before is None:
                raise
            # Another version of the broker took it. The group must live on all the same.
            matched = Matched(frozenset(), self.topics.version)
        if matched is None:
            if before is None:
                raise Unresolved(regex)
            self.wanted[regex] = None
            return None
        topics = matched.topics if sees is None else frozenset(filter(sees, matched.topics))
        if before is not None and before.topics == topics:
            return False
        resolved[regex] = ResolvedRegex(topics, matched.version, now_ms)
        written.append(records.resolved(group.group_id, regex, resolved[regex]))
        return True

    def _is_due(self, group: ConsumerGroup, refresh_interval_ms: int, now_ms: int) -> bool:
        if group.regexes_checked_ms < 0:
            return True
        waited_ms = now_ms - group.regexes_checked_ms
        if waited_ms < 0:
            return True
        if group.regexes_version != self.topics.version:
            return waited_ms > _LEAST_INTERVAL_MS
        return waited_ms > refresh_interval_ms


def regexes_without(group: ConsumerGroup, leaving: list[ConsumerMember]) -> RegexUpdate:
    """For members that leave: what only they meant is forgotten."""
    if not group.resolved:
        return RegexUpdate(group.resolved, [], False)
    resolved = dict(group.resolved)
    left: dict[str, int] = {}
    for member in leaving:
        left[member.subscribed_regex] = left.get(member.subscribed_regex, 0) + 1
    gone = [regex for regex in resolved if group.regex_counts.get(regex, 0) <= left.get(regex, 0)]
    for regex in gone:
        del resolved[regex]
    written = [records.without_regex(group.group_id, regex) for regex in gone]
    return RegexUpdate(resolved, written, bool(gone))

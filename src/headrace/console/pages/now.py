"""Now: is the cluster well, and what flows through it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headrace.audit.verdict import LOG, PRODUCERS, Verdict
from headrace.audit.verdict import State as Window
from headrace.client.findings import findings
from headrace.console.pages.page import Page, Scene
from headrace.doctor.model import Unknown
from headrace.observe.history import Track, coarser
from headrace.observe.snapshot import Snapshot, TopicSeen, Totals, certified_until

STREAMS: Final = 8
PLACES: Final = 4
LATE_MS: Final = 600_000
MOST_NOTICED: Final = 5
BUT: Final = "Well, with something to look at"
"""Every copy is there, and a broker tells of something that wants a person."""

SENTENCES: Final = {
    "healthy": ("All is well", "Every partition has a leader and all of its copies.", "good"),
    "degraded": ("Degraded", "Everything works, with less safety than asked for.", "warn"),
    "unreadable": ("Records are damaged", "Some records cannot be read, and no other copy has them.", "bad"),
    "unwritable": ("Writes are refused", "Some partitions have too few copies for acks=all.", "bad"),
    "offline": ("Partitions are offline", "Some partitions can be neither read nor written.", "bad"),
}


class Word(NamedTuple):
    """How the cluster is."""

    verdict: str
    headline: str
    sentence: str
    mood: str


class Told(NamedTuple):
    """What is wrong, where, and what to do about it."""

    headline: str
    where: Sequence[str]
    more: int
    do: str


class Noticed(NamedTuple):
    """What `headrace cluster status` does not judge, and a person wants to know."""

    text: str
    path: str


class Stream(NamedTuple):
    """Records a second of a topic at the four stages; None where nobody tells."""

    topic: str
    sent: float | None
    log: float | None
    read: float | None
    certified: float | None
    reader: str
    """What the third stage is: lake, or groups."""
    certified_until_ms: int | None
    window_ms: int | None
    """Where the audit's last decided window begins: all widths are of it, so that they can be compared. None:
    they are of now."""
    lag: int | None
    late_ms: int | None

    @property
    def widths(self) -> list[float | None]:
        return [self.sent, self.log, self.read, self.certified]


class NowView(NamedTuple):
    word: Word
    findings: Sequence[Told]
    noticed: Sequence[Noticed]
    totals: Totals
    brokers_alive: int
    brokers: int
    groups: int | None
    groups_behind: int | None
    late_ms: int | None
    streams: Sequence[Stream]
    widest: float
    quiet: int
    """Topics that are not among the streams."""
    audit: str
    """there, none or not known."""
    reads: str
    """Why nobody knows who reads; empty where it is known."""
    trend_in: Sequence[float | None]
    trend_out: Sequence[float | None]


def now(scene: Scene) -> Page:
    seen = scene.snapshot
    streams, quiet = _streams(seen)
    groups = None if isinstance(seen.groups, Unknown) else list(seen.groups.values())
    lates = [group.late_ms for group in groups or ()]
    knows_all = groups is not None and seen.commits is None and None not in lates
    view = NowView(
        word_of(seen),
        told(seen),
        _noticed(seen),
        seen.totals,
        sum(broker.state == "alive" for broker in seen.brokers.values()),
        len(seen.brokers),
        None if groups is None else len(groups),
        sum((group.lag or 0) > 0 for group in groups) if knows_all and groups is not None else None,
        max((late for late in lates if late is not None), default=0) if knows_all else None,
        streams,
        max((width for stream in streams for width in stream.widths if width is not None), default=0.0),
        quiet,
        "none" if seen.audit is None else "not known" if isinstance(seen.audit, Unknown) else "there",
        "" if seen.commits is None else seen.commits.reason,
        coarser(scene.history.of(Track.IN, "", seen.at_ms), 90, mean=True),
        coarser(scene.history.of(Track.OUT, "", seen.at_ms), 90, mean=True),
    )
    return Page("now.html", "Now", "now", view)


def word_of(seen: Snapshot) -> Word:
    if isinstance(seen.health, Unknown):
        return Word("unknown", "Nobody can tell", seen.health.reason, "warn")
    verdict = seen.health.verdict
    word = Word(verdict, *SENTENCES[verdict])
    if seen.is_partial and verdict == "healthy":
        word = word._replace(sentence="Of what you may see. The rest of the cluster is not told of.")
    return word._replace(headline=BUT, mood="warn") if word.mood == "good" and told(seen) else word


def told(seen: Snapshot) -> list[Told]:
    if isinstance(seen.health, Unknown):
        return []
    return [
        Told(found.headline, list(found.where[:PLACES]), max(0, len(found.where) - PLACES), found.do)
        for found in findings(seen.health)
    ]


def _noticed(seen: Snapshot) -> list[Noticed]:
    found = [Noticed(f"broker {number}: {reason}", "/brokers") for number, reason in seen.silent.items()]
    if isinstance(seen.groups, Unknown):
        found.append(Noticed(seen.groups.reason, "/groups"))
    else:
        for group in sorted(seen.groups.values(), key=lambda each: -(each.late_ms or 0)):
            if isinstance(group.rails, Unknown):
                found.append(Noticed(f"group {group.group_id}: {group.rails.reason}", "/groups"))
            elif group.lag and not group.members and group.protocol_type == "consumer":
                found.append(
                    Noticed(
                        f"group {group.group_id} has records to read, and no members", "/groups?sort=-late"
                    )
                )
            elif (group.late_ms or 0) > LATE_MS:
                found.append(Noticed(f"group {group.group_id} is far behind", "/groups?sort=-late"))
    if isinstance(seen.audit, Unknown):
        found.append(Noticed(seen.audit.reason, "/audit"))
    elif seen.audit is not None:
        for topic, verdicts in seen.audit.items():
            differing = sum(verdict.state is Window.DIFFERENT for verdict in verdicts)
            if differing:
                windows = "one window" if differing == 1 else f"{differing} windows"
                found.append(Noticed(f"topic {topic}: the audit found {windows} that differ", "/audit"))
    more = len(found) - MOST_NOTICED
    return found if more <= 1 else [*found[:MOST_NOTICED], Noticed(f"and {more} more of these", "/groups")]


def _streams(seen: Snapshot) -> tuple[list[Stream], int]:
    users = [topic for topic in seen.topics.values() if not topic.internal]
    users.sort(key=lambda topic: (-(topic.rate_in or 0.0), -(topic.records or 0), topic.name))
    audit = seen.audit if isinstance(seen.audit, Mapping) else {}
    streams = [_stream(topic, audit.get(topic.name, ())) for topic in users[:STREAMS]]
    return streams, len(users) - len(streams)


def _stream(topic: TopicSeen, verdicts: Sequence[Verdict]) -> Stream:
    decided = [each for each in verdicts if each.state in (Window.CERTIFIED, Window.DIFFERENT)]
    last = decided[-1] if decided else None
    lake = None
    sent = certified = None
    log = topic.rate_in
    if last is not None:
        seconds = last.length_ms / 1000
        counts = {name: tally.count / seconds for name, tally in last.tiers.items()}
        sent, log = counts.get(PRODUCERS), counts.get(LOG)
        lake = next((value for name, value in counts.items() if name not in (PRODUCERS, LOG)), None)
        certified = min(counts.values(), default=0.0) if last.state is Window.CERTIFIED else 0.0
    is_read = bool(topic.groups)
    return Stream(
        topic.name,
        sent,
        log,
        lake if lake is not None else topic.rate_out if is_read else None,
        certified,
        "lake" if lake is not None else "groups" if is_read else "",
        certified_until(verdicts),
        None if last is None else last.window_ms,
        topic.lag,
        topic.late_ms,
    )

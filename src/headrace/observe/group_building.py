"""Groups of a snapshot: what was committed beside where the partitions end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from headrace.client.errors import Refused
from headrace.client.group_offsets import Committed
from headrace.client.groups import DEAD, Group, Member
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.ends import Ends
from headrace.observe.look import Look
from headrace.observe.record_times import NOTHING_LEFT, Place
from headrace.observe.snapshot import GroupSeen, Rail


class Commits:
    """How fast groups commit, by topic and together; None where one of two looks does not know."""

    def __init__(self, look: Look, before: Look | None, seconds: float) -> None:
        self._rates: dict[str, float] = {}
        self._is_known = False
        if before is None or seconds <= 0:
            return
        now, then = look.committed, before.committed
        if isinstance(now, Unknown) or isinstance(then, Unknown):
            return
        self._is_known = True
        moved: defaultdict[str, float] = defaultdict(float)
        for group_id, offsets in now.items():
            for topic, records in _moved(offsets, then.get(group_id, {})).items():
                moved[topic] += records
        self._rates = {topic: records / seconds for topic, records in moved.items()}

    def rate_of(self, topic: str) -> float | None:
        return self._rates.get(topic, 0.0) if self._is_known else None

    @property
    def rate(self) -> float | None:
        return sum(self._rates.values()) if self._is_known else None


def _moved(
    now: Mapping[TopicPartition, Committed], then: Mapping[TopicPartition, Committed]
) -> Mapping[str, int]:
    """Records by topic. A group that was set back has read nothing in this time."""
    found: defaultdict[str, int] = defaultdict(int)
    for partition, committed in now.items():
        earlier = then.get(partition)
        if earlier is not None and committed.offset > earlier.offset:
            found[partition.topic] += committed.offset - earlier.offset
    return found


def groups_of(look: Look, before: Look | None, seconds: float) -> Mapping[str, GroupSeen] | Unknown:
    if isinstance(look.groups, Unknown):
        return look.groups
    whole = _partitions(look)
    then = None if before is None or isinstance(before.committed, Unknown) else before.committed
    return {name: _group(name, outcome, look, whole, then, seconds) for name, outcome in look.groups.items()}


def _partitions(look: Look) -> Mapping[str, Sequence[TopicPartition]]:
    return {
        topic.name: [TopicPartition(topic.name, each.partition) for each in topic.partitions]
        for topic in look.topics
    }


def _group(
    name: str,
    outcome: Group | Refused,
    look: Look,
    whole: Mapping[str, Sequence[TopicPartition]],
    then: Mapping[str, Mapping[TopicPartition, Committed]] | None,
    seconds: float,
) -> GroupSeen:
    group = None if isinstance(outcome, Refused) else outcome
    rails: Sequence[Rail] | Unknown
    rate = None
    if isinstance(look.committed, Unknown):
        rails = look.committed
    else:
        mine = look.committed.get(name, {})
        rails = _rails(mine, group, look, whole)
        if then is not None and name in then and seconds > 0:
            rate = sum(_moved(mine, then[name]).values()) / seconds
    members: Sequence[Member] = () if group is None else group.members
    return GroupSeen(
        name,
        "" if group is None else group.kind,
        DEAD if group is None else group.state,
        "" if group is None else group.protocol_type,
        -1 if group is None else group.coordinator,
        len(members),
        sorted({_client(member) for member in members}),
        rails,
        rate,
        _lag(rails),
        _late(rails),
    )


def _rails(
    mine: Mapping[TopicPartition, Committed],
    group: Group | None,
    look: Look,
    whole: Mapping[str, Sequence[TopicPartition]],
) -> list[Rail]:
    """What it has committed, what its members have, and the rest of those topics: a partition that nobody
    reads is what to look for. What was committed in a topic that is gone says nothing any more."""
    owners = {} if group is None else group.owners
    known = {*mine, *owners}
    if group is not None and group.reads_whole_topics:
        known.update(each for topic in {each.topic for each in mine} for each in whole.get(topic, ()))
    rails = []
    for partition in sorted(each for each in known if each.partition < len(whole.get(each.topic, ()))):
        committed, member = mine.get(partition), owners.get(partition)
        ends = look.all_ends.ends.get(partition)
        rails.append(
            Rail(
                partition,
                None if committed is None else committed.offset,
                committed is not None and committed.pending,
                ends,
                "" if member is None else _client(member),
                _age(partition, committed, ends, look),
            )
        )
    return rails


def place_of(partition: TopicPartition, committed: int | None, ends: Ends | None) -> Place | None:
    """Whose time makes the seconds of a lag; None where nothing is left to read, or nobody can tell."""
    if ends is None:
        return None
    begin = ends.first if committed is None else max(committed, ends.first)
    return (partition, begin) if begin < ends.end else None


def _age(partition: TopicPartition, committed: Committed | None, ends: Ends | None, look: Look) -> int | None:
    if ends is None:
        return None
    place = place_of(partition, None if committed is None else committed.offset, ends)
    if place is None:
        return 0
    written = look.times.get(place)
    if written is None:
        return None
    return 0 if written == NOTHING_LEFT else max(0, look.at_ms - written)


def _client(member: Member) -> str:
    return f"{member.client_id} at {member.host}" if member.host else member.client_id


def _lag(rails: Sequence[Rail] | Unknown) -> int | None:
    if isinstance(rails, Unknown):
        return None
    lags = [rail.lag for rail in rails]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if len(known) == len(lags) else None


def _late(rails: Sequence[Rail] | Unknown) -> int | None:
    if isinstance(rails, Unknown):
        return None
    known = [rail.late_ms for rail in rails if rail.late_ms is not None]
    return max(known, default=0) if len(known) == len(rails) else None

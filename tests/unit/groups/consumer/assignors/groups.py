"""Groups for assignors: made by Hypothesis, and what every assignment must be."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from hypothesis import strategies as st

from headrace.groups.consumer.assignors.spec import Assignment, Assignor, GroupSpec, MemberSpec

TOPICS = [UUID(int=number) for number in range(1, 6)]
COUNTS = st.fixed_dictionaries({topic: st.integers(0, 7) for topic in TOPICS})
NOTHING: Assignment = {}


def member(*topics: UUID, had: Assignment = NOTHING, instance: str | None = None) -> MemberSpec:
    return MemberSpec(instance, tuple(sorted(topics)), had)


@st.composite
def specs(draw: st.DrawFn, *, alike: bool, instances: bool = False) -> GroupSpec:
    size = draw(st.integers(1, 7))
    choice = st.sets(st.sampled_from(TOPICS)) if not alike else None
    shared = draw(st.sets(st.sampled_from(TOPICS)))
    members = {}
    for number in range(size):
        topics = shared if choice is None else draw(choice)
        instance = f"i{number}" if instances and draw(st.booleans()) else None
        members[f"m{number}"] = member(*topics, instance=instance)
    return GroupSpec(members, draw(COUNTS))


def again(group: GroupSpec, assigned: Mapping[str, Assignment]) -> GroupSpec:
    """The same group, whose members have what they were assigned."""
    members = {
        member_id: spec._replace(assigned=assigned.get(member_id, NOTHING))
        for member_id, spec in group.members.items()
    }
    return GroupSpec(members, group.partition_counts)


def check_valid(group: GroupSpec, assigned: Mapping[str, Assignment]) -> None:
    """Every partition of a subscribed topic has exactly one owner, which subscribes to it; nothing else
    has."""
    owners: dict[tuple[UUID, int], str] = {}
    for member_id, partitions in assigned.items():
        for topic, numbers in partitions.items():
            assert numbers, "topics without partitions are left out"
            assert topic in group.members[member_id].topics
            for number in numbers:
                assert (topic, number) not in owners
                owners[topic, number] = member_id
    wanted = {topic for spec in group.members.values() for topic in spec.topics}
    assert set(owners) == {
        (topic, number) for topic in wanted for number in range(group.partition_counts[topic])
    }


def sizes(group: GroupSpec, assigned: Mapping[str, Assignment]) -> dict[str, int]:
    return {
        member_id: sum(map(len, assigned.get(member_id, NOTHING).values())) for member_id in group.members
    }


def moved(before: Mapping[str, Assignment], after: Mapping[str, Assignment]) -> int:
    """How many partitions that had an owner have another one."""
    owner_of = {
        (topic, number): member_id
        for member_id, partitions in before.items()
        for topic, numbers in partitions.items()
        for number in numbers
    }
    return sum(
        owner_of.get((topic, number), member_id) != member_id
        for member_id, partitions in after.items()
        for topic, numbers in partitions.items()
        for number in numbers
    )


def run(assignor: Assignor, group: GroupSpec) -> dict[str, Assignment]:
    assigned = assignor(group)
    check_valid(group, assigned)
    return assigned

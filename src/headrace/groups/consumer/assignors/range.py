"""The range assignor: each topic is cut into consecutive pieces, one for each of its subscribers in turn.

Topics with equally many partitions and the same subscribers are cut alike, so that partitions of the same
number meet at one member. Members that come and go move the cuts.
"""

from __future__ import annotations

from uuid import UUID

from headrace.groups.consumer.assignors.spec import Assignment, GroupSpec
from headrace.groups.consumer.assignors.subscribers import bunches


def assign_ranges(group: GroupSpec) -> dict[str, Assignment]:
    """Static members come first, by their instance, so a restart moves nothing; then the others by id."""
    order = sorted(
        group.members,
        key=lambda member_id: (
            group.members[member_id].instance_id is None,
            group.members[member_id].instance_id or member_id,
        ),
    )
    assigned: dict[str, dict[UUID, frozenset[int]]] = {member_id: {} for member_id in order}
    for members, topics in bunches(group, order):
        for topic_id in topics:
            each, longer = divmod(group.partition_counts[topic_id], len(members))
            start = 0
            for position, member_id in enumerate(members):
                end = start + each + (position < longer)
                if end == start:
                    break
                assigned[member_id][topic_id] = frozenset(range(start, end))
                start = end
    return dict(assigned)

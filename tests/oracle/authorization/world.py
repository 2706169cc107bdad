"""What exists before anybody asks: topics with records, groups with offsets and members, transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tests.oracle.authorization.person import User
from tests.oracle.classic_groups_script import subscription
from tests.oracle.offsets_script import commit_request
from tests.oracle.produce_script import batch, produce_request
from tests.oracle.transactions_script import Owner

TOPICS: Final = ("lit", "pre-a", "pre-b", "pre-shut", "shut")
WRITTEN: Final = ("pre-written", "shut-written")
"""For transactions, whose markers have times of their own: nobody fetches these."""
ABSENT: Final = ("absent", "pre-absent", "shut-absent")
INTERNAL: Final = ("__consumer_offsets", "__transaction_state")
GROUPS: Final = ("g-lit", "g-pre-a", "g-pre-b", "g-shut")
MEMBERS: Final = ("g-lit-joined", "g-pre-joined", "g-shut-joined")
CONSUMERS: Final = {"g-lit-new": ["lit"], "g-pre-new": ["lit", "shut"], "g-shut-new": ["shut"]}
IDS: Final = {
    "x-lit": ("lit", "shut"),
    "x-pre-a": ("pre-a",),
    "x-pre-shut": ("pre-shut",),
    "x-shut": ("shut",),
}
NOBODYS_ID: Final = UUID(int=0xABCDEF << 64)


class World:
    def __init__(self, admin: User) -> None:
        self.topics: dict[str, UUID] = {name: admin.topic(name) for name in TOPICS}
        for name in WRITTEN:
            admin.topic(name)
        for name in TOPICS:
            admin.quietly(produce_request(name, batch(b"one", b"two")), 9)
        self._wait_for_coordinators(admin)
        for name in INTERNAL:
            self.topics[name] = admin.metadata(name).topic_id
            admin.symbols.define(self.topics[name], f"id of {name}")
        for group in GROUPS:
            commit_all(admin, group, TOPICS)
        for group in MEMBERS:
            self._join(admin, group)
        for group, names in CONSUMERS.items():
            self._consume(admin, group, names)
        self.sessions: dict[str, tuple[int, int]] = {}
        """Of fetches, with their next epoch, by who began them: the rights change meanwhile."""
        self.tokens: dict[str, bytes] = {}
        """The HMAC of a token of the first person, by the state of the rules."""
        self.owners = {name: self._begin(admin, name, topics) for name, topics in IDS.items()}

    @staticmethod
    def _wait_for_coordinators(admin: User) -> None:
        def known() -> bool:
            found = [
                admin.quietly(FindCoordinatorRequest(coordinator_keys=["g"], key_type=kind), 4)
                for kind in (0, 1)
            ]
            listed = admin.quietly(ListGroupsRequest(), 5)
            return not any([listed.error_code, *(each.coordinators[0].error_code for each in found)])

        admin.wait_until(known)

    @staticmethod
    def _join(admin: User, group: str) -> None:
        asked = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=1_800_000,
            rebalance_timeout_ms=20_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription("lit"))],
        )
        joined = admin.quietly(asked, 3)
        assert joined.error_code == 0, joined
        admin.symbols.define(joined.member_id, f"member of {group}")
        synced = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"\0\0\0\0\0\0")],
        )
        assert admin.quietly(synced, 3).error_code == 0

    @staticmethod
    def _consume(admin: User, group: str, names: list[str]) -> None:
        epoch = 0
        for topics in (names, None):
            asked = ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id=f"member of {group}",
                member_epoch=epoch,
                rebalance_timeout_ms=30_000 if topics else -1,
                subscribed_topic_names=topics,
                topic_partitions=[] if topics else None,
            )
            answer = admin.quietly(asked, 1)
            assert answer.error_code == 0, answer
            epoch = answer.member_epoch

    @staticmethod
    def _begin(admin: User, name: str, topics: Iterable[str]) -> Owner:
        owner = Owner(admin, name, timeout_ms=1_800_000)
        for topic in topics:
            admin.quietly(owner.add(name=topic), 3)
        return owner


def commit_all(admin: User, group: str, topics: Iterable[str]) -> None:
    answer = admin.quietly(commit_request(group, [(name, 0, 1, "") for name in topics]), 8)
    assert all(not row.error_code for topic in answer.topics for row in topic.partitions), answer

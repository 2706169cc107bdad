"""OffsetCommit, OffsetFetch, OffsetDelete, TxnOffsetCommit: how far groups have come."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from headrace.protocol.messages.delete_groups_request import DeleteGroupsRequest
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest
from headrace.protocol.messages.end_txn_request import EndTxnRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headrace.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.oracle.classic_groups_script import Member, subscription
from tests.oracle.conversation import Conversation, versions
from tests.oracle.plain import flatten

NEWEST_BY_NAME = 9
BY_ID = 10
NOBODYS_ID = UUID(int=0xABCDEF << 64)
Rows = list[tuple[str, int, int, str | None]]


def run(talk: Conversation) -> None:
    _wait_for_coordinators(talk)
    ids = {name: talk.topic(name, partitions) for name, partitions in (("kept", 3), ("other", 1))}
    _commits(talk, ids)
    _fetches(talk, ids)
    _members(talk)
    _deletions(talk)
    _transactions(talk)
    _transactions_of_raised_epochs(talk)


def _wait_for_coordinators(talk: Conversation) -> None:
    def known() -> bool:
        for kind in (0, 1):
            found = talk.quietly(FindCoordinatorRequest(coordinator_keys=["g"], key_type=kind), 4)
            if found.coordinators[0].error_code != ErrorCode.NONE:
                return False
        listed = talk.quietly(ListGroupsRequest(), 5)
        producer = talk.quietly(
            InitProducerIdRequest(transactional_id="probe", transaction_timeout_ms=9000), 4
        )
        return bool(listed.error_code == ErrorCode.NONE and producer.error_code == ErrorCode.NONE)

    talk.wait_until(known, 60)


# --- commits ---------------------------------------------------------------------------------------------


def commit_request(
    group: str, rows: Rows, ids: dict[str, UUID] | None = None, **rest: Any
) -> OffsetCommitRequest:
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for name, partition, offset, metadata in rows:
        topic_id = (ids or {}).get(name, NOBODYS_ID if ids else UUID(int=0))
        into = topics.setdefault(name, OffsetCommitRequestTopic(name="" if ids else name, topic_id=topic_id))
        into.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    return OffsetCommitRequest(group_id=group, topics=list(topics.values()), **rest)


def _commits(talk: Conversation, ids: dict[str, UUID]) -> None:
    mixed: Rows = [
        ("kept", 0, 10, "note"),
        ("kept", 1, 0, None),
        ("kept", 2, 7, "x" * 4097),
        ("kept", 3, 7, ""),
        ("kept", -1, 7, ""),
        ("nothing", 0, 7, ""),
        ("other", 0, -1, "x" * 4096),
    ]
    for version in versions(OffsetCommitRequest):
        by = ids if version >= BY_ID else None
        group = f"simple-{version}"

        def ask(step: str, group: str, rows: Rows, version: int = version, **rest: Any) -> None:
            talk.ask(f"commit {step}", commit_request(group, rows, by, **rest), version)  # noqa: B023 - asked at once

        ask("as a member of an unknown group", f"none-{version}", mixed[:1], member_id="m", **_at(3))
        ask("without a member in a generation", f"none-{version}", mixed[:1], **_at(0))
        ask("of several partitions", group, mixed)
        ask("of nothing", group, [])
        ask("of nothing that exists", group, [("nothing", 1, 5, "")])
        ask("with a member and no generation", group, mixed[:1], member_id="m")
        ask("as a stranger", group, mixed[:1], member_id="m", **_at(1))
        ask("in a generation", group, mixed[:1], **_at(0))
        ask("without a group", "", mixed[:1])
        if version <= 4:
            ask("with a retention", group, mixed[:1], retention_time_ms=1_000_000)
        if version >= 7:
            ask("as an instance", group, mixed[:1], member_id="m", group_instance_id="i", **_at(1))
            ask("as an instance without a generation", group, mixed[:1], group_instance_id="i")


def _at(generation: int) -> dict[str, int]:
    return {"generation_id_or_member_epoch": generation}


# --- fetches ---------------------------------------------------------------------------------------------


def fetch(
    talk: Conversation,
    step: str,
    group: str,
    topics: list[tuple[str, list[int]]] | None,
    version: int = NEWEST_BY_NAME,
    *,
    ids: dict[str, UUID] | None = None,
    stable: bool = False,
    **rest: Any,
) -> None:
    request = fetch_request([(group, topics)], version, ids, stable, **rest)
    keep(talk, f"fetch {step}", talk.quietly(request, version), version)


def fetch_request(
    groups: list[tuple[str, list[tuple[str, list[int]]] | None]],
    version: int,
    ids: dict[str, UUID] | None = None,
    stable: bool = False,
    **rest: Any,
) -> OffsetFetchRequest:
    if version < 8:
        [(group, topics)] = groups
        asked = None
        if topics is not None:
            asked = [OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in topics]
        return OffsetFetchRequest(group_id=group, topics=asked, require_stable=stable)
    made = []
    for group, topics in groups:
        wanted = None
        if topics is not None:
            wanted = [
                OffsetFetchRequestTopics(
                    name="" if version >= BY_ID else name,
                    topic_id=(ids or {}).get(name, NOBODYS_ID) if version >= BY_ID else UUID(int=0),
                    partition_indexes=each,
                )
                for name, each in topics
            ]
        made.append(OffsetFetchRequestGroup(group_id=group, topics=wanted, **rest))
    return OffsetFetchRequest(groups=made, require_stable=stable)


def keep(talk: Conversation, step: str, answer: Any, version: int) -> None:
    """All partitions of a group have no order in Kafka."""
    for group in (answer, *answer.groups):
        group.topics.sort(
            key=lambda each: (each.name, str(talk.symbols.of("id", getattr(each, "topic_id", ""))))
        )
        for topic in group.topics:
            topic.partitions.sort(key=lambda each: int(each.partition_index))
    name = f"{step} v{version}"
    assert name not in talk.answers, f"two steps are called {name}"
    talk.answers[name] = flatten(answer, talk.symbols)


def _fetches(talk: Conversation, ids: dict[str, UUID]) -> None:
    some = [("kept", [0, 1, 2, 9]), ("nothing", [0]), ("other", [0])]
    for version in versions(OffsetFetchRequest):
        for group in ("simple-9", "simple-4", "never", ""):
            fetch(talk, f"some of {group!r}", group, some, version, ids=ids)
            fetch(talk, f"nothing of {group!r}", group, [], version, ids=ids)
            if version >= 2:
                fetch(talk, f"all of {group!r}", group, None, version, ids=ids)
        if version >= 7:
            fetch(talk, "what is stable", "simple-9", some, version, ids=ids, stable=True)
        if version >= 8:
            several = [("simple-9", some), ("never", None), ("simple-8", None)]
            doubled = [("simple-9", some), ("simple-9", None)]
            for step, groups in (("fetch several", several), ("fetch one group twice", doubled)):
                keep(talk, step, talk.quietly(fetch_request(list(groups), version, ids), version), version)
            keep(talk, "fetch no group", talk.quietly(fetch_request([], version, ids), version), version)
        if version >= 9:
            for member, epoch in (("m", 3), (None, 3), ("m", -1)):
                step = f"as {member} at {epoch}"
                fetch(talk, step, "simple-9", some, version, ids=ids, member_id=member, member_epoch=epoch)


# --- members ---------------------------------------------------------------------------------------------


def _members(talk: Conversation) -> None:
    row: Rows = [("kept", 0, 5, "")]
    member = Member(talk, "with members", "member")
    protocols = (("range", subscription("kept")),)
    member.join(protocols=protocols)

    def ask(step: str, version: int, **rest: Any) -> None:
        member.ask(f"commits {step}", commit_request(member.group, row, **rest), version)

    def all_ways(when: str) -> None:
        for version in (2, 8, 9):
            now = _at(member.generation)
            ask(f"{when}", version, member_id=member.member_id, **now)
            ask(
                f"{when} in the last generation",
                version,
                member_id=member.member_id,
                **_at(member.generation - 1),
            )
            ask(f"{when} without a generation", version, member_id=member.member_id)
            ask(f"{when} as a stranger", version, member_id="stranger", **now)
            ask(f"{when} from outside", version)
        ask(f"{when} as an instance", 9, member_id=member.member_id, group_instance_id="i", **now)

    all_ways("before it syncs")
    member.sync("syncs", member)
    all_ways("when stable")
    fetch(talk, "with members", member.group, None)
    _delete(talk, "what is subscribed", member.group, [("kept", [0, 1, 7]), ("other", [0]), ("nothing", [0])])
    fetch(talk, "after a deletion with members", member.group, None)
    member.leave()
    all_ways("when it has left")
    _delete(talk, "what was subscribed", member.group, [("kept", [0, 2])])
    fetch(talk, "after the members", member.group, None)
    connect = Member(talk, "of connectors", "worker")
    connect.join(protocol_type="connect", protocols=(("default", b"x"),))
    _delete(talk, "from others than consumers", connect.group, [("kept", [0])])


# --- deletions -------------------------------------------------------------------------------------------


def _delete(talk: Conversation, step: str, group: str, topics: list[tuple[str, list[int]]]) -> None:
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in wanted]
            )
            for name, wanted in topics
        ],
    )
    talk.ask(f"delete {step}", request, 0)


def _deletions(talk: Conversation) -> None:
    _delete(talk, "of an unknown group", "never", [("kept", [0])])
    _delete(talk, "without a group", "", [("kept", [0])])
    _delete(talk, "nothing", "simple-9", [])
    _delete(talk, "some", "simple-9", [("kept", [0, 5]), ("nothing", [0]), ("other", [0])])
    fetch(talk, "after a deletion", "simple-9", None)
    talk.quietly(DeleteGroupsRequest(groups_names=["simple-8"]), 2)
    fetch(talk, "after the group", "simple-8", [("kept", [0])])
    talk.topic("doomed")
    talk.quietly(commit_request("simple-7", [("doomed", 0, 3, "")]), NEWEST_BY_NAME)
    talk.quietly(DeleteTopicsRequest(topic_names=["doomed"], timeout_ms=10_000), 5)

    def is_gone() -> bool:
        answer = talk.quietly(
            fetch_request([("simple-7", [("doomed", [0])])], NEWEST_BY_NAME), NEWEST_BY_NAME
        )
        return bool(answer.groups[0].topics[0].partitions[0].committed_offset == -1)

    talk.wait_until(is_gone)
    fetch(talk, "after the topic", "simple-7", None)


# --- transactions ----------------------------------------------------------------------------------------


def _transactions(talk: Conversation) -> None:
    for version in range(5):
        name = f"transaction-{version}"
        producer = talk.quietly(
            InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4
        )
        who: dict[str, Any] = {
            "transactional_id": name,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
        }

        def ask(step: str, offset: int, version: int = version, **rest: Any) -> None:
            talk.ask(f"in a transaction, {step}", _in_transaction(offset, **rest), version)

        ask("before it begins", 1, **who)
        for committed in (False, True):
            talk.wait_until(lambda: _is_added(talk, who))  # noqa: B023 - waited for at once
            ask(f"to be {committed}", 20 + committed, **who)
            ask(f"again, to be {committed}", 30 + committed, **who)
            if version >= 3:
                wrong: dict[str, Any] = {"generation_id_or_member_epoch": 4, "member_id": "m"}
                ask(f"as a stranger, to be {committed}", 99, **who, **wrong)
            fetch(talk, f"pending of {name}, to be {committed}", "pending", None, stable=True)
            fetch(
                talk, f"one pending of {name}, to be {committed}", "pending", [("kept", [0, 1])], stable=True
            )
            fetch(talk, f"unstable of {name}, to be {committed}", "pending", [("kept", [0, 1])])
            talk.quietly(EndTxnRequest(committed=committed, **who), 3)
            talk.wait_until(lambda: _is_stable(talk))
            fetch(talk, f"after {name}, {committed}", "pending", None, stable=True)
        ask("with an old epoch", 1, **{**who, "producer_epoch": producer.producer_epoch - 1})
        ask("with a new epoch", 1, **{**who, "producer_epoch": producer.producer_epoch + 1})
        ask("as another producer", 1, **{**who, "producer_id": producer.producer_id + 5000})
        ask("of nobody", 1, **{**who, "transactional_id": "nobody"})
        ask("without a group", 1, **who, group_id="")


def _transactions_of_raised_epochs(talk: Conversation) -> None:
    """Of clients that do not name the group beforehand, and get a new epoch with every transaction."""
    name = "transaction-5"
    producer = talk.quietly(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 5)
    who: dict[str, Any] = {
        "transactional_id": name,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
    }
    for committed in (False, True):
        talk.ask(f"in a transaction, to be {committed}", _in_transaction(40 + committed, **who), 5)
        talk.ask(f"in a transaction, again to be {committed}", _in_transaction(50 + committed, **who), 5)
        fetch(talk, f"pending of {name}, to be {committed}", "pending", None, stable=True)
        ended = talk.quietly(EndTxnRequest(committed=committed, **who), 5)
        talk.note(f"{name} ends, {committed}", code=ended.error_code)
        talk.wait_until(lambda: _is_stable(talk))
        talk.wait_completed(name)
        fetch(talk, f"after {name}, {committed}", "pending", None, stable=True)
        talk.ask(f"in a transaction, late, {committed}", _in_transaction(60, **who), 5)
        who["producer_epoch"] = ended.producer_epoch
    talk.ask("in a transaction, of nobody", _in_transaction(1, **{**who, "transactional_id": "nobody"}), 5)


def _in_transaction(offset: int, *, group_id: str = "pending", **rest: Any) -> TxnOffsetCommitRequest:
    rows = (("kept", 0, ""), ("kept", 9, ""), ("other", 0, "x" * 4097), ("nothing", 0, ""))
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for name, partition, metadata in rows:
        topics.setdefault(name, TxnOffsetCommitRequestTopic(name=name)).partitions.append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    return TxnOffsetCommitRequest(group_id=group_id, topics=list(topics.values()), **rest)


def _is_stable(talk: Conversation) -> bool:
    request = fetch_request([("pending", [("kept", [0])])], NEWEST_BY_NAME, stable=True)
    answer = talk.quietly(request, NEWEST_BY_NAME)
    return bool(answer.groups[0].topics[0].partitions[0].error_code == ErrorCode.NONE)


def _is_added(talk: Conversation, who: dict[str, Any]) -> bool:
    """The transaction before it may still be ending."""
    answer = talk.quietly(AddOffsetsToTxnRequest(group_id="pending", **who), 3)
    return bool(answer.error_code == ErrorCode.NONE)

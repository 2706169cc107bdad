"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn, WriteTxnMarkers, and the
questions about transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from headrace.protocol.messages.end_txn_request import EndTxnRequest
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.list_transactions_request import ListTransactionsRequest
from headrace.protocol.messages.produce_request import ProduceRequest
from headrace.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.oracle.authorization.person import Person
from tests.oracle.authorization.world import ABSENT, IDS, INTERNAL, TOPICS, WRITTEN, World
from tests.oracle.conversation import versions
from tests.oracle.produce_script import STABLE_INIT_PRODUCER_ID, batch, produce_request
from tests.oracle.transactions_script import Owner

PREFIXES = ("x-pre-", "x-shut-")
NAMED = (*TOPICS, *ABSENT)


def ask(person: Person, world: World) -> None:
    _init(person)
    _add_partitions(person)
    _add_partitions_between_brokers(person, world)
    _add_offsets(person)
    _commit_offsets(person)
    _end(person)
    _produce(person)
    _markers(person)
    _questions(person)


@contextmanager
def _owned(person: Person, prefix: str) -> Iterator[Owner]:
    """A new transactional id of the administrator's, which ends its transaction too."""
    owner = Owner(person.admin, person.fresh(prefix), timeout_ms=1_800_000)
    yield owner
    person.admin.quietly(owner.end(commit=False), 3)
    owner.settle()


def _init(person: Person) -> None:
    for version in range(STABLE_INIT_PRODUCER_ID + 1):
        person.ask("init without an id", InitProducerIdRequest(transactional_id=None), version)
        for prefix in PREFIXES:
            asked = InitProducerIdRequest(
                transactional_id=person.fresh(f"{prefix}init-"), transaction_timeout_ms=60_000
            )
            person.ask(f"init {prefix}", asked, version)
        for name in ("", "x-pre-shut-not"):
            invalid = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=0)
            person.ask(f"init {name!r} without patience", invalid, version)


def _added(owner: Owner, *topics: str, **others: Any) -> AddPartitionsToTxnRequest:
    fields = {f"v3_and_below_{field}": value for field, value in owner.fields(**others).items()}
    wanted = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in topics]
    return AddPartitionsToTxnRequest(v3_and_below_topics=wanted, **fields)


def _add_partitions(person: Person) -> None:
    for version in range(4):
        for prefix in PREFIXES:
            with _owned(person, f"{prefix}adds-") as owner:
                for names in (
                    ("pre-written",),
                    ("shut-written", "pre-written"),
                    ("absent", "pre-written"),
                    ("pre-absent", "shut-written"),
                    ("pre-written", "__consumer_offsets"),
                    INTERNAL,
                    ("shut-absent",),
                ):
                    step = f"add {' '.join(names)} to {prefix}"
                    person.ask(step, _added(owner, *names), version)
        stranger = _Stranger("x-lit")
        person.ask("add to another's", _added(stranger, "lit"), version)


class _Stranger(Owner):
    """Claims an id without ever having been given a producer."""

    def __init__(self, name: str) -> None:
        self.name, self.id, self.epoch = name, 999_999, 0


def _add_partitions_between_brokers(person: Person, world: World) -> None:
    for version in (4, 5):
        for verify_only in (True, False):
            transactions = [
                AddPartitionsToTxnTransaction(
                    verify_only=verify_only,
                    topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("lit", "pre-b")],
                    **_Stranger(name).fields(),
                )
                for name in (*IDS, "x-absent")
            ]
            asked = AddPartitionsToTxnRequest(transactions=transactions)
            person.ask(f"add between brokers, verify {verify_only}", asked, version)
    for version in (4, 5):
        transactions = [owner.verify(0) for owner in world.owners.values()]
        for transaction, topics in zip(transactions, IDS.values(), strict=True):
            transaction.topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in topics]
        person.ask("verify between brokers", AddPartitionsToTxnRequest(transactions=transactions), version)


def _add_offsets(person: Person) -> None:
    for version in versions(AddOffsetsToTxnRequest):
        for prefix in PREFIXES:
            with _owned(person, f"{prefix}offsets-") as owner:
                for group in ("g-lit", "g-pre-x", "g-shut"):
                    person.ask(f"add {group} to {prefix}", owner.offsets(group), version)


def _committed(owner: Owner, group: str, *topics: str, **others: Any) -> TxnOffsetCommitRequest:
    rows = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    wanted = [TxnOffsetCommitRequestTopic(name=name, partitions=rows) for name in topics]
    return TxnOffsetCommitRequest(group_id=group, topics=wanted, **owner.fields(**others))


def _commit_offsets(person: Person) -> None:
    for version in versions(TxnOffsetCommitRequest):
        for prefix in PREFIXES:
            with _owned(person, f"{prefix}commits-") as owner:
                groups = [person.fresh(f"{each}txn-") for each in ("g-pre-", "g-shut-")]
                for group in groups:
                    person.admin.quietly(owner.offsets(group), 3)
                    kind = "g-pre-" if group == groups[0] else "g-shut-"
                    asked = _committed(owner, group, *NAMED)
                    person.ask(f"commit {kind} in {prefix}", asked, version)


def _end(person: Person) -> None:
    for version in range(5):
        for prefix in PREFIXES:
            with _owned(person, f"{prefix}ends-") as owner:
                person.admin.quietly(owner.add(name="pre-written"), 3)
                person.ask(f"end {prefix}", owner.end(commit=False), version)
                owner.settle()
        person.ask("end another's", EndTxnRequest(committed=True, **_Stranger("x-lit").fields()), version)
    person.ask("end another's", EndTxnRequest(committed=True, **_Stranger("x-lit").fields()), 5)


def _produce(person: Person) -> None:
    """What counts is whether a batch is transactional, not what the request says."""
    for version in (3, 9, 11):
        for prefix in PREFIXES:
            with _owned(person, f"{prefix}writes-") as owner:
                for name in WRITTEN:
                    person.admin.quietly(owner.add(name=name), 3)
                    records = batch(
                        b"t",
                        producer_id=owner.id,
                        producer_epoch=owner.epoch,
                        base_sequence=0,
                        transactional=True,
                    )
                    asked = _in_transaction(produce_request(name, records), owner.name)
                    person.ask(f"transactional produce to {name} in {prefix}", asked, version)
    plain = _in_transaction(produce_request("pre-a", batch(b"p")), "x-shut")
    person.ask("plain records in another's transaction", plain, 11)
    records = batch(b"t", producer_id=999_999, producer_epoch=0, base_sequence=0, transactional=True)
    person.ask("transactional records without an id", produce_request("pre-a", records), 11)
    person.ask("transactional records, no right", produce_request("shut", records), 11)


def _in_transaction(request: ProduceRequest, name: str) -> ProduceRequest:
    request.transactional_id = name
    return request


def _markers(person: Person) -> None:
    """Of a producer that nobody has."""
    for version in versions(WriteTxnMarkersRequest):
        names = (*WRITTEN, *ABSENT)
        topics = [WritableTxnMarkerTopic(name=name, partition_indexes=[0, 7]) for name in names]
        marker = WritableTxnMarker(producer_id=999_999, producer_epoch=0, topics=topics)
        person.ask("write markers", WriteTxnMarkersRequest(markers=[marker]), version)


def _questions(person: Person) -> None:
    ids = [*IDS, "x-absent", "x-pre-absent", "x-shut-absent"]
    person.ask("describe transactions", DescribeTransactionsRequest(transactional_ids=ids), 0)
    for version in versions(ListTransactionsRequest):
        ongoing = ListTransactionsRequest(state_filters=["Ongoing"])
        person.ask("list ongoing transactions", ongoing, version)
        strange = ListTransactionsRequest(state_filters=["Ongoing", "Strange"])
        person.ask("list transactions of a strange state", strange, version)
    by_pattern = ListTransactionsRequest(transactional_id_pattern="x-(lit|shut|pre-a)")
    person.ask("list transactions by pattern", by_pattern, 2)

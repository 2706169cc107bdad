"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn and their questions, at the coordinator."""

from __future__ import annotations

from typing import Any

from headrace.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from headrace.protocol.messages.end_txn_request import EndTxnRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.list_transactions_request import ListTransactionsRequest
from tests.oracle.conversation import Conversation, versions

TOPIC = "of-transactions"


class Owner:
    """One transactional id and what its coordinator has given it."""

    def __init__(self, talk: Conversation, name: str, timeout_ms: int = 60_000) -> None:
        self._talk = talk
        self.name = name
        self.timeout_ms = timeout_ms
        asked = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
        talk.wait_until(lambda: not talk.quietly(asked, 4).coordinators[0].error_code, 60)
        self.id, self.epoch = -1, -1
        self.init()
        talk.symbols.define_producer(self.id, f"producer of {name}")

    def init(self) -> None:
        asked = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=self.timeout_ms)

        def given() -> bool:
            answer = self._talk.quietly(asked, 4)
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
            return not answer.error_code

        self._talk.wait_until(given, 30)

    def settle(self) -> None:
        """Wait until the markers of its last transaction are written."""
        self._talk.wait_completed(self.name)

    def fields(self, **others: Any) -> dict[str, Any]:
        own = {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}
        return {**own, **others}

    def add(self, *, name: str = TOPIC, partitions: tuple[int, ...] = (0,), **others: Any) -> Any:
        fields = {f"v3_and_below_{field}": value for field, value in self.fields(**others).items()}
        topics = [AddPartitionsToTxnTopic(name=name, partitions=list(partitions))]
        return AddPartitionsToTxnRequest(v3_and_below_topics=topics, **fields)

    def verify(self, *partitions: int, only: bool = True, **others: Any) -> AddPartitionsToTxnTransaction:
        topics = [AddPartitionsToTxnTopic(name=TOPIC, partitions=list(partitions))]
        return AddPartitionsToTxnTransaction(verify_only=only, topics=topics, **self.fields(**others))

    def end(self, *, commit: bool = True, **others: Any) -> EndTxnRequest:
        return EndTxnRequest(committed=commit, **self.fields(**others))

    def offsets(self, group_id: str = "in a transaction", **others: Any) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(group_id=group_id, **self.fields(**others))


def run(talk: Conversation) -> None:
    talk.topic(TOPIC, 2)
    _coordinators(talk)
    _producer_ids(talk)
    _epochs(talk)
    _partitions(talk)
    _offsets(talk)
    _ends(talk)
    _ends_that_raise_the_epoch(talk)
    _questions(talk)


def _coordinators(talk: Conversation) -> None:
    Owner(talk, "the first of all")
    for version in versions(FindCoordinatorRequest, 4):
        for key_type in (1, 7):
            asked = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["one", "another", ""])
            talk.ask(f"coordinators of transactions, type {key_type}", asked, version)
    for version in range(1, 4):
        talk.ask("a coordinator", FindCoordinatorRequest(key_type=1, key="one"), version)
        talk.ask("a coordinator of nothing", FindCoordinatorRequest(key_type=1, key=""), version)


def _producer_ids(talk: Conversation) -> None:
    # Version 6 is not finished in Kafka 4.3, which closes the connection.
    for version in range(6):
        for step, name, timeout_ms in (
            ("no transactional id", None, 0),
            ("an empty transactional id", "", 60_000),
            ("no patience", f"new {version}", 0),
            ("too much patience", f"new {version}", 900_001),
            ("a new id", f"new {version}", 60_000),
            ("the id again", f"new {version}", 60_000),
        ):
            asked = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
            talk.ask(f"init: {step}", asked, version)
    for version in (3, 4, 5):
        for step, producer_id, epoch in (("half", 5, -1), ("the other half", -1, 5), ("a stranger", 5, 5)):
            for who, name in (("of a producer", f"unseen {version}, {step}"), ("without a name", None)):
                asked = InitProducerIdRequest(
                    transactional_id=name,
                    transaction_timeout_ms=60_000,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                )
                talk.ask(f"init: {step} {who}", asked, version)


def _epochs(talk: Conversation) -> None:
    for version in (3, 4, 5):
        owner = Owner(talk, f"epochs {version}")
        fields = owner.fields(transaction_timeout_ms=60_000)
        talk.ask("epochs: raised", InitProducerIdRequest(**fields), version)
        talk.ask("epochs: raised, repeated", InitProducerIdRequest(**fields), version)
        owner.init()
        talk.ask("epochs: an old one", InitProducerIdRequest(**fields), version)
        talk.ask("epochs: of another", InitProducerIdRequest(**{**fields, "producer_id": 999}), version)
        ahead = {**fields, "producer_epoch": owner.epoch + 5}
        talk.ask("epochs: ahead", InitProducerIdRequest(**ahead), version)


def _partitions(talk: Conversation) -> None:
    for version in range(4):
        owner = Owner(talk, f"partitions {version}")
        for step, request in (
            ("an unknown topic", owner.add(name="no-such-topic")),
            ("an unknown partition", owner.add(partitions=(0, 9))),
            ("one", owner.add()),
            ("again", owner.add()),
            ("both", owner.add(partitions=(0, 1))),
            ("none", owner.add(partitions=())),
            ("an unknown id", owner.add(transactional_id="nobody")),
            ("no id", owner.add(transactional_id="")),
            ("an old epoch", owner.add(producer_epoch=owner.epoch - 1)),
            ("a later epoch", owner.add(producer_epoch=owner.epoch + 1)),
            ("another producer", owner.add(producer_id=999_999)),
        ):
            talk.ask(f"add: {step}", request, version)
    owner = Owner(talk, "partitions of brokers")
    talk.quietly(owner.add(), 3)
    for version in (4, 5):
        for step, asked in (
            ("one that is in", owner.verify(0)),
            ("one that is not", owner.verify(0, 1)),
            ("another producer", owner.verify(0, producer_id=999_999)),
            ("another epoch", owner.verify(0, producer_epoch=owner.epoch + 1)),
            ("an unknown id", owner.verify(0, transactional_id="nobody")),
        ):
            talk.ask(f"verify: {step}", AddPartitionsToTxnRequest(transactions=[asked]), version)


def _offsets(talk: Conversation) -> None:
    for version in versions(AddOffsetsToTxnRequest):
        owner = Owner(talk, f"offsets {version}")
        for step, request in (
            ("a group", owner.offsets()),
            ("a group again", owner.offsets()),
            ("no group", owner.offsets("")),
            ("an unknown id", owner.offsets(transactional_id="nobody")),
            ("an old epoch", owner.offsets(producer_epoch=owner.epoch - 1)),
            ("another producer", owner.offsets(producer_id=999_999)),
        ):
            talk.ask(f"add offsets: {step}", request, version)


def _ends(talk: Conversation) -> None:
    for version in range(5):
        owner = Owner(talk, f"ends {version}")
        talk.ask("end: nothing", owner.end(), version)
        talk.ask("end: nothing, abort", owner.end(commit=False), version)
        for commit in (True, False):
            word = "commit" if commit else "abort"
            talk.quietly(owner.add(partitions=(0, 1)), 3)
            talk.ask(f"end: {word} of another", owner.end(commit=commit, producer_id=999_999), version)
            talk.ask(
                f"end: {word} too old", owner.end(commit=commit, producer_epoch=owner.epoch - 1), version
            )
            talk.ask(f"end: {word}", owner.end(commit=commit), version)
            owner.settle()
            talk.ask(f"end: {word} repeated", owner.end(commit=commit), version)
            talk.ask(f"end: {word} contradicted", owner.end(commit=not commit), version)
        talk.ask("end: an unknown id", owner.end(transactional_id="nobody"), version)


def _ends_that_raise_the_epoch(talk: Conversation) -> None:
    for commit in (True, False):
        word = "commit" if commit else "abort"
        owner = Owner(talk, f"raising {word}")
        talk.ask(f"raise: nothing, {word}", owner.end(commit=commit), 5)
        owner.settle()
        owner.init()
        talk.quietly(owner.add(), 3)
        talk.ask(f"raise: {word}", owner.end(commit=commit), 5)
        owner.settle()
        talk.ask(f"raise: {word} repeated", owner.end(commit=commit), 5)
        talk.ask(f"raise: {word} contradicted", owner.end(commit=not commit), 5)
        talk.ask(f"raise: {word} ahead", owner.end(commit=commit, producer_epoch=owner.epoch + 7), 5)


def _questions(talk: Conversation) -> None:
    names = ("looked at", "looked at empty", "looked at done")
    busy, _, done = (Owner(talk, name) for name in names)
    talk.quietly(busy.add(), 3)
    talk.quietly(done.add(), 3)
    talk.quietly(done.end(), 3)
    done.settle()
    asked = DescribeTransactionsRequest(transactional_ids=[*names, "nobody", ""])
    talk.ask("described", asked, 0)
    for version in versions(ListTransactionsRequest):
        for state in ("Ongoing", "Empty", "CompleteCommit", "NoSuchState"):
            filtered = ListTransactionsRequest(state_filters=[state], producer_id_filters=[busy.id, done.id])
            talk.ask(f"listed: {state}", filtered, version)
    old = ListTransactionsRequest(duration_filter=3_600_000, producer_id_filters=[busy.id, done.id])
    talk.ask("listed: older than an hour", old, 1)
    for pattern in ("looked at.*", "looked", "[", ""):
        matched = ListTransactionsRequest(transactional_id_pattern=pattern, producer_id_filters=[busy.id])
        talk.ask(f"listed: by the pattern {pattern}", matched, 2)

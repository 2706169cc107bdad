"""Produce in a transaction: the coordinator is asked before the first batch, and only before the first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from headrace.broker.coordinators.internal_topics import TRANSACTIONS_TOPIC
from headrace.broker.handlers import produce
from headrace.broker.transactions.patient_requests import PatientRequests
from headrace.broker.transactions.verification import Verifications
from headrace.config.broker import BrokerConfig
from headrace.core.completion import Completion
from headrace.core.errors import OutOfOrderSequence
from headrace.network.response import DelayedResponse, Response
from headrace.protocol.batch import check
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import frame_request, read_request_header
from headrace.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnTransaction
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.primitives import Reader
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer
from tests.unit.broker.membership_answers import Link, answer_to, settle
from tests.unit.broker.serving import LOCAL, TOPIC, TOPIC_ID, Image, Server, Topic, sent
from tests.unit.log.material import NOW, batch_of
from tests.unit.log.transactional_writes import marker
from tests.unit.replication.replicas import fetch

PRODUCER = 77
ANOTHER = 2
OK = ErrorCode.NONE


class StateTopic(Topic):
    """`__transaction_state`, led by one broker."""

    def __init__(self, leader: int) -> None:
        super().__init__(TRANSACTIONS_TOPIC, UUID(int=8), 50)
        self._leader = leader

    def __len__(self) -> int:
        return 50

    def leader(self, _: int) -> int:
        return self._leader


class ImageWithState(Image):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.state: StateTopic | None = StateTopic(ANOTHER)

    def topic(self, name: str) -> Topic | None:
        return self.state if name == TRANSACTIONS_TOPIC else super().topic(name)


class Coordinator:
    """On another broker. Answers when it is told to."""

    def __init__(self, server: Server) -> None:
        self.link = Link()
        self.asked_here: list[tuple[str, bool, Completion[Any]]] = []
        """If it is on this broker: the transactional id, whether something is written, and the answer."""
        self.image = ImageWithState(len(server.partitions))
        server.image = server.metadata.image = self.image
        server.metadata.address_of = lambda _: ("host-2", 9092)
        runtime = server.runtime
        runtime.broker_id = LOCAL
        runtime.environment = SimpleNamespace(dialer=self)
        runtime.peer_log = SimpleNamespace(warning=lambda *_, **__: None)
        runtime.log = SimpleNamespace(info=lambda *_, **__: None, warning=lambda *_, **__: None)
        patient = PatientRequests(runtime, cast(Any, self), cast(Any, None))
        self.verification = Verifications(runtime, server.metadata, server.context.partitions, patient)
        server.stub.coordinators = SimpleNamespace(verification=self.verification)

    async def dial(self, _host: str, _port: int, *, timeout: float) -> Link:
        assert timeout > 0
        return self.link

    def ask(self, transactional_id: str, _operation: object, *, writes: bool) -> Completion[Any]:
        answer: Completion[Any] = Completion()
        self.asked_here.append((transactional_id, writes, answer))
        return answer

    async def question(self) -> AddPartitionsToTxnTransaction:
        """The one that is not answered, or the next."""
        async with asyncio.timeout(30):
            while not self.link.is_asked:
                await asyncio.sleep(0.005)
        (transaction,) = self.link.requests[-1].transactions
        return transaction

    async def answer(self, code: ErrorCode = OK, **other: ErrorCode) -> None:
        """`other`: the codes of partitions by their number."""
        await self.question()
        self.link.answer(response=answer_to(self.link.requests[-1], code, other))
        await settle()

    async def is_asked(self) -> bool:
        await settle()
        return self.link.is_asked or bool(self.asked_here)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(2, isr=(1,))
    yield server
    server.close()


@pytest.fixture
async def coordinator(server: Server) -> AsyncIterator[Coordinator]:
    coordinator = Coordinator(server)
    yield coordinator
    coordinator.verification.stop()


def configure(server: Server, name: str, value: str) -> None:
    server.runtime.config = BrokerConfig.parse({"broker.id": "1", "log.dirs": "/nowhere", name: value})


def batch(
    sequence: int = 0, *, producer: int = PRODUCER, epoch: int = 0, transactional: bool = True
) -> bytes:
    fields = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
    return bytes(batch_of(b"v", transactional=transactional, **fields)[0])


def send(
    server: Server,
    *batches: bytes,
    version: int = 11,
    transactional_id: str | None = "t",
    acks: int = -1,
    topic: str = TOPIC,
    client_id: str = "test",
) -> Response:
    """One batch for each partition from 0 on. The frame is overwritten behind the handler's back."""
    data = [PartitionProduceData(index=index, records=each) for index, each in enumerate(batches)]
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        transactional_id=transactional_id,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )
    frame = memoryview(bytearray(frame_request(request, version, 1, client_id)))[4:]
    header, at = read_request_header(frame)
    answer = produce.serve(server.context, version, header.correlation_id, frame, at, server.connection)
    frame[:] = bytes(len(frame))
    return answer


def codes(answer: Response, version: int = 11) -> list[ErrorCode]:
    response = ProduceResponse.decode(Reader(sent(answer), 5 if version >= 9 else 4), version)
    return [ErrorCode(each.error_code) for each in response.responses[0].partition_responses]


def is_pending(answer: Response) -> bool:
    return isinstance(answer, DelayedResponse) and not answer.is_done


def end(server: Server, index: int = 0, epoch: int = 0) -> None:
    control = marker(PRODUCER, epoch, commit=False)
    server.partitions[index].append(control, check(control), acks=1, now_ms=NOW, from_client=False)


async def test_the_first_batch_waits_for_the_coordinator(server: Server, coordinator: Coordinator) -> None:
    answer = send(server, batch())
    assert isinstance(answer, DelayedResponse)
    assert answer.exclusive, "what comes behind it must not overtake it"
    assert server.partition.log.end_offset == 0
    assert (await coordinator.question()).verify_only
    await coordinator.answer()
    assert codes(answer) == [OK]
    assert server.partition.log.end_offset == 1
    assert codes(send(server, batch(1))) == [OK], "the transaction is open: nobody is asked"
    assert not await coordinator.is_asked()


async def test_a_coordinator_on_this_broker_is_asked_without_a_link(
    server: Server, coordinator: Coordinator
) -> None:
    coordinator.image.state = StateTopic(LOCAL)
    answer = send(server, batch())
    ((transactional_id, writes, decided),) = coordinator.asked_here
    assert (transactional_id, writes) == ("t", False)
    assert is_pending(answer)
    decided.complete(None)
    assert codes(answer) == [OK]
    assert not coordinator.link.requests


async def test_after_a_marker_it_is_asked_again(server: Server, coordinator: Coordinator) -> None:
    send(server, batch())
    await coordinator.answer()
    end(server)
    answer = send(server, batch(1))
    assert is_pending(answer)
    await coordinator.answer()
    assert codes(answer) == [OK]


async def test_all_partitions_are_asked_about_at_once(server: Server, coordinator: Coordinator) -> None:
    answer = send(server, batch(), batch())
    question = await coordinator.question()
    assert [(each.name, each.partitions) for each in question.topics] == [(TOPIC, [0, 1])]
    await coordinator.answer(p1=ErrorCode.INVALID_TXN_STATE)
    assert codes(answer) == [OK, ErrorCode.INVALID_TXN_STATE]
    assert [each.log.end_offset for each in server.partitions] == [1, 0]
    second = send(server, batch(1), batch())
    question = await coordinator.question()
    assert question.topics[0].partitions == [1]
    await coordinator.answer()
    assert codes(second) == [OK, OK]


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.INVALID_TXN_STATE, 11, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 12, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, 11, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 11, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 8, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
async def test_what_the_coordinator_says_is_told_as_the_client_understands(
    server: Server, coordinator: Coordinator, said: ErrorCode, version: int, told: ErrorCode
) -> None:
    answer = send(server, batch(), version=version)
    await coordinator.answer(said)
    assert codes(answer, version) == [told]
    assert server.partition.log.end_offset == 0
    assert server.context.runtime.metrics.coordinators.verification_failures == 1


async def test_without_a_coordinator_the_client_tries_again(server: Server, coordinator: Coordinator) -> None:
    coordinator.image.state = None
    assert codes(send(server, batch())) == [ErrorCode.NOT_ENOUGH_REPLICAS]


async def test_a_marker_that_comes_meanwhile_makes_the_answer_worthless(
    server: Server, coordinator: Coordinator
) -> None:
    answer = send(server, batch())
    end(server)
    await coordinator.answer()
    assert codes(answer) == [ErrorCode.INVALID_TXN_STATE]
    assert server.partition.log.end_offset == 1, "the marker alone"


async def test_version_12_adds_the_partition(server: Server, coordinator: Coordinator) -> None:
    answer = send(server, batch(), version=12)
    assert not (await coordinator.question()).verify_only
    await coordinator.answer()
    assert codes(answer, 12) == [OK]


async def test_version_12_asks_again_while_the_last_transaction_is_ended(
    server: Server, coordinator: Coordinator
) -> None:
    configure(server, "add.partitions.to.txn.retry.backoff.max.ms", "60000")
    answer = send(server, batch(epoch=1), version=12)
    await coordinator.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    end(server, epoch=1)  # of the transaction before
    assert is_pending(answer)
    await coordinator.question()
    end(server, epoch=1)  # and once more, while the question is under way
    await coordinator.answer()
    assert is_pending(answer)
    await coordinator.answer()
    assert codes(answer, 12) == [OK]


async def test_version_12_gives_up_after_a_while(server: Server, coordinator: Coordinator) -> None:
    answer = send(server, batch(), version=12)
    while is_pending(answer):
        await coordinator.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert codes(answer, 12) == [ErrorCode.CONCURRENT_TRANSACTIONS]


async def test_replicas_are_waited_for_after_the_coordinator() -> None:
    server = Server(1, isr=(1, 2))
    coordinator = Coordinator(server)
    answer = send(server, batch())
    await coordinator.answer()
    assert is_pending(answer)
    fetch(server.partition, 2, 1)
    assert codes(answer) == [OK]
    coordinator.verification.stop()
    server.close()


async def test_nobody_hears_of_acks_0(server: Server, coordinator: Coordinator) -> None:
    answer = send(server, batch(), acks=0)
    await coordinator.answer()
    assert isinstance(answer, DelayedResponse)
    assert answer.parts == []
    assert server.partition.log.end_offset == 1
    with pytest.raises(OutOfOrderSequence):
        send(server, batch(5), acks=0)


async def test_a_refusal_of_acks_0_closes_the_connection(server: Server, coordinator: Coordinator) -> None:
    send(server, batch(), acks=0)
    await coordinator.answer(ErrorCode.INVALID_TXN_STATE)
    assert server.connection.closed


async def test_who_disables_verification_is_not_asked(server: Server, coordinator: Coordinator) -> None:
    configure(server, "transaction.partition.verification.enable", "false")
    assert codes(send(server, batch())) == [OK]
    assert not await coordinator.is_asked()
    # From version 12 on the question is also what puts the partition into the transaction.
    send(server, batch(producer=78), version=12)
    await coordinator.question()
    assert len(coordinator.link.requests) == 1


async def test_a_transactional_batch_needs_an_id(server: Server, coordinator: Coordinator) -> None:
    told = codes(send(server, batch(), transactional_id=None))
    assert told == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    told = codes(send(server, batch(), batch(), transactional_id=None))
    assert told == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert not await coordinator.is_asked()


async def test_an_id_alone_makes_no_transaction(server: Server, coordinator: Coordinator) -> None:
    assert codes(send(server, batch(transactional=False))) == [OK]
    assert not await coordinator.is_asked()
    assert server.partition.last_stable_offset == 1


async def test_one_request_has_one_producer(server: Server, coordinator: Coordinator) -> None:
    told = codes(send(server, batch(), batch(producer=78)))
    assert told == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert not await coordinator.is_asked()


async def test_an_older_epoch_is_refused_without_a_question(server: Server, coordinator: Coordinator) -> None:
    end(server, epoch=3)
    assert codes(send(server, batch(epoch=2))) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert not await coordinator.is_asked()


async def test_version_13_names_topics_by_id(server: Server, coordinator: Coordinator) -> None:
    def send_by_id(topic_id: UUID, *batches: bytes, transactional_id: str | None = "t") -> Response:
        data = [PartitionProduceData(index=index, records=each) for index, each in enumerate(batches)]
        topic = TopicProduceData(topic_id=topic_id, partition_data=data)
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, transactional_id=transactional_id, topic_data=[topic]
        )
        return server.ask(request, 13)

    plain = bytes(batch_of(b"v")[0])
    assert codes(send_by_id(TOPIC_ID, plain, transactional_id=None), 13) == [OK]
    assert codes(send_by_id(TOPIC_ID, plain, plain, transactional_id=None), 13) == [OK, OK]
    answer = send_by_id(TOPIC_ID, batch())
    assert not (await coordinator.question()).verify_only
    await coordinator.answer()
    assert codes(answer, 13) == [OK]
    strange = UUID(int=99)
    assert codes(send_by_id(strange, plain, transactional_id=None), 13) == [ErrorCode.UNKNOWN_TOPIC_ID]
    answer = send_by_id(strange, batch(), batch())
    assert codes(answer, 13) == [ErrorCode.UNKNOWN_TOPIC_ID] * 2
    response = ProduceResponse.decode(Reader(sent(answer), 5), 13)
    assert response.responses[0].topic_id == strange


async def test_clients_write_to_no_internal_topic(server: Server, coordinator: Coordinator) -> None:
    assert codes(send(server, batch(), topic=TRANSACTIONS_TOPIC)) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    plain: dict[str, Any] = {"transactional_id": None, "topic": TRANSACTIONS_TOPIC}
    assert codes(send(server, bytes(batch_of(b"v")[0]), **plain)) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    told = codes(send(server, bytes(batch_of(b"v")[0]), client_id="__admin_client", **plain))
    assert told != [ErrorCode.INVALID_TOPIC_EXCEPTION]
    coordinator.image.state = None
    assert codes(send(server, batch(), topic=TRANSACTIONS_TOPIC)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_a_topic_that_is_not_there_is_told_before_strange_acks(server: Server) -> None:
    plain = batch(transactional=False)
    for topic, code in (
        (TOPIC, ErrorCode.INVALID_REQUIRED_ACKS),
        ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        assert codes(send(server, plain, transactional_id=None, topic=topic, acks=2)) == [code]
    assert server.partition.log.end_offset == 0


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("topic", [TOPIC, "nowhere"])
async def test_transactional_records_without_an_id_are_refused_before_the_topic_is_looked_at(
    server: Server, count: int, topic: str
) -> None:
    """Whoever may write to it, and to every transactional id."""
    everything = [
        AclRule(kind, "*", PatternType.LITERAL, "User:alice", "*", Operation.WRITE, Permission.ALLOW)
        for kind in (ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID)
    ]
    for rules in ([], everything):
        server.connection.rights = Authorizer(AclIndex(rules)).rights_of("User:alice", "10.0.0.1")
        batches = [batch(), batch(transactional=False)][:count]
        answer = send(server, *batches, transactional_id=None, topic=topic)
        assert codes(answer) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * count
        assert server.partition.log.end_offset == 0
        plain = send(server, batch(transactional=False), transactional_id=None, topic="nowhere")
        assert codes(plain) == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if rules else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ]

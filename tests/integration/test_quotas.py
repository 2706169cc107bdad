"""Client quotas on a real broker, by single requests: who is over is told, muted and in time served again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from headrace.protocol.messages import alter_client_quotas_request as alter_quotas
from headrace.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.messages.create_partitions_response import CreatePartitionsResponse
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest
from headrace.protocol.messages.delete_topics_response import DeleteTopicsResponse
from headrace.protocol.messages.fetch_request import FetchRequest
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.testing.cluster import Cluster
from tests.requests import FETCH_BY_NAME, fetch_request
from tests.unit.log.material import batch_of
from tests.wire import Wire, request_frame

TOPIC = "orders"
BOUND = 20_000.0
KILOBYTES_10 = bytes(batch_of(b"v" * 10_000)[0])
BURST = 10
"""Seconds: as much as the quota allows in this time may be used at once."""
QUOTA_EXCEEDED = 89


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster({"num.partitions": "1"}) as cluster:
        yield cluster


class Client(Wire):
    """A connection with a client id of its own."""

    def __init__(self, cluster: Cluster, client_id: str) -> None:
        super().__init__(int(cluster.bootstrap.rpartition(":")[2]), timeout=60)
        self._client_id = client_id

    def send_body(self, api_key: int, version: int, body: bytes) -> int:
        self._correlation_id += 1
        self.socket.sendall(request_frame(api_key, version, self._correlation_id, body, self._client_id))
        return self._correlation_id

    def produce(self, version: int = 9, acks: int = 1) -> ProduceResponse:
        answer: ProduceResponse = self.ask(produce(acks), version, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == 0
        return answer

    def fetch(self, request: FetchRequest, version: int = FETCH_BY_NAME) -> FetchResponse:
        answer: FetchResponse = self.ask(request, version, FetchResponse)
        return answer


def produce(acks: int = 1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=KILOBYTES_10)
    return ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
    )


def set_quota(wire: Wire, entity: dict[str, str | None], key: str, value: float | None) -> None:
    parts = [alter_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    op = alter_quotas.OpData(key=key, value=value or 0.0, remove=value is None)
    request = alter_quotas.AlterClientQuotasRequest(entries=[alter_quotas.EntryData(entity=parts, ops=[op])])
    answer: AlterClientQuotasResponse = wire.ask(request, 1, AlterClientQuotasResponse)
    assert [entry.error_code for entry in answer.entries] == [0]


@contextmanager
def operator_of(cluster: Cluster) -> Iterator[Client]:
    """Has made the topic."""
    with closing(Client(cluster, "operator")) as operator:
        wanted = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        operator.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 6, CreateTopicsResponse)
        yield operator


@pytest.mark.parametrize("entity", [{"client-id": "greedy"}, {"user": "ANONYMOUS"}, {"user": None}])
def test_a_producer_over_its_quota_is_told_and_muted(cluster: Cluster, entity: dict[str, str | None]) -> None:
    with operator_of(cluster) as operator, closing(Client(cluster, "greedy")) as greedy:
        set_quota(operator, entity, "producer_byte_rate", BOUND)
        within = int(BURST * BOUND) // (len(KILOBYTES_10) + 200)
        assert {greedy.produce().throttle_time_ms for _ in range(within)} == {0}
        over = [greedy.produce() for _ in range(1)] + [greedy.produce(version=8)]
        while not over[-1].throttle_time_ms:
            over.append(greedy.produce())
        told_ms = over[-1].throttle_time_ms
        assert 0 < told_ms < 5_000
        began = time.monotonic()
        greedy.produce()
        # It was sent at once, and it is answered when the time that was told is over.
        assert time.monotonic() - began >= told_ms / 1000 * 0.9
        if "client-id" in entity:
            assert operator.produce().throttle_time_ms == 0


def test_without_its_quota_a_muted_client_is_soon_served(cluster: Cluster) -> None:
    with operator_of(cluster) as operator, closing(Client(cluster, "greedy")) as greedy:
        set_quota(operator, {"client-id": "greedy"}, "producer_byte_rate", 1.0)
        assert greedy.produce().throttle_time_ms > 1_000_000
        number = greedy.send_body(0, 9, produce().to_bytes(9))
        greedy.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            greedy.receive_frame()
        set_quota(operator, {"client-id": "greedy"}, "producer_byte_rate", None)
        greedy.socket.settimeout(60)
        answer = ProduceResponse.from_bytes(greedy.receive_body(0, 9, number), 9)
        assert answer.throttle_time_ms == 0


def test_a_muted_client_is_served_when_its_quota_is_raised(cluster: Cluster) -> None:
    with operator_of(cluster) as operator, closing(Client(cluster, "greedy")) as greedy:
        set_quota(operator, {"client-id": "other"}, "producer_byte_rate", 1.0)  # and stays
        set_quota(operator, {"user": "ANONYMOUS", "client-id": "greedy"}, "producer_byte_rate", 1.0)
        assert greedy.produce().throttle_time_ms > 1_000_000
        number = greedy.send_body(0, 9, produce().to_bytes(9))
        set_quota(operator, {"user": "ANONYMOUS", "client-id": "greedy"}, "producer_byte_rate", 1e9)
        answer = ProduceResponse.from_bytes(greedy.receive_body(0, 9, number), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def test_acks_0_is_muted_too(cluster: Cluster) -> None:
    with operator_of(cluster) as operator, closing(Client(cluster, "greedy")) as greedy:
        set_quota(operator, {"client-id": "greedy"}, "producer_byte_rate", 2_000.0)
        for _ in range(3):
            greedy.send_body(0, 9, produce(acks=0).to_bytes(9))
        began = time.monotonic()
        greedy.ask(MetadataRequest(), 12, MetadataResponse)
        assert time.monotonic() - began > 3  # 30,000 bytes are fifteen seconds' worth, and ten are a burst


def test_a_consumer_over_its_quota_gets_nothing_until_it_is_within(cluster: Cluster) -> None:
    with operator_of(cluster) as operator:
        for _ in range(30):
            operator.produce()
        set_quota(operator, {"client-id": "greedy"}, "consumer_byte_rate", BOUND)
        with closing(Client(cluster, "greedy")) as greedy, closing(Client(cluster, "greedy")) as other:
            session = FetchRequest(
                session_id=0,
                session_epoch=0,
                max_bytes=50 << 20,
                topics=fetch_request(TOPIC).topics,
            )
            begun = other.fetch(session)
            assert begun.session_id != 0
            first = len(begun.responses[0].partitions[0].records or b"")
            # One answer holds no more than ten seconds' worth, and that is all of the burst.
            assert 0.8 * BURST * BOUND < first <= BURST * BOUND
            answer = greedy.fetch(fetch_request(TOPIC))
            while not answer.throttle_time_ms:
                assert answer.responses
                answer = greedy.fetch(fetch_request(TOPIC))
            # Whoever shares the quota is held as well: with an answer that is as short as can be.
            held = other.fetch(FetchRequest(session_id=begun.session_id, session_epoch=1, topics=[]))
            assert held.error_code == 0
            assert held.throttle_time_ms > 0
            assert held.session_id == begun.session_id
            assert held.responses == []
            with closing(Client(cluster, "greedy")) as third:
                full = third.fetch(session)
                assert full.error_code == 0
                assert full.throttle_time_ms > 0
                assert full.session_id == 0
                assert full.responses == []
            going_on = other.fetch(FetchRequest(session_id=begun.session_id, session_epoch=2, topics=[]))
            assert going_on.error_code == 0, "the session has outlived the throttling"
        assert operator.fetch(fetch_request(TOPIC)).throttle_time_ms == 0


def test_a_fetch_that_waited_is_charged_when_it_is_answered(cluster: Cluster) -> None:
    with operator_of(cluster) as operator, closing(Client(cluster, "greedy")) as greedy:
        set_quota(operator, {"client-id": "greedy"}, "consumer_byte_rate", 500.0)
        request = fetch_request(TOPIC, min_bytes=1, max_wait_ms=30_000)
        number = greedy.send_body(1, FETCH_BY_NAME, request.to_bytes(FETCH_BY_NAME))
        time.sleep(0.2)
        operator.produce()
        answer = FetchResponse.from_bytes(greedy.receive_body(1, FETCH_BY_NAME, number), FETCH_BY_NAME)
        assert answer.responses[0].partitions[0].records
        assert answer.throttle_time_ms > 5_000


def test_who_takes_too_much_of_the_loop_is_told(cluster: Cluster) -> None:
    with operator_of(cluster) as operator, closing(Client(cluster, "greedy")) as greedy:
        set_quota(operator, {"client-id": "greedy"}, "request_percentage", 0.01)
        told = 0
        for _ in range(1_000):
            answer: MetadataResponse = greedy.ask(MetadataRequest(), 12, MetadataResponse)
            told = answer.throttle_time_ms
            if told:
                break
        assert 0 < told <= 1_000
        assert operator.ask(MetadataRequest(), 12, MetadataResponse).throttle_time_ms == 0


def test_topics_over_the_mutation_quota_are_refused_one_by_one(cluster: Cluster) -> None:
    with operator_of(cluster) as operator, closing(Client(cluster, "greedy")) as greedy:
        set_quota(operator, {"client-id": "greedy"}, "controller_mutation_rate", 1.0)

        def create(names: list[str], partitions: int, version: int = 6) -> CreateTopicsResponse:
            wanted = [
                CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names
            ]
            request = CreateTopicsRequest(topics=wanted, timeout_ms=30_000)
            answer: CreateTopicsResponse = greedy.ask(request, version, CreateTopicsResponse)
            return answer

        # What fails for another reason is not charged, and eleven seconds' worth may be used at once.
        for _ in range(5):
            assert create([TOPIC], 10).topics[0].error_code == 36
        answer = create(["a", "b", "c"], 10)
        assert [(each.name, each.error_code) for each in answer.topics] == [
            ("a", 0),
            ("b", 0),
            ("c", QUOTA_EXCEEDED),
        ]
        assert 5_000 < answer.throttle_time_ms <= 10_000
        assert answer.topics[2].error_message is not None
        assert "come back in" in answer.topics[2].error_message
        more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=12)], timeout_ms=30_000)
        grown: CreatePartitionsResponse = greedy.ask(more, 3, CreatePartitionsResponse)
        assert grown.results[0].error_code == QUOTA_EXCEEDED
        assert grown.throttle_time_ms > 0
        gone = DeleteTopicsRequest(topic_names=["a"], timeout_ms=30_000)
        deleted: DeleteTopicsResponse = greedy.ask(gone, 5, DeleteTopicsResponse)
        assert deleted.responses[0].error_code == QUOTA_EXCEEDED
        assert deleted.throttle_time_ms > 0
        # A version that does not know the error is served, and told to wait.
        old = create(["d"], 1, version=5)
        assert old.topics[0].error_code == 0
        assert old.throttle_time_ms > answer.throttle_time_ms - 5_000
        assert operator.ask(gone, 5, DeleteTopicsResponse).responses[0].error_code == 0


def test_an_address_that_connects_too_often_is_held_and_closed(cluster: Cluster) -> None:
    with operator_of(cluster) as operator:
        set_quota(operator, {"ip": "127.0.0.1"}, "connection_creation_rate", 1.0)
        served = refused = 0
        for _ in range(20):
            with closing(Client(cluster, "greedy")) as client:
                try:
                    client.receive_body(18, 0, client.send_body(18, 0, ApiVersionsRequest().to_bytes(0)))
                    served += 1
                except (EOFError, ConnectionError):
                    refused += 1
        # Ten seconds' worth at once, and as many as its seconds have brought: who is closed does not count.
        assert served >= 10
        assert refused >= 3
        set_quota(operator, {"ip": "127.0.0.1"}, "connection_creation_rate", None)
        with closing(Client(cluster, "greedy")) as client:
            client.receive_body(18, 0, client.send_body(18, 0, ApiVersionsRequest().to_bytes(0)))

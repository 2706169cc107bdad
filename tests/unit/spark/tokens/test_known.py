"""A token is handed out when every broker lets it in."""

from __future__ import annotations

import pytest

from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.tokens.admin import Token, TokenFailed
from headrace.spark.tokens.known import await_known

_TASKS = KafkaProperties({"bootstrap.servers": "a:1,b:1", "sasl.mechanism": "SCRAM-SHA-512"})


class Cluster:
    """Of each broker how often it does not know of the token."""

    def __init__(self, late: dict[str, int]) -> None:
        self.late = late
        self.asked: list[str] = []

    def create(self, lifetime_ms: int | None) -> Token:
        raise NotImplementedError

    def renew(self, token: Token, period_ms: int) -> int:
        raise NotImplementedError

    def expire(self, token: Token) -> None:
        raise NotImplementedError

    def brokers(self, kafka: KafkaProperties) -> list[str] | None:
        self.asked.append(kafka.bootstrap)
        first = kafka.bootstrap.split(",")[0]
        self.late[first] -= 1
        return None if self.late[first] >= 0 else list(self.late)


def test_every_broker_is_asked_until_it_knows() -> None:
    cluster = Cluster({"a:1": 1, "b:1": 2, "c:1": 0})
    pauses: list[float] = []
    await_known(cluster, _TASKS, pauses.append)
    assert cluster.asked == ["a:1,b:1", "a:1,b:1", "a:1", "b:1", "b:1", "b:1", "c:1"]
    assert pauses == [0.2] * 3


def test_the_only_broker_is_asked_once() -> None:
    cluster = Cluster({"a:1": 0})
    pauses: list[float] = []
    await_known(cluster, _TASKS, pauses.append)
    assert pauses == []
    assert cluster.asked == ["a:1,b:1"]


def test_a_broker_that_never_lets_it_in_is_named() -> None:
    with pytest.raises(TokenFailed, match="the broker at b:1 does not let in the token"):
        await_known(Cluster({"a:1": 0, "b:1": 10_000}), _TASKS, lambda _: None)

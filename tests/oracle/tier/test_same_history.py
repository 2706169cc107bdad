"""Tiered topics of Apache Kafka 4.3.1, whose store is a directory, and of Headrace, whose store is a real S3
server: the same requests, answers compared field by field."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.apache_kafka import CACHE, ApacheKafka
from tests.broker_process import BrokerProcess, HeadraceProcess, Place
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties
from tests.directories.object_store import ObjectStore, running_object_store
from tests.oracle.comparison import Found, compare, report, require_reasons, stale
from tests.oracle.conftest import COMPARED
from tests.oracle.conversation import Conversation
from tests.oracle.plain import Flat
from tests.oracle.test_same_answers import PROPERTIES
from tests.oracle.tier import history_script, settings_script
from tests.oracle.tier.differences import DIFFERENCES

pytestmark = pytest.mark.timeout(900)

SCRIPTS: dict[str, Callable[[Conversation], None]] = {
    "settings": settings_script.run,
    "history": history_script.run,
    "transactions": history_script.run_transactions,
}
SOON = {
    **PROPERTIES,
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "200",
    "remote.fetch.max.wait.ms": "10000",
    "log.retention.check.interval.ms": "300",
}
STORAGE = "org.apache.kafka.server.log.remote.storage"


class TieredKafka(ApacheKafka):
    further_jars = (CACHE / "kafka-tier-4.3.1",)


def kafka_properties(directory: Path) -> dict[str, str]:
    return {
        **SOON,
        "log.initial.task.delay.ms": "100",
        "remote.log.storage.manager.class.name": f"{STORAGE}.LocalTieredStorage",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rsm.config.dir": str(directory),
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    }


def headrace_properties(store: ObjectStore) -> dict[str, str]:
    return {**SOON, **broker_properties(store), "headrace.tier.call.timeout.ms": "30000"}


Answers = dict[str, dict[str, Flat]]


def talk(broker: BrokerProcess) -> Answers:
    answers: Answers = {}
    with broker:
        for name, run in SCRIPTS.items():
            with Conversation(broker) as conversation:
                run(conversation)
                answers[name] = conversation.answers
    return answers


@pytest.fixture(scope="module")
def answers(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Answers, Answers]:
    """Of Apache Kafka and of Headrace."""
    with running_object_store() as store, ThreadPoolExecutor(2) as pool:
        directory = tmp_path_factory.mktemp("history")
        brokers: list[BrokerProcess] = [
            TieredKafka(tmp_path_factory.mktemp("kafka"), kafka_properties(directory)),
            HeadraceProcess(
                tmp_path_factory.mktemp("headrace"),
                headrace_properties(store),
                place=Place(environment=ENVIRONMENT),
            ),
        ]
        kafka, headrace = pool.map(talk, brokers)
    fields = sum(len(flat) for script in kafka.values() for flat in script.values())
    request.config.stash[COMPARED].append(f"{fields:,} fields of tiered topics were compared")
    return kafka, headrace


@pytest.fixture(scope="module")
def found(answers: tuple[Answers, Answers]) -> dict[str, list[Found]]:
    kafka, headrace = answers
    result = {name: compare(kafka[name], headrace[name]) for name in SCRIPTS}
    report(result, "HEADRACE_ORACLE_REPORT")
    return result


@pytest.mark.parametrize("script", list(SCRIPTS))
def test_no_answer_differs_without_a_reason(found: dict[str, list[Found]], script: str) -> None:
    require_reasons(found[script], DIFFERENCES)


def test_every_listed_difference_still_occurs(found: dict[str, list[Found]]) -> None:
    assert not stale([one for all_found in found.values() for one in all_found], DIFFERENCES)


def test_both_read_what_is_in_their_stores(answers: tuple[Answers, Answers]) -> None:
    """Nothing is the same as nothing."""
    for broker in answers:
        first = broker["history"]["history from 0 v12"]
        assert any("batch[3].record[7]" in path for path in first), first

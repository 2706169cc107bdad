"""The same script of requests to Apache Kafka 4.3.1 and to Headrace; answers compared field by field."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.apache_kafka import ApacheKafka
from tests.broker_process import BrokerProcess, HeadraceProcess
from tests.oracle import (
    administration_script,
    classic_groups_script,
    configs_script,
    consumer_groups_script,
    fetch_script,
    frames_script,
    offsets_script,
    produce_script,
    topics_script,
    transactional_records_script,
    transactions_script,
)
from tests.oracle.comparison import Found, compare, report, require_reasons, stale
from tests.oracle.conftest import COMPARED
from tests.oracle.conversation import Conversation
from tests.oracle.differences import DIFFERENCES
from tests.oracle.document import PAGE, with_tables
from tests.oracle.plain import Flat

SCRIPTS: dict[str, Callable[[Conversation], None]] = {
    "frames": frames_script.run,
    "topics": topics_script.run,
    "produce": produce_script.run,
    "fetch": fetch_script.run,
    "configs": configs_script.run,
    "classic groups": classic_groups_script.run,
    "offsets": offsets_script.run,
    "consumer groups": consumer_groups_script.run,
    "transactional records": transactional_records_script.run,
    "transactions": transactions_script.run,
    "administration": administration_script.run,
}
#: As few differences as possible between the two configurations.
PROPERTIES = {
    "auto.create.topics.enable": "true",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


Answers = dict[str, dict[str, Flat]]
"""Of one broker: by script and step."""


def talk(broker: BrokerProcess) -> Answers:
    answers: Answers = {}
    with broker:
        for name, run in SCRIPTS.items():
            with Conversation(broker) as conversation:
                run(conversation)
                answers[name] = conversation.answers
    return answers


@pytest.fixture(scope="session")
def answers(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Answers, Answers]:
    """Of Apache Kafka and of Headrace."""
    brokers: list[BrokerProcess] = [
        ApacheKafka(tmp_path_factory.mktemp("kafka"), PROPERTIES),
        HeadraceProcess(tmp_path_factory.mktemp("headrace"), PROPERTIES),
    ]
    with ThreadPoolExecutor(2) as pool:
        kafka, headrace = pool.map(talk, brokers)
    steps = sum(len(script) for script in kafka.values())
    fields = sum(len(flat) for script in kafka.values() for flat in script.values())
    request.config.stash[COMPARED].append(
        f"{steps:,} answers of Apache Kafka with {fields:,} fields were compared"
    )
    return kafka, headrace


@pytest.fixture(scope="session")
def found(answers: tuple[Answers, Answers]) -> dict[str, list[Found]]:
    kafka, headrace = answers
    result = {name: compare(kafka[name], headrace[name]) for name in SCRIPTS}
    report(result, "HEADRACE_ORACLE_REPORT")
    return result


@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", list(SCRIPTS))
def test_no_answer_differs_without_a_reason(found: dict[str, list[Found]], script: str) -> None:
    require_reasons(found[script], DIFFERENCES)


@pytest.mark.timeout(600)
def test_every_script_was_answered_by_both(answers: tuple[Answers, Answers]) -> None:
    """Nothing is the same as nothing."""
    for broker in answers:
        silent = [name for name in SCRIPTS if not any(broker[name].values())]
        assert not silent


@pytest.mark.timeout(600)
def test_every_listed_difference_still_occurs(found: dict[str, list[Found]]) -> None:
    assert not stale([one for all_found in found.values() for one in all_found], DIFFERENCES)


def test_the_documentation_shows_the_tables() -> None:
    page = PAGE.read_text()
    assert page == with_tables(page), "run python -m tests.oracle.document"

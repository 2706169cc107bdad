"""The same script of requests to Apache Kafka 4.3.1 and to Headrace; answers compared field by field."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

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
from tests.oracle.conftest import COMPARED
from tests.oracle.conversation import Conversation
from tests.oracle.differences import ABSENT, DIFFERENCES
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


class Found(NamedTuple):
    """One field that is not the same."""

    step: str
    path: str
    kafka: object
    headrace: object


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


def compare(kafka: dict[str, Flat], headrace: dict[str, Flat]) -> list[Found]:
    found = []
    for step in {**kafka, **headrace}:
        ours, theirs = headrace.get(step, {}), kafka.get(step, {})
        for path in sorted({**theirs, **ours}):
            pair = theirs.get(path, ABSENT), ours.get(path, ABSENT)
            if pair[0] != pair[1]:
                found.append(Found(step, path, *pair))
    return found


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
    request.config.stash[COMPARED] = f"{steps:,} answers of Apache Kafka with {fields:,} fields were compared"
    return kafka, headrace


@pytest.fixture(scope="session")
def found(answers: tuple[Answers, Answers]) -> dict[str, list[Found]]:
    kafka, headrace = answers
    result = {name: compare(kafka[name], headrace[name]) for name in SCRIPTS}
    report = os.environ.get("HEADRACE_ORACLE_REPORT")
    if report:
        flat = [{"script": name, **one._asdict()} for name, all_found in result.items() for one in all_found]
        Path(report).write_text(json.dumps(flat, indent=1, default=str))
    return result


def _explained(one: Found) -> bool:
    return any(difference.explains(*one) for difference in DIFFERENCES)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", list(SCRIPTS))
def test_no_answer_differs_without_a_reason(found: dict[str, list[Found]], script: str) -> None:
    unexplained = [one for one in found[script] if not _explained(one)]
    shown = "\n".join(
        f"  {one.step} | {one.path}: Kafka {one.kafka!r}, Headrace {one.headrace!r}"
        for one in unexplained[:80]
    )
    assert not unexplained, f"{len(unexplained)} differences without a reason:\n{shown}"


@pytest.mark.timeout(600)
def test_every_script_was_answered_by_both(answers: tuple[Answers, Answers]) -> None:
    """Nothing is the same as nothing."""
    for broker in answers:
        silent = [name for name in SCRIPTS if not any(broker[name].values())]
        assert not silent


@pytest.mark.timeout(600)
def test_every_listed_difference_still_occurs(found: dict[str, list[Found]]) -> None:
    occurs: Counter[int] = Counter()
    for all_found in found.values():
        for one in all_found:
            occurs.update(number for number, known in enumerate(DIFFERENCES) if known.explains(*one))
    stale = [known for number, known in enumerate(DIFFERENCES) if not occurs[number]]
    assert not stale


def test_the_documentation_shows_the_tables() -> None:
    page = PAGE.read_text()
    assert page == with_tables(page), "run python -m tests.oracle.document"

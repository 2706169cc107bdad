"""Three people ask both brokers the same, in four states of rights; answers are compared field by field."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.broker_process import BrokerProcess
from tests.oracle.authorization import (
    cluster_asked,
    configs_asked,
    groups_asked,
    offsets_asked,
    records_asked,
    rule_shapes,
    security_asked,
    tokens_asked,
    topics_asked,
    transactions_asked,
    user_shapes,
)
from tests.oracle.authorization.brokers import ADMIN, PEOPLE, guarded_headrace, guarded_kafka
from tests.oracle.authorization.differences import DIFFERENCES
from tests.oracle.authorization.person import Person, User
from tests.oracle.authorization.rules import STATES, enter
from tests.oracle.authorization.world import World
from tests.oracle.comparison import Found, compare, report, require_reasons, stale
from tests.oracle.conftest import COMPARED
from tests.oracle.differences import DIFFERENCES as WITHOUT_RIGHTS
from tests.oracle.plain import Flat

SCRIPTS: dict[str, Callable[[Person, World], None]] = {
    "topics": topics_asked.ask,
    "records": records_asked.ask,
    "groups": groups_asked.ask,
    "offsets": offsets_asked.ask,
    "transactions": transactions_asked.ask,
    "configs": configs_asked.ask,
    "cluster": cluster_asked.ask,
    "security": security_asked.ask,
    "tokens": tokens_asked.ask,
}
SHAPES = "rules"
Answers = dict[str, dict[str, Flat]]
"""Of one broker: by script and step."""


def talk(broker: BrokerProcess) -> Answers:
    answers: Answers = {SHAPES: {}, **{name: {} for name in SCRIPTS}}
    with broker, ExitStack() as connections:
        users = {name: connections.enter_context(User(broker, name)) for name in (ADMIN, *PEOPLE)}
        admin = users[ADMIN]
        for user in users.values():
            user.symbols = admin.symbols
        world = World(admin)
        rule_shapes.ask(admin)
        user_shapes.ask(admin)
        for state in STATES:
            enter(state, admin)
            for name in PEOPLE:
                person = Person(state, users[name], admin)
                for script, ask in SCRIPTS.items():
                    person.user.answers = answers[script]
                    ask(person, world)
        answers[SHAPES] = admin.answers
    return answers


@pytest.fixture(scope="module")
def answers(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Answers, Answers]:
    """Of Apache Kafka and of Headrace."""
    brokers = (
        guarded_kafka(tmp_path_factory.mktemp("kafka")),
        guarded_headrace(tmp_path_factory.mktemp("ours")),
    )
    with ThreadPoolExecutor(2) as pool:
        kafka, headrace = pool.map(talk, brokers)
    steps = sum(len(script) for script in kafka.values())
    fields = sum(len(flat) for script in kafka.values() for flat in script.values())
    request.config.stash[COMPARED].append(
        f"{steps:,} answers of Apache Kafka with ACLs, with {fields:,} fields, were compared"
    )
    return kafka, headrace


@pytest.fixture(scope="module")
def found(answers: tuple[Answers, Answers]) -> dict[str, list[Found]]:
    kafka, headrace = answers
    result = {name: compare(kafka[name], headrace[name]) for name in kafka}
    report(result, "HEADRACE_ORACLE_RIGHTS_REPORT")
    return result


@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", [SHAPES, *SCRIPTS])
def test_no_refusal_differs_without_a_reason(found: dict[str, list[Found]], script: str) -> None:
    require_reasons(found[script], (*WITHOUT_RIGHTS, *DIFFERENCES))


@pytest.mark.timeout(600)
def test_each_asked_the_same_in_each_state(answers: tuple[Answers, Answers]) -> None:
    """Nothing is the same as nothing."""
    for broker in answers:
        for script in SCRIPTS:
            askers = {tuple(step.split(": ")[:2]) for step in broker[script]}
            assert askers == {(state, name) for state in STATES for name in PEOPLE}


@pytest.mark.timeout(600)
def test_every_listed_difference_still_occurs(found: dict[str, list[Found]]) -> None:
    assert not stale([one for all_found in found.values() for one in all_found], DIFFERENCES)

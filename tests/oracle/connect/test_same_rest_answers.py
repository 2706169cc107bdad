"""The same script of REST calls to `headrace connect` as to Apache Kafka Connect 4.3.1: answers are compared.

Those of Apache's Connect are recorded. `python -m tests.oracle.connect.record` asks it anew.
"""

from __future__ import annotations

import pytest

from tests.broker_process import HeadraceProcess
from tests.oracle.comparison import Found, compare, report, require_reasons, stale
from tests.oracle.conftest import COMPARED
from tests.oracle.connect.differences import DIFFERENCES
from tests.oracle.connect.document import PAGE, with_table
from tests.oracle.connect.headrace_connect import HeadraceConnect
from tests.oracle.connect.plain import flatten
from tests.oracle.connect.scripts import SCRIPTS, Answers, recorded, talk


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Answers:
    directory = tmp_path_factory.mktemp("connect")
    with (
        HeadraceProcess(directory / "broker", {"group.initial.rebalance.delay.ms": "0"}) as broker,
        HeadraceConnect(directory / "worker", broker.bootstrap) as worker,
    ):
        ours = talk(worker.port, directory / "files")
    calls = sum(len(steps) for steps in ours.values())
    fields = sum(len(flatten(kept)) for steps in recorded().values() for kept in steps.values())
    request.config.stash[COMPARED].append(
        f"{calls} calls to Apache Kafka Connect, {fields:,} fields, were compared"
    )
    return ours


@pytest.fixture(scope="module")
def found(answers: Answers) -> dict[str, list[Found]]:
    kafka = recorded()
    result = {
        name: compare(
            {step: flatten(kept) for step, kept in kafka[name].items()},
            {step: flatten(kept) for step, kept in answers[name].items()},
        )
        for name in SCRIPTS
    }
    report(result, "HEADRACE_ORACLE_REPORT")
    return result


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("script", list(SCRIPTS))
def test_no_rest_answer_differs_without_a_reason(found: dict[str, list[Found]], script: str) -> None:
    require_reasons(found[script], DIFFERENCES)


@pytest.mark.timeout(1200)
def test_every_listed_difference_still_occurs(found: dict[str, list[Found]]) -> None:
    assert not stale([one for all_found in found.values() for one in all_found], DIFFERENCES)


def test_the_documentation_shows_the_table() -> None:
    page = PAGE.read_text()
    assert page == with_table(page), "run python -m tests.oracle.connect.document"

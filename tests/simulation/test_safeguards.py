"""Proof that the simulation can see: without a safeguard it finds a violation.

Those that show within a few seeds are tried always, the others with HEADRACE_SIMULATION_SAFEGUARDS=1 (or by
`python -m tests.simulation.guards`, which says how many seeds each took).
"""

from __future__ import annotations

import os
from typing import Final

import pytest

from headrace.broker.replicas.fetch_session import FetchSession, Followed, Follower
from headrace.replication.following import FetchPosition, Following
from tests.simulation.guards import ORDINARY, search, seeds
from tests.simulation.run import run_seed
from tests.simulation.switched_off import safeguard_names, switched_off

QUICK: Final = (
    "reconcile_before_append",
    "min_isr_for_high_watermark",
    "high_watermark_admission",
)
MOST_SEEDS: Final = 1000
BEHIND_ANOTHER: Final = "stale_answer_dropped"
"""A fetcher asks anew after every change of role, and drops what it asked before: no answer that is stale
gets as far as this safeguard. The scenario of rule 8 shows what it keeps."""

ALL: Final = os.environ.get("HEADRACE_SIMULATION_SAFEGUARDS") == "1"
LEADERS_COME_BACK: Final = list(seeds(0, 60, "leaders that come back"))


@pytest.mark.parametrize(
    "name", [name for name in safeguard_names() if name in QUICK or (ALL and name != BEHIND_ANOTHER)]
)
def test_without_it_a_violation_is_found(name: str) -> None:
    tried, outcome = search(name, seeds(ORDINARY, MOST_SEEDS if ALL else ORDINARY))
    if outcome is None:
        pytest.fail(f"{name} is off, and nobody noticed in {tried} seeds")
    print(f"{name}: seed {outcome.seed}: {outcome.failure}")


def test_several_are_switched_off_together() -> None:
    replication, controller, wholeness = switched_off("maximal_isr+fenced_not_admitted+gaps")
    assert not wholeness.gaps
    assert wholeness.first_segment
    assert not replication.maximal_isr
    assert not controller.fenced_not_admitted
    assert replication.fenced_exchange
    assert controller.eligible_leaders
    with pytest.raises(ValueError, match="no safeguard is called maximal"):
        switched_off("maximal+fenced_not_admitted")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each answer that a partition was given, whether it belonged to what the partition asks for now."""
    given: list[bool] = []
    belongs = Following._belongs_to

    def noted(self: Following, sent: FetchPosition) -> bool:
        given.append(belongs(self, sent))
        return given[-1]

    monkeypatch.setattr(Following, "_belongs_to", noted)
    return given


def test_no_stale_answer_gets_past_a_fetcher(answers: list[bool]) -> None:
    for seed in LEADERS_COME_BACK[:5]:
        assert run_seed(seed).failure is None
    assert len(answers) > 200
    assert all(answers)


def test_stale_answers_are_dropped_behind_a_fetcher_that_lets_them_pass(
    answers: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first line is gone, so the safeguard has something to do, and nothing is lost."""

    def keep_what_was_asked(self: FetchSession[Follower], one: Followed[Follower]) -> None:
        self.touch(one)

    monkeypatch.setattr(FetchSession, "renew", keep_what_was_asked)
    for seed in (*LEADERS_COME_BACK[36:], *LEADERS_COME_BACK[:36]):  # the first of these has one
        assert run_seed(seed).failure is None
        if not all(answers):
            return
    pytest.fail(f"no answer of {len(answers)} was stale")

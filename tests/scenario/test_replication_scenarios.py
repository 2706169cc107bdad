"""Every text in `replication/` holds as it stands, and ends in a loss without the safeguards it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario.replication_language import SAFEGUARDS, Scenario
from tests.scenario.replication_world import Violation

TEXTS = {
    path.stem: path.read_text() for path in sorted(Path(__file__).with_name("replication").glob("*.txt"))
}
WITHOUT = [(name, safeguard) for name, text in TEXTS.items() for safeguard in Scenario(text).without]


@pytest.mark.parametrize("name", TEXTS)
def test_the_scenario_holds(name: str) -> None:
    Scenario(TEXTS[name]).run()


@pytest.mark.parametrize(("name", "safeguard"), WITHOUT)
def test_a_violation_is_seen_without_the_safeguard(name: str, safeguard: str) -> None:
    with pytest.raises(Violation):
        Scenario(TEXTS[name]).run_without(safeguard)


def test_every_safeguard_has_a_scenario() -> None:
    assert {safeguard for _, safeguard in WITHOUT} == set(SAFEGUARDS)

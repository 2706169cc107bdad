"""Every text in `transactions/` holds as it stands, and with the coordinator killed after every step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario.transaction_language import Scenario

TEXTS = {
    path.stem: path.read_text() for path in sorted(Path(__file__).with_name("transactions").glob("*.txt"))
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_scenario_holds(name: str) -> None:
    Scenario(TEXTS[name]).run()


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if not Scenario(text).remembers])
def test_fault_18_it_holds_with_a_failover_at_every_step(name: str) -> None:
    Scenario(TEXTS[name]).run(fails_over=True)


@pytest.mark.parametrize(
    "text",
    [
        "p starts\np adds a-0\np sends a-0 x\np commits\nmarkers\nexpect a-0 =",
        "p starts\nexpect refused p commits: ProducerFenced",
        "p starts\np adds a-0\nexpect refused p sends a-0 x: ProducerFenced",
        "p starts\nexpect state = Ongoing",
    ],
)
def test_a_wrong_expectation_is_seen(text: str) -> None:
    with pytest.raises(AssertionError, match="line "):
        Scenario(text).run()

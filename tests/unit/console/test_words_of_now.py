"""What the first page says first is true of what stands below it."""

from __future__ import annotations

from headrace.client.broker_health import BrokerHealth
from headrace.config.health import PROBLEM
from headrace.console.pages.now import BUT, told, word_of
from headrace.doctor.model import Unknown
from tests.unit.observe.made_up import FIGURES, small_look, snapshot_of


def test_all_is_well_only_where_nothing_is_to_be_done() -> None:
    look = small_look(0)
    assert word_of(snapshot_of(look)).headline == "All is well"
    assert not isinstance(look.health, Unknown)
    late = {f"{PROBLEM}loop": "its event loop is late"}
    brokers = {**look.health.brokers, 1: BrokerHealth(True, {**FIGURES, **late})}
    seen = snapshot_of(look._replace(health=look.health._replace(brokers=brokers)))
    assert [found.where for found in told(seen)] == [["broker 1: its event loop is late"]]
    word = word_of(seen)
    assert (word.verdict, word.headline, word.mood) == ("healthy", BUT, "warn")

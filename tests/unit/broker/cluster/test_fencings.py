"""Why a broker is gone is known to whoever fenced it, and to nobody who did not."""

from __future__ import annotations

import asyncio

from headrace.broker.cluster.fencings import Fencings
from headrace.broker.runtime.health_report import HealthReport
from headrace.client.broker_health import BrokerHealth, Fencing
from headrace.config.health import FENCED, HEALTH


def told(fencings: Fencings) -> BrokerHealth:
    report = HealthReport()
    fencings.report_to(report)
    figures = asyncio.run(report.tell())
    return BrokerHealth(True, {each.name.removeprefix(f"{HEALTH}."): each.value for each in figures})


def test_the_last_reason_of_each_broker_is_told() -> None:
    fencings = Fencings()
    fencings.note(3, 1000, "its session has ended")
    fencings.note(2, 1500, "it was stopped")
    fencings.note(3, 2000, "its connection broke and its port refuses")
    assert told(fencings).fenced == {
        3: Fencing(2000, "its connection broke and its port refuses"),
        2: Fencing(1500, "it was stopped"),
    }


def test_whoever_has_fenced_nobody_says_nothing() -> None:
    assert told(Fencings()) == BrokerHealth(True, {})


def test_what_another_version_says_in_other_words_is_passed_over() -> None:
    for text in ("?", "[]", '{"3": 7}', '{"x": [1, "y"]}'):
        assert BrokerHealth(True, {FENCED: text}).fenced == {}

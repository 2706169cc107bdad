"""The scrub in the table of `headrace cluster status`."""

from __future__ import annotations

import pytest

from headrace.cli import cluster_status, scrub_column
from headrace.client import health
from headrace.client.broker_health import BrokerHealth
from headrace.client.health import BrokerView, ClusterView, Health, Observation

DAY = 86_400_000
NOW = 1_700_000_000_000


def figures(last: int, percent: int | None = None, damage: int = 0) -> BrokerHealth:
    told = {"scrub.last.pass.ms": str(last), "log.damage.found": str(damage)}
    if percent is not None:
        told["scrub.pass.percent"] = str(percent)
    return BrokerHealth(True, told)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (figures(NOW - 6 * DAY - 5, 100), "6d ago"),
        (figures(NOW - 7 * DAY, 38), "38%, 7d ago"),
        (figures(0, 3), "3%"),
        (figures(0, 100), "never"),
        (figures(0), "off"),
        (figures(NOW - 90_000), "off, 1m30s ago"),
        (figures(NOW + 5_000, 100), "0s ago"),
        (figures(NOW - 2 * DAY, 100, damage=2), "2d ago, 2 damaged"),
        (BrokerHealth(True), None),
        (None, None),
    ],
)
def test_one_cell(told: BrokerHealth | None, shown: str | None) -> None:
    assert scrub_column.cell(told, NOW) == shown


def judged(told: BrokerHealth) -> Health:
    views = [BrokerView(1, "h", 9091, None, True), BrokerView(2, "h", 9092, None, True)]
    brokers = {1: told, 2: BrokerHealth(False)}
    return health.judge(Observation(ClusterView("id", 1, views), [], {}, {}, {}, brokers))


def test_the_column_is_last_and_only_there_if_a_broker_knows_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster_status._print_plain(judged(figures(0, 38)))
    lines = capsys.readouterr().out.splitlines()
    header = next(at for at, line in enumerate(lines) if line.startswith("BROKER"))
    assert lines[header].split()[-2:] == ["ROLE", "SCRUB"]
    assert lines[header + 1].split()[-2:] == ["controller", "38%"]
    assert lines[header + 2].split()[-2:] == ["-", "-"]
    cluster_status._print_plain(judged(BrokerHealth(True)))
    assert "SCRUB" not in capsys.readouterr().out


def test_as_json() -> None:
    document = cluster_status.document(judged(figures(NOW, 38, damage=1)))
    brokers = document["brokers"]
    assert isinstance(brokers, list)
    assert brokers[0]["scrub"] == {"percent": 38, "last_ended_ms": NOW, "damage_found": 1}
    assert brokers[1]["scrub"] is None

"""Rows of the page Tier at their edges: what is late, what is too old to be said, what is on which page."""

from __future__ import annotations

import pytest

from headrace.client.tiering import PartitionTier
from headrace.config.tier_report import LedTier
from headrace.console.http.app import application
from headrace.console.http.records import Source
from headrace.console.pages.tier import ROWS
from headrace.console.pages.tier_rows import LATE_MS, MOST_STOPPED, partition_row, tier_row
from headrace.doctor.model import Unknown
from headrace.observe.history import History
from headrace.observe.snapshot import Snapshot
from headrace.observe.tier_seen import PartitionTierSeen, TierSeen
from tests.console.serving import Still
from tests.unit.console.asking import ask
from tests.unit.console.test_pages import nobody, words
from tests.unit.observe.made_up import snapshot_of
from tests.unit.observe.made_up_tiers import tiered_look

WELL = LedTier(0, 1000, 400, 90, 0, 0, 0, "")
OFFSETS = PartitionTier(0, 60, 90, 100)


def snapshot() -> Snapshot:
    return snapshot_of(tiered_look())


def with_tier(name: str, tier: TierSeen) -> Snapshot:
    made = snapshot()
    assert not isinstance(made.tiers, Unknown)
    return made._replace(tiers={**made.tiers, name: tier})


def tier_of(*led: LedTier | None) -> TierSeen:
    seen = [PartitionTierSeen(number, OFFSETS, each) for number, each in enumerate(led)]
    return TierSeen(True, False, "", seen)


@pytest.mark.parametrize(("waiting_ms", "late"), [(LATE_MS, False), (LATE_MS + 1, True)])
def test_late_is_what_waits_for_longer_than_a_quarter_of_an_hour(waiting_ms: int, late: bool) -> None:
    assert LATE_MS == 15 * 60 * 1000
    led = WELL._replace(waiting_ms=waiting_ms)
    assert tier_row(snapshot(), "ledger", tier_of(led)).is_late is late
    assert partition_row(PartitionTierSeen(0, OFFSETS, led)).is_late is late
    made = application(Still(with_tier("ledger", tier_of(led)), History()), Source(nobody))
    assert ask(made, "/tier?format=json").json["is_late"] is late, "a fork alone is not late"


def test_bytes_of_all_copies_are_left_out_where_they_say_nothing() -> None:
    seen, tier = snapshot(), tier_of(WELL)
    single = seen.topics["young"]._replace(size_bytes=400)
    assert single.replication_factor == 1
    alone = seen._replace(topics={**seen.topics, "young": single})
    assert tier_row(alone, "young", tier).copies_bytes is None, "there are no copies"
    ledger = seen.topics["ledger"]
    older = seen._replace(topics={**seen.topics, "ledger": ledger._replace(size_bytes=399)})
    assert tier_row(older, "ledger", tier).copies_bytes is None, "less than what the leader has now"
    enough = seen._replace(topics={**seen.topics, "ledger": ledger._replace(size_bytes=400)})
    assert tier_row(enough, "ledger", tier).copies_bytes == 400


def test_the_first_of_many_partitions_that_are_stopped_are_told() -> None:
    tier = tier_of(*[WELL._replace(stopped=f"reason {number}") for number in range(MOST_STOPPED + 5)])
    assert dict(tier_row(snapshot(), "orders", tier).stopped) == {
        number: f"reason {number}" for number in range(MOST_STOPPED)
    }


def test_a_partition_tells_why_it_is_stopped() -> None:
    assert (
        partition_row(PartitionTierSeen(0, OFFSETS, WELL._replace(stopped="no manifest"))).stopped
        == "no manifest"
    )
    assert partition_row(PartitionTierSeen(0, OFFSETS, None)).stopped == ""


def test_partitions_come_in_pages() -> None:
    made = application(Still(with_tier("orders", tier_of(*[WELL] * (ROWS + 3))), History()), Source(nobody))
    first, second = (ask(made, f"/tier/orders?format=json&page={page}").json for page in (1, 2))
    assert [row["partition"] for row in first["rows"]] == list(range(ROWS))
    assert [row["partition"] for row in second["rows"]] == [ROWS, ROWS + 1, ROWS + 2]
    assert (second["number"], second["pages"]) == (2, 2)


def test_the_longest_wait_is_not_known_while_a_leader_does_not_tell() -> None:
    tier = tier_of(WELL._replace(waiting_ms=5000), None)
    made = application(Still(with_tier("ledger", tier), History()), Source(nobody))
    sums = ask(made, "/tier?format=json").json["sums"]
    assert (sums["waiting_ms"], sums["known_wait_ms"]) == (None, 95_000), "orders wait for longer"


def test_a_viewer_of_some_topics_is_told_that_these_are_not_all() -> None:
    made = snapshot()._replace(tiers={}, is_partial=True)
    text = words(ask(application(Still(made, History()), Source(nobody)), "/tier").text)
    assert "No topic that you may see keeps its history in an object store." in text

"""The page Tier: what is shown adds up to what the snapshot has, and what nobody knows is said."""

from __future__ import annotations

import re
import shlex
from html import unescape

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp

from headrace.cli.main import cli
from headrace.client.tiering import PartitionTier
from headrace.config.broker import BrokerConfig
from headrace.config.tier_report import LedTier
from headrace.console.http.app import application
from headrace.console.http.records import Source
from headrace.console.pages.tier_rows import shares_of
from headrace.controller.declared_schema import DeclaredSchema
from headrace.doctor.model import Unknown
from headrace.observe.history import History
from headrace.observe.look import Look
from headrace.observe.tier_seen import PartitionTierSeen
from tests.console.serving import CLUSTERS, Still
from tests.unit.console.asking import ask
from tests.unit.console.test_pages import app_of, checked, nobody, words
from tests.unit.observe.made_up import snapshot_of
from tests.unit.observe.made_up_tiers import FAILURE, STOPPED, tiered_look


def app_with(look: Look) -> ASGIApp:
    return application(Still(snapshot_of(look), History()), Source(nobody))


def test_each_topic_with_its_shares_and_what_waits() -> None:
    view = ask(app_of("tiered"), "/tier?format=json&sort=name").json
    rows = {row["name"]: row for row in view["listing"]["rows"]}
    assert list(rows) == ["clicks", "ledger", "ledger-test", "legacy", "orders", "young"]
    ledger, orders = rows["ledger"], rows["orders"]
    assert ledger["shares"] == {"only_remote": 60_000, "both": 30_000, "waiting": 0, "written": 10_000}
    assert (ledger["log_start"], ledger["local_start"]) == (0, 60_000)
    assert (ledger["remote_bytes"], ledger["local_bytes"], ledger["copies_bytes"]) == (36e6, 16e6, 48e6)
    assert orders["shares"] == {
        "only_remote": 3_600_000,
        "both": 1_080_000,
        "waiting": 600_000,
        "written": 135_000,
    }
    assert (orders["waiting_bytes"], orders["waiting_segments"], orders["waiting_ms"]) == (240e6, 60, 95_000)
    assert (orders["log_start"], orders["local_start"]) == (None, None), "of six partitions"
    assert (rows["ledger-test"]["origin"], rows["legacy"]["is_copied"]) == ("ledger", False)
    assert view["others"] == 1, "sessions; internal topics are not counted"
    assert view["sums"]["waiting_bytes"] == 240e6
    assert view["sums"]["remote_bytes"] == sum(row["remote_bytes"] for row in rows.values())


def test_in_words() -> None:
    text = words(checked(ask(app_of("tiered"), "/tier")))
    assert "6 topics keep their history in an object store. 1 other topic lies on the brokers' disks" in text
    assert "The store no call fails told by 3 brokers" in text
    assert "1 partition · fork of ledger" in text
    assert "1 partition · copying is off" in text
    assert "Of 100,000 records 60,000 lie in the store alone, 30,000 there and on disks" in text
    assert "On its way 240 MB the oldest for 1 min 35 s" in text
    assert "No record yet." in text


def test_by_partitions() -> None:
    rows = ask(app_of("tiered"), "/tier/orders?format=json").json["rows"]
    assert [row["end"] for row in rows] == [1_000_000 + 1000 * number for number in range(6)]
    assert {(row["log_start"], row["local_start"], row["tiered_end"]) for row in rows} == {
        (100_000, 700_000, 880_000)
    }
    assert "headrace tier status orders" in words(checked(ask(app_of("tiered"), "/tier/orders")))
    for path in ("/tier/sessions", "/tier/nope"):
        assert ask(app_of("tiered"), path).status == 404


def test_the_page_of_a_topic_has_it_too_if_it_is_tiered() -> None:
    tiered = ask(app_of("tiered"), "/topics/orders").text
    assert 'href="/tier/orders"' in tiered
    assert "Of 5,415,000 records" in words(tiered)
    assert "/tier/sessions" not in ask(app_of("tiered"), "/topics/sessions").text


def test_a_store_that_fails_and_a_broker_that_is_silent() -> None:
    view = ask(app_of("outage"), "/tier?format=json").json
    assert view["store"]["failures"] == [{"reason": FAILURE, "brokers": [1, 2]}]
    assert [each["broker"] for each in view["store"]["silent"]] == [3]
    rows = {row["name"]: row for row in view["listing"]["rows"]}
    assert list(rows)[:2] == ["ledger", "orders"], "what is worst comes first"
    orders = rows["orders"]
    assert orders["unknown"] == 2
    assert [orders[f"{name}_bytes"] for name in ("remote", "local", "waiting")] == [None] * 3
    assert (orders["waiting_ms"], orders["known_wait_ms"], orders["is_late"]) == (None, 4_000_000, True)
    assert set(view["sums"].values()) == {None, 4_000_000}
    text = words(checked(ask(app_of("outage"), "/tier")))
    assert "The object store fails at brokers 1, 2." in text
    assert "Broker 3 does not tell all. It does not answer." in text
    assert "2 of 6 partitions are not in this picture" in text
    assert "for at least 1 h 6 min" in text
    assert f"Partition 0 is stopped: {STOPPED}." in text
    assert "The store fails at 2 of 2 brokers" in text


def test_a_broker_that_tells_offsets_alone() -> None:
    """Apache Kafka, or an older version: where history begins is known, and no size."""
    made = tiered_look(1)
    assert not isinstance(made.tiers, Unknown)
    tiers = made.tiers._replace(led={}, untold=dict.fromkeys((1, 2, 3), "it is Apache Kafka"))
    app = app_with(made._replace(tiers=tiers))
    row = next(
        each for each in ask(app, "/tier?format=json").json["listing"]["rows"] if each["name"] == "ledger"
    )
    assert row["shares"] == {"only_remote": 60_000, "both": 30_000, "waiting": 0, "written": 10_000}
    assert row["remote_bytes"] is None
    assert "Broker 2 does not tell all. It is Apache Kafka." in words(ask(app, "/tier").text)


def test_settings_that_nobody_tells() -> None:
    made = tiered_look(1)._replace(tiers=Unknown("settings of topics denied: topic orders"))
    app = app_with(made)
    text = words(checked(ask(app, "/tier")))
    assert "cannot be asked now. settings of topics denied: topic orders" in text
    assert "No topic" not in text
    assert ask(app, "/tier?format=json").json["not_known"].startswith("settings of topics denied")
    assert ask(app, "/topics/orders").status == 200
    assert ask(app, "/tier/orders").status == 404


def commands_in(text: str) -> list[list[str]]:
    found = re.findall(r"<(?:pre|code)>(headrace [^<]*)</", text)
    return [shlex.split(unescape(each)) for each in found]


@pytest.mark.parametrize("name", ["small", "empty"])
def test_a_cluster_without_it_says_how_to_begin(name: str) -> None:
    """Each command is one that there is, with options that it takes, and brokers take the settings."""
    answered = ask(app_of(name), "/tier").text
    commands = commands_in(answered)
    assert [each[1:3] for each in commands] == [["tier", "check"], ["config", "set"]]
    for _, *arguments in commands:
        command: click.Command = cli
        context = click.Context(cli)
        while isinstance(command, click.Group):
            word, found, arguments = command.resolve_command(context, list(arguments))
            assert found is not None
            command, context = found, click.Context(found, info_name=word, parent=context)
        command.parse_args(context, list(arguments))
    (lines,) = re.findall(r"<pre>(remote[^<]*)</pre>", answered)
    brokers = BrokerConfig.parse(dict(line.split("=", 1) for line in lines.splitlines()))
    settings = dict(each.split("=", 1) for each in commands[1] if "=" in each)
    assert list(settings) == ["remote.storage.enable", "local.retention.ms"]
    DeclaredSchema(brokers).check_topic(settings)


def test_brokers_that_have_a_bucket_already_need_one_line() -> None:
    made = tiered_look(1)
    assert not isinstance(made.tiers, Unknown)
    app = app_with(made._replace(tiers=made.tiers._replace(topics={})))
    answered = ask(app, "/tier").text
    assert "All 7 topics lie on the brokers' disks alone. The brokers have a bucket." in words(answered)
    assert [each[1:3] for each in commands_in(answered)] == [["config", "set"]]


def test_the_menu_has_it() -> None:
    assert '<a href="/tier" aria-current="page">Tier</a>' in ask(app_of("small"), "/tier").text


OFFSETS = st.integers(0, 1000)


@given(OFFSETS, OFFSETS, OFFSETS, OFFSETS, OFFSETS)
def test_shares_add_up_whatever_brokers_say(
    start: int, local: int, tiered: int, sealed: int, end: int
) -> None:
    """The four questions are asked one after the other: between them anything may move."""
    led = LedTier(0, 0, 0, sealed, 1, 1, 1, "")
    shares = shares_of(PartitionTierSeen(0, PartitionTier(start, local, tiered, end), led))
    assert shares is not None
    assert shares.whole == max(0, end - start)
    assert min(shares) >= 0


def test_numbers_of_a_topic_are_those_of_tier_status() -> None:
    snapshot = CLUSTERS["tiered"]().snapshot
    assert snapshot is not None
    assert not isinstance(snapshot.tiers, Unknown)
    for each in snapshot.tiers["orders"].partitions:
        shares, offsets = shares_of(each), each.offsets
        assert shares is not None
        assert offsets is not None
        assert shares.only_remote == offsets.only_remote
        assert shares.waiting + shares.written == offsets.only_local

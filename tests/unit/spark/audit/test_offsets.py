"""What a pass reads: from where the last one stopped, and nothing twice."""

from __future__ import annotations

import json
from unittest.mock import AsyncMock, Mock

import pytest

from headrace.client.offsets import EARLIEST, LATEST, FoundOffset
from headrace.core.ids import TopicPartition
from headrace.spark.audit import offsets
from headrace.spark.audit.config import AuditConfig, AuditRefused, LakeTable, parse_table
from headrace.spark.audit.offsets import Ends, Range, as_option, ranges

PLACE = ("t", 0)


def test_a_pass_goes_on_where_the_last_one_stopped() -> None:
    ends = {PLACE: Ends(first=0, stable=100, log_end=120, since=0)}
    assert ranges({}, ends) == {PLACE: Range(0, 100, 0)}
    assert ranges({PLACE: 40}, ends) == {PLACE: Range(40, 100, 0)}
    assert ranges({PLACE: 40}, ends, at_most=10) == {PLACE: Range(40, 50, 0)}
    # Behind an open transaction nothing is read, and nothing is read again.
    assert ranges({PLACE: 110}, ends) == {PLACE: Range(110, 110, 0)}


async def test_what_no_follower_has_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With acks=1 a producer is told so of records above the high watermark."""
    place = TopicPartition("t", 0)

    async def list_offsets(
        _cluster: object,
        wanted: dict[TopicPartition, int],
        *,
        read_committed: bool = False,
        log_end: bool = False,
    ) -> dict[TopicPartition, FoundOffset]:
        assert not (read_committed and log_end)
        latest = 100 if log_end else 90 if read_committed else 95
        return {each: FoundOffset({LATEST: latest, EARLIEST: 3}[time], 0, 0) for each, time in wanted.items()}

    monkeypatch.setattr(offsets, "list_offsets", list_offsets)
    monkeypatch.setattr(offsets, "partitions_of", AsyncMock(return_value=[place]))
    assert await offsets.ends_of(Mock(), {"t": None}) == {
        PLACE: Ends(first=3, stable=90, log_end=100, since=3)
    }


def test_what_retention_took_is_told() -> None:
    ends = {PLACE: Ends(first=60, stable=100, log_end=100, since=60)}
    assert ranges({PLACE: 40}, ends) == {PLACE: Range(60, 100, 20)}


def test_the_beginning_may_be_a_moment() -> None:
    ends = {PLACE: Ends(first=0, stable=100, log_end=100, since=70)}
    assert ranges({}, ends) == {PLACE: Range(70, 100, 0)}


def test_records_that_come_while_ends_are_asked_are_no_new_topic() -> None:
    # Nothing is as young as the beginning, so it is where the log ends; that was asked last.
    assert ranges({}, {PLACE: Ends(0, 105, 100, 105)}) == {PLACE: Range(105, 105, 0)}


def test_a_topic_that_was_made_anew_is_refused() -> None:
    with pytest.raises(AuditRefused, match="made anew"):
        ranges({PLACE: 200}, {PLACE: Ends(0, 100, 100, 0)})


def test_offsets_are_written_as_the_connector_wants_them() -> None:
    assert json.loads(as_option({("t", 0): 5, ("t", 1): 6, ("u", 0): 7})) == {
        "t": {"0": 5, "1": 6},
        "u": {"0": 7},
    }


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("delta:/data/orders", LakeTable("delta", "/data/orders")),
        ("parquet:s3a://lake/orders", LakeTable("parquet", "s3a://lake/orders")),
        ("copy=iceberg:iceberg.lake.orders", LakeTable("iceberg", "iceberg.lake.orders", "copy")),
        ("delta:/data/day=1/orders", LakeTable("delta", "/data/day=1/orders")),
    ],
)
def test_a_table_is_a_format_and_a_place(text: str, table: LakeTable) -> None:
    assert parse_table(text) == table


@pytest.mark.parametrize("text", ["orders", "csv:/data", "delta:", "log=delta:/data"])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(AuditRefused):
        parse_table(text)


def test_an_audit_of_nothing_is_refused() -> None:
    with pytest.raises(AuditRefused, match="no topic"):
        AuditConfig({"bootstrap.servers": "b"}, (), "/state")
    with pytest.raises(AuditRefused, match="bootstrap"):
        AuditConfig({}, ("t",), "/state")
    with pytest.raises(AuditRefused, match="millisecond"):
        AuditConfig({"bootstrap.servers": "b"}, ("t",), "/state", window_ms=0)


def test_how_to_connect_is_checked_before_anything_is_read() -> None:
    brokers = {"bootstrap.servers": "b"}
    with pytest.raises(AuditRefused, match=r"SASL_SSL needs sasl\.mechanism"):
        AuditConfig({**brokers, "security.protocol": "SASL_SSL"}, ("t",), "/state")
    with pytest.raises(AuditRefused, match=r"unknown property ssl\.trust\.location"):
        AuditConfig({**brokers, "ssl.trust.location": "/ca.pem"}, ("t",), "/state")
    AuditConfig({**brokers, "security.protocol": "plaintext"}, ("t",), "/state")


def test_a_configuration_does_not_show_its_password() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="canary";'
    secured = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    config = AuditConfig({"bootstrap.servers": "b:9092", **secured}, ("t",), "/state")
    assert "b:9092" in repr(config)
    assert "canary" not in repr(config)

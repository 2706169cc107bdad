"""What a pass reads: from where the last one stopped, and nothing twice."""

from __future__ import annotations

import json

import pytest

from headrace.spark.audit.config import AuditConfig, AuditRefused, LakeTable, parse_table
from headrace.spark.audit.offsets import Ends, Range, as_option, ranges

PLACE = ("t", 0)


def test_a_pass_goes_on_where_the_last_one_stopped() -> None:
    ends = {PLACE: Ends(first=0, stable=100, high_watermark=120, since=0)}
    assert ranges({}, ends) == {PLACE: Range(0, 100, 0)}
    assert ranges({PLACE: 40}, ends) == {PLACE: Range(40, 100, 0)}
    assert ranges({PLACE: 40}, ends, at_most=10) == {PLACE: Range(40, 50, 0)}
    # Behind an open transaction nothing is read, and nothing is read again.
    assert ranges({PLACE: 110}, ends) == {PLACE: Range(110, 110, 0)}


def test_what_retention_took_is_told() -> None:
    ends = {PLACE: Ends(first=60, stable=100, high_watermark=100, since=60)}
    assert ranges({PLACE: 40}, ends) == {PLACE: Range(60, 100, 20)}


def test_the_beginning_may_be_a_moment() -> None:
    ends = {PLACE: Ends(first=0, stable=100, high_watermark=100, since=70)}
    assert ranges({}, ends) == {PLACE: Range(70, 100, 0)}


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

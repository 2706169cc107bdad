"""Which tables of a lake an audit can compare."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.spark.audit.config import AuditRefused
from headrace.spark.audit.lakes import tables_of
from headrace.spark.lake.config import LakeConfig, parse


def lake(more: str = "") -> LakeConfig:
    text = '[kafka]\n"bootstrap.servers" = "x:1"\n[lake]\nlocation = "lake"\n[[topics]]\nname = "orders"\n'
    return parse(text + more, Path("/data/lake.toml"))


def test_a_topic_that_the_lake_does_not_load_is_refused() -> None:
    with pytest.raises(AuditRefused, match="does not load payments"):
        tables_of(lake(), ("orders", "payments"))
    assert [table.location for table in tables_of(lake(), ("orders",))] == [
        "file:///data/lake/orders",
        "file:///data/lake/orders_dead_letters",
    ]


def test_a_decoded_topic_must_keep_its_bytes() -> None:
    decoded = 'format = "json"\nschema = "value string"\n'
    with pytest.raises(AuditRefused, match="the bytes of orders: set keep_value = true"):
        tables_of(lake(decoded), ("orders",))
    assert len(tables_of(lake(decoded + "keep_value = true"), ("orders",))) == 2

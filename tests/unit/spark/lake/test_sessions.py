"""What the commands ask of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from headrace.spark.lake import sessions
from headrace.spark.lake.config import parse

TEXT = """
[kafka]
"bootstrap.servers" = "localhost:9092"
[lake]
location = "/data"
[[topics]]
name = "clicks"
"""


def asked_of_spark(
    monkeypatch: pytest.MonkeyPatch, text: str, master: str | None = None
) -> Mapping[str, str]:
    made: dict[str, Any] = {}

    def session(_name: str, **given: Any) -> Mock:  # whatever it is asked
        made.update(given)
        return Mock()

    monkeypatch.setattr(sessions, "session", session)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    sessions.session_for(parse(text, Path("lake.toml")), master=master)
    extra: Mapping[str, str] = made["extra"]
    return extra


def test_a_small_load_on_one_machine_is_not_hundreds_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of 60,000 records took 1,024 tasks, nearly all of them for nothing."""
    assert asked_of_spark(monkeypatch, TEXT)["spark.sql.shuffle.partitions"] == "6"
    assert asked_of_spark(monkeypatch, TEXT, "local[2]")["spark.sql.shuffle.partitions"] == "6"


def test_a_cluster_and_a_user_decide_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "spark.sql.shuffle.partitions" not in asked_of_spark(monkeypatch, TEXT, "spark://host:7077")
    chosen = f'{TEXT}\n[spark]\n"spark.sql.shuffle.partitions" = "40"\n'
    assert asked_of_spark(monkeypatch, chosen)["spark.sql.shuffle.partitions"] == "40"

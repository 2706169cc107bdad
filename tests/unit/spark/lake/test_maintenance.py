"""When maintenance is due: counted over starts, since loads may be short."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from headrace.spark.lake import maintenance
from headrace.spark.lake.config import parse
from headrace.spark.lake.maintenance import Schedule, maintain
from headrace.spark.lake.plan import routes

_NO_SESSION = cast(SparkSession, None)  # a local state needs none


def schedule(tmp_path: Path, section: str) -> Schedule:
    text = (
        f'[kafka]\n"bootstrap.servers" = "a:1"\n[lake]\nlocation = "{tmp_path}"\n'
        f'[[topics]]\nname = "t"\n{section}'
    )
    return Schedule(_NO_SESSION, parse(text, tmp_path / "lake.toml"))


def test_it_is_due_when_its_time_is_over_whoever_counts(tmp_path: Path) -> None:
    section = '[maintenance]\nevery = "1h"\n'
    assert not schedule(tmp_path, section).due()
    noted = tmp_path / "_headrace" / "maintenance.json"
    assert json.loads(noted.read_text())["ended"] <= time.time()
    noted.write_text(json.dumps({"ended": time.time() - 3500}))
    assert not schedule(tmp_path, section).due()
    noted.write_text(json.dumps({"ended": time.time() - 3700}))
    assert schedule(tmp_path, section).due()


def test_without_the_section_it_is_never_due(tmp_path: Path) -> None:
    assert not schedule(tmp_path, "").due()
    assert not (tmp_path / "_headrace").exists()


def test_a_table_that_cannot_even_be_opened_is_told_of_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(_spark: object, _config: object, name: str) -> None:
        raise OSError(f"the log of {name} is damaged\nand more")

    monkeypatch.setattr(maintenance, "open_table", damaged)
    found = schedule(tmp_path, '[maintenance]\nevery = "1h"\n')
    noted = tmp_path / "_headrace" / "maintenance.json"
    noted.write_text(json.dumps({"ended": 0}))
    done = maintain(_NO_SESSION, found.config, routes(found.config, ["t"]))
    assert [(each.table, each.error) for each in done] == [
        ("t", "the log of t is damaged"),
        ("t_dead_letters", "the log of t_dead_letters is damaged"),
    ]
    assert not found.due()  # or it would be tried again at once, for ever


def test_a_scheduled_one_that_fails_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def damaged(_spark: object, _config: object, name: str) -> None:
        raise OSError(f"the log of {name} is damaged")

    monkeypatch.setattr(maintenance, "open_table", damaged)
    found = schedule(tmp_path, '[maintenance]\nevery = "1h"\n')
    found.spark = cast(SparkSession, SimpleNamespace(newSession=lambda: _NO_SESSION))
    (tmp_path / "_headrace" / "maintenance.json").write_text(json.dumps({"ended": 0}))
    found.look(routes(found.config, ["t"]))
    found.wait()
    assert "t was not maintained, and is tried again when it is due: the log of t is damaged" in caplog.text

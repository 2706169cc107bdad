"""Connectors are found under every name that people use for them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from headrace.connect import plugins
from headrace.connect.api import Position, Record, Sink, Source, Step
from headrace.connect.plugins import Plugins, UnknownPlugin, all_settings, described
from headrace.connect.settings import Setting, Settings


class WellSource(Source):
    settings = Settings(Setting("depth"))
    aliases = ("org.example.wells.WellSourceConnector",)

    def plan(self, position: Position) -> Step | None:
        return None

    def read(self, part: Any) -> Iterator[Record]:
        return iter(())


class TankSink(Sink):
    pass


FOUND = Plugins([described(WellSource, "well"), described(TankSink, "tank")])


@pytest.mark.parametrize(
    "name",
    [
        "well",
        f"{__name__}.WellSource",
        "WellSource",
        "org.example.wells.WellSourceConnector",
        "WellSourceConnector",
    ],
)
def test_every_name_finds_it(name: str) -> None:
    assert FOUND.find(name).connector is WellSource


def test_another_name_is_refused_with_what_there_is() -> None:
    with pytest.raises(UnknownPlugin, match="TankSink"):
        FOUND.find("Nothing")


def test_kinds_and_settings() -> None:
    assert [each.kind for each in FOUND] == ["sink", "source"]
    assert "topics" in all_settings(TankSink)
    assert "topics" not in all_settings(WellSource)
    assert "depth" in all_settings(WellSource)


def test_one_that_cannot_be_imported_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    points = [
        EntryPoint("broken", "no_such_module_at_all:Thing", plugins.GROUP),
        EntryPoint("odd", "json:dumps", plugins.GROUP),
        EntryPoint("tank", f"{__name__}:TankSink", plugins.GROUP),
    ]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    with caplog.at_level(logging.ERROR, "headrace.connect"):
        assert [each.entry_point for each in plugins.installed()] == ["tank"]
    assert len(caplog.records) == 2

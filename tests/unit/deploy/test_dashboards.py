"""The dashboards ask for what brokers export, and are what their code says."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.deploy.promql import unknown

_FOLDER: Final = Path(__file__).parents[3] / "deploy/grafana"
_NAMES: Final = ("broker", "clients", "cluster")
_SIDES: Final = 24
"""Columns of Grafana's grid."""


def _read(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text())
    return read


def _panels(name: str) -> list[dict[str, Any]]:
    return [panel for panel in _read(name)["panels"] if panel["type"] != "row"]


def _wrong(expression: str, job: str) -> list[str]:
    # Grafana puts its own figure there.
    return unknown(expression.replace("$__rate_interval", "1m"), job)


def test_there_are_no_others() -> None:
    assert {file.stem for file in _FOLDER.glob("*.json")} == set(_NAMES)


@pytest.mark.parametrize("name", _NAMES)
def test_panels_ask_for_what_brokers_export(name: str) -> None:
    panels = _panels(name)
    assert len(panels) > 10
    for panel in panels:
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert _wrong(target["expr"], 'job=~"$job"') == [], panel["title"]


@pytest.mark.parametrize("name", _NAMES)
def test_variables_ask_for_what_brokers_export(name: str) -> None:
    for variable in _read(name)["templating"]["list"]:
        if variable["type"] == "query":
            assert _wrong(variable["query"], "job=~") == []


@pytest.mark.parametrize("name", _NAMES)
def test_legends_name_labels_that_are_left(name: str) -> None:
    for panel in _panels(name):
        for target in panel["targets"]:
            used = {word.split("}}")[0] for word in target["legendFormat"].split("{{")[1:]}
            grouped = target["expr"].partition(" by (")[2].partition(")")[0]
            left = {label.strip() for label in grouped.split(",")} if grouped else used
            assert used <= left, panel["title"]


@pytest.mark.parametrize("name", _NAMES)
def test_panels_are_explained_and_do_not_overlap(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in _panels(name):
        assert panel["title"]
        assert panel["description"].endswith(".")
        at = panel["gridPos"]
        cells = {(at.get("x", 0) + x, at.get("y", 0) + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert all(x < _SIDES for x, _ in cells), panel["title"]
        taken |= cells


@pytest.mark.skipif(
    find_spec("grafana_foundation_sdk") is None,
    reason="grafana-foundation-sdk is not installed (uv sync --group deploy)",
)
def test_they_are_what_their_code_says() -> None:
    from deploy.grafana.__main__ import dashboards

    for name, text in dashboards().items():
        assert (_FOLDER / name).read_text() == text, f"{name}: run `poe dashboards`"

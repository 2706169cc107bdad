"""A promise of seconds is held to the seconds that the machine had."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import host


def test_what_the_host_took_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = os.sysconf("SC_CLK_TCK")
    stat = tmp_path / "stat"
    monkeypatch.setattr(host, "_STAT", stat)
    clock = [100.0]
    monkeypatch.setattr(host, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    stat.write_text("cpu 0 0 0 0 0 0 0 0 0 0\n")
    before, watch = host.Processors.now(), host.Stopwatch()
    clock[0] = 104.0
    stat.write_text(f"cpu {2 * second} 0 0 {3 * second} 0 0 0 {3 * second} 0 0\n")

    assert host.Processors.now().stolen_since(before) == 3 / 8
    assert watch.taken == 3
    assert watch.seconds == 1

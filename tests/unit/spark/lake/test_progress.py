"""What is told while a load runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.spark.lake import progress as told
from headrace.spark.lake.batches import Batch, Done
from headrace.spark.lake.job import Loading

_ROUTE: Any = SimpleNamespace(topic="t")
_QUERY: Any = SimpleNamespace(status={"isTriggerActive": True}, runId="run", lastProgress=None)


def test_progress_never_runs_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch may have several jobs: each begins with no task done."""
    fractions = iter([0.5, 1.0, 0.0, 0.25, None, 0.5])
    monkeypatch.setattr(told, "_task_fraction", lambda *_: next(fractions))
    monkeypatch.setattr(told, "_running_records", lambda *_: 100)
    done = Done("t", "t")
    done.batches = [Batch(0, 1_000_000, 0, 1)]  # of an earlier run
    topic = Loading(_ROUTE, done, query=_QUERY)
    lake: Any = SimpleNamespace(loading={"t": topic})

    seen = [told.progress(lake)[0].loaded for _ in range(5)]
    assert seen == [50, 100, 100, 100, 100]

    done.add(Batch(1, 100, 0, 1))
    assert told.progress(lake)[0].loaded == 150

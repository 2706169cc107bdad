"""A cluster for each fault test, with what the test wants to break."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.chaos.testbed import Equipment, Testbed

MakeBed = Callable[..., Testbed]
#: Further forms of a fault that another test has shown already. Every build has the first form.
FURTHER_FORM = pytest.mark.skipif(
    not os.environ.get("HEADRACE_ALL_FAULTS"), reason="a further form of this fault: HEADRACE_ALL_FAULTS=1"
)


@pytest.fixture
def make_bed(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MakeBed]:
    """`make_bed(Equipment(...), brokers=3, properties={...})`; skips where the machine cannot do it."""
    target = str(request.config.getoption("--target"))
    with ExitStack() as stack:

        def make(
            equipment: Equipment | None = None, brokers: int = 3, properties: dict[str, str] | None = None
        ) -> Testbed:
            wanted = equipment or Equipment()
            if reason := wanted.unavailable():
                pytest.skip(reason)
            bed = Testbed(tmp_path / "cluster", wanted, target=target, brokers=brokers, properties=properties)
            return stack.enter_context(bed)

        yield make


@pytest.fixture
def headrace_only(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--target") != "headrace":
        pytest.skip("Apache Kafka has nothing of this kind")

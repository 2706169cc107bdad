"""What the last step says while it waits for the source to come to rest, and when it is interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli import migrate_cutover
from headrace.core.ids import TopicPartition
from headrace.migration import state_file
from headrace.migration.draining import Drain, Patience
from tests.unit.migration.test_state import PROOF, linked

ORDERS = TopicPartition("orders", 0)


async def said(*seen: int) -> str | None:
    """At the last of some looks at the source's end, a second apart."""
    nobody: Any = None
    drain = Drain(
        nobody, linked(), lambda: None, lambda _: None, Patience(60, 2, 600), lambda: 0.0, lambda: 0
    )
    waiting = None
    for now, end in enumerate(seen):
        drain._note({ORDERS: end}, float(now))
        waiting = await drain._in_the_way({ORDERS: end}, float(now))
    return waiting


async def test_nobody_is_called_a_writer_who_was_not_seen_to_write() -> None:
    assert await said(100, 100) == "looking for 60 s whether anybody still writes at the source"
    assert await said(100, 101) == "producers still write at the source: stop them"


def test_a_cutover_that_is_interrupted_says_how_to_go_on_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    made = linked()
    made.proof = PROOF
    path = tmp_path / "migration.json"
    state_file.write(path, made)
    monkeypatch.setattr(migrate_cutover, "with_both", interrupted)
    arguments = ["--yes", "--without-groups", "--state", str(path)]
    result = CliRunner().invoke(migrate_cutover.cutover, arguments)
    assert "`headrace migrate cutover` goes on with it; --undo takes back what was begun" in result.output

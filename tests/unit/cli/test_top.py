"""`headrace top`: its rows, and its screens as pictures that are compared byte for byte."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from textual.pilot import Pilot

from headrace.cli.main import cli
from headrace.cli.top_app import TopApp
from headrace.cli.top_rows import SCREENS, broker_rows, group_rows, headline, move_rows, topic_rows
from headrace.client.health import Health
from headrace.client.reassignments import Reassignment
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.snapshot import Snapshot
from tests.unit.observe.made_up import broken_look, small_look, snapshot_of

IMAGES = Path(__file__).parents[3] / "docs" / "img"
MOVED = TopicPartition("orders", 0)


def small() -> Snapshot:
    """With one partition on its way."""
    seen = snapshot_of(small_look(), small_look(1))
    assert isinstance(seen.health, Health)
    moving = {MOVED: Reassignment([1, 2, 3], [3], [1])}
    return seen._replace(health=seen.health._replace(moving=moving, lagging={(MOVED, 3): 1200}))


def nothing() -> Callable[[TopApp], Awaitable[None]]:
    async def watch(_app: TopApp) -> None:
        return

    return watch


def test_every_row_has_a_cell_for_each_column() -> None:
    for seen in (small(), snapshot_of(broken_look(), broken_look(1))):
        for screen in SCREENS:
            for row in screen.rows(seen):
                assert len(row) == len(screen.columns), screen.title


def test_topics_are_by_rate_and_groups_by_lag() -> None:
    seen = small()
    rates = [seen.topics[row[0]].rate_in or 0 for row in topic_rows(seen)]
    assert rates == sorted(rates, reverse=True)
    assert not isinstance(seen.groups, Unknown)
    lags = [seen.groups[row[0]].lag or 0 for row in group_rows(seen)]
    assert lags == sorted(lags, reverse=True)
    assert lags, "there is one to look at"


def test_a_move_says_how_much_is_left() -> None:
    (row,) = move_rows(small())
    assert (row[0], row[1], row[2], row[4]) == ("orders-0", "1", "3", "1,200")


def test_what_is_not_known_is_said_and_never_zero() -> None:
    seen = small()._replace(groups=Unknown("denied"), health=Unknown("denied"))
    assert group_rows(seen)[0][0] == "not known: denied"
    assert move_rows(seen)[0][0] == "not known: denied"
    assert headline(seen).startswith("not known: denied  cluster made-up")
    assert any("-" in row for row in broker_rows(snapshot_of(small_look())))


@pytest.mark.parametrize("at", range(len(SCREENS)), ids=[screen.title for screen in SCREENS])
async def test_a_screen_is_its_picture(at: int) -> None:
    app = TopApp(nothing())
    async with app.run_test(size=(118, 16)) as pilot:
        await pilot.pause()
        app.take(small())
        await pilot.press(SCREENS[at].key)
        picture = await settled(app, pilot)
    stored = IMAGES / f"top-{SCREENS[at].title.lower()}.svg"
    assert picture == stored.read_text(), f"look at it, and if it is as it should be write it to {stored}"


async def settled(app: TopApp, pilot: Pilot[None]) -> str:
    """The picture as soon as nothing changes it any more: terminals are laid out in several steps."""
    before = ""
    while (now := drawn(app)) != before:
        before = now
        await pilot.pause()
    return now


def drawn(app: TopApp) -> str:
    """Without fonts of another host, which rich names: documents load nothing from there."""
    picture = app.export_screenshot(title="headrace top")
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    return re.sub(r"terminal-\d+", "terminal", picture)


async def test_what_was_seen_last_stays_while_the_cluster_cannot_be_asked() -> None:
    app = TopApp(nothing())
    async with app.run_test(size=(118, 16)) as pilot:
        app.fail("nobody listens\x1b[2J")
        app.take(small())
        app.fail("nobody listens\x1b[2J")
        picture = await settled(app, pilot)
        assert "alive" in picture
        assert "nobody&#160;listens\\x1b[2J" in picture
        await pilot.press("q")


async def test_a_name_is_no_markup() -> None:
    seen = small()
    assert not isinstance(seen.groups, Unknown)
    odd = {"g": seen.groups["billing"]._replace(group_id="[red]g[/red]")}
    app = TopApp(nothing())
    async with app.run_test(size=(118, 16)) as pilot:
        app.take(seen._replace(groups=odd))
        await pilot.press("3")
        assert "[red]g[/red]" in await settled(app, pilot)


def test_it_needs_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = CliRunner().invoke(cli, ["top"], prog_name="headrace")
    assert refused.exit_code == 1
    assert "headrace top needs a terminal" in refused.stderr
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    lacking = CliRunner().invoke(cli, ["top"], prog_name="headrace")
    assert 'pip install "headrace[top]"' in lacking.stderr

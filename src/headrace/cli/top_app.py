"""The terminal of `headrace top`: one table, filled from the last snapshot. `top_rows.py` says with what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static

from headrace.cli.render import visible
from headrace.cli.top_rows import SCREENS, Screen, headline
from headrace.observe.snapshot import Snapshot

MOST_ROWS = 500
"""Nobody reads more of them, and each costs the terminal."""


class TopApp(App[None]):
    CSS = "Static { height: auto; padding: 0 1; } DataTable { height: 1fr; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(screen.key, f"show({at})", screen.title) for at, screen in enumerate(SCREENS)),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, watch: Callable[[TopApp], Awaitable[None]]) -> None:
        """`watch` runs beside the screen, and calls `take` and `fail`."""
        super().__init__()
        self._feed = watch
        self._shown: Screen = SCREENS[0]
        self._seen: Snapshot | None = None
        self._failure = ""

    def compose(self) -> ComposeResult:
        yield Static("asking ...", id="head", markup=False)
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        self.run_worker(self._fed(), exit_on_error=True)
        self._draw()

    async def _fed(self) -> None:
        await self._feed(self)

    def take(self, seen: Snapshot) -> None:
        self._seen, self._failure = seen, ""
        self._draw()

    def fail(self, reason: str) -> None:
        """What was seen last stays, and it is said that it is old."""
        self._failure = visible(reason)
        self._draw()

    def action_show(self, at: int) -> None:
        self._shown = SCREENS[at]
        self._draw()

    def _draw(self) -> None:
        said = "asking ..." if self._seen is None else headline(self._seen)
        if self._failure:
            said += f"\ncannot ask the cluster: {self._failure}"
        self.query_one("#head", Static).update(f"{self._shown.title}  {said}")
        table: DataTable[Text] = self.query_one(DataTable)
        row = table.cursor_row
        rows = [] if self._seen is None else self._shown.rows(self._seen)[:MOST_ROWS]
        table.clear(columns=True)
        for at, name in enumerate(self._shown.columns):
            # A table that finds the widths itself does so later, and is drawn twice.
            table.add_column(name, width=max(cell_len(text) for text in (name, *(each[at] for each in rows))))
        table.add_rows([Text(cell) for cell in each] for each in rows)  # as markup, names would have colours
        if rows:
            table.move_cursor(row=min(row, len(rows) - 1))

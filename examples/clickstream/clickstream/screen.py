"""What is going on, to look at: on a terminal a picture that moves, elsewhere a line now and then."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from clickstream.auditing import TOPICS, Audit
from clickstream.lake import Loading
from clickstream.latest_orders import LatestOrders
from clickstream.topics import ORDERS, PAGE_VIEWS
from clickstream.trading import Trading
from clickstream.traffic import Reader
from headrace.audit.verdict import State

_BLOCKS = "▁▂▃▄▅▆▇█"
_COLOURS = {
    State.CERTIFIED: "green",
    State.OPEN: "bright_black",
    State.INCOMPLETE: "yellow",
    State.DIFFERENT: "red",
}
_WIDTH = 40
_LINE_SECONDS = 10.0


class Screen:
    def __init__(
        self, console: Console, trading: Trading, loading: Loading, table: LatestOrders, audit: Audit
    ) -> None:
        self.console = console
        self.trading, self.loading, self.table, self.audit = trading, loading, table, audit
        self.pages = Reader(trading.bootstrap)
        self.headline = "open"
        self._rates: list[int] = []
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        )
        self._last_line, self._next_line = "", 0.0

    def show(self) -> None:
        self.pages.read()
        self._note_rate()
        if self._live is not None:
            self._live.update(self._picture(), refresh=True)
        elif time.monotonic() >= self._next_line and (line := self._line()) != self._last_line:
            self._last_line, self._next_line = line, time.monotonic() + _LINE_SECONDS
            self.console.print(f"{self._clock()}  {line}", soft_wrap=True)

    def _note_rate(self) -> None:
        """The records of each fortieth of the day so far."""
        column = int(self.trading.elapsed / self.trading.seconds * _WIDTH)
        while len(self._rates) <= min(column, _WIDTH - 1):
            self._rates.append(self.trading.stored.total())

    def _line(self) -> str:
        certified = sum(len(self.audit.certified(topic)) for topic in TOPICS)
        return (
            f"{self.headline}: {self.trading.stored.total():,} sent, "
            f"{self.loading.loaded.total():,} in the lake, {self.pages.totals} totals of pages, "
            f"{certified} windows certified"
        )

    def _picture(self) -> Group:
        stored, loaded = self.trading.stored, self.loading.loaded
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="bold", width=7)
        rows.add_column(width=_WIDTH)
        rows.add_column()
        rows.add_row("shop", self._wave(), f"{stored[PAGE_VIEWS]:,} page views, {stored[ORDERS]:,} of orders")
        bar = ProgressBar(max(1, stored.total()), loaded.total(), width=_WIDTH)
        rows.add_row("lake", bar, f"{loaded[PAGE_VIEWS]:,} page views, {loaded[ORDERS]:,} of orders")
        bar = ProgressBar(max(1, stored[ORDERS]), self.table.loaded, width=_WIDTH)
        rows.add_row("table", bar, f"{self.table.loaded:,} of orders")
        rows.add_row("pages", self._pages(), f"{self.pages.totals} totals in the topic")
        for topic in TOPICS:
            said = f"{len(self.audit.certified(topic))} windows of {topic} certified"
            rows.add_row("audit" if topic == TOPICS[0] else "", self._strip(topic), said)
        return Group(Text(f"{self._clock()}  {self.headline}", "bold"), rows)

    def _clock(self) -> str:
        minutes, seconds = divmod(int(self.trading.elapsed), 60)
        return f"{minutes}:{seconds:02}"

    def _wave(self) -> Text:
        steps = [after - before for before, after in zip(self._rates, self._rates[1:], strict=False)]
        peak = max(steps, default=1) or 1
        return Text("".join(_BLOCKS[step * (len(_BLOCKS) - 1) // peak] for step in steps), "blue")

    def _pages(self) -> Text:
        first = sorted(self.pages.latest.items(), key=lambda page: -page[1])[:3]
        return Text("  ".join(f"{page} {views}" for page, views in first))

    def _strip(self, topic: str) -> Text:
        strip = Text()
        found = [verdict for (name, _), verdict in sorted(self.audit.verdicts.items()) if name == topic]
        for verdict in found[-_WIDTH:]:
            strip.append("■", _COLOURS[verdict.state])
        return strip

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        self.pages.close()

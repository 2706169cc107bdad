"""A bar for each topic on a terminal; elsewhere a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.cli.progress import ProgressLine

if TYPE_CHECKING:
    from headrace.spark.lake.job import Lake
    from headrace.spark.lake.progress import TopicProgress


@contextmanager
def showing(once: bool, part: str = "lake") -> Iterator[Callable[[Lake], None]]:
    """Gives the function that a running job calls."""
    from headrace.spark.lake.progress import progress

    def told(lake: Lake) -> list[TopicProgress]:
        return progress(lake, within_batch=part == "lake")

    if not sys.stderr.isatty():
        with ProgressLine() as line:
            yield lambda lake: line.tell(sentence(told(lake), lake.absent, part))
        return
    with bars(once) as draw:
        yield lambda lake: draw(told(lake))


def sentence(topics: list[TopicProgress], absent: list[str], part: str = "lake") -> str:
    """All topics in one line: what a log file wants."""
    loaded = sum(topic.loaded for topic in topics)
    rate = sum(topic.rate or 0.0 for topic in topics if topic.state == "loading")
    count = f"{len(topics)} topic{'s' if len(topics) != 1 else ''}"
    said = f"nothing new in {count}"
    if loaded:
        said = f"{loaded:,} record{'s' if loaded != 1 else ''} of {count} loaded"
    if rate:
        said += f", {rate:,.0f} a second"
    failing = [topic.topic for topic in topics if topic.state.startswith(("trying", "failed"))]
    if failing:
        said += f"; trouble with {', '.join(failing)}: `headrace {part} status` says why"
    if absent:
        said += f"; waiting for {', '.join(absent)} to be created"
    return said


@contextmanager
def bars(once: bool) -> Iterator[Callable[[list[TopicProgress]], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn

    shown: dict[str, TaskID] = {}
    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}")]
    with Progress(*columns, console=Console(stderr=True), transient=not once) as view:

        def draw(topics: list[TopicProgress]) -> None:
            for topic in topics:
                if topic.topic not in shown:
                    shown[topic.topic] = view.add_task(topic.topic, total=None, said="")
                rate = "" if topic.rate is None else f"  {topic.rate:,.0f}/s"
                # Without a total rich draws a bar that only says that something happens.
                total = topic.total if topic.state != "up to date" else max(topic.loaded, 1)
                view.update(
                    shown[topic.topic],
                    completed=topic.loaded if topic.state != "up to date" else total,
                    total=total if total or topic.state != "done" else 1,
                    said=f"{topic.loaded:,}{rate}  {topic.state}",
                )

        yield draw

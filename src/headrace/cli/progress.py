"""Progress on standard error: on a terminal one line that changes, elsewhere a new line now and then."""

from __future__ import annotations

import sys
import time
from typing import Final

import click

QUIET_SECONDS: Final = 5.0


class ProgressLine:
    """`tell` may be called as often as one likes. Use it as a context, so that the line is ended."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._width = 0
        self._last = ""
        self._next = 0.0

    def tell(self, something: object) -> None:
        text = str(something)
        if self._terminal:
            click.echo("\r" + text.ljust(self._width), err=True, nl=False)
            self._width = len(text)
        elif text != self._last and time.monotonic() >= self._next:
            click.echo(text, err=True)
            self._next = time.monotonic() + QUIET_SECONDS
        self._last = text

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal and self._width:
            click.echo(err=True)

"""What cannot be read as it was asked for; says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.client.errors import ClientFailure
from headrace.core.errors import ConfigError, HeadraceError


class SegmentsRefused(HeadraceError):
    """In one text, because Spark carries nothing else from a task or a plan to whoever waits."""


@contextmanager
def told() -> Iterator[None]:
    try:
        yield
    except ClientFailure as error:
        raise SegmentsRefused(f"{error}. {error.hint}" if error.hint else str(error)) from None
    except ConfigError as error:
        raise SegmentsRefused(str(error)) from None

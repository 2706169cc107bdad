"""What a batch dies of, told to Spark in words that it survives.

Spark asks of each error from `foreachBatch` whether it is only the query being stopped. It asks by a regular
expression that takes a step into itself for every character behind Py4J's words for an error in the JVM.
These are followed by the JVM's calls, so the stack overflows, the stream's thread is gone, and the query has
ended without an error: a load would look complete. So such errors are told anew, without those words.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame

from headrace.core.errors import HeadraceError

_WORDS: Final = "py4j.protocol.Py4JJavaError: An error occurred while calling"
_INTERRUPTED: Final = re.compile(
    r"java\.lang\.InterruptedException|java\.io\.InterruptedIOException"
    r"|java\.nio\.channels\.ClosedByInterruptException"
)
_LENGTH: Final = 2000
_log = logging.getLogger(__name__)


class BatchFailed(HeadraceError):
    """Spark could not do what a batch asked of it. The batch is repeated when the query is started again."""


def told_to_spark(
    load: Callable[[DataFrame, int], None], stopping: Callable[[], bool] = lambda: False
) -> Callable[[DataFrame, int], None]:
    """`load` for `foreachBatch`. While its query is being stopped, to be interrupted is no news."""

    def told(frame: DataFrame, batch: int) -> None:
        try:
            load(frame, batch)
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            if _WORDS not in text:
                raise
            # A failure may have an interruption among its causes, and Spark is told of nothing else then: the
            # reason would be nowhere.
            if _INTERRUPTED.search(text) is None:
                _log.error("batch %d failed", batch, exc_info=True)
            elif stopping():
                _log.info("batch %d was interrupted, and is repeated at the next start", batch)
            else:
                _log.warning("batch %d was interrupted", batch, exc_info=True)
            raise BatchFailed(in_other_words(text)) from None

    return told


def in_other_words(text: str) -> str:
    """Of a traceback with an error of the JVM in it. One line, since Spark and `failures` cut there."""
    interruption = _INTERRUPTED.search(text)
    if interruption is not None:
        return f"{_WORDS} Spark: {interruption.group()}"  # short, and as Spark knows it
    _, _, said = text.rpartition(_WORDS)
    lines = [line.strip() for line in said.splitlines()[1:]]  # the first only names an object of Py4J
    kept = [line for line in lines if line and not line.startswith(("at ", "... "))]
    found = " ".join(kept).removeprefix(": ")
    return found if len(found) <= _LENGTH else f"{found[:_LENGTH]} ..."

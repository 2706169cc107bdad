"""Errors of the JVM are told to Spark without the words that make its own check overflow."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.spark.lake.batch_errors import BatchFailed, in_other_words, told_to_spark

_WORDS = "py4j.protocol.Py4JJavaError: An error occurred while calling"
_CALLS = "\tat org.apache.spark.Something.call(Something.scala:1)\n" * 500
_ABORTED = (
    'Traceback (most recent call last):\n  File "loader.py", line 12, in load\n'
    f"{_WORDS} o17.parquet.\n: org.apache.spark.SparkException: Job aborted\n{_CALLS}"
    f"Caused by: java.io.IOException: disk full\n{_CALLS}\t... 17 more\n"
)


class Py4JJavaError(Exception):
    """Its name and module are what a traceback shows."""


Py4JJavaError.__module__ = "py4j.protocol"


def test_what_happened_is_kept_and_the_calls_are_not() -> None:
    assert (
        in_other_words(_ABORTED)
        == "org.apache.spark.SparkException: Job aborted Caused by: java.io.IOException: disk full"
    )
    assert len(in_other_words(f"{_WORDS} o1.save.\n: " + "x" * 9000)) < 2100


def test_a_stop_is_still_seen_as_one() -> None:
    text = _ABORTED + "Caused by: java.lang.InterruptedException\n" + _CALLS
    assert in_other_words(text) == f"{_WORDS} Spark: java.lang.InterruptedException"


def test_only_errors_of_the_jvm_are_told_anew(caplog: pytest.LogCaptureFixture) -> None:
    def fails(frame: Any, batch: int) -> None:
        if batch:
            raise ValueError("ours")
        raise Py4JJavaError(
            "An error occurred while calling o1.save.\n: java.io.IOException: full\n" + _CALLS
        )

    nothing: Any = None
    with pytest.raises(ValueError, match="ours"):
        told_to_spark(fails)(nothing, 1)
    with pytest.raises(BatchFailed, match=r"^java.io.IOException: full$"):
        told_to_spark(fails)(nothing, 0)
    assert "batch 0 failed" in caplog.text


def test_a_failure_that_looks_like_a_stop_leaves_its_reason_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(_frame: Any, _batch: int) -> None:
        raise Py4JJavaError(
            "An error occurred while calling o1.save.\n: java.io.IOException: the bucket is gone\n"
            f"{_CALLS}Caused by: java.io.InterruptedIOException: timeout\n"
        )

    nothing: Any = None
    with pytest.raises(BatchFailed, match="InterruptedIOException"):
        told_to_spark(fails)(nothing, 7)
    assert "batch 7 was interrupted" in caplog.text
    assert "the bucket is gone" in caplog.text


def test_to_be_interrupted_while_one_is_stopped_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_frame: Any, _batch: int) -> None:
        raise Py4JJavaError(
            f"An error occurred while calling o1.save.\n: java.lang.InterruptedException\n{_CALLS}"
        )

    nothing: Any = None
    for stopping, told in ((False, True), (True, False)):
        with pytest.raises(BatchFailed):
            told_to_spark(fails, lambda stopping=stopping: stopping)(nothing, 7)  # type: ignore[misc]
        assert ("batch 7 was interrupted" in caplog.text) is told
        caplog.clear()

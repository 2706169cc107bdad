"""When two values of a setting are the same."""

from __future__ import annotations

import pytest

from headrace.desired.settings import are_equal


@pytest.mark.parametrize(
    ("one", "other"), [("0.5", "0.50"), ("a, b", "a,b"), ("TRUE", "true"), ("False", "false"), ("", "")]
)
def test_written_otherwise_and_equal(one: str, other: str) -> None:
    assert are_equal(one, other)


@pytest.mark.parametrize(("one", "other"), [("1", "2"), ("a,b", "b,a"), ("true", "false"), ("GZIP", "gzip")])
def test_different(one: str, other: str) -> None:
    assert not are_equal(one, other)

"""The partition of a key must be Java's, or Kafka's tools look for a group where it is not."""

from __future__ import annotations

import pytest

from headrace.coordinators.partitioning import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99_162_322),
        ("polygenelubricants", -(2**31)),  # the one whose abs() is still negative in Java
        ("Aa", 2112),
        ("BB", 2112),
        ("grüße", 98_768_023),
        ("\U0001f600", 1_772_899),  # two UTF-16 units, d83d and de00
    ],
)
def test_hash_codes_are_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected & 0xFFFFFFFF


def test_the_sign_bit_is_dropped_not_negated() -> None:
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("hello", 50) == 99_162_322 % 50


def test_a_lone_surrogate_is_a_unit_like_any_other() -> None:
    assert java_hash("\ud83d") == 0xD83D

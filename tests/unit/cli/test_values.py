"""Values that people write on a command line."""

from __future__ import annotations

import click
import pytest

from headrace.cli.values import duration_ms, duration_text, topic_partitions

CONTEXT = click.Context(click.Command("c"))
PARAMETER = click.Option(["--for"])


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("90s", 90_000),
        ("1.5s", 1_500),
        ("250ms", 250),
        ("15m", 900_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("PT1H30M", 5_400_000),
        ("P1DT2H", 93_600_000),
        ("0s", 0),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert duration_ms(CONTEXT, PARAMETER, text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "5", "m", "1h 30m", "-5m", "1m1h", "soon"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter, match="not a duration"):
        duration_ms(CONTEXT, PARAMETER, text)


def test_no_duration_is_none() -> None:
    assert duration_ms(CONTEXT, PARAMETER, None) is None


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (1_250, "1.2s"),
        (9_000, "9s"),
        (59_999, "59s"),
        (60_000, "1m"),
        (61_000, "1m1s"),
        (3_600_000, "1h"),
        (5_430_000, "1h30m"),
        (90_000_000, "1d1h"),
    ],
)
def test_durations_for_people(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text


def test_topics_with_and_without_partitions() -> None:
    assert topic_partitions("orders") == ("orders", ())
    assert topic_partitions("orders:2,0,2") == ("orders", (2, 0))
    for wrong in ("", ":1", "orders:", "orders:a", "orders:-1"):
        with pytest.raises(click.BadParameter, match="not a topic"):
            topic_partitions(wrong)

"""Values that people write on a command line: lists of brokers, and rates."""

from __future__ import annotations

import re
from typing import Final

import click

from headrace.client.quota_values import bytes_a_second
from headrace.core.ids import TopicPartition


def broker_list(text: str) -> list[int]:
    """1,2,3, each once."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r} is not a list of broker ids; write for instance 1,2,3")
    brokers = [int(part) for part in parts]
    if len(set(brokers)) != len(brokers):
        raise click.BadParameter(f"{text!r} names a broker twice")
    return brokers


def byte_rate(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """Callback: 500000, 10MB, 1.5GB/s; bytes a second."""
    if text is None:
        return None
    try:
        return bytes_a_second(text)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def assignments(topic: str, items: tuple[str, ...]) -> dict[TopicPartition, list[int]]:
    """PARTITION=1,2,3 for each item."""
    targets: dict[TopicPartition, list[int]] = {}
    for item in items:
        index, equals, brokers = item.partition("=")
        if not equals or not index.strip().isdecimal():
            raise click.BadParameter(f"{item!r} is not PARTITION=BROKERS; write for instance 0=1,2,3")
        partition = TopicPartition(topic, int(index))
        if partition in targets:
            raise click.BadParameter(f"partition {partition.partition} is given twice")
        targets[partition] = broker_list(brokers)
    return targets


_DURATION: Final = re.compile(
    r"(?:P)?(?:(?P<d>[0-9]+)D)?(?:T)?(?:(?P<h>[0-9]+)H)?(?:(?P<m>[0-9]+)M)?(?:(?P<s>[0-9]+(?:\.[0-9]+)?)S)?"
    r"(?:(?P<ms>[0-9]+)MS)?",
    re.ASCII,
)
_MILLISECONDS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


def duration_ms(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """Callback: 90s, 1h30m, 2d, or as ISO 8601 has it, PT1H30M; in milliseconds."""
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip().upper())
    parts = {} if match is None else {unit: part for unit, part in match.groupdict().items() if part}
    if not parts:
        raise click.BadParameter(
            f"{text!r} is not a duration; write for instance 90s, 1h30m, 2d or PT1H30M", context, parameter
        )
    return round(sum(float(part) * _MILLISECONDS[unit] for unit, part in parts.items()))


def duration_text(milliseconds: int) -> str:
    """In the largest unit and the next: 3d4h, 5m2s, 1.2s."""
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f}".removesuffix(".0") + "s"
    left = milliseconds // 1000
    for unit, seconds, next_unit, next_seconds in (
        ("d", 86_400, "h", 3_600),
        ("h", 3_600, "m", 60),
        ("m", 60, "s", 1),
    ):
        if left >= seconds:
            rest = left % seconds // next_seconds
            return f"{left // seconds}{unit}" + (f"{rest}{next_unit}" if rest else "")
    return f"{left}s"


def counted(number: int, one: str, many: str | None = None) -> str:
    """1 record, 2 records."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def topic_partitions(text: str) -> tuple[str, tuple[int, ...]]:
    """TOPIC or TOPIC:0,1,2. No topic has a colon in its name."""
    topic, colon, indexes = text.partition(":")
    parts = [part.strip() for part in indexes.split(",")] if colon else []
    if not topic or not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r} is not a topic; write for instance orders or orders:0,1")
    return topic, tuple(dict.fromkeys(int(part) for part in parts))

"""Values that people write on a command line: lists of brokers, and rates."""

from __future__ import annotations

import re
from typing import Final

import click

from headrace.core.ids import TopicPartition

_RATE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMG]?)i?B?(?:/s)?", re.ASCII)
_FACTORS: Final = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


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
    match = _RATE.fullmatch(text.strip())
    rate = round(float(match[1]) * _FACTORS[match[2]]) if match else 0
    if rate < 1:
        raise click.BadParameter(f"{text!r} is not a rate; write for instance 10MB", context, parameter)
    return rate


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

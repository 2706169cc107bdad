"""What the commands of the audit share: their options, moments as people write them, reading the verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click

from headrace.audit import verdict as verdicts
from headrace.audit.verdict import Verdict
from headrace.audit.verdict_topic import VerdictReader
from headrace.cli.options import with_cluster
from headrace.client.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])

#: The exit code of a failure where 1 is an answer: the tiers differ.
FAILED: Final = 3


def certificates_option(command: F) -> F:
    return click.option(
        "--certificates",
        default=verdicts.DEFAULT_TOPIC,
        show_default=True,
        metavar="TOPIC",
        help="Where the audit publishes its verdicts.",
    )(command)


def moment_ms(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """Callback: 2026-11-15T10:00, with a zone or in UTC; milliseconds since 1970; or `now`."""
    if text is None:
        return None
    if text == "now":
        return round(datetime.now(UTC).timestamp() * 1000)
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a moment; write for instance 2026-11-15T10:00, or milliseconds since 1970",
            context,
            parameter,
        ) from None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)


def read_verdicts(bootstrap: str, topic: str, wanted: tuple[str, ...], since_ms: int | None) -> list[Verdict]:
    """Of the wanted topics, or of all, by topic and time."""

    async def read(cluster: Cluster) -> list[Verdict]:
        reader = VerdictReader(cluster, topic)
        try:
            seen = await reader.catch_up()
        finally:
            await reader.close()
        chosen = [
            verdict
            for verdict in seen.values()
            if (not wanted or verdict.topic in wanted) and (since_ms is None or verdict.window_ms >= since_ms)
        ]
        return sorted(chosen, key=lambda verdict: (verdict.topic, verdict.window_ms))

    return with_cluster(bootstrap, read)


def document(verdict: Verdict) -> dict[str, object]:
    """For --json: what the record in the topic says."""
    import json

    found: dict[str, object] = json.loads(verdict.encode())
    return found

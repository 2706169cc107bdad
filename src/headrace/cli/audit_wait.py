"""`headrace audit wait`: for schedulers. The exit code is the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import click

from headrace.audit.verdict import State, Verdict, window_text
from headrace.audit.verdict_topic import VerdictReader, settled
from headrace.cli.audit_options import certificates_option, document, moment_ms
from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json
from headrace.cli.values import duration_ms
from headrace.client.cluster import Cluster

CERTIFIED: Final = 0
DIFFERENT: Final = 1
NOT_YET: Final = 2


@click.command()
@click.argument("topic", shell_complete=complete_topics)
@click.argument("window", callback=moment_ms)
@click.option(
    "--timeout", metavar="DURATION", callback=duration_ms, help="Give up after so long. Default: never."
)
@certificates_option
@bootstrap_option
@json_option
def wait(
    topic: str, window: int, timeout: int | None, certificates: str, bootstrap: str, as_json: bool
) -> None:
    """Block until the WINDOW of TOPIC is certified: any moment in it names a window.

    \b
    headrace audit wait orders 2026-11-15T10:00 --timeout 30m && spark-submit nightly.py

    Exit codes: 0 certified; 1 the tiers differ; 2 neither, within the time that was given.
    """

    async def watch(cluster: Cluster) -> Verdict | None:
        reader = VerdictReader(cluster, certificates)
        found: Verdict | None = None
        try:
            async with asyncio.timeout(None if timeout is None else timeout / 1000):
                async for seen in reader.follow():
                    found = _of(seen.values(), topic, window)
                    if settled(found):
                        return found
        except TimeoutError:
            pass
        finally:
            await reader.close()
        return found

    found = with_cluster(bootstrap, watch)
    if as_json:
        print_json(None if found is None else document(found))
    elif found is None:
        click.echo(f"{topic}, window {window_text(window)}: nothing is known of it", err=True)
    else:
        click.echo(f"{topic}, window {window_text(found.window_ms)}: {found.headline}")
    raise click.exceptions.Exit(_code(found))


def _of(verdicts: Iterable[Verdict], topic: str, moment: int) -> Verdict | None:
    for verdict in verdicts:
        if verdict.topic == topic and verdict.window_ms <= moment < verdict.window_ms + verdict.length_ms:
            return verdict
    return None


def _code(found: Verdict | None) -> int:
    if found is None:
        return NOT_YET
    return {State.CERTIFIED: CERTIFIED, State.DIFFERENT: DIFFERENT}.get(found.state, NOT_YET)

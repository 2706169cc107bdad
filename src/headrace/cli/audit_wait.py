"""`headrace audit wait`: for schedulers. The exit code is the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import click

from headrace.audit.verdict import State, Verdict, window_text
from headrace.audit.verdict_topic import VerdictReader, settled
from headrace.cli.audit_options import FAILED, certificates_option, document, moment_ms
from headrace.cli.completions import complete_topics
from headrace.cli.lazy_group import report
from headrace.cli.options import bootstrap_option, connect, json_option
from headrace.cli.render import print_json
from headrace.cli.values import duration_ms
from headrace.client.errors import TimedOut
from headrace.core.errors import HeadraceError

CERTIFIED: Final = 0
DIFFERENT: Final = 1
NOT_YET: Final = 2
SECONDS_BETWEEN: Final = 1


class _Wrong(click.ClickException):
    exit_code = FAILED


class _Answering(click.Command):
    """Its exit codes are answers, and that of a usage error is not to be taken for one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _Wrong(error.format_message()) from error


@click.command(cls=_Answering)
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

    Brokers that cannot be asked are asked again. Exit codes: 0 certified; 1 the tiers differ; 2 neither,
    within the time that was given; 3 nobody could be asked when it was over, or the command was wrong.
    """
    watch = _Watch(topic, window)
    asyncio.run(watch.until_settled(bootstrap, certificates, timeout))
    if watch.failure is not None:
        report(str(watch.failure), getattr(watch.failure, "hint", ""))
        raise click.exceptions.Exit(FAILED)
    found = watch.found
    if as_json:
        print_json(None if found is None else document(found))
    elif found is None:
        click.echo(f"{topic}, window {window_text(window)}: nothing is known of it", err=True)
    else:
        click.echo(f"{topic}, window {window_text(found.window_ms)}: {found.headline}")
    raise click.exceptions.Exit(_code(found))


class _Watch:
    def __init__(self, topic: str, window: int) -> None:
        self.topic = topic
        self.window = window
        #: The last that was heard of the window.
        self.found: Verdict | None = None
        #: Why nothing can be heard now.
        self.failure: HeadraceError | None = TimedOut("no broker answered within the time that was given")

    async def until_settled(self, bootstrap: str, certificates: str, timeout: int | None) -> None:
        try:
            async with asyncio.timeout(None if timeout is None else timeout / 1000):
                while not settled(self.found):
                    try:
                        await self._follow(bootstrap, certificates)
                    except HeadraceError as error:
                        if str(error) != str(self.failure):
                            click.echo(f"trying again: {error}", err=True)
                        self.failure = error
                        await asyncio.sleep(SECONDS_BETWEEN)
        except TimeoutError:
            pass

    async def _follow(self, bootstrap: str, certificates: str) -> None:
        async with connect(bootstrap) as cluster:
            reader = VerdictReader(cluster, certificates)
            try:
                async for seen in reader.follow():
                    self.failure = None
                    self.found = _of(seen.values(), self.topic, self.window)
                    if settled(self.found):
                        return
            finally:
                await reader.close()


def _of(verdicts: Iterable[Verdict], topic: str, moment: int) -> Verdict | None:
    for verdict in verdicts:
        if verdict.topic == topic and verdict.window_ms <= moment < verdict.window_ms + verdict.length_ms:
            return verdict
    return None


def _code(found: Verdict | None) -> int:
    if found is None:
        return NOT_YET
    return {State.CERTIFIED: CERTIFIED, State.DIFFERENT: DIFFERENT}.get(found.state, NOT_YET)
